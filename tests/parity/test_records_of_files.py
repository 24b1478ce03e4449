"""Files record by record, tensors of the device meta in files, and what variables of the environment force: beside PyTorch."""

from __future__ import annotations

import io
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")


class Own:
    """What no file may name by default."""


class OwnParameter(rushlight.nn.Parameter):
    """A class of parameters that a file need not know."""


def room(t: Any) -> Any:
    return t.serialization if t is torch else __import__("rushlight.serialization").serialization


def classes(t: Any) -> tuple[Any, Any]:
    c = t._C if t is torch else __import__("rushlight._C")._C
    return c.PyTorchFileReader, c.PyTorchFileWriter


def written_and_read(t: Any, tmp_path: Path) -> Any:
    records = {"a": b"12", "b/c": b"", "d": b"x" * 100}
    seen = []
    for target in (io.BytesIO(), str(tmp_path / "file.pt")):
        with room(t)._open_zipfile_writer(target) as file:
            for name, data in records.items():
                file.write_record(name, data, len(data))
            seen.append(sorted(file.get_all_written_records()))
        if isinstance(target, io.BytesIO):
            target.seek(0)
        with room(t)._open_zipfile_reader(target) as file:
            seen.append([file.get_record(name) for name in records])
            seen.append(
                (
                    sorted(file.get_all_records()),
                    file.has_record("a"),
                    file.has_record("z"),
                    len(file.serialization_id()),
                )
            )
    return seen


def storages(t: Any, tmp_path: Path) -> Any:
    reader, writer = classes(t)
    buffer = io.BytesIO()
    file = writer(buffer)
    file.write_record("x", t.arange(3.0).untyped_storage(), 12)
    file.write_end_of_file()
    buffer.seek(0)
    read = reader(buffer)
    memory = read.get_storage_from_record("x", 3, t.float32)
    return tuple(memory.shape), t.empty(0).set_(memory.untyped_storage(), 0, (3,)).tolist()


def of_save(t: Any, tmp_path: Path) -> Any:
    """Each library reads the records of the other's files."""
    seen = []
    for writing in (torch, rushlight):
        writing.save({"w": writing.ones(3)}, tmp_path / "file.pt")
        file = classes(t)[0](str(tmp_path / "file.pt"))
        seen.append(
            (
                file.get_record("data/0"),
                file.get_record("version"),
                file.get_record_offset("data/0") % 64,
                file.has_record("no"),
            )
        )
    return seen


def on_meta(t: Any, tmp_path: Path) -> Any:
    seen = []
    for made in (
        t.ones(2, 3, device="meta").t(),
        t.nn.Parameter(t.ones(4, device="meta")),
        t.ones(0, device="meta", dtype=t.int16),
    ):
        for back in (through_file(t, [made])[0], pickle.loads(pickle.dumps(made))):
            seen.append(
                (
                    str(back.device),
                    tuple(back.shape),
                    back.stride(),
                    str(back.dtype),
                    back.requires_grad,
                    type(back).__name__,
                )
            )
    return seen


def through_file(t: Any, value: Any, **options: Any) -> Any:
    buffer = io.BytesIO()
    t.save(value, buffer)
    buffer.seek(0)
    return t.load(buffer, **options)


def forced(t: Any, tmp_path: Path) -> Any:
    seen = []
    for variables in ({}, {"": "1"}, {"NO_": "true"}, {"": "1", "NO_": "yes"}):
        names = {f"TORCH_FORCE_{which}WEIGHTS_ONLY_LOAD": value for which, value in variables.items()}
        os.environ.update(names)
        try:
            seen.append(
                [kind_of(lambda only=only: through_file(t, Own(), weights_only=only)) for only in (None, True, False)]
            )
        finally:
            for name in names:
                del os.environ[name]
    return seen


def kind_of(call: Callable[[], Any]) -> Any:
    """The kinds of what comes of it and of what is warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = type(call()).__name__
        except Exception as error:
            found = type(error).__name__
    return found, [warning.category.__name__ for warning in told]


def warned(t: Any, tmp_path: Path) -> Any:
    x = t.ones(2, requires_grad=True)
    x.register_hook(lambda g: g)
    return kind_of(lambda: through_file(t, x)), kind_of(lambda: through_file(t, 1, map_loction="cpu"))[0]


CASES = [written_and_read, storages, of_save, on_meta, forced, warned]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_files_are_alike(case: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    assert case(rushlight, tmp_path) == case(torch, tmp_path)


def test_a_class_of_parameters_is_read_by_who_does_not_know_it() -> None:
    assert type(through_file(rushlight, OwnParameter(rushlight.ones(2)))) is rushlight.nn.Parameter


def test_phrases_by_which_programs_know_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"GLOBAL \S+Own was not an allowed global by default.*add_safe_globals\(\[Own\]\)"
    ):
        through_file(rushlight, Own())
    with pytest.raises(RuntimeError, match="failed reading zip archive: failed finding central directory"):
        rushlight.load(io.BytesIO(b"PK\x03\x04" + bytes(100)))
    with pytest.raises(RuntimeError, match="failed locating file z: file not found"):
        written_and_read(rushlight, tmp_path)
        classes(rushlight)[0](str(tmp_path / "file.pt")).get_record("z")
    with pytest.raises(
        AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"
    ):
        rushlight.save(1, 5)  # type: ignore[arg-type]


def test_writers_refuse_what_is_no_record_and_leave_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match="got int"), room(rushlight)._open_zipfile_writer(path) as file:
        file.write_record("a", 3, 1)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["file.pt"]
    with pytest.raises(RuntimeError, match="twice"), room(rushlight)._open_zipfile_writer(io.BytesIO()) as file:
        for _ in range(2):
            file.write_record("a", b"x", 1)
