"""What is known of a sparse tensor by looking at its parts: shape, layout, places, values and what they have in the graph."""

# mypy: disable-error-code="override"
# Methods of sparse tensors take fewer arguments than those of any tensor, and refuse the rest.
from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np

from rushlight.basics import devices, dtypes
from rushlight.basics.size import Size
from rushlight.dispatch.dims import wrap_dim
from rushlight.engine.node import Node
from rushlight.tensor import Tensor, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr

COLUMNS = (sparse_csc, sparse_bsc)  # layouts that say where columns begin; of the other compressed ones it is rows
BLOCKS = (sparse_bsr, sparse_bsc)  # layouts whose values are blocks of a matrix
KINDS = {
    sparse_coo: "Sparse",
    sparse_csr: "SparseCsr",
    sparse_csc: "SparseCsc",
    sparse_bsr: "SparseBsr",
    sparse_bsc: "SparseBsc",
}


class Parts(Tensor):
    """Places and values, and the questions that they answer without anything being computed."""

    _indices_of: Any  # COO: int64 (sparse dimensions, N); CSR: (where rows begin, columns)
    _values_of: Tensor  # (N, *dense dimensions)
    _sizes: tuple[int, ...]
    _sorted: bool  # whether no place occurs twice and they are in order
    _layout: Any  # of torch.layout

    def _refuse(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{name}: not implemented for sparse tensors here; to_dense() makes an ordinary one")

    @property
    def shape(self) -> Size:
        """Sizes of the dimensions."""
        return Size(self._sizes)

    def size(self, dim: int | None = None) -> Any:
        """Sizes, or one of them."""
        return self.shape if dim is None else self._sizes[wrap_dim(dim, len(self._sizes))]

    def stride(self, dim: int | None = None) -> Any:
        """Zeros, as nothing of the whole lies in memory.  Raises RuntimeError in compressed layouts."""
        if not self.is_sparse:
            raise RuntimeError(
                f"Sparse {KINDS[self._layout].removeprefix('Sparse').upper()} tensors do not have strides"
            )
        return (0,) * len(self._sizes) if dim is None else 0

    @property
    def dtype(self) -> dtypes.dtype:
        """Type of the values."""
        return self._values_of.dtype

    def __dlpack__(self, *args: object, **kwargs: object) -> NoReturn:
        """Not possible: there is no single memory.  Raises BufferError."""
        raise BufferError(
            f"Can't export tensors with layout other than torch.strided, got {self._layout}: use to_dense()"
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU."""
        return 1, 0

    @property
    def device(self) -> devices.device:
        """Where the values are."""
        return self._values_of.device

    @property
    def layout(self) -> Any:
        """torch.sparse_coo, sparse_csr, sparse_csc, sparse_bsr or sparse_bsc."""
        return self._layout

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is COO."""
        return self._layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is CSR."""
        return self._layout is sparse_csr

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._sizes)

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self._sizes)

    ndimension = dim

    def numel(self) -> int:
        """How many elements a dense tensor of this shape has."""
        return int(np.prod(self._sizes))

    def __len__(self) -> int:
        return self._sizes[0]

    nelement = numel

    def is_floating_point(self) -> bool:
        """Whether the values are real floating-point numbers."""
        return bool(self._values_of.is_floating_point())

    def is_complex(self) -> bool:
        """Whether the values are complex."""
        return bool(self._values_of.is_complex())

    @property  # type: ignore[misc]
    def requires_grad(self) -> bool:
        """Whether gradients flow to the values."""
        return bool(self._values_of.requires_grad)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are accumulated for the values."""
        self._values_of.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether nothing computed the values."""
        return bool(self._values_of.is_leaf)

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed the values."""
        return self._values_of.grad_fn

    def sparse_dim(self) -> int:
        """How many dimensions have indices."""
        return int(self._indices_of.shape[0]) if self.is_sparse else 2

    def dense_dim(self) -> int:
        """How many dimensions of the values are dense."""
        return self.dim() - self.sparse_dim()

    def _nnz(self) -> int:
        return int(self._values_of.shape[0])

    def is_coalesced(self) -> bool:
        """Whether no place occurs twice."""
        return self._sorted

    def _coalesced_(self, coalesced: bool) -> Self:
        """Say that no place occurs twice and they are in order, or that it is not known: nothing is looked at."""
        self._only("_coalesced_", "coordinate", (sparse_coo,))
        self._sorted = coalesced
        return self

    def _indices(self) -> Tensor:
        return self._indices_of

    def _values(self) -> Tensor:
        return self._values_of

    def indices(self) -> Tensor:
        """The places.  int64 (sparse dimensions, N).  Raises RuntimeError before `coalesce`."""
        self._only("indices", "coordinate", (sparse_coo,))
        self._need("indices")
        return self._indices_of

    def values(self) -> Tensor:
        """The values.  (N, *).  Raises RuntimeError before `coalesce`."""
        self._need("values")
        return self._values_of

    def crow_indices(self) -> Tensor:
        """Where rows begin.  (rows + 1)"""
        self._only("crow_indices", "row compressed", (sparse_csr, sparse_bsr))
        return self._indices_of[0]

    def col_indices(self) -> Tensor:
        """The column of each value.  (N)"""
        self._only("col_indices", "row compressed", (sparse_csr, sparse_bsr))
        return self._indices_of[1]

    def ccol_indices(self) -> Tensor:
        """Where columns begin.  (columns + 1)"""
        self._only("ccol_indices", "column compressed", COLUMNS)
        return self._indices_of[0]

    def row_indices(self) -> Tensor:
        """The row of each value.  (N)"""
        self._only("row_indices", "column compressed", COLUMNS)
        return self._indices_of[1]

    def _named_places(self) -> dict[str, Tensor]:
        """The tensors that say where values are."""
        if self.is_sparse:
            return {"indices": self._indices_of}
        names = ("ccol_indices", "row_indices") if self._layout in COLUMNS else ("crow_indices", "col_indices")
        return dict(zip(names, self._indices_of, strict=True))

    def _only(self, name: str, wanted: str, layouts: tuple[Any, ...]) -> None:
        if self._layout not in layouts:
            raise RuntimeError(f"{name} expected sparse {wanted} tensor layout but got {KINDS[self._layout]}")

    def _need(self, name: str) -> None:
        if not self._sorted:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._values_of.itemsize)

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.itemsize

    def is_signed(self) -> bool:
        """Whether the values may be negative."""
        return bool(self._values_of.is_signed())

    def is_inference(self) -> bool:
        """Whether the values were made in inference mode."""
        return bool(self._values_of.is_inference())

    def is_conj(self) -> bool:
        """False: values are kept as they are."""
        return False

    def is_neg(self) -> bool:
        """False: values are kept as they are."""
        return False

    def resolve_conj(self) -> Self:
        """The tensor itself."""
        return self

    def resolve_neg(self) -> Self:
        """The tensor itself."""
        return self

    @property
    def _base(self) -> None:
        """None: a sparse tensor is no view."""
        return None

    @property
    def output_nr(self) -> int:
        """Which of its function's results it is: the first."""
        return 0

    @property
    def _version(self) -> int:
        return 0  # places and values are replaced, never written over
