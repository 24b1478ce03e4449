"""What is computed of each element by itself: with values, which lie alike in the result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.basics.tree import tree_flatten, tree_map, tree_unflatten
from rushlight.dispatch.declare import OPS
from rushlight.dispatch.named import named as torch
from rushlight.nested.tensor import Nested, NestedTensor, StridedNested, refuse
from rushlight.overrides.protocol import unasked
from rushlight.tensor import Tensor

# What is composed of operators of each element by itself, draws for each, or makes another tensor of the same places;
# Python's methods.
COMPOSED = frozenset(
    "alpha_dropout bfloat16 bool byte cdouble celu cfloat char clamp_max clamp_min clip clone copy cpu detach divide double dropout empty_like "
    "fill float float_power full_like greater greater_equal half int less less_equal long masked_fill multiply not_equal ones_like pin_memory "
    "positive rand_like randn_like real.__get__ imag.__get__ relu6 selu share_memory short softplus softsign subtract tanhshrink to true_divide "
    "type type_as where zero zeros_like "
    "__abs__ __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ "
    "__neg__ __pos__ __pow__ __rpow__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __invert__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__".split()
)
# PyTorch refuses these.
REFUSED = frozenset("addcdiv addcmul hardswish log_sigmoid logsigmoid rrelu".split())
# In the layout torch.strided PyTorch has these and no others.
STRIDED = frozenset(
    "abs absolute add alpha_dropout bfloat16 bool byte cdouble cfloat char clone conj conj_physical copy cos cpu detach div divide double dropout "
    "empty_like eq fill float ge gelu gt half int isinf isnan isneginf isposinf isreal logical_not long masked_fill mul multiply neg "
    "negative normal_ ones_like pin_memory positive randn_like real.__get__ relu sgn share_memory short silu sin softsign sqrt sub subtract tanh "
    "tanhshrink to true_divide type type_as zero zeros_like __abs__ __add__ __radd__ __sub__ __mul__ __rmul__ __truediv__ __neg__ __pos__ __gt__ "
    "__ge__ __eq__".split()
)


@functools.cache
def pointwise() -> frozenset[str]:
    """The public names of functions of each element by itself."""
    named = {name for op in OPS.values() if op.pointwise for name in (op.shown, op.name, *op.aliases)}
    return (COMPOSED | named) - REFUSED


def elementwise(func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of values in the places of the first nested tensor.  Raises NotImplementedError unless it takes each by itself.

    Raises RuntimeError for nested tensors that lie otherwise, and for dense ones that do not broadcast.
    """
    leaves, tree = tree_flatten((args, kwargs))
    first = next(x for x in leaves if isinstance(x, Nested))
    short = name if name.startswith("__") else name.removesuffix("_")
    allowed = pointwise() if isinstance(first, NestedTensor) else STRIDED
    if short not in allowed and name not in allowed:
        refuse(name, first)
    if short in ("type_as", *(("eq", "ge", "gt", "__eq__") if allowed is STRIDED else ())):
        leaves = [leaves[0], *(compared(name, first, x) for x in leaves[1:])]
    if name.endswith("_") and not name.startswith("__") and not isinstance(args[0], Nested):
        raise RuntimeError(f"{name}: a dense tensor cannot become a nested one in place")
    given, named = tree_unflatten([operand(name, first, x) for x in leaves], tree)
    result = unasked(func, *given, **named)
    return tree_map(lambda r: back(r, first, leaves), result)


def back(result: object, first: Nested, given: list[Any]) -> Any:
    """Values as a nested tensor: one of those given where it is theirs."""
    if not isinstance(result, Tensor):
        return result
    same = next((x for x in given if isinstance(x, Nested) and x._values is result), None)
    return first._with(result) if same is None else same


def operand(name: str, first: Nested, x: object) -> Any:
    """What takes the place of an argument beside the values of a nested tensor."""
    if isinstance(x, Nested):
        if not alike(first, x):
            raise RuntimeError(
                f"{name}: expected nested tensors whose components lie in the same places, got {described(first)} and "
                f"{described(x)}; give nested_tensor_from_jagged() the offsets() of the other"
            )
        return x._values
    if not isinstance(x, Tensor) or x.ndim == 0:
        return x
    if isinstance(first, StridedNested):
        if x.numel() == 1:
            return x.reshape(())
        raise RuntimeError(
            f"{name}: expected numbers or nested tensors beside one in the layout torch.strided, got a dense one of shape "
            f"{tuple(x.shape)}"
        )
    return fitted(name, first, x)  # type: ignore[arg-type]


def compared(name: str, first: Nested, x: object) -> Any:
    """What takes the place of another nested tensor of which the dtype alone counts, or which is refused."""
    if not isinstance(x, Nested):
        return x
    return x._values.detach().reshape(-1)[:0].sum() if name == "type_as" else refuse(name, first)


def described(nt: Nested) -> str:
    """A nested tensor in words."""
    return f"one of shape {tuple(nt.shape)}" if isinstance(nt, NestedTensor) else "one in the layout torch.strided"


def alike(a: Nested, b: Nested) -> bool:
    """Whether the elements of two nested tensors have the same places."""
    if isinstance(a, NestedTensor) and isinstance(b, NestedTensor):
        return a._places.symbol == b._places.symbol and a._ragged_idx == b._ragged_idx and a.dim() == b.dim()
    return (
        isinstance(a, StridedNested) and isinstance(b, StridedNested) and (a._sizes, a._order) == (b._sizes, b._order)
    )


def fitted(name: str, nt: NestedTensor, x: Tensor) -> Tensor:
    """A dense tensor that broadcasts against values as it would against each component.

    x: of fewer dimensions, or (B or 1, 1 or the longest, *).  Nothing is made larger than the values.
    """
    at, batch = nt._ragged_idx, len(nt)
    place = at - (nt.dim() - x.ndim)  # the ragged dimension, in x
    if x.ndim < nt.dim() and (place < 0 or x.shape[place] == 1):
        return x
    if x.ndim == nt.dim() and x.shape[0] == 1 and x.shape[at] == 1:
        return x[0]
    if x.ndim == nt.dim() and x.shape[0] == batch and nt._places.whole:
        if x.shape[at] == 1:
            return x.movedim(0, at).squeeze(at - 1).repeat_interleave(torch.tensor(nt._places.sizes), at - 1)
        if x.shape[at] == nt._places.most:
            return torch.cat([c.narrow(at - 1, 0, n) for c, n in zip(x, nt._places.sizes, strict=True)], at - 1)
    raise RuntimeError(
        f"{name}: a dense tensor of shape {tuple(x.shape)} does not broadcast against each component of {described(nt)}: "
        "expected 1 in the place of the ragged dimension, or the length of the longest component"
    )


for _kind in (NestedTensor, StridedNested):
    _kind.TABLE["elementwise"] = elementwise
