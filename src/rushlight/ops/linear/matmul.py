"""Matrix products: mm, bmm, matmul, linear, and their relatives that add and scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.backends.numpy import backend
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.state import modes
from rushlight.dispatch import call, costs, families, shapes
from rushlight.dispatch.compute import HALVES, check_factors
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import common_shape, two_sizes
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.operands import held
from rushlight.dispatch.registry import function, op, publish
from rushlight.dispatch.rules import Making, laid_out, rows_or_columns
from rushlight.kernels.dispatch import memory_order, rounded, widened
from rushlight.kernels.products import product as product_of_halves
from rushlight.kernels.products import work_of_halves
from rushlight.kernels.sums import add_up
from rushlight.ops.elementwise.arith import by, conj
from rushlight.ops.elementwise.old_orders import in_old_order
from rushlight.ops.linear.unfit import (
    check_expands,
    check_matrices,
    check_vector,
    of_a_vector,
    of_batches,
    of_matrices,
    of_sizes,
    of_vectors,
    same_dtype,
    same_dtypes_of_sum,
    unfit,
    words_of,
)
from rushlight.ops.linear.unmade_products import limits, unmade_mm, unmade_product
from rushlight.ops.shape.reshape import permute_op, reshape_op, reshaped, transpose_op
from rushlight.overrides.public import left_to
from rushlight.tensor import Tensor

ndarray = np.ndarray


def adj(x: Any) -> Array | Tensor:
    """The conjugate transpose of the last two dimensions, of an array or tensor."""
    if x.__class__ is ndarray:
        x = x.swapaxes(-1, -2)
        return x.conj() if x.dtype.kind == "c" else x
    n = x._array.ndim
    return conj(transpose_op(x, n - 2, n - 1))


def copies_for_blas(input: Array, mat2: Array) -> int:
    """The bytes of copies in which a product is computed: of matrices that BLAS cannot take, and what 16-bit numbers are packed into."""
    copies = sum(int(x.nbytes) for x in (input, mat2) if not strided_for_blas(x))
    if input.dtype in HALVES:
        return copies + work_of_halves(input.dtype, input.shape[-2], input.shape[-1], mat2.shape[-1])
    return copies


def strided_for_blas(x: Array) -> bool:
    """Whether BLAS takes matrices as they lie: rows or columns of neighbours."""
    return bool(x.itemsize in x.strides[-2:] or x.shape[-1] == 1 or x.shape[-2] == 1)


@op(
    aten_gradient="of_products",
    autocast="lower",
    factors=(0, 1),
    half=None,
    linear=True,
    refuse="b",
    grads={"input": lambda g, mat2: mm_op(g, adj(mat2)), "mat2": lambda g, input: mm_op(adj(input), g)},
    shape=shapes.product,
    cost=costs.product,
    counted=costs.Counted("mm", "mm"),
    batch=families.product,
    heavy=True,
    saver=rebuilt.keep_inputs,
)
def mm_op(input: Array, mat2: Array) -> Array:
    """Matrix product.  (M, K), (K, N) -> (M, N)"""
    return backend.matmul(input, mat2)


mm_op.work(copies_for_blas)


@op(
    aten_call="multiplied",
    aten_gradient="of_products",
    autocast="lower",
    factors=(0, 1),
    name="bmm",
    half=None,
    linear=True,
    refuse="b",
    grads={
        "input": lambda g, mat2, input_shape: product_for(g, adj(mat2), input_shape),
        "mat2": lambda g, input: matmul_op(adj(input), g),
    },
    shape=shapes.product,
    cost=costs.product,
    counted=costs.Counted("bmm", "bmm"),
    batch=families.stacks,
    heavy=True,
    saver=rebuilt.keep_inputs,
)
def matmul_op(input: Array, mat2: Array) -> Array:
    """Matrix products over broadcast leading dimensions.  (*, M, K), (*, K, N) -> (*, M, N)"""
    return backend.matmul(input, mat2)


matmul_op.work(copies_for_blas)


def product_for(a: Array | Tensor, b: Array | Tensor, shape: tuple[int, ...]) -> Array | Tensor:
    """a @ b for an input of `shape`: where that is one matrix for a whole batch, the sum over the batch.

    The products of all are made first where they are smaller than copies of the factors would be.
    """
    s, t = held(a).shape, held(b).shape
    if len(shape) != 2 or s[:-2] != t[:-2] or math.prod(s[:-1]) * t[-1] <= math.prod(s) + math.prod(t):
        return matmul_op(a, b)
    batch = len(s) - 2
    left = permute_op(a, (batch, *range(batch), batch + 1))
    return mm_op(reshape_op(left, (shape[0], math.prod(s) // shape[0])), reshape_op(b, (math.prod(t[:-1]), shape[1])))


@op(factors=(0, 1), half=None, linear=True, refuse="b", grads={"vec": lambda g, input: mv_op(adj(input), g),
                                             "input": lambda g, vec: outer_op(g, conj(vec))}, batch=families.product)  # fmt: skip
def mv_op(input: Array, vec: Array) -> Array:
    """Matrix times vector.  (M, K), (K) -> (M)"""
    return backend.matmul(input, vec)


mv_op.costs(lambda input, vec: 2 * math.prod(input.shape))


@mv_op.shape
def _(input: Array) -> list[shapes.Made]:
    return [shapes.Made(input.shape[:1], input.dtype)]


@op(
    factors=(0, 1),
    half=None,
    saved_as={"tensor": "other"},
    linear=True,
    refuse="b",
    grads={"input": lambda g, other: g * conj(other), "other": lambda g, input: g * conj(input)},
    shape=shapes.number,
    batch=families.product,
)
def dot_op(input: Array, other: Array) -> Array:
    """The sum of products.  (K), (K) -> ()"""
    return np.asarray(backend.matmul(input, other))


dot_op.costs(lambda input: 2 * math.prod(input.shape))


@op(
    factors=(0, 1),
    half=None,
    linear=True,
    promote="arith",
    grads={
        "input": lambda g, vec2: mv_op(g, conj(vec2)),
        "vec2": lambda g, input: mv_op(transpose_op(g, 0, 1), conj(input)),
    },
    complex_half="widens",
    batch=families.outer,
)
def outer_op(input: Array, vec2: Array) -> Array:
    """All products.  (M), (N) -> (M, N)"""
    return np.asarray(backend.column_by_row(input[:, None], vec2[None, :]))


@outer_op.shape
def _(input: Array, vec2: Array) -> list[shapes.Made]:
    return [shapes.Made((input.shape[0], vec2.shape[0]), np.result_type(input, vec2))]


@op(
    autocast="lower",
    factors=(0, 1),
    added=2,
    half=None,
    linear=True,
    counted=costs.Counted("addmm", "mm", alone="mm"),
    batch=families.linear,
    heavy=True,
    saver=rebuilt.keep_inputs,
    order=(2, 0, 1),  # as from PyTorch's product of a matrix with the transposed weight, to which a row is added
)
def linear_op(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """input @ weight^T + bias as one matrix product.  (*, K), (N, K), (N) -> (*, N)"""
    k = input.shape[-1]
    rows = input if input.ndim == 2 else input.reshape(_count(input.shape), k)
    out = backend.matmul(rows, weight.T, None, bias)
    return out if input.ndim == 2 else out.reshape(*input.shape[:-1], weight.shape[0])


linear_op.costs(lambda input, weight: 2 * math.prod(input.shape) * weight.shape[0])


@linear_op.shape
def _(input: Array, weight: Array) -> list[shapes.Made]:
    return [shapes.Made((*input.shape[:-1], weight.shape[0]), input.dtype)]


@linear_op.work
def _(input: Array, weight: Array) -> int:
    folded = 0 if input.ndim == 2 or input.flags.c_contiguous else int(input.nbytes)  # to rows
    if input.dtype not in HALVES:
        return folded
    return folded + work_of_halves(input.dtype, math.prod(input.shape[:-1]), input.shape[-1], weight.shape[0])


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape[:-1]:
        n *= size
    return n


def flat(x: Tensor) -> Tensor:
    """All dimensions but the last as one, of an array or tensor."""
    shape = held(x).shape
    return x if len(shape) == 2 else reshape_op(x, (_count(shape), shape[-1]))


def _input_raw(g: Array, weight: Array) -> Array:
    found = backend.matmul(g if g.ndim == 2 else g.reshape(_count(g.shape), g.shape[-1]), conj(weight))
    return found if g.ndim == 2 else found.reshape(*g.shape[:-1], weight.shape[1])


def _weight_raw(g: Array, input: Array) -> Array:
    g, input = _rows_of_both(g, input)
    return backend.matmul(g.T, conj(input))


def _rows_of_both(g: Array, input: Array) -> tuple[Array, Array]:
    """All dimensions but the last as one, of both in the order in which they lie in memory, if they lie alike: without a copy."""
    if g.ndim == 2:
        return g, input
    if g.ndim > 2 and not g.flags.c_contiguous:
        order = [*memory_order(g[..., 0]), g.ndim - 1]
        g, input = g.transpose(order), input.transpose(order)
    return g.reshape(_count(g.shape), g.shape[-1]), input.reshape(_count(input.shape), input.shape[-1])


def _taken(position: int, g: Array, sizes: tuple[int, int, int], make: Making) -> Array:
    """The gradient of a factor, beside what its product takes.  sizes: rows, steps of the sum, columns."""
    copy = make.array(g.shape, g.dtype) if laid_out(g) and not rows_or_columns(g) else None
    made = make.gradient(position)
    if g.dtype in HALVES:
        make.work(work_of_halves(g.dtype, *sizes))
    del copy
    return made


def _weight_taken(g: Array, input: Array, make: Making) -> Array:
    return _taken(1, g, (g.shape[-1], _count(g.shape), input.shape[-1]), make)


def _input_taken(g: Array, weight: Array, make: Making) -> Array:
    return _taken(0, g, (_count(g.shape), *weight.shape), make)


# First, for it is what may need its input computed again, which is then gone before the other is made.
@linear_op.grad("weight", raw=_weight_raw, shapes=_weight_taken)
def _(g: Tensor, input: Tensor) -> Tensor:
    return mm_op(transpose_op(flat(g), 0, 1), conj(flat(input)))


@linear_op.grad("input", raw=_input_raw, shapes=_input_taken)
def _(g: Tensor, weight: Tensor) -> Tensor:
    if held(g).ndim == 2:
        return mm_op(g, conj(weight))
    return linear_op(g, transpose_op(conj(weight), 0, 1), None)  # one product of rows, also of each sample inside vmap


def _bias_raw(g: Array) -> Array:
    if g.dtype.itemsize == 2:
        return g  # summed in float32 by the engine
    return backend.sum_rows(g) if g.ndim == 2 else add_up(g, tuple(range(g.ndim - 1)))


@linear_op.grad("bias", raw=_bias_raw)
def _(g: Tensor) -> Tensor:
    return g


@function(method=True, out="same")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Matrix product.  (M, K), (K, N) -> (M, N)"""
    check_matrices("mm", input, mat2, words=of_matrices)
    return mm_op(input, mat2)


@function(out=True)
def spmm(input: Tensor, mat2: Tensor) -> Any:
    """As `mm`, of which one matrix is a sparse one.  (M, K), (K, N) -> (M, N)"""
    return mm(input, mat2)


@function(method=True, out="same")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Matrix products of two batches.  (B, M, K), (B, K, N) -> (B, M, N)"""
    check_matrices("bmm", input, mat2, 3, words=of_batches)
    return matmul_op(input, mat2)


@function(method=True, out="same")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Matrix times vector.  (M, K), (K) -> (M)"""
    same_dtype("mv", input, vec, ("input", "vec"), of_a_vector)
    check_vector("mv", input, vec)
    return mv_op(input, vec)


@function(method=True, out="same")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of products of two vectors, not conjugated.  (K), (K) -> ()"""
    same_dtype("dot", input, tensor, ("input", "tensor"), of_vectors)
    if held(input).ndim != 1 or held(tensor).ndim != 1:
        raise RuntimeError(f"dot: 1D tensors expected, but got {held(input).ndim}D and {held(tensor).ndim}D tensors")
    if held(input).shape != held(tensor).shape:
        raise RuntimeError(f"dot: {of_sizes(held(input).size, held(tensor).size)}")
    return dot_op(input, tensor)


@function(method=True, out=True, aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of the elements of two vectors.  (M), (N) -> (M, N)"""
    for name, x in (("self", input), ("vec2", vec2)):
        if held(x).ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {held(x).ndim}-D")
    return outer_op(input, vec2)


@function(method=True, out="same")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product over broadcast leading dimensions; 1-d tensors count as a row and a column.

    (K), (K) -> ();  (M, K), (K) -> (M);  (K), (K, N) -> (N);  (*, M, K), (*, K, N) -> (*, M, N)
    """
    s, t = held(input).shape, held(other).shape
    m, n = len(s), len(t)
    same_dtype("matmul", input, other, ("input", "other"), words_of(m, n))
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    if s[-1] != t[-2 if n > 1 else 0]:
        against = f"size {s[-1]} against {t[-2 if n > 1 else 0]}"
        raise explained(RuntimeError(f"matmul: {unfit(s, t)}: {against}"), "sizes-of-a-product")
    if m == 2 and n == 2:
        late = unmade_mm(mm_op.op, input, other) if t[1] >= limits.classes else None
        return mm_op(input, other) if late is None else late
    if m == 1 and n == 1:
        return dot_op(input, other)
    if m == 2 and n == 1:
        return mv_op(input, other)
    return products(input, other, s, t)


def products(input: Tensor, other: Tensor, s: tuple[int, ...], t: tuple[int, ...]) -> Tensor:
    """The remaining cases of `matmul`: vectors become matrices; one matrix for a whole batch, one product."""
    if len(s) == 1:
        found = matmul(reshape_op(input, (1, *s)), other)
        return reshaped(found, (*t[:-2], t[-1]))
    if len(t) == 1:
        return reshaped(mv_op(flat(input), other), s[:-1])
    if len(t) == 2:
        rows, shape = flat(input), (*s[:-1], t[-1])
        late = unmade_mm(mm_op.op, rows, other, shape) if t[1] >= limits.classes else None
        return reshaped(mm_op(rows, other), shape) if late is None else late
    if common_shape(s[:-2], t[:-2]) is None:
        raise RuntimeError(f"matmul: {two_sizes(s[:-2], t[:-2])} of the batches of {list(s)} and {list(t)}")
    return matmul_op(input, other)


@op(
    aten=("addmm(input, mat1, mat2, *, beta=1, alpha=1)",),
    aten_gradient="added_product",
    autocast="lower",
    refuse="b",
    half=None,
    counted=costs.Counted("addmm", "mm"),
    batch=families.added,
)
def addmm_op(input: Array, mat1: Array, mat2: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """beta * input + alpha * mat1 @ mat2, also over batches; input is broadcast."""
    check_factors("addmm", mat1.dtype, beta, alpha)
    if mat1.dtype in HALVES:
        return added_halves(input, mat1, mat2, beta, alpha)
    out = backend.matmul(mat1, mat2) if alpha != 0 else no_product(mat1, mat2)
    if alpha not in (0, 1):
        out = np.asarray(out * alpha).astype(out.dtype, copy=False)
    if beta != 0:
        scaled = input if beta == 1 else np.asarray(input * beta).astype(out.dtype, copy=False)
        out += scaled
    return out


def added_halves(input: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    """As `addmm_op`, of 16-bit numbers: computed in float32, rounded once."""
    if beta == 0 and alpha == 1:
        return np.asarray(backend.matmul(mat1, mat2))
    if beta != 0 and alpha != 0:
        more = np.broadcast_to(input, (*common_shape(mat1.shape[:-2], mat2.shape[:-2]), mat1.shape[-2], mat2.shape[-1]))
        found = product_of_halves(mat1, mat2, more=more, alpha=alpha, beta=beta)
        if found is not None:
            return found
    return rounded(addmm_op.op.forward(widened(input), widened(mat1), widened(mat2), beta, alpha), mat1.dtype)


def no_product(mat1: Array, mat2: Array) -> Array:
    """Zeros where a product would be: as BLAS has it, nothing is multiplied by 0, and no NaN or infinity comes out."""
    (*a, m, _), (*b, _, n) = mat1.shape, mat2.shape
    return np.zeros((*np.broadcast_shapes(tuple(a), tuple(b)), m, n), mat1.dtype)


addmm_op.costs(lambda mat1, mat2: costs.product(mat1, mat2))


addmm_op.shape(lambda mat1, mat2: shapes.product(mat1, mat2))


addmm_op.work(lambda mat1, mat2: copies_for_blas(mat1, mat2))


def _scaled(x: Array | Tensor, number: complex) -> Array | Tensor:
    """x times the conjugate of a number."""
    return x if number == 1 else by(x, conj(number))


addmm_op.grad("input")(lambda g, beta: _scaled(g, beta))
addmm_op.grad("mat1")(lambda g, mat2, alpha: _scaled(matmul_op(g, adj(mat2)), alpha))
addmm_op.grad("mat2")(lambda g, mat1, alpha: _scaled(matmul_op(adj(mat1), g), alpha))


@function(method=True, out="same", inplace=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *old: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2; with beta 0, NaN of input does not count.  (M, N), (M, K), (K, N) -> (M, N)"""
    if old:
        return in_old_order(addmm, (input, mat1, mat2, *old), {"beta": beta, "alpha": alpha})
    same_dtypes_of_sum("addmm", input, mat1, mat2)
    check_matrices("addmm", mat1, mat2, names=("mat1", "mat2"))
    shape = (held(mat1).shape[0], held(mat2).shape[1])
    check_expands("addmm", input, shape)
    if held(input).dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    return addmm_op(input, mat1, mat2, beta, alpha)


@function(ns="nn.functional")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Any:
    """input @ weight^T + bias, as one matrix product over all leading dimensions.

    input: (*, K), weight: (N, K) or (K), bias: (N) or () -> (*, N) or (*)
    """
    if out is not None:
        return call.write_out("linear", out, linear(input, weight, bias), same=True)
    try:
        x, w, b = input._array, weight._array, None if bias is None else bias._array
        fits = w.ndim == 2 and x.shape[-1] == w.shape[1] and (b is None or b.shape == w.shape[:1])
        usual = fits and x.dtype is w.dtype and (b is None or b.dtype is w.dtype)
        if fits and len(w) >= limits.classes and (usual or modes.autocast is not None):
            late = unmade_product(linear_op.op, (input, weight, bias), (x, w, b))
            if late is not None:
                return late
        if usual:
            return linear_op(input, weight, bias)
    except (AttributeError, IndexError):
        pass
    return linear_slowly(input, weight, bias)


def check_operands(*given: object) -> None:
    """Raise TypeError where tensors are mixed with what is none: arrays come together, from formulas."""
    if any(isinstance(x, Tensor) for x in given):
        for i, x in enumerate(given):
            if x is not None and not isinstance(x, Tensor):
                argument = ("input", "weight", "bias")[i]
                shown = f"numpy.{type(x).__name__}" if type(x).__module__ == "numpy" else kind_of(x)
                raise TypeError(f"linear(): argument '{argument}' (position {i + 1}) must be Tensor, not "
                                f"{shown}")  # fmt: skip


def linear_slowly(input: Tensor, weight: Tensor, bias: Tensor | None) -> Array | Tensor:
    """`linear` for the rarer shapes, and the errors."""
    check_operands(input, weight, bias)
    if bias is None:
        same_dtype("linear", input, weight, ("input", "weight"), of_matrices)
    else:
        same_dtypes_of_sum("linear", bias, input, weight, ("bias", "input", "weight"))
    s, w = held(input).shape, held(weight).shape
    if not s or not w or len(w) > 2 or s[-1] != w[-1]:
        words = f"{unfit(s, w[::-1])}: " if s and len(w) == 2 else ""
        raise explained(RuntimeError(f"linear: {words}input of shape {list(s)} and weight of shape {list(w)} cannot be multiplied: "
                                     "the last sizes must be equal, and the weight have one or two dimensions"),
                        "sizes-of-a-product")  # fmt: skip
    if len(w) == 1:
        found = matmul(input, weight)
        return found if bias is None else found + bias
    if bias is None or held(bias).shape in ((w[0],), (1,), ()):
        return linear_op(input, weight, bias)
    try:
        check_expands("linear", bias, (*s[:-1], w[0]))
    except RuntimeError as error:
        raise RuntimeError(f"linear: bias of shape {list(held(bias).shape)} does not fit {w[0]} outputs") from error
    return linear_op(input, weight, None) + bias


publish(matmul, "matmul", "linalg", (), False)


def _matmul(self: Tensor, other: Tensor | complex) -> Any:
    return matmul(self, other) if isinstance(other, (Tensor, np.ndarray)) else left_to("__matmul__", self, other)


def _rmatmul(self: Tensor, other: Tensor | complex) -> Tensor:
    return matmul(other, self) if isinstance(other, (Tensor, np.ndarray)) else left_to("__rmatmul__", self, other)


Tensor.__matmul__ = _matmul  # type: ignore[method-assign]
Tensor.__rmatmul__ = _rmatmul  # type: ignore[method-assign]
