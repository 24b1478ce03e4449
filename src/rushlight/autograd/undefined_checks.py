"""gradcheck's look at gradients and tangents that are not given: they count as zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.autograd.function import FunctionNode
from rushlight.autograd.gradcheck_options import GradcheckError
from rushlight.engine.node import EVERY

if TYPE_CHECKING:
    from rushlight.autograd.jacobian_checks import Check


def backward(check: Any) -> None:
    """Raise GradcheckError unless outputs without a gradient count as outputs with a gradient of zero."""
    without_any([out for _, out in check.smooth(check.called())])
    if len(check.outputs) < 2:
        return
    for n, (k, _) in enumerate(check.outputs):
        outs = [out for _, out in check.smooth(check.called())]
        others = [out for m, out in enumerate(outs) if m != n]
        vectors = [check.random_like(out._array) for out in others]
        zero = np.zeros_like(outs[n]._array)
        try:
            found = check.vjp(others, vectors)
        except Exception as error:
            raise refusal(f"without a gradient of output {k} it", error) from error
        expected = check.vjp([*others, outs[n]], [*vectors, zero])
        for i, a, b in zip(check.checked, found, expected, strict=True):
            a, b = (0 if x is None else x._array for x in (a, b))
            if not np.allclose(a, b):
                raise GradcheckError("Expected undefined output grads to count as zeros: the gradient of input "
                                     f"{i} is another one without a gradient of output {k} than with zeros")  # fmt: skip


def refusal(which: str, error: Exception) -> GradcheckError:
    """The error for a backward that cannot do without a gradient."""
    return GradcheckError(
        f"Expected backward function to handle undefined output grads: {which} raised {type(error).__name__}: {error}"
    )


def without_any(outputs: list[Any]) -> None:
    """Raise GradcheckError unless custom functions give no gradient, or zeros, where none of the outputs has one.

    Operators pass on what they do not get, so that only custom functions are asked: those that nothing would reach.
    """
    stack, seen = [out.grad_fn for out in outputs], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        following = [fn for fn, _ in node.next_functions]
        if isinstance(node, FunctionNode):
            found = undefined_gradients(node)
            following = [fn for fn, g in zip(following, found, strict=True) if g is None]
        stack += following


def undefined_gradients(node: FunctionNode) -> list[Any]:
    """What the backward of a custom function gives if no output has a gradient, checked to be nothing or zero."""
    try:
        found = node.shown(node.call_backward([None] * node.count, False, EVERY))
    except Exception as error:
        raise refusal(f"without any, {node.name()}", error) from error
    asked = (g for g, (fn, _) in zip(found, node.next_functions, strict=True) if fn is not None)  # others go nowhere
    if any(g is not None and np.any(g._array) for g in asked):
        raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero: "
                             f"{node.name()} gives others")  # fmt: skip
    return found


def forward(check: Check) -> None:
    """Raise GradcheckError unless an input without a tangent counts as one with a tangent of zero."""
    for i in check.checked:
        tangents = {j: check.random_like(check.inputs[j]._array) for j in check.checked}
        expected = check.pushed({**tangents, i: np.zeros_like(tangents[i])})
        try:
            found = check.pushed({**tangents, i: None})
        except Exception as error:
            raise GradcheckError(f"Expected forward mode to handle undefined tangents: without one of input {i} it raised "
                                 f"{type(error).__name__}: {error}") from error  # fmt: skip
        for k, a, b in zip(check.numbers, found, expected, strict=True):
            if not np.allclose(a, b, equal_nan=True):
                raise GradcheckError(f"Expected undefined tangents to count as zeros: the tangent of output {k} is another "
                                     f"one without a tangent of input {i} than with zeros")  # fmt: skip
