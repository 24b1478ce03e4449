"""The fast part of the sweep (tools/sweep_kernels.py): kernels against their references over layouts; and the sweep itself."""

from typing import Any

import numpy as np
import pytest
from tools import sweep_kernels, sweep_operators
from tools.sweep_cases import Case, cases
from tools.sweep_layouts import DTYPES, FILLS, LAYOUTS, OTHER_NUMBERS, place

from rushlight.kernels.native import loader

FAMILIES = sorted({case.name.split(" ")[0] for case in cases()})
OPERATORS = sorted({case.name.split(" ")[0].rstrip(",") for case in sweep_operators.cases()})


def swept(chosen: list[Any], dtype: str, seed: int, run: Any) -> None:
    sweep = sweep_kernels.Sweep((2,), FILLS[:1], sweep_kernels.FAST_LAYOUTS, seed)
    for case in chosen:
        run(sweep, case, dtype)
    assert not sweep.failures, "\n\n".join(sweep.failures)
    assert sweep.counts["evaluations"] >= len(chosen)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_read_and_write_only_what_is_theirs(path: str, family: str, dtype: str) -> None:
    """Some cases of the fast sweep: all of it runs in `make sanitize`."""
    chosen = [case for case in cases() if case.name.split(" ")[0] == family and not case.slow]
    swept(chosen[:: 5 if dtype == "float32" else 11] if len(chosen) > 10 else chosen, dtype, 1, sweep_kernels.Sweep.run)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_read_and_write_only_what_is_theirs(path: str, name: str) -> None:
    chosen = [case for case in sweep_operators.cases() if case.name.split(" ")[0].rstrip(",") == name]
    swept(chosen[:: 5 if len(chosen) > 10 else 2], "float32", 2, sweep_operators.run)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_all_kernels_in_all_layouts(path: str, dtype: str) -> None:
    sweep = sweep_kernels.Sweep((1, 3), FILLS, tuple(LAYOUTS), 3)
    for case in cases():
        sweep.run(case, dtype)
    assert not sweep.failures, "\n\n".join(sweep.failures[:9])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (2, 3, 4)])
def test_layouts_hold_the_numbers(layout: str, shape: Any) -> None:
    for dtype in DTYPES.values():
        values = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        placed = place(values, layout, "nan")
        assert placed.array.shape == shape and placed.array.dtype == dtype and not placed.changed()
        if layout not in OTHER_NUMBERS:
            assert (placed.array == values).all()


def planted(call: Any, *writes: int) -> list[str]:
    """What the sweep says of a kernel."""
    case = Case("planted", lambda rng: [rng.standard_normal((5, 3)), rng.standard_normal(3)], call, writes)
    sweep = sweep_kernels.Sweep((1,), FILLS, tuple(LAYOUTS), 0)
    sweep.run(case, "float32")
    return sweep.failures


def behind(a: Any) -> Any:
    """The elements of an array and the one behind them, as native code would find it."""
    return np.lib.stride_tricks.as_strided(a, (a.size + 1,), (a.itemsize,))


def test_the_sweep_sees_faults_that_are_planted() -> None:
    def reads_behind(K: Any, x: Any, y: Any) -> Any:
        return x + (y if loader._tables == {} or not y.flags.c_contiguous or y.base is None else behind(y)[1:])

    def writes_behind(K: Any, x: Any, y: Any) -> Any:
        if loader._tables != {} and y.flags.c_contiguous and y.flags.aligned and y.base is not None:
            behind(y)[-1] = 7
        return x + y

    def writes_an_input(K: Any, x: Any, y: Any) -> Any:
        y[...] = 3
        return x + 3

    loader.tables()
    if loader._tables == {}:
        pytest.skip("the faults are planted on the native side")
    assert "wrong" in planted(reads_behind)[0]
    assert "though it is only read" in planted(writes_behind)[0]
    assert "outside of its elements" in planted(writes_behind, 1)[0]
    assert "though it is only read" in planted(writes_an_input)[0]
    assert "ZeroDivisionError" in planted(lambda K, x, y: x / 0 if K is None else 1 / 0 if loader._tables else x)[0]
    assert not planted(lambda K, x, y: x + y)


def test_a_failure_is_code_that_shows_it() -> None:
    case = next(c for c in cases() if c.name.startswith("softmax (7, 33)"))
    assert sweep_kernels.replay(case.name, "float32", ["misaligned"], "1e30", 2, 0) == ""
    assert (
        sweep_operators.replay(
            "F.linear (7, 33, 5)", "float32", ["packed", "stepped", "offset", "transposed"], "nan", 2, 0
        )
        == ""
    )


def test_parts_and_what_is_skipped_make_the_whole_sweep() -> None:
    def names(*arguments: str) -> list[tuple[str, str]]:
        return [(case.name, dtype) for case, dtype in sweep_kernels.chosen(sweep_kernels.parsed(list(arguments)))]

    whole = names("--seed", "5")
    parts = [names("--seed", "5", "--part", f"{k}/3") for k in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(whole)
    assert max(len(part) for part in parts) - min(len(part) for part in parts) <= 1
    assert names("--seed", "5", "--part", "2/3", "--skip", "7") == parts[1][7:]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3"])
def test_parts_that_there_are_not_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sweep_kernels.parsed(["--part", text])
    assert "--part" in capsys.readouterr().err


def test_a_sweep_tells_how_far_it_is_and_what_fails_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = sweep_kernels.Sweep((1,), FILLS, tuple(LAYOUTS), 0)
    shown = sweep_kernels.Shown(10, skipped=20, every=0.0)
    shown.case(1, sweep)
    sweep.fail(Case("planted", lambda rng: [], len), "float32", [], "nan", 1, "result 0: wrong")
    shown.case(2, sweep)
    first, *rest = capsys.readouterr().out.strip().split("\n")
    assert first.startswith("1/10 cases, 0 evaluations, 0 failures") and first.endswith("--skip 21 goes on here")
    assert rest[1] == "# result 0: wrong" and "replay('planted'" in rest[3]
    assert rest[-1].startswith("2/10 cases, 0 evaluations, 1 failures") and rest[-1].endswith("--skip 22 goes on here")
