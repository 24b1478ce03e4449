"""Routines of BLAS and LAPACK that NumPy does not offer, in the OpenBLAS that it loaded.

Each says whether it was done: where the library is another one, or has the routine under no name known here, nothing was,
and the caller goes its own way. Matrices are row-major here and column-major there, so that each is taken for its transpose.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from rushlight.backends import blas

__all__ = [
    "cholesky_in_place",
    "eigenvectors",
    "has",
    "inverse_in_place",
    "least_squares",
    "lu_in_place",
    "orthogonal",
    "singular_vectors",
    "solve_by_lu_in_place",
    "solve_in_place",
]

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # of the routines, by the character of a dtype
# Names that builds give to a routine, and their integers.
_SPELLINGS = (("scipy_{}_64_", ctypes.c_int64), ("{}_64_", ctypes.c_int64), ("scipy_{}_", ctypes.c_int32), ("{}_",
    ctypes.c_int32))  # fmt: skip


@functools.cache
def _routine(name: str, char: str) -> tuple[Any, Any] | None:
    """A routine and the type of its integers, for numbers of a dtype's character; None where there is none.

    >>> _routine("no_such_thing", "f") is None
    True
    """
    letter, library = _LETTERS.get(char), blas.library()
    for spelled, integer in _SPELLINGS if letter and library is not None else ():
        found = getattr(library, spelled.format(f"{letter}{name}"), None)
        if found is not None:
            found.restype = None
            return found, integer
    return None


def has(name: str, dtype: np.dtype[Any]) -> bool:
    """Whether there is a routine for numbers of a dtype.  name: without the letter of the dtype, as "trsm".

    >>> has("trsm", np.dtype("int64"))
    False
    """
    return _routine(name, dtype.char) is not None


def _call(name: str, char: str, *given: Any) -> int:
    """Call a routine: letters are bytes, sizes int, the rest arrays.  The last argument that is an int is what it returns."""
    found = _routine(name, char)
    assert found is not None, f"{name} was asked for without has()"
    routine, integer = found
    passed: list[Any] = []
    lengths: list[Any] = []  # of the letters, which Fortran passes behind all else
    number = integer(0)
    for x in given:
        if isinstance(x, bytes):
            passed.append(x)
            lengths.append(ctypes.c_size_t(1))
        elif isinstance(x, int):
            number = integer(x)
            passed.append(ctypes.byref(number))
        else:
            passed.append(ctypes.c_void_p(x.__array_interface__["data"][0]))
    routine(*passed, *lengths)
    return int(number.value)


def _leading(A: np.ndarray[Any, Any]) -> tuple[bytes, int] | None:
    """How a matrix lies: b"N" row by row, b"T" column by column, and the distance of rows or columns; None where in no such way."""
    size, (rows, columns) = A.itemsize, A.strides
    for turned, near, far, width in ((b"N", columns, rows, A.shape[1]), (b"T", rows, columns, A.shape[0])):
        if near == size and far >= size * max(width, 1) and not far % size:
            return turned, far // size
    return None


def solve_in_place(A: np.ndarray[Any, Any], x: np.ndarray[Any, Any], upper: bool, unit: bool = False) -> bool:
    """A^-1 x in place of x, of a triangular A, whose other triangle is not read.  A: (N, N), x: (N, M), row-major.

    unit: the diagonal counts as ones, and is not read either.  Returns whether it was done.

    >>> x = np.array([[2.0], [5.0]])
    >>> solve_in_place(np.array([[2.0, 9.0], [1.0, 4.0]]), x, False) and x.ravel().tolist() or [1.0, 1.0]
    [1.0, 1.0]
    """
    how, rows = _leading(A), _leading(x)
    if how is None or rows is None or rows[0] != b"N" or A.dtype != x.dtype or not has("trsm", x.dtype):
        return False
    if not x.size:
        return True
    (turned, distance), ones = how, b"U" if unit else b"N"
    triangle = b"U" if upper == (turned == b"T") else b"L"
    if x.shape[1] == 1:
        _call("trsv", x.dtype.char, triangle, b"N" if turned == b"T" else b"T", ones, len(A), A, distance, x, rows[1])
    else:  # x^T A^T = b^T is what the library sees: from the right, by A^T where A lies row by row
        one = np.ones(1, x.dtype)
        _call("trsm", x.dtype.char, b"R", triangle, turned, ones, x.shape[1], x.shape[0], one, A, distance, x, rows[1])
    return True


def cholesky_in_place(A: np.ndarray[Any, Any]) -> int | None:
    """L with A = L L^H in place of the lower triangle of A (N, N), contiguous; the other triangle stays.

    Returns 0, or the order of the first leading minor that is not positive definite; None where nothing was done.
    """
    if not A.flags.c_contiguous or not has("potrf", A.dtype):
        return None
    return _call("potrf", A.dtype.char, b"U", len(A), A, max(len(A), 1), 0) if A.size else 0


PANEL = 64  # columns that an inverse is made of at a time


def lu_in_place(A: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int] | None:
    """The packed factor in place of A (M, N), column-major; None where nothing was done.

    Returns the rows exchanged, (min(M, N)) of the library's integers, counted from one, and 0 or which pivot is the
        first that is zero.
    """
    if not A.flags.f_contiguous or not has("getrf", A.dtype):
        return None
    pivots, zero = _integers("getrf", A.dtype.char, min(A.shape)), 0
    if A.size:
        zero = _call("getrf", A.dtype.char, A.shape[0], A.shape[1], A, max(A.shape[0], 1), pivots, 0)
    return pivots, zero


def inverse_in_place(A: np.ndarray[Any, Any]) -> int | None:
    """A^-1 in place of A (N, N), contiguous, by its LU decomposition.

    Returns 0, or which pivot is the first that is zero, from one: then A holds no inverse. None where nothing was done.

    >>> A = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> inverse_in_place(A) is None or bool(abs(A - [[0.5, 0.0], [0.0, 0.25]]).max() < 1e-15)
    True
    """
    found = lu_in_place(A.T) if has("getri", A.dtype) else None
    if found is None or not A.size:
        return None if found is None else 0
    n, (pivots, zero) = len(A), found
    if zero:
        return zero
    work = np.empty(max(n * PANEL, 1), A.dtype)
    return _call("getri", A.dtype.char, n, A, n, pivots, work, work.size, 0)


def solve_by_lu_in_place(A: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> int | None:
    """A^-1 x in place of x, and the factors in place of A.  A: (N, N), x: (N, M), both contiguous.

    Returns as `inverse_in_place`; where a pivot is zero, x stays as it is.

    >>> x = np.array([[2.0], [8.0]])
    >>> solve_by_lu_in_place(np.array([[0.0, 2.0], [4.0, 0.0]]), x) == 0 and x.ravel().tolist() or [2.0, 1.0]
    [2.0, 1.0]
    """
    if (
        not x.flags.c_contiguous
        or x.dtype != A.dtype
        or not all(has(name, x.dtype) for name in ("trsm", "trsv", "lapmt"))
    ):
        return None
    found = lu_in_place(A.T)
    if found is None or not x.size:
        return None if found is None else 0
    pivots, zero = found
    if zero:
        return zero
    # The library sees x^T A^T = b^T, and A^T = P L U: first by U, then by L from the right, then columns change places.
    solve_in_place(A, x, False)
    solve_in_place(A, x, True, unit=True)
    pivots[:] = exchanged(pivots.tolist())
    _call("lapmt", x.dtype.char, 1, x.shape[1], x.shape[0], x, x.shape[1], pivots)
    return 0


def orthogonal(
    A: np.ndarray[Any, Any], complete: bool = False
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """Q and R with A = Q R, in the precision of A; None where nothing was done.  (M, N) -> (M, K), (K, N)

    K is the lesser of M and N; M if `complete`. What is found is L Q' of the transpose, which is what the library sees.

    >>> Q, R = orthogonal(np.array([[3.0, 1.0], [4.0, 2.0]])) or (np.eye(2), np.array([[-5.0, 0.0], [0.0, 0.0]]))
    >>> bool(abs(R[0, 0] + 5) < 1e-12), Q.shape
    (True, (2, 2))
    """
    make = "unglq" if A.dtype.kind == "c" else "orglq"
    if not A.size or not (has("gelqf", A.dtype) and has(make, A.dtype)):
        return None
    m, n = A.shape
    least = min(m, n)
    columns = m if complete else least
    held = np.empty((m, max(n, columns)), A.dtype)
    held[:, :n] = A
    tau, work = np.empty(least, A.dtype), np.empty(PANEL * max(m, n), A.dtype)
    _call("gelqf", A.dtype.char, n, m, held, held.shape[1], tau, work, work.size, 0)
    R = np.triu(held[:columns, :n])
    _call(make, A.dtype.char, columns, m, least, held, held.shape[1], tau, work, work.size, 0)
    return (held if held.shape[1] == columns else held[:, :columns].copy()), R


def singular_vectors(
    A: np.ndarray[Any, Any], vectors: bool = True, complete: bool = False
) -> tuple[np.ndarray[Any, Any], ...] | int | None:
    """U, S, Vh with A = U diag(S) Vh, or (S,) without vectors, in the precision of A.  (M, N) -> (M, K), (K), (K, N)

    K is the lesser of M and N, but for the vectors M and N if `complete`. Returns a number where no such were found, and None where
    nothing was done.

    >>> found = singular_vectors(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> found is None or found[1].tolist() == [2.0, 1.0]
    True
    """
    if not A.size or not has("gesdd", A.dtype):
        return None
    (m, n), char, k = A.shape, A.dtype.char, min(A.shape)
    rows, columns = ((m, n) if complete else (k, k)) if vectors else (0, 0)
    U, S, Vh = np.empty((m if vectors else 0, rows), char), np.empty(k, char.lower()), np.empty((columns, n), char)
    job = b"A" if complete else b"S"
    held, places = np.array(A, order="C"), _integers("gesdd", char, 8 * k)
    room = max(5 * k + 7, 2 * max(m, n) + 2 * k + 1) if vectors else 7
    more = (np.empty(k * room, char.lower()),) if A.dtype.kind == "c" else ()
    # The library sees the transpose, whose left vectors are the right ones here.
    given = (job if vectors else b"N", n, m, held, n, S, Vh, n if vectors else 1, U, max(rows, 1))
    work = np.empty(1, char)
    _call("gesdd", char, *given, work, -1, *more, places, 0)
    work = np.empty(int(work[0].real) + 1, char)
    failed = _call("gesdd", char, *given, work, work.size, *more, places, 0)
    if failed:
        return failed
    return (U, S, Vh) if vectors else (S,)


def eigenvectors(
    A: np.ndarray[Any, Any], upper: bool, vectors: bool = True
) -> tuple[np.ndarray[Any, Any], ...] | int | None:
    """L, ascending, and V with A = V diag(L) V^H, or (L,) without vectors, of a Hermitian A of which one triangle is read.

    (N, N) -> (N), (N, N). Returns as `singular_vectors`.

    >>> found = eigenvectors(np.array([[2.0, 9.0], [0.0, 1.0]]), upper=False)
    >>> found is None or found[0].tolist() == [1.0, 2.0]
    True
    """
    name = "heevd" if A.dtype.kind == "c" else "syevd"
    if not A.size or not has(name, A.dtype):
        return None
    n, char, held = len(A), A.dtype.char, np.array(A, order="C")
    L, turned = np.empty(n, char.lower()), A.dtype.kind == "c"
    # The library sees the transpose: of its vectors the conjugates belong to A.
    given = (b"V" if vectors else b"N", b"L" if upper else b"U", n, held, n, L)
    work, reals, places = np.empty(1, char), np.empty(1, char.lower()), _integers(name, char, 1)
    _call(name, char, *given, work, -1, *((reals, -1) if turned else ()), places, -1, 0)
    work, places = np.empty(int(work[0].real) + 1, char), _integers(name, char, int(places[0]))
    reals = np.empty(int(reals[0]) + 1, char.lower()) if turned else reals
    more = (reals, reals.size) if turned else ()
    failed = _call(name, char, *given, work, work.size, *more, places, places.size, 0)
    if failed:
        return failed
    return (L, np.conjugate(held, out=held).T if turned else held.T) if vectors else (L,)


def exchanged(pivots: list[int]) -> list[int]:
    """Where each row comes from when rows have been exchanged, the last pair first, all counted from one."""
    rows = list(range(1, len(pivots) + 1))
    for i in range(len(rows) - 1, -1, -1):
        j = pivots[i] - 1
        rows[i], rows[j] = rows[j], rows[i]
    return rows


def _integers(name: str, char: str, count: int) -> np.ndarray[Any, Any]:
    """Zeros of the kind of integers that a routine takes."""
    _, integer = _routine(name, char) or (None, None)
    return np.zeros(count, np.int64 if integer is ctypes.c_int64 else np.int32)


def least_squares(A: np.ndarray[Any, Any], B: np.ndarray[Any, Any], rcond: float) -> tuple[np.ndarray[Any, Any], int]:
    """The least X that minimises |A X - B|, and the rank, by a QR decomposition with pivots.  (M, N), (M, R) -> (N, R)

    rcond: the condition that the part of A which counts may have at most is 1 / rcond. Needs ``has("gelsy", dtype)``.
    """
    (m, n), right, char = A.shape, B.shape[1], A.dtype.char
    A, found = np.array(A, order="F"), np.zeros((max(m, n), right), A.dtype, order="F")
    found[:m] = B
    least, rank, order = min(m, n), _integers("gelsy", char, 1), _integers("gelsy", char, n)
    room = 3 * least + 2 * n + 64 * (n + right + 1)
    work, real = np.empty(room, A.dtype), np.empty(2 * n, A.dtype.char.lower())
    share = np.array([rcond], real.dtype)
    more = (real,) if A.dtype.kind == "c" else ()
    _call("gelsy", char, m, n, right, A, m, found, len(found), order, share, rank, work, room, *more, 0)
    return found[:n], int(rank[0])
