"""`torch.utils.benchmark`: what is said of times, and tables of them, is what PyTorch says of the same times."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def room(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.benchmark")


def measured(t: Any, times: list[float], n: int = 10, **task: Any) -> Any:
    b = room(t)
    return b.Measurement(
        number_per_run=n, raw_times=times, task_spec=b.TaskSpec(**{"stmt": "x + 1", "setup": "pass", **task})
    )


def measurements(t: Any) -> Any:
    found = [
        measured(t, [1.0]), measured(t, [1.0, 1.1, 1.2, 1.5]), measured(t, [1e-9] * 5, 1), measured(t, [3000.0] * 5, 1, description="d"),
        measured(t, [1e-5, 1.1e-5, 1.05e-5, 3e-5, 1e-5] * 4, label="lab", sub_label="sub", description="d", env="e", num_threads=2),
        measured(t, [0.5, 0.9] * 8, stmt="for i in x:\n    pass", setup="import os\nx=1", num_threads=4), measured(t, [1e-3] * 2, label="l"),
    ]  # fmt: skip
    return [(repr(m).split("\n")[1:], round(m.median, 12), round(m.mean, 12), round(m.iqr, 12), m.significant_figures, m.has_warnings,
             m.title, m.env, m.as_row_name, m.meets_confidence(), m.stmt) for m in found]  # fmt: skip


def merged(t: Any) -> Any:
    given = [measured(t, [1.0]), measured(t, [2.0]), measured(t, [3.0], num_threads=2)]
    return [repr(m).split("\n")[1:] for m in room(t).Measurement.merge(given)]


def units(t: Any) -> Any:
    b = room(t)
    return ([b.select_unit(v) for v in (1e-10, 1e-9, 5e-7, 1e-3, 0.1, 100)], b.unit_to_english("us"), b.ordered_unique([3, 1, 3, 2]),
            [round(b.trim_sigfig(v, n), 6) for v, n in ((123.456, 2), (1, 1), (9.99, 1))],
            b.TaskSpec("a = 1\nb = 2", "import os").summarize(), b.TaskSpec("x", "y").summarize())  # fmt: skip


def tables(t: Any) -> Any:
    b = room(t)
    times = [measured(t, [f * 1e-5 * (1 + 0.01 * i) * (1 if sub == "s1" else 20) / threads for i in range(20)], 1, label=label,
                      sub_label=sub, description=what, num_threads=threads, env="e")
             for label in "AB" for sub in ("s1", "s2") for what, f in (("one", 1), ("two", 1.04), ("three", 2.5), ("four", 7.0))
             for threads in (1, 4)]  # fmt: skip
    seen = []
    for change in (
        lambda c: None,
        lambda c: c.trim_significant_figures(),
        lambda c: c.colorize(),
        lambda c: c.colorize(rowwise=True),
    ):
        compare = b.Compare(times)
        change(compare)
        seen.append(str(compare))
    return seen


def fuzzed(t: Any) -> Any:
    b, found = room(t), []
    fuzzer = b.Fuzzer(
        [b.FuzzedParameter("n", 4, 16, "uniform"), [b.FuzzedParameter("m", 4, 9, "loguniform"), b.FuzzedParameter("d", 1, 3, "uniform")]],
        [b.FuzzedTensor("x", size=("n", "m", 2), min_elements=4, max_elements=200, steps=("d", 1, 1), dim_parameter="d"),
         b.FuzzedTensor("y", size=("m",), dtype=t.int32)],
        seed=1, constraints=[lambda p: p["n"] > 5],
    )  # fmt: skip
    for tensors, known, params in fuzzer.take(3):
        shown = {k: {**v, "order": v["order"].tolist(), "dtype": v["dtype"].split(".")[-1]} for k, v in known.items()}
        found.append((tensors["x"].tolist(), tensors["x"].stride(), tensors["y"].tolist(), shown, params))
    return found, fuzzer.rejection_rate


@pytest.mark.parametrize("case", [measurements, merged, units, tables, fuzzed], ids=lambda case: case.__name__)
def test_times_are_told_as_by_pytorch(case: Callable[[Any], Any]) -> None:
    assert case(rushlight) == case(torch)


def test_statements_are_timed() -> None:
    b, ran = room(rushlight), []
    timer = b.Timer("ran.append(1)", setup="y = 1", globals={"ran": ran}, num_threads=1, label="l")
    once = timer.timeit(50)
    assert len(once.times) == 1 and once.number_per_run == 50 and len(ran) >= 50 and once.title == "l"
    blocks: list[int] = []
    several = timer.blocked_autorange(callback=lambda number, seconds: blocks.append(number), min_run_time=0.01)
    assert len(several.times) == len(blocks) and set(blocks) == {several.number_per_run}
    assert sum(several.raw_times) >= 0.01
    assert timer.adaptive_autorange(max_run_time=0.02).times
    with pytest.raises(NameError):
        b.Timer("nowhere").timeit(1)
    with pytest.raises(NotImplementedError, match="C\\+\\+"):
        b.Timer("x;", language="cpp")
    with pytest.raises(NotImplementedError, match="instructions are not counted"):
        timer.collect_callgrind()
