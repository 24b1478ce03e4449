"""Which operator is at fault where gradcheck finds a wrong derivative.

The function is run once more, every operator in it noted with its arguments and the line that called it; then each
operator is checked alone. Custom functions cannot be run alone: they are named if nothing else is wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.autograd.function import FunctionNode
from rushlight.autograd.gradcheck_options import GradcheckError, Options
from rushlight.basics.events import INPLACE, OPERATOR, Observation
from rushlight.basics.state import Setting
from rushlight.dispatch import call
from rushlight.engine.anomaly import Settings, user_line
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.autograd.jacobian_checks import Check
    from rushlight.dispatch.declare import Op

MOST = 200  # operators that are checked


class Notes:
    """An observer that keeps the operators called, with copies of their tensors."""

    passive = False

    def __init__(self) -> None:
        self.calls: list[tuple[Any, tuple[Any, ...], tuple[Any, ...], str]] = []

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> None:
        """Note a call."""
        if kind in (OPERATOR, INPLACE) and what.formulas and len(self.calls) < MOST:
            self.calls.append((what, tuple(copied(x) for x in call.flatten(what, inputs)), statics, user_line()))

    def end(self, kind: int, what: Any, inputs: object, statics: object, token: Any, result: Any) -> None:
        """Nothing."""


def copied(x: Any) -> Any:
    """A copy of a tensor, outside of all graphs."""
    return wrap(np.array(x._array)) if isinstance(x, Tensor) else x


def suspects(check: Check) -> str:
    """What is known of the operators that the function calls, as a sentence for the message."""
    from rushlight.autograd.jacobian_checks import as_tuple

    notes = Notes()
    try:
        with Observation(notes), Setting("anomaly", Settings(False)):  # which notes where custom functions are called
            outputs = check.called()
            outputs = as_tuple(check.func.of()) if hasattr(check.func, "of") else outputs
    except Exception:  # the message that this is for is the more important one
        return ""
    for op, flat, statics, line in notes.calls:
        wrong = failing(op, flat, statics, check)
        if wrong:
            return f"At fault is the operator {op.shown}, called at {line}: {wrong}\n"
    names = custom_functions(outputs)
    if names:
        return f"Every operator passes alone: suspect are the custom functions, {', '.join(names)}.\n"
    return ""


def custom_functions(outputs: tuple[Any, ...]) -> list[str]:
    """The names of the custom functions in the graph of outputs."""
    stack = [x.grad_fn for x in outputs if isinstance(x, Tensor) and x.grad_fn is not None]
    seen: set[Any] = set()
    names: dict[str, None] = {}
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, FunctionNode):
            line = line_of(node)
            names[type(node).__name__.removesuffix("Backward") + (f" (called at {line})" if line else "")] = None
        stack += [following for following, _ in node.next_functions if following is not None]
    return list(names)


def line_of(node: Any) -> str:
    """file:line of the call that made a node, as anomaly mode noted it."""
    trace = node.extra.traceback if node.extra is not None else None
    lines = re.findall(r'File "(.+?)", line (\d+)', trace or "")
    return ":".join(lines[-1]) if lines else ""


def failing(op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...], check: Check) -> str:
    """What is wrong with the derivatives of one operator alone, or ""."""
    free = [i for i, x in enumerate(flat) if isinstance(x, Tensor) and x._array.dtype.kind not in "biu"
            and (i in op.targets or (op.sequence is not None and i >= op.sequence))]  # fmt: skip
    for i in free:
        flat[i].requires_grad_()

    def alone(*inputs: object) -> Any:
        k = op.sequence
        return call.apply(op, inputs if k is None else (*inputs[:k], tuple(inputs[k:])), statics, False)

    problems: list[tuple[str, Any, tuple[Any, ...], str]] = [
        ("gradient", alone, flat, "backward"),
        ("tangent", alone, flat, "forward"),
    ]
    if hasattr(check.func, "of"):
        problems.append(("second derivative", None, flat, "backward"))
    for what, fn, inputs, mode in problems if free else ():
        error = refuted(fn, alone, inputs, mode, check.options)
        if error:
            return f"its own {what} is wrong ({error})"
    return ""


def refuted(
    fn: Callable[..., Any], alone: Callable[..., Any], inputs: tuple[Any, ...], mode: str, options: Options
) -> str:
    """The first line of what gradcheck says of `fn` in one mode, "" where it passes; None: of the gradients of `alone`."""
    from rushlight.autograd.jacobian_checks import Check, second_order

    if not getattr(options, f"check_{mode}_ad"):
        return ""
    settings = options._replace(check_backward_ad=mode == "backward", check_forward_ad=mode == "forward", fast_mode=True,
                                check_batched_grad=False, check_batched_forward_grad=False,
                                check_undefined_grad=False)  # fmt: skip
    try:
        if fn is None:
            fn, inputs = second_order(alone, inputs, None, False)
        Check(fn, inputs, settings, False).run()
    except GradcheckError as error:
        return str(error).splitlines()[0]
    except Exception:  # it cannot be checked alone
        return ""
    return ""
