"""Ways to take a training step: what each is called, the code that does it, how it is rehearsed, and how it is done."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rushlight import optim, stores
from rushlight.memory.budgets.budget import budget
from rushlight.memory.counting.account import human
from rushlight.memory.estimates import rehearsals
from rushlight.memory.estimates.rehearsal import Rehearsal
from rushlight.memory.planning.holding import watched
from rushlight.optim.fusing import InBackward

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module
    from rushlight.optim.optimizer import Optimizer

WINDOW = 1 << 24  # bytes that the disk store may hold
Applied = Callable[[Any, Any], AbstractContextManager[Any]]  # to a model and an optimizer


@dataclass(frozen=True)
class Way:
    """One way.

    code: what to write. rehearse: what changes in a rehearsal, None for nothing. apply: of the model and its optimizer, a
    context in which steps are taken this way. exact: whether gradients are those of a plain step, to the bit. limit: bytes
    that a budget leaves, 0 without one.
    """

    name: str
    code: str
    rehearse: rehearsals.Change | None
    apply: Applied
    exact: bool = True
    limit: int = 0
    spill: Any = None  # a directory for what does not fit


@contextmanager
def _recomputing(rehearsal: Rehearsal) -> Iterator[None]:
    with quiet(stores.recompute()):
        yield


def _on_disk(rehearsal: Rehearsal) -> AbstractContextManager[None]:
    return rehearsals.kept_elsewhere(rehearsal, WINDOW)


def _halved(rehearsal: Rehearsal) -> AbstractContextManager[None]:
    return rehearsals.kept_elsewhere(rehearsal, 0, 0.5)


def _store(make: Callable[[], Any]) -> Applied:
    return lambda model, optimizer: quiet(make())


def quiet(store: Any) -> Any:
    """A store that does not say that it found nothing to store: it is only tried."""
    store.warned = True
    return store


@contextmanager
def _fused(model: Module, optimizer: Optimizer, clip: str = "") -> Iterator[None]:
    """optimizer: one, or several, which are not kept alive: what a program has dropped steps no more. clip: how it limits gradients."""
    several = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
    if not several or several[0] is None:
        raise RuntimeError("there is no optimizer that could step in backward")
    limits = {name: float(number) for name, _, number in (part.partition("=") for part in clip.split(", ") if part)}
    if limits and len(several) > 1:
        raise RuntimeError(
            "there are several optimizers, and the program limits the norm of gradients of them all together"
        )
    with ExitStack() as stack:
        while several:
            fusion = optim.in_backward(several[0], **limits)._fusion  # type: ignore[arg-type]
            stack.callback(_separated, weakref.ref(several.pop(0)), weakref.ref(fusion))
            del fusion
        del optimizer
        yield


def _separated(optimizer: Any, fusion: Any) -> None:
    """Have an optimizer step outside of backward again, if it still exists; both are weak references."""
    if optimizer() is not None and fusion() is not None:
        InBackward(optimizer(), fusion()).remove()


PLAIN = Way("plain", "", None, lambda model, optimizer: nullcontext())
FUSED = Way("optimizer in backward", "optim.in_backward(optimizer)", rehearsals.in_backward, _fused)
SAVING = (
    Way("recompute what is cheap", "with stores.recompute():", _recomputing, _store(stores.recompute)),
    Way(
        "saved tensors on disk",
        'with stores.disk(memory="16 MiB"):',
        _on_disk,
        _store(lambda: stores.disk(memory=WINDOW)),
    ),
    Way(
        "saved tensors in bfloat16",
        'with stores.compress("bf16"):',
        _halved,
        _store(lambda: stores.compress("bf16", min_bytes=rehearsals.SMALL)),
        exact=False,
    ),
)
CHECKPOINT = Way(
    "checkpoint each block",
    "checkpoint(block, x, use_reentrant=False)",
    rehearsals.checkpointed,
    lambda model, optimizer: rehearsals.blocks_checkpointed(model),
)


def both(one: Way, other: Way) -> Way:
    """Two ways at once."""

    @contextmanager
    def rehearse(rehearsal: Rehearsal) -> Iterator[None]:
        with ExitStack() as stack:
            for way in (one, other):
                if way.rehearse is not None:
                    stack.enter_context(way.rehearse(rehearsal))
            yield

    @contextmanager
    def apply(model: Module, optimizer: Optimizer) -> Iterator[None]:
        with ExitStack() as stack:
            for way in (one, other):
                stack.enter_context(way.apply(model, optimizer))
            del optimizer  # as in `_fused`
            yield

    return Way(f"{one.name}, {other.name}", f"{one.code}; {other.code}", rehearse, apply, one.exact and other.exact)


def within(limit: int, fused: bool, spill: object = None, clip: str = "") -> Way:
    """A budget of so many bytes for all that the step takes; with the optimizer in backward where there is one to fuse."""

    @contextmanager
    def apply(model: Module, optimizer: Optimizer) -> Iterator[Any]:
        with ExitStack() as stack:
            if fused:
                stack.enter_context(_fused(model, optimizer, clip))
            del optimizer
            yield stack.enter_context(budget(limit, spill))

    code = f"with memory.budget({limit:_}{', optimizer=optimizer' if fused and not clip else ''}):"
    if fused and clip:
        code = f"{clipping(clip).code}; {code}"
    return Way(f"budget of {human(limit)}", code, rehearsals.in_backward if fused else None, apply, True, limit, spill)


def paged(fused: bool) -> rehearsals.Change:
    """How a budget is rehearsed: with what it can send away."""

    @contextmanager
    def rehearse(rehearsal: Rehearsal) -> Iterator[None]:
        with watched(rehearsal), (rehearsals.in_backward if fused else nullcontext)(rehearsal):
            yield

    return rehearse


def limit_of(code: str) -> int:
    """The bytes in the code of a budget."""
    return int(code.partition("memory.budget(")[2].partition(",")[0].rstrip("):"))


def clipping(clip: str) -> Way:
    """The optimizer in backward, which limits gradients as these arguments of `in_backward` say."""
    code = f"optim.in_backward(optimizer, {clip})"
    return replace(FUSED, code=code, apply=lambda model, optimizer: _fused(model, optimizer, clip))


def clip_of(code: str) -> str:
    """The arguments of `in_backward` in the code of a way."""
    return code.partition("in_backward(optimizer, ")[2].partition(")")[0]


def ways_of(setup: rehearsals.Setup, exact: bool) -> list[Way]:
    """The ways but budgets that can be taken, the plain one first.  exact: only those with the same gradients."""
    fusible = setup.optimizer is not None and not setup.is_fused()
    single = [PLAIN, CHECKPOINT, *(way for way in SAVING if way.exact or not exact)]
    return single + ([FUSED, *(both(FUSED, way) for way in single[1:])] if fusible else [])
