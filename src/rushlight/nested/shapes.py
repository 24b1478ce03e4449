"""Other shapes of the dimensions that are not ragged, in the layout torch.jagged: views of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.formats import memory_format
from rushlight.dispatch.named import named as torch
from rushlight.nested.elementwise import described
from rushlight.nested.ragged import NestedInt, of_sizes
from rushlight.nested.reductions import whole
from rushlight.nested.tensor import NestedTensor, answers, jagged_of
from rushlight.tensor import Tensor

_op = answers


def inner(name: str, nt: NestedTensor, dim: int, over: int = 0) -> int:
    """A dimension of the values.  Raises RuntimeError for those that values do not have, and for the ragged one."""
    found = wrap_dim(dim, nt.dim() + over)
    if found == 0 or (found == nt._ragged_idx and not over):
        kind = "that of components" if found == 0 else "the ragged one"
        raise RuntimeError(f"{name}: expected another dimension of the nested tensor than {kind}, got dim={dim}")
    return found - 1


def moved(nt: NestedTensor, values: Tensor, dim: int, by: int) -> NestedTensor:
    """Values which have `by` dimensions more in the place of one, or before it."""
    return jagged_of(values, nt._places, nt._ragged_idx + (by if dim < nt._ragged_idx else 0))


@_op(NestedTensor, "transpose", "swapaxes", "swapdims")
def transpose(input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    """Two dimensions exchanged; not that of components."""
    a, b = (wrap_dim(d, input.dim()) for d in (dim0, dim1))
    if 0 in (a, b) and a != b:
        error: type[Exception] = ValueError if input._ragged_idx in (a, b) else RuntimeError
        raise error(
            f"transpose: dimension 0 of a nested tensor, that of components, stays where it is: got {dim0} and {dim1}"
        )
    at = {a: b, b: a}.get(input._ragged_idx, input._ragged_idx)
    return input if a == b else jagged_of(input._values.transpose(a - 1, b - 1), input._places, at)


@_op(NestedTensor)
def permute(input: NestedTensor, *dims: object) -> NestedTensor:
    """Dimensions in another order, that of components first."""
    order = [
        wrap_dim(d, input.dim()) for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], tuple | list) else dims)
    ]
    if sorted(order) != list(range(input.dim())):
        raise RuntimeError(f"permute: expected each of {input.dim()} dimensions once, got {dims}")
    if order[0]:
        raise ValueError(f"permute: dimension 0 of a nested tensor, that of components, stays where it is: got {dims}")
    return jagged_of(input._values.permute([d - 1 for d in order[1:]]), input._places, order.index(input._ragged_idx))


@_op(NestedTensor, "mT.__get__")
def m_t(self: NestedTensor) -> NestedTensor:
    """The last two dimensions exchanged."""
    return transpose(self, -2, -1)


@_op(NestedTensor, "T.__get__")
def t_of(self: NestedTensor) -> NoReturn:
    """None.  Raises ValueError: the dimension of components stays where it is."""
    raise ValueError(
        "T of a nested tensor: dimension 0, that of components, stays where it is; transpose() exchanges two others"
    )


@_op(NestedTensor)
def unflatten(input: NestedTensor, dim: int, sizes: Sequence[int]) -> NestedTensor:
    """One dimension as several."""
    d = inner("unflatten", input, dim)
    return moved(input, input._values.unflatten(d, sizes), d + 1, len(sizes) - 1)


@_op(NestedTensor)
def flatten(input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    """Several dimensions as one: neither that of components nor the ragged one is among them."""
    a, b = (wrap_dim(d, input.dim()) for d in (start_dim, end_dim))
    if a == b:
        return input
    if a == 0 or a <= input._ragged_idx <= b:
        raise RuntimeError(
            f"flatten: expected dimensions without 0 and the ragged one, {input._ragged_idx}, got {a} to {b}"
        )
    return moved(input, input._values.flatten(a - 1, b - 1), a, a - b)


@_op(NestedTensor, "view", "reshape")
def view(input: NestedTensor, *shape: object) -> NestedTensor:
    """Another shape of the values.  The first size is that of components or -1; the ragged one is -1 in its place, or itself.

    Raises RuntimeError for a shape without them.
    """
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)
    symbol = input._places.symbol
    at = next((d for d, n in enumerate(sizes) if isinstance(n, NestedInt)), input._ragged_idx)
    if len(sizes) <= at or sizes[0] not in (-1, len(input)) or sizes[at] not in (-1, symbol):
        raise RuntimeError(
            f"view: expected {len(input)} or -1, and -1 or {symbol} for the ragged dimension of {described(input)}, got {tuple(sizes)}"
        )
    sizes[at] = input._values.shape[input._ragged_idx - 1]
    return jagged_of(input._values.reshape(sizes[1:]), input._places, at)


@_op(NestedTensor, "view_as", "reshape_as")
def view_as(self: NestedTensor, other: Tensor) -> NestedTensor:
    """The shape of another tensor."""
    return view(self, tuple(other.shape))


@_op(NestedTensor)
def expand(self: NestedTensor, *sizes: object) -> NestedTensor:
    """Dimensions of size 1 at other sizes."""
    given = tuple(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes)
    at = self._ragged_idx
    if len(given) != self.dim() or given[at] not in (-1, self._places.symbol) or given[0] not in (-1, len(self)):
        raise RuntimeError(
            f"expand: expected the sizes of {described(self)} or -1, and others in place of 1, got {given}"
        )
    return self._with(self._values.expand([-1 if d + 1 == at else n for d, n in enumerate(given[1:])]))


@_op(NestedTensor)
def expand_as(self: NestedTensor, other: Tensor) -> NestedTensor:
    """The shape of another tensor, where sizes are 1."""
    return expand(self, *other.shape)


@_op(NestedTensor)
def squeeze(input: NestedTensor, dim: Any = None) -> NestedTensor:
    """Without a dimension of size 1."""
    if dim is None or isinstance(dim, tuple | list):
        raise RuntimeError(f"squeeze: expected one dimension of a nested tensor, got {dim}")
    d = inner("squeeze", input, dim)
    return moved(input, input._values.squeeze(d), d + 1, -1) if input._values.shape[d] == 1 else input


@_op(NestedTensor)
def unsqueeze(input: NestedTensor, dim: int) -> NestedTensor:
    """With a dimension of size 1 more, behind that of components."""
    d = inner("unsqueeze", input, dim, over=1)
    return jagged_of(input._values.unsqueeze(d), input._places, input._ragged_idx + (d < input._ragged_idx))


@_op(NestedTensor)
def chunk(input: NestedTensor, chunks: int, dim: int = 0) -> tuple[NestedTensor, ...]:
    """Parts of one size along a dimension; along the first, groups of components."""
    if wrap_dim(dim, input.dim()):
        return tuple(input._with(x) for x in input._values.chunk(chunks, inner("chunk", input, dim)))
    sizes, at = input._places.sizes, input._ragged_idx
    step = -(-len(sizes) // chunks)
    groups = [sizes[i : i + step] for i in range(0, len(sizes), step)]
    values = whole(input).split([sum(g) for g in groups], at - 1)
    return tuple(jagged_of(v, of_sizes(g), at) for v, g in zip(values, groups, strict=True))


@_op(NestedTensor, "split", "split_with_sizes")
def split(tensor: NestedTensor, split_size_or_sections: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    """Parts of these sizes along a dimension that is neither that of components nor the ragged one."""
    return tuple(tensor._with(x) for x in tensor._values.split(split_size_or_sections, inner("split", tensor, dim)))


@_op(NestedTensor)
def narrow(input: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    """A part along a dimension that is neither that of components nor the ragged one."""
    return input._with(input._values.narrow(inner("narrow", input, dim), start, length))


@_op(NestedTensor)
def select(input: NestedTensor, dim: int, index: int) -> Any:
    """One component, or of each the part at an index of a dimension that is not ragged."""
    if wrap_dim(dim, input.dim()) == 0:
        return component(input, index)
    d = inner("select", input, dim)
    return moved(input, input._values.select(d, index), d + 1, -1)


def component(nt: Any, index: int) -> Tensor:
    """A component by its number, a view.  Raises IndexError for one that is not there."""
    if not -len(nt) <= index < len(nt):
        raise IndexError(f"expected the number of one of {len(nt)} components, got {index}")
    return nt.unbind()[index]


@_op(NestedTensor, "__getitem__")
def at_index(self: NestedTensor, index: object) -> Any:
    """A component, or a part of it; or `[..., i, a:b]`: of each component the part in its last dimensions.

    Raises RuntimeError for slices of components and of the ragged dimension.
    """
    if not isinstance(self, NestedTensor):
        raise NotImplementedError("indexing a dense tensor by a nested one: index it by values(), or take embedding()")
    given = index if isinstance(index, tuple) else (index,)
    if given and isinstance(given[0], int):
        found = component(self, given[0])
        return found[given[1:]] if len(given) > 1 else found
    if given and given[0] is Ellipsis and all(isinstance(i, int | slice) for i in given[1:]):
        if self.dim() - len(given[1:]) <= self._ragged_idx:
            raise RuntimeError(
                f"index {given}: expected none for the ragged dimension, {self._ragged_idx}, of a nested tensor"
            )
        return self._with(self._values[given])
    raise RuntimeError(
        f"index {given}: expected the number of a component first, or `...` and indices of dimensions behind the ragged one"
    )


@_op(NestedTensor, "cat", "concat", "concatenate")
def cat(tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    """Nested tensors of components of the same lengths, one beside the other along a dimension that is not ragged."""
    first = next(x for x in tensors if isinstance(x, NestedTensor))
    if any(not isinstance(x, NestedTensor) or x._places.sizes != first._places.sizes or x._ragged_idx != first._ragged_idx
           for x in tensors):  # fmt: skip
        raise RuntimeError("cat: expected nested tensors whose components have the same lengths")
    d = inner("cat", first, dim)
    return first._with(torch.cat([x._values for x in tensors], d))


@_op(NestedTensor)
def stack(tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    """Nested tensors whose components lie alike, along a new dimension behind that of components."""
    first = next(x for x in tensors if isinstance(x, NestedTensor))
    if any(not isinstance(x, NestedTensor) or x.shape != first.shape for x in tensors):
        raise RuntimeError("stack: expected nested tensors whose components lie in the same places")
    d = inner("stack", first, dim, over=1)
    if d + 1 == first._ragged_idx:
        raise RuntimeError(f"stack: expected another dimension than the ragged one, got dim={dim}")
    return jagged_of(
        torch.stack([x._values for x in tensors], d), first._places, first._ragged_idx + (d < first._ragged_idx)
    )


@_op(NestedTensor)
def contiguous(self: NestedTensor, memory_format: memory_format | None = None) -> NestedTensor:
    """Components side by side in the order of their elements: itself where they are."""
    if self.is_contiguous():
        return self
    if self._places.whole:
        return self._with(self._values.contiguous())
    return jagged_of(whole(self), of_sizes(self._places.sizes), self._ragged_idx)


@_op(NestedTensor)
def is_same_size(input: NestedTensor, other: Tensor) -> bool:
    """Whether another tensor has the same shape."""
    return isinstance(other, NestedTensor) and input.shape == other.shape


@_op(NestedTensor)
def equal(input: NestedTensor, other: NestedTensor) -> bool:
    """Whether the elements are equal.  Raises RuntimeError where components do not lie in the same places."""
    if not is_same_size(input, other):
        raise RuntimeError("equal: expected nested tensors whose components lie in the same places")
    return bool(whole(input).equal(whole(other)))
