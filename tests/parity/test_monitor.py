"""Counters and events of `torch.monitor`, beside PyTorch's."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytest.importorskip("torch.monitor")
pytestmark = pytest.mark.parity


def listening(t: Any, call: Callable[[], Any]) -> list[tuple[str, Any]]:
    heard: list[Any] = []
    handle = t.monitor.register_event_handler(heard.append)
    try:
        call()
    finally:
        t.monitor.unregister_event_handler(handle)
    return [(e.name, dict(e.data)) for e in heard]


def named(values: Any) -> Any:
    return {kind.name: value for kind, value in values.items()}


def full(t: Any) -> Any:
    kinds, found = t.monitor.Aggregation, []

    def count() -> None:
        stat = t.monitor.Stat("loss", (kinds.SUM, kinds.COUNT, kinds.MEAN, kinds.MAX, kinds.MIN), timedelta(hours=1), 3)
        for v in (1, 2, 5, 7):
            stat.add(v)
            found.append((stat.name, stat.count, named(stat.get())))

    return listening(t, count), found


def windows(t: Any) -> Any:
    def count() -> None:
        stat = t.monitor.Stat("s", (t.monitor.Aggregation.SUM,), timedelta(milliseconds=1))
        stat.add(1)
        time.sleep(0.01)
        stat.add(2)

    heard = listening(t, count)
    return heard[0][0], sum(data["s.sum"] for _, data in heard)


def events(t: Any) -> Any:
    event = t.monitor.Event(name="begun", timestamp=datetime.now(), data={"a": "b", "c": 1.5, "d": 2})
    heard = listening(t, lambda: t.monitor.log_event(event))
    t.monitor.log_event(event)
    refused = []
    for make in (lambda: t.monitor.Event("x", datetime.now(), {"a": None}), lambda: t.monitor.Event(), lambda: t.monitor.log_event(3)):  # fmt: skip
        with pytest.raises(TypeError):
            make()
        refused.append(True)
    return heard, refused


def written(t: Any) -> Any:
    scalars: list[Any] = []

    class Writer:
        def add_scalar(self, tag: str, value: float, walltime: float) -> None:
            scalars.append((tag, value, walltime > 0))

    handler = t.monitor.TensorboardEventHandler(Writer())
    for name in ("torch.monitor.Stat", "other"):
        handler(t.monitor.Event(name, datetime.now(), {"a": 1.5}))
    return scalars


@pytest.mark.parametrize("told", [full, windows, events, written])
def test_told_alike(told: Callable[[Any], Any]) -> None:
    assert told(rushlight) == told(reference)
