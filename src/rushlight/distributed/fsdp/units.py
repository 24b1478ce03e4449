"""Modules whose parameters processes share: when they are gathered, freed, and their gradients added up.

A unit is a module with the parameters of it that no inner unit has.  It is gathered before its forward and freed after, and
again in backward, from hooks of the module and of its outputs; while a unit computes, the next one is gathered.  A parameter is
freed as soon as its gradient is complete, and the gradient is added up over processes; what of it is this process's goes into
`.grad`, and only then do the parameter's other hooks run, so that an optimizer in backward steps with it and frees it (Zhao et
al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, VLDB 2023; Rajbhandari et al., ZeRO, SC 2020).

Everything that several processes do together is begun in an order that the program alone decides, never by what has arrived.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.state import modes
from rushlight.basics.tree import tree_leaves, tree_map
from rushlight.distributed.fsdp.parts import Coming, Lane, Part, gather
from rushlight.distributed.fsdp.pieces import Pieces
from rushlight.distributed.fsdp.policies import MixedPrecisionPolicy
from rushlight.distributed.reducer import Ready
from rushlight.engine.accumulate import LATER, post_hook, resumed
from rushlight.engine.run import queue_callback
from rushlight.storage import settle
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.basics.dtypes import dtype
    from rushlight.basics.groups import ProcessGroup
    from rushlight.nn.modules.module import Module

__all__ = ["Unit"]


class Unit:
    """Modules whose parameters are gathered together.

    modules: those whose calls it is gathered around, the last of them the last to be called; group: processes that have other
    parts, replicas: those that have the same, None without.
    """

    def __init__(self, modules: Sequence[Any], parts: Sequence[Part], group: ProcessGroup, replicas: Any,
                 after_forward: bool | None, policy: MixedPrecisionPolicy) -> None:  # fmt: skip
        # No cycles: modules hold units, the outermost module the schedule, and that the units.
        self.modules, self.parts, self.group, self.replicas, self.policy = (
            [weakref.ref(module) for module in modules],
            list(parts),
            group,
            replicas,
            policy,
        )
        self.after_forward = after_forward  # whether it is freed after forward; None: unless it is the root
        self.after_backward = self.sync = True
        self.divisor = float(group.size() * (1 if replicas is None else replicas.size()))
        self.coming: Coming | None = None
        self.busy = False  # whether its backward has begun
        self.at_parameters = Ready(self)
        self._schedule: Any = None
        self.small: list[tuple[Part, Any]] = []  # gradients that wait for those they travel with
        self.ahead: list[Unit] | None = None  # what is gathered ahead in forward, if somebody said so
        self.ahead_backward: list[Unit] | None = None
        self.pieces = Pieces()
        self.of = {id(p.param): p for p in self.parts}
        for module in modules:
            module.register_forward_pre_hook(self.before, prepend=True, with_kwargs=True)
            module.register_forward_hook(self.after)
            module.register_forward_hook(self.pieces.end, always_call=True)

    @property
    def schedule(self) -> Schedule | None:
        """What the units of the outermost module do in turn; None before its first forward."""
        return None if self._schedule is None else self._schedule()

    # Whole and in parts ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin to gather, unless that has begun."""
        if self.coming is None:
            missing = [p for p in self.parts if not p.whole]
            if missing:
                self.coming = gather(missing, self.group)

    def unshard(self) -> None:
        """Have all parameters whole."""
        self.begin()
        coming, self.coming = self.coming, None
        if coming is not None:
            for part, array in coming.arrive():
                if not part.whole:
                    part.gathered(array)
        for part in self.parts:
            if not part.hooked and part.param.requires_grad:
                post_hook(part.param, self.at_parameters, prepend=True)
                part.hooked = True

    def reshard(self) -> None:
        """Keep the parts alone."""
        if self.coming is not None:
            self.coming.arrive()
            self.coming = None
        for part in self.parts:
            part.reshard()

    # Forward -----------------------------------------------------------------------------------------

    def before(self, module: Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> Any:
        """The hook before forward."""
        if self.schedule is None:
            module.__dict__["_fsdp_schedule"] = Schedule(self)
        assert self.schedule is not None
        if modes.run is None:
            self.schedule.entered(self)
        self.unshard()
        if modes.run is None:
            for unit in self.schedule.following(self):
                unit.begin()
        self.pieces.begin()
        if self.policy.param_dtype is not None and self.policy.cast_forward_inputs:
            return tree_map(self.cast(self.policy.param_dtype), args), tree_map(
                self.cast(self.policy.param_dtype), kwargs
            )
        return None

    @staticmethod
    def cast(dtype: dtype | None) -> Any:
        """What converts floating-point tensors and leaves everything else."""
        return lambda x: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x

    def after(self, module: object, args: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        """The hook after forward."""
        if module is not self.modules[-1]() and modes.grad:
            self.watch(output)
            return None
        if self.policy.output_dtype is not None:
            output = tree_map(self.cast(self.policy.output_dtype), output)
        watched = self.watch(output) if modes.grad else True
        assert self.schedule is not None
        if modes.run is None:
            self.schedule.left(self)
        free = self.schedule.root is not self if self.after_forward is None else self.after_forward
        if (free or not modes.grad) and watched and not self.busy:
            self.pieces.freed(self.parts if modes.grad else (), self.reshard)
        return output

    def watch(self, output: Tensor) -> bool:
        """Have backward begin with gathering; whether it will: not where no output that requires grad is found."""
        found = [t for t in tree_leaves(output) if isinstance(t, Tensor) and t.requires_grad]
        for t in found:
            t.register_hook(self.before_backward)
        return bool(found) or not any(p.param.requires_grad for p in self.parts)

    # Backward ----------------------------------------------------------------------------------------

    def before_backward(self, grad: Tensor) -> None:
        """The hook on outputs: a gradient has come to one."""
        schedule = self.schedule
        assert schedule is not None
        schedule.backward()
        if not self.busy:
            self.busy = True
            schedule.land(0)
        self.unshard()
        for unit in schedule.preceding(self):
            unit.begin()

    def ready(self, param: Tensor) -> Any:
        """The hook of a parameter: its gradient is complete.  Its other hooks run when what is this process's of it is there."""
        part, schedule = self.of[id(param)], self.schedule
        if schedule is None or not part.whole:
            return None
        schedule.backward()
        grad = param._grad
        if grad._edge is not None:
            raise NotImplementedError(
                f"fully_shard: backward(create_graph=True) through {part.name}: its gradient is added up over "
                "processes, which is not recorded. Use autograd.grad for higher orders"
            )
        if grad.is_sparse:
            raise NotImplementedError(
                f"fully_shard: the gradient of {part.name} is sparse: give the embedding sparse=False"
            )
        if not self.sync:
            check_not_stepped(part)
            return LATER
        self.send(part)
        return LATER

    def send(self, part: Part) -> None:
        """Send the gradient of the whole on its way, and keep the part of the parameter alone."""
        grad = part.param._grad
        settle(grad._held)
        array, part.param._grad = grad._array, None
        del grad
        part.reshard()
        self.dispatch(part, array)

    def dispatch(self, part: Part, array: Array) -> None:
        """Send a gradient, a small one with the others that are.  array: of the whole"""
        assert self.schedule is not None
        if not part.small:
            self.schedule.send(self, [(part, array)])
            return
        self.small.append((part, array))
        if len(self.small) == sum(p.small and p.param.requires_grad for p in self.parts):
            self.send_small()

    def send_small(self) -> None:
        """Send gradients of small parameters, those of one dtype together."""
        assert self.schedule is not None
        waiting, self.small = self.small, []
        order = {id(p): i for i, p in enumerate(self.parts)}
        by_dtype: dict[Any, list[tuple[Part, Any]]] = {}
        for part, array in sorted(waiting, key=lambda item: order[id(item[0])]):
            by_dtype.setdefault(array.dtype, []).append((part, array))
        for grads in by_dtype.values():
            self.schedule.send(self, grads)

    def finish(self) -> None:
        """At the end of backward: what was accumulated before, and small gradients that still wait."""
        self.busy = False
        if self.coming is not None:
            self.coming.arrive()
            self.coming = None
        if not self.sync:
            return
        for part in self.parts:
            if part.whole and part.param._grad is not None:
                self.send(part)
            elif not part.whole and part.other is not None:
                left, part.other = part.other._array, None
                self.dispatch(part, left)
        if self.small:
            self.send_small()


def check_not_stepped(part: Part) -> None:
    """Raise RuntimeError for a parameter that an optimizer in backward would step now, before gradients are added up."""
    session = getattr(modes.run, "session", None)
    if (session is not None and id(part.param) in session.turns_of) or hasattr(part.param, "_in_backward_optimizers"):
        raise RuntimeError(
            f"fully_shard: {part.name} is stepped in backward, and set_requires_gradient_sync(False) keeps its gradient from "
            "being added up over processes: leave it on, and use in_backward(accumulate=...) for micro-batches"
        )


class Schedule:
    """What the units of one root do in turn.

    root: the unit whose module is called; order: units as their forwards began in the last pass, done: as they ended.
    """

    ROOM = 1 << 25  # bytes of gradients that may be on their way at once, or one

    def __init__(self, root: Unit) -> None:
        self.root = root
        self.units: list[Unit] = []
        tops: list[Any] = [module() for module in root.modules]
        for module in [m for top in tops for m in top.modules()]:
            unit = getattr(module, "_fsdp_unit", None)
            if unit is not None and unit not in self.units:
                if unit.schedule is not None:
                    raise RuntimeError(
                        f"fully_shard: {type(module).__name__} was called by itself before the module that it is a part of: "
                        "call the outermost module first"
                    )
                self.units.append(unit)
                unit._schedule = weakref.ref(self)
        self.order: list[Unit] = []
        self.done: list[Unit] = []
        self.now: list[Unit] = []
        self.ended: list[Unit] = []
        self.flight: deque[tuple[Unit, Lane]] = deque()
        self.running = False

    def entered(self, unit: Unit) -> None:
        """The forward of a unit begins."""
        if unit is self.root:
            if self.running:  # a backward that failed has left something behind
                self.running = False
                for each in self.units:
                    each.busy, each.small = False, []
                self.flight.clear()
            self.now, self.ended = [], []
        if unit not in self.now:
            self.now.append(unit)

    def left(self, unit: Unit) -> None:
        """The forward of a unit has ended."""
        if unit not in self.ended:
            self.ended.append(unit)
        if unit is self.root:
            self.order, self.done = self.now, self.ended

    def following(self, unit: Unit) -> list[Unit]:
        """What is gathered ahead while a unit's forward runs."""
        if unit.ahead is not None:
            return unit.ahead
        return next_to(unit, self.order)

    def preceding(self, unit: Unit) -> list[Unit]:
        """What is gathered ahead while a unit's backward runs."""
        if unit.ahead_backward is not None:
            return unit.ahead_backward
        return next_to(unit, self.done[::-1])

    def backward(self) -> None:
        """A backward pass has reached a unit."""
        if not self.running:
            self.running = True
            queue_callback(self.finish, outermost=True)

    def send(self, unit: Unit, grads: Sequence[tuple[Part, Any]]) -> None:
        """Send gradients on their way; those of other units, and what is too much, have to arrive first."""
        policy = unit.policy
        dtype = None if policy.reduce_dtype is None else policy.reduce_dtype.numpy
        lane = Lane(grads, unit.group, unit.replicas, unit.divisor, dtype)
        while self.flight and (
            self.flight[0][0] is not unit or sum(x.nbytes for _, x in self.flight) + lane.nbytes > self.ROOM
        ):
            self.land(len(self.flight) - 1)
        self.flight.append((unit, lane))

    def land(self, count: int) -> None:
        """Take in gradients, the oldest first, until `count` are on their way; let the other hooks of their parameters run."""
        while len(self.flight) > count:
            unit, lane = self.flight.popleft()
            lane.arrive()
            for part in lane.parts:
                resumed(part.param, unit.at_parameters)

    def finish(self) -> None:
        """The backward pass has ended."""
        for unit in self.units:
            unit.finish()
        self.land(0)
        for unit in self.units:
            if unit.after_backward:
                unit.reshard()
        self.running = False


def next_to(unit: Unit, order: Sequence[Unit]) -> list[Unit]:
    """The unit behind another in an order, if any."""
    at = next((i for i, other in enumerate(order) if other is unit), len(order))
    return list(order[at + 1 : at + 2])
