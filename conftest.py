"""What tests are collected from, why one may be skipped, and what is known to the collector of cycles while they run.

Skips are counted at the end, by reason; a reason that is not in `tests/skips.txt` fails the run.

Twenty thousand tests that wait are a million objects, and PyTorch and its databases as many: each collection would look
through them (0.4 s), and what searches all objects for what holds memory, too.  What is there before the tests of a file
is set aside from both, and nothing is searched for garbage while the tests are collected, which took half of that time.

Hundreds of tests start processes that load the package, which takes twice to four times as long where each compiles all of it
anew: bytecode is kept whatever the environment says, that of the tests, which pytest rewrites, too.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Modules that stand on an extra which is not installed are not collected for their examples.
collect_ignore = [
    path
    for path, needed in {"src/rushlight/compat/rooms/tensorboard": "tensorboard"}.items()
    if importlib.util.find_spec(needed) is None
]
gc.disable()  # until all tests are collected
LAST: dict[str, Path | None] = {"file": None}  # of the test that ran last

sys.dont_write_bytecode = False  # of this process, and below of those that tests start
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Workers of pytest-xdist share the processors: threads of BLAS that wait for others turn in circles until they come.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if WORKERS > 1:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max((os.cpu_count() or 1) // WORKERS, 1)))

# What a shell starts in the background ignores Ctrl-C, and so would the processes whose interruption is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SKIPS = Path(__file__).parent / "tests" / "skips.txt"


def allowed() -> re.Pattern[str]:
    """What reasons of skips begin with."""
    lines = SKIPS.read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line and not line.startswith("#")))


def skipped(config: pytest.Config) -> Counter[str]:
    """How many tests of a run were skipped, by reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", ()) if reporter is not None else ()
    reasons = (r.longrepr[2] if isinstance(r.longrepr, tuple) else str(r.longrepr) for r in reports)
    return Counter(reason.removeprefix("Skipped: ") for reason in reasons)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run in which a test was skipped for a reason that is not on the list has failed."""
    known = allowed()
    if exitstatus == 0 and not all(known.match(reason) for reason in skipped(session.config)):
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skips."""
    found, known = skipped(terminalreporter.config), allowed()
    if found:
        terminalreporter.section(f"{found.total()} skipped")
    for reason, count in found.most_common():
        told = "" if known.match(reason) else "  <- not in tests/skips.txt: the run fails"
        terminalreporter.line(f"{count:>6}  {reason}{told}", red=bool(told))


def pytest_collection_finish() -> None:
    """Search for garbage again; look for what holds memory among the objects that are not set aside, as a test's own are not."""
    from rushlight.memory.counting import holders

    gc.enable()
    holders.collected = gc.get_objects


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Set aside what collecting the tests and those of other files made."""
    if item.path != LAST["file"]:
        LAST["file"] = item.path
        gc.collect()  # garbage would be set aside too, and its memory never freed
        gc.freeze()
