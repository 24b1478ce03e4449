"""One checkpointed call: what was saved and is not kept, and how it is computed again.

Forward runs under a pair of saved-tensor hooks that keep nothing but a `Holder` for each tensor an operator saves.  The
first `Holder` that a backward run unpacks runs the function again, under hooks that fill in the tensors in the same
order.  Each tensor is handed over once and forgotten, and a run takes what is left with it when it ends.
"""

from __future__ import annotations

import contextlib
import weakref
import zlib
from collections.abc import Callable
from typing import Any

from rushlight.basics import caller, tree
from rushlight.basics.events import Observation
from rushlight.basics.state import Setting, modes
from rushlight.checkpoint.differences import (
    CheckpointError,
    Record,
    check_count,
    compare,
    describe,
    too_many,
)
from rushlight.engine import anomaly
from rushlight.engine.node import edge_of
from rushlight.engine.saved import DETACHED, Anything, Packed, Stop, active_hooks, detached, stale
from rushlight.generator import default_generator
from rushlight.storage import storage_of
from rushlight.tensor import Tensor


class Settings:
    """The process-wide switches, set by the context managers in `checkpoint.api`."""

    early_stop: bool | None = None
    debug: bool | None = None


class Input:
    """A tensor argument, kept for the second run of the function: as the saved-tensor hooks outside pack it."""

    __slots__ = ("inside", "kept", "tensor", "version")

    def __init__(self, tensor: Tensor, hooks: tuple[Any, ...]):
        self.version = tensor._version if not tensor._inference else 0
        self.inside = not tensor.is_leaf
        self.kept = Packed(tensor, hooks, ("checkpoint", "input")) if hooks else None
        self.tensor = tensor if self.kept is None else edge_of(tensor)

    def restored(self) -> Tensor:
        """The argument.  Raises RuntimeError if it was changed in place, or detached, since."""
        if self.kept is not None:
            return self.kept.tensor(self.tensor)
        t = self.tensor
        if not t._inference and t._version != self.version:
            stale(
                InputNode,
                "an input, to run the function again",
                t._array.shape,
                t._version,
                self.version,
                storage_of(t),
            )
        if self.inside and t._edge is None and t._view is None:
            raise RuntimeError(DETACHED)
        return t


class InputNode:
    """Who saved the inputs, as error messages ask."""

    extra = None

    @staticmethod
    def name() -> str:
        """The name in messages."""
        return "torch.utils.checkpoint"


class Again:
    """A tensor that the second run saved, or what hooks made of it."""

    __slots__ = ("value", "version")

    def __init__(self, value: Any):
        self.value = value
        self.version = storage_of(value).version if isinstance(value, Tensor) and not value._inference else None

    def unpacked(self) -> Any:
        """What was saved.  Raises RuntimeError for a tensor that the rest of the function changed in place."""
        if self.version is not None and (storage := storage_of(self.value)).version != self.version:
            shape, what = self.value._array.shape, "a tensor, when its function ran again"
            stale(InputNode, what, shape, storage.version, self.version, storage)
        return self.value


class Holder:
    """What a node keeps in the place of a saved tensor: its number in the frame."""

    __slots__ = ("__weakref__", "frame", "index")

    def __init__(self, frame: Frame, index: int):
        self.frame, self.index = frame, index


class Frame:
    """One checkpointed call."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        contexts: tuple[Any, ...],
        preserve_rng: bool,
        check: str,
        debug: bool,
        early_stop: bool,
    ):
        self.function, self.check, self.early_stop = function, check, early_stop
        self.contexts = contexts
        hooks = active_hooks()
        leaves, self.spec = tree.tree_flatten((args, kwargs))
        self.inputs = [Input(x, hooks) if isinstance(x, Tensor) else x for x in leaves]
        self.grad, self.levels = modes.grad, modes.levels
        self.autocast = None if modes.autocast is None else modes.autocast.anew()
        self.rng = default_generator.state_words() if preserve_rng else None
        self.holders: list[Any] = []  # weak: a tensor that nobody needs any more is not computed again
        self.records: list[Record] = []
        self.log: list[str] | None = [] if debug else None
        self.complete = False
        # By run: what was computed again and waits to be unpacked.  A run that ends takes its entry along.
        self.again: weakref.WeakKeyDictionary[Any, dict[int, Again]] = weakref.WeakKeyDictionary()

    # Forward ---------------------------------------------------------------------------------------

    def forward(self, args: Any, kwargs: Any) -> Any:
        """The first run."""
        hooks = Setting("saved_hooks", (Anything((self.pack, unpack)),))
        with hooks, self.contexts[0], logging(self.log):
            result = self.function(*args, **kwargs)
        self.complete = True
        return result

    def pack(self, value: object) -> Holder:
        """Keep a holder for a saved tensor, or for what hooks inside the function made of it."""
        holder = Holder(self, len(self.holders))
        self.holders.append(weakref.ref(holder))
        if self.check != "none":
            self.records.append(record_of(value, self.check))
        return holder

    # Backward --------------------------------------------------------------------------------------

    def unpack(self, holder: Holder) -> Any:
        """The tensor of a holder, computed again if this run has not done so yet."""
        run = modes.run if Group.active is None else Group.active
        if run is None:
            return self.recomputed(holder)[holder.index].unpacked()
        found = self.again.get(run)
        if found is None or holder.index not in found:
            if found is None:
                found = self.again[run] = self.recomputed(holder)
            else:  # it was handed over before: for this one alone
                return self.recomputed(holder)[holder.index].unpacked()
        return (found[holder.index] if Group.active is not None else found.pop(holder.index)).unpacked()

    def recomputed(self, holder: Holder) -> dict[int, Again]:
        """Run the function again; the tensors by number that somebody still waits for."""
        refuse_if_disabled()
        found: dict[int, Again] = {}
        log: list[str] | None = None if self.log is None else []
        recall, ended = Recall(self, found), False
        args, kwargs = tree.tree_unflatten(
            [x.restored() if isinstance(x, Input) else x for x in self.inputs], self.spec
        )
        try:
            with contextlib.ExitStack() as stack:
                for name, value in (
                    ("grad", self.grad),
                    ("levels", self.levels),
                    ("autocast", self.autocast),
                    ("node", None),
                ):
                    stack.enter_context(Setting(name, value))
                stack.enter_context(Setting("saved_hooks", (Anything((recall.pack, lambda x: x)),)))
                stack.enter_context(Random(self.rng))
                stack.enter_context(guarded(recall))
                stack.enter_context(self.contexts[1])
                stack.enter_context(logging(log))
                try:
                    self.function(*args, **kwargs)
                    ended = True
                except Stop as stop:
                    if stop.args[0] is not self:
                        raise
            if ended:
                check_count(self, recall.count, holder.index in found)
        except CheckpointError as error:
            if self.log is not None:
                error.args = (describe(self.log, log or [], str(error)),)
            raise
        return found


class Recall:
    """The hooks of a second run: they keep the tensors that holders of the first run wait for."""

    def __init__(self, frame: Frame, found: dict[int, Again]):
        self.frame, self.found, self.count = frame, found, 0
        self.limit = len(frame.holders)  # fewer than there will be, if a gradient is taken inside the first run
        self.waiting = sum(ref() is not None for ref in frame.holders)

    def pack(self, value: Any) -> Any:
        """Compare with the first run, and keep the tensor for its holder."""
        frame, index = self.frame, self.count
        self.count += 1
        if index >= self.limit:
            if frame.check != "none":
                too_many(frame, record_of(value, "default"))
            return value
        if frame.check != "none":
            compare(frame.records[index], record_of(value, frame.check), index)
        if frame.holders[index]() is not None:
            within = isinstance(value, Tensor) and (value.requires_grad or value._tangents is not None)
            self.found[index] = Again(detached(value) if within else value)  # without the second graph
            self.waiting -= 1
        if self.waiting == 0 and (frame.early_stop or not frame.complete):
            raise Stop(frame)
        return value


def refuse_if_disabled() -> None:
    """Raise RuntimeError where saved-tensor hooks, which both runs need, are disabled."""
    if modes.saved_hooks_disabled is not None:
        raise RuntimeError(modes.saved_hooks_disabled)


def guarded(recall: Any = None) -> Any:
    """A context that objects where a second run would not repeat the first: parameters have been stepped meanwhile."""
    guard = getattr(modes.run, "recomputing", None)
    return contextlib.nullcontext() if guard is None else guard(recall)


def unpack(holder: Holder) -> Any:
    """The unpack hook of every frame."""
    return holder.frame.unpack(holder)


def record_of(value: object, check: str) -> Record:
    """What is remembered of a saved tensor to compare it with."""
    frame = caller.user_frame()
    where = ("an unknown line", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    if not isinstance(value, Tensor):
        return Record(modes.saving, where, type(value).__name__, None, None)
    a = value._array
    while check == "values" and getattr(a, "interpreted", False):  # inside vmap: all samples
        a = a.tensor._array
    checksum = zlib.crc32(a.tobytes()) if check == "values" else None
    return Record(modes.saving, where, tuple(value._array.shape), value.dtype, checksum)


class Random:
    """Restores the random generator: for the second run that of the first, and afterwards that of before."""

    def __init__(self, words: Any):
        self.words = words

    def __enter__(self) -> None:
        if self.words is not None:
            self.former = default_generator.state_words()
            default_generator.set_state_words(self.words)

    def __exit__(self, *error: object) -> None:
        if self.words is not None:
            default_generator.set_state_words(self.former)


class Log:
    """An observer that lists operators with the user's line."""

    passive = False

    def __init__(self, lines: list[str]):
        self.lines = lines

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> None:
        """Note an operator."""
        if kind > 1:
            return
        shapes = ", ".join(str(list(x._array.shape)) if isinstance(x, Tensor) else str(x)
                           for i in inputs for x in (i if isinstance(i, (tuple, list)) else (i,)))  # fmt: skip
        self.lines.append(f"{what.name}{'_' if kind else ''}({shapes})  at {anomaly.user_line()}")

    def end(self, *_: Any) -> None:
        """Nothing to note."""


def logging(lines: list[str] | None) -> Any:
    """A context that lists the operators that run in it, where `lines` is a list."""
    return contextlib.nullcontext() if lines is None else Observation(Log(lines))


class Group:
    """Backward runs that share one recomputation: within it tensors computed again are kept until it ends.

    >>> import rushlight as torch
    >>> from rushlight.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = checkpoint(torch.sin, x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     y.sum().backward(retain_graph=True)
    ...     y.sum().backward()
    """

    active: Any = None

    def __enter__(self) -> Group:
        if Group.active is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        Group.active = self
        return self

    def __exit__(self, *error: object) -> None:
        Group.active = None
