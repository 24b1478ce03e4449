"""``import rushlight`` is light: nothing heavy comes with it, and it does not take long."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import printed

HEAVY = [
    "asyncio",
    "concurrent.futures.process",
    "cupy",
    "doctest",
    "hypothesis",
    "mpi4py",
    "importlib.resources",
    "multiprocessing",
    "numpy.random",
    "pathlib",
    "pytest",
    "rushlight.cli",
    "rushlight.distributed",
    "rushlight.distributions",
    "rushlight.models",
    "rushlight.nn",
    "rushlight.optim",
    "rushlight.serialization",
    "safetensors",
    "scipy",
    "sqlite3",
    "ssl",
    "torch",
    "tqdm",
    "unittest",
]
PROGRAM = """
import json, sys, time
import numpy, ml_dtypes
start = time.perf_counter()
before = set(sys.modules)
import rushlight
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def report() -> dict:
    """What a fresh interpreter loads for ``import rushlight`` beyond NumPy and ml_dtypes."""
    # A second run: the first may have had to write the byte code.
    runs = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True) for _ in "12"]
    return json.loads(runs[-1].stdout)


@pytest.mark.parametrize("module", HEAVY)
def test_is_not_imported(report: dict, module: str) -> None:
    assert module not in report["modules"]


def test_nothing_is_compiled(tmp_path: Path) -> None:
    """The native kernels are compiled at their first use, not by the import, which loads those that are compiled."""
    program = "import rushlight.kernels as k; import sys; sys.exit(k.native_status()['state'] != 'not loaded yet')"
    environment = {**os.environ, "RUSHLIGHT_CACHE": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0


@pytest.mark.parametrize("before", ["", "gc.disable()", "gc.freeze()"])
def test_no_search_for_garbage_among_what_the_import_makes(before: str) -> None:
    """Such searches took a fifth of its time.  What the program decided about them stays."""
    program = f"""
import gc, numpy
{before}
was, frozen, searches = gc.isenabled(), gc.get_freeze_count(), []
gc.callbacks.append(lambda phase, info: searches.append(info))
import rushlight
assert len(searches) <= 4, len(searches)  # for the few modules that come before the pause
assert gc.isenabled() is was and gc.get_freeze_count() == frozen
"""
    printed("-c", program)


def test_an_ml_dtypes_that_is_too_old_is_named() -> None:
    program = "import ml_dtypes\ndel ml_dtypes.complex32\nml_dtypes.__version__ = '0.5.4'\nimport rushlight"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "needs ml_dtypes 0.6 or newer, and 0.5.4 is installed: pip install --upgrade ml_dtypes" in done.stderr
