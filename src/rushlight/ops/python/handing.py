"""How a call of an operator is handed to `__torch_dispatch__`, of a mode or of a class, and what becomes of the answer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from rushlight.basics.state import Setting, modes, special
from rushlight.dispatch import call
from rushlight.dispatch.compute import compute
from rushlight.dispatch.declare import Op
from rushlight.engine.node import Node, next_seq
from rushlight.engine.saved import freed
from rushlight.ops.python import aten
from rushlight.overrides.protocol import DisableTorchFunctionSubclass, Unanswered
from rushlight.tensor import Tensor, wrap

# By the name of an operator: from it, its inputs and statics, the overload's name and the arguments that PyTorch has for the call.
Shown = tuple[str, tuple[Any, ...], dict[str, Any]]
SHOWN: dict[str, Callable[..., Shown | None]] = {}
# By the name of an operator: what PyTorch computes it by, above the graph.
COMPOSED: dict[str, Callable[..., Any]] = {}


# By the name of an operator: from a call and what a handler gave for it, the gradients that PyTorch has for that, as a
# function of the gradient of the first result; None where the operator's own formulas are as good.
GRADIENTS: dict[str, Callable[..., Any]] = {}
# By the name of an operator: from its inputs and statics and what a handler gave, what its formulas need beside the results.
AUXILIARY: dict[str, Callable[..., tuple[Any, ...]]] = {}
# By the name of an operator: its results as this library has them, from what a handler gave, which are PyTorch's.
FOUND: dict[str, Callable[..., tuple[Any, ...]]] = {}


def prepare() -> None:
    """Fill the tables: what does so is on a higher floor, and not there before somebody is handed an operator."""
    if not SHOWN:
        importlib.import_module("rushlight.library.aten")


def composed(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """What PyTorch's operators give where it has several, each of which is handed; NotImplemented where it has one, too."""
    prepare()
    rule = COMPOSED.get(op.name)
    if rule is None:
        return NotImplemented
    inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
    return rule(*inputs, *statics)


def shown(
    op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...], inplace: bool
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The overload, arguments and keywords by which a call is known."""
    prepare()
    rule = SHOWN.get(op.name)
    said = None if rule is None else rule(op, inputs, statics)
    if said is not None:
        name, args, kwargs = said
        return named(name, inplace), args, kwargs
    if statics and rule is None and not op.aten:
        return aten.own_packet(op.name + "_" * inplace).default, (*inputs, *statics), {}
    return aten.overload_of(op, inplace), (*inputs, *statics), {}


def named(name: str, inplace: bool = False) -> Any:
    """The overload of a name, or of its form in place."""
    word, _, overload = name.partition(".")
    return getattr(aten.packet(word + "_" * inplace), overload or "default")


class Call:
    """A call of an operator that is handed to somebody.

    known: the overload's name, arguments and keywords, where they are others than those of the operator.
    """

    def __init__(
        self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], inplace: bool = False, known: Shown | None = None
    ):
        inputs = flat if op.sequence is None else (*flat[: op.sequence], flat[op.sequence :])
        self.op, self.inputs, self.statics, self.inplace, self.flat = op, inputs, statics, inplace, flat
        if known is None:
            self.overload, args, self.kwargs = shown(op, inputs, statics, inplace)
            self.args = tuple([x.item() if isinstance(x, np.generic) else x for x in args])
        else:
            self.overload, self.args, self.kwargs = named(known[0], inplace), *known[1:]
        self.aux: tuple[Any, ...] | None = None
        self.given: tuple[Any, ...] = ()
        self.keeps = bool(op.aux and op.formulas and modes.grad and call.edges_of(op, flat)[0])

    def operands(self, overload: aten.Overload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The inputs, where arguments are those of this call, its operands apart; None of others, which are the overload's own."""
        pairs: list[Any] = []
        if self.op.aten_more:
            return None
        if (
            overload is not self.overload
            or not matches(self.args, args, pairs)
            or not matches(self.kwargs, kwargs, pairs)
        ):
            return None
        if self.statics and any(is_other(x, y) for x, y in pairs):
            return None
        found = [replaced(x, pairs) for x in self.flat]
        k = self.op.sequence
        return tuple(found) if k is None else (*found[:k], tuple(found[k:]))

    def run(self, inputs: tuple[Any, ...]) -> Any:
        """What the operator gives, below those that were asked."""
        op, statics = self.op, self.statics
        if self.inplace:
            return call.apply_inplace(op, inputs, statics)
        if modes.levels or modes.grad:
            return call.apply(op, inputs, statics)
        flat = call.flatten(op, inputs)
        if op.view and (flat[0]._bits or op.turns):
            return call.signed_view(op, flat, statics)
        same = all(x is y for x, y in zip(flat, self.flat, strict=True))  # formulas see the operands that were handed
        with Setting("grad", same and self.keeps):  # operators keep what formulas need where they are recorded alone
            outs, aux = compute(op, call.arrays_of(op, flat)[0], statics)
        if same and (self.keeps or not op.aux):
            self.aux = aux
        results = tuple(wrap(x) for x in outs)
        return results[0] if op.out_count == 1 else results

    def handed(self, handler: object, types: tuple[type, ...]) -> Any:
        """What a handler gives."""
        return handed(self, handler, self.overload, types, self.args, self.kwargs)

    def finished(self, given: object) -> Any:
        """What a handler gave, with its place in the graph."""
        op, flat = self.op, self.flat
        results = self.results(given)
        tracked = bool(modes.grad and op.formulas and call.edges_of(op, flat)[0])
        if not tracked and any(x is y for x in results for y in flat):
            return results[0] if op.out_count == 1 else results
        if not tracked:
            return call.deliver(op, flat, self.statics, results, ())
        results = tuple(fresh(x, flat) for x in results)
        by_operators = not aten.handed.formulas and kinds((*flat, *results))
        backward = GRADIENTS.get(op.name, no_gradients)(self) if by_operators else None
        if backward is None:
            aux = self.kept()
            if not op.aux or aux:
                return call.deliver(op, flat, self.statics, results, aux)
            backward = without_kept(op)
        if op.view:
            call.track_views(op, flat[0], results, self.statics)
        link(op, flat, results[0], backward)
        return results[0]

    def results(self, given: Any) -> tuple[Tensor, ...]:
        """The results among what a handler gave.  Raises RuntimeError where they are not there."""
        op = self.op
        several = isinstance(given, tuple | list)
        self.given = found = tuple(given) if several else (given,)
        if op.name in FOUND and all(isinstance(x, Tensor) for x in found):
            found = FOUND[op.name](self, found)
        found = found[: op.out_count]
        if (op.out_count or len(found)) != len(found) or not all(isinstance(x, Tensor) for x in found):
            raise RuntimeError(f"Unable to cast {given!r} to Tensor: __torch_dispatch__ of {self.overload}: expected "
                               f"{op.out_count or 'a list of'} Tensor(s): return what the operator gives")  # fmt: skip
        return found

    def kept(self) -> tuple[Any, ...]:
        """What the formulas of the operator need beside its results: made again where nobody ran it."""
        op = self.op
        if not op.aux:
            return ()
        if self.aux is not None:
            return self.aux
        if not kinds((*self.flat, *self.given)):
            return compute(op, call.arrays_of(op, self.flat)[0], self.statics)[1]
        rule = AUXILIARY.get(op.name)
        with unrecorded():
            return () if rule is None else rule(self)


def without_kept(op: Op) -> Callable[..., Any]:
    """What raises NotImplementedError for a gradient that needs what the operator keeps, which no class gives."""

    def backward(g: Tensor, wanted: int, node: Node) -> NoReturn:
        raise NotImplementedError(
            f"{op.name}: its gradient needs what the operator keeps beside its result, which a class with __torch_dispatch__ does "
            "not give: compute it on what the tensor holds"
        )

    return backward


def no_gradients(running: Call) -> None:
    """None: the gradients are those of the operator's own formulas."""


def matches(template: Any, given: Any, pairs: list[Any]) -> bool:
    """Whether arguments are those that were handed, tensors apart, of which `pairs` takes the old and the new."""
    if isinstance(template, Tensor):
        pairs.append((template, given))
        return isinstance(given, Tensor) or given.__class__ in call.NUMBERS
    if isinstance(template, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(given) != len(template):
            return False
        return all(matches(x, y, pairs) for x, y in zip(template, given, strict=True))
    if isinstance(template, dict):
        return template.keys() == given.keys() and all(matches(x, given[k], pairs) for k, x in template.items())
    if template is given:
        return True
    return template.__class__ is given.__class__ and template.__class__ in PLAIN and template == given


PLAIN = {int, float, bool, complex, str, slice}


def is_other(x: Tensor, y: object) -> bool:
    """Whether an operand is of another shape or dtype than the one that was handed."""
    return not isinstance(y, Tensor) or x._held.shape != y._held.shape or x._held.dtype != y._held.dtype


def replaced(x: object, pairs: list[Any]) -> Any:
    """What stands for an input, which is taken out of the pairs."""
    for i, (old, new) in enumerate(pairs):
        if old is x:
            del pairs[i]
            return new
    return x


class HandedBackward(Node):
    """A node whose gradients are computed by PyTorch's operators of them.

    backward: from a gradient, the mask of the inputs that want one, and this node, to the gradients of the inputs.
    """

    __slots__ = ("backward",)
    backward: Any

    def run(self, g: object, wanted: int) -> Any:
        """The same on arrays."""
        return [None if x is None else x._array for x in self.run_tensors(wrap(g), wanted)]

    def run_tensors(self, g: Tensor, wanted: int) -> list[Any]:
        """The gradients of the inputs."""
        if self.backward is None:
            freed(self)
        with DisableTorchFunctionSubclass():
            return list(self.backward(g, wanted, self))

    def release(self) -> None:
        """Drop what was saved."""
        self.backward = None


@cache
def kind_of_node(name: str) -> type[HandedBackward]:
    """The class of such nodes of an operator, by the name that its nodes have."""
    return type(name, (HandedBackward,), {"__slots__": ()})


def link(op: Op, flat: tuple[Any, ...], result: Tensor, backward: Callable[..., Any]) -> None:
    """Put a result into the graph, with gradients of its own."""
    if result._held.dtype.kind in "biu":
        return
    node = kind_of_node(op.node_type().__name__)()
    node.edges, node.extra, node.seq, node.backward = call.edges_of(op, flat)[1], None, next_seq(), backward
    node.shape, node.dtype = result._held.shape, result._held.dtype
    result._edge = node


def handed(
    running: object,
    handler: Any,
    overload: Any,
    types: tuple[type, ...],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
) -> Any:
    """What a handler gives for a call, which a call of the overload within it runs."""
    aten.handed.calls.append(running)
    try:
        return handler(overload, types, args, kwargs)
    finally:
        aten.handed.calls.pop()


def fresh(x: Tensor, flat: tuple[Any, ...]) -> Tensor:
    """A result that may get a place in the graph: one that is there already is seen through a view."""
    if x._edge is None and not any(x is given for given in flat):
        return x
    return special.classes.detached(x) if x._dispatched else wrap(x._array)


def kinds(values: Any) -> list[type]:
    """The classes with ``__torch_dispatch__`` of tensors: from the left, but a subclass before its superclasses."""
    found: list[type] = []
    for x in values:
        kind = type(x)
        if isinstance(x, Tensor) and x._dispatched and kind not in found:
            found.insert(next((i for i, y in enumerate(found) if issubclass(kind, y)), len(found)), kind)
    return found


def refused(overload: object, who: list[Any]) -> TypeError:
    """The error where all who were asked returned NotImplemented."""
    asked = "".join(
        f"\n\n  - {'tensor subclass' if isinstance(kind, type) else 'mode object'} {kind!r}" for kind in who
    )
    return Unanswered(
        f"Multiple dispatch failed for 'torch.ops.{overload}'; all __torch_dispatch__ handlers returned NotImplemented: one "
        f"of them is to know the operator{asked}"
    )


def unrecorded() -> Setting:
    """A context in which handlers run: the graph is made around them."""
    return Setting("grad", False)
