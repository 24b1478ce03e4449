"""Every kernel test runs natively (where a compiler is found) and without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rushlight import kernels
from rushlight.kernels import products
from rushlight.kernels.native import loader


@pytest.fixture(params=["native", "reference"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which implementation the kernels take during the test."""
    if request.param == "native" and not loader.tables():
        pytest.skip(f"no native kernels here: {kernels.native_status()}")
    if request.param == "reference":
        monkeypatch.setattr(loader, "_tables", {})
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Two threads, so that the pool is tried on any machine."""
    before = kernels.get_num_threads()
    kernels.set_num_threads(2)
    yield
    kernels.set_num_threads(before)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of what is here, built once for all tests of it (minutes)."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(params=["tiles", "dots"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> products.Way:
    """Each of the kernels that multiply, and that alone in use."""
    steps = {"tiles": 32, "dots": 2}[request.param]
    found = next((way for way in products.ways() if way.unit == steps), None)
    if found is None:
        pytest.skip("no native products of bfloat16 on this machine")
    monkeypatch.setattr(products, "_found", (loader.tables(), [found]))
    return found
