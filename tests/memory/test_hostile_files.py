"""Files made to harm: nothing is executed, nothing takes long, and the error says what was found."""

from __future__ import annotations

import base64
import os
import pickle
import pickletools
import random
import struct
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.memory import synthetic

from rushlight import memory
from rushlight.kernels.native import loader
from rushlight.memory.snapshots import plain_pickles
from rushlight.memory.snapshots.plain_pickles import PlainError
from rushlight.memory.snapshots.snapshots import SnapshotError

follows = pytest.mark.skipif(
    not loader.tables(), reason="tracemalloc counts arrays where there are no kernels: it may not be stopped"
)


class Trap:
    """Leaves a trace where it is executed."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


class Stated:
    def __getstate__(self) -> Any:
        return {"a": 1}


PLAIN = [
    None, True, False, 0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**53, -(2**80), 0.0, -1.5e300, "", "é", "x" * 300,
    "\ud800", [], [1, [2, [3]]], (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": 1}, {"a": {"b": [1, 2]}, "c": ("d",)},
    [[]] * 5, list(range(3000)), {str(i): i for i in range(3000)},
]  # fmt: skip


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("value", PLAIN, ids=lambda v: repr(v)[:20])
def test_plain_values_as_python_reads_them(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    if b"V" in {bytes([op.code.encode("latin-1")[0]]) for op, _, _ in pickletools.genops(data)}:
        pytest.skip("text in escapes is only written by protocol 0, which no snapshot uses")
    assert plain_pickles.loads(data) == value


def test_sharing_is_kept() -> None:
    shared = [{"line": 1}]
    found = plain_pickles.loads(pickle.dumps([shared, shared], 4))
    assert found[0] is found[1]


def attacks(folder: Path) -> dict[str, bytes]:
    """Pickles that Python's unpickler would carry out."""
    trap, name = Trap(folder / "trap"), str(folder / "trap").encode()
    found = {f"reduce, protocol {p}": pickle.dumps({"segments": [trap]}, p) for p in range(5)}
    found["object"] = pickle.dumps({"segments": [Stated()]}, 4)
    found["global"] = b"cos\nmkdir\n(X" + struct.pack("<I", len(name)) + name + b"tR."
    found["inst"] = b"(X" + struct.pack("<I", len(name)) + name + b"ios\nmkdir\n."
    found["obj"] = b"(cos\nmkdir\nX" + struct.pack("<I", len(name)) + name + b"o."
    found["stack global"] = b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93."
    found["extension"] = b"\x80\x02\x82\x01."
    found["extension 4"] = b"\x80\x02\x84\x01\x00\x00\x00."
    found["persistent"] = b"Pevil\n."
    found["persistent on the stack"] = b"\x80\x02X\x01\x00\x00\x00aQ."
    found["build"] = b"\x80\x02}}b."
    found["new object"] = b"\x80\x02})\x81."
    found["next buffer"] = b"\x80\x05\x97."
    found["bytes"] = pickle.dumps({"segments": b"abc"}, 4)
    found["set"] = pickle.dumps({"segments": {1, 2}}, 4)
    found["bytearray"] = pickle.dumps(bytearray(b"abc"), 5)
    return found


@pytest.mark.parametrize("name", sorted(attacks(Path("x"))))
def test_nothing_is_executed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "evil.pickle"
    path.write_bytes(attacks(tmp_path)[name])
    with pytest.raises(SnapshotError, match=r"evil\.pickle: no memory snapshot.*(refused|no instruction)"):
        memory.load(path)
    assert not (tmp_path / "trap").exists()


def greedy() -> dict[str, bytes]:
    """Small files that mean to take much time or memory."""
    deep = b"\x80\x04" + b"]" * 20_000 + b"a" * 19_999 + b"."
    doubled = b"\x80\x04)" + b"2\x86" * 60 + b"."  # a tuple of 2**60 leaves
    return {
        "deep": deep,
        "deep tuples as a key": b"\x80\x04})" + b"\x85" * 3000 + b"K\x01s.",
        "doubling as a key": b"\x80\x04})" + b"2\x86" * 60 + b"K\x01s.",
        "doubling": doubled,
        "memory bomb": b"\x80\x02]r\xff\xff\xff\x7f.",
        "memory bomb in digits": b"]p4294967295\n.",
        "text of 2**62 bytes": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"a.",
        "text of 4 GB": b"\x80\x04X\xff\xff\xff\xffa.",
        "number of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
        "number of -1 bytes": b"\x80\x02\x8b\xff\xff\xff\xff\x01.",
        "number of many digits": b"I" + b"9" * 1_000_000 + b"\n.",
        "frame": b"\x80\x04\x95" + b"\xff" * 8 + b"N.",
        "marks": b"\x80\x04" + b"(" * 1_000_000 + b".",
        "containers": b"\x80\x04]" + b"(" + b"}" * 2_000_000 + b"e.",
        "cycle": b"\x80\x04]\x94h\x00a.",
        "equal keys of numbers": b"\x80\x04}(" + b"".join(b"\x8a\x0c" + (i * ((1 << 61) - 1)).to_bytes(12, "little") + b"N" for i in range(50_000)) + b"u.",
        "nothing": b"",
        "a dot": b".",
        "pops": b"\x80\x04N0000.",
        "a key alone": b"\x80\x04}(X\x01\x00\x00\x00au.",
        "append to nothing": b"\x80\x04Na.",
        "get what was never put": b"\x80\x04h\x07.",
    }  # fmt: skip


@follows
@pytest.mark.parametrize("name", greedy())
def test_nothing_takes_long(name: str, tmp_path: Path) -> None:
    path = tmp_path / "greedy.pickle"
    path.write_bytes(greedy()[name])
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(SnapshotError, match=r"greedy\.pickle"):
            memory.load(path)
        assert tracemalloc.get_traced_memory()[1] < 200 * path.stat().st_size + 5_000_000
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - start < 60  # quadratic time would be hours


def harmless(data: bytes) -> None:
    """Reading gives a recording or a SnapshotError, in bounded time."""
    start = time.perf_counter()
    try:
        value = plain_pickles.loads(data)
    except PlainError:
        pass
    else:
        try:
            memory.from_snapshot(value)
        except SnapshotError:
            pass
    assert time.perf_counter() - start < 3


def foreign() -> bytes:
    snapshot = memory.to_snapshot(synthetic.training(steps=1, layers=1))
    del snapshot["rushlight"]
    return pickle.dumps(snapshot, 4)


def test_every_truncation_is_an_error() -> None:
    data = foreign()
    for length in range(0, len(data) - 1, 7):
        with pytest.raises(PlainError):
            plain_pickles.loads(data[:length])


def test_truncated_files_of_ours(tmp_path: Path) -> None:
    memory.save(synthetic.training(), tmp_path / "a.pickle")
    data = (tmp_path / "a.pickle").read_bytes()
    for length in range(0, len(data) - 1, 997):
        (tmp_path / "b.pickle").write_bytes(data[:length])
        with pytest.raises(SnapshotError, match=r"b\.pickle"):
            memory.load(tmp_path / "b.pickle")


def test_flipped_bits() -> None:
    data, dice = bytearray(foreign()), random.Random(0)
    for _ in range(1500):
        places = [(dice.randrange(len(data)), 1 << dice.randrange(8)) for _ in range(dice.choice((1, 1, 2, 8)))]
        for at, bit in places:
            data[at] ^= bit
        harmless(bytes(data))
        for at, bit in places:
            data[at] ^= bit


def test_random_instructions() -> None:
    dice = random.Random(1)
    codes = [op.code.encode("latin-1") for op in pickletools.opcodes]
    for _ in range(3000):
        parts = [
            dice.choice(codes) + dice.randbytes(dice.choice((0, 0, 0, 1, 4))) for _ in range(dice.randrange(1, 60))
        ]
        harmless(b"\x80\x04" + b"".join(parts) + b".")


def test_flipped_bits_in_our_columns(tmp_path: Path) -> None:
    text = memory.to_snapshot(synthetic.training(steps=1))["rushlight"]
    dice = random.Random(2)
    for _ in range(300):
        at = dice.randrange(len(text))
        changed = text[:at] + dice.choice("ABCxyz019+/=") + text[at + 1 :]
        try:
            memory.from_snapshot({"rushlight": changed, "segments": []})
        except SnapshotError:
            pass


def doubled() -> Any:
    """A list that is short to write and has 2**80 leaves."""
    found: Any = ["x"]
    for _ in range(80):
        found = [found, found]
    return found


@pytest.mark.parametrize("place", ["filename", "user_metadata", "annotation", "size", "segments", "action", "traces"])
def test_values_that_are_large_only_when_written_out(place: str, tmp_path: Path) -> None:
    event: dict[str, Any] = {
        "action": "alloc",
        "addr": 1,
        "size": 5,
        "frames": [{"filename": "f", "line": 1, "name": "g"}],
    }
    snapshot: dict[str, Any] = {"segments": [], "device_traces": [[event]], "external_annotations": []}
    if place == "filename":
        event["frames"][0]["filename"] = doubled()
    elif place == "user_metadata":
        event |= {"action": "annotate", "user_metadata": doubled()}
    elif place == "annotation":
        snapshot["external_annotations"] = [{"name": doubled(), "stage": "START", "device": 0, "time_us": 1}]
    elif place == "segments":
        blocks = [{"address": 7, "size": 1, "state": "active_allocated"}] * 20_000
        snapshot["segments"] = [{"device": 0, "address": 0, "blocks": blocks} for _ in range(5)] * 4000
    elif place == "traces":
        snapshot["host_traces"] = [[event] * 20_000] * 20_000
    else:
        event[place] = doubled()
    with open(tmp_path / "a.pickle", "wb") as file:
        pickle.dump(snapshot, file, protocol=4)
    start = time.perf_counter()
    try:
        memory.load(tmp_path / "a.pickle", "host" if place == "traces" else None)
    except SnapshotError:
        pass
    try:
        memory.validate(memory.load_snapshot(tmp_path / "a.pickle"))
    except ValueError as error:
        assert len(str(error)) < 5000
    assert time.perf_counter() - start < 60  # quadratic time would be hours


@follows
def test_columns_that_unpack_to_much_more_than_a_recording() -> None:
    bomb = base64.b64encode(zlib.compress(bytes(1 << 28), 9)).decode()
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotError, match="larger than any recording"):
            memory.from_snapshot({"rushlight": bomb, "segments": []})
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_the_validator_survives_anything() -> None:
    data, dice = bytearray(foreign()), random.Random(3)
    for _ in range(300):
        at, bit = dice.randrange(len(data)), 1 << dice.randrange(8)
        data[at] ^= bit
        try:
            memory.validate(plain_pickles.loads(bytes(data)))
        except ValueError:
            pass
        data[at] ^= bit


def test_other_files_are_named(tmp_path: Path) -> None:
    for data, kind in (
        (b"PK\x03\x04....", "zip"),
        (b'{"a": 1}', "JSON"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"<html>", "HTML"),
    ):
        (tmp_path / "x").write_bytes(data)
        with pytest.raises(SnapshotError, match=kind):
            memory.load(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        memory.load(tmp_path / "nowhere")
