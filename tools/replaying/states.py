"""States of the process that no operator's behaviour may depend on: they choose which code runs, never what comes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

import rushlight as torch
from rushlight import memory


@contextmanager
def without_memory() -> Iterator[None]:
    """A tensor on the device meta is alive: the general path is taken, and asks whether operands are such tensors."""
    kept = torch.empty(3, device="meta")
    yield
    del kept


@contextmanager
def busy_thread() -> Iterator[None]:
    """Another thread is in the modes that a thread can be in: they count, but are its own."""
    entered, ended = threading.Event(), threading.Event()

    def stay() -> None:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda t: t + 1, lambda t: t))
            stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
            stack.enter_context(torch.autograd.forward_ad.dual_level())
            stack.enter_context(torch.overrides.BaseTorchFunctionMode())
            entered.set()
            ended.wait()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


STATES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "nothing": nullcontext,
    "meta": without_memory,
    "thread": busy_thread,
    "profiler": torch.autograd.profiler.profile,
    "budget": lambda: memory.budget(memory.current() + (1 << 40)),
    "function mode": torch.overrides.BaseTorchFunctionMode,
    "forward mode": torch.autograd.forward_ad.dual_level,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
}
