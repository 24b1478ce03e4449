"""Backward runs in which optimizers step: what is done at each leaf, before a run and after it.

While no optimizer is fused nothing here runs: `special.launcher` is None, and `backward` starts its run itself.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight.autograd.function import FunctionNode
from rushlight.basics import heap
from rushlight.basics.events import FUNCTION, INPLACE, OPERATOR, Observation
from rushlight.basics.state import modes, special
from rushlight.engine.observed import ObservedRun
from rushlight.engine.run import Run
from rushlight.generator import default_generator
from rushlight.kernels import allocator
from rushlight.optim.fused_step import Fusion, Turn
from rushlight.overrides.protocol import users
from rushlight.tensor import Tensor, wrap
from rushlight.utils.weak import WeakIdRef

if TYPE_CHECKING:
    from rushlight.checkpoint.frame import Recall
    from rushlight.dispatch.declare import Op
    from rushlight.engine.node import Node

TRIM = 1 << 28  # bytes in use from which on less than a millisecond does not matter


class FusedRun(Run):
    """A run in which parameters are stepped.  session: what belongs to it; nested: whether it runs inside another."""

    session: Session
    nested = False

    def loop(self, ready: list[Any]) -> None:
        if not self.nested:
            self.session.begin(self.records, self.create and self.record)
        super().loop(ready)

    def leaf(self, leaf: Tensor, record: list[Any]) -> None:
        turn = self.session.turns_of.get(id(leaf))
        if self.dry:
            self.look(turn, leaf, record)
            return
        super().leaf(leaf, record)
        if turn is not None and not leaf._awaited:
            users(turn.arrived, leaf, self.nested)

    def completed(self, leaf: Tensor) -> None:
        turn = self.session.turns_of.get(id(leaf))
        if turn is not None:
            users(turn.arrived, leaf, self.nested)

    def look(self, turn: Turn | None, leaf: Tensor, record: list[Any]) -> None:
        """Look at the gradient of a leaf and leave the leaf as it was."""
        if turn is None or not turn.two_runs:
            record[1] = None
            return
        former = leaf._grad
        leaf._grad = None if former is None else wrap(former._array.copy())
        try:
            super().leaf(leaf, record)
            if leaf._grad is not None:
                turn.look(leaf)
        finally:
            leaf._grad = former

    def recomputing(self, recall: Any = None) -> contextlib.AbstractContextManager[Any]:
        """Around a checkpointed function that runs again: an error if it uses a parameter that has been stepped."""
        if not any(turn.done for turn in self.session.turns):
            return contextlib.nullcontext()
        return Observation(Reader(self.session, recall))


class ObservedFusedRun(FusedRun, ObservedRun):
    """The same, while somebody observes."""


class Session:
    """One backward call, with the runs inside it, and what it is to each optimizer that is fused."""

    def __init__(self, turns: list[Turn]):
        self.turns = turns
        self.turns_of: dict[int, Turn] = {}
        self.dry = self.begun = False
        for turn in turns:
            if not self.turns_of.keys().isdisjoint(turn.places):
                raise RuntimeError("in_backward: two optimizers that step inside backward share a parameter: remove() the "
                                   "handle of one")  # fmt: skip
            self.turns_of.update(dict.fromkeys(turn.places, turn))

    def execute(self, run: Run, roots: Any) -> Any:
        """Run backward, with what comes before and after."""
        # The peak of memory comes now: what is free between arrays in use is given back, where it may be much.
        if allocator.installed() and allocator.totals().bytes > TRIM:
            heap.give_back()
        try:
            if any(turn.two_runs for turn in self.turns):
                self.begin(run.survey(roots), run.create and run.record)
                if any(turn.reached and turn.two_runs for turn in self.turns):
                    self.find_norms(run, roots)
            found = self.adopt(run).execute(roots)
            for turn in self.turns:
                turn.finish()
                turn.note(max(map(number_of, roots), default=0))
            return found
        except BaseException as error:
            for turn in self.turns:
                turn.failed(error)
            raise
        finally:
            for turn in self.turns:
                turn.release()

    def adopt(self, run: Any) -> Any:
        """Make an ordinary run one of ours."""
        run.__class__ = ObservedFusedRun if special.observing else FusedRun
        run.session = self
        return run

    def begin(self, records: dict[Any, Any], create: bool) -> None:
        """A run is about to begin that reaches the nodes and leaves in `records`."""
        if self.begun:
            return
        self.begun = True
        late = any(isinstance(node, FunctionNode) and runs_backward(node) for node in records)
        for turn in self.turns:
            turn.begin(records, late)
            if create and turn.reached:
                raise RuntimeError(
                    "backward(create_graph=True) through parameters of an optimizer that steps inside backward "
                    "(optim.in_backward): the recorded gradients need the parameters as they were. Use autograd.grad(..., "
                    "create_graph=True) for them, or step after backward."
                )

    def find_norms(self, run: Run, roots: object) -> None:
        """Run backward once to find norms, so that nothing but they remains, random numbers included."""
        words = default_generator.state_words()
        first = self.adopt(Run(True, run.create, run.targets, True))
        first.record, first.dry = run.record, True
        self.dry = True
        try:
            first.execute(roots)
            for turn in self.turns:
                if turn.two_runs and turn.reached:
                    turn.looked()
        finally:
            self.dry = False
            default_generator.set_state_words(words)

    def nested(self, run: Run, roots: Any) -> dict[str, Any]:
        """Run a backward that was called inside this one."""
        if self.dry:
            raise RuntimeError(
                "in_backward: backward was called inside a backward that only finds norms, to clip by them. Give the custom "
                "function that calls it the attribute runs_backward = True, or pass clip_passes=1."
            )
        self.adopt(run).nested = True
        return run.execute(roots)


def number_of(root: tuple[Tensor | Node, ...]) -> int:
    """When what a run begins with was computed, in the order of nodes; later than all for a leaf."""
    edge = root[0]
    return int(getattr(getattr(edge, "node", edge), "seq", sys.maxsize))


def runs_backward(node: Any) -> bool:
    """Whether the custom function of a node says that its backward runs another."""
    return getattr(node.ctx._function, "runs_backward", False)


class Reader:
    """An observer that objects to operators on parameters that have been stepped."""

    passive = False

    def __init__(self, session: Session, recall: Recall):
        self.session, self.recall = session, recall
        self.stepped = {at: turn for turn in session.turns for at in turn.done}
        done = [p for turn in session.turns for p in turn.done.values()]
        self.storages = {id(p._storage) for p in done if p._storage is not None}

    def begin(self, kind: int, what: Op, inputs: tuple[Tensor, ...], statics: Any) -> None:
        """An operator is called."""
        if kind not in (OPERATOR, INPLACE, FUNCTION) or (self.recall is not None and self.recall.waiting == 0):
            return
        for x in inputs:
            for t in x if isinstance(x, (tuple, list)) else (x,):
                if isinstance(t, Tensor) and (id(t) in self.stepped or id(t._storage) in self.storages):
                    self.refuse(what, t)

    def refuse(self, what: Op, t: Tensor) -> None:
        """Raise the error."""
        turn = self.stepped.get(id(t))
        name = "a parameter" if turn is None else turn.described(t)
        raise RuntimeError(
            f"in_backward: a checkpointed function runs again and calls {getattr(what, 'name', what)} on {name}, which has "
            "been stepped in this backward, so that it would not compute what it did before. Use the parameter in this "
            "function where gradients reach it, compute what depends on it outside, or step after backward."
        )

    def end(self, *_: Any) -> None:
        """Nothing to do."""


class Entry:
    """A fused optimizer as the launcher knows it: weakly.  untried: weak references to its parameters until a step."""

    def __init__(self, fusion: Fusion, forget: Callable[..., Any]):
        self.fusion = weakref.ref(fusion, forget)
        self.untried = fusion.untried


class Launcher:
    """Starts backward runs while any optimizer is fused."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.orphans: list[
            Any
        ] = []  # weak references to parameters whose optimizer is gone without ever having stepped
        self.lock = threading.RLock()

    def __call__(self, run: Run, roots: Any) -> Any:
        """Run backward, for `autograd.backward`."""
        outer = getattr(modes.run, "session", None)
        if outer is not None:
            return outer.nested(run, roots)
        if self.orphans:
            self.check_orphans(run, roots)
        return Session([Turn(fusion, owner) for fusion, owner in self.living()]).execute(run, roots)

    def living(self) -> list[tuple[Fusion, Any]]:
        """The optimizers that are fused, with what they declared."""
        found = []
        for entry in list(self.entries.values()):
            fusion = entry.fusion()
            owner = None if fusion is None else fusion.owner()
            if owner is not None:
                found.append((fusion, owner))
        return found  # type: ignore[return-value]

    def add(self, fusion: Fusion) -> None:
        """From now on `fusion`'s optimizer steps inside backward."""
        at, mine = id(fusion), weakref.ref(self)

        def forget(_: object) -> None:
            launcher = mine()
            if launcher is not None:
                launcher.drop(at, True)

        with self.lock:
            self.entries[at] = Entry(fusion, forget)
            special.launcher = self

    def drop(self, at: int, gone: bool) -> None:
        """An optimizer no longer steps inside backward: its handle was removed, or it is `gone`."""
        with self.lock:
            entry = self.entries.pop(at, None)
            if entry is not None and gone:
                self.orphans += [ref for ref in entry.untried if ref() is not None]
            if not self.entries and not self.orphans:
                special.launcher = None

    def check_orphans(self, run: Run, roots: Any) -> None:
        """Raise RuntimeError where a backward run reaches parameters that nobody steps although somebody should."""
        with self.lock:
            orphans, self.orphans = [p for p in (ref() for ref in self.orphans) if p is not None], []
            if not self.entries:
                special.launcher = None
        records = run.survey(roots) if orphans else {}
        if any(p in records for p in orphans):
            raise RuntimeError(
                "in_backward: the optimizer that was to step inside backward no longer exists, and it has never stepped: "
                "nobody held it. Keep the optimizer, or the handle that in_backward() returned, as long as you train."
            )
        self.orphans = [WeakIdRef(p) for p in orphans]
        special.launcher = self if self.orphans or self.entries else None

    def cleared(self, params: Any, set_to_none: bool) -> None:
        """Gradients of parameters were dropped: all of an optimizer's, as by its own `zero_grad`, or some."""
        ids = {id(p) for p in params}
        for fusion, owner in self.living():
            if all(id(p) in ids for group in owner.param_groups for p in group["params"]):
                fusion.cleared(owner, set_to_none)

    def clipped(self, params: list[Any], asked: dict[str, Any]) -> Any:
        """What the steps of the optimizer that has these parameters, all of them, share, if the last clipped as is asked for; or None."""
        ids = {id(p) for p in params if p.requires_grad}
        for fusion, owner in self.living():
            if ids == {id(p) for group in owner.param_groups for p in group["params"] if p.requires_grad}:
                return fusion if fusion.clips(asked) else None
        return None

    def owner_of(self, params: Any) -> Any:
        """The first fused optimizer that has any of these parameters, or None."""
        ids = {id(p) for p in params}
        for _, owner in self.living():
            if any(id(p) in ids for group in owner.param_groups for p in group["params"]):
                return owner
        return None


launcher = Launcher()
