"""Stores: what they keep, what they wait for, and what their copies share; beside PyTorch's."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest

from rushlight import distributed as dist


def uses(store: Any) -> list[Any]:
    store.set("a", "1")
    store.multi_set(["m1", "m2"], ["x", "y"])
    store.append("m1", "z")
    store.queue_push("q", "first")
    store.queue_push("q", "second")
    seen = [
        store.get("a"),
        store.add("n", 3),
        store.add("n", 2),
        store.get("n"),
        store.check(["a", "n"]),
        store.check(["a", "other"]),
    ]
    seen += [
        store.compare_set("c", "", "x"),
        store.compare_set("c", "x", "y"),
        store.compare_set("c", "x", "z"),
        store.compare_set("new", "q", "z"),
    ]
    seen += [
        store.multi_get(["m1", "m2"]),
        store.has_extended_api(),
        store.queue_len("q"),
        store.queue_pop("q"),
        store.queue_len("q"),
    ]
    seen += [store.delete_key("a"), store.delete_key("a"), sorted(store.list_keys())]
    copy = store.clone()
    copy.set("b", b"\x00\xff")
    return [*seen, store.get("b"), type(copy).__name__]


def error(call: Any) -> Any:
    try:
        return call()
    except Exception as raised:
        return type(raised).__name__


def refusals(store: Any) -> list[Any]:
    store.set("text", "x")
    store.set_timeout(timedelta(milliseconds=50))
    calls = [lambda: store.get("missing"), lambda: store.wait(["missing"], timedelta(milliseconds=20)), lambda: store.add("text", 1),
             lambda: store.queue_pop("empty"), lambda: store.queue_pop("empty", False), lambda: store.multi_get(["text", "missing"])]  # fmt: skip
    return [error(call) for call in calls]


@pytest.mark.parametrize("case", [uses, refusals])
@pytest.mark.parametrize("prefix", [False, True])
def test_they_are_alike(case: Any, prefix: bool) -> None:
    both = pytest.importorskip("torch.distributed"), dist
    stores = [t.PrefixStore("p", t.HashStore()) if prefix else t.HashStore() for t in both]
    seen, expected = case(stores[1]), case(stores[0])
    assert seen == expected


def test_threads_wait_for_each_other() -> None:
    store = dist.HashStore()
    inner = dist.PrefixStore("inner", store)

    def later() -> None:
        time.sleep(0.05)
        store.set("inner/key", "value")
        inner.queue_push("queue", "item")

    thread = threading.Thread(target=later)
    thread.start()
    assert inner.get("key") == b"value" and inner.queue_pop("queue") == b"item"
    thread.join()
    assert dist.PrefixStore("deeper", inner).prefix == "inner/deeper/"


def test_nobody_waits_for_what_nobody_can_set() -> None:
    began = time.monotonic()
    with pytest.raises(dist.DistStoreError, match="Wait timeout: HashStore: no value of key"):
        store = dist.HashStore()
        store.set_timeout(timedelta(seconds=1))
        store.get("key")
    assert time.monotonic() - began < 10
    with pytest.raises(ValueError, match="as many values as keys"):
        dist.HashStore().multi_set(["a"], [])
