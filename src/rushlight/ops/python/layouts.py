"""Methods of every tensor that lead to sparse layouts and back."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rushlight.basics.dtypes import dtype
from rushlight.basics.naming import called
from rushlight.engine.conform import tensor_functions
from rushlight.tensor import Tensor, layout, sparse_bsc, sparse_bsr, sparse_coo, strided

SPARSE = "rushlight.sparse.tensor"  # of a higher floor, imported when it is first asked for
PLACES, GRADIENTS, COMPRESSED = "rushlight.sparse.places", "rushlight.sparse.gradients", "rushlight.sparse.compressed"


def to_dense(self: Tensor, dtype: dtype | None = None, *, masked_grad: object = None) -> Tensor:
    """This tensor, which is dense, in a dtype where one is given."""
    return self if dtype is None else self.to(dtype)


def to_sparse_coo(self: Tensor) -> Tensor:
    """The elements that are not zero, with their places, in the layout COO."""
    return importlib.import_module(SPARSE).from_dense(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements of a matrix that are not zero, in the layout CSR.  Raises RuntimeError for other than a matrix."""
    return to_sparse_coo(self).to_sparse_csr(dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements of a matrix that are not zero, in the layout CSC.  Raises RuntimeError for other than a matrix."""
    return to_sparse_coo(self).to_sparse_csc(dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
    """The blocks of a matrix that are not zero, in the layout BSR.  Raises RuntimeError unless they fill a matrix."""
    return _later(COMPRESSED, "bsr_of_dense")(self, blocksize)


def to_sparse_bsc(self: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
    """The blocks of a matrix that are not zero, in the layout BSC.  Raises RuntimeError unless they fill a matrix."""
    return to_sparse_bsr(self.t(), blocksize[::-1]).t()


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: layout | None = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Tensor:  # fmt: skip
    """The elements that are not zero, in the layout COO, or in the one given.

    sparse_dim: how many of the first dimensions have indices, all by default; blocksize: of the layouts of blocks.  Raises
    RuntimeError for other than a matrix where the layout is compressed.
    """
    if layout is strided:
        return self
    if layout is not None and layout is not sparse_coo:
        if blocksize is not None and layout in (sparse_bsr, sparse_bsc):
            return (to_sparse_bsr if layout is sparse_bsr else to_sparse_bsc)(self, blocksize)
        return to_sparse_coo(self).to_sparse(layout=layout, blocksize=blocksize)
    return importlib.import_module(SPARSE).from_dense(self, sparse_dim)


def sparse_mask(self: Tensor, mask: object) -> Any:
    """The elements at the places of a sparse tensor of the same shape, in the layout COO."""
    return importlib.import_module(PLACES).masked(self, mask)


def _of_layout(name: str, wanted: str) -> Callable[..., Any]:
    """A method that only tensors of other layouts have an answer to."""

    def refused(self: Tensor) -> Any:
        raise RuntimeError(f"{name} expected {wanted} layout but got Strided")

    return called(refused, name, f"Of tensors in {wanted} layout; of others RuntimeError.")


_COO, _ROWS, _COLUMNS = "sparse coordinate tensor", "sparse row compressed tensor", "sparse column compressed tensor"
for _name, _wanted in {
    "coalesce": _COO, "is_coalesced": _COO, "indices": _COO, "values": "sparse tensor", "crow_indices": _ROWS, "col_indices": _ROWS,
    "ccol_indices": _COLUMNS, "row_indices": _COLUMNS,
}.items():  # fmt: skip
    setattr(Tensor, _name, _of_layout(_name, _wanted))


def _of_kernels(name: str) -> Callable[..., Any]:
    """A method of the inner parts of sparse tensors, of which dense ones have none."""

    def refused(self: Tensor) -> Any:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: the tensor is dense"
        )

    return called(refused, name, "Of sparse tensors; of others NotImplementedError.")


for _name in ("_indices", "_values", "_nnz", "_dimI", "_dimV"):
    setattr(Tensor, _name, _of_kernels(_name))


def sparse_dim(self: Tensor) -> int:
    """How many dimensions have indices: none."""
    return 0


def dense_dim(self: Tensor) -> int:
    """How many dimensions have none: all."""
    return self.dim()


def smm(self: Tensor, mat2: Tensor) -> Any:
    """As `torch.smm`."""
    return _later("rushlight.sparse.older", "smm")(self, mat2)


def sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: object = 1, alpha: object = 1) -> Any:
    """As `torch.sspaddmm`."""
    return _later("rushlight.sparse.older", "sspaddmm")(self, mat1, mat2, beta=beta, alpha=alpha)


def to_padded_tensor(self: Tensor, padding: float, output_size: Sequence[int] | None = None) -> NoReturn:
    """A dense tensor of a nested one, which this is not.  Raises NotImplementedError."""
    raise NotImplementedError("to_padded_tensor: expected a nested tensor, got a dense one: it needs no padding")


def _later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported when it is first called."""
    return lambda *args, **options: getattr(importlib.import_module(module), name)(*args, **options)


tensor_functions.update({name: _later(GRADIENTS, f) for name, f in
                         (("sparse", "tensor_of"), ("sparse_total", "total"), ("rows", "rows_of"))})  # fmt: skip
tensor_functions["without_elements"] = _later("rushlight.sparse.construct", "without_elements")
for _method in (dense_dim, smm, sparse_dim, sspaddmm, sparse_mask, to_dense, to_sparse, to_sparse_bsc, to_sparse_bsr,
                to_padded_tensor, to_sparse_coo, to_sparse_csc, to_sparse_csr):  # fmt: skip
    setattr(Tensor, _method.__name__, _method)
