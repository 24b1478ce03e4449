"""Nested tensors: batches of tensors whose sizes differ.

One is no memory of its own but a tensor of the elements of all components, one after the other, and where each lies.  That
tensor is an ordinary one of the graph, so gradients flow through what is computed with it.  What is not written in this room for
nested tensors is refused by name.
"""

# mypy: disable-error-code="override"
# Methods of nested tensors take fewer arguments than those of any tensor, and refuse the rest.
from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from rushlight.basics import devices, dtypes
from rushlight.basics.handles import RemovableHandle
from rushlight.basics.size import Size
from rushlight.dispatch.formats import memory_format
from rushlight.dispatch.named import named as torch
from rushlight.dispatch.options import Nowhere
from rushlight.engine.node import Node
from rushlight.nested.printing import shown
from rushlight.nested.ragged import Ragged
from rushlight.overrides.listing import resolve_name
from rushlight.overrides.public import made as noted
from rushlight.tensor import Tensor, jagged, strided, wrap

__all__ = ["Nested", "NestedTensor", "StridedNested", "answers", "jagged_of", "refuse", "strided_of"]


class _Elsewhere(Nowhere):
    """What the array of a nested tensor is to whoever looks."""

    why = "not implemented for nested tensors here: apply it to values(), or to each of unbind()"


_NOTHING = np.empty(0).view(_Elsewhere)
# What is read of values as it is; everything else that is an attribute of any tensor is refused.
_READ = frozenset("grad_fn is_leaf output_nr retains_grad _version _backward_hooks itemsize nbytes is_inference is_cpu is_cuda "
                  "is_meta is_sparse is_sparse_csr is_quantized is_mkldnn is_mps is_xpu is_mtia is_maia is_vulkan is_ipu is_xla "
                  "element_size is_floating_point is_complex is_signed get_device numel nelement is_pinned "
                  "is_shared untyped_storage storage_offset data_ptr new_tensor retain_grad storage".split())  # fmt: skip


class Nested(Tensor):
    """A batch of tensors of one number of dimensions and one dtype, whose sizes differ."""

    TABLE: ClassVar[dict[str, Callable[..., Any]]]  # what functions do, by their names
    _values: Tensor  # the elements

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        """What this room has under the name of a function.  Raises NotImplementedError where there is nothing."""
        name, kwargs = name_of(func), kwargs or {}
        if name in cls.TABLE:
            return cls.TABLE[name](*args, **kwargs)
        first = args[0] if args else None
        if isinstance(first, Nested):
            found = next((vars(c)[name] for c in cls.__mro__ if issubclass(c, Nested) and name in vars(c)), None)
            if found is not None:
                return found(*args, **kwargs)
            if name.removesuffix(".__get__") in _READ:
                return func(first._values, *args[1:], **kwargs)
        return cls.TABLE["elementwise"](func, name, args, kwargs)

    # To be said by the layouts -----------------------------------------------------------------------------------------

    def _with(self, values: Tensor) -> Self:
        """The same places with other values."""
        raise NotImplementedError

    def _without_values(self) -> Self:
        """The same places with no values: what a hook keeps, which is to keep neither memory nor a graph."""
        return self._with(wrap(np.empty(0)))

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The components.  Raises RuntimeError for another dimension than the first."""
        raise NotImplementedError

    # What values know --------------------------------------------------------------------------------------------------

    is_nested = True

    @property
    def dtype(self) -> dtypes.dtype:
        """Type of the elements."""
        return self._values.dtype

    @property
    def device(self) -> devices.device:
        """Where the elements are."""
        return self._values.device

    @property
    def ndim(self) -> int:
        """Number of dimensions, that of components among them."""
        return self.dim()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to the elements."""
        return bool(self._values.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are accumulated for the elements."""
        self._values.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether nothing computed the elements."""
        return bool(self._values.is_leaf)

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed the elements."""
        return self._values.grad_fn

    @property
    def grad(self) -> Self | None:
        """The gradient, nested alike, or None."""
        return None if self._values.grad is None else self._with(self._values.grad)

    @grad.setter
    def grad(self, value: Nested | None) -> None:
        self._values.grad = None if value is None else value._values

    @property  # type: ignore[misc]
    def data(self) -> Self:
        """The same elements outside of the graph."""
        return self._with(self._values.data)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function with the gradient, nested alike, when it is there; what it returns takes its place."""

        places = self._without_values()

        def on_values(g: Tensor) -> Tensor | None:
            found = hook(places._with(g))
            return None if found is None else found._values

        return self._values.register_hook(on_values)

    def backward(self, gradient: Nested | None = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:  # fmt: skip
        """Gradients of this tensor, weighted by `gradient`.  Raises RuntimeError without one unless there is one element."""
        given = None if gradient is None else gradient._values
        self._values.backward(given, retain_graph, create_graph, inputs)

    # As a container ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def numpy(self, *, force: bool = False) -> NoReturn:
        """None: NumPy has no nested arrays.  Raises RuntimeError."""
        raise RuntimeError(
            "numpy(): NumPy has no nested arrays; unbind() gives tensors that it has, to_padded_tensor(0) one"
        )

    def tolist(self) -> NoReturn:
        """None, as in PyTorch.  Raises RuntimeError."""
        raise RuntimeError("tolist() of a nested tensor: take [x.tolist() for x in nt.unbind()]")

    def item(self) -> Any:
        """The element where there is one.  Raises RuntimeError for more."""
        return self._values.item()

    def __float__(self) -> float:
        return float(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return shown(self)

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)

    def __copy__(self) -> Self:
        return self._with(self._values)


class NestedTensor(Nested):
    """A nested tensor in the layout torch.jagged: one dimension is ragged, the others have one size.

    Made by `torch.nested.nested_tensor` and its like.
    """

    TABLE: ClassVar[dict[str, Callable[..., Any]]] = {}
    _places: Ragged
    _ragged_idx: int  # which dimension is ragged, that of components being 0
    layout = jagged

    def _with(self, values: Tensor) -> NestedTensor:
        return jagged_of(values, self._places, self._ragged_idx)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The components, views of the values.  Raises RuntimeError for another dimension than the first."""
        if dim not in (0, -self.dim()):
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0: that of components, got {dim}")
        places, at = self._places, self._ragged_idx - 1
        return tuple(self._values.narrow(at, a, n) for a, n in zip(places.starts, places.sizes, strict=True))

    @property
    def shape(self) -> Size:
        """Sizes of the dimensions; of the ragged one what stands for all of its sizes."""
        sizes: list[Any] = [len(self._places.sizes), *self._values.shape]
        sizes[self._ragged_idx] = self._places.symbol
        return Size(sizes)

    def size(self, dim: int | None = None) -> Any:
        """Sizes, or one of them."""
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """How many elements lie between neighbours; along components, what stands for all of their sizes."""
        inner = self._values.stride()
        at = max(range(len(inner)), key=lambda d: (inner[d], -d))
        size = self._places.symbol if at == self._ragged_idx - 1 else self._values.shape[at]
        found = (size * inner[at], *inner)
        return found if dim is None else found[dim]

    def dim(self) -> int:
        """Number of dimensions, that of components among them."""
        return self._values.ndim + 1

    def __len__(self) -> int:
        return len(self._places.sizes)

    def is_contiguous(self, memory_format: memory_format | None = None) -> bool:
        """Whether components lie side by side, without gaps, in the order of their elements."""
        return self._places.whole and bool(self._values.is_contiguous())

    def values(self) -> Tensor:
        """The elements of all components, one after the other along the ragged dimension: a view."""
        return self._values.view(self._values.shape)

    def offsets(self) -> Tensor:
        """Where components begin along the ragged dimension, and where the last ends.  int64 (B + 1)"""
        return self._places.offsets

    def lengths(self) -> Tensor | None:
        """How long components are, (B), where that is less than what lies between their offsets; else None."""
        return self._places.lengths

    _offsets = property(offsets)
    _lengths = property(lengths)
    _max_seqlen = property(lambda self: self._places.most)
    _min_seqlen = property(lambda self: self._places.least)
    _maybe_max_seqlen, _maybe_min_seqlen = _max_seqlen, _min_seqlen

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from rushlight.nested.build import rebuilt_jagged

        return rebuilt_jagged, (self._values, self.offsets(), self.lengths(), self._ragged_idx)

    def __deepcopy__(self, memo: dict[int, Any]) -> NestedTensor:
        return memo.setdefault(id(self), self._with(copy.deepcopy(self._values, memo)))


class StridedNested(Nested):
    """A nested tensor in the layout torch.strided: components of any sizes, one after the other.

    Made by `torch.nested.nested_tensor` and its like.
    """

    TABLE: ClassVar[dict[str, Callable[..., Any]]] = {}
    _sizes: tuple[tuple[int, ...], ...]  # of each component, as it lies
    _order: tuple[int, ...]  # which of these dimensions is shown where
    layout = strided

    def _with(self, values: Tensor) -> StridedNested:
        return strided_of(values, self._sizes, self._order)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The components, views of the values.  Raises RuntimeError for another dimension than the first."""
        if dim not in (0, -self.dim()):
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0: that of components, got {dim}")
        flat = self._values.split([int(np.prod(s)) for s in self._sizes]) if self._sizes else ()
        return tuple(x.view(s).permute(self._order) for x, s in zip(flat, self._sizes, strict=True))

    def _shapes(self) -> list[tuple[int, ...]]:
        """The shape of each component."""
        return [tuple(s[d] for d in self._order) for s in self._sizes]

    @property
    def shape(self) -> NoReturn:
        """None.  Raises RuntimeError: components differ in any of their sizes."""
        raise RuntimeError("shape of a nested tensor in the layout torch.strided: components may differ in every size; size(dim) "
                           "gives one that they share, nested tensors in the layout torch.jagged have a shape")  # fmt: skip

    def size(self, dim: int | None = None) -> int:
        """The size of a dimension in which components do not differ.  Raises RuntimeError for another."""
        if dim is None:
            return self.shape
        if not -self.dim() <= dim < self.dim():
            raise IndexError(f"size(): expected a dimension from {-self.dim()} to {self.dim() - 1}, got {dim}")
        if dim % self.dim() == 0:
            return len(self._sizes)
        found = {shape[dim % self.dim() - 1] for shape in self._shapes()}
        if len(found) != 1:
            raise RuntimeError(
                f"Given dimension {dim} is irregular and does not have a size: unbind() gives the components, which differ there"
            )
        return found.pop()

    def stride(self, dim: int | None = None) -> NoReturn:
        """None.  Raises RuntimeError: components differ."""
        raise RuntimeError("stride() of a nested tensor in the layout torch.strided: each of unbind() has its own")

    def dim(self) -> int:
        """Number of dimensions, that of components among them."""
        return len(self._order) + 1

    def __len__(self) -> int:
        return len(self._sizes)

    def is_contiguous(self, memory_format: memory_format | None = None) -> bool:
        """Whether the elements of components lie in order."""
        return self._order == tuple(range(len(self._order)))

    def values(self) -> Tensor:
        """The elements of all components, one after the other.  (N), a view"""
        return self._values.view(-1)

    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sizes and strides, (B, dimensions), and where each component begins, (B)."""
        parts = self.unbind()
        return (torch.tensor([x.shape for x in parts]), torch.tensor([x.stride() for x in parts]),
                torch.tensor([x.storage_offset() for x in parts]) - self._values.storage_offset())  # fmt: skip

    def _nested_tensor_size(self) -> Tensor:
        return self.places()[0]

    def _nested_tensor_strides(self) -> Tensor:
        return self.places()[1]

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return self.places()[2]

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return strided_of, (self._values, self._sizes, self._order)

    def __deepcopy__(self, memo: dict[int, Any]) -> StridedNested:
        return memo.setdefault(id(self), self._with(copy.deepcopy(self._values, memo)))


@functools.cache
def name_of(func: object) -> str:
    """The short name of what is asked for: add, T.__get__, and torch.autograd.grad."""
    full = resolve_name(func) or str(getattr(func, "__name__", func))
    names = full.split(".")
    return full if full == "torch.autograd.grad" else ".".join(names[-2:] if names[-1].endswith("et__") else names[-1:])


def bare(kind: type[Any], values: Tensor) -> Any:
    """A nested tensor of a layout with these values."""
    noted(kind)
    t = object.__new__(kind)
    t._array, t._edge, t._storage, t._view = _NOTHING, None, None, None
    t._values = values
    return t


def jagged_of(values: Tensor, places: Ragged, ragged_idx: int = 1) -> NestedTensor:
    """A nested tensor in the layout torch.jagged, of parts which are not looked at."""
    t = bare(NestedTensor, values)
    t._places, t._ragged_idx = places, ragged_idx
    return t


def strided_of(
    values: Tensor, sizes: tuple[tuple[int, ...], ...], order: tuple[int, ...] | None = None
) -> StridedNested:
    """A nested tensor in the layout torch.strided, of parts which are not looked at."""
    t = bare(StridedNested, values)
    t._sizes, t._order = sizes, tuple(range(len(sizes[0]) if sizes else 0)) if order is None else order
    return t


def answers(kind: type[Nested], *names: str) -> Callable[..., Any]:
    """Enter a function as what those of these names do with nested tensors of a layout; by default its own name's."""

    def put(fn: Callable[..., Any]) -> Callable[..., Any]:
        kind.TABLE.update(dict.fromkeys(names or (fn.__name__.strip("_"),), fn))
        return fn

    return put


def refuse(name: str, nt: Nested) -> NoReturn:
    """Raise NotImplementedError for a function that nothing is written for."""
    raise NotImplementedError(
        f"{name}: not implemented for nested tensors in the layout {nt.layout}; apply it to values(), to each "
        "of unbind(), or to to_padded_tensor(padding)"
    )
