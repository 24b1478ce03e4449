"""Tables of vectors: embedding, bags of embeddings, one-hot codes.  Only the indices are saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.dtype_words import older
from rushlight.basics.errors import explained
from rushlight.basics.state import modes
from rushlight.dispatch import families, shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import also_named, as_int
from rushlight.dispatch.operands import check_tensor, one_number, raw
from rushlight.dispatch.options import shape_alone
from rushlight.dispatch.registry import NAMESPACES, function, known_as, op
from rushlight.dispatch.rules import Making, in_pieces
from rushlight.engine import inplace
from rushlight.engine.conform import tensor_functions
from rushlight.engine.rows import Rows
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.shape.reshape import unsqueeze_op
from rushlight.signs import to_hold
from rushlight.tensor import Tensor, wrap

F = "nn.functional"


def check_table(name: str, weight: Tensor, indices: Tensor) -> None:
    """Raise TypeError or RuntimeError unless `weight` is a matrix and `indices` are integers of 32 or 64 bits."""
    for argument, x in (("weight", weight), ("indices", indices)):
        check_tensor(name, argument, x)
    if weight._array.ndim != 2:
        raise RuntimeError(f"{name}(): 'weight' must be 2-D, got shape {list(weight.shape)}")
    if indices._array.dtype.kind not in "iu" or indices._array.dtype.itemsize < 4:
        raise explained(
            RuntimeError(
                f"{name}(): Expected tensor for argument #1 'indices' to have one of the following scalar "
                f"types: Long, Int; but got torch.{older(indices.dtype)}Tensor instead (while checking arguments for {name})"
            ),
            "indices-of-an-embedding",
        )


def rows_of(name: str, weight: Array, indices: Array) -> Array:
    """`weight[indices]`.  Raises IndexError for indices out of range."""
    try:
        if indices.size and indices.min() < 0:
            raise IndexError
        return backend.take_slices(weight, indices, 0)
    except IndexError:
        bad = indices[(indices < 0) | (indices >= len(weight))].reshape(-1)
        kind = RuntimeError if name == "embedding_bag" else IndexError
        raise explained(kind(f"{name}(): index out of range in self: got index {bad[0]}, expected indices in [0, "
                         f"{len(weight)})"), "indices-of-an-embedding") from None  # fmt: skip


@op(
    aten=("embedding(weight, indices, padding_idx=-1, by_freq=False, sparse=False)",),
    aten_gradient="embedding",
    saved_as={"scale_grad_by_freq": "by_freq"},
    masks=("indices",),
    batch=families.embedding,
    complex_half="moves",
)
def embedding_op(weight: Array, indices: Array, padding_idx: int, by_freq: bool, sparse: bool = False) -> Array:
    """The rows of `weight` at `indices`.  (V, D), (*) -> (*, D)

    sparse: whether the gradient of a leaf is to be a sparse tensor, which it is where no graph of it is asked for.
    """
    return rows_of("embedding", weight, indices)


@embedding_op.shape
def _(weight: Array, indices: Array) -> list[shapes.Made]:
    return [shapes.Made((*indices.shape, weight.shape[1]), weight.dtype)]


def _of_table(
    g: Array | Tensor, indices: Any, weight_shape: tuple[int, ...], padding_idx: int, by_freq: bool, sparse: bool
) -> object:
    check_frequency("embedding", sparse, by_freq)
    if sparse and no_graph(g):
        return used_rows(g.reshape(-1, weight_shape[1]), indices, weight_shape, padding_idx)
    return embedding_backward(g, indices, weight_shape[0], padding_idx, by_freq)


def table_shapes(
    g: Array, indices: Array, weight_shape: tuple[int, ...], by_freq: bool, sparse: bool, make: Making
) -> Any:
    """The gradient of a table: rows with their places where it is sparse."""
    if not sparse:
        made = make.gradient(0)
        make.work(g.nbytes if by_freq else in_pieces(g))  # the kernel adds rows that lie side by side
        return made
    return Rows(
        weight_shape,
        make.array((1, indices.size), np.dtype(np.int64)),
        make.array((indices.size, weight_shape[1]), g.dtype),
    )


embedding_op.grad("weight", raw=_of_table, shapes=table_shapes)(_of_table)


def no_graph(g: Array | Tensor) -> bool:
    """Whether a gradient is numbers alone: an array, or a tensor where only a mode of `__torch_dispatch__` asks for tensors."""
    if not isinstance(g, Tensor):
        return g.__class__ is np.ndarray
    ours = g._held.__class__ is np.ndarray and not (modes.grad or g._dispatched or g._meta)
    return ours and not any(level.owns((g,)) for level in modes.levels if not hasattr(level, "told"))


def used_rows(rows: Array | Tensor, indices: Any, shape: tuple[int, ...], padding_idx: int = -1) -> Rows | Tensor:
    """Rows of a gradient with the places that they are of, but for those of `padding_idx`.  (N, D), (*) of N numbers

    Of a tensor, a sparse tensor.
    """
    values = rows._array if isinstance(rows, Tensor) else rows
    places = raw(indices).reshape(-1).astype(np.int64)
    if padding_idx >= 0:
        kept = places != padding_idx
        values, places = values[kept], places[kept]
    found = Rows(shape, places[None], values)
    return tensor_functions["sparse"](found) if isinstance(rows, Tensor) else found


@op(name="embedding_dense_backward", half=None, masks=("indices",), batch=families.embedding_backward)
def embedding_backward(grad: Array, indices: Array, count: int, padding_idx: int, by_freq: bool) -> Array:
    """The rows of `grad` added up by index, not those of `padding_idx`.  (*, D), (*) -> (count, D)

    by_freq: divide by how often the index occurs.
    """
    if by_freq:
        grad = grad * _per_use(indices, count)[..., None].astype(grad.dtype)
    return backend.embedding_backward(grad, indices, count, padding_idx)


@embedding_backward.shape
def _(grad: Array, count: int) -> list[shapes.Made]:
    return [shapes.Made((count, grad.shape[-1]), grad.dtype)]


def _per_use(indices: Array, count: int) -> Array:
    return 1 / np.bincount(indices.reshape(-1), minlength=count)[indices]


@embedding_backward.grad("grad")
def _(g: Array | Tensor, indices: Array | Tensor, padding_idx: int, by_freq: bool) -> Array | Tensor:
    rows = embedding_op(g, indices, -1, False)
    if padding_idx < 0 and not by_freq:
        return rows
    array = raw(indices)
    kept = array != padding_idx
    if by_freq:
        factor = kept * _per_use(np.asarray(array), g.shape[0])
        return rows * factor[..., None].astype(raw(g).dtype)
    return rows * kept[..., None]


def check_frequency(name: str, sparse: bool, by_freq: bool) -> None:
    """Raise RuntimeError in the backward of sparse=True for rows that are to be divided by how often they were used."""
    if sparse and by_freq:
        raise RuntimeError(f"{name}: scale_grad_by_freq not supported with sparse gradients: give sparse=False")


def torch_embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
                    sparse: bool = False) -> Tensor:  # fmt: skip
    """The rows of `weight` (V, D) at `indices` (*): (*, D).  As torch.nn.functional.embedding, weight first."""
    check_table("embedding", weight, indices)
    return embedding_op(weight, indices, padding_idx, bool(scale_grad_by_freq), bool(sparse))


NAMESPACES[""]["embedding"] = torch_embedding
known_as(torch_embedding, "embedding")


def wrapped_padding(name: str, padding_idx: int | None, count: int, refuse: type[Exception], words: str) -> int:
    """`padding_idx` counted from the front, -1 for None.  Raises `refuse` in those words if it is out of range."""
    if padding_idx is None:
        return -1
    padding_idx = as_int(padding_idx, name, "padding_idx")
    if not -count <= padding_idx < count:
        raise refuse(f"{name}: {words}, {-count} through {count - 1}, but got {padding_idx}")
    return padding_idx % count


@function(ns=F)
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """The rows of `weight` at the indices `input`.  input: (*) int, weight: (V, D) -> (*, D)

    padding_idx: a row that gets no gradient. max_norm: rows used are first scaled, in place, to a norm (of order
    norm_type) of at most this. scale_grad_by_freq: divide a row's gradient by how often it was used.
    sparse: the gradient of `weight` is a sparse tensor, in the layout COO, of the rows that were used.
    Raises IndexError for indices out of range; backward raises RuntimeError for sparse=True with
    scale_grad_by_freq.

    >>> import rushlight as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [1.]])
    """
    check_table("embedding", weight, input)
    padding = wrapped_padding("embedding", padding_idx, weight._array.shape[0], AssertionError,
                              "Padding_idx must be within num_embeddings")  # fmt: skip
    if max_norm is not None:
        embedding_renorm_(weight.detach() if isinstance(weight, Tensor) else weight, input, max_norm, norm_type)
    return embedding_op(weight, input, padding, bool(scale_grad_by_freq), bool(sparse))


@function()
def embedding_renorm_(weight: Tensor, indices: Any, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale the rows of `weight` at `indices` to a norm of at most `max_norm`, in place.  (V, D), (*) -> (V, D)"""
    check_table("embedding_renorm_", weight, indices)
    max_norm = one_number("embedding_renorm_", "max_norm", max_norm)
    inplace.check(weight, False)
    if weight._meta:
        return weight
    rows = np.unique(indices._array)
    values = rows_of("embedding_renorm_", weight._array, rows)
    wide = values.astype(np.float32 if values.dtype.itemsize == 2 else values.dtype, copy=False)
    norms = np.linalg.norm(wide, ord=norm_type, axis=1)
    long = norms > max_norm
    if long.any():
        scale = max_norm / (norms[long] + 1e-7)
        weight._held[rows[long]] = to_hold(weight, (wide[long] * scale[:, None]).astype(values.dtype))
        inplace.written(weight, "embedding_renorm_")
    return weight


@function(ns=F)
@also_named(input="tensor")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at each index, 0 elsewhere.  (*) int64 -> (*, num_classes) int64, by default 1 + the largest index.

    Raises RuntimeError for indices that are negative or not under `num_classes`.
    """
    check_tensor("one_hot", "tensor", tensor, 1)
    index = tensor._array
    if index.dtype != np.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}.")
    if not index.size:
        if num_classes <= 0:
            raise RuntimeError("one_hot: Can not infer total number of classes from empty tensor: give num_classes.")
        return wrap(np.zeros((*index.shape, num_classes), np.int64))
    if tensor._meta and num_classes > 0:
        return shape_alone((*index.shape, num_classes), np.int64)
    known = everything(index)
    low, top = int(np.minimum.reduce(known, None)), int(np.maximum.reduce(index if num_classes == -1 else known, None))
    if low < 0:
        raise RuntimeError(f"one_hot: Class values must be non-negative, got {low}.")
    if num_classes == -1:
        num_classes = top + 1
    elif num_classes < 1:
        raise RuntimeError(f"one_hot: num_classes should be positive, got {num_classes}.")
    if top >= num_classes:
        raise RuntimeError(f"one_hot: Class values must be smaller than num_classes: got {top} and {num_classes}.")
    if index is not known:
        return cast(unsqueeze_op(tensor, (*index.shape, 1)) == wrap(np.arange(num_classes)), index.dtype)
    out = np.zeros((*index.shape, num_classes), np.int64)
    out.reshape(-1, num_classes)[np.arange(index.size), index.reshape(-1)] = 1
    return wrap(out)
