"""Settings of `torch.save` and `torch.load`: kept, checked, undone and of effect as in PyTorch."""

import importlib
import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.parity.refusing import refused

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    registries = [importlib.import_module(f"{t.__name__}.serialization")._package_registry for t in (rushlight, torch)]
    former = [list(registry) for registry in registries]
    yield
    for registry, entries in zip(registries, former, strict=True):
        registry[:] = entries


def room(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.serialization")


def settings(t: Any, tmp_path: Path) -> Any:
    s = room(t)
    seen: list[Any] = [s.get_default_load_endianness(), s.get_crc32_options(), s.get_default_mmap_options()]
    s.set_default_load_endianness(s.LoadEndianness.BIG)
    seen += [str(s.get_default_load_endianness()), refused(lambda: s.set_default_load_endianness("big"))]
    s.set_default_load_endianness(None)
    s.set_crc32_options(False)
    seen.append(s.get_crc32_options())
    s.set_crc32_options(True)
    with s.set_default_mmap_options(s.MAP_SHARED):
        seen.append(s.get_default_mmap_options())
    return [*seen, s.get_default_mmap_options(), refused(lambda: s.set_default_mmap_options(7)),
            [s.check_module_version_greater_or_equal(module("1.2.3"), asked) for asked in ((1,), (1, 3), (1, 2))],
            s.check_module_version_greater_or_equal(module("x"), (1,), error_if_malformed=False),
            refused(lambda: s.check_module_version_greater_or_equal(module("x"), (1,)))]  # fmt: skip


def module(version: str) -> Any:
    return SimpleNamespace(__name__="it", __version__=version)


def contents_left_out(t: Any, tmp_path: Path) -> Any:
    s, path, whole = room(t), tmp_path / f"{t.__name__}.pt", tmp_path / f"{t.__name__}-whole.pt"
    t.save({"w": t.arange(1.0, 5.0)}, whole)
    with s.skip_data():
        t.save({"w": t.arange(1.0, 5.0)}, path)
        skipped = t.load(whole)["w"].shape
    return (
        t.load(path)["w"].tolist(),
        tuple(skipped),
        path.stat().st_size == whole.stat().st_size,
        t.load(whole)["w"].tolist(),
    )


def order_of_bytes(t: Any, tmp_path: Path) -> Any:
    s, buffer, bare = room(t), io.BytesIO(), io.BytesIO()
    t.save(t.arange(3, dtype=t.int16), buffer)
    with zipfile.ZipFile(buffer) as given, zipfile.ZipFile(bare, "w") as made:
        for entry in given.namelist():
            if not entry.endswith("byteorder"):
                made.writestr(entry, given.read(entry))
    s.set_default_load_endianness(s.LoadEndianness.BIG)
    bare.seek(0)
    swapped = t.load(bare).tolist()
    s.set_default_load_endianness(None)
    bare.seek(0)
    return swapped, t.load(bare).tolist()


def shared_mapping(t: Any, tmp_path: Path) -> Any:
    s, path = room(t), tmp_path / f"{t.__name__}.pt"
    t.save(t.zeros(3), path)
    with s.set_default_mmap_options(s.MAP_SHARED):
        t.load(path, mmap=True).fill_(7.0)
    first = t.load(path).tolist() if t is torch else t.load(path, mmap=True).tolist()
    t.load(path, mmap=True).fill_(9.0)
    return first, t.load(path, mmap=True).tolist()


def packages(t: Any, tmp_path: Path) -> Any:
    s, seen, buffer = room(t), [], io.BytesIO()
    x = t.arange(3.0)
    s.register_package(
        0,
        lambda storage: "mine",
        lambda storage, location: (seen.append(location), storage)[1] if location == "mine" else None,
    )
    t.save(x, buffer)
    buffer.seek(0)
    loaded = t.load(buffer).tolist(), list(seen)
    buffer.seek(0)
    return (loaded, t.load(buffer, map_location="cpu").tolist(), s.location_tag(x.untyped_storage()),
            s.default_restore_location(x.untyped_storage(), "cpu").nbytes(),
            refused(lambda: s.default_restore_location(x.untyped_storage(), "other")),
            refused(lambda: s.default_restore_location(x.untyped_storage(), "cuda:0")))  # fmt: skip


def without_sums(t: Any, tmp_path: Path) -> Any:
    """Files without checksums, of both libraries, are read by both; only those with sums are what unzip takes."""
    s, seen = room(t), []
    for sums in (False, True):
        path = tmp_path / f"{sums}.pt"
        s.set_crc32_options(sums)
        try:
            t.save({"x": t.arange(20.0)}, path)
        finally:
            s.set_crc32_options(True)
        with zipfile.ZipFile(path) as file:
            seen.append((file.testzip() is None, torch.load(path)["x"].tolist(), rushlight.load(path)["x"].tolist()))
    return seen


CASES = [without_sums, settings, contents_left_out, order_of_bytes, shared_mapping, packages]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_files_are_written_and_read_by_the_same_settings(case: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    assert case(rushlight, tmp_path) == case(torch, tmp_path)
