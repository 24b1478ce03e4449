"""A bound in bytes on what a process's arrays take, and kept."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any

from rushlight import storage
from rushlight.basics.caller import warn
from rushlight.basics.errors import explained
from rushlight.basics.state import modes
from rushlight.kernels import allocator
from rushlight.memory.budgets.pager import KINDS, Pager
from rushlight.memory.budgets.waking import Waking
from rushlight.memory.counting.account import given, human, process_memory, totals
from rushlight.optim import in_backward
from rushlight.optim import optimizer as optimizers
from rushlight.stores.errors import bytes_of
from rushlight.stores.files import Spill

KERNELS = "no memory for what it works with"  # the words of native code (call.h)


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
        return "\n".join(f"{name:<23} {figure}" for name, figure in self.rows())

    def _repr_html_(self) -> str:
        """The same as a table, in notebooks."""
        from rushlight.memory.reports import display

        return display.table([(name.replace("_", " "), figure) for name, figure in self.rows()], "memory.budget")

    def rows(self) -> list[tuple[str, str]]:
        """What each line says: a name and a figure."""
        found = [
            ("budget", given(self.limit)),
            ("peak, measured", human(self.peak)),
            ("peak without the budget", f"{human(self.without)} (predicted)"),
            ("time", f"{self.seconds:.1f} s, of which {self.seconds_moving:.1f} s for moving"),
        ]
        found += [(kind, f"{human(self.moved_out[kind])} out, {human(self.moved_in[kind])} back")
                  for kind in KINDS if self.moved_out[kind]]  # fmt: skip
        return [*found, ("computed again", human(self.again))] if self.again else found


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

    Saved tensors are moved of the thread that entered it; parameters, gradients and state of all.  A process has one at a
    time: another is refused with RuntimeError.

    Raises BudgetError (a MemoryError) at its end where what cannot be moved is more than the limit; it says how many bytes
    would have done so far: what comes later may need more. `memory.frontier` finds the least for a whole step. Code within
    the block meets the plain MemoryError.

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
        if not self.limit:
            raise ValueError("memory.budget: a limit of 0 bytes leaves room for nothing")
        self.spill = spill
        several = isinstance(optimizer, (tuple, list))
        self.optimizers = tuple(optimizer) if several else () if optimizer is None else (optimizer,)
        self.pager: Any = None
        self.ended: tuple[int, float] | None = None  # peak and seconds

    def __repr__(self) -> str:
        return f"<memory.budget of {given(self.limit)}>"

    def __enter__(self) -> budget:
        if modes.saved_hooks_disabled is not None:
            raise RuntimeError(modes.saved_hooks_disabled)
        if not _active.acquire(blocking=False):
            raise explained(
                RuntimeError(
                    "memory.budget: another budget is active in this process. It bounds the arrays of all threads; leave it first"
                ),
                "one-budget-at-a-time",
            )
        with ExitStack() as stack:
            stack.callback(_active.release)
            disk = Spill(self.spill, memory=min(self.limit // 8, 1 << 28))
            self.ended, self.start = None, perf_counter()
            self.pager = pager = Pager(self.limit, disk, min(self.limit // 64, 1 << 25))
            stack.callback(pager.release)
            self._set_up(pager, stack)
            self.undo = stack.pop_all()
        return self

    def _set_up(self, pager: Pager, stack: ExitStack) -> None:
        """Let the pager see what is to be paged, then hold the arrays to the limit; `stack` undoes it."""
        for optimizer in self.optimizers:
            stack.callback(in_backward(optimizer).remove)
        hook = optimizers.register_optimizer_step_post_hook(
            lambda optimizer, args, kwargs: pager.adopt_state(optimizer)
        )
        stack.callback(hook.remove)
        storage.guests = pager.guest
        stack.callback(setattr, storage, "guests", None)
        waking = Waking(pager)
        stack.callback(waking.end)  # once no thread can be short of memory any more
        waking.begin()
        stack.callback(allocator.limit, 0, None)
        self.room = allocator.limit(self.limit, pager.make_room)  # lives as long as it may be called
        if totals().bytes > self.limit:
            pager.make_room(totals().bytes - self.limit)
        allocator.reset_peak()
        stack.callback(self._end)

    def _end(self) -> None:
        self.pager.note_peak()
        self.ended = allocator.totals().peak, perf_counter() - self.start

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.undo.close()
        pager = self.pager
        interrupt, pager.interrupt = pager.interrupt, None
        own = type(error) is MemoryError and error.args and not str(error).endswith(KERNELS)  # of the code within
        refused = isinstance(error, MemoryError) and not own
        if interrupt is not None and (error is None or refused):
            try:
                raise interrupt
            finally:
                del interrupt, error  # or they and this frame would hold each other, and the callers' arrays
        if refused and (pager.least or pager.error):
            raise self.too_small() from (pager.error or error)
        if error is None and pager.refused:  # where an error of a thread ends is not known
            warn(f"{self.too_small()} There was no room in {', '.join(pager.refused)}, where MemoryError was raised.")

    def too_small(self) -> BudgetError:
        """The error that says what would do."""
        error, least = self.pager.error, max(self.pager.least, self.limit)
        what = f"memory.budget: {human(self.limit)} ({self.limit} bytes) "
        if error is not None:
            made = BudgetError(f"{what}could not be kept, for moving arrays failed: {type(error).__name__}: {error}")
        else:
            made = explained(
                BudgetError(
                    f"{what}are too few: at least {human(least)} ({least} bytes) are needed for what was run so far, by arrays "
                    "that are in use at once and cannot be moved. Give the budget more, use a smaller batch, or hold fewer "
                    "tensors in variables. What comes later may need more: the least for a whole step is found by "
                    "`rushlight run --memory-budget min` for a script, by memory.frontier(model, sample, optimizer).least for a model."
                ),
                "budget-too-small",
            )
        made.least = least
        return made

    def report(self) -> BudgetReport:
        """What the budget did, so far or until its end.  Raises RuntimeError where it was not entered yet."""
        pager = self.pager
        if pager is None:
            raise RuntimeError(
                "memory.budget: there is nothing to report before it is entered (with memory.budget(...) as b)"
            )
        pager.note_peak()
        peak, seconds = self.ended or (allocator.totals().peak, perf_counter() - self.start)
        return BudgetReport(self.limit, peak, max(peak, pager.demand), process_memory()[1], dict(pager.moved_out),
                            dict(pager.moved_in), pager.again, seconds, pager.seconds)  # fmt: skip


_active = threading.Lock()  # held by the budget of this process
