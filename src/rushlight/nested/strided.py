"""What PyTorch has for nested tensors in the layout torch.strided, whose components may differ in every size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.basics.dtypes import dtype
from rushlight.basics.naming import called
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.formats import memory_format
from rushlight.dispatch.named import Named
from rushlight.dispatch.named import named as torch
from rushlight.nested.build import packed
from rushlight.nested.shapes import component
from rushlight.nested.tensor import Nested, StridedNested, answers, refuse, strided_of
from rushlight.tensor import Tensor, strided

F: Any = Named("nn.functional")
_op = answers


def each(nt: StridedNested, fn: Callable[[Tensor], Tensor]) -> StridedNested:
    """A function of each component."""
    return packed([fn(x) for x in nt.unbind()], strided)  # type: ignore[return-value]


def by_rows(nt: StridedNested, fn: Callable[[Tensor], Tensor]) -> StridedNested:
    """A function of the last dimension, in one call where that has one size in all components."""
    shapes = nt._shapes()
    if not nt.is_contiguous() or len({s[-1] for s in shapes}) != 1 or not shapes[0][-1]:
        return each(nt, fn)
    rows = fn(nt._values.view(-1, shapes[0][-1]))
    return strided_of(rows.reshape(-1), tuple((*s[:-1], rows.shape[-1]) for s in shapes))


@_op(StridedNested)
def linear(input: StridedNested, weight: Tensor, bias: Tensor | None = None) -> StridedNested:
    """The product of each position with a matrix, plus a bias."""
    return by_rows(input, lambda x: F.linear(x, weight, bias))


@_op(StridedNested)
def softmax(
    input: StridedNested, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> StridedNested:
    """Softmax along a dimension of each component.  Raises RuntimeError for that of components."""
    d = wrap_dim(-1 if dim is None else dim, input.dim())
    if d == 0:
        raise RuntimeError(f"softmax: expected a dimension of each component, got dim={dim}")
    return each(input, lambda x: torch.softmax(x, d - 1, dtype=dtype))


@_op(StridedNested)
def embedding(input: StridedNested, weight: Tensor, *args: object, **kwargs: object) -> StridedNested:
    """The row of a matrix for each index."""
    return each(input, lambda x: F.embedding(x, weight, *args, **kwargs))


@_op(StridedNested, "sum")
def sum_of(
    input: StridedNested, dim: object = None, keepdim: bool = False, *, dtype: dtype | None = None
) -> StridedNested:
    """Sums along the last dimension, which stays.  Raises RuntimeError for others."""
    dims = [
        wrap_dim(d, input.dim()) for d in (dim if isinstance(dim, tuple | list) else (dim,) if dim is not None else ())
    ]
    if dims != [input.dim() - 1] or not keepdim:
        error = RuntimeError if dims else NotImplementedError
        raise error(
            f"sum: of a nested tensor in the layout torch.strided along its last dimension, with keepdim=True, and along no "
            f"other; got dim={dim}, keepdim={keepdim}. The layout torch.jagged has more"
        )
    return by_rows(input, lambda x: x.sum(-1, True, dtype=dtype))


@_op(StridedNested, "all")
def all_of(input: StridedNested, dim: int | None = None, keepdim: bool = False) -> StridedNested:
    """Whether all elements along a dimension are true."""
    if dim is None:
        refuse("all", input)
    return each(input, lambda x: x.all(wrap_dim(dim, input.dim()) - 1, keepdim))


@_op(StridedNested, "matmul", "__matmul__")
def matmul(input: Any, other: Any) -> StridedNested:
    """The product of matrices of each pair of components.  Raises RuntimeError where one is dense, but for four dimensions."""
    if isinstance(input, StridedNested) and not isinstance(other, Nested) and input.dim() == 4 and other.ndim == 2:
        return by_rows(input, lambda x: x.matmul(other))
    if not (isinstance(input, StridedNested) and isinstance(other, StridedNested)):
        raise RuntimeError(
            "matmul: expected two nested tensors in the layout torch.strided; linear() and bmm() take a dense one"
        )
    return bmm(input, other)


@_op(StridedNested)
def bmm(input: Any, mat2: Any) -> StridedNested:
    """The product of each component with one of another nested tensor, or of a dense one."""
    a, b = (x.unbind() for x in (input, mat2))
    if len(a) != len(b):
        raise RuntimeError(f"bmm: expected as many components on both sides, got {len(a)} and {len(b)}")
    return packed([x.matmul(y) for x, y in zip(a, b, strict=True)], strided)  # type: ignore[return-value]


@_op(StridedNested, "transpose", "swapaxes", "swapdims")
def transpose(input: StridedNested, dim0: int, dim1: int) -> StridedNested:
    """Two dimensions exchanged; not that of components.  The same memory."""
    a, b = (wrap_dim(d, input.dim()) for d in (dim0, dim1))
    if 0 in (a, b):
        raise RuntimeError(
            f"Nested tensor dimension 0 cannot be transposed: it is that of components, got {dim0} and {dim1}"
        )
    order = list(input._order)
    order[a - 1], order[b - 1] = order[b - 1], order[a - 1]
    return strided_of(input._values, input._sizes, tuple(order))


@_op(StridedNested, "mT.__get__")
def m_t(self: StridedNested) -> StridedNested:
    """The last two dimensions exchanged."""
    return transpose(self, -2, -1)


@_op(StridedNested, "view", "reshape")
def view(input: StridedNested, *shape: object) -> StridedNested:
    """Another shape of each component; -1 is what a dimension that differs has, or what is left of the others.

    Raises RuntimeError for another number of components.
    """
    sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)
    if not sizes or sizes[0] != len(input):
        raise RuntimeError(f"view: expected the number of components, {len(input)}, first, got {tuple(sizes)}")
    kept = [d for d, n in enumerate(sizes[1:]) if n == -1 and d < input.dim() - 1]
    return each(input, lambda x: x.reshape([x.shape[d] if d in kept else n for d, n in enumerate(sizes[1:])]))


@_op(StridedNested)
def squeeze(input: StridedNested, dim: int) -> StridedNested:
    """Without a dimension of size 1."""
    return each(input, lambda x: x.squeeze(_of_parts("squeeze", dim, input.dim())))


@_op(StridedNested)
def unsqueeze(input: StridedNested, dim: int) -> StridedNested:
    """With a dimension of size 1 more, behind that of components."""
    return each(input, lambda x: x.unsqueeze(_of_parts("unsqueeze", dim, input.dim() + 1)))


def _of_parts(name: str, dim: int, ndim: int) -> int:
    found = wrap_dim(dim, ndim)
    if found == 0:
        raise RuntimeError(
            f"{name}: expected another dimension of a nested tensor than that of components, got dim={dim}"
        )
    return found - 1


@_op(StridedNested)
def chunk(input: StridedNested, chunks: int, dim: int = 0) -> tuple[StridedNested, ...]:
    """Parts of one size along the last dimension.  Raises RuntimeError for others, and for what cannot be divided."""
    if wrap_dim(dim, input.dim()) != input.dim() - 1 or input.size(-1) % chunks:
        raise RuntimeError(
            f"chunk: expected the last dimension, of a size that can be divided by {chunks}, got dim={dim}"
        )
    return split(input, [input.size(-1) // chunks] * chunks, dim)


@_op(StridedNested, "split", "split_with_sizes")
def split(tensor: StridedNested, split_size_or_sections: Any, dim: int = 0) -> tuple[StridedNested, ...]:
    """Parts of these sizes along the last dimension.  Raises RuntimeError for others."""
    if isinstance(split_size_or_sections, int) or wrap_dim(dim, tensor.dim()) != tensor.dim() - 1:
        raise RuntimeError(
            f"split: expected a list of sizes along the last dimension, got {split_size_or_sections} and dim={dim}"
        )
    parts = [x.split(split_size_or_sections, -1) for x in tensor.unbind()]
    return tuple(packed(column, strided) for column in zip(*parts, strict=True))  # type: ignore[misc]


@_op(StridedNested)
def narrow(input: StridedNested, dim: int, start: int, length: int) -> StridedNested:
    """Some components.  Raises RuntimeError for another dimension."""
    if wrap_dim(dim, input.dim()):
        raise RuntimeError(f"narrow: expected dimension 0 of a nested tensor in the layout torch.strided, got {dim}")
    return packed(input.unbind()[start : start + length], strided)  # type: ignore[return-value]


@_op(StridedNested, "cat", "concat", "concatenate")
def cat(tensors: Sequence[StridedNested], dim: int = 0) -> StridedNested:
    """The components of all.  Raises RuntimeError for another dimension, and where a tensor is not nested."""
    if dim or not all(isinstance(x, StridedNested) for x in tensors):
        raise RuntimeError(
            f"cat: expected nested tensors in the layout torch.strided, and dimension 0, that of components, got {dim}"
        )
    return packed([part for x in tensors for part in x.unbind()], strided)  # type: ignore[return-value]


def _made_alike(name: str, what: str) -> None:
    """Let a function that makes a tensor in the shape of another make one in that of each component."""

    def alike(input: StridedNested, *given: object, **options: object) -> StridedNested:
        make = getattr(torch, name)
        return packed([make(x.detach(), *given, **options) for x in input.unbind()], strided)  # type: ignore[return-value]

    _op(StridedNested)(called(alike, name, f"{what} in the shape of each component."))


for _name, _what in {"zeros": "Zeros", "ones": "Ones", "empty": "Uninitialized memory", "full": "One number", "rand": "Even draws",
                     "randn": "Normal draws"}.items():  # fmt: skip
    _made_alike(f"{_name}_like", _what)


@_op(StridedNested)
def select(input: StridedNested, dim: int, index: int) -> Any:
    """One component, or of each the part at an index."""
    d = wrap_dim(dim, input.dim())
    return component(input, index) if d == 0 else each(input, lambda x: x.select(d - 1, index))


@_op(StridedNested, "__getitem__")
def at_index(self: StridedNested, index: object) -> Any:
    """A component, or a part of it; or `[..., i]`: of each component the part in its last dimensions."""
    given = index if isinstance(index, tuple) else (index,)
    if given and isinstance(given[0], int):
        found = component(self, given[0])
        return found[given[1:]] if len(given) > 1 else found
    if given and given[0] is Ellipsis and all(isinstance(i, int) for i in given[1:]):
        return each(self, lambda x: x[given])
    raise NotImplementedError(
        f"index {given}: expected the number of a component first, or `...` and numbers; [x[...] for x in nt.unbind()] takes others"
    )


@_op(StridedNested)
def contiguous(self: StridedNested, memory_format: memory_format | None = None) -> StridedNested:
    """The elements of components in order: itself where they are."""
    return self if self.is_contiguous() else each(self, lambda x: x)


@_op(StridedNested)
def is_same_size(input: StridedNested, other: Tensor) -> bool:
    """Whether the components of another nested tensor have the same shapes."""
    return isinstance(other, StridedNested) and input._shapes() == other._shapes()
