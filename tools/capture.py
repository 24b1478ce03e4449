"""A training step captured from the records of its operators: forward, backward and optimizer as one list of calls, planned ahead.

    python tools/capture.py                      # a multilayer perceptron: its calls, its plan, its time
    python tools/capture.py --width 1024 --batch 512 --optimizer SGD --calls

A spike that shows what records suffice for; docs/decisions/0016-a-step-captured.md says how a compiler would go on from here.
The forward is seen once, by an observer.  All that follows is made of records: the backward of their formulas, in the order in
which the engine runs it; shapes and bytes by their rules; the last use of each value, and from that a place for each in one
stretch of memory.  What it cannot capture it refuses: changes in place, results that are not tensors, drawn numbers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

import rushlight as torch
from rushlight.basics import events
from rushlight.dispatch.compute import compute
from rushlight.dispatch.meta import nowhere
from rushlight.engine.conform import conform_array

Array = np.ndarray[Any, Any]
Values = list[Any]  # by slot, the array that lies there now


@dataclass(frozen=True)
class Slot:
    """A value of the program, by its number."""

    number: int


@dataclass
class Forward:
    """An operator's forward.  operands: slots, and what is no tensor as it is."""

    op: Any
    operands: tuple[Any, ...]
    statics: tuple[Any, ...]
    outs: tuple[Slot, ...]
    aux: tuple[Slot, ...]

    @property
    def name(self) -> str:
        return str(self.op.name)

    def reads(self) -> Iterable[Slot]:
        return (x for x in self.operands if isinstance(x, Slot))

    def writes(self) -> tuple[Slot, ...]:
        return (*self.outs, *self.aux)

    def run(self, values: Values) -> None:
        given = [values[x.number] if isinstance(x, Slot) else x for x in self.operands]
        outs, aux = compute(self.op, given, self.statics)
        for slot, value in zip(self.writes(), (*outs, *aux), strict=True):
            values[slot.number] = value


@dataclass
class Backward:
    """The gradients of some operands, by one formula of their operator.

    asked: what the formula asks for by name, as slots or as it is.  grads: where the gradient of each target goes, None where
    it is not wanted; a slot that has a gradient already gets the sum.
    """

    op: Any
    fn: Callable[..., Any]
    joint: bool
    asked: tuple[Any, ...]
    grads: tuple[Slot | None, ...]
    added: frozenset[Slot]
    like: dict[Slot, Array]

    @property
    def name(self) -> str:
        return f"{self.op.name}'"

    def reads(self) -> Iterable[Slot]:
        for x in self.asked:
            yield from (each for each in (x if isinstance(x, tuple) else (x,)) if isinstance(each, Slot))
        yield from self.added

    def writes(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.grads if slot is not None)

    def run(self, values: Values) -> None:
        found = self.fn(*(values[x.number] if isinstance(x, Slot) else x for x in self.asked))
        for slot, g in zip(self.grads, found if self.joint else (found,), strict=True):
            if slot is not None:
                g = conform_array(g, None, self.like[slot].shape, self.like[slot].dtype)
                values[slot.number] = values[slot.number] + g if slot in self.added else g


@dataclass
class Update:
    """An optimizer's step of one parameter, as soon as its gradient is complete."""

    optimizer: Any
    param: Any
    group: dict[str, Any]
    grad: Slot
    name: str = "step"

    def reads(self) -> Iterable[Slot]:
        return (self.grad,)

    def writes(self) -> tuple[Slot, ...]:
        return ()

    def run(self, values: Values) -> None:
        self.param.grad = torch.from_numpy(values[self.grad.number])
        self.optimizer.step_param(self.param, self.group)
        self.param.grad = None


@dataclass
class Program:
    """A step.  made: of each slot an array without memory; inputs: slots that are given; parameters: those that are there already."""

    made: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    inputs: tuple[Slot, ...] = ()
    parameters: dict[Slot, Any] = field(default_factory=dict)
    seed: Slot | None = None
    loss: Slot | None = None

    def slot(self, made: Any) -> Slot:
        """A new slot for what has a shape and a dtype."""
        self.made.append(made)
        return Slot(len(self.made) - 1)

    def last_uses(self) -> dict[Slot, int]:
        """The call after which nobody asks for a slot any more."""
        last: dict[Slot, int] = {}
        for i, call in enumerate(self.calls):
            last.update(dict.fromkeys(call.writes(), i))
            last.update(dict.fromkeys(call.reads(), i))
        return {slot: i for slot, i in last.items() if slot != self.loss}

    @cached_property
    def ends(self) -> list[list[int]]:
        """The slots that nobody asks for any more after each call."""
        ends: list[list[int]] = [[] for _ in self.calls]
        for slot, i in self.last_uses().items():
            ends[i].append(slot.number)
        return ends

    def run(self, *inputs: Array) -> float:
        """One step; returns the loss."""
        values: Values = [None] * len(self.made)
        for slot, value in zip(self.inputs, inputs, strict=True):
            values[slot.number] = value
        for slot, parameter in self.parameters.items():
            values[slot.number] = parameter._array
        assert self.seed is not None
        assert self.loss is not None
        values[self.seed.number] = np.ones(self.made[self.seed.number].shape, self.made[self.seed.number].dtype)
        for call, ended in zip(self.calls, self.ends, strict=True):
            call.run(values)
            for number in ended:
                values[number] = None
        return float(values[self.loss.number])


class Recorder:
    """Writes down the operators that an observed forward calls."""

    passive = False

    def __init__(self) -> None:
        self.program = Program()
        self.slots: dict[int, Slot] = {}  # by the array's identity
        self.kept: list[Any] = []  # so that no other array gets that

    def known(self, tensor: Any) -> Slot:
        """The slot of a tensor, a new one where it was not seen before."""
        slot = self.slots.get(id(tensor._held))
        if slot is None:
            slot = self.slots[id(tensor._held)] = self.program.slot(nowhere(tensor.shape, tensor._held.dtype))
            self.kept.append(tensor._held)
        return slot

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> None:
        if kind == events.INPLACE:
            raise NotImplementedError(
                f"capture: {what.name} changes a tensor in place, and values are written once here"
            )
        names = () if kind == events.DRAW else what.static_names
        if kind == events.DRAW or "state" in names or ("drop" in names and statics[names.index("drop")] is not None):
            name = what if kind == events.DRAW else what.name
            raise NotImplementedError(f"capture: {name} draws numbers, which would be the same in each step")

    def end(self, kind: int, what: Any, inputs: Any, statics: Any, token: Any, result: Any) -> None:
        if kind != events.OPERATOR or result is None:
            return
        flat = inputs if what.sequence is None else (*inputs[: what.sequence], *inputs[what.sequence])
        operands = tuple(self.known(x) if isinstance(x, torch.Tensor) else x for x in flat)
        results = result if isinstance(result, (tuple, list)) else (result,)
        outs = tuple(self.known(x) for x in results)
        aux = tuple(self.program.slot(None) for _ in what.aux)
        self.program.calls.append(Forward(what, operands, statics, outs, aux))


def capture(model: Callable[..., Any], loss_of: Callable[..., Any], optimizer: Any, *inputs: Any) -> Program:
    """The step `loss_of(model(x), *rest).backward(); optimizer.step()` as a program.  inputs: tensors x, *rest."""
    recorder = Recorder()
    program = recorder.program
    program.inputs = tuple(recorder.known(x) for x in inputs)
    steps = {recorder.known(p): (p, group) for group in optimizer.param_groups for p in group["params"]}
    program.parameters = {slot: p for slot, (p, _) in steps.items()}
    given = {*program.inputs, *program.parameters}
    with events.Observation(recorder):
        loss = loss_of(model(inputs[0]), *inputs[1:])
    program.loss = recorder.known(loss)
    made = given.union(*(call.writes() for call in program.calls))
    for call in program.calls:
        for slot in call.reads():
            if slot not in made:
                raise NotImplementedError(
                    f"capture: {call.name} reads a tensor that no operator made and that is no input"
                )
    derive(program, optimizer, steps)
    shape(program)
    return program


def derive(program: Program, optimizer: Any, steps: dict[Slot, Any]) -> None:
    """Add the backward of a forward, from the records' formulas, and the steps of parameters whose gradients are complete."""
    forward = list(program.calls)
    needed = set(steps)
    for call in forward:
        if any(slot in needed for slot in call.reads()) and call.op.formulas:
            needed.update(call.outs)
    waiting = {slot: sum(slot in call.reads() for call in forward if call.outs[0] in needed) for slot in steps}
    assert program.loss is not None
    program.seed = program.slot(program.made[program.loss.number])
    grads = {program.loss: program.seed}
    for call in reversed(forward):
        if any(out in grads for out in call.outs):
            differentiate(program, call, grads, needed)
        for slot in dict.fromkeys(call.reads()):
            if slot in steps and call.outs[0] in needed:
                waiting[slot] -= 1
                if not waiting[slot]:
                    parameter, group = steps[slot]
                    program.calls.append(Update(optimizer, parameter, group, grads[slot]))


def differentiate(program: Program, call: Forward, grads: dict[Slot, Slot], needed: set[Slot]) -> None:
    """Add the formulas of one call, for the operands that need gradients."""
    op = call.op
    for formula in op.formulas:
        places = [op.tensors.index(target) for target in formula.targets]
        if op.sequence in places:
            raise NotImplementedError(f"capture: {op.name} takes a sequence of tensors")
        wanted = tuple(isinstance(call.operands[i], Slot) and call.operands[i] in needed for i in places)
        if not any(wanted):
            continue
        raw = formula.raw is not None
        requests = formula.raw_requests if raw else formula.requests
        asked = tuple(asked_for(program, call, request, grads, wanted) for request in requests)
        into, added = [], set()
        like = {}
        for i, want in zip(places, wanted, strict=True):
            operand = call.operands[i]
            if want and operand in grads:
                added.add(grads[operand])
            into.append(grads.setdefault(operand, program.slot(program.made[operand.number])) if want else None)
            if want:
                like[grads[operand]] = program.made[operand.number]
        fn = formula.raw if raw else formula.fn
        program.calls.append(Backward(op, fn, formula.joint, asked, tuple(into), frozenset(added), like))


def asked_for(program: Program, call: Forward, request: str, grads: dict[Slot, Slot], wanted: tuple[bool, ...]) -> Any:
    """What a formula asks for by name, as a slot where it is a value: see `dispatch.plan`."""
    op = call.op
    if request == "g":
        return grads[call.outs[op.differentiable[0]]]
    if request in op.tensors:
        return call.operands[op.tensors.index(request)]
    if request in op.static_names:
        return call.statics[op.static_names.index(request)]
    if request in op.out_names:
        return call.outs[op.out_names.index(request)]
    if request in op.aux:
        return call.aux[op.aux.index(request)]
    if request.endswith("_shape"):
        return program.made[call.operands[op.tensors.index(request.removesuffix("_shape"))].number].shape
    if request.endswith("_spare"):
        return None  # whose memory may be written over is the plan's business
    if request == "needs":
        return wanted
    raise NotImplementedError(f"capture: a formula of {op.name} asks for {request!r}")


def shape(program: Program) -> None:
    """Say of auxiliary results what their operators' rules for shapes say.  Raises for an operator without one."""
    for call in program.calls:
        if isinstance(call, Forward) and call.aux:
            if call.op.made is None:
                raise NotImplementedError(f"capture: {call.name} has no rule for shapes")
            operands = [program.made[x.number] if isinstance(x, Slot) else x for x in call.operands]
            made = call.op.made(operands, call.statics)
            for slot, each in zip(call.aux, made[len(call.outs) :], strict=True):
                program.made[slot.number] = nowhere(each.shape, each.dtype)


# The plan ---------------------------------------------------------------------------------------------------------


@dataclass
class Planned:
    """Where each value lies in one stretch of memory of `size` bytes.  least: bytes that are in use at once, at the most."""

    places: dict[Slot, int]
    size: int
    least: int


def plan(program: Program) -> Planned:
    """A place for each value that calls make: large ones first, each at the lowest address that is free while it lives.

    A view has no bytes of its own, and keeps what it is a view of.
    """
    last = program.last_uses()
    first: dict[Slot, int] = {}
    for i, call in enumerate(program.calls):
        for slot in call.writes():
            first.setdefault(slot, i)
    for call in reversed(program.calls):
        if isinstance(call, Forward) and call.op.view and isinstance(call.operands[0], Slot):
            of = call.operands[0]
            last[of] = max(last.get(of, 0), last.get(call.outs[0], 0))
            first.pop(call.outs[0], None)
    end = len(program.calls)
    lives = {slot: (i, last.get(slot, end), program.made[slot.number].nbytes) for slot, i in first.items()}
    places: dict[Slot, int] = {}
    for slot, (begin, stop, size) in sorted(lives.items(), key=lambda item: (-item[1][2], item[0].number)):
        beside = sorted((places[o], lives[o][2]) for o in places if lives[o][0] <= stop and begin <= lives[o][1])
        at = 0
        for start, length in beside:
            if at + size <= start:
                break
            at = max(at, start + length)
        places[slot] = at
    in_use = [sum(size for begin, stop, size in lives.values() if begin <= i <= stop) for i in range(end)]
    return Planned(places, max((places[s] + lives[s][2] for s in places), default=0), max(in_use, default=0))


def flops(program: Program) -> int:
    """Floating-point operations of the forward's products, by the records."""
    total = 0
    for call in program.calls:
        if isinstance(call, Forward) and call.op.cost is not None:
            total += call.op.cost(
                [program.made[x.number] if isinstance(x, Slot) else x for x in call.operands], call.statics
            )
    return total


# As a program -----------------------------------------------------------------------------------------------------


def network(width: int, seed: int = 0) -> Any:
    """The perceptron that is captured."""
    torch.manual_seed(seed)
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 10))


def batches(count: int, rows: int) -> list[tuple[Any, Any]]:
    """Inputs and classes."""
    rng = np.random.default_rng(0)
    return [(torch.from_numpy(rng.standard_normal((rows, 64), np.float32)), torch.from_numpy(rng.integers(0, 10, rows)))
            for _ in range(count)]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture, compare with plain training to the bit, print the plan; the exit status is 1 where losses differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--optimizer", default="Adam", help="the name of one in torch.optim")
    parser.add_argument("--calls", action="store_true", help="print each call")
    options = parser.parse_args(arguments)
    data = batches(options.steps, options.batch)
    loss_of = torch.nn.functional.cross_entropy
    make = getattr(torch.optim, options.optimizer)
    plain, captured = network(options.width), network(options.width)
    optimizer, other = make(plain.parameters(), lr=1e-3), make(captured.parameters(), lr=1e-3)
    program = capture(captured, loss_of, other, *data[0])
    if options.calls:
        for call in program.calls:
            made = ", ".join(str(program.made[s.number].shape) for s in call.writes())
            print(f"  {call.name:28} {made}")
    times: dict[str, list[float]] = {"plain": [], "captured": []}
    losses: dict[str, list[float]] = {"plain": [], "captured": []}
    for x, y in data:
        start = perf_counter()
        optimizer.zero_grad()
        loss = loss_of(plain(x), y)
        loss.backward()
        optimizer.step()
        losses["plain"].append(loss.item())
        middle = perf_counter()
        losses["captured"].append(program.run(x.numpy(), y.numpy()))
        times["plain"].append(middle - start)
        times["captured"].append(perf_counter() - middle)
    found = plan(program)
    print(f"{len(program.calls)} calls, {flops(program):,} floating-point operations forward")
    print(f"values: {found.size:,} bytes in one stretch of memory, {found.least:,} in use at once at the most")
    for name, each in times.items():
        print(f"{name}: {1e6 * statistics.median(each):,.0f} us a step, last loss {losses[name][-1]:.6f}")
    same = losses["plain"] == losses["captured"]
    print("losses are the same to the bit" if same else "LOSSES DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
