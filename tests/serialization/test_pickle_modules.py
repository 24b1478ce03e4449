"""`pickle_module=` of save and load: a module with a Pickler and an Unpickler of its own."""

from __future__ import annotations

import io
import pickle
import types
from typing import Any, ClassVar

import pytest

import rushlight as torch


def remake() -> Any:
    return lambda x: x + 1


class ByRules(pickle._Pickler):  # type: ignore[misc, name-defined]
    """Knows functions by a rule for their class, as dill does."""

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_function(self, fn: Any) -> None:
        if fn.__name__ != "<lambda>":
            return self.save_global(fn)  # type: ignore[no-any-return]
        return self.save_reduce(remake, (), obj=fn)  # type: ignore[no-any-return]

    dispatch[types.FunctionType] = save_function


class ByReducer(pickle.Pickler):
    """Knows functions by `reducer_override`, as cloudpickle does."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.asked = 0

    def reducer_override(self, obj: Any) -> Any:
        self.asked += 1
        return (remake, ()) if isinstance(obj, types.FunctionType) and obj.__name__ == "<lambda>" else NotImplemented


class Renaming(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(module, "remake" if name == "gone" else name)


def module(pickler: Any, unpickler: Any) -> Any:
    made: Any = types.ModuleType("own")
    made.Pickler, made.Unpickler = pickler, unpickler
    return made


@pytest.mark.parametrize("pickler", [ByRules, ByReducer])
@pytest.mark.parametrize("unpickler", [Renaming, pickle.Unpickler, pickle._Unpickler])  # type: ignore[attr-defined]
@pytest.mark.parametrize("archive", [True, False])
def test_a_module_pickles_what_it_knows(pickler: Any, unpickler: Any, archive: bool) -> None:
    own, file, x = module(pickler, unpickler), io.BytesIO(), torch.arange(3.0)
    what = {
        "fn": lambda x: x + 1,
        "x": x,
        "part": x[1:],
        "p": torch.nn.Parameter(torch.ones(1)),
        "dtype": torch.float16,
    }
    torch.save(what, file, pickle_module=own, _use_new_zipfile_serialization=archive)
    file.seek(0)
    found = torch.load(file, pickle_module=own)
    assert found["fn"](2) == 3
    assert found["part"].tolist() == [1.0, 2.0]
    assert found["part"].untyped_storage().data_ptr() == found["x"].untyped_storage().data_ptr()
    assert isinstance(found["p"], torch.nn.Parameter)
    assert found["dtype"] is torch.float16


class Turning:
    """Has a rule for what every pickler knows: a list comes back as the range of its places."""

    def reducer_override(self, obj: Any) -> Any:
        return (range, (len(obj),)) if obj.__class__ is list else NotImplemented


class TurningInC(Turning, pickle.Pickler): ...


class TurningInPython(Turning, pickle._Pickler): ...  # type: ignore[misc, name-defined]


@pytest.mark.parametrize("pickler", [TurningInC, TurningInPython])
def test_a_rule_of_a_module_is_asked_of_what_everybody_knows_too(pickler: Any) -> None:
    file = io.BytesIO()
    torch.save({"x": torch.ones(1), "places": [1, 2.5, None]}, file, pickle_module=module(pickler, pickle.Unpickler))
    file.seek(0)
    found = torch.load(file, weights_only=False)
    assert found["places"] == range(3) and found["x"].tolist() == [1.0]


class Wrapped:
    """Written by a name that nothing has, which the unpickler of `Renaming` knows."""

    def __reduce__(self) -> Any:
        return gone, ()


def gone() -> str:
    return "gone"


def test_a_module_finds_classes_by_its_own_rules() -> None:
    file = io.BytesIO()
    torch.save(Wrapped(), file)
    file.seek(0)
    assert torch.load(file, weights_only=False) == "gone"
    file.seek(0)
    assert torch.load(file, pickle_module=module(ByRules, Renaming))(2) == 3


def test_what_is_no_such_module_is_refused() -> None:
    with pytest.raises(AttributeError, match="Pickler"):
        torch.save(1, io.BytesIO(), pickle_module=3)
    with pytest.raises(AttributeError, match="Unpickler"):
        torch.load(io.BytesIO(), pickle_module=3)
    with pytest.raises(RuntimeError, match="weights_only"):
        torch.load(io.BytesIO(), pickle_module=pickle, weights_only=True)
