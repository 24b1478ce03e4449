"""The pytest plugin: limits on the memory of tests, what a failure says, and the table."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rushlight import memory

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="memory is counted where native kernels are")

TESTS = """
    import pytest
    import rushlight as torch
    from rushlight import memory

    KEPT = torch.ones(1_000_000)

    @pytest.fixture
    def large():
        return torch.ones(2_000_000)

    def make(n):
        return torch.ones(n)

    @pytest.mark.limit_memory("7 MB")
    def test_small():
        for _ in range(10):
            x = make(500_000) + 1

    @pytest.mark.limit_memory("3 MB")
    def test_large():
        x = make(500_000)
        y = x.exp()
        del x, y

    @pytest.mark.limit_memory(1000)
    def test_fixtures_do_not_count(large):
        assert large.sum() > KEPT.sum()

    @pytest.mark.limit_memory("1 GB")
    def test_fails_by_itself():
        assert 1 == 2

    def test_free():
        make(3_000_000)
"""
TRAINING = """
    import pytest
    import rushlight as torch

    @pytest.mark.limit_memory("100 kB")
    def test_training():
        model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(4)])
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            model(torch.ones(8, 128)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
"""


def run(pytester: Any, text: str, *options: str) -> Any:
    pytester.makepyfile(test_it=text)
    pytester._monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester.runpytest_inprocess("-p", "rushlight_pytest", "-p", "no:cacheprovider", *options)


def test_a_test_above_its_limit_fails_and_says_where(pytester: Any) -> None:
    result = run(pytester, TESTS)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines([
        "test_it.py::test_large: peak 4.00 MB, 1.00 MB above the limit of 3.00 MB (bytes of arrays above those at the beginning*",
        "At the peak:",
        "*2.00 MB * test_it.py:* in *",
        "*2.00 MB * test_it.py:* in *",
        "  by kind: *",
        "What to do: *free or shrink what these lines make, or raise the limit.",
    ])  # fmt: skip
    text = result.stdout.str()
    assert " in make" in text and " in test_large" in text
    assert "assert 1 == 2" in text and "test_fails_by_itself: peak" not in text
    assert "memory of arrays" not in text and not memory.is_recording()


def test_what_earlier_code_left_in_cycles_makes_no_room(pytester: Any) -> None:
    result = run(pytester, """
        import gc
        import pytest
        import rushlight as torch

        def test_before():
            gc.disable()
            left = [torch.ones(1_000_000)]
            left.append(left)

        @pytest.mark.limit_memory("1 MB")
        def test_after():
            gc.enable()
            gc.collect()
            x = torch.ones(500_000)
    """)  # fmt: skip
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_after: peak 2.00 MB, *"])


def test_advice_is_given(pytester: Any) -> None:
    result = run(pytester, TRAINING)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  by kind: *optimizer state*", "What to do: *(-*kB)*"])


def test_the_table(pytester: Any) -> None:
    result = run(pytester, TESTS, "--memory-report=2")
    result.stdout.fnmatch_lines(["*memory of arrays: highest peaks of 4 tests*", "*12.0 MB  test_it.py::test_free",
                                 "*6.00 MB  test_it.py::test_small"])  # fmt: skip
    assert (
        "test_fixtures_do_not_count"
        not in result.stdout.str().partition("highest peaks")[2].partition("short test summary")[0]
    )


def test_a_file_is_no_number(pytester: Any) -> None:
    result = run(pytester, TESTS, "--memory-report", "test_it.py")
    result.stderr.fnmatch_lines(["*expected how many tests to list, got 'test_it.py'; files stand before it*"])


def test_a_test_that_records_by_itself_is_counted_still(pytester: Any) -> None:
    result = run(pytester, """
        import pytest
        import rushlight as torch
        from rushlight import memory

        @pytest.mark.limit_memory("1 MB")
        def test_records():
            memory.record_history()
            x = torch.ones(1_000_000)
            memory.record_history(None)
            assert memory.recording().peak()[0] >= 4_000_000
    """)  # fmt: skip
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*peak 4.0? MB, 3.0? MB above*", "Where it was is not known: the test records memory itself*"]
    )


def test_a_mark_that_is_none_is_an_error(pytester: Any) -> None:
    marks = ("()", '("a lot")', '("1 MB", 2)')
    tests = [f"@pytest.mark.limit_memory{mark}\ndef test_{i}():\n    pass\n" for i, mark in enumerate(marks)]
    result = run(pytester, "\n".join(["import pytest", *tests]))
    assert result.ret != 0
    for text in ("*test_0: limit_memory takes one size*", "*test_1: limit_memory: expected bytes*got 'a lot'*",
                 "*test_2: limit_memory takes one size*"):  # fmt: skip
        result.stdout.fnmatch_lines([text])


def test_pytest_starts_without_rushlight() -> None:
    code = "import rushlight_pytest, sys; sys.exit('rushlight' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
