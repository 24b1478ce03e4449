"""Formulas, and plans: what a node saves and runs for a given set of inputs that need gradients.

A formula's parameter names are its request. Allowed are:
  g                the gradient of the output (of the one differentiable output, where there are several)
  g_NAME           the gradient of output NAME, zeros where none arrived;  gs: a list of all, None where none arrived
  an input's name  the input;  NAME_shape: its shape
  NAME_spare       of a raw twin, before the input: the input's memory to write the gradient over, or None: see `spare`
  out, or an output's name   that output;  an auxiliary's name: what the forward returned beside its outputs
  a static's name  that argument;  needs: for a joint formula, which of its targets are wanted
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.by_sample import level_of
from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.dispatch.keeping.spare import spare
from rushlight.engine.node import EVERY, Node, Port
from rushlight.engine.saved import DETACHED, Constant, OfView, Packed, SavedOutput, freed, stale
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op


class Formula:
    """Gradients of some inputs (`targets`); `raw` is a twin for arrays alone, for first-order runs.

    uses: of a joint formula, where it is less than all that it asks for: by target, the inputs, outputs and auxiliaries
    that its gradient takes. The others are None to it.
    """

    __slots__ = ("fn", "joint", "raw", "raw_requests", "requests", "targets", "uses")

    def __init__(self, targets: tuple[str, ...], fn: Callable[..., Any], joint: bool):
        self.targets, self.fn, self.joint = targets, fn, joint
        self.requests = arguments(fn)
        self.raw: Any = None
        self.raw_requests: tuple[str, ...] = ()
        self.uses: dict[str, frozenset[str]] | None = None

    def asked(self, needs: list[Any], kept: frozenset[str]) -> tuple[str, ...]:
        """What it asks for where these of its targets are wanted.  kept: the names that can be saved."""
        every = tuple(dict.fromkeys((*self.requests, *self.raw_requests)))
        if self.uses is None:
            return every
        used = frozenset[str]().union(*(self.uses[t] for t, need in zip(self.targets, needs, strict=True) if need))
        return tuple(r for r in every if r not in kept or r in used)


def arguments(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    code = fn.__code__
    return tuple(code.co_varnames[: code.co_argcount])


def held_number(node: OpNode, position: int) -> bool:
    """Whether the node keeps a number for an input."""
    return node.saved is not None and node.saved[position].__class__ is Constant


class OpNode(Node):
    """The node of a declared operator, in the slim form that fast paths make.

    saved: by input position, the tensor kept or None (None as a whole once freed); versions: theirs, None if all 0.
    """

    __slots__ = ("plan", "saved", "versions")
    plan: Any
    saved: Any
    versions: Any
    statics: Any = ()
    shapes: Any = None
    aux: Any = None
    outs: Any = None

    def run(self, g: Array | list[Any], wanted: int) -> Any:
        return self.plan.full(self, g) if wanted == EVERY else self.plan.compiled(wanted)(self, g)

    def run_tensors(self, g: Tensor | list[Any], wanted: int) -> Any:
        return interpret(self, g, wanted, True)

    def release(self) -> None:
        self.saved = None

    def input_places(self) -> tuple[int, ...] | None:
        op, n = self.plan.op, len(self.edges)
        first = n if op.sequence is None else op.sequence
        covered = [i for i in range(n) if min(i, first) in op.targets and not self.is_static(i)]
        return None if len(covered) == n else tuple(covered)

    def is_static(self, position: int) -> bool:
        """Whether an input is a number that PyTorch's operator takes as one; known until what was saved is freed."""
        rule = self.plan.op.takes_number
        return rule is not None and bool(rule(self, position))

    def argument(self, position: int) -> str:
        """The name of the input at a position."""
        return str(self.plan.op.input_name(position))

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            from rushlight.dispatch.saved_attributes import saved_attribute

            return saved_attribute(self, name)
        raise AttributeError(f"{self.name()!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        from rushlight.dispatch.saved_attributes import saved_names

        return [*super().__dir__(), *saved_names(self)]


class FullNode(OpNode):
    """The node of a declared operator with everything that one may keep."""

    __slots__ = ("aux", "outs", "shapes", "statics")

    def release(self) -> None:
        self.saved = self.outs = self.aux = None


class SeveralOutputs(FullNode):
    """The node of an operator that has several outputs."""

    __slots__ = ("count",)
    count: int


def input_array(node: OpNode, i: int) -> Any:
    """The saved input at position `i`, its version checked."""
    x = node.saved[i]
    storage = x._storage
    if x.__class__ is Rebuilt:
        return x.array(node, i)
    if storage is not None:
        expected = 0 if node.versions is None else node.versions[i]
        if storage.version != expected:
            stale(node, f"argument {node.argument(i)!r}", x._array.shape, storage.version, expected, storage, x._edge)
    return x._array


def input_tensor(node: OpNode, i: int) -> Any:
    """The saved input at position `i` as a tensor in the graph."""
    x = node.saved[i]
    if isinstance(x, Tensor):
        input_array(node, i)
        if x._edge is None and x._view is None and isinstance(node.edges[i], (Node, Port)):
            raise RuntimeError(DETACHED)
        return x
    if x.__class__ is Rebuilt:
        input_array(node, i)
    return x._array if isinstance(x, Constant) else x.tensor(node.edges[i])


def output_array(node: OpNode, k: int) -> Any:
    """The k-th saved output, its version checked."""
    kept = node.outs[k]
    kept = kept.saved if isinstance(kept, OfView) else kept
    if isinstance(kept, SavedOutput):
        if kept.storage.version != kept.version:
            stale(node, "its result", kept.array.shape, kept.storage.version, kept.version, kept.storage, None)
        return kept.array
    return kept.array(node, None) if kept.__class__ is Rebuilt else kept._array


def output_tensor(node: OpNode, k: int) -> Tensor:
    """The k-th saved output as a tensor in the graph."""
    if not isinstance(node.outs[k], Packed):
        output_array(node, k)  # for its version
    return node.outs[k].tensor(node if node.count == 1 else Port(node, k))  # type: ignore[no-any-return]


def grad_of(node: OpNode, g: Any, k: int, tensors: bool) -> Any:
    """The gradient of output `k`, zeros if none arrived."""
    if node.count == 1 or g[k] is not None:
        return g if node.count == 1 else g[k]
    zeros = np.zeros(node.shape[k], node.dtype[k])
    return wrap(zeros) if tensors else zeros


def fetch(node: OpNode, request: str, g: Any, tensors: bool, needs: tuple[bool, ...]) -> Any:
    """What a formula asks for by name."""
    op, take = node.plan.op, input_tensor if tensors else input_array
    if request == "g":
        return g if node.count == 1 else grad_of(node, g, op.differentiable[0], tensors)
    if request in op.tensors:
        i = op.tensors.index(request)
        if i == op.sequence:
            return tuple(take(node, j) for j in range(i, len(node.edges)))
        return take(node, i) if node.saved[i] is not None else None
    if request in op.static_names:
        return node.statics[op.static_names.index(request)]
    if request in op.out_names:
        k = op.out_names.index(request)
        return (output_tensor if tensors else output_array)(node, k) if k in node.plan.save_outs else None
    if request in op.aux:
        return node.aux[op.aux.index(request)] if node.plan.save_aux else None
    if request.endswith("_spare"):
        return None if tensors else spare(node, op.tensors.index(request.removesuffix("_spare")))
    if request.endswith("_shape"):
        i = op.tensors.index(request.removesuffix("_shape"))
        return node.shapes[i:] if i == op.sequence else node.shapes[i]
    if request == "needs":
        return needs
    if request == "gs":
        return [g] if node.count == 1 else g
    return grad_of(node, g, op.out_names.index(request.removeprefix("g_")), tensors)


def in_levels(fn: Callable[..., Any], op: Op, args: list[Any]) -> Any:
    """A formula on tensors while levels are active, some of which cannot show it any values."""
    level = level_of(args)
    return fn(*args) if level is None else level.formula(fn, op, args)


def interpret(node: OpNode, g: Array | Tensor | list[Any], wanted: int, tensors: bool) -> list[Any]:
    """Run a node's formulas one request at a time: for tensors, and for operators on sequences of tensors."""
    plan = node.plan
    if node.saved is None and plan.saves:
        freed(node)
    results: list[Any] = [None] * len(node.edges)
    mask = plan.mask & wanted
    fetched: dict[str, Any] = {}  # what formulas share is unpacked once
    for formula in plan.op.formulas:
        places = plan.places(formula, len(node.edges))
        needs = tuple(any(mask >> i & 1 for i in place) for place in places)
        if not any(needs):
            continue
        raw = formula.raw if not tensors else None
        requests = formula.raw_requests if raw is not None else formula.requests
        args = []
        for r in requests:
            if r not in fetched or r == "needs":
                fetched[r] = fetch(node, r, g, tensors, needs)
            args.append(fetched[r])
        fn = raw or formula.fn
        given = fn(*args) if not (tensors and modes.levels) else in_levels(fn, plan.op, args)
        for place, value in zip(places, given if formula.joint else (given,), strict=True):
            values = value if len(place) != 1 or plan.op.sequence == place[0] else (value,)
            if values is not None:
                for i, v in zip(place, values, strict=True):
                    if mask >> i & 1:
                        results[i] = wrap(v) if tensors and v.__class__ is np.ndarray else v
    return results


class Plan:
    """How one operator, for one set of inputs that need gradients, saves and runs."""

    __slots__ = ("full", "functions", "mask", "needs_shapes", "op", "order", "real", "save_aux", "save_inputs", "save_outs",
                 "saves", "slim")  # fmt: skip
    takes_deferred = False  # whether its nodes can be given a gradient that is no array: see `engine.deferred`

    def __init__(self, op: Op, mask: int, count: int, real: bool = False):
        """real: for the slim nodes of fast paths, which are of real numbers only: conjugation is left out."""
        self.op, self.mask, self.real = op, mask, real
        # What puts gradients into the order in which they are handed on, where it is not that of the inputs.
        self.order = itemgetter(*op.order) if op.order and mask.bit_count() > 1 else None
        self.functions: dict[int, Any] = {}
        requests: dict[str, None] = {}  # in the order in which formulas ask: so hooks are called
        kept = frozenset((*op.tensors, *op.out_names, *op.aux))
        for formula in op.formulas:
            needs = [any(mask >> i & 1 for i in place) for place in self.places(formula, count)]
            if any(needs):
                requests.update(dict.fromkeys(formula.asked(needs, kept)))
        positions = [self.positions(name, count) for name in requests if name in op.tensors]
        self.save_inputs = tuple(i for place in positions for i in place)
        self.save_outs = tuple(k for k, name in enumerate(op.out_names) if name in requests)
        self.save_aux = any(name in requests for name in op.aux)
        self.saves = bool(self.save_inputs or self.save_outs or self.save_aux)
        self.needs_shapes = any(r.endswith("_shape") and r.removesuffix("_shape") in op.tensors for r in requests)
        self.slim = real and not (self.save_outs or self.save_aux)  # whether dropping `saved` drops all
        self.full: Any = self._first

    def _first(self, node: OpNode, g: Array | list[Any]) -> Any:
        self.full = self.compiled(EVERY)
        return self.full(node, g)

    def positions(self, name: str, count: int) -> tuple[int, ...]:
        """The input positions of a parameter: several for the sequence."""
        i = self.op.tensors.index(name)
        return tuple(range(i, count)) if i == self.op.sequence else (i,)

    def places(self, formula: Formula, count: int) -> list[tuple[int, ...]]:
        """The input positions of each of a formula's targets."""
        return [self.positions(name, count) for name in formula.targets]

    def compiled(self, wanted: int) -> Callable[..., Any]:
        """The function (node, g) -> gradients as arrays, for the wanted inputs."""
        fn = self.functions.get(wanted)
        if fn is None:
            if self.op.sequence is not None or self.op.out_count != 1:

                def fn(node: OpNode, g: Array | list[Any]) -> Any:
                    return interpret(node, g, wanted, False)
            else:
                fn = compile_backward(self, self.mask & wanted, self.real)
            self.functions[wanted] = fn
        return fn


def _same(x: Array) -> Array:
    return x


def without_conj(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with the global `conj` it calls, if it does, replaced by the identity."""
    if "conj" not in fn.__code__.co_names or fn.__closure__:
        return fn
    return FunctionType(fn.__code__, {**fn.__globals__, "conj": _same}, fn.__name__, fn.__defaults__)


def compile_backward(plan: Plan, mask: int, real: bool = False) -> Any:
    """Write out `interpret` for arrays, one output and the inputs in `mask`: the code below, without its loops."""
    lines: list[str] = []
    absent = {name for k, name in enumerate(plan.op.out_names) if k not in plan.save_outs}
    absent |= {name for i, name in enumerate(plan.op.tensors) if i not in plan.save_inputs}
    absent |= set() if plan.save_aux else set(plan.op.aux)
    op = plan.op
    # The name is what filters of warnings go by.
    scope: dict[str, Any] = {"__name__": __name__, "freed": freed, "spare": spare}
    scope.update(input_array=input_array, output_array=output_array)
    fetched: set[str] = set()
    results = ["None"] * len(op.tensors)
    for f, formula in enumerate(op.formulas):
        indices = [op.tensors.index(t) for t in formula.targets]
        needs = tuple(bool(mask >> i & 1) for i in indices)
        if not any(needs):
            continue
        if real and op.inline and formula.targets[0] in op.inline:
            given = expressions(op, formula.requests, needs, fetched, lines, absent)
            results[indices[0]] = op.inline[formula.targets[0]].format(
                **dict(zip(formula.requests, given, strict=True))
            )
            continue
        chosen = formula.raw or formula.fn
        scope[f"f{f}"] = without_conj(chosen) if real else chosen
        requests = formula.raw_requests if formula.raw is not None else formula.requests
        arguments_of_f = ", ".join(expressions(op, requests, needs, fetched, lines, absent))
        lines.append(f"r{f} = f{f}({arguments_of_f})")
        for t, i in enumerate(indices):
            if needs[t]:
                results[i] = f"r{f}[{t}]" if formula.joint else f"r{f}"
    opening = ["s = node.saved", "if s is None: freed(node)"] if plan.saves else []
    body = [*opening, *(dropped(lines) if op.heavy else lines), f"return [{', '.join(results)}]"]
    source = "def backward(node, g):\n    " + "\n    ".join(body)
    exec(compile(source, f"<backward of {op.name}>", "exec"), scope)
    return scope["backward"]


def dropped(lines: list[str]) -> list[str]:
    """Lines that let go of each saved input after its last use: one that was computed again takes memory."""
    names = dict.fromkeys(re.findall(r"\bx\d+\b", "\n".join(lines)))
    for name in names:
        last = max(i for i, line in enumerate(lines) if re.search(rf"\b{name}\b", line))
        lines = [*lines[: last + 1], f"{name} = None", *lines[last + 1 :]]
    return lines


def expressions(
    op: Op, requests: tuple[str, ...], needs: tuple[bool, ...], fetched: set[str], lines: list[str], absent: set[str]
) -> list[str]:
    """The expressions for requests; the lines that prepare those not yet `fetched` are added to `lines`.

    absent: inputs and results that this plan does not save, which no formula that runs takes.
    """
    args = []
    for request in requests:
        if request in absent:
            args.append("None")
            continue
        expression, setup = source_of(op, request, needs)
        if setup and expression not in fetched:
            fetched.add(expression)
            lines += setup
        args.append(expression)
    return args


def source_of(op: Op, request: str, needs: tuple[bool, ...]) -> tuple[str, list[str]]:
    """The expression for a request, and the lines that prepare it."""
    if request == "g":
        return request, []
    if request == "needs":
        return repr(needs), []
    if request in op.tensors:
        i = op.tensors.index(request)
        quick = f"x{i} = s[{i}]"
        checked = f"x{i} = None if x{i} is None else x{i}._array if x{i}._storage is None else input_array(node, {i})"
        return f"x{i}", [quick, checked]
    if request in op.static_names:
        return f"node.statics[{op.static_names.index(request)}]", []
    if request in op.out_names:
        k = op.out_names.index(request)
        return f"out{k}", [f"out{k} = output_array(node, {k})"]
    if request in op.aux:
        return f"node.aux[{op.aux.index(request)}]", []
    if request.endswith("_spare"):
        i = op.tensors.index(request.removesuffix("_spare"))
        return f"spare{i}", [f"spare{i} = spare(node, {i})"]
    return f"node.shapes[{op.tensors.index(request.removesuffix('_shape'))}]", []
