"""Snapshots: written as PyTorch's viewer wants them, read back without loss, and from PyTorch's files of every age."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory import synthetic

import rushlight
from rushlight import memory
from rushlight.memory.recordings import columns, replay
from rushlight.memory.recordings.recording import CATEGORIES, MARK, PHASE, PHASES, Recording
from rushlight.memory.snapshots.snapshots import SnapshotError

MAKERS = {
    "training": synthetic.training,
    "fused": lambda: synthetic.training(fused=True, checkpointed=True, leak=1000),
    "irregular": lambda: synthetic.irregular(4000, seed=5),
    "nothing": lambda: synthetic.Writer().done(),
    "empty blocks": lambda: empty_blocks(),
}


def empty_blocks() -> Recording:
    w = synthetic.Writer()
    w.before(0, "input")
    w.free(w.alloc(0, "temporary", "empty"))
    w.alloc(0, "activation")
    w.alloc(7, "activation", "ones")
    return w.done()


def assert_same(one: Recording, two: Recording) -> None:
    for name in (*columns.EVENTS, *columns.BLOCKS, "initial_category"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    for name in ("initial", "stacks", "operators", "modules", "marks", "dropped", "device"):
        assert getattr(one, name) == getattr(two, name), name


# Writing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_a_viewer_can_read_what_we_write(name: str) -> None:
    recording = MAKERS[name]()
    found = memory.validate(memory.to_snapshot(recording))
    live = recording.live()
    assert abs(found.peak - recording.peak()[0]) <= 1  # the byte without a category
    assert found.start == recording.initial_bytes()
    assert found.end == (live[-1] if len(live) else recording.initial_bytes())


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_lost(name: str, tmp_path: Path) -> None:
    recording = MAKERS[name]()
    memory.save(recording, tmp_path / "a.pickle")
    assert_same(memory.load(tmp_path / "a.pickle"), recording)
    assert_same(memory.from_snapshot(memory.load_snapshot(tmp_path / "a.pickle")), recording)
    with open(tmp_path / "a.pickle", "rb") as file:
        snapshot = pickle.load(file)
    assert snapshot == memory.to_snapshot(recording)
    memory.save(snapshot, tmp_path / "b.pickle")
    assert_same(memory.load(tmp_path / "b.pickle"), recording)


def test_the_protocol_is_one_that_viewers_read(tmp_path: Path) -> None:
    memory.save(synthetic.training(), tmp_path / "a.pickle")
    assert (tmp_path / "a.pickle").read_bytes()[:2] == b"\x80\x04"


def test_frames_are_shared() -> None:
    trace = memory.to_snapshot(synthetic.training())["device_traces"][0]
    frames = {id(event["frames"]) for event in trace}
    assert len(frames) <= len(synthetic.training().stacks) + 2 < len(trace) / 10


def test_categories_are_the_most_telling() -> None:
    w = synthetic.Writer()
    block = w.alloc(100, "temporary")
    for name in ("activation", "gradient", "autograd_detail"):
        w.becomes(block, name)
    trace = memory.to_snapshot(w.done())["device_traces"][0]
    assert [e["category"] for e in trace if e["action"] == "alloc"] == ["unknown", "gradient"]


def test_phases_and_marks_are_annotations() -> None:
    notes = memory.to_snapshot(synthetic.training(steps=1))["external_annotations"]
    assert [(n["name"], n["stage"]) for n in notes[:4]] == [
        ("step 0", "START"), ("step 0", "END"), ("forward", "START"), ("forward", "END"),
    ]  # fmt: skip
    assert sum(n["stage"] == "START" for n in notes) == sum(n["stage"] == "END" for n in notes)


def test_other_devices_have_their_own_trace() -> None:
    w = synthetic.Writer()
    w.alloc(100, "temporary")
    snapshot = memory.to_snapshot(w.done("cuda:2"))
    assert [len(t) for t in snapshot["device_traces"]] == [0, 0, 4] and snapshot["segments"][0]["device"] == 2
    memory.validate(snapshot, 2)


def test_freed_places_are_used_again() -> None:
    snapshot = memory.to_snapshot(synthetic.training(steps=6))
    assert snapshot["segments"][0]["total_size"] < 1.5 * synthetic.training().peak()[0]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda s: s["device_traces"][0].pop(-1), "alone|no segment|back in time"),
        (lambda s: s["device_traces"][0][5].update(size=np.int64(5)), "numpy.int64"),
        (lambda s: s["device_traces"][0][5].update(addr=1 << 60), "2..53"),
        (lambda s: s["segments"][0]["blocks"].pop(0), "expected"),
        (lambda s: s["segments"][0].update(allocated_size=3), "allocated_size"),
        (lambda s: s["device_traces"][0][0].update(action="birth"), "birth"),
        (lambda s: s["segments"].clear(), "no segment"),
        (lambda s: [e.pop("category", None) for e in s["device_traces"][0][:3]], "unknown"),
        (lambda s: s.pop("segments"), "segments"),
    ],
)
def test_the_validator_objects(harm: Any, message: str) -> None:
    w = synthetic.Writer()
    blocks = [w.alloc(1000 * (i + 1), "activation") for i in range(4)]
    w.free(blocks[1])
    w.free(blocks[3])
    snapshot = memory.to_snapshot(w.done())
    memory.validate(snapshot)
    harm(snapshot)
    with pytest.raises(ValueError, match=message):
        memory.validate(snapshot)


# PyTorch's own viewer code -------------------------------------------------------------------------------


@pytest.mark.parity
def test_pytorchs_tools_read_our_files() -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    small, large = (memory.to_snapshot(synthetic.training(steps=n)) for n in (1, 2))
    assert "MEM[" in viz.trace(small)
    assert "page" in viz.segsum(large)
    for show in (viz.segments, viz.memory):
        text = show(small, format_flamegraph=str)
        assert "active_allocated" in text and "train.py:47:train" in text
        told = [line.rpartition(" ") for line in text.splitlines()]
        alive = sum(int(n) for what, _, n in told if "active_allocated" in what)
        assert alive == small["segments"][0]["allocated_size"]
    viz.compare(small["segments"], large["segments"], format_flamegraph=str)
    for plot in (viz.trace_plot, viz.segment_plot):
        assert "add_local_files" in plot(small)


# Reading PyTorch's files --------------------------------------------------------------------------------

FRAMES = [{"filename": "/home/me/train.py", "line": 7, "name": "forward"}]


def event(action: str, addr: int, size: int, time: int, **more: Any) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time, "frames": FRAMES, **more}


def block(size: int, state: str = "active_allocated", **more: Any) -> dict[str, Any]:
    return {"size": size, "requested_size": size, "state": state, "frames": FRAMES, **more}


def segment(address: int, blocks: list[dict[str, Any]], device: int = 0) -> dict[str, Any]:
    return {"device": device, "address": address, "total_size": sum(b["size"] for b in blocks), "blocks": blocks, "stream": 0,
            "segment_type": "large", "allocated_size": 0, "active_size": 0}  # fmt: skip


def test_a_trace_with_segments() -> None:
    trace = [
        event("segment_alloc", 1000, 4096, 1),
        event("alloc", 1000, 512, 2, category="parameter"),
        event("alloc", 1512, 512, 3),
        event("free_requested", 1000, 512, 4),
        event("free_completed", 1000, 512, 5),
        event("free_requested", 5000, 256, 6),
        event("free_completed", 5000, 256, 6),
        {"action": "oom", "size": 1 << 30, "device_free": 4096, "stream": 0, "time_us": 7, "frames": []},
        event("snapshot", 0, 0, 8),
        event("segment_free", 9000, 10, 9),
    ]
    end = [segment(1000, [block(512, "inactive"), block(512), block(1024), block(2048, "inactive")])]
    found = memory.from_snapshot({"segments": end, "device_traces": [trace], "allocator_settings": {}})
    assert found.initial_bytes() == 256 + 1024  # freed without a birth; alive at the end without one
    assert found.live().tolist()[-1] == 512 + 1024
    assert found.peak()[0] == 256 + 1024 + 1024
    assert found.device == "cuda:0" and found.stacks[0][0] == ("/home/me/train.py", 7, "forward")
    assert "asked for 1.07 GB with 4.10 kB free" in found.marks[0]
    born = replay.most_telling(found)[found.initial :]
    assert [CATEGORIES[c] for c in born] == ["parameter", "unknown"]
    memory.validate(memory.to_snapshot(found))


def test_a_bare_list_of_segments_with_history() -> None:
    old = {"size": 512, "state": "active_allocated", "history": [{"addr": 64, "real_size": 500, "frames": FRAMES}]}
    found = memory.from_snapshot(
        [segment(64, [old, {"size": 512, "state": "inactive"}, {"size": 100, "state": "active_pending_free"}])]
    )
    assert found.initial_bytes() == 612 and found.peak() == (612, -1)
    assert found.stacks[int(found.stack[0])][0].line == 7


def test_frames_may_be_missing() -> None:
    trace = [
        {"action": "alloc", "addr": 8, "size": 16, "stream": 0},
        {"action": "free_completed", "addr": 8, "size": 16},
    ]
    found = memory.from_snapshot({"segments": [], "device_traces": [trace]})
    assert found.peak() == (16, 0) and found.stack.tolist() == [-1]


def test_a_birth_where_a_block_is_means_that_a_death_was_lost() -> None:
    trace = [event("alloc", 8, 16, 1), event("alloc", 8, 32, 2)]
    found = memory.from_snapshot({"segments": [], "device_traces": [trace]})
    assert found.peak()[0] == 32


def test_devices(tmp_path: Path) -> None:
    traces = [[event("alloc", 8, 16, 1)], [event("alloc", 8, 32, 1), event("alloc", 64, 32, 2)]]
    snapshot = {
        "segments": [segment(8, [block(16)], 0)],
        "device_traces": traces,
        "host_traces": [event("alloc", 4, 7, 1)],
    }
    assert memory.from_snapshot(snapshot).device == "cuda:1"
    assert memory.from_snapshot(snapshot, 0).peak()[0] == 16
    assert memory.from_snapshot(snapshot, "host").peak()[0] == 7
    with pytest.raises(SnapshotError, match=r"device 5 is not in it; it has \[0, 1\]"):
        memory.from_snapshot(snapshot, 5)


def test_a_file_of_ours_has_the_device_that_it_says(tmp_path: Path) -> None:
    memory.record_history()
    kept = rushlight.ones(1000)
    memory.record_history(None)
    path = tmp_path / "s.pickle"
    memory.save(memory.recording(), path)
    del kept
    assert memory.load(path).peak() == memory.load(path, "cpu").peak() == memory.load(path, 0).peak()
    for device in (1, "host", "cuda:0"):
        with pytest.raises(SnapshotError, match=r"s.pickle: device .* is not in it; it has 'cpu' alone"):
            memory.load(path, device)


def test_annotations_are_phases_and_marks() -> None:
    names = [("forward", 1), ("Optimizer.step#Adam.step", 5), ("## backward ##", 3), ("load data", 0)]
    notes = [
        {"name": n, "stage": s, "device": 0, "time_us": t + (s == "END")} for n, t in names for s in ("START", "END")
    ]
    trace = [event("alloc", 8, 16, 2), event("alloc", 64, 16, 4), event("alloc", 128, 16, 6)]
    found = memory.from_snapshot({"segments": [], "device_traces": [trace], "external_annotations": notes})
    told = found.action == PHASE
    assert [PHASES[v] for v in found.value[told] if v] == ["forward", "backward", "optimizer"]
    assert (found.action == MARK).sum() == 1 and found.marks == ["load data"]
    assert (np.diff(found.time) >= 0).all()


def test_ours_without_our_key_is_like_pytorchs() -> None:
    recording = synthetic.training()
    snapshot = memory.to_snapshot(recording)
    del snapshot["rushlight"]
    found = memory.from_snapshot(snapshot)
    assert found.peak()[0] == recording.peak()[0] and found.live()[-1] == recording.live()[-1]
    assert [p[2] for p in replay.phases(found)][:3] == ["forward", "backward", "optimizer"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "found int"),
        ({"state_dict": {}}, "'state_dict'"),
        ({"segments": 5}, "segments: expected a list, found 5"),
        ({"segments": [7]}, "segment: expected a dictionary, found 7"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": -1, "size": 5}]]}, "'addr'"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1 << 60}]]}, "'size'"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": True}]]}, "'size'"),
        ({"segments": [], "device_traces": [[{}]]}, "event 0 has no action"),
        ({"segments": [], "device_traces": 5}, "device_traces"),
        ({"rushlight": "AAAA", "segments": []}, "damaged"),
    ],
)
def test_what_is_no_snapshot_is_named(value: Any, message: str, tmp_path: Path) -> None:
    with open(tmp_path / "bad.pickle", "wb") as file:
        pickle.dump(value, file, protocol=4)
    with pytest.raises(SnapshotError, match=message) as caught:
        memory.load(tmp_path / "bad.pickle")
    assert "bad.pickle" in str(caught.value)


@pytest.mark.parametrize("harm", ["initial", "blocks", "stack", "category", "twice", "version"])
def test_a_recording_whose_numbers_point_nowhere(harm: str) -> None:
    r = synthetic.training(steps=1)
    text = columns.pack(r)
    if harm == "initial":
        r.initial = 10_000
    elif harm == "blocks":
        r.block[5] = 1 << 40
    elif harm == "stack":
        r.stack[3] = 99_999
    elif harm == "category":
        r.value[r.action == 0] = 77
    elif harm == "twice":
        r.block[r.action == 1] = int(r.block[r.action == 1][0])
    text = columns.pack(r) if harm != "version" else text[:40] + text[60:]
    with pytest.raises(columns.ColumnsError):
        columns.unpack(text)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_every_protocol_that_is_used(protocol: int, tmp_path: Path) -> None:
    snapshot = memory.to_snapshot(synthetic.training())
    with open(tmp_path / "a.pickle", "wb") as file:
        pickle.dump(snapshot, file, protocol=protocol)
    assert memory.load_snapshot(tmp_path / "a.pickle") == snapshot
    assert_same(memory.load(tmp_path / "a.pickle"), synthetic.training())
