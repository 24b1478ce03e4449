"""The pytest plugin of rushlight: limits on the memory of tests, and a table of what they take.

    @pytest.mark.limit_memory("30 MB")
    def test_training_is_small(): ...

    pytest --memory-report        # the ten tests with the highest peaks
    pytest --memory-report=50

It stands beside the package, so that pytest starts without loading rushlight: only a test that is measured does.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from typing import Any

import pytest

PEAK = "rushlight_memory_peak"
MARKER = (
    "limit_memory(size): fail where arrays take more than `size` (an int of bytes, or text as '30 MB') at once above what was "
    "there when the test began; by rushlight"
)


def pytest_addoption(parser: Any) -> None:
    """`--memory-report`."""
    parser.getgroup("rushlight").addoption(
        "--memory-report", nargs="?", const=10, default=0, type=number, metavar="N",
        help="measure the memory of arrays in every test and list the N (10) tests with the highest peaks",
    )  # fmt: skip


def number(text: str) -> int:
    """N of the option, which takes the word that follows it."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"expected how many tests to list, got {text!r}; files stand before it, or write --memory-report=10"
        )
    return int(text)


def pytest_configure(config: Any) -> None:
    """The marker is known."""
    config.addinivalue_line("markers", MARKER)


def limit_of(item: Any) -> int | None:
    """The limit of a test in bytes, None without one.  A test whose mark is none fails."""
    marker = item.get_closest_marker("limit_memory")
    if marker is None:
        return None
    from rushlight.stores.errors import bytes_of

    if len(marker.args) != 1 or marker.kwargs:
        pytest.fail(f'{item.nodeid}: limit_memory takes one size, as @pytest.mark.limit_memory("30 MB")', pytrace=False)
    try:
        return bytes_of(marker.args[0], "limit_memory")
    except ValueError as error:
        pytest.fail(f"{item.nodeid}: {error}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """Measure a test that has a limit, or all of them for a report."""
    limit = limit_of(item)
    if limit is None and not item.config.getoption("memory_report"):
        return (yield)
    from rushlight.memory.reports.limits import measuring

    with measuring() as found:
        result = yield
    item.user_properties.append((PEAK, found.peak))
    if limit is not None and found.peak > limit:
        pytest.fail(found.over(limit, item.nodeid), pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """The table, of the processes of pytest-xdist, too."""
    count = config.getoption("memory_report")
    if not count:
        return
    from rushlight.memory.counting.units import size

    reports = [r for some in terminalreporter.stats.values() for r in some if getattr(r, "when", "") == "call"]
    peaks = {r.nodeid: value for r in reports for name, value in r.user_properties if name == PEAK}
    terminalreporter.section(f"memory of arrays: highest peaks of {len(peaks)} tests")
    for nodeid, value in sorted(peaks.items(), key=lambda pair: (-pair[1], pair[0]))[:count]:
        terminalreporter.write_line(f"{size(value):>10}  {nodeid}")
