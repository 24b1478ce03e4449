"""Rehearsals of one training step in several ways: as it is, and with each technique that saves memory."""

from __future__ import annotations

import copy
import functools
import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight import optim
from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import tree_flatten, tree_unflatten
from rushlight.checkpoint import checkpoint
from rushlight.checkpoint.once import counting_once
from rushlight.dispatch.shapes import order_of
from rushlight.engine.modes import enable_grad, no_grad
from rushlight.engine.saved import Sparing
from rushlight.memory.counting.holders import ACTIVATION
from rushlight.memory.estimates.estimates import PHASES, Estimate, Saving
from rushlight.memory.estimates.processes import Share, shares
from rushlight.memory.estimates.rehearsal import Rehearsal
from rushlight.memory.estimates.standins import BACKWARD_WORK, FORWARD_WORK, standin
from rushlight.memory.recordings.recording import CATEGORIES
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.utils.lora import LoRA, adaptable, put
from rushlight.optim.fusing import InBackward
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.small.eight_bit import FORMS
from rushlight.storage import root_of
from rushlight.tensor import LEAF, Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.nn.modules.module import Module

WORTH = 0.005  # of the peak: what saves less is not mentioned
LESS = ("train the last module alone", "LoRA of rank 8, all else frozen")  # which do not train what was asked for
WRITTEN, READ, PACKED = "to disk", "from disk", "compressed"  # what keeping elsewhere costs: operators of `Work`
LATELY = 64  # saved tensors that are looked at for reading ahead
SMALL = 4096  # bytes up to which a store leaves saved tensors where they are
MISFITS = (RuntimeError, ValueError, IndexError)  # of tensors whose sizes do not go together
Change = Callable[[Rehearsal], Any]


class Setup:
    """What is estimated: the arguments of `estimate`."""

    def __init__(
        self,
        model: Any,
        sample: Any,
        optimizer: Any,
        loss: Callable[..., Any] | None,
        train: bool,
    ):
        self.model, self.optimizer, self.loss, self.train = model, optimizer, loss, train
        self.change: Change | None = None  # how every step is taken, unless another way is asked for
        self.by_shape = is_shape(sample)
        self.sample = wrap(standin(sample, np.float32)) if self.by_shape else sample
        sizes = [x._held.shape[0] for x in tree_flatten(self.sample)[0] if isinstance(x, Tensor) and x._held.ndim]
        self.batch = sizes[0] if sizes else 1

    def rehearse(self, change: Change | None = None, batch: int | None = None) -> Rehearsal:
        """Two steps with `change`, a function giving a context, and a batch of another size."""
        rehearsal = Rehearsal(self.model, self.optimizer)
        with ExitStack() as stack:
            sample = self.sample
            if batch is not None and batch != self.batch:
                sample = resized(sample, self.batch, batch)
                stack.enter_context(resized_in_place(tensors_of(self.loss), self.batch, batch))
            stack.enter_context(rehearsal)
            change = change or self.change
            if change is not None:
                stack.enter_context(change(rehearsal))
            inputs = rehearsal.inputs(sample)
            if self.train:
                stack.enter_context(enable_grad())
                for _ in range(2):
                    rehearsal.step(inputs, self.loss)
            else:
                with no_grad():
                    rehearsal.forward(inputs)
        return rehearsal

    def estimate(self, processes: int = 1) -> Estimate:
        """The figures of the step as it is; what each of several processes needs."""
        rehearsal = self.rehearse()
        tally = rehearsal.tally
        most = tally.most()
        named = {PHASES[k]: n for k, n in sorted(tally.by_phase.items())}
        parameters, gradients, state, activations, inputs = (
            most[CATEGORIES.index(c)] for c in ("parameter", "gradient", "optimizer_state", "activation", "input")
        )
        found = Estimate(parameters, gradients, state, activations, inputs, tally.peak,
                         max(named, key=lambda name: named[name]), tally.at_peak(), tally.modules_at_peak(), named,
                         rehearsal.level.ran, rehearsal.level.read, {}, tally, self)  # fmt: skip
        return found if processes == 1 else replace(found, processes=self.dealt(rehearsal, found, processes))

    def dealt(self, rehearsal: Rehearsal, found: Estimate, processes: int) -> dict[str, Share]:
        """What each of several processes needs, where each block of the model is dealt to them by itself."""
        if not isinstance(processes, int) or processes < 1:
            raise ValueError(f"estimate: expected a number of processes, got {processes!r}")
        dealt, sizes = set(), []
        for block in [*blocks(rehearsal.model), rehearsal.model]:
            own = [p for p in block.parameters() if id(p) not in dealt]
            dealt |= {id(p) for p in own}
            sizes.append([p.nbytes for p in own])
        return shares(found, sizes[:-1], sizes[-1], processes, rehearsal.in_backward, self.train)

    # Techniques -------------------------------------------------------------------------------------

    def savings(self, peak: int) -> list[Saving]:
        """Every technique that lowers the peak by more than next to nothing; those that train less, and so something else, last."""
        found = []
        for name, how, change, batch in self.techniques():
            try:
                least = self.rehearse(change, batch).tally.peak
            except MISFITS:
                if batch is None:
                    raise
                continue  # the loss needs targets of the size that the batch has
            if peak - least >= peak * WORTH:
                found.append(Saving(name, least, peak - least, how))
        return sorted(found, key=lambda s: (s.name in LESS, s.peak))

    def techniques(self) -> Iterator[tuple[str, str, Change | None, int | None]]:
        """Name, how to do it, and what to rehearse."""
        if self.train:
            yield "checkpoint each block", "checkpoint(block, x, use_reentrant=False)", checkpointed, None
            yield "saved tensors on disk", "with stores.disk():", stored, None
            yield LESS[0], "requires_grad_(False) on the others: trains less", frozen, None
        if self.train and self.optimizer is not None and not self.is_fused():
            yield "optimizer in backward", "optim.in_backward(optimizer)", in_backward, None
            yield "checkpoint, and optimizer in backward", "both", both, None
        form = form_of(self.optimizer)
        if self.train and form is not None:
            yield "optimizer state in 8 bits", f"optim.{form}(optimizer.param_groups)", in_8_bits, None
        if self.train:
            yield LESS[1], "nn.utils.lora.apply(model): trains less", adapted, None
        if self.batch > 1:
            yield f"half the batch ({self.batch // 2})", "accumulate gradients over two", None, self.batch // 2

    def is_fused(self) -> bool:
        """Whether the optimizer steps inside backward already."""
        return isinstance(self.optimizer, InBackward) or getattr(self.optimizer, "_in_backward", None) is not None

    def largest_batch(self, limit: int, peak: int) -> int:
        """The most samples whose peak is within `limit`: guesses on straight lines, each rehearsed."""
        low, low_peak = 1, peak if self.batch == 1 else self.peak_with(1)
        if low_peak > limit:
            raise ValueError(
                f"largest_batch: a batch of one sample needs {low_peak:,} bytes, and the limit is {limit:,}"
            )
        high, high_peak = (self.batch, peak) if self.batch > 1 else (2, self.peak_with(2))
        while high_peak <= limit:
            slope = (high_peak - low_peak) / (high - low)
            if slope < 1:
                raise ValueError("largest_batch: the peak does not grow with the first dimension of the sample")
            further = min(math.ceil(high + (limit - high_peak) / slope * 1.02) + 1, high * 1000)
            low, low_peak, high, high_peak = high, high_peak, further, self.peak_with(further)
        while high - low > 1:
            at_line = low + int((limit - low_peak) * (high - low) / max(high_peak - low_peak, 1))
            guess = min(max(at_line, low + 1), high - 1)
            at = self.peak_with(guess)
            if at > limit:
                high, high_peak = guess, at
                continue
            low, low_peak = guess, at
            if low + 1 < high and self.peak_with(low + 1) > limit:
                return low
        return low

    def peak_with(self, batch: int) -> int:
        """The peak with a batch of another size."""
        try:
            return self.rehearse(None, batch).tally.peak
        except MISFITS as error:
            error.add_note(f"This happened with a batch of {batch} instead of {self.batch}. Tensors that depend on its size "
                           "must be in the sample, or be variables that `loss` refers to.")  # fmt: skip
            raise


def is_shape(sample: object) -> bool:
    """Whether a sample is a shape: a tuple of ints."""
    return isinstance(sample, tuple) and bool(sample) and all(isinstance(n, int) for n in sample)


# Batches of other sizes ---------------------------------------------------------------------------------------


def resized(sample: object, batch: int, to: int) -> Any:
    """A sample whose tensors have another first dimension."""
    leaves, spec = tree_flatten(sample)
    return tree_unflatten([resized_tensor(x, batch, to) for x in leaves], spec)


def resized_tensor(x: object, batch: int, to: int) -> Any:
    """A tensor with another first dimension, if that is the batch; anything else as it is."""
    if not isinstance(x, Tensor) or not x._held.ndim or x._held.shape[0] != batch:
        return x
    made = wrap(standin((to, *x._held.shape[1:]), x._held.dtype))
    made._edge = LEAF if x._edge is LEAF else None
    return made


def tensors_of(loss: Any) -> list[Tensor]:
    """The tensors that a function refers to."""
    if isinstance(loss, functools.partial):
        return [x for x in (*loss.args, *loss.keywords.values()) if isinstance(x, Tensor)] + tensors_of(loss.func)
    code = getattr(loss, "__code__", None)
    if code is None:
        return []
    cells = [cell.cell_contents for cell in loss.__closure__ or ()]
    values = [*cells, *(loss.__globals__.get(name) for name in code.co_names), *(loss.__defaults__ or ())]
    return [x for x in values if isinstance(x, Tensor)]


@contextmanager
def resized_in_place(tensors: list[Tensor], batch: int, to: int) -> Iterator[None]:
    """Tensors with another first dimension, for a while."""
    former = [(t, t._held, t._storage, t._view) for t in tensors]
    try:
        for t in tensors:
            t._held, t._storage, t._view = resized_tensor(wrap(t._held), batch, to)._held, None, None
        yield
    finally:
        for t, array, storage, view in former:
            t._held, t._storage, t._view = array, storage, view


# What changes in a rehearsal ------------------------------------------------------------------------------------


@contextmanager
def in_backward(rehearsal: Rehearsal) -> Iterator[None]:
    """Each parameter is stepped, and its gradient dropped, inside backward."""
    rehearsal.in_backward = True
    yield


def blocks(model: Module) -> list[Any]:
    """The modules that a model repeats: members of its outermost lists and sequences that have modules of their own."""
    if isinstance(model, (ModuleList, Sequential)):
        parts = list(model.children())
        compound = [m for m in parts if any(True for _ in m.children())]
        if len(compound) > 1:
            return compound
        if parts and not compound:
            return []
    return [m for child in model.children() for m in blocks(child)]


@contextmanager
def checkpointed(rehearsal: Rehearsal) -> Iterator[None]:
    """Each block of the model is computed again in the backward."""
    with blocks_checkpointed(rehearsal.model):
        yield


@contextmanager
def blocks_checkpointed(model: Module) -> Iterator[None]:
    """Each block of a model runs under `checkpoint`."""
    changed = [m for m in blocks(model) if "forward" not in m.__dict__]
    for m in changed:
        contexts = functools.partial(counting_once, m)
        m.__dict__["forward"] = functools.partial(checkpoint, m.forward, use_reentrant=False, context_fn=contexts)
    try:
        yield
    finally:
        for m in changed:
            del m.__dict__["forward"]


@contextmanager
def both(rehearsal: Rehearsal) -> Iterator[None]:
    """Blocks checkpointed and the optimizer in backward."""
    with checkpointed(rehearsal), in_backward(rehearsal):
        yield


@contextmanager
def frozen(rehearsal: Rehearsal) -> Iterator[None]:
    """Nothing but the last module with parameters is trained."""
    owners = [m for m in rehearsal.model.modules() if any(p._edge is LEAF for p in m.parameters(False))]
    kept = {id(p) for p in owners[-1].parameters(False)} if owners else set()
    for p in rehearsal.model.parameters():
        if id(p) not in kept:
            p._edge = None
    yield


@contextmanager
def stored(rehearsal: Rehearsal) -> Iterator[None]:
    """Saved tensors are kept elsewhere until they are used."""
    with kept_elsewhere(rehearsal):
        yield


class Elsewhere:
    """Saved tensors that are somewhere else until backward asks for them: by where they lay, once each.

    window: bytes that wait to be written, and that are read ahead. share: the part of a tensor's bytes that stays.
    """

    def __init__(self, rehearsal: Rehearsal, window: int = 0, share: float = 0.0):
        self.tally, self.window, self.share = rehearsal.tally, window, share
        self.kept = {id(root_of(p._held)) for p in (*rehearsal.model.parameters(), *rehearsal.model.buffers())}
        self.back: dict[Any, Any] = {}  # weak references to what was brought back
        self.waiting: dict[Any, Any] = {}  # arrays that are not written yet
        self.order: list[Any] = []  # keys, as they were saved
        self.ahead: dict[Any, Any] = {}  # arrays that were read before they were asked for
        self.parts: dict[Any, Any] = {}  # what stays of each, weakly

    def pack(self, t: Tensor) -> Any:
        """Where a tensor is, and what stays of it."""
        array = t._held
        root = root_of(array)
        if array.nbytes <= SMALL or id(root) in self.kept:
            return t
        key = array.shape, array.dtype, order_of(array), array.__array_interface__["data"][0]
        if key not in self.order[-LATELY:]:
            self.order.append(key)
        return key, self.part_of(key, array, root)

    def part_of(self, key: object, array: Array, root: Any) -> Any:
        """What stays of a memory: one stand-in, however many tensors on it are saved."""
        place = id(root)
        known = self.parts.get(place)
        if known is not None and known[0]() is root:
            return known[1]
        part = standin((int(root.nbytes * self.share),), np.dtype(np.uint8)) if self.share else None
        if part is not None:
            self.tally.add(part, "pack", ACTIVATION)
        self.parts[place] = weakref.ref(root, lambda _: self.parts.pop(place, None)), part
        self.tally.worked(FORWARD_WORK, PACKED if self.share else WRITTEN, 0, self.tally.uses((root,)), (root,))
        if root.nbytes <= self.window:
            self.waiting[key] = array
            while self.held() > self.window:
                del self.waiting[next(iter(self.waiting))]
        return part

    def held(self) -> int:
        """Bytes of what waits and of what was read ahead."""
        roots = {id(root): int(root.nbytes) for root in map(root_of, (*self.waiting.values(), *self.ahead.values()))}
        return sum(roots.values())

    def unpack(self, packed: Any) -> Tensor:
        """The tensor again; those before it are read ahead as far as the window goes."""
        if isinstance(packed, Tensor):
            return packed
        key = packed[0]
        found = self.restored(key)
        self.waiting.pop(key, None)
        while self.order and self.order.pop() != key:
            pass
        self.ahead.pop(key, None)
        room = self.window - self.held()
        for other in reversed(self.order[-LATELY:] if self.window else ()):
            if other not in self.ahead and other not in self.waiting:
                room -= int(np.prod(other[0])) * other[1].itemsize
                if room < 0:
                    break
                self.ahead[other] = self.restored(other)
        return wrap(found)

    def restored(self, key: Any) -> Any:
        """The array that was saved under a key."""
        found = self.waiting.get(key)
        if found is None and key in self.back:
            found = self.back[key]()
        if found is None:
            found = standin(*key[:3])
            self.tally.add(found, "unpack")
            self.tally.worked(BACKWARD_WORK, PACKED if self.share else READ, 0, self.tally.uses(()), (found,))
            self.back[key] = weakref.ref(found)
        return found


@contextmanager
def kept_elsewhere(rehearsal: Rehearsal, window: int = 0, share: float = 0.0) -> Iterator[None]:
    """Saved tensors as `Elsewhere` keeps them."""
    keeper = Elsewhere(rehearsal, window, share)
    with Setting("saved_hooks", (*modes.saved_hooks, Sparing((keeper.pack, keeper.unpack)))):
        yield


def form_of(optimizer: object) -> str | None:
    """The 8-bit form of an optimizer, or of a class of such."""
    optimizer = optimizer.optimizer if isinstance(optimizer, InBackward) else optimizer
    kind = optimizer if isinstance(optimizer, type) else type(optimizer)
    return FORMS.get(kind.__name__) if issubclass(kind, Optimizer) else None


@contextmanager
def in_8_bits(rehearsal: Rehearsal) -> Iterator[None]:
    """The optimizer's state lies in 8 bits where it can."""
    groups = [
        dict(group)
        for group in rehearsal.optimizer.param_groups
        if group.get("momentum", 1) and not group.get("amsgrad")
    ]
    if groups:
        rehearsal.optimizer = getattr(optim, str(form_of(rehearsal.optimizer)))(groups)
    yield


@contextmanager
def adapted(rehearsal: Rehearsal) -> Iterator[None]:
    """Adapters of rank 8 beside each Linear and convolution are trained, and nothing else."""
    model = rehearsal.model
    former = {name: m for name, m in model.named_modules(remove_duplicate=False) if name and adaptable(m)}
    for p in model.parameters() if former else ():
        p._edge = None
    made: dict[int, LoRA] = {}
    for name, layer in former.items():
        if id(layer) not in made:
            with Setting("levels", ()):
                made[id(layer)] = LoRA(layer)
            rehearsal.adopt([made[id(layer)].lora_A.weight, made[id(layer)].lora_B.weight])
        put(model, name, made[id(layer)])
    adapters = [p for m in made.values() for p in (m.lora_A.weight, m.lora_B.weight)]
    if rehearsal.optimizer is not None and adapters:
        rehearsal.optimizer = copy.copy(rehearsal.optimizer)
        rehearsal.optimizer.param_groups = [{**rehearsal.optimizer.param_groups[0], "params": adapters}]
    try:
        yield
    finally:
        for name, layer in former.items():
            put(model, name, layer)
