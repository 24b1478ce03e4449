"""Storages: what is made of bytes, copied and converted is what PyTorch makes, refusals included."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parity.refusing import refused

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
BYTES = bytearray(range(8))


def from_buffers(t: Any, tmp_path: Path) -> Any:
    make = t.UntypedStorage.from_buffer
    ways: list[Any] = [
        ((), {}), ((), {"dtype": t.uint8}), (("big",), {"dtype": t.int16}), (("native", 1, 2, t.int16), {}),
        (("little",), {"dtype": t.complex64}), (("big",), {"dtype": t.complex64}), (("little",), {"dtype": t.float32, "offset": 4}),
        (("x",), {"dtype": t.int16}), (("little",), {"dtype": t.int16, "count": 9}), (("little",), {"dtype": t.int16, "offset": 3}),
        (("little",), {"dtype": t.int16, "offset": 9}),
    ]  # fmt: skip
    return [refused(lambda a=a, k=k: make(BYTES, *a, **k).tolist()) for a, k in ways], refused(
        lambda: make(3, dtype=t.uint8)
    )


def constructors(t: Any, tmp_path: Path) -> Any:
    untyped, typed = t.UntypedStorage, importlib.import_module(f"{t.__name__}").storage.TypedStorage
    return [
        untyped(3).nbytes(), untyped([1, 300]).tolist(), untyped().nbytes(), str(untyped(3, device="cpu").device),
        *(refused(lambda g=g: untyped(g)) for g in ("x", 1.5, [1.5], t.ones(2))),
        typed(3, dtype=t.float64).nbytes(), typed([1, 2], dtype=t.int16).tolist(), typed(wrap_storage=untyped(8), dtype=t.int16).size(),
        refused(lambda: typed(wrap_storage=untyped(8))), refused(lambda: typed(wrap_storage=3, dtype=t.int16)),
        refused(lambda: typed(1, wrap_storage=untyped(8), dtype=t.int16)), typed(dtype=t.float32).size(), str(typed(3).dtype),
        t.FloatStorage(wrap_storage=untyped(8)).size(), t.IntStorage.from_buffer(BYTES, "big").tolist(),
        typed.from_buffer(BYTES, "little", dtype=t.int16).tolist(),
    ]  # fmt: skip


def conversions(t: Any, tmp_path: Path) -> Any:
    x = t.tensor([0.0, 1.5, 200.0, 2.0])
    names = ("bfloat16", "bool", "byte", "double", "float", "half", "int", "long", "short", "complex_double", "complex_float")  # fmt: skip
    typed = [getattr(x.storage(), name)() for name in names]
    bytes_ = [getattr(x.untyped_storage(), name)() for name in (*names, "char")]
    kinds = [t.ones(1, dtype=dtype).storage_type() for dtype in (t.float32, t.bool, t.uint16)]
    return (
        [(s.tolist(), str(s.dtype), s.type(), s.pickle_storage_type(), s.element_size()) for s in (*typed, *bytes_)],
        [kind and kind.__name__ for kind in kinds],
    )


def copies(t: Any, tmp_path: Path) -> Any:
    x, y = t.arange(4.0), t.arange(4, 8, dtype=t.int32)
    x.storage().copy_(y.storage())
    first = x.tolist()
    x.untyped_storage().copy_(t.arange(4.0).untyped_storage())
    second = x.tolist()
    x.untyped_storage().byteswap(t.float32)
    third = x.untyped_storage().tolist()
    x.storage().copy_(t.arange(4, dtype=t.int32).untyped_storage())
    return (first, second, third, x.view(t.int32).tolist(), refused(lambda: x.storage().copy_(t.arange(4).storage())), refused(lambda: x.untyped_storage().copy_(t.UntypedStorage(15))),
            refused(lambda: x.storage().copy_(t.arange(5).storage())), x._version)  # fmt: skip


def sizes(t: Any, tmp_path: Path) -> Any:
    small = t.UntypedStorage([1, 2, 3])
    return (small.resize_(2).tolist(), small.resize_(4).tolist()[:2], small.nbytes(), small.resizable(),
            refused(lambda: t.ones(2).untyped_storage().new().nbytes()))  # fmt: skip


def questions(t: Any, tmp_path: Path) -> Any:
    x = t.arange(4.0)
    storages = x.untyped_storage(), x.storage()
    names = ("is_cuda", "is_sparse", "is_hpu", "filename")
    calls = ("is_pinned", "get_device", "element_size", "pin_memory", "resizable")
    return [[[getattr(s, n) for n in names], [refused(lambda s=s, n=n: getattr(s, n)()) for n in calls], str(s.device), s.cpu().nbytes(),
             s.to(device="cpu").nbytes(), refused(lambda s=s: s.to(device="meta"))] for s in storages]  # fmt: skip


def elements(t: Any, tmp_path: Path) -> Any:
    x = t.arange(4.0)
    typed, untyped = x.storage(), x.untyped_storage()
    typed[0] = 5.0
    return (x.tolist(), typed[-1], refused(lambda: typed[1:3]), refused(lambda: typed["x"]), refused(lambda: typed[9]), list(typed),
            untyped[-1], refused(lambda: untyped["x"]), refused(lambda: untyped[77]))  # fmt: skip


def files(t: Any, tmp_path: Path) -> Any:
    path = tmp_path / f"{t.__name__}.bin"
    path.write_bytes(bytes(range(16)))
    shared = t.IntStorage.from_file(str(path), True, 4)
    shared[0] = 7
    return (shared.tolist(), t.ShortStorage.from_file(str(path), False, 2).size(), path.read_bytes()[:5],
            refused(lambda: t.storage.TypedStorage.from_file(str(path), False, 2)))  # fmt: skip


CASES = [from_buffers, constructors, conversions, copies, sizes, questions, elements, files]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_storages_are_as_pytorchs(case: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    assert case(rushlight, tmp_path) == case(torch, tmp_path)


def test_a_storage_under_tensors_loses_its_memory_and_has_it_again() -> None:
    def told(t: Any) -> list[Any]:
        x = t.ones(2, 3)
        part, storage = x[1:], x.untyped_storage()
        storage.resize_(0)
        found = [
            storage.nbytes(),
            storage.data_ptr(),
            x.storage().size(),
            tuple(x.shape),
            part.stride(),
            part.storage_offset(),
            x._version,
        ]
        storage.resize_(24)
        x.fill_(2)
        return [*found, part.tolist(), x.untyped_storage().nbytes(), x._version]

    assert told(rushlight) == told(torch)
    x = rushlight.ones(4)
    with pytest.raises(RuntimeError, match="tensors lie on this storage"):
        x.untyped_storage().resize_(8)
    assert x.untyped_storage().resize_(16).nbytes() == 16 and x.tolist() == [1.0] * 4


def test_dtypes_are_found_by_the_names_of_classes() -> None:
    ours = importlib.import_module("rushlight.compat.rooms.storage")._get_dtype_from_pickle_storage_type
    theirs = torch.storage._get_dtype_from_pickle_storage_type
    assert str(ours("HalfStorage")) == str(theirs("HalfStorage"))
    for find in (ours, theirs):
        with pytest.raises(KeyError, match="is not recognized"):
            find("NoStorage")
