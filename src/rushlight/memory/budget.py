"""A bound in bytes on what a process's arrays take, and kept."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any

from rushlight import heap
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.kernels import allocator
from rushlight.memory.account import human, process_memory, totals
from rushlight.memory.pager import KINDS, Pager
from rushlight.optim import optimizer as optimizers
from rushlight.state import modes, set_mode
from rushlight.stores.errors import bytes_of
from rushlight.stores.files import Spill


class BudgetError(MemoryError):
    """The bytes given are too few.  `least`: bytes that would have done so far."""

    least: int = 0


@dataclass(frozen=True)
class BudgetReport:
    """What a budget did.

    limit, peak: bytes allowed, and the most that arrays took. without: the most that they would have taken together.
    process_peak: resident bytes of the process at most, -1 where the system does not say. moved_out, moved_in: bytes
    written and read, by kind. again: bytes that were computed again. seconds: in all, and those paid for moving and
    computing again.
    """

    limit: int
    peak: int
    without: int
    process_peak: int
    moved_out: dict[str, int]
    moved_in: dict[str, int]
    again: int
    seconds: float
    seconds_moving: float

    def __str__(self) -> str:
        lines = [
            f"budget                  {human(self.limit)}",
            f"peak, measured          {human(self.peak)}",
            f"peak without the budget {human(self.without)} (predicted)",
            f"time                    {self.seconds:.1f} s, of which {self.seconds_moving:.1f} s for moving",
        ]
        lines += [f"{kind:<23} {human(self.moved_out[kind])} out, {human(self.moved_in[kind])} back"
                  for kind in KINDS if self.moved_out[kind]]  # fmt: skip
        if self.again:
            lines.append(f"computed again          {human(self.again)}")
        return "\n".join(lines)


class budget:
    """While active, all arrays of the process together stay below `limit` bytes.

    What does not fit goes to disk and comes back when it is used: saved tensors, the optimizer's state, gradients and
    parameters, each time that which is used latest.  Saved tensors that a few cheap operators compute again in less time
    than the disk took so far are dropped instead.  Results are those without a budget, to the bit.

    Args:
        limit: bytes, or text: "2 GiB", "500 MB".
        spill: a directory for what does not fit; the one for temporary files if None.
        optimizer: an optimizer, or several, to fuse into backward, so that gradients need no memory; see
            `optim.in_backward` for what that asks of the training loop.

    Raises BudgetError (a MemoryError) where what cannot be moved is more than the limit; it says how many bytes would do.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])
    >>> x = torch.randn(512, 512)
    >>> with memory.budget(memory.current() + 6_000_000) as b:
    ...     model(x).sum().backward()
    >>> b.report().peak <= b.limit
    True
    """

    def __init__(self, limit: int | str, spill: Any = None, *, optimizer: Any = None):
        self.limit = bytes_of(limit, "memory.budget")
        self.spill = spill
        several = isinstance(optimizer, (tuple, list))
        self.optimizers = tuple(optimizer) if several else () if optimizer is None else (optimizer,)
        self.pager: Any = None

    def __enter__(self) -> budget:
        now = totals().bytes
        allocator.library().reset_peak()
        disk = Spill(self.spill, memory=min(self.limit // 8, 1 << 28))
        self.pager = pager = Pager(self.limit, disk, min(self.limit // 64, 1 << 25))
        self.hooks = saved_tensors_hooks(pager.pack, pager.unpack)
        self.handles = [optimizers.register_optimizer_step_post_hook(lambda o, args, kwargs: pager.adopt_state(o))]
        self.fused = [_fused(o) for o in self.optimizers]
        self.malloc = heap.exact(True)
        allocator.library().exact(True)
        self.start = perf_counter()
        pager.scan()
        self.room = allocator.limit(self.limit, pager.make_room)
        if now > self.limit:
            pager.make_room(now - self.limit)
        self.hooks.__enter__()
        self.observers = modes.observers
        set_mode("observers", (*self.observers, pager.recipes))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode("observers", self.observers)
        self.hooks.__exit__(kind, error, tb)
        self.seconds = perf_counter() - self.start
        self.peak = allocator.totals().peak
        allocator.limit(0, None)
        for handle in (*self.handles, *self.fused):
            handle.remove()
        allocator.library().exact(self.malloc)
        heap.exact(self.malloc)
        self.pager.release()
        if isinstance(error, MemoryError) and (self.pager.least or self.pager.error):
            raise self.too_small() from (self.pager.error or error)

    def too_small(self) -> BudgetError:
        """The error that says what would do."""
        least = max(self.pager.least, self.limit)
        made = BudgetError(
            f"memory.budget: {human(self.limit)} ({self.limit} bytes) are too few: at least {human(least)} ({least} bytes) "
            "are needed for what was run so far, by arrays that are in use at once and cannot be moved. Give the budget "
            "more, use a smaller batch, or hold fewer tensors in variables."
            + (f" Moving failed: {self.pager.error}" if self.pager.error else "")
        )
        made.least = least
        return made

    def report(self) -> BudgetReport:
        """What the budget did, so far or until its end."""
        pager = self.pager
        peak = getattr(self, "peak", None) or allocator.totals().peak
        seconds = getattr(self, "seconds", None) or perf_counter() - self.start
        return BudgetReport(self.limit, peak, max(peak, pager.demand), process_memory()[1], dict(pager.moved_out),
                            dict(pager.moved_in), pager.again, seconds, pager.seconds)  # fmt: skip


def _fused(optimizer: Any) -> Any:
    """The handle of an optimizer that steps in backward."""
    from rushlight.optim import in_backward

    return in_backward(optimizer)
