"""Sparse tensors: the elements that are not zero, with their places.

Such a tensor is no memory of its own but two tensors: places (COO: a column of indices for each element; CSR: where rows
begin, and columns) and values.  The values are ordinary tensors of the graph, so gradients flow through what is computed
with them.  What is not written here for sparse tensors is refused by name.
"""

# mypy: disable-error-code="override"
# Methods of sparse tensors take fewer arguments than those of any tensor, and refuse the rest.
from __future__ import annotations

import builtins
import copy
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.state import modes
from rushlight.dispatch.dims import wrap_dim, wrap_dims
from rushlight.dispatch.formats import memory_format
from rushlight.dispatch.named import named as torch
from rushlight.dispatch.operands import raw
from rushlight.dispatch.options import Nowhere
from rushlight.engine.rows import Rows
from rushlight.ops.create.legacy import type_string
from rushlight.ops.elementwise.arith import refuse_bools
from rushlight.overrides.protocol import unasked
from rushlight.sparse.parts import BLOCKS, KINDS, Parts
from rushlight.sparse.printing import shown
from rushlight.sparse.product import product, times
from rushlight.tensor import Tensor, layout, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

__all__ = ["Sparse", "from_dense", "made"]

# Functions of one tensor that leave zero what is zero: they are applied to the values.
ZERO_STAYS = frozenset(
    "abs angle asin asinh atan ceil deg2rad erf expm1 floor log1p neg positive rad2deg relu round sgn sign sin sinh sqrt square tan tanh "
    "trunc isnan isinf isneginf isposinf nan_to_num signbit frac".split()
)
# Functions of other modules of this room, by their names in PyTorch.
ELSEWHERE = {"cat": "places.cat", "concat": "places.cat", "concatenate": "places.cat", "stack": "places.stack",
             "sparse_mask": "places.masked", "smm": "older.smm", "sspaddmm": "older.sspaddmm",
             "copy": "changes.copied", "linear": "changes.linear", "addmv": "changes.addmv",
             "hstack": "places.hstack", "vstack": "places.vstack"}  # fmt: skip
_OF_PLACES = ("bmm", "index_select", "is_same_size", "narrow_copy", "permute", "select", "unbind", "unsqueeze")
ELSEWHERE |= {name: f"places.{name}" for name in _OF_PLACES}
_KINDS = {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
          "int": dtypes.int32, "long": dtypes.int64, "bool": dtypes.bool}  # fmt: skip


class _Elsewhere(Nowhere):
    """What the array of a sparse tensor is to whoever looks."""

    unread = False
    why = "not implemented for sparse tensors here; to_dense() makes an ordinary one"


class Sparse(Parts):
    """A tensor in the layout COO, or of two dimensions in CSR, CSC, BSR or BSC.

    Made by `sparse_coo_tensor`, `sparse_csr_tensor` and their like, and by `Tensor.to_sparse`.
    """

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        """The method of that name of this class; of functions without one, NotImplementedError."""
        own, kwargs = _name_of(func), kwargs or {}
        if own in ("__set__", "backward", "grad") and not isinstance(args[0], Sparse):  # the gradient of a dense tensor
            return unasked(func, *args, **kwargs)
        if kwargs.get("out") is not None:
            rest = {name: x for name, x in kwargs.items() if name != "out"}
            into = importlib.import_module("rushlight.sparse.changes").into
            return into(own, kwargs["out"], cls._answered(own.strip("_"), args, rest))
        if own.endswith("_") and not own.endswith("__"):
            if not isinstance(args[0], Sparse):
                return _into_dense(own.strip("_"), *args, **kwargs)
            result = cls._answered(own.strip("_"), args, kwargs)
            return result if result is args[0] else args[0]._become(result)
        return cls._answered(own.strip("_"), args, kwargs)

    @classmethod
    def _answered(cls, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function of a name gives for arguments of which some are sparse."""
        if name in ELSEWHERE:
            module, _, own = ELSEWHERE[name].partition(".")
            return getattr(importlib.import_module(f"rushlight.sparse.{module}"), own)(*args, **kwargs)
        name = {
            "matmul": "mm",
            "spmm": "mm",
            "mv": "mm",
            "rmatmul": "rmm",
            "truediv": "div",
            "floordiv": "floor_divide",
            "radd": "add",
            "rmul": "mul",
        }.get(name, name)
        first: Any = args[0] if args else None
        if name == "mm" and not isinstance(first, Sparse):
            return args[1].__rmatmul__(first)
        if name in ("add", "sub") and isinstance(first, Tensor) and not isinstance(first, Sparse):
            whole = first.to(dtypes.promote_types(first.dtype, args[1].dtype), copy=True)
            return _into_dense(name, whole, *args[1:], **kwargs)
        if name in ("add", "mul") and not isinstance(first, Sparse):
            return getattr(args[1], name)(first, **kwargs)
        if name == "div" and isinstance(first, Tensor) and not isinstance(first, Sparse):
            raise RuntimeError(
                f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(args[1].shape)} for divisor)"
            )
        if name in ("addmm", "sparse_addmm"):
            return addmm(*args, **kwargs)
        method = next((vars(c)[name] for c in cls.__mro__ if issubclass(c, Parts) and name in vars(c)), None)
        if method is not None and isinstance(first, Sparse):
            return getattr(method, "fget", method)(*args, **kwargs)  # of a property what it asks
        if name in ZERO_STAYS and isinstance(first, Sparse):
            return first._on_values(name)
        raise NotImplementedError(f"{name}: not implemented for sparse tensors here; to_dense() makes an ordinary one")

    def numpy(self, *, force: bool = False) -> NoReturn:
        """None: NumPy has no sparse arrays.  Raises TypeError."""
        name = {sparse_coo: "Sparse", sparse_csr: "SparseCsr"}.get(self._layout, KINDS[self._layout])
        raise TypeError(f"can't convert {name} layout tensor to numpy: to_dense() gives one that NumPy has")

    # Other forms -------------------------------------------------------------------------------------------------------

    def _with(self, values: Tensor) -> Sparse:
        """The same places with other values."""
        return made(self._indices_of, values, self._sizes, self._sorted, self._layout)

    def type(self, dtype: dtypes.dtype | builtins.type | str | None = None, non_blocking: bool = False) -> Sparse | str:
        """Without a dtype the name of this tensor's type, else the tensor in it: a dtype, or a type or its name."""
        if dtype is None:
            return type_string(self.dtype).replace("torch.", "torch.sparse." if self.is_sparse else f"{self._layout}.")
        if isinstance(dtype, str):
            dtype = dtype.replace("torch.sparse.", "torch.")
        return self._with(self._values_of.type(getattr(dtype, "dtype", dtype)))

    @property  # type: ignore[misc]
    def grad(self) -> Sparse | None:
        """The gradient of the values in the places of this tensor, or None."""
        found = self._values_of.grad
        return None if found is None else self._with(found)

    def _become(self, other: Tensor) -> Sparse:
        """Take the places and values of another sparse tensor of this shape: every change in place is one like this.

        Raises RuntimeError for what is not sparse or has another shape, and for a leaf that requires grad.
        """
        if not isinstance(other, Sparse) or other._sizes != self._sizes or other._layout is not self._layout:
            raise RuntimeError(
                f"a sparse tensor of shape {list(self._sizes)} cannot become, in place, what is not of its layout and "
                f"shape: got {type(other).__name__} of shape {list(other.shape)}"
            )
        if self.requires_grad and self.is_leaf and modes.grad:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        values = (
            other._values_of
            if other.dtype is self.dtype
            else importlib.import_module("rushlight.sparse.changes").cast(other, self.dtype)
        )
        self._indices_of, self._values_of, self._sorted = other._indices_of, values, other._sorted
        return self

    def _on_values(self, name: str) -> Sparse:
        return self.coalesce()._with(getattr(torch, name)(self.coalesce()._values_of))

    def coalesce(self) -> Sparse:
        """The same with each place once, in order: values of a place are added."""
        if self._sorted:
            return self
        lead = self._sizes[: self.sparse_dim()]
        key = flat_places(self._indices_of, lead)
        unique, inverse = torch.unique(key, return_inverse=True)
        values = self._values_of.new_zeros((len(unique), *self._values_of.shape[1:])).index_add(
            0, inverse, self._values_of
        )
        places = np.stack(np.unravel_index(unique.numpy(), lead)) if lead else np.zeros((0, len(unique)), np.int64)
        return made(torch.tensor(places.astype(np.int64)), values, self._sizes, True, False)

    def to_dense(self, dtype: dtypes.dtype | None = None, masked_grad: bool | None = None) -> Tensor:
        """An ordinary tensor of the same elements."""
        coo = self.to_sparse_coo()
        lead = coo._sizes[: coo.sparse_dim()]
        rest = tuple(coo._values_of.shape[1:])
        flat = coo._values_of.new_zeros((int(np.prod(lead)), *rest))
        dense = flat.index_add(0, flat_places(coo._indices_of, lead), coo._values_of).reshape((*lead, *rest))
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(
        self, *args: object, layout: layout | None = None, blocksize: Sequence[int] | None = None, **options: object
    ) -> Any:
        """In the layout COO, or in the one given.  blocksize: of the layouts of blocks."""
        if layout is strided:
            return self.to_dense()
        if args and layout is None and self.is_sparse and args[0] != self.sparse_dim():
            raise RuntimeError(f"to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                               f"supported: got {args[0]}, expected {self.sparse_dim()}")  # fmt: skip
        if layout in BLOCKS:
            if blocksize is None:
                raise RuntimeError(
                    f"to_sparse: conversion from {KINDS[self._layout]} to {KINDS[layout]} without blocksize argument given is "
                    "not supported"
                )
            return self.to_sparse_bsr(blocksize) if layout is sparse_bsr else self.to_sparse_bsc(blocksize)
        if layout is sparse_csc:
            return self.to_sparse_csc()
        return self.to_sparse_csr() if layout is sparse_csr else self.to_sparse_coo()

    def to_sparse_coo(self) -> Sparse:
        """In the layout COO."""
        if self.is_sparse:
            return self
        if not self.is_sparse_csr:
            return importlib.import_module("rushlight.sparse.compressed").to_coo(self)
        starts, columns = self._indices_of
        rows = torch.repeat_interleave(torch.arange(len(starts) - 1), starts.diff().long())
        return made(torch.stack([rows, columns.long()]), self._values_of, self._sizes, True, sparse_coo)

    def to_sparse_csr(self, dense_dim: int | None = None) -> Sparse:
        """In the layout CSR.  Raises RuntimeError for other than two dimensions."""
        if self.is_sparse_csr:
            return self
        if self.dim() != 2 or self.sparse_dim() != 2:
            raise RuntimeError(
                f"to_sparse_csr: expected a matrix of two sparse dimensions, got shape {list(self._sizes)}"
            )
        coo = self.to_sparse_coo().coalesce()
        places = (starts_of(coo._indices_of[0], self._sizes[0]), coo._indices_of[1])
        return self._placed(made(places, coo._values_of, self._sizes, True, sparse_csr))

    def _placed(self, other: Sparse) -> Sparse:
        """Another sparse tensor, which is compressed, with places of int32 where those of this one are."""
        if not self.is_sparse and self._indices_of[0].dtype is dtypes.int32:
            other._indices_of = tuple(x.int() for x in other._indices_of)
        return other

    def to_sparse_csc(self, dense_dim: int | None = None) -> Sparse:
        """In the layout CSC.  Raises RuntimeError for other than two dimensions."""
        return self if self._layout is sparse_csc else self._placed(self.to_sparse_coo().t().to_sparse_csr().t())

    def to_sparse_bsr(self, blocksize: Sequence[int], dense_dim: int | None = None) -> Sparse:
        """In blocks of a size, rows of which are compressed.  Raises RuntimeError unless they fill the matrix."""
        return self._placed(importlib.import_module("rushlight.sparse.compressed").to_bsr(self, blocksize))

    def to_sparse_bsc(self, blocksize: Sequence[int], dense_dim: int | None = None) -> Sparse:
        """In blocks of a size, columns of which are compressed.  Raises RuntimeError unless they fill the matrix."""
        return self._placed(importlib.import_module("rushlight.sparse.compressed").to_bsc(self, blocksize))

    def t(self) -> Sparse:
        """The matrix with rows and columns exchanged."""
        return self.transpose(0, 1)

    def transpose(self, dim0: int, dim1: int) -> Sparse:
        """With two sparse dimensions exchanged: the compressed one is then the other."""
        if not self.is_sparse:
            return importlib.import_module("rushlight.sparse.compressed").turned(self, dim0, dim1)
        coo, n = self, self.dim()
        order, sizes = list(range(coo.sparse_dim())), list(self._sizes)
        a, b = wrap_dim(dim0, n), wrap_dim(dim1, n)
        if max(a, b) >= len(order):
            self._refuse("transpose of dense dimensions")
        order[a], order[b] = order[b], order[a]
        sizes[a], sizes[b] = sizes[b], sizes[a]
        return made(coo._indices_of[order], coo._values_of, tuple(sizes), a == b and coo._sorted, False)

    @property
    def mT(self) -> Sparse:
        """The matrices transposed."""
        return self.transpose(-2, -1)

    @property
    def mH(self) -> Sparse:
        """The matrices transposed and conjugated."""
        turned = self.transpose(-2, -1)
        return turned._with(turned._values_of.conj())

    def detach(self) -> Sparse:
        """Outside of the graph."""
        return self._with(self._values_of.detach())

    def detach_(self) -> Sparse:
        """Leaves the graph."""
        self._values_of = self._values_of.detach()
        return self

    @property  # type: ignore[misc]
    def data(self) -> Sparse:
        """The same outside of the graph."""
        return self.detach()

    def zero_(self) -> Sparse:
        """Has no elements from now on."""
        return self._become(self.zeros_like())

    def zeros_like(self, **options: Any) -> Any:
        """One of this shape without elements, in another layout where one is given."""
        layout = options.get("layout")
        if layout is not None and layout is not self._layout:
            return torch.zeros(
                self._sizes,
                **{"dtype": self.dtype}
                | {k: v for k, v in options.items() if k in ("dtype", "layout", "requires_grad")},
            )
        values = torch.zeros((0, *self._values_of.shape[1:]), dtype=options.get("dtype") or self.dtype)
        if not self.is_sparse:
            places = (self._indices_of[0] * 0, self._indices_of[1][:0])
            return made(places, values, self._sizes, True, self._layout)
        return made(self._indices_of[:, :0], values, self._sizes, True, False)

    empty_like = zeros_like

    def fill(self, value: Tensor | complex) -> Sparse:
        """With all values set to a number, in compressed layouts."""
        if self.is_sparse:
            self._refuse("fill")
        return self._with(torch.full_like(self._values_of, value))

    def ones_like(self, *, dtype: dtypes.dtype | None = None, **options: object) -> Sparse:
        """Ones at the places of this tensor, in compressed layouts."""
        if self.is_sparse:
            self._refuse("ones_like")
        return self._with(torch.ones_like(self._values_of, dtype=dtype))

    def new(self, *args: object, **options: object) -> Sparse:
        """As the constructor of this tensor's type: of places and values, of sizes, or of nothing.  COO."""
        return importlib.import_module("rushlight.sparse.kinds").of_dtype(self.dtype)(*args, **options)

    def new_zeros(self, *size: int | Sequence[int], dtype: dtypes.dtype | None = None, **options: object) -> Sparse:
        """A sparse tensor of a size without elements, in the layout COO."""
        sizes = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
        return importlib.import_module("rushlight.sparse.kinds").of_dtype(dtype or self.dtype)(tuple(sizes))

    new_empty = new_zeros

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """A dense tensor of data, in this one's dtype where no other is given."""
        return self._values_of.new_tensor(data, **options)

    def __bool__(self) -> bool:
        """Whether the only element is not zero.  Raises RuntimeError for other than one."""
        if self.numel() != 1:
            many = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        return builtins.bool(self._values_of.sum().item())

    def item(self) -> Any:
        """The only element as a number of Python.  Raises RuntimeError for other than one."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._values_of.sum().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def is_nonzero(self) -> bool:
        """As `bool()` of it."""
        return self.__bool__()

    def is_contiguous(self, memory_format: memory_format | None = None) -> bool:
        """False: the elements of the whole do not lie side by side.  RuntimeError in compressed layouts."""
        if not self.is_sparse:
            raise RuntimeError(
                f"Sparse {KINDS[self._layout].removeprefix('Sparse').upper()} tensors do not have is_contiguous"
            )
        return False

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Sparse:
        """Give it other sizes, in which all its elements have their places."""
        return importlib.import_module("rushlight.sparse.changes").resize(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Sparse:
        """Give it other sizes and no elements."""
        return importlib.import_module("rushlight.sparse.changes").clear(self, size, sparse_dim, dense_dim)

    def resize_as_sparse_(self, the_template: Sparse) -> Sparse:
        """Give it the sizes of another."""
        return self.sparse_resize_(the_template._sizes, the_template.sparse_dim(), the_template.dense_dim())

    def any(self) -> Tensor:
        """Whether some element is not zero."""
        return self._values_of.any()

    def norm(
        self,
        p: float | str | None = "fro",
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: dtypes.dtype | None = None,
    ) -> Tensor:
        """The root of the sum of all squares, or another norm of all elements: p, a number."""
        if dim is not None or keepdim or p == "nuc":
            self._refuse("norm over dimensions")
        return torch.norm(self.coalesce()._values_of, 2 if p in (None, "fro") else p, dtype=dtype)

    def clone(self, *, memory_format: memory_format | None = None) -> Sparse:
        """With values of its own."""
        return self._with(self._values_of.clone())

    def to(self, *args: object, **kwargs: object) -> Sparse:
        """With values of another dtype."""
        return self._with(self._values_of.to(*args, **kwargs))

    def cpu(self) -> Sparse:
        """Itself."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> Sparse:
        """Refused as for any tensor without a CUDA device."""
        return self._with(self._values_of.cuda(*args, **kwargs))

    # Arithmetic --------------------------------------------------------------------------------------------------------

    def mul(self, other: Tensor | complex) -> Sparse:
        """Times a number, or element by element."""
        if isinstance(other, Sparse):
            return importlib.import_module("rushlight.sparse.places").product_of_elements(self, other)
        if isinstance(other, Tensor) and other.dim():
            coo = self.to_sparse_coo().coalesce()
            there = other.broadcast_to(self._sizes)[tuple(coo._indices_of)]
            found = coo._with(coo._values_of * there)
            return self._in_this_layout(found) if self.is_sparse_csr else found
        return self._with(self._values_of * other)

    def div(self, other: Tensor | complex, *, rounding_mode: str | None = None) -> Sparse:
        """Divided by a number."""
        if isinstance(other, Tensor) and other.dim():
            raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor, got one of shape "
                               f"{list(other.shape)}: multiply by 1 / other")  # fmt: skip
        return self.coalesce()._with(torch.div(self.coalesce()._values_of, other, rounding_mode=rounding_mode))

    def floor_divide(self, other: Tensor | complex) -> Sparse:
        """Divided by a number, rounded down."""
        return self.div(other, rounding_mode="floor")

    def neg(self) -> Sparse:
        """With the other sign."""
        return self._with(-self._values_of)

    def conj(self) -> Sparse:
        """The conjugate."""
        return self._with(self._values_of.conj().resolve_conj())

    conj_physical = conj

    @property  # type: ignore[misc]
    def real(self) -> Sparse:
        """The real parts."""
        return self._with(self._values_of.real)

    @property  # type: ignore[misc]
    def imag(self) -> Sparse:
        """The imaginary parts.  Raises RuntimeError where there are none."""
        return self._with(self._values_of.imag)

    def add(self, other: Tensor | complex, *, alpha: complex = 1) -> Tensor:
        """The sum with another sparse tensor, or with a dense one, which is dense."""
        if not isinstance(other, Tensor):
            self._refuse("add of a number")
        if not isinstance(other, Sparse):
            return self.to_dense() + alpha * other
        if self._sizes != other._sizes:
            raise RuntimeError(
                f"add: Expected sizes of 'self' and 'other' to match, but {list(self._sizes)} != {list(other._sizes)}"
            )
        a, b = self.to_sparse_coo(), other.to_sparse_coo()
        dtype = dtypes.promote_types(a.dtype, b.dtype)
        values = torch.cat([a._values_of.to(dtype), times(b._values_of, dtype, alpha)])
        total = made(torch.cat([a._indices_of, b._indices_of], 1), values, self._sizes, False, False).coalesce()
        return total if self.is_sparse or self._layout is not other._layout else self._in_this_layout(total)

    def _in_this_layout(self, other: Sparse) -> Sparse:
        """Another sparse tensor in the layout of this one, in blocks of its size."""
        blocks = tuple(self._values_of.shape[1:3]) if self._layout in BLOCKS else None
        return self._placed(other.to_sparse(layout=self._layout, blocksize=blocks))

    def sub(self, other: Tensor | complex, *, alpha: complex = 1) -> Tensor:
        """The difference."""
        refuse_bools([raw(self), raw(other)])
        return self.add(other, alpha=-alpha)

    def pow(self, exponent: Tensor | float) -> Sparse:
        """To a power above 0, of each value."""
        if not isinstance(exponent, Tensor) and exponent == 0:
            raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor: all elements would be there")
        if isinstance(exponent, Tensor) or not exponent > 0:
            self._refuse("pow by a tensor, or a number that is not above 0")
        return self.coalesce()._with(self.coalesce()._values_of ** exponent)

    def mm(self, mat2: Tensor) -> Tensor:
        """The product with a dense matrix or vector, which is dense; with a sparse one, which is sparse."""
        if isinstance(mat2, Sparse):
            return sparse_product(self, mat2)
        if self.dim() != 2 or self.dense_dim():
            self._refuse("mm of other than a matrix")
        if mat2.shape[0] != self._sizes[1]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({self._sizes[0]}x{self._sizes[1]} and "
                               f"{'x'.join(map(str, mat2.shape))})")  # fmt: skip
        coo = self.to_sparse_coo()
        dense = mat2.unsqueeze(1) if mat2.dim() == 1 else mat2
        out = product(coo._indices_of, coo._values_of, dense, self._sizes[0])
        return out.squeeze(1) if mat2.dim() == 1 else out

    def sum(
        self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None
    ) -> Tensor:
        """The sum of all, dense; over some dimensions as `torch.sparse.sum`."""
        values = self._values_of if dtype is None else self._values_of.to(dtype)
        if dim is None:
            return values.sum()
        if keepdim:
            return importlib.import_module("rushlight.sparse.places").kept_sum(self, dim, dtype)
        dims: tuple[Any, ...] = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        gone = set(wrap_dims(dims, self.dim()))
        coo = self.to_sparse_coo()
        sparse = [d for d in range(coo.sparse_dim()) if d not in gone]
        inner = [d - coo.sparse_dim() + 1 for d in gone if d >= coo.sparse_dim()]
        values = values.sum(inner) if inner else values
        sizes = tuple(n for d, n in enumerate(self._sizes) if d not in gone)
        if not sparse:
            return values.sum(0)
        return made(coo._indices_of[sparse], values, sizes, False, False).coalesce()

    def __add__(self, other: Tensor | complex) -> Tensor:
        return self.add(other)

    __radd__ = __add__

    def __sub__(self, other: Tensor | complex) -> Tensor:
        return self.sub(other)

    def __mul__(self, other: Tensor | complex) -> Sparse:
        return self.mul(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Tensor | complex) -> Sparse:
        return self.div(other)

    def __floordiv__(self, other: Tensor | complex) -> Sparse:
        return self.floor_divide(other)

    def __neg__(self) -> Sparse:
        return self.neg()

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.mm(other)

    def __rmatmul__(self, other: Tensor) -> Tensor:
        if other.dim() > 2:  # (*, N, K), of which all rows are those of one matrix
            return self.__rmatmul__(other.flatten(0, -2)).unflatten(0, other.shape[:-1])
        return self.t().mm(other.t()).t()

    def matmul(self, other: Tensor) -> Tensor:
        """As `mm`."""
        return self.mm(other)

    T = property(t)
    H = property(lambda self: self.mH)

    def __getitem__(self, index: int | slice | tuple[int | slice, ...]) -> Tensor:
        return importlib.import_module("rushlight.sparse.places").at(self, index)

    def __iadd__(self, other: Tensor | complex) -> Sparse:
        return self._become(self.add(other))

    def __isub__(self, other: Tensor | complex) -> Sparse:
        return self._become(self.sub(other))

    def __imul__(self, other: Tensor | complex) -> Sparse:
        return self._become(self.mul(other))

    def __itruediv__(self, other: Tensor | complex) -> Sparse:
        return self._become(self.div(other))

    def __deepcopy__(self, memo: dict[int, Any]) -> Sparse:
        indices, values = copy.deepcopy((self._indices_of, self._values_of), memo)
        return made(indices, values, self._sizes, self._sorted, self._layout)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Callable[..., Sparse], tuple[Any, ...]]:
        return made, (self._indices_of, self._values_of, self._sizes, self._sorted, self._layout)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return shown(self)

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)


def _shorthand(name: str, dtype: dtypes.dtype) -> Callable[..., Any]:
    def method(self: Sparse) -> Sparse:
        return self.to(dtype)

    method.__name__, method.__doc__ = name, f"With values of {dtype}."
    return method


for _name, _dtype in _KINDS.items():
    setattr(Sparse, _name, _shorthand(_name, _dtype))


def _name_of(func: Any) -> str:
    """The name of what `__torch_function__` is asked for; of an attribute that is read, the attribute's."""
    name = str(getattr(func, "__name__", func))
    if name != "__get__":
        return name
    return str(getattr(getattr(func.__self__, "fget", None), "__qualname__", name)).rpartition(".")[2]


def _into_dense(name: str, dense: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A dense tensor changed in place by a sparse one: it is added or subtracted, or both are multiplied."""
    if name in ("mul", "imul") and isinstance(args[0], Sparse):
        return dense.mul_(args[0].to_dense())
    if name not in ("add", "sub", "iadd", "isub") or not isinstance(args[0], Sparse):
        raise NotImplementedError(f"{name}_: not implemented for sparse tensors here; to_dense() makes an ordinary one")
    if "sub" in name:
        refuse_bools([raw(dense), raw(args[0])])
    alpha = kwargs.get("alpha", args[1] if len(args) > 1 else 1)
    add_to = importlib.import_module("rushlight.sparse.gradients").add_to
    return add_to(dense, args[0], alpha if "add" in name else -alpha)


def flat_places(indices: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The number of each place, counted row by row.  int64 (dimensions, N) -> (N)"""
    flat = indices.new_zeros(indices.shape[1])
    for row, size in zip(indices, sizes, strict=True):
        flat = flat * size + row
    return flat


def starts_of(sorted_rows: Tensor, rows: int) -> Tensor:
    """Where each row begins among elements that are sorted by rows, and where the last ends.  (N) -> (rows + 1)"""
    counts = torch.bincount(sorted_rows, minlength=rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def made(
    indices: Tensor | tuple[Tensor, Tensor], values: Tensor, sizes: tuple[int, ...], is_sorted: bool,
    kind: Any,
) -> Sparse:  # fmt: skip
    """A sparse tensor of these parts, which are not looked at.  kind: a layout; False for COO, True for CSR."""
    Rows.sparse = Rows.composed = True
    probe = np.broadcast_to(np.zeros((), values._held.dtype), tuple(sizes)).view(_Elsewhere)
    t = Tensor._make_subclass(Sparse, torch.empty(0))  # type: ignore[attr-defined]
    t._array = probe  # whoever asks it for values is refused
    t._indices_of, t._values_of, t._sizes, t._sorted = indices, values, tuple(sizes), is_sorted
    t._layout = (sparse_csr if kind else sparse_coo) if isinstance(kind, bool) else kind
    return t


def from_dense(dense: Tensor, sparse_dim: int | None = None) -> Sparse:
    """The elements that are not zero, in the layout COO.  sparse_dim: how many of the first dimensions have indices."""
    lead = dense.dim() if sparse_dim is None else sparse_dim
    if not 0 <= lead <= dense.dim():
        raise RuntimeError(f"to_sparse: sparse_dim argument must be in [0,{dense.dim()}] range, but {lead} is given")
    if not lead and dense.dim():
        raise RuntimeError(
            "to_sparse: sparse_dim argument must be in >0 when self.dim()>0: without places all is dense"
        )
    if not lead:
        dense, there = dense.reshape(1), dense.reshape(1) != 0
        return made(torch.zeros(0, int(there)).long(), dense[there], (), True, False)
    there = dense != 0
    if lead < dense.dim():
        there = there.flatten(lead).any(-1)
    indices = there.nonzero().t().contiguous()
    return made(indices, dense[tuple(indices)], tuple(dense.shape), True, False)


def addmm(input: Tensor, mat1: Sparse, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), mat1 sparse."""
    return beta * input + alpha * (mat1 @ mat2)


def sparse_product(a: Sparse, b: Sparse) -> Sparse:
    """The product of two sparse matrices, in the layout of the first.

    Each element of `a` meets the row of `b` that its column names.
    """
    if a.dim() == b.dim() == 2 and a._sizes[1] != b._sizes[0]:
        sizes = "x".join(map(str, a._sizes)), "x".join(map(str, b._sizes))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes[0]} and {sizes[1]})")
    left, right = a.to_sparse_coo().coalesce(), b.to_sparse_csr()
    starts, columns = right._indices_of
    rows, middle = left._indices_of
    starts, columns = starts.long(), columns.long()
    counts = starts.diff()[middle]
    which = torch.repeat_interleave(torch.arange(len(middle)), counts)
    offset = torch.arange(len(which)) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    place = starts[middle][which] + offset
    values = left._values_of[which] * right._values_of[place]
    out = made(torch.stack([rows[which], columns[place]]), values, (a._sizes[0], b._sizes[1]), False, False).coalesce()
    return out if a.is_sparse else a._in_this_layout(out) if a._layout not in BLOCKS else out
