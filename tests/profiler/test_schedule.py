"""torch.profiler: profiles of a loop by a schedule."""

import json

import pytest

import rushlight as torch
from rushlight.basics.state import special
from rushlight.profiler import ProfilerAction, ProfilerActivity, profile, schedule, tensorboard_trace_handler

pytestmark = pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")


def actions(plan, n: int) -> str:
    """The first letters of what is done in each step, S for the step that is saved."""
    letters = {ProfilerAction.NONE: "-", ProfilerAction.WARMUP: "w", ProfilerAction.RECORD: "r"}
    return "".join(letters.get(plan(i), "S") for i in range(n))


def loop(prof, n: int) -> None:
    x = torch.ones(2)
    for _ in range(n):
        x.exp()
        prof.step()


def test_schedules() -> None:
    assert actions(schedule(wait=1, warmup=1, active=2), 9) == "-wrS-wrS-"
    assert actions(schedule(wait=1, warmup=1, active=2, repeat=1), 9) == "-wrS-----"
    assert actions(schedule(wait=1, warmup=0, active=1, skip_first=3), 8) == "----S-S-"
    assert actions(schedule(wait=2, warmup=0, active=1, skip_first_wait=1), 5) == "S--S-"
    assert actions(schedule(wait=0, warmup=0, active=1), 3) == "SSS"
    for wrong in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
            schedule(**wrong)


def test_each_cycle_is_handed_over() -> None:
    seen = []

    def ready(prof) -> None:
        sums = {e.key: e.count for e in prof.key_averages()}
        seen.append((prof.step_num, sums["aten::exp"], sums["ProfilerStep*"]))

    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
        loop(prof, 9)
    assert seen == [(4, 2, 2), (8, 2, 2)]
    assert special.observing == 0


def test_a_cycle_that_is_under_way_ends_with_the_profile() -> None:
    seen = []
    with profile(
        schedule=schedule(wait=0, warmup=0, active=5), on_trace_ready=lambda p: seen.append(p.events())
    ) as prof:
        loop(prof, 2)
    assert [e.name for e in seen[0] if e.name.startswith("aten")] == ["aten::exp", "aten::exp"]


def test_without_a_schedule_everything_is_profiled() -> None:
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        loop(prof, 2)
    assert [e.name for e in prof.events()] == ["aten::exp", "aten::exp"]


def test_events_of_all_cycles() -> None:
    with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True) as prof:
        loop(prof, 6)
    assert sum(e.name == "aten::exp" for e in prof.events()) == 3


def test_files_for_tensorboard(tmp_path) -> None:
    plan = schedule(wait=0, warmup=0, active=1, repeat=2)
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "me")) as prof:
        prof.add_metadata("run", "7")
        prof.add_metadata_json("sizes", "[1, 2]")
        loop(prof, 3)
    files = sorted((tmp_path / "log").glob("me.*.pt.trace.json"))
    trace = json.loads(files[0].read_text())
    assert len(files) == 2 and trace["run"] == "7" and trace["sizes"] == [1, 2]
    assert any(e["name"] == "ProfilerStep#0" for e in trace["traceEvents"])
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match="Can't create directory"):
        tensorboard_trace_handler(str(tmp_path / "file"))(prof)


def test_by_hand() -> None:
    prof = profile(with_stack=True)
    with pytest.raises(AssertionError):
        prof.events()
    prof.start()
    torch.ones(2).exp()
    prof.stop()
    torch.ones(2).sin()
    assert [e.name for e in prof.events()] == ["aten::exp"]


def test_an_exception_ends_the_profile() -> None:
    with pytest.raises(ZeroDivisionError), profile(schedule=schedule(wait=0, warmup=0, active=2)) as prof:
        loop(prof, 1)
        1 / 0
    assert special.observing == 0


@pytest.mark.parametrize("activities", [[], [ProfilerActivity.CUDA]])
def test_activities_that_are_not_there(activities: list) -> None:
    with pytest.raises(AssertionError, match="activities"):
        profile(activities=activities)
