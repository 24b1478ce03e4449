"""Sums and their like in the layout torch.jagged, along the ragged dimension and along others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.basics.tree import tree_map
from rushlight.dispatch.dims import wrap_dims
from rushlight.dispatch.named import named as torch
from rushlight.nested.elementwise import elementwise
from rushlight.nested.tensor import Nested, NestedTensor, jagged_of
from rushlight.tensor import Tensor

# Functions that take one dimension at a time, and those that take several.
_ONE, _SEVERAL = "max min argmax argmin prod", "sum mean amax amin any all"


def whole(nt: NestedTensor) -> Tensor:
    """The values without what lies between components."""
    return nt._values if nt._places.whole else torch.cat(list(nt.unbind()), nt._ragged_idx - 1)


def reduction(name: str) -> Callable[..., Any]:
    """The function of that name for nested tensors."""

    def found(input: NestedTensor, dim: object = None, keepdim: bool = False, **rest: object) -> Any:
        if isinstance(dim, Tensor):
            return elementwise(getattr(torch, name), "maximum" if name == "max" else "minimum", (input, dim), {})
        fn = getattr(torch, name)
        if dim is None or dim in ((), []):
            return fn(whole(input), **rest)
        dims = sorted(wrap_dims(dim if isinstance(dim, tuple | list) else (dim,), input.dim()))
        return over(fn, name, input, dims, keepdim, isinstance(dim, int), rest)

    return found


def over(
    fn: Callable[..., Any], name: str, nt: NestedTensor, dims: list[int], keep: bool, one: bool, rest: dict[str, Any]
) -> Any:
    """The reduction along dimensions.  Raises RuntimeError for components without the ragged dimension, and for that with others."""
    at = nt._ragged_idx
    inner: Any = [d - 1 for d in dims if d]
    inner = inner[0] if one and inner else inner
    if 0 in dims and at not in dims:
        raise RuntimeError(
            f"{name}: dimension 0 alone, or with others than the ragged one, {at}, is no dimension of any result: got dim {dims}"
        )
    if 0 in dims:
        found = fn(whole(nt), inner, keep, **rest)
        return found.unsqueeze(0) if keep else found
    if at not in dims:
        shift = 0 if keep else sum(d < at for d in dims)
        return tree_map(lambda r: jagged_of(r, nt._places, at - shift), fn(nt._values, inner, keep, **rest))
    if len(dims) > 1:
        error: type[Exception] = AssertionError if name == "mean" else RuntimeError
        raise error(
            f"{name}: expected the ragged dimension, {at}, alone or with dimension 0, got dim {dims}; reduce one after the other"
        )
    if not nt._places.whole:
        raise RuntimeError(f"{name}: along the ragged dimension of a nested tensor with holes; contiguous() has none")
    each = [fn(x, inner, keep, **rest) for x in nt.unbind()]
    if isinstance(each[0], tuple):
        return type(each[0])(*(torch.stack(list(column)) for column in zip(*each, strict=True)))
    return torch.stack(each)


for _name in (_ONE + " " + _SEVERAL).split():
    NestedTensor.TABLE[_name] = reduction(_name)


def padded(self: Nested, padding: float, output_size: Any = None) -> Tensor:
    """A dense tensor of all components, filled up with a number: to the longest in each dimension, or to output_size.

    Raises RuntimeError for a nested tensor with holes, and for a smaller output_size in the layout torch.strided.
    """
    if not (self._places.whole if isinstance(self, NestedTensor) else self.is_contiguous()):
        raise RuntimeError("to_padded_tensor: expected components side by side, in order; contiguous() makes them so")
    parts = self.unbind()
    largest = tuple(max(sizes) for sizes in zip(*(x.shape for x in parts), strict=True))
    if isinstance(self, NestedTensor):
        at = self._ragged_idx - 1
        largest = (*largest[:at], self._places.most, *largest[at + 1 :])
    sizes = largest if output_size is None else tuple(output_size)[1:]
    if len(sizes) != len(largest):
        raise RuntimeError(
            f"to_padded_tensor: expected an output_size of {len(largest) + 1} dimensions, got {len(sizes) + 1}"
        )
    if not isinstance(self, NestedTensor) and any(a < b for a, b in zip(sizes, largest, strict=True)):
        raise RuntimeError(
            "to_padded_tensor: Value in output_size is less than NestedTensor padded size: expected at least "
            f"{(len(parts), *largest)}, got {tuple(output_size)}"
        )
    if (
        isinstance(self, NestedTensor)
        and sizes[at] >= max(self._places.sizes)
        and sizes == (*largest[:at], sizes[at], *largest[at + 1 :])
    ):
        return _filled(self, padding, sizes[at])
    found = torch.full((len(parts), *sizes), padding, dtype=self.dtype)
    for i, x in enumerate(parts):
        kept = x[tuple(slice(0, n) for n in sizes)]
        found[(i, *(slice(0, n) for n in kept.shape))] = kept
    return found


def _filled(nt: NestedTensor, padding: float, length: int) -> Tensor:
    """All components filled up to a length, by one copy."""
    at, sizes = nt._ragged_idx - 1, torch.tensor(nt._places.sizes)
    first, end = nt._places.starts[0], nt._places.starts[-1] + nt._places.sizes[-1]
    values = nt._values.movedim(at, 0)[first:end]
    shift = torch.arange(len(sizes)) * length - nt.offsets()[:-1]
    rows = torch.arange(first, end) + shift.repeat_interleave(sizes)
    found = torch.full((len(sizes) * length, *values.shape[1:]), padding, dtype=nt.dtype).index_copy_(0, rows, values)
    return found.unflatten(0, (len(sizes), length)).movedim(1, at + 1)


for _kind in Nested.__subclasses__():
    _kind.TABLE["to_padded_tensor"] = padded
