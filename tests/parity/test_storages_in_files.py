"""Storages in files, files of the format before 1.6, and plain pickles of tensors: each library reads what the other wrote."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import printed

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
BOTH = [(rushlight, torch), (torch, rushlight), (rushlight, rushlight)]


def buffer(t: Any, obj: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    t.save(obj, file, **options)
    file.seek(0)
    return file


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value).__name__


@pytest.mark.parametrize(("writer", "reader"), BOTH)
@pytest.mark.parametrize("new", [True, False])
def test_storages_by_themselves(writer: Any, reader: Any, new: bool) -> None:
    for kind in ("float32", "int16", "uint8", "bool", "complex64", "bfloat16"):
        x = writer.ones(3, dtype=getattr(writer, kind))
        typed = reader.load(buffer(writer, x.storage(), _use_new_zipfile_serialization=new), weights_only=new)
        assert (type(typed).__name__, str(typed.dtype)) == ("TypedStorage", f"torch.{kind}")
        assert typed.tolist() == x.storage().tolist()
        if new:  # PyTorch does not read its own files of bytes in the older format
            untyped = reader.load(buffer(writer, x.untyped_storage()))
            assert untyped.tolist() == x.untyped_storage().tolist() and str(untyped.dtype) == "torch.uint8"


@pytest.mark.parametrize(("writer", "reader"), BOTH)
def test_the_format_of_before_1_6(writer: Any, reader: Any, tmp_path: Path) -> None:
    x = writer.arange(6.0)
    given = {"a": x, "b": x[2:].view(2, 2), "c": writer.nn.Parameter(writer.ones(2)), "d": [1, "x", writer.ones(1, dtype=writer.int8)],
             "e": writer.ones(2, dtype=writer.bfloat16)}  # fmt: skip
    writer.save(given, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    found = reader.load(tmp_path / "old.pt")
    assert {k: v.tolist() for k, v in found.items() if k != "d"} == {
        k: v.tolist() for k, v in given.items() if k != "d"
    }
    assert found["d"][:2] == [1, "x"] and str(found["d"][2].dtype) == "torch.int8"
    found["a"][2] = 9
    assert found["b"][0, 0].item() == 9
    assert type(found["c"]).__name__ == "Parameter" and found["c"].requires_grad
    with pytest.raises(RuntimeError):
        reader.load(tmp_path / "old.pt", mmap=True)


def test_several_objects_of_the_old_format_in_one_file() -> None:
    for t in (rushlight, torch):
        file = io.BytesIO()
        for each in (1, t.ones(2)):
            t.save(each, file, _use_new_zipfile_serialization=False)
        file.seek(0)
        assert t.load(file) == 1
        assert t.load(file).tolist() == [1, 1]


def test_plain_pickles_of_pytorch_are_read(tmp_path: Path) -> None:
    shared = torch.arange(4.0)
    given = pickle.dumps(
        [torch.ones(2, 3).T, torch.nn.Parameter(shared), shared[1:], torch.ones(2, dtype=torch.bfloat16)]
    )
    (tmp_path / "plain.pkl").write_bytes(given)
    program = """
import pickle, sys
from rushlight.compat import imports
imports.install()
import torch
found = pickle.load(open(sys.argv[1], "rb"))
assert [x.tolist() for x in found] == [[[1, 1]] * 3, [0, 1, 2, 3], [1, 2, 3], [1, 1]]
assert all(isinstance(x, torch.Tensor) for x in found) and found[1].requires_grad and torch.__version__.endswith("rushlight")
"""
    printed("-c", program, tmp_path / "plain.pkl")


def test_tensors_on_storages() -> None:
    def made(t: Any) -> Any:
        whole = t.ones(2, dtype=t.float64)
        part = t.DoubleTensor(whole.untyped_storage())
        part[0] = 5
        typed = t.FloatTensor(t.FloatStorage([1.0, 2.0]))
        rebuilt = t._utils._rebuild_tensor_v2(t.FloatStorage([1.0, 2.0, 3.0]), 1, (2,), (1,), True, {})
        return (whole.tolist(), part.tolist(), typed.tolist(), rebuilt.tolist(), rebuilt.requires_grad,
                refused(lambda: t.FloatTensor(t.DoubleStorage([1.0]))), refused(lambda: t._utils._rebuild_tensor_v2(3, 0, (1,), (1,), False, {})) != "",
                type(whole.untyped_storage()).__name__, str(whole.untyped_storage()), repr(t.UntypedStorage(0)), refused(lambda: t.UntypedStorage(-1)),
                refused(lambda: t.UntypedStorage.from_file("/nowhere/at/all", False, 4)))  # fmt: skip

    assert made(rushlight) == made(torch)


PLACES: list[Callable[[Any], Any]] = [
    lambda t: lambda storage, location: 3,
    lambda t: lambda storage: storage,
    lambda t: lambda storage, location: t.ones(1),
    lambda t: {"cpu": 3},
    lambda t: lambda storage, location: storage.clone(),
    lambda t: lambda storage, location: {}["a"],
]


@pytest.mark.parametrize("place", PLACES)
def test_what_map_location_raises_is_the_callers(place: Callable[[Any], Any]) -> None:
    def found(t: Any) -> Any:
        try:
            return t.load(buffer(t, {"a": t.ones(2)}), map_location=place(t))["a"].tolist()
        except Exception as error:
            return type(error).__name__

    assert found(rushlight) == found(torch)


def test_uninitialized_parameters_versions_and_modules_of_pickling() -> None:
    def found(t: Any) -> Any:
        lazy = t.load(buffer(t, t.nn.UninitializedParameter()), weights_only=False)
        version = t.load(buffer(t, t.torch_version.TorchVersion("1.0")), weights_only=False)
        return (type(lazy).__name__, version, type(version).__name__, refused(lambda: t.load(buffer(t, 1), pickle_module=pickle, weights_only=True)),
                t.load(buffer(t, 1), pickle_module=pickle, weights_only=False))  # fmt: skip

    assert found(rushlight) == found(torch)


def test_names_of_unsafe_builtins() -> None:
    class Prints:
        def __reduce__(self) -> Any:
            return print, ("x",)

    def found(t: Any) -> Any:
        return t.serialization.get_unsafe_globals_in_checkpoint(buffer(t, Prints()))

    assert found(rushlight) == found(torch) == ["builtins.print"]


def test_settings(tmp_path: Path) -> None:
    def found(t: Any) -> Any:
        config = t.utils.serialization.config
        seen = [config.load.mmap, config.load.endianness, config.load.calculate_storage_offsets, config.save.compute_crc32,
                config.save.use_pinned_memory_for_d2h, config.save.storage_alignment]  # fmt: skip
        path = tmp_path / f"{t.__name__}.pt"
        with config.patch({"save.storage_alignment": 4096}):
            t.save([t.ones(2), t.zeros(3)], path)
        archive = zipfile.ZipFile(path)
        with archive, config.patch("load.mmap", True), open(path, "rb") as file:
            seen += [
                config.load.mmap,
                refused(lambda: t.load(buffer(t, 1))),
                t.load(path)[0].tolist(),
                archive.read(f"{t.__name__}/.storage_alignment"),
            ]
            for entry in archive.infolist():
                if "/data/" in entry.filename:
                    file.seek(entry.header_offset + 26)
                    name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
                    seen.append((entry.header_offset + 30 + name + extra) % 4096)
        return (
            *seen,
            config.load.mmap,
            refused(lambda: setattr(config.load, "other", 1)),
            refused(lambda: config.other),
            refused(lambda: config.save.other),
        )

    assert found(rushlight) == found(torch)
