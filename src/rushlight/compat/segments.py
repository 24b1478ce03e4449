"""`torch.segment_reduce` and `torch.lobpcg`: seldom called functions, made of others."""

from __future__ import annotations

import math
from typing import Any

from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.named import linalg, named
from rushlight.tensor import strided

__all__ = ["lobpcg", "segment_reduce"]

# The reduction of `scatter_reduce`, and what segments begin with.
_SEGMENTS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "prod": ("prod", 1.0),
}


def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: object = None, offsets: Any = None, axis: int = 0,
                   unsafe: bool = False, initial: float | None = None) -> Any:  # fmt: skip
    """Sums, means, products or extremes of segments along a dimension.  data: (*, N, *) -> (*, S, *)

    reduce: "sum", "mean", "max", "min" or "prod"; lengths: (*, S), how long the segments are, or offsets: (*, S + 1), where they
    begin and the last one ends; unsafe: whether lengths that do not add up to N are taken; initial: what each begins with.
    """
    if reduce not in _SEGMENTS:
        words = "reduce argument must be either sum, prod, mean, amax or amin, by the names " + ", ".join(_SEGMENTS)
        raise RuntimeError(f"segment_reduce(): {words}, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet: give lengths or offsets.")
    if data.ndim == 0:
        raise RuntimeError("segment_reduce(): data has no dimension to be divided along: expected one or more")
    if not data.is_floating_point():
        raise NotImplementedError(f"segment_reduce(): not implemented for {data.dtype}: convert data with .float()")
    if (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined, and not both")
    axis = wrap_dim(axis, data.ndim)
    if offsets is not None and offsets.ndim == 1 and not axis:  # what lies before and behind them belongs to no segment
        data = data[int(offsets[0]) : int(offsets[-1])] if len(offsets) else data
    lengths = offsets.diff(dim=-1) if lengths is None else lengths
    if lengths.ndim - 1 != axis:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}: lengths have {lengths.ndim}"
        )
    if bool((lengths < 0).any()):
        raise RuntimeError("segment_reduce(): lengths contains negative value!")
    rows = lengths.reshape(-1, lengths.shape[-1])
    if not unsafe and not bool((rows.sum(-1) == data.shape[axis]).all()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
        )
    number = named.arange(rows.shape[-1])
    places = named.stack([number.repeat_interleave(row) for row in rows]).reshape(*lengths.shape[:-1], -1)
    data = data.narrow(axis, 0, min(data.shape[axis], places.shape[-1]))  # elements behind the last segment are of none
    places = places.reshape(places.shape + (1,) * (data.ndim - axis - 1)).expand(data.shape)
    way, start = _SEGMENTS[reduce]
    shape = (*data.shape[:axis], rows.shape[-1], *data.shape[axis + 1 :])
    first = named.full(shape, start if initial is None else initial, dtype=data.dtype)
    found = first.scatter_reduce(axis, places, data, way, include_self=way not in ("amax", "amin"))
    if way in ("amax", "amin"):  # elements that are equal to what segments begin with share no gradient with it
        return named.where(first > found if way == "amax" else first < found, first, found)
    if reduce != "mean":
        return found
    count = lengths.reshape(lengths.shape + (1,) * (data.ndim - axis - 1)).to(data.dtype)
    return found / count if initial is None else named.where(count > 0, found / count.clamp(min=1), found)


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: object = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: object = None,
    ortho_iparams: object = None,
    ortho_fparams: object = None,
    ortho_bparams: object = None,
) -> tuple[Any, Any]:
    """The `k` largest or smallest eigenvalues of symmetric matrices, and their eigenvectors.  A: (*, m, m) -> (*, k), (*, m, k)

    B: (*, m, m), positive definite, of the generalized problem A x = lambda B x; X: (*, m, k), of which the number of
    columns counts;
    largest: True unless given. All eigenvalues are computed by `torch.linalg.eigh`, exactly, so what says how to
        iterate has no effect.
    """
    A, B = (M if M is None or M.layout is strided else M.to_dense() for M in (A, B))
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if A.shape[-1] < 3 * k:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than 3 x the number of "
            f"requested eigenpairs (={k})"
        )
    if B is None:
        values, vectors = linalg.eigh(A)
    else:
        L = linalg.cholesky(B)
        inner = linalg.solve_triangular(L, linalg.solve_triangular(L, A, upper=False).mH, upper=False)
        values, vectors = linalg.eigh(inner)
        vectors = linalg.solve_triangular(L.mH, vectors, upper=True)
    if largest is None or largest:
        return values[..., -k:].flip(-1), vectors[..., -k:].flip(-1)
    return values[..., :k], vectors[..., :k]


_segment_reduce = segment_reduce
