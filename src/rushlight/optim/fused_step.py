"""How one optimizer steps inside backward: what was declared, how far the step at hand has come, and stepping itself."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from rushlight.basics import caller
from rushlight.basics.events import MARK, observed
from rushlight.basics.state import special
from rushlight.engine.accumulate import awaits
from rushlight.engine.modes import no_grad
from rushlight.engine.node import next_seq
from rushlight.optim import moments
from rushlight.optim.clipping import Clipping
from rushlight.optim.optimizer import Optimizer, run_post_hooks, run_pre_hooks
from rushlight.tensor import Tensor
from rushlight.utils.weak import WeakIdRef, WeakTensorKeyDictionary

REPEATED = 1e-3  # how far a gradient's norm may differ, relatively, between the two runs of one backward


class Fusion:
    """What the optimizer's steps inside backward share.  The optimizer holds it; it knows the optimizer weakly."""

    def __init__(self, optimizer: Optimizer, clip: Clipping, accumulate: int, backwards: int, into_moments: bool):
        self.owner = weakref.ref(optimizer)
        self.clip, self.accumulate, self.backwards = clip, accumulate, backwards
        self.moments = into_moments and accumulate > 1
        self.calls = 0  # backward calls of the step at hand that have ended
        self.seen = 0  # backward calls since `step` was called
        self.steps = 0
        self.counted = 0  # of these, how many `step` was called for
        self.calls_step = False  # whether the loop calls `step` after backward
        self.options: list[dict[str, Any]] = []  # of the groups, when a step ended
        self.norm: Any = None
        self.last: tuple[int, frozenset[int]] = 0, frozenset()  # when a step ended, in the order of nodes; of whom
        self.turn: Turn | None = None  # of the run under way
        self.stepping = False  # whether the optimizer's own step runs
        self.begun = False  # whether the hooks before the step at hand have run
        self.folded = WeakTensorKeyDictionary()  # parameters with a part of the step at hand in their moments
        self.interrupted: tuple[Any, ...] = ()  # weak references to what a step had changed when it failed
        self.untried = [WeakIdRef(p) for group in optimizer.param_groups for p in group["params"]]  # empty after a step
        self.stepped: frozenset[int] = frozenset()  # ids of the parameters of the last step
        self.zeroed = WeakTensorKeyDictionary()  # of these, whose gradients would be zeros now

    @property
    def total(self) -> int:
        """Backward calls that make a step."""
        return self.accumulate * self.backwards

    def clips(self, asked: dict[str, Any]) -> bool:
        """Whether the step that has been made limited gradients as is asked for: `value`, or `limit` and `norm_type`."""
        made = self.turn is None and not self.calls and self.steps > self.counted
        return made and self.clip.by == "all" and all(getattr(self.clip, name) == x for name, x in asked.items())

    # What the optimizer's methods ask ------------------------------------------------------------------

    def step_called(self, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `optimizer.step()` does: complete a step that is under way, and nothing after one."""
        if self.stepping:  # a class's step calls that of its base
            return step(*args, **kwargs)
        optimizer = args[0]
        if (args[1] if len(args) > 1 else kwargs.get("closure")) is not None:
            raise RuntimeError(
                f"{type(optimizer).__name__}.step(closure): this optimizer steps inside backward (optim.in_backward), and a "
                "closure evaluates the model and runs backward again, which would step once more. Call the closure yourself, "
                "or remove() the handle."
            )
        if self.turn is None:
            self.check_surplus(optimizer)
            self.check_options(optimizer)
            self.calls_step = self.calls_step or self.seen > 0
            turn = Turn(self, optimizer)
            if self.folded or any(turn.waiting()) or (self.zeroed and self.steps == self.counted):
                turn.alone()
            self.seen, self.counted = 0, self.steps
        return None

    def check_surplus(self, optimizer: Optimizer) -> None:
        """Raise RuntimeError if more backward calls came since the last `step()` than make a step."""
        seen = self.seen
        if seen <= self.total:
            return
        self.seen = 0
        raise RuntimeError(
            f"{type(optimizer).__name__}.step(): {seen} backward calls since the last step(), and optim.in_backward was told "
            f"that {self.total} make a step, so that parameters have been stepped more than once. Declare "
            f"accumulate={seen} for micro-batches of one step, or backwards={seen} for several losses of one, or call step() "
            "after every step or never."
        )

    def check_options(self, optimizer: Optimizer) -> None:
        """Raise RuntimeError if options were changed after parameters had been stepped with others."""
        if self.steps == self.counted:
            return
        for i, (then, now) in enumerate(zip(self.options, map(plain_options, optimizer.param_groups), strict=False)):
            for name in then.keys() & now.keys():
                if then[name] != now[name]:
                    self.counted = self.steps
                    raise RuntimeError(
                        f"{type(optimizer).__name__}.step(): {name!r} of group {i} is {now[name]!r}, and its parameters were stepped in "
                        f"backward with {then[name]!r}. Set options before backward, or after step()."
                    )

    @property
    def skipped(self) -> bool:
        """Whether parameters were stepped in backward, in a loop that calls `step`, and has not done so since."""
        return self.calls_step and self.steps > self.counted

    def check_skipped(self, call: str) -> None:
        """Raise RuntimeError where gradients are dropped that have been stepped with, in a loop that calls `step` for those it wants."""
        if self.skipped:
            self.counted = self.steps
            raise RuntimeError(
                f"{call}: backward was called without step() after it, and parameters have been stepped in it already "
                "(optim.in_backward): a step that is to be skipped, or a loss whose gradients are not to train them. Decide before "
                "backward, take gradients of such a loss with torch.autograd.grad or backward(inputs=...), or remove() the handle."
            )

    def cleared(self, optimizer: Optimizer, set_to_none: bool) -> None:
        """The gradients were dropped, and with them the step at hand."""
        if self.turn is not None:
            return
        self.check_skipped("zero_grad()")
        if self.folded:
            raise RuntimeError(
                f"zero_grad(): {self.calls} of {self.total} backward calls of a step have been added to the optimizer's "
                "moments (accumulate_into='moments') and cannot be taken back. Call zero_grad() between steps only, or "
                "complete this one with step()."
            )
        self.calls = self.seen = 0
        self.note_zeros(optimizer, set_to_none)

    def note_zeros(self, optimizer: Optimizer, set_to_none: bool) -> None:
        """Note whose gradients would be zeros now: with those an ordinary optimizer steps parameters that no gradient comes for."""
        if set_to_none:
            self.zeroed.clear()
            return
        for group in optimizer.param_groups:
            self.zeroed.update((p, None) for p in group["params"] if id(p) in self.stepped)

    def check_state_dict(self, optimizer: Optimizer) -> None:
        """Raise RuntimeError where moments hold a part of a step, or a step was taken that the loop has not asked for yet."""
        self.check_skipped("state_dict()")
        if self.folded:
            raise RuntimeError(
                f"{type(optimizer).__name__}.state_dict(): {self.calls} of {self.total} backward calls of a step are in the "
                "moments (accumulate_into='moments'): save between steps, or complete this one with step()"
            )

    def loaded(self) -> None:
        """Another state was loaded: what was added to the moments before is none of it, and a loop begins anew."""
        self.seen, self.counted, self.calls_step = 0, self.steps, False
        if self.folded:
            self.folded.clear()
            self.calls = 0

    # Around a step -----------------------------------------------------------------------------------

    def begin(self, optimizer: Optimizer) -> None:
        """Before the first parameter."""
        if not self.begun:
            self.begun = True
            run_pre_hooks(optimizer)

    def end(self, optimizer: Any, norm: Tensor | list[Tensor] | None, stepped: frozenset[int]) -> None:
        """After the last parameter."""
        self.begin(optimizer)
        self.stepped = stepped
        self.zeroed.clear()
        self.norm, self.interrupted, self.begun, self.calls = norm, (), False, 0
        self.steps += 1
        self.untried.clear()
        optimizer._opt_called = True  # schedules ask for it
        run_post_hooks(optimizer)
        self.options = [plain_options(group) for group in optimizer.param_groups]


def plain_options(group: dict[str, Any]) -> dict[str, Any]:
    """The options of a group that are numbers or choices."""
    return {name: value for name, value in group.items() if isinstance(value, (int, float, str))}


class Turn:
    """What one backward run is to one optimizer.

    places: {id: (parameter, number of its group)}. final: whether this run completes a step. folds: whether it completes
    the gradient of a micro-batch. late: whether parameters wait for the end of the run.
    """

    def __init__(self, fusion: Fusion, optimizer: Any):
        self.fusion, self.optimizer, self.clip = fusion, optimizer, fusion.clip
        self.places: dict[int, tuple[Tensor, int]] = {
            id(p): (p, i) for i, group in enumerate(optimizer.param_groups) for p in group["params"]
        }
        self.final = fusion.calls + 1 >= fusion.total
        self.folds = (fusion.calls + 1) % fusion.backwards == 0
        self.late = self.reached = self.touched = False
        self.norms: dict[int, Tensor] = {}  # of each gradient, from a first run
        self.known = False  # whether that run has been
        self.totals: dict[Hashable, Tensor] = {}
        self.factors: dict[Hashable, Any] = {}
        self.left: dict[Hashable, int] = {}  # of gradients with a joint norm, how many the run has yet to complete
        self.done: dict[int, Tensor] = {}
        self.added = 0  # gradients that went into the moments

    @property
    def two_runs(self) -> bool:
        """Whether a first run finds the norms: not where gradients are kept from call to call anyway, or are averaged over processes."""
        alone = self.final and self.clip.joint and self.clip.passes == 2 and self.fusion.total == 1 and not self.late
        return alone and not any(awaits(p) for p, _ in self.places.values())

    def begin(self, records: dict[Any, Any], late: bool) -> None:
        """The run is about to begin and reaches the leaves among `records`."""
        self.late = late
        found = [i for p, i in self.places.values() if p in records]
        self.reached = bool(found)
        for i in found if self.waits else ():
            key = self.clip.key(i)
            self.left[key] = self.left.get(key, 0) + 1

    @property
    def waits(self) -> bool:
        """Whether gradients wait for others."""
        return self.final and self.clip.joint and not self.known

    # A gradient is complete ----------------------------------------------------------------------------

    def look(self, p: Tensor) -> None:
        """In a first run: note the norm of a gradient."""
        self.clip.cut(p._grad)
        self.norms[id(p)] = self.clip.norm(p._grad)

    def looked(self) -> None:
        """A first run has ended: find the joint norms."""
        for p, _ in self.waiting():  # gradients that were there before, of parameters that it did not reach
            if id(p) not in self.norms:
                self.look(p)
        groups: dict[Hashable, list[Tensor]] = {}
        for at, (_, i) in self.places.items():
            if at in self.norms:
                groups.setdefault(self.clip.key(i), []).append(self.norms[at])
        self.totals = {key: self.clip.total(norms) for key, norms in groups.items()}
        self.known, self.left = True, {}

    def arrived(self, p: Tensor, nested: bool) -> None:
        """The gradient of a parameter is complete, in this run or in one inside it."""
        i = self.places[id(p)][1]
        self.touch(p)
        if p._grad is not None and not nested and not self.late:
            if self.fusion.moments:
                self.fold(p, i)
            elif self.final and not self.waits:
                self.step(p, i)
        if self.left and not nested:
            key = self.clip.key(i)
            self.left[key] -= 1
            if self.left[key] == 0 and not self.late:
                self.flush(key)

    def touch(self, p: Tensor) -> None:
        """A gradient has come.  Raises RuntimeError for one of a parameter that has been stepped."""
        if id(p) in self.done:
            raise RuntimeError(
                f"in_backward: a gradient of {self.described(p)} arrived after that parameter had been stepped: a backward run "
                "inside this one uses it as well. Give the custom function that runs it the attribute runs_backward = True, so "
                "that steps wait for the end (checkpoint(use_reentrant=True) has it)."
            )
        if self.touched:
            return
        if self.fusion.turn is not None:
            raise RuntimeError("in_backward: two threads run backward through parameters of one optimizer at the same time: "
                               "run them one after the other, or step after backward")  # fmt: skip
        self.touched, self.fusion.turn = True, self

    def waiting(self) -> Iterator[tuple[Tensor, int]]:
        """Parameters that have a gradient, with their group."""
        return ((p, i) for p, i in self.places.values() if p._grad is not None and p._edge is not None)

    # Steps -----------------------------------------------------------------------------------------------

    def fold(self, p: Tensor, i: int) -> None:
        """Add a gradient to the moments, at the end of a micro-batch; at the end of a step, step."""
        if not self.folds:
            return
        fusion = self.fusion
        moments.fold(self.optimizer, p, self.optimizer.param_groups[i], p not in fusion.folded, fusion.accumulate)
        fusion.folded[p] = i
        p._grad, self.added = None, self.added + 1
        if self.final:
            self.apply(p, i)

    def apply(self, p: Tensor, i: int) -> None:
        """Step a parameter by its moments."""
        self.changed(p, moments.apply, self.optimizer, p, self.optimizer.param_groups[i])
        del self.fusion.folded[p]

    def step(self, p: Tensor, i: int) -> None:
        """Step a parameter by its gradient, limited, and drop that."""
        grad: Any = p._grad
        if self.clip.limit is not None or self.clip.value is not None:
            with no_grad():
                self.limit(p, i, grad)
        self.changed(p, self.optimizer.step_param, p, self.optimizer.param_groups[i])
        p._grad = None

    def limit(self, p: Tensor, i: int, grad: Tensor) -> None:
        """Limit a gradient in place."""
        if not self.waits:  # those that waited were limited when their norm was found
            self.clip.cut(grad)
        factor = self.factor(p, i, grad)
        if factor is not None:
            grad.mul_(factor)

    def changed(self, p: Tensor, change: Callable[..., Any], *args: Any) -> None:
        """Have a parameter changed, between the hooks of the step, observed."""
        fusion = self.fusion
        fusion.begin(self.optimizer)
        self.done[id(p)] = p
        fusion.stepping = True
        try:
            if not special.observing:
                change(*args)
            else:
                name = f"Optimizer.step#{type(self.optimizer).__name__}.step"
                observed(MARK, (name, None), (_OneState(self.optimizer, p),), (), change, *args)
        finally:
            fusion.stepping = False

    def factor(self, p: Tensor, i: int, grad: Tensor) -> Any:
        """What the gradient is multiplied by, or None."""
        if self.clip.limit is None:
            return None
        if self.clip.by == "parameter":
            total = self.totals[id(p)] = self.clip.total([self.clip.norm(grad)])
            return self.clip.factor(total, i)
        if self.known:
            self.check_repeated(p, grad)
        key = self.clip.key(i)
        if key not in self.factors:
            self.factors[key] = self.clip.factor(self.totals[key], i)
        return self.factors[key]

    def check_repeated(self, p: Tensor, grad: Tensor) -> None:
        """Raise RuntimeError unless the second run of backward found the gradient of the first."""
        first, now = self.norms.pop(id(p), None), self.clip.norm(grad).item()
        if first is None or not (math.isclose(first.item(), now, rel_tol=REPEATED, abs_tol=1e-12) or now != now):
            raise RuntimeError(
                f"in_backward: clipping by norm runs backward twice, and the gradient of {self.described(p)} had the norm "
                f"{None if first is None else first.item()} first and {now} then: a hook, a custom function or a checkpointed "
                "function does not do the same again. Make it repeatable, or pass clip_passes=1."
            )

    def flush(self, key: Hashable) -> None:
        """The gradients of one norm are complete: scale them and step."""
        ready = [(p, i) for p, i in self.waiting() if self.clip.key(i) == key]
        with no_grad():
            for p, _ in ready:
                self.clip.cut(p._grad)
            norms = [self.clip.norm(p._grad) for p, _ in ready]
            if norms:
                self.totals[key] = self.clip.total(norms)
                self.factors.pop(key, None)
        for p, i in ready:
            self.step(p, i)

    def note(self, made: int) -> None:
        """Warn where a loss steps parameters again that were stepped after it was computed.

        made: its number in the order of nodes.
        """
        if not self.done:
            return
        when, whom = self.fusion.last
        self.fusion.last = next_seq(), frozenset(self.done)
        again = [p for at, p in self.done.items() if at in whom] if made < when else []
        if again:
            caller.warn(
                f"in_backward: {len(again)} parameters, {self.described(again[0])} among them, have been stepped again by a loss that was "
                "computed before their last step: two backward calls made two steps, where an ordinary optimizer adds their "
                "gradients for one. Declare backwards=2 for two losses of one step, or compute a loss after the step before."
            )

    def finish(self) -> None:
        """The run has ended."""
        fusion = self.fusion
        if not self.touched:
            return
        if fusion.moments and self.folds:
            for p, i in self.waiting():
                self.fold(p, i)
        if self.final:
            self.complete()
        else:
            fusion.calls += 1
        fusion.seen += 1

    def alone(self) -> None:
        """Complete the step outside of a run."""
        try:
            self.complete()
        except BaseException as error:
            self.failed(error)
            raise

    def complete(self) -> None:
        """Step what waits, and end the step."""
        fusion = self.fusion
        if fusion.moments:
            for p, i in self.waiting():
                self.folds = True
                self.fold(p, i)
            for p, i in list(fusion.folded.items()):
                self.apply(p, i)
        elif self.clip.joint and not self.known:
            for key in dict.fromkeys(self.clip.key(i) for _, i in self.places.values()):
                self.flush(key)
        else:
            for p, i in list(self.waiting()):
                self.step(p, i)
        self.step_zeros()
        fusion.end(self.optimizer, self.norm(), frozenset(self.done))

    def step_zeros(self) -> None:
        """Step those parameters by zeros whose gradients zero_grad(set_to_none=False) left, and that no other came for."""
        for p in list(self.fusion.zeroed):
            if id(p) in self.places and id(p) not in self.done:
                p._grad = self.optimizer._zeros(p)
                try:
                    self.changed(p, self.optimizer.step_param, p, self.optimizer.param_groups[self.places[id(p)][1]])
                finally:
                    p._grad = None

    def norm(self) -> Any:
        """The norms that were found: one, or a list with one for each group or parameter."""
        if self.clip.limit is None:
            return None
        if self.clip.by == "all":
            return self.totals.get(0)
        count = range(len(self.optimizer.param_groups))
        return [self.totals.get(key) for key in (count if self.clip.by == "group" else self.places)]

    # When it fails -----------------------------------------------------------------------------------------

    def failed(self, error: BaseException) -> None:
        """Say which parameters have been stepped, and be ready for another backward."""
        fusion = self.fusion
        if self.added:
            error.add_note(
                f"in_backward: {self.added} of {len(self.places)} gradients of this backward call had been added to the moments "
                f"of {type(self.optimizer).__name__}, and cannot be taken back: running it again would add them twice."
            )
        if not self.done:
            return
        fusion.calls, fusion.begun = 0, False
        fusion.interrupted = tuple(WeakIdRef(p) for p in self.done.values())
        names = ", ".join(self.described(p) for p in list(self.done.values())[:4])
        more = f" and {len(self.done) - 4} more" if len(self.done) > 4 else ""
        error.add_note(
            f"in_backward: {len(self.done)} of {len(self.places)} parameters of {type(self.optimizer).__name__} had been "
            f"stepped: {names}{more}; `interrupted` of the handle lists them. The others have not."
        )

    def release(self) -> None:
        """Forget the run."""
        if self.fusion.turn is self:
            self.fusion.turn = None

    def described(self, p: Tensor) -> str:
        """A parameter in words."""
        i = self.places[id(p)][1]
        group = self.optimizer.param_groups[i]
        at = next(n for n, q in enumerate(group["params"]) if q is p)
        name = f" ({group['param_names'][at]!r})" if "param_names" in group else ""
        return f"parameter {at} of group {i}{name} of shape {list(p._array.shape)}"


class _OneState:
    """An optimizer as observers see it when it has stepped one parameter."""

    def __init__(self, optimizer: Optimizer, p: Tensor):
        state = optimizer.state.get(p)
        self.state = {} if state is None else {p: state}
        self.param_groups: list[Any] = []
