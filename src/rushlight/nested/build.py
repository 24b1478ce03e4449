"""Making nested tensors of lists, of dense tensors, and of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.dispatch.named import named as torch
from rushlight.dispatch.options import check_options
from rushlight.nested.ragged import of_sizes, ragged
from rushlight.nested.tensor import Nested, NestedTensor, StridedNested, jagged_of, strided_of
from rushlight.tensor import Tensor, jagged, layout, strided

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "packed",
           "rebuilt_jagged"]  # fmt: skip


def packed(parts: Sequence[Tensor], like: layout = jagged) -> Nested:
    """Components as a nested tensor: one copy of their elements, with gradients to each.

    Raises RuntimeError where they differ in the number of dimensions, or, in the layout torch.jagged, in dtype or
        more than one size.
    """
    dims = {x.ndim for x in parts}
    if len(dims) > 1:
        raise RuntimeError(f"All Tensors given to nested_tensor must have the same dimension, got {sorted(dims)}")
    if like is strided:
        if not parts:
            return strided_of(torch.empty(0), ())
        return strided_of(torch.cat([x.reshape(-1) for x in parts]), tuple(tuple(x.shape) for x in parts))
    if not parts or dims == {0}:
        raise RuntimeError("nested tensor: expected a list of at least one component, of at least one dimension")
    if len({x.dtype for x in parts}) > 1:
        raise RuntimeError(f"nested tensor: expected components of one dtype, got {[x.dtype for x in parts]}")
    differ = [d for d, sizes in enumerate(zip(*(x.shape for x in parts), strict=True)) if len(set(sizes)) > 1]
    if len(differ) > 1:
        raise RuntimeError(f"nested tensor: in the layout torch.jagged components may differ in one size, but got differences in "
                           f"{differ}: {[tuple(x.shape) for x in parts]}")  # fmt: skip
    at = differ[0] if differ else 0
    return jagged_of(torch.cat(list(parts), at), of_sizes([x.shape[at] for x in parts]), at + 1)


def _checked(name: str, where: layout | None) -> layout:
    if where not in (None, strided, jagged):
        raise RuntimeError(f"{name}: expected layout torch.strided or torch.jagged, got {where}")
    return where or strided


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: layout | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Nested:
    """A nested tensor of copies of tensors, or of what `torch.tensor` takes; a leaf of the graph.

    layout: torch.strided by default, in which components may differ in every size; torch.jagged, in which they may
    differ in one and with which more can be computed.  Raises TypeError for what is no list, RuntimeError for
    components that do not fit.

    >>> import rushlight as torch
    >>> nt = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged)
    >>> [x.tolist() for x in (nt * 2).unbind()]
    [[2.0, 4.0], [6.0]]
    """
    layout = _checked("nested_tensor", layout)
    check_options("nested_tensor", device)
    if layout is strided and not isinstance(tensor_list, list | tuple):
        raise TypeError(
            f"nested_tensor: expected a list of tensors or of what torch.tensor takes, got {type(tensor_list).__name__}"
        )
    parts = [x.detach() if isinstance(x, Tensor) else torch.tensor(x, dtype=dtype) for x in tensor_list]
    kind = parts[0].dtype if dtype is None and layout is strided and parts else dtype
    found = packed(parts if kind is None else [x.to(kind) for x in parts], layout)
    return found.requires_grad_(requires_grad)


def as_nested_tensor(ts: object, dtype: dtypes.dtype | None = None, device: device | str | int | None = None,
                     layout: layout | None = None) -> Nested:  # fmt: skip
    """A nested tensor of tensors, with gradients to each: of a list, or of the parts of a dense one along its first dimension.

    One that is nested already is given back.  Raises TypeError for what is neither, RuntimeError for what does not fit.
    """
    found = _checked("as_nested_tensor", layout)
    check_options("as_nested_tensor", device)
    if isinstance(ts, Nested):
        if layout is not ts.layout:
            raise RuntimeError(
                f"as_nested_tensor: expected layout={ts.layout}, that of the nested tensor, got {layout}; give unbind()"
            )
        return ts if dtype is None else ts.to(dtype)  # type: ignore[return-value]
    if isinstance(ts, Tensor) and ts.ndim < 2:
        raise RuntimeError(f"as_nested_tensor: expected a tensor of two or more dimensions, got {ts.ndim}")
    if not isinstance(ts, Tensor | list | tuple) or any(not isinstance(x, Tensor) for x in ts):
        raise TypeError(f"as_nested_tensor: expected a tensor or a list of tensors, got {type(ts).__name__}")
    parts = list(ts)
    return packed(parts if dtype is None else [x.to(dtype) for x in parts], found)


def nested_tensor_from_jagged(values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None,
                              jagged_dim: int | None = None, min_seqlen: int | None = None,
                              max_seqlen: int | None = None) -> NestedTensor:  # fmt: skip
    """A nested tensor on the memory of `values`, in the layout torch.jagged, with gradients to them.

    values: components one after the other along `jagged_dim` - 1; offsets: (B + 1), where they begin, and where the
    last ends; lengths: (B), how long they are, where that is less.  Raises RuntimeError without either, ValueError
    for a jagged_dim below 1 and for another number of lengths.

    >>> import rushlight as torch
    >>> nt = torch.nested.nested_tensor_from_jagged(torch.arange(6.0), torch.tensor([0, 2, 6]))
    >>> nt.sum(1)
    tensor([ 1., 14.])
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged: At least one of offsets or lengths is required")
        offsets, lengths = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    elif lengths is not None and len(lengths) != len(offsets) - 1:
        raise ValueError(
            f"nested_tensor_from_jagged: expected a length for each of {len(offsets) - 1} components, got {len(lengths)}"
        )
    at = 1 if jagged_dim is None else jagged_dim
    if at < 1:
        raise ValueError(f"nested_tensor_from_jagged: expected jagged_dim of at least 1, got {at}")
    places = ragged(offsets, lengths, min_seqlen, max_seqlen)
    return jagged_of(values.view(values.shape), places, at)


def rebuilt_jagged(values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged_idx: int) -> NestedTensor:
    """A nested tensor of the parts that were pickled."""
    return jagged_of(values, ragged(offsets, lengths), ragged_idx)


def narrow(
    tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: layout | None = None
) -> NestedTensor:
    """A part of each of the tensors along the first dimension of a dense one, on its memory, in the layout torch.jagged.

    tensor: (B, L, *); dim: 1; start, length: of each part, (B) or a number for all.  Raises RuntimeError for a dim other than 1 and
    for another layout.
    """
    if dim != 1:
        raise RuntimeError(f"narrow: expected dim 1, got {dim}")
    if _checked("narrow", layout) is strided:
        raise RuntimeError("narrow: expected layout=torch.jagged, got torch.strided")
    batch, longest = tensor.shape[0], tensor.shape[1]
    begin, long = (x if isinstance(x, Tensor) else torch.full((batch,), x) for x in (start, length))
    starts = torch.arange(batch) * longest + begin
    offsets = torch.cat([starts, (starts + long)[-1:]])
    if bool(((begin < 0) | (long < 0) | (begin + long > longest)).any()):
        raise RuntimeError(
            f"narrow: expected parts within the {longest} places, got start {begin.tolist()}, length {long.tolist()}"
        )
    return jagged_of(tensor.flatten(0, 1), ragged(offsets, long.long()))


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements for which a mask says so, nested by rows.  tensor, mask: (B, L), or what broadcasts to it.

    Raises RuntimeError for another number of dimensions or another layout.
    """
    if mask.layout is not strided or tensor.layout is not strided or mask.ndim != 2:
        raise RuntimeError(
            f"masked_select: expected dense tensors and a mask of two dimensions, got one of shape {tuple(mask.shape)}"
        )
    return jagged_of(tensor.expand(mask.shape)[mask], of_sizes(mask.sum(1).tolist()))


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> StridedNested:
    """The first places of each sequence, as many as a mask has there, in the layout torch.strided.

    t: (B, L, E); mask: bool (B, L).  Raises RuntimeError where other places than the first are in the mask, unless
        mask_check is False.
    """
    if mask.dtype is not dtypes.bool or mask.ndim != 2 or t.ndim != 3 or t.shape[:2] != mask.shape:
        raise RuntimeError(f"_nested_tensor_from_mask: expected a tensor of three dimensions and a bool mask of its first two, got "
                           f"{tuple(t.shape)} and {tuple(mask.shape)} of {mask.dtype}")  # fmt: skip
    sizes = mask.sum(1)
    if mask_check and not bool((mask == (torch.arange(mask.shape[1]) < sizes[:, None])).all()):
        raise RuntimeError(
            "_nested_tensor_from_mask: expected a mask that begins with its True and has no gaps among them"
        )
    return packed([x[:n] for x, n in zip(t, sizes.tolist(), strict=True)], strided)  # type: ignore[return-value]


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether a mask has of each sequence the first places alone: what `_nested_tensor_from_mask` takes.  t: (B, L, E); mask: bool (B, L)"""
    return bool((mask == (torch.arange(mask.shape[1]) < mask.sum(1)[:, None])).all())


def _nested_from_padded(
    padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False
) -> StridedNested:
    """The components of a padded tensor, in the layout torch.strided.  padded: (B, ...); the sizes of each: int (B, dimensions)

    fuse_transform_0213: of four dimensions (B, H, L, E) it is (B, L, H * E) that is padded.  Raises RuntimeError for
        sizes beyond it.
    """
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    sizes = cpu_nested_shape_example.tolist()
    if any(
        len(size) != padded.ndim - 1 or any(n > m for n, m in zip(size, padded.shape[1:], strict=True))
        for size in sizes
    ):
        raise RuntimeError(
            f"_nested_from_padded: sizes {sizes} do not lie within those that are padded, {list(padded.shape[1:])}"
        )
    parts = [x[tuple(slice(n) for n in size)] for x, size in zip(padded, sizes, strict=True)]
    return packed(parts, strided)  # type: ignore[return-value]
