"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight.dispatch import call
from rushlight.dispatch.declare import Op
from rushlight.dispatch.fast import of_operator
from rushlight.dispatch.fast_source import binary, of_integers
from rushlight.ops.elementwise.arith import add, mul, neg, positive, sub, subtracted
from rushlight.ops.elementwise.compare import eq, ge, gt, le, lt, ne
from rushlight.ops.elementwise.divide import divided, floor_divide, remainder, true_divide
from rushlight.ops.elementwise.logic import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)
from rushlight.ops.elementwise.power import pow_op
from rushlight.ops.elementwise.rounding import abs as absolute
from rushlight.overrides.public import left_to
from rushlight.tensor import Tensor


def _named(name: str, fn: Callable[..., Any], doc: str) -> None:
    fn.__name__, fn.__qualname__, fn.__doc__ = name, f"Tensor.{name}", doc
    setattr(Tensor, name, fn)


def _operator(name: str, op: Op) -> Callable[..., Any]:
    """The Python operator `name`, which leaves what it does not know to the other operand's class."""
    if op.elementwise and ("f" not in op.refuse or of_integers(op)):
        return binary(op, partial(of_operator, name))
    return lambda self, other: of_operator(name, op, (self, other), None)


def _reflected(name: str, op: Op) -> Callable[..., Any]:
    """The operator with the tensor on its right."""

    def fn(self: Tensor, other: Tensor | complex) -> Tensor:
        if not isinstance(self, Tensor):
            raise TypeError(f"the operator of Tensor does not apply to a {type(self).__name__!r} object")
        return op.call(other, self) if isinstance(other, call.OPERANDS) else left_to(name, self, other)

    return fn


def _inplace(name: str, op: Op) -> Callable[..., Any]:
    """The operator that changes the tensor on its left."""

    def fn(self: Tensor, other: Tensor | complex) -> Tensor:
        if isinstance(other, call.OPERANDS):
            return call.apply_inplace(op, (self, other), ())
        return left_to(name, self, other)

    return fn


# name: operator, operator with its operands exchanged (None: by exchanging them), whether it works in place
ARITHMETIC: dict[str, tuple[Any, Any, bool]] = {
    "add": (add, add, True), "sub": (sub, subtracted, True), "mul": (mul, mul, True),
    "truediv": (true_divide, divided, True), "div": (true_divide, divided, True),
    "floordiv": (floor_divide, None, True), "mod": (remainder, None, True), "pow": (pow_op, None, True),
    "and": (bitwise_and, bitwise_and, True), "or": (bitwise_or, bitwise_or, True),
    "xor": (bitwise_xor, bitwise_xor, True), "lshift": (bitwise_left_shift, None, True),
    "rshift": (bitwise_right_shift, None, True),
}  # fmt: skip
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
         "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}  # fmt: skip
COMPARISONS = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}

for _name, (_fn, _exchanged, _writes) in ARITHMETIC.items():
    _sign = SIGNS[_name]
    _plain, _right, _own = f"__{_name}__", f"__r{_name}__", f"__i{_name}__"
    _named(_plain, _operator(_plain, _fn.op), f"self {_sign} other, broadcast.")
    _named(_right, _reflected(_right, _fn.op) if _exchanged is None else _operator(_right, _exchanged.op),
           f"other {_sign} self, broadcast.")  # fmt: skip
    _named(_own, _inplace(_own, _fn.op), f"self {_sign}= other.")
for _name, _fn in COMPARISONS.items():
    _named(
        f"__{_name}__", _operator(f"__{_name}__", _fn.op), f"Whether each element is {_name}, broadcast: a bool tensor."
    )


def _invert(self: Tensor) -> Tensor:
    if self._array.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors, got "
                        f"{self.dtype}")  # fmt: skip
    return bitwise_not(self)


for _name, _fn in (("__neg__", neg), ("__pos__", positive), ("__abs__", absolute)):
    setattr(Tensor, _name, _fn)
_named("__invert__", _invert, "~self: each bit, or each truth value, the other way round.")
