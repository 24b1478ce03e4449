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
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rushlight.basics.state import modes
from rushlight.dispatch.by_sample import level_of
from rushlight.dispatch.keeping.blocks import LARGE, gradient_by_blocks, steps
from rushlight.dispatch.keeping.remade import Rebuilt
from rushlight.dispatch.keeping.results import keep_result, watch_result
from rushlight.dispatch.keeping.spare import spare
from rushlight.engine.node import EVERY, Node, Port
from rushlight.engine.saved import DETACHED, Constant, OfView, Packed, SavedOutput, freed, stale
from rushlight.kernels.rows import LARGE as SPREAD_FROM
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op

# What computes the gradients of a node's inputs: called with the node and the gradient of its output.
Backwards: TypeAlias = Callable[["OpNode", Any], list[Any]]


class Formula:
    """Gradients of some inputs (`targets`); `raw` is a twin for arrays alone, for first-order runs.

    shapes: what the twin makes, from shapes alone, where that is not an array of each input's shape: it asks for what the
    twin asks for, and for `make` (a `rules.Making`). uses: of a joint formula, where it is less than all that it asks
    for: by target, the inputs, outputs and auxiliaries that its gradient takes. The others are None to it. blocks:
    see `goes_in_blocks`; None: nothing was said.
    """

    __slots__ = ("blocks", "fn", "joint", "raw", "raw_requests", "requests", "shapes", "targets", "uses")

    def __init__(self, targets: tuple[str, ...], fn: Callable[..., Any], joint: bool):
        self.targets, self.fn, self.joint = targets, fn, joint
        self.requests = arguments(fn)
        self.raw: Any = None
        self.raw_requests: tuple[str, ...] = ()
        self.shapes: Callable[..., Any] | None = None
        self.uses: dict[str, frozenset[str]] | None = None
        self.blocks: bool | None = None

    def goes_in_blocks(self, op: Op) -> bool:
        """Whether it goes over large arrays block by block: where nothing was said, if it has no twin and makes temporaries."""
        if self.blocks is None:
            self.blocks = op.pointwise and self.raw is None and steps(self.fn) > 1
        cut = {"g", "needs", *op.tensors, *op.static_names, *op.out_names}  # of the gradient's shape, or no arrays
        return self.blocks and cut.issuperset(self.raw_requests or self.requests)

    def makes_its_result(self, op: Op) -> bool:
        """Whether it makes an array of the gradient's shape in one step, and nothing on the way to it."""
        return op.pointwise and self.raw is None and not self.joint and steps(self.fn) == 1

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

    def run(self, g: Array | list[Any], wanted: int) -> Sequence[Any]:
        plan: Plan = self.plan
        return plan.full(self, g) if wanted == EVERY else plan.compiled(wanted)(self, g)

    def run_tensors(self, g: Tensor | list[Any], wanted: int) -> Sequence[Any]:
        plan: Plan = self.plan
        return plan.compiled(wanted, True)(self, g)

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

    def __getattr__(self, name: str) -> object:
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

    def keep_result(self, result: Tensor) -> None:
        keep_result(self, result._held, result._storage)

    def watch_result(self, result: Tensor) -> None:
        watch_result(self, result._held)


class SeveralOutputs(FullNode):
    """The node of an operator that has several outputs."""

    __slots__ = ("count",)
    count: int


def input_array(node: OpNode, i: int) -> Array:
    """The saved input at position `i`, its version checked."""
    x = node.saved[i]
    storage = x._storage
    if isinstance(x, Rebuilt):
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


def output_array(node: OpNode, k: int) -> Array:
    """The k-th saved output, its version checked."""
    kept = node.outs[k]
    kept = kept.saved if isinstance(kept, OfView) else kept
    if isinstance(kept, SavedOutput):
        if kept.storage.version != kept.version:
            stale(node, "its result", kept.array.shape, kept.storage.version, kept.version, kept.storage, None)
        return kept.array
    found = kept.array(node, None) if kept.__class__ is Rebuilt else kept._array
    return found


def output_tensor(node: OpNode, k: int) -> Tensor:
    """The k-th saved output as a tensor in the graph."""
    if not isinstance(node.outs[k], Packed):
        output_array(node, k)  # for its version
    return node.outs[k].tensor(node if node.count == 1 else output_edge(node, k))


def output_edge(node: OpNode, k: int) -> Port | None:
    """The place in the graph of one of several outputs; None of indices and others that have no gradients."""
    op = node.plan.op
    return Port(node, k) if op.out_count is None or k in op.differentiable else None


def grad_of(node: OpNode, g: list[Any], k: int, tensors: bool) -> Any:
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


class Plan:
    """How one operator, for one set of inputs that need gradients, saves and runs."""

    __slots__ = ("count", "full", "functions", "mask", "needs_shapes", "op", "order", "real", "save_aux", "save_inputs",
                 "save_outs", "saves", "slim")  # fmt: skip
    takes_deferred = False  # whether its nodes can be given a gradient that is no array: see `engine.deferred`

    def __init__(self, op: Op, mask: int, count: int, real: bool = False):
        """real: for the slim nodes of fast paths, which are of real numbers only: conjugation is left out."""
        self.op, self.mask, self.count, self.real = op, mask, count, real
        # What puts gradients into the order in which they are handed on, where it is not that of the inputs.
        self.order = itemgetter(*op.order) if op.order and mask.bit_count() > 1 else None
        self.functions: dict[tuple[int, bool], Backwards] = {}
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
        self.full: Backwards = self._first

    def _first(self, node: OpNode, g: Array | list[Any]) -> list[Any]:
        self.full = self.compiled(EVERY)
        return self.full(node, g)

    def positions(self, name: str, count: int) -> tuple[int, ...]:
        """The input positions of a parameter: several for the sequence."""
        i = self.op.tensors.index(name)
        return tuple(range(i, count)) if i == self.op.sequence else (i,)

    def places(self, formula: Formula, count: int) -> list[tuple[int, ...]]:
        """The input positions of each of a formula's targets."""
        return [self.positions(name, count) for name in formula.targets]

    def compiled(self, wanted: int, tensors: bool = False) -> Backwards:
        """The function (node, g) -> gradients for the wanted inputs, as arrays, or as tensors that record what was done."""
        key = self.mask & wanted, tensors
        fn = self.functions.get(key)
        if fn is None:
            fn = self.functions[key] = Backward(self, *key).function()
        return fn


def _same(x: Array) -> Array:
    return x


def without_conj(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with the global `conj` it calls, if it does, replaced by the identity."""
    if "conj" not in fn.__code__.co_names or fn.__closure__:
        return fn
    return FunctionType(fn.__code__, {**fn.__globals__, "conj": _same}, fn.__name__, fn.__defaults__)


class Backward:
    """The backward of a plan's nodes for the inputs in `mask`, written out as source: no loop is left, and no lookup by name.

    tensors: whether formulas are given tensors, and their results are recorded; else arrays, and raw twins run.
    """

    def __init__(self, plan: Plan, mask: int, tensors: bool):
        self.plan, self.op, self.mask, self.tensors = plan, plan.op, mask, tensors
        self.lines: list[str] = []
        self.fetched: set[str] = set()  # what formulas share is unpacked once
        # Inputs and results that the plan does not save, which no formula that runs takes.
        self.absent = {name for k, name in enumerate(self.op.out_names) if k not in plan.save_outs}
        self.absent |= {name for i, name in enumerate(self.op.tensors) if i not in plan.save_inputs}
        self.absent |= set() if plan.save_aux else set(self.op.aux)
        # The name is what filters of warnings go by.
        self.scope: dict[str, Any] = {"__name__": __name__, "op": self.op, **NAMES}

    def function(self) -> Backwards:
        """(node, g) -> a list of gradients, None for inputs that are not wanted."""
        plan, op = self.plan, self.op
        results = ["None"] * len(op.tensors)
        if op.sequence is not None:
            results[op.sequence] = ", ".join(["None"] * (plan.count - op.sequence))
        for f, formula in enumerate(op.formulas):
            places = plan.places(formula, plan.count)
            needs = tuple([any(self.mask >> i & 1 for i in place) for place in places])
            if any(needs):
                given = self.call(f, formula, needs)
                for target, place, need in zip(formula.targets, places, needs, strict=True):
                    if need:
                        i = op.tensors.index(target)
                        part = f"{given}[{formula.targets.index(target)}]" if formula.joint else given
                        results[i] = self.result(part, place, i == op.sequence)
        opening = ["s = node.saved", "if s is None: freed(node)"] if plan.saves else []
        body = [*opening, *(dropped(self.lines) if op.heavy else self.lines), f"return [{', '.join(results)}]"]
        exec(code_of("def backward(node, g):\n    " + "\n    ".join(body), op.name), self.scope)
        return self.scope["backward"]

    def call(self, f: int, formula: Formula, needs: tuple[bool, ...]) -> str:
        """What the f-th formula gives, as an expression; the lines before it are added."""
        op, raw = self.op, formula.raw is not None and not self.tensors
        given = self.expressions(formula.raw_requests if raw else formula.requests, needs)
        if self.plan.real and not self.tensors and op.inline and formula.targets[0] in op.inline:
            return self.inline(op.inline[formula.targets[0]], dict(zip(formula.requests, given, strict=True)))
        chosen = formula.raw if raw else formula.fn
        self.scope[f"f{f}"] = without_conj(chosen) if self.plan.real else chosen
        args = ", ".join(given)
        if not self.tensors and formula.goes_in_blocks(op):
            args = f"{args}) if g.__class__ is not ndarray or g.size < LARGE else gradient_by_blocks(f{f}, g, {args}"
        levels = f" if not modes.levels else in_levels(f{f}, op, [{args}])" if self.tensors else ""
        self.lines.append(f"r{f} = f{f}({args}){levels}")
        return f"r{f}"

    def inline(self, source: str, given: dict[str, str]) -> str:
        """A formula of one operator between arrays, in the place of a call; large ones go by the kernel, which takes what is broadcast."""
        plain = source.format(**given)
        if self.op.large is None:
            return plain
        self.scope["large"] = self.op.large
        return f"{plain} if g.nbytes < SPREAD_FROM else large({', '.join(given.values())})"

    def result(self, part: str, place: tuple[int, ...], several: bool) -> str:
        """The gradients of the inputs at `place`, as items of a list; several: whether `part` is a sequence of them."""
        if several:
            wanted = self.scope["wanted"] = tuple([bool(self.mask >> i & 1) for i in place])
            part = f"none_missing({part}, wanted)" if all(wanted) else f"some_missing({part}, wanted)"
            return f"*map(as_tensor, {part})" if self.tensors else f"*{part}"
        return f"as_tensor({part})" if self.tensors else part

    def expressions(self, requests: tuple[str, ...], needs: tuple[bool, ...]) -> list[str]:
        """The expressions for requests; the lines that prepare those not yet fetched are added."""
        found = []
        for request in requests:
            expression, setup = ("None", "") if request in self.absent else self.source_of(request, needs)
            if setup and expression not in self.fetched:
                self.fetched.add(expression)
                self.lines += setup.splitlines()
            found.append(expression)
        return found

    def source_of(self, request: str, needs: tuple[bool, ...]) -> tuple[str, str]:
        """The expression for a request, and the lines that prepare it."""
        op = self.op
        if request == "g":
            return (request, "") if op.out_count == 1 else self.gradient(op.differentiable[0])
        if request in op.tensors:
            return self.input(op.tensors.index(request))
        if request in op.static_names:
            return f"node.statics[{op.static_names.index(request)}]", ""
        if request in op.out_names:
            k = op.out_names.index(request)
            return f"out{k}", f"out{k} = output_{self.kind}(node, {k})"
        if request in op.aux:
            return f"node.aux[{op.aux.index(request)}]", ""
        if request.endswith("_spare"):
            i = op.tensors.index(request.removesuffix("_spare"))
            return ("None", "") if self.tensors else (f"spare{i}", f"spare{i} = spare(node, {i})")
        if request.endswith("_shape"):
            i = op.tensors.index(request.removesuffix("_shape"))
            return f"node.shapes[{i}{':' * (i == op.sequence)}]", ""
        if request == "needs":
            return repr(needs), ""
        if request == "gs":
            return ("[g]", "") if op.out_count == 1 else ("gs", "gs = [g] if node.count == 1 else g")
        return self.gradient(op.out_names.index(request.removeprefix("g_")))

    @property
    def kind(self) -> str:
        return "tensor" if self.tensors else "array"

    def gradient(self, k: int) -> tuple[str, str]:
        """The gradient of output `k`: the expression, and the line before."""
        return f"g{k}", f"g{k} = grad_of(node, g, {k}, {self.tensors})"

    def input(self, i: int) -> tuple[str, str]:
        """The saved input at position `i`, or those of the sequence: the expression, and the lines before."""
        if i == self.op.sequence:
            return f"x{i}", f"x{i} = tuple([input_{self.kind}(node, j) for j in range({i}, {self.plan.count})])"
        if self.tensors:
            return f"x{i}", f"x{i} = None if s[{i}] is None else input_tensor(node, {i})"
        checked = f"x{i} = None if x{i} is None else x{i}._array if x{i}._storage is None else input_array(node, {i})"
        return f"x{i}", f"x{i} = s[{i}]\n{checked}"


def as_tensor(value: object) -> object:
    """What a formula on tensors gave, where it gave an array."""
    return wrap(value) if value.__class__ is np.ndarray else value


def none_missing(values: tuple[Any, ...], wanted: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients of a sequence of tensors, all of which are wanted."""
    return some_missing(values, wanted) if values is None else values


def some_missing(values: tuple[Any, ...], wanted: tuple[bool, ...]) -> list[Any]:
    """The gradients of a sequence of tensors, None for those that are not wanted, or of all for None."""
    if values is None:
        return [None] * len(wanted)
    return [value if need else None for value, need in zip(values, wanted, strict=True)]


NAMES: dict[str, Any] = {
    "LARGE": LARGE, "SPREAD_FROM": SPREAD_FROM, "as_tensor": as_tensor, "gradient_by_blocks": gradient_by_blocks,
    "freed": freed, "grad_of": grad_of, "in_levels": in_levels, "input_array": input_array,
    "input_tensor": input_tensor, "modes": modes, "ndarray": np.ndarray, "none_missing": none_missing,
    "output_array": output_array, "output_tensor": output_tensor, "some_missing": some_missing,
    "spare": spare,
}  # fmt: skip


@lru_cache(256)
def code_of(source: str, name: str) -> CodeType:
    """Source as code: of joining two tensors it is that of joining three."""
    return compile(source, f"<backward of {name}>", "exec")


def dropped(lines: list[str]) -> list[str]:
    """Lines that let go of each saved input after its last use: one that was computed again takes memory."""
    names = dict.fromkeys(re.findall(r"\bx\d+\b", "\n".join(lines)))
    for name in names:
        last = max(i for i, line in enumerate(lines) if re.search(rf"\b{name}\b", line))
        lines = [*lines[: last + 1], f"{name} = None", *lines[last + 1 :]]
    return lines
