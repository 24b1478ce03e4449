"""What is known of a sparse tensor by looking at its parts: shape, layout, places, values and what they have in the graph."""

# mypy: disable-error-code="override"
# Methods of sparse tensors take fewer arguments than those of any tensor, and refuse the rest.
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from rushlight.basics.size import Size
from rushlight.tensor import Tensor, sparse_coo, sparse_csr

if TYPE_CHECKING:
    from rushlight.basics import devices, dtypes
    from rushlight.engine.node import Node


class Parts(Tensor):
    """Places and values, and the questions that they answer without anything being computed."""

    _indices_of: Any  # COO: int64 (sparse dimensions, N); CSR: (where rows begin, columns)
    _values_of: Tensor  # (N, *dense dimensions)
    _sizes: tuple[int, ...]
    _sorted: bool  # whether no place occurs twice and they are in order
    _csr: bool

    def _refuse(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{name}: not implemented for sparse tensors here; to_dense() makes an ordinary one")

    @property
    def shape(self) -> Size:
        """Sizes of the dimensions."""
        return Size(self._sizes)

    def size(self, dim: int | None = None) -> Any:
        """Sizes, or one of them."""
        return self.shape if dim is None else self._sizes[dim]

    @property
    def dtype(self) -> dtypes.dtype:
        """Type of the values."""
        return self._values_of.dtype

    @property
    def device(self) -> devices.device:
        """Where the values are."""
        return self._values_of.device

    @property
    def layout(self) -> Any:
        """torch.sparse_coo or torch.sparse_csr."""
        return sparse_csr if self._csr else sparse_coo

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is COO."""
        return not self._csr

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is CSR."""
        return self._csr

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
        return 2 if self._csr else int(self._indices_of.shape[0])

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
        self._only(False, "_coalesced_")
        self._sorted = coalesced
        return self

    def _indices(self) -> Tensor:
        return self._indices_of

    def _values(self) -> Tensor:
        return self._values_of

    def indices(self) -> Tensor:
        """The places.  int64 (sparse dimensions, N).  Raises RuntimeError before `coalesce`."""
        self._only(False, "indices")
        self._need("indices")
        return self._indices_of

    def values(self) -> Tensor:
        """The values.  (N, *).  Raises RuntimeError before `coalesce`."""
        self._need("values")
        return self._values_of

    def crow_indices(self) -> Tensor:
        """Where rows begin.  (rows + 1)"""
        self._only(True, "crow_indices")
        return self._indices_of[0]

    def col_indices(self) -> Tensor:
        """The column of each value.  (N)"""
        self._only(True, "col_indices")
        return self._indices_of[1]

    def _named_places(self) -> dict[str, Tensor]:
        """The tensors that say where values are."""
        if self._csr:
            return {"crow_indices": self._indices_of[0], "col_indices": self._indices_of[1]}
        return {"indices": self._indices_of}

    def _only(self, csr: bool, name: str) -> None:
        if csr is not self._csr:
            raise RuntimeError(f"{name} expected {'sparse row compressed' if csr else 'sparse coordinate'} tensor layout but got "
                               f"{'SparseCsr' if self._csr else 'Sparse'}")  # fmt: skip

    def _need(self, name: str) -> None:
        if not self._sorted:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._values_of.itemsize)

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
