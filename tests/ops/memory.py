"""What operators keep and allocate."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import rushlight as torch


def saved_bytes(fn: Any, *inputs: Any) -> int:
    """Bytes of the tensors that the graph of fn(*inputs) saves, each memory once, parameters and inputs apart."""
    given = {t.data_ptr() for t in inputs if isinstance(t, torch.Tensor)}
    seen: dict[int, int] = {}

    def pack(t: Any) -> Any:
        if t.data_ptr() not in given:
            seen[t.data_ptr()] = t.nbytes
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        fn(*inputs)
    return sum(seen.values())


def peak_bytes(fn: Any) -> int:
    """The most bytes allocated at once while fn runs, beyond those before."""
    fn()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = fn()
        peak = tracemalloc.get_traced_memory()[1] - before
        del result
    finally:
        tracemalloc.stop()
    return peak
