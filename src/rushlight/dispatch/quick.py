"""Public functions of operators in the modes that decide only whether their results are recorded.

An operator's function looks at one number: whether any thread is in an unusual mode.  Where one is, but not this thread, or this
one does not record, the operator need not take the general path: it has two more functions, made when they are first called.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from rushlight.basics.state import INFERENCE, RECORDED, modes, special, way_of
from rushlight.dispatch.call import apply
from rushlight.storage import InferenceStorage
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.dispatch.declare import Op


class Usual:
    """What `state.special` is to a function that is not to look at modes."""

    count = 0


def unnoticed(op: Op, inputs: tuple[Any, ...], out: Tensor | None, statics: tuple[Any, ...] = ()) -> Any:
    """The general path of the functions here: observers were told, and `out` is never given."""
    return apply(op, inputs, statics, False)


def usual(op: Op) -> Callable[..., Any]:
    """The public function of `op` as it runs in the usual modes: it neither looks at them nor tells observers.

    It is kept as `op.unwatched`.
    """
    public: Any = op.call
    scope = scope_of(op)
    if scope is None:
        op.unwatched = general(op)
    else:
        if public.__code__ is scope["first"]:
            scope["write"]()
        op.unwatched = FunctionType(public.__code__, {**scope, "special": Usual, "slow": unnoticed}, op.name)
        op.unwatched.__kwdefaults__ = public.__kwdefaults__
    return op.unwatched


def unrecorded(op: Op) -> Callable[..., Any]:
    """The public function of `op` as it runs where nothing is recorded; the general path of views, which note their mode.

    It is kept as `op.unrecorded`.
    """
    scope, found = scope_of(op), dict[str, Any]()
    if scope is None or op.view:
        op.unrecorded = general(op)
    else:
        own = {**scope, "special": Usual, "slow": scope["general"], "edge_of": no_edge}
        exec(compile(scope["source"](op, own, recorded=False), f"<{op.name}>", "exec"), own, found)
        op.unrecorded = found["call"]
    return op.unrecorded


def general(op: Op) -> Callable[..., Any]:
    """The general path of `op` as a function of all its arguments in order."""
    count = len(op.tensors)

    def call(*values: object) -> Any:
        return apply(op, values[:count], values[count:], False)

    return call


def no_edge(tensor: Tensor) -> None:
    """The edge of a view where nobody asks: its history may be one that must not be used."""


def scope_of(op: Op) -> dict[str, Any] | None:
    """The globals of the function of an operator that was written out as source, else None."""
    scope = getattr(op.call, "__globals__", {})
    return scope if scope.get("call") is op.call and "write" in scope else None


def applied(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """What `call.apply` gives, quicker where nothing of a mode but whether results are recorded matters."""
    way = way_of(inputs) if special.count else 0
    if not way:
        return apply(op, inputs, statics)
    if way is RECORDED:
        return (op.unwatched or usual(op))(*inputs, *statics)
    result = (op.unrecorded or unrecorded(op))(*inputs, *statics)
    if way is not INFERENCE:
        return result
    return tuple([own(x) for x in result]) if result.__class__ is tuple else own(result)


def own(result: Any) -> Any:
    """As `made`, of what may be a view or no tensor."""
    return made(result) if result.__class__ is Tensor and result._view is None else result


def made(result: Tensor) -> Tensor:
    """A result that is no view, as it is in the mode of this thread: one of inference mode is marked as such."""
    if modes.inference and not result._unusual:
        result._inference = result._unusual = True
        result._storage = InferenceStorage(result._held)
    return result
