"""What the tests of the memory tools share."""

from __future__ import annotations

import gc

import pytest

from rushlight.memory.counting import holders


@pytest.fixture(autouse=True)
def unfrozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors are looked for among the objects that are not frozen, as a test's own are not.

    A run of all tests freezes millions after collecting them: to look at those took a test up to two minutes.
    """
    monkeypatch.setattr(holders, "collected", gc.get_objects)
