"""What is said of operands whose product there is not: PyTorch's words, with the operator before and what was given behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import in_c, older
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes
from rushlight.dispatch.dims import common_shape, unexpandable
from rushlight.dispatch.operands import held
from rushlight.tensor import Tensor

Words = Callable[[Any, Any], str]


# Of two dtypes -----------------------------------------------------------------------------------------


def of_matrices(x: np.dtype[Any], y: np.dtype[Any]) -> str:
    """Matrices of two dtypes."""
    return f"expected m1 and m2 to have the same dtype, but got: {in_c(x)} != {in_c(y)}"


def of_batches(x: Any, y: Any) -> str:
    """Batches, or the operands of a convolution, of two dtypes."""
    return f"expected scalar type {older(x)} but found {older(y)}"


def of_three(x: Any, y: Any) -> str:
    """Batches of the dtype y, and of another one what their products are added to."""
    return f"Input dtypes must be the same, got: input {in_c(x)}, batch1: {in_c(y)}, batch2: {in_c(y)}"


def of_a_vector(x: object, y: object) -> str:
    """A matrix and a vector of two dtypes."""
    return of_a_vector_added(y, x, y)


def of_a_vector_added(x: Any, y: Any, z: Any) -> str:
    """A vector, and the matrix and the vector whose product is added to it."""
    return f"addmv input tensors must have the same dtype, but got {older(x)}, {older(y)}, and {older(z)}"


def of_vectors(x: Any, y: Any) -> str:
    """Vectors of two dtypes."""
    return f"dot : expected both vectors to have same dtype, but found {older(x)} and {older(y)}"


def words_of(m: int, n: int) -> Words:
    """What `matmul` says of operands of so many dimensions."""
    if n == 1:
        return of_vectors if m == 1 else of_a_vector
    return of_matrices if n == 2 else of_batches


def same_dtype(
    name: str, a: Tensor, b: Tensor, names: tuple[str, str] = ("input", "mat2"), words: Words | None = None
) -> None:
    """Raise RuntimeError unless both are tensors of one dtype."""
    x, y = held(a), held(b)
    for each, value, position in ((names[0], x, 1), (names[1], y, 2)):
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name}(): argument '{each}' (position {position}) must be Tensor, not "
                            f"{kind_of(value)}")  # fmt: skip
    if x.dtype != y.dtype and modes.autocast is None:  # which would convert them
        which = " and ".join(names)
        if words is None:
            said = f"expected {which} to have the same dtype, but got: {dtypes.of(x.dtype)} != {dtypes.of(y.dtype)}"
        else:
            said = f"{words(x.dtype, y.dtype)} ({which})"
        raise explained(RuntimeError(f"{name}: {said}"), "two-dtypes")


def same_dtypes_of_sum(
    name: str, input: Tensor, mat1: Tensor, mat2: Tensor, names: tuple[str, str, str] = ("input", "mat1", "mat2")
) -> None:
    """Raise RuntimeError unless a product and what it is added to, `names` of the operator, are of one dtype."""
    given = [held(x).dtype for x in (input, mat1, mat2)]
    if given[0] == given[1] == given[2] or modes.autocast is not None:
        return
    at = 0 if given[0] != given[2] else 1
    words = (
        f"{('self', 'mat1')[at]} and mat2 must have the same dtype, but got {older(given[at])} and {older(given[2])}"
    )
    raise explained(RuntimeError(f"{name}: {words} ({names[at]} and {names[2]})"), "two-dtypes")


def same_dtypes_of_vector(name: str, input: Tensor, mat: Tensor, vec: Tensor) -> None:
    """Raise RuntimeError unless a vector, and a matrix and a vector whose product is added to it, are of one dtype."""
    given = [held(x).dtype for x in (input, mat, vec)]
    if len(set(given)) > 1 and modes.autocast is None:
        raise explained(RuntimeError(f"{name}: {of_a_vector_added(*given)}"), "two-dtypes")


# Of sizes ----------------------------------------------------------------------------------------------


def check_matrices(
    name: str,
    a: Tensor,
    b: Tensor,
    ndim: int = 2,
    names: tuple[str, str] = ("input", "mat2"),
    words: Words | None = None,
) -> None:
    """Raise RuntimeError unless two matrices, or batches of them, can be multiplied."""
    if words is not None:
        same_dtype(name, a, b, names, words)
    s, t = held(a).shape, held(b).shape
    called = ("batch1", "batch2") if ndim == 3 else ("self" if names[0] == "input" else names[0], names[1])
    for each, shape in zip(called, (s, t), strict=True):
        if len(shape) != ndim:
            raise RuntimeError(f"{name}: {each} must be a {'matrix' if ndim == 2 else f'{ndim}D tensor'}, got "
                               f"{len(shape)}-D tensor of shape {list(shape)}")  # fmt: skip
    if s[-1] != t[-2] or s[:-2] != t[:-2]:
        raise explained(RuntimeError(f"{name}: {unfit(s, t)}"), "sizes-of-a-product")


def unfit(s: tuple[int, ...], t: tuple[int, ...]) -> str:
    """That operands of these shapes cannot be multiplied: matrices, vectors, batches, or rows with what is before them."""
    if len(t) == 1:
        return (
            of_sizes(s[0], t[0])
            if len(s) == 1
            else of_a_vectors_size(math.prod(s[:-1]), (math.prod(s[:-1]), s[-1]), t[0])
        )
    if len(t) == 2:
        return f"mat1 and mat2 shapes cannot be multiplied ({math.prod(s[:-1])}x{s[-1]} and {t[0]}x{t[1]})"
    batch = common_shape(s[:-2], t[:-2])
    if batch is None or len(s) == len(t) == 3:  # as `bmm` has them
        first, second = [s[0], s[-1]], list(t[:2])
    else:
        first, second = [math.prod(batch), s[-1]], [math.prod(batch), t[-2]]
    words = f"Expected size for first two dimensions of batch2 tensor to be: {first} but got: {second}."
    return f"{words} Shapes {list(s)} and {list(t)} cannot be multiplied"


def of_sizes(m: int, n: int) -> str:
    """Vectors of two sizes."""
    words = f"inconsistent tensor size, expected tensor [{m}] and src [{n}] to have the same number of elements"
    return f"{words}, but got {m} and {n} elements respectively"


def of_a_vectors_size(rows: int, matrix: tuple[int, ...], n: int) -> str:
    """A matrix, what its product with a vector is added to, and a vector whose sizes do not fit."""
    return f"size mismatch, got input ({rows}), mat ({matrix[0]}x{matrix[1]}), vec ({n})"


def check_vector(name: str, mat: Tensor, vec: Tensor, input: Tensor | None = None) -> None:
    """Raise RuntimeError unless a matrix can be multiplied with a vector, and the product added to `input`, if it is given."""
    s, t = held(mat).shape, held(vec).shape
    added = s[:1] if input is None else held(input).shape
    if len(s) != 2 or len(t) != 1 or len(added) > 1:
        words = f"vector + matrix @ vector expected, got {len(added)}, {len(s)}, {len(t)}"
        raise RuntimeError(f"{name}: {words} dimensions")
    if s[1] != t[0] or added not in (s[:1], (1,), ()):
        words = of_a_vectors_size(math.prod(added), s, t[0])
        raise explained(RuntimeError(f"{name}: {words}"), "sizes-of-a-product")


def check_expands(name: str, input: Tensor, shape: tuple[int, ...]) -> None:
    """Raise RuntimeError unless `input` broadcasts to `shape`."""
    words = unexpandable(held(input).shape, shape)
    if words:
        raise RuntimeError(f"{name}: {words}")
