"""The numbers that an operator of a program was given, and whether its sides differ at some of them alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .comparing import Difference, close, hold
from .observing import array
from .program import Side, run

Array = np.ndarray[Any, Any]
NUMERIC = "biufc"
LOW = r"\.float\(\)|float32|complex64"


def called(pattern: str, difference: Difference) -> ast.Call | None:
    """The first call in the program of an operator whose name the pattern has, perhaps with an underscore."""
    for node in (node for text in difference.statements for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).removesuffix("_")
            if re.search(rf"(^|\.)({pattern})$", name):
                return node
    return None


def given(pattern: str, difference: Difference) -> list[Array]:
    """The tensors and numbers among the operands of that call, in double precision; none where they cannot be had.

    Complex numbers stay complex, integers are of 64 bits.
    """
    import rushlight

    call = called(pattern, difference)
    if call is None:
        return []
    names: dict[str, Any] = {"torch": rushlight}
    for text in difference.statements:
        if re.search(rf"\b({pattern})_?\(", text):
            break
        try:
            exec(text, names)
        except Exception:
            continue
    return [value for node in operands(call) for value in evaluated(node, names)]


def operands(call: ast.Call) -> Iterator[ast.expr]:
    """What a call is applied to: a method's tensor, and its arguments, without the tangents that they are given."""
    method = isinstance(call.func, ast.Attribute) and not ast.unparse(call.func).startswith("torch.")
    first = [call.func.value] if method and isinstance(call.func, ast.Attribute) else []
    for node in (
        *first,
        *call.args,
        *(word.value for word in call.keywords if word.arg not in ("dim", "out", "correction")),
    ):
        dual = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("make_dual")
        yield node.args[0] if dual and isinstance(node, ast.Call) else node


def evaluated(node: ast.expr, names: dict[str, Any]) -> Iterator[Array]:
    """An operand as an array, if it is a tensor or a number."""
    try:
        value = eval(ast.unparse(node), names)
    except Exception:
        return
    if hasattr(value, "requires_grad"):
        value = array(value)
    if isinstance(value, np.ndarray | float | int | complex) and np.asarray(value).dtype.kind in NUMERIC:
        value = np.asarray(value)
        yield value.astype({"f": np.float64, "c": np.complex128}.get(value.dtype.kind, value.dtype))


def precision(difference: Difference) -> float:
    """To what part numbers are to agree: float64 may have been computed from less."""
    low = re.search(LOW, "\n".join(difference.statements)) is not None
    return max(difference.tolerance or 1e-9, 1e-6 * low)


def apart(difference: Difference, special: Any = False) -> Array | None:
    """Where the sides' numbers differ; None where they are no arrays of one shape.

    special: where numbers may be of any size, which says nothing of the precision of the others.
    """
    a, b = difference.reference, difference.subject
    if not isinstance(a, np.ndarray | float | complex) or not isinstance(b, np.ndarray | float | complex):
        return None
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype.kind not in NUMERIC or b.dtype.kind not in NUMERIC:
        return None
    if a.dtype.kind not in "fc":
        return np.asarray(a != b)
    with np.errstate(all="ignore"):
        scale = float(np.max(np.abs(a), where=np.isfinite(a) & ~np.asarray(special), initial=1.0))
        tolerance = precision(difference)
        alike = np.isclose(b, a, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if a.dtype.kind == "c":  # which part is infinite or NaN follows from nothing but the order of operations
        alike |= ~np.isfinite(a) & ~np.isfinite(b)
    return np.asarray(~alike)


def only_at(pattern: str, special: Callable[..., Any], difference: Difference) -> bool:
    """Whether the sides differ only where the operands of that operator are special, element by element.

    special: a function of the operands (those of a shape that goes with the others') that gives a mask.  A gradient of an
    operand that was broadcast is special where any of its copies is.
    """
    where, values = apart(difference), given(pattern, difference)
    if where is None or not values:
        return False
    try:
        with np.errstate(all="ignore"):
            mask = np.asarray(special(*np.broadcast_arrays(*values)), bool)
        reach = reduced(mask, where.shape)
    except (TypeError, ValueError):  # operands of another number, or shapes that do not go together
        return False
    return not np.any(apart(difference, reach) & ~reach)


def reduced(mask: Array, shape: tuple[int, ...]) -> Array:
    """A mask brought to a shape: any of the elements that are one there.  Raises ValueError where it does not fit."""
    extra = tuple(range(mask.ndim - len(shape))) if mask.ndim >= len(shape) else ()
    mask = mask.any(axis=extra)
    axes = tuple(
        axis for axis, size in enumerate(shape) if size == 1 and mask.ndim == len(shape) and mask.shape[axis] != 1
    )
    return np.broadcast_to(mask.any(axis=axes, keepdims=True), shape)


def some(pattern: str, special: Callable[[Array], Any], difference: Difference) -> bool:
    """Whether any element of any operand of that operator is special."""
    with np.errstate(all="ignore"):
        return any(bool(np.any(special(value))) for value in given(pattern, difference))


def empty(pattern: str, difference: Difference) -> bool:
    """Whether an operand of that operator has no elements."""
    return any(value.size == 0 for value in given(pattern, difference))


def pointlike(pattern: str, difference: Difference) -> bool:
    """Whether no operand of that operator has dimensions."""
    return all(value.ndim == 0 for value in given(pattern, difference))


def executed(difference: Difference) -> tuple[dict[str, Any], list[str]]:
    """The names that the program leaves in rushlight, and the statements that it refuses."""
    execution = run(difference.statements, both(difference)[1])
    pairs = zip(difference.statements, execution.outcomes)
    return execution.names, [text for text, outcome in pairs if outcome is not None]


def there(difference: Difference) -> dict[str, Any]:
    """The names that the program leaves in PyTorch."""
    return run(difference.statements, both(difference)[0]).names


Rewrite = Callable[[str], str]


def otherwise(difference: Difference, rewrite: Rewrite) -> bool:
    """Whether rushlight has the reference's numbers when it runs the program with its statements rewritten so."""
    return has(both(difference)[1], difference, rewrite, difference.reference)


def reference_otherwise(difference: Difference, rewrite: Rewrite) -> bool:
    """Whether PyTorch has rushlight's numbers when it runs the program with its statements rewritten so."""
    return has(both(difference)[0], difference, rewrite, difference.subject)


def has(side: Side, difference: Difference, rewrite: Rewrite, wanted: Any) -> bool:
    """Whether a side comes to these numbers with the statements rewritten."""
    names = run(list(map(rewrite, difference.statements)), side).names
    try:
        found = eval(difference.where, names)
        value = np.asarray(found) if isinstance(found, float) else array(found)  # a number that a hook wrote
    except Exception:
        return False
    number = isinstance(wanted, np.ndarray | float)
    return number and close(np.asarray(wanted), value, difference.tolerance or 1e-9)


def agree(difference: Difference, rewrite: Rewrite) -> bool:
    """Whether PyTorch and rushlight come to the same there with the statements rewritten; one that becomes empty is left out.

    Not so where they do not differ as it is: nothing is known then of what makes the difference.
    """
    until = difference.statements[: None if difference.step is None else difference.step + 1]
    if not any(same_place(other, difference) for other in hold(until, *both(difference))):
        return False
    found = hold([text for text in map(rewrite, until) if text], *both(difference))
    return not any(same_place(other, difference) or other.step is not None for other in found)


def wholly_agree(difference: Difference, rewrite: Rewrite) -> bool:
    """Whether PyTorch and rushlight take all statements up to there, rewritten, and come to the same numbers everywhere."""
    until = difference.statements[: None if difference.step is None else difference.step + 1]
    sides = both(difference)
    rewritten = list(map(rewrite, until))
    return not any(run(rewritten, side).outcomes[-1] for side in sides) and not any(
        other.what in (*HIDING, "value") for other in hold(rewritten, *sides)
    )


def same_place(one: Difference, other: Difference) -> bool:
    """Whether differences are of one thing: of a fact of a tensor, or of what would hide one; or both of what hooks wrote."""
    if other.where.startswith("log"):
        return one.where.startswith("log")
    return one.where == other.where and (one.what in (other.what, *HIDING) or other.what in HIDING)


HIDING = "dtype", "shape", "grad", "outcome", "leniency"  # facts that differ where others can then not be compared


def both(difference: Difference) -> tuple[Side, Side]:
    """PyTorch and rushlight, to run programs like the one of a difference."""
    import torch

    import rushlight

    return difference.sides or (Side("torch", torch), Side("rushlight", rushlight))


def taken(difference: Difference, rewrite: Rewrite) -> bool:
    """Whether PyTorch takes the statement at which the sides differ with the statements rewritten."""
    until = difference.statements[: (difference.step or 0) + 1]
    return run(list(map(rewrite, until)), both(difference)[0]).outcomes[-1] is None


def agree_without(difference: Difference, pattern: str) -> bool:
    """Whether PyTorch and rushlight come to the same there when the statements in which the pattern is found are left out."""
    return agree(difference, lambda text: "" if re.search(pattern, text) else text)


def agree_without_refused(difference: Difference, pattern: str = "") -> bool:
    """Whether PyTorch and rushlight come to the same there without those of these statements that neither takes."""
    outcomes = (run(difference.statements, side).outcomes for side in both(difference))
    refused = [
        text for text, *raised in zip(difference.statements, *outcomes) if all(raised) and re.search(pattern, text)
    ]
    return bool(refused) and agree(difference, lambda text: "" if text in refused else text)


CHANGE = re.compile(r"(?m)^\s*(?!\w+ = )[\w.\[\]]+(\.\w+_\(| [-+*/]?= )")


def as_with_copies(difference: Difference) -> bool:
    """Whether rushlight's gradients, which PyTorch refuses for a changed tensor, are PyTorch's once it saves copies.

    Hooks switch the check of versions off, and copies keep what was saved.  Where rushlight raises behind that tensor,
    because of the program's own statements, PyTorch must then raise the same.
    """
    import torch

    reference, subject = both(difference)
    until = difference.statements[: (difference.step or 0) + 1]
    refused = run(until, reference).outcomes
    without_zeros = re.sub(
        r"(, )?materialize_grads=True", "" if "allow_unused" in until[-1] else ", allow_unused=True", until[-1]
    )
    until = [*(text for text, outcome in zip(until[:-1], refused) if outcome is None), without_zeros]
    until = [
        re.sub(r"torch\.autograd\.graph\.disable_saved_\w+\([^()]*\)", "torch.enable_grad()", text) for text in until
    ]
    until = [
        text for text in until if "register_multi_grad_hook(" not in text
    ]  # with which it refuses `grad` at leaves
    forms = [lambda tensor: tensor.detach().clone()]
    if any(".data" in text for text in until):  # a change of which is seen in backward
        forms.append(lambda tensor: tensor)
    ours = run(until, subject)
    raised, here = ours.outcomes[-1], gradients(until[-1], ours)
    for form in forms:
        with torch.autograd.graph.saved_tensors_hooks(form, lambda tensor: tensor):
            taken = run(until, reference)
        if raised is not None and taken.outcomes[-1] == raised:
            return True
        there = gradients(until[-1], taken) if raised is taken.outcomes[-1] is None else None
        if there is not None and all(none_or_close(there.get(x), here.get(x)) for x in there.keys() | here.keys()):
            return True
    return False


def gradients(last: str, execution: Any) -> dict[str, Array]:
    """What the last statement assigned, and the gradients of tensors, by their expressions."""
    from .precision import arrays_of

    made = last.partition(" = ")[0]
    found = arrays_of(execution)
    return {name: value for name, value in found if name.endswith(".grad") or name.partition("[")[0] == made}


def none_or_close(one: Array | None, other: Array | None) -> bool:
    """Whether gradients are equal, none being zeros."""
    if one is None or other is None:
        return (one is None or not one.any()) and (other is None or not other.any())
    return close(one, other, 1e-9)


def has_empty(difference: Difference) -> bool:
    """Whether some tensor of the program has no elements."""
    names, _ = executed(difference)
    return any(part.numel() == 0 for value in names.values() for part in tensors_in(value))


def refuses(pattern: str, difference: Difference) -> bool:
    """Whether rushlight refuses a statement that calls this operator."""
    _, refused = executed(difference)
    return any(re.search(rf"\b({pattern})_?\(", text) for text in refused)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensor, or those in a tuple or list."""
    import rushlight

    if isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, rushlight.Tensor):
        yield value
