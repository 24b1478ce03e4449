"""Declared differences of single operators: values at the edge of what is defined, dtypes, strides."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from .comparing import TOLERANCES, Difference
from .declaring import Declared, refused_by, statement, text
from .observing import Seen
from .operands import (
    agree,
    apart,
    called,
    empty,
    executed,
    given,
    has_empty,
    only_at,
    pointlike,
    precision,
    reference_otherwise,
    refuses,
    some,
    tensors_in,
    there,
)
from .precision import arrays_in

NUMBERS = ("value", "grad")
# Operators whose slope is constant in pieces: PyTorch's formulas for it take the input, and are zero in it.
IN_PIECES = (
    r"relu|hardsigmoid|hardtanh|hardswish|hardshrink|softshrink|elu|threshold|clamp|max_pool|avg_pool|max_unpool|pool\d?d|"
    r"prod|pinv|det|var\b|std\b|conv\dd|conv_transpose|pad\b|unfold|fold|l1_loss|margin|hinge|triplet|dist\b|norm\b|renorm|interpolate|"
    r"upsample|grid_sample|embedding|masked|amax|amin|cummax|cummin|polar|stft|real|imag|\*\* [01]\b"
)
NAN_FOLLOWED = (
    "clamp|clamp_min|clamp_max|clip|minimum|maximum|fmin|fmax|i0|i0e|i1|i1e|elu|celu|selu|smooth_l1_loss|relu6|hardtanh|"
    "hardswish|hardsigmoid|leaky_relu|threshold|softshrink|hardshrink|huber_loss"
)
OF_NONE = (
    r"logsumexp|\w+_loss|binary_cross_entropy\w*|kl_div|var_mean|std_mean|var|std"  # see the tangents of no elements
)
OF_NUMBERS = "ldexp|addcdiv|addcmul"  # which PyTorch multiplies by Python's numbers
# What has no order, no rounding or no smaller form in PyTorch either, but is not asked where nothing is computed.
NO_KERNEL = ("not implemented for", "xpected a floating point", "complex numbers have no order", "expected a tensor of", "must have a floating-point dtype",
             "only supported for float32 and float64", "expected both inputs to be float32", "Low precision dtypes not supported",
             "on a bool tensor is not supported", "Bool input is not supported", "a bool tensor cannot hold")  # fmt: skip


def of(pattern: str, what: tuple[str, ...] = NUMBERS) -> Callable[[Difference], bool]:
    """Whether those facts differ in a program that calls one of these operators."""
    return lambda difference: difference.what in what and re.search(rf"\b({pattern})_?\(", text(difference)) is not None


def numbers(difference: Difference) -> bool:
    """Whether both sides are arrays or numbers of one shape."""
    return apart(difference) is not None


def nearly(relative: float, pattern: str, difference: Difference) -> bool:
    """Whether values of these operators differ by no more than that."""
    a, b = difference.reference, difference.subject
    return (
        of(pattern)(difference)
        and numbers(difference)
        and bool(np.allclose(a, b, rtol=relative, atol=relative, equal_nan=True))
    )


def beyond(pattern: str, difference: Difference, tolerance: float = 4e-3) -> bool:
    """Whether values of these operators, some of them infinite or NaN, differ only where PyTorch's are, or by a rounding.

    tolerance: of 16 bits, as a part of the largest number or of 1.
    """
    a, b = difference.reference, difference.subject
    if not of(pattern)(difference) or not numbers(difference):
        return False
    a, b = np.asarray(a), np.asarray(b)
    known = np.isfinite(a)
    largest = float(np.max(np.abs(a[known]), initial=1.0))
    return bool(np.allclose(b[known], a[known], rtol=4e-3, atol=tolerance * largest * ("float16" in text(difference))))


def infinite(pattern: str, difference: Difference) -> bool:
    """Whether values of these operators are infinite, NaN or 0 here, and of numbers whose squares are infinite or 0."""
    if not of(pattern)(difference) or not numbers(difference) or re.search(r"1e[+-]?30", text(difference)) is None:
        return False
    a, b = np.asarray(difference.reference), np.asarray(difference.subject)
    known = np.isfinite(b) & (b != 0)
    return bool(np.allclose(b[known], a[known], rtol=4e-3, equal_nan=True))


def at(
    pattern: str, special: Callable[..., Any], places: str = "", what: tuple[str, ...] = NUMBERS
) -> Callable[[Difference], bool]:
    """Whether numbers of these operators differ only where their operands are special.

    places: first letters of the names at which they may differ, "" for all: g gradients, t tangents, o and q what `out=` has.
    """
    return lambda difference: (
        of(pattern, what)(difference)
        and (not places or difference.where[0] in places)
        and only_at(pattern, special, difference)
    )


def of_some(
    pattern: str, special: Callable[[Any], Any], places: str = "", tolerance: float = 4e-3
) -> Callable[[Difference], bool]:
    """Whether numbers of these operators differ only where PyTorch's are infinite or NaN, and some operand is special."""
    return lambda difference: (
        (not places or difference.where[0] in places)
        and beyond(pattern, difference, tolerance)
        and some(pattern, special, difference)
    )


def short_tolerance(difference: Difference) -> float:
    """How far numbers may be apart beside infinite ones: as the short sums of PyTorch's 16 bits are."""
    return 2e-2 if "float16" in text(difference) else 4e-3


def unbounded(x: Any) -> Any:
    """Where numbers are infinite or NaN."""
    return ~np.isfinite(x)


def any_equal(*operands: Any) -> Any:
    """Where two of the operands are equal."""
    return np.any([a == b for a, b in combinations(operands, 2)], axis=0)


def any_nan(*operands: Any) -> Any:
    """Where one of the operands is NaN."""
    return np.any([np.isnan(a) for a in operands], axis=0)


def pole(*operands: Any) -> Any:
    """Where the last operand is an integer that is not above 0."""
    return (operands[-1] <= 0) & (operands[-1] == np.round(operands[-1]))


def multivariate_pole(x: Any, p: Any = 1) -> Any:
    """Where x - j / 2 is a pole of the gamma function for some j < p."""
    return (x <= (p - 1) / 2) & (2 * x == np.round(2 * x))


def real_parts_agree(difference: Difference) -> bool:
    """Whether complex numbers of a power differ by their imaginary parts alone, or where its base or exponent is 0."""
    a, b = difference.reference, difference.subject
    if not numbers(difference) or not np.iscomplexobj(a):
        return False
    alike = np.isclose(np.real(a), np.real(b), rtol=precision(difference), equal_nan=True)
    return bool(alike.all()) or only_at(
        "pow|float_power",
        lambda x, y: (x == 0) | (y == 0),
        replace(difference, reference=np.real(a), subject=np.real(b)),
    )


def opposite(difference: Difference) -> bool:
    """Whether numbers differ by their sign alone."""
    a, b = difference.reference, difference.subject
    return numbers(difference) and bool(np.allclose(np.abs(np.float64(a)), np.abs(np.float64(b)), rtol=1e-5))


def most_negative(x: Any) -> Any:
    """Where integers are the largest of their dtype, or the smallest, so that the next one or the opposite is beyond it."""
    return np.isin(x, [sign * 2**bits + more for bits in (7, 8, 15, 31, 63) for sign, more in ((-1, 0), (1, -1))])


def to_nothing(x: Any, y: Any) -> Any:
    """Where a power is one of 0, or one to the power 0, as it is in the first and second derivatives of small integers."""
    return (x == 0) | (y == 0) | (~np.isfinite(x) & ((y == 1) | (y == 2)))


def beyond_float32(*operands: Any) -> Any:
    """Where two to the power of the last operand is none of float32, or of an integer."""
    power = operands[-1].real
    return (np.abs(power) >= 100) | ((power < 0) & (power == np.round(power)))


def wrapped(difference: Difference) -> bool:
    """Whether sums of two small integers, halved, are other by what wraps around."""
    bits = re.search(r"dtype=torch\.u?int(8|16|32)\b", text(difference))
    if bits is None or not numbers(difference):
        return False
    a, b, modulus = np.float64(difference.reference), np.float64(difference.subject), 2.0 ** (int(bits[1]) - 1)
    rest = (b - a) - modulus * np.round((b - a) / modulus)
    largest = max(np.max(np.abs(a)), np.max(np.abs(b)), modulus if bits[1] == "32" else 0)  # sums are of float32
    return bool(np.all(np.abs(rest) <= 1e-6 * largest))


def covered(difference: Difference) -> bool:
    """Whether of two gradients of as_strided_scatter each is zero where the other is not."""
    a, b = difference.reference, difference.subject
    return (
        difference.where[0] in "gt"
        and numbers(difference)
        and of("as_strided_scatter")(difference)
        and not np.any(np.asarray(a) * np.asarray(b))
    )


def turned_zero(pattern: str, special: Callable[[Any], Any], difference: Difference) -> bool:
    """Whether slopes of these operators are 0 in PyTorch where they are NaN here, and some operand is special."""
    where = apart(difference) if of(pattern)(difference) else None
    if where is None:
        return False
    a, b = np.asarray(difference.reference), np.asarray(difference.subject)
    return bool(np.all((a[where] == 0) & np.isnan(b[where]))) and some(pattern, special, difference)


def beside_infinities(difference: Difference) -> bool:
    """Whether slopes of products of infinities differ only where one side's are infinite or NaN."""
    if difference.where[0] not in "gt" or not of("prod|cumprod")(difference) or not numbers(difference):
        return False
    a, b = np.asarray(difference.reference), np.asarray(difference.subject)
    known = np.isfinite(a) & np.isfinite(b)
    return bool(np.allclose(b[known], a[known], rtol=4e-3)) and some("prod|cumprod", unbounded, difference)


WRITTEN = re.compile(r"(= torch\.[\w.]+\()(.*)(, out=\w+\))")


def made_larger_beneath(difference: Difference) -> bool:
    """Whether PyTorch makes `out=` larger over the memory of operands that it then reads: of copies it has our numbers."""

    def of_copies(line: str) -> str:
        return WRITTEN.sub(lambda found: found[1] + re.sub(r"\b([ab]\d*)\b", r"\1.clone()", found[2]) + found[3], line)

    return difference.where[0] in "oq" and reference_otherwise(difference, of_copies)


def one_each(difference: Difference) -> bool:
    """Whether products are of one number each: PyTorch divides by it, of small ones with what rounding leaves of 0."""
    import rushlight

    call, names = called("prod", difference), executed(difference)[0]
    if call is None:
        return False
    made = eval(ast.unparse(call), {**names, "torch": rushlight})
    return int(made.numel()) == given("prod", difference)[0].size


def zero_slope(difference: Difference) -> bool:
    """Whether a second derivative that is zero is a graph of zeros in PyTorch, and none here."""
    if "create_graph=True" not in text(difference):
        return False
    if difference.what in ("requires_grad", "is_leaf"):
        linear = re.search(IN_PIECES, text(difference)) is not None
        return linear and (difference.where.startswith("g") or difference.where.endswith(".grad"))
    unused = refused_by(
        difference, "does not require grad and does not have", "appears to not have been used in the graph"
    )
    if unused and ".backward(" in statement(difference):  # which makes nothing that has a name
        return re.search(IN_PIECES, text(difference)) is not None
    rounding = 5e-2 if "float16" in text(difference) else 1e-4
    arrays = [array for value in difference.made for _, array in arrays_in("", value)]
    if unused and ".prod" in text(difference) and given("prod", difference)[:1]:
        return one_each(difference)
    return (
        unused
        and bool(difference.made)
        and all(np.allclose(array[np.isfinite(array)], 0, atol=rounding) for array in arrays)
    )


def without_kernel(difference: Difference) -> bool:
    """Whether a dtype is refused of which PyTorch looks at no element."""
    nothing = (
        re.search(
            r"\[\]|\(0,|, 0[,)]|tensor\([^\[]|histogram|bilinear|soft_margin_loss|masked\.median|pow\(",
            text(difference),
        )
        is not None
    )
    return nothing and refused_by(difference, *NO_KERNEL)


def mixed_of_nothing(difference: Difference) -> bool:
    """Whether factors of two dtypes are refused that PyTorch does not look at: the product has no elements."""
    target = re.match(r"\s*(\w+) = ", statement(difference).split("\n")[-1])
    if target is None or not refused_by(difference, "have the same dtype", "have same dtype", "expected scalar type"):
        return False
    made = there(difference).get(target[1])
    return made is not None and hasattr(made, "numel") and made.numel() == 0


def without_elements(difference: Difference) -> bool:
    """Whether it is of tensors without elements whether they require grad, or whether gradients without elements exist."""
    if not has_empty(difference):
        return False
    sides = (difference.reference, difference.subject)
    if difference.what in ("value", "grad") and any(side is None for side in sides):
        return all(side is None or not any(array.any() for _, array in arrays_in("", side)) for side in sides)
    unused = refused_by(
        difference, "does not require grad and does not have", "appears to not have been used in the graph"
    )
    saved = refused_by(difference, "modified by an inplace operation", "backward through the graph a second time")
    nothing = re.search(r"tensor\(\[\]", text(difference)) is not None
    unseen = nothing and (saved or difference.where.startswith("log"))  # which nodes ran, and what they saved
    return difference.what in ("requires_grad", "is_leaf") or unused or unseen


def complex32(difference: Difference) -> bool:
    """Whether a complex number of two float16 would be the result, for which there is no dtype."""
    if refused_by(difference, "float32 and float64", "float32 or float64"):
        return re.search(r"(view_as_complex|complex|polar)\(.*", text(difference)) is not None
    return "complex32" in str(difference.reference)


def dense(strides: object) -> bool:
    """Whether strides are those of elements that fill their memory, in any order of dimensions."""
    order = sorted(strides) if isinstance(strides, tuple) else [0]
    return not order or (order[0] == 1 and all(more % less == 0 for less, more in pairwise(order)))


def laid_out(difference: Difference) -> bool:
    """Whether a result fills its memory in another order of dimensions, where operands were not contiguous or PyTorch's
    result is not: results of contiguous operands are contiguous wherever PyTorch's are."""
    if difference.what != "stride":
        return False
    if re.fullmatch(r"[gotq]\d.*", difference.where):
        return True  # of gradients and tangents no order is promised, and equal numbers may be one in memory
    if not dense(difference.subject):
        return False
    there = difference.reference
    contiguous = dense(there) and list(there) == sorted(there, reverse=True)
    operands = re.search(
        r"\.(mT|T|H|mH)\b|\.(transpose|permute|expand|adjoint|conj)\(|\[\.\.\., ::2\]", text(difference)
    )
    factors = re.search(r"linalg\.|\b(lu|qr|cholesky|ormqr|triangular_solve|inverse)\w*\(", text(difference))
    return not contiguous or operands is not None or factors is not None


def shown_of_strides(difference: Difference) -> bool:
    """Whether strides, offsets, or what is read by them, differ only until results are made contiguous."""
    return difference.what in ("stride", "offset", "value") and agree(
        difference, lambda line: re.sub(r"(\.clone\(\)|(?=\.as_strided\())", r".contiguous()", line)
    )


def rounded_to(difference: Difference) -> bool:
    """Whether a sum is equal to a whole number on one side, where both are within rounding of it."""
    return agree(difference, lambda line: re.sub(r"\b([a-z]\d+) == (\d+)", r"((\1 - \2).abs() < 1e-9)", line))


def order_of_packs(difference: Difference) -> bool:
    """Whether hooks of saved tensors write another log only where there is a quotient."""
    return (
        difference.where.startswith("log")
        and "saved_tensors_hooks" in text(difference)
        and agree(difference, lambda line: re.sub(r"\b([a-z]\d+) / ([a-z]\d+)", r"\1 - \2", line))
    )


def tangents_of_masked_variance(difference: Difference) -> bool:
    """Whether tangents of a masked variance of 16 bits without a mask differ, where those of the variance agree."""
    return (
        difference.what == "value"
        and "float16" in text(difference)
        and agree(difference, lambda line: re.sub(r"masked\.(?=(var|std)\()|, mask=None", "", line))
    )


def integers_that_require_grad(difference: Difference) -> bool:
    """Whether integers require grad in PyTorch, having been compared or filled in place with what does, or copied into."""
    told = difference.what in ("requires_grad", "is_leaf", "grad_fn") and bool(difference.subject) is (
        difference.what == "is_leaf"
    )
    refused = refused_by(difference, "Tensors does not require grad")
    unsupported = refused_by(difference, "Autograd not support dtype", by="reference")
    return (told or refused or unsupported) and any(
        value.requires_grad and not (value.is_floating_point() or value.is_complex())
        for value in there(difference).values()
        if type(value).__name__ == "Tensor"
    )


def cast_first(difference: Difference) -> bool:
    """Whether PyTorch's gradient of a product in another dtype is rushlight's once its operand is cast before."""
    cast = re.compile(
        r"torch\.(cumprod|prod)\((\w+|torch\.autograd\.forward_ad\.make_dual\(.*\)), (.*?)(?:, )?dtype=(torch\.\w+)\)"
    )
    return (
        difference.where[0] in "gt"
        and of("cumprod|prod")(difference)
        and reference_otherwise(difference, lambda line: cast.sub(r"torch.\1(\2.to(\4), \3)", line))
    )


def in_a_wider_one(difference: Difference) -> bool:
    """Whether `out=` of another dtype than the result's has numbers of the precision of the result."""
    place = re.fullmatch(r"[oq]\d+", difference.where)
    names = executed(difference)[0] if place else {}
    result, given = next((names[name] for name in sorted(names) if name[0] == "r"), None), names.get(difference.where)
    if given is None or not hasattr(result, "dtype") or result.dtype == given.dtype:
        return False
    return nearly(TOLERANCES.get(str(result.dtype).removeprefix("torch."), 0.0), r"\w+", difference)


def of_small_out(difference: Difference) -> bool:
    """Whether a reduction overflows in the dtype of `out=` in PyTorch, which computes in it."""
    reductions = "mean|sum|nansum|nanmean|prod|cumsum|cumprod"
    return (
        difference.where[0] in "oq"
        and re.search(rf"\b({reductions})\(.*out=", text(difference)) is not None
        and beyond(reductions, difference)
    )


def of_the_input(difference: Difference) -> bool:
    """Whether a tangent has the dtype of an operand in PyTorch, and here that of the result that it is the tangent of."""
    names, _ = executed(difference)
    try:
        result = eval(difference.where.removesuffix("[1]") + "[0]", names)
    except Exception:
        return False
    dtypes = {str(tensor.dtype) for name, value in names.items() if name[0] in "ab" for tensor in tensors_in(value)}
    return difference.what == "dtype" and str(result.dtype) == difference.subject and difference.reference in dtypes


class Triangle(ast.NodeTransformer):
    """Calls of triangular_solve with the half of the matrix that they look at, and zeros elsewhere."""

    def visit_Call(self, call: ast.Call) -> ast.Call:
        if ast.unparse(call.func).endswith("triangular_solve"):
            words = dict(
                zip(
                    ("upper", "transpose", "unitriangular"),
                    call.args[1 + (ast.unparse(call.func) == "torch.triangular_solve") :],
                )
            )
            words.update({str(word.arg): word.value for word in call.keywords})
            said = {name: ast.unparse(value) == "True" for name, value in words.items()}
            upper, unit = said.get("upper", True), said.get("unitriangular", False)
            place = int(ast.unparse(call.func) == "torch.triangular_solve")  # as a method, it is the first argument
            half = (
                f"torch.{'triu' if upper else 'tril'}({ast.unparse(call.args[place])}, {(1 if upper else -1) * unit})"
            )
            call.args[place] = ast.parse(half, mode="eval").body
        self.generic_visit(call)
        return call


def other_triangle(difference: Difference) -> bool:
    """Whether PyTorch's tangent is rushlight's once the half of the matrix that is not looked at is 0."""
    return (
        difference.where[0] == "t"
        and of("triangular_solve")(difference)
        and reference_otherwise(difference, lambda text: ast.unparse(Triangle().visit(ast.parse(text))))
    )


OPERATORS: tuple[Declared, ...] = (
    Declared("whether tensors without elements require grad", without_elements),
    Declared(
        "what operators save, where",
        lambda d: (
            refused_by(d, "backward through the graph a second time")
            and re.search(r"r\d+ = torch\.", text(d)) is not None
            and "create_graph=True" in text(d)
        ),
    ),
    Declared("dtype of `huber_loss`", of(r"huber_loss", ("dtype",))),
    Declared(
        "`searchsorted` of a number beyond",
        lambda d: (
            of("searchsorted|bucketize")(d)
            and "uint8" in text(d)
            and some("searchsorted|bucketize", lambda x: (x < 0) | (x > 255), d)
        ),
    ),
    Declared("`out=` of a reduction in a dtype", in_a_wider_one),
    Declared(
        "gradients of `embedding(sparse=True)`",
        lambda d: (
            "sparse=True" in text(d)
            and "create_graph=True" in text(d)
            and "can't convert Sparse layout tensor" in getattr(d.reference, "message", "")
        ),
    ),
    Declared(
        "`masked_fill_`, `index_put_` of expanded tensors",
        lambda d: ").expand(" in text(d) and refused_by(d, "single memory location"),
    ),
    Declared(
        "forward mode of `fmax`, `fmin` and `clamp` where both are equal",
        at("fmax|fmin|clamp|clamp_min|clamp_max|clip", any_equal, "t"),
    ),
    Declared(
        "forward mode of `fmax`, `fmin` and `clamp` where both are equal",
        at("clamp|clamp_min|clamp_max|clip", lambda *operands: any_equal(*operands) | any_nan(*operands), "t"),
    ),
    Declared("gradient of `cumprod` in a dtype", cast_first),
    Declared("gradient of `hardsigmoid`", partial(nearly, 1e-7, "[Hh]ardsigmoid")),
    Declared(
        "gradient of `digamma` at its poles",
        at("digamma|psi|polygamma", lambda *operands: pole(*operands) | np.isposinf(operands[-1])),
    ),
    Declared("`special.*` functions without a derivative", lambda d: refused_by(d, "the derivative of special.")),
    Declared("`special.bessel_j0`", partial(nearly, 1e-6, r"special\.(bessel_[jy][01]|airy_ai)")),
    Declared("`i0`, `i1` of infinity", of_some("i0|i0e|i1|i1e|gelu", lambda x: np.abs(x) > 1e3)),
    Declared("`trapezoid` between infinities", of_some("trapezoid|cumulative_trapezoid|var_mean|std_mean", unbounded)),
    Declared(
        "`trapezoid` and `cumulative_trapezoid` of small integers",
        lambda d: (
            of("trapezoid|cumulative_trapezoid")(d)
            and (wrapped(d) or ("float16" in text(d) and beyond("trapezoid|cumulative_trapezoid", d)))
        ),
    ),
    Declared(
        "`searchsorted` and `bucketize` with NaN",
        lambda d: "nan" in text(d) and of("searchsorted|bucketize")(d),
    ),
    Declared("gradient of `as_strided_scatter`", covered),
    Declared("gradient of what is linear in pieces", zero_slope),
    Declared(
        "`resize_` and `out=` that need more memory",
        lambda d: refused_by(d, "Trying to resize storage that is not resizable"),
    ),
    Declared("`out=` of a reduction in a dtype", lambda d: refused_by(d, "can't be cast to the desired output type")),
    Declared(
        "`out=` of a reduction in a dtype",
        lambda d: (
            d.what == "value"
            and d.where[0] in "oq"
            and re.search(r"\b(mean|sum|nansum|nanmean|prod|cumsum|cumprod)\(.*dtype=torch\.\w+.*, out=", text(d))
            is not None
        ),
    ),
    Declared(
        "tangents that are zero",
        lambda d: (
            d.where[0] in "gt"
            and d.reference is None
            and isinstance(d.subject, Seen)
            and not np.any(d.subject.facts["value"])
        ),
    ),
    Declared("gradient of `kl_div` by targets of 0 and infinity", of_some("kl_div", lambda x: (x == 0) | np.isinf(x))),
    Declared(
        "second derivative and tangent of `atan2`",
        at("atan2|arctan2", lambda *operands: np.all([x == 0 for x in operands], axis=0), "gt"),
    ),
    Declared(
        "gradients of `atan2` of integers",
        lambda d: (
            d.where[0] in "gt"
            and of("atan2|arctan2")(d)
            and reference_otherwise(d, lambda line: re.sub(r"dtype=torch\.u?int\d+", "dtype=torch.float32", line))
        ),
    ),
    Declared("second derivatives of norms at 0", partial(beyond, "norm")),
    Declared("gradient of `ldexp` by its first", at("ldexp", beyond_float32, "gt")),
    Declared(
        "forward mode of `logcumsumexp`",
        lambda d: (
            d.where[0] in "gt"
            and (
                (d.where[0] == "t" and nearly(1e-2, "logcumsumexp", d))
                or beyond("logcumsumexp", d)
                or (of("logcumsumexp")(d) and some("logcumsumexp", lambda x: np.abs(x) > 1e3, d))
            )
        ),
    ),
    Declared("gradient of `logcumsumexp` at -inf", of_some("logcumsumexp", lambda x: np.real(x) == -np.inf)),
    Declared("forward mode of `cumprod` at infinity", of_some("cumprod", unbounded, "t")),
    Declared("running statistics where", lambda d: d.where.startswith("a") and refuses("instance_norm", d)),
    Declared("gradient of `polar` by negative", at("polar", lambda size, angle: ~(size > 0) | np.isinf(size), "gt")),
    Declared(
        "gradient of `polar` by negative",
        lambda d: (
            refused_by(d, "does not require grad and does not have") and re.search(r"\bpolar\(", text(d)) is not None
        ),
    ),
    Declared("gradient of `logit` at -0", at("logit", lambda x, *eps: (x == 0) & np.signbit(x))),
    Declared("comparisons and fills in place of integers", integers_that_require_grad),
    Declared("`median` of no integers", lambda d: "[]" in text(d) and of("median|nanmedian")(d)),
    Declared(
        "`ihfft2` and `ihfftn`",
        lambda d: (
            d.where[0] in "oq"
            and (
                of("ihfftn|ihfft2", ("shape",))(d)
                or (of("ihfftn|ihfft2")(d) and numbers(d) and (not np.any(d.reference) or np.ptp(d.reference) == 0))
            )
        ),
    ),
    Declared("dtypes that an operator does not compute with", without_kernel),
    Declared("dtypes that an operator does not compute with", mixed_of_nothing),
    Declared("`complex32`", complex32),
    Declared("strides of results", laid_out),
    Declared("strides of results", shown_of_strides),
    Declared("whether a sum is equal", rounded_to),
    Declared("the order in which saved-tensor hooks are given", order_of_packs),
    Declared("tangents of `masked.var`", tangents_of_masked_variance),
    Declared(
        "`softsign` of integers",
        lambda d: at("softsign", most_negative)(d) and re.search(r"dtype=torch\.u?int", text(d)) is not None,
    ),
    Declared("gradient of `softsign` at infinity", at("softsign", lambda x: ~np.isfinite(x), "gt")),
    Declared("`softsign` of integers; `gcd`", lambda d: of("gcd|lcm")(d) and opposite(d)),
    Declared("`special.zeta` of large exponents", of_some(r"special\.zeta", lambda x: x > 20)),
    Declared("gradient of `acosh` below 1", at("acosh|arccosh", lambda x: ~(x > 1))),
    Declared(
        "gradients of `binary_cross_entropy` by its target",
        lambda d: (
            d.where[0] in "gt"
            and of_some("binary_cross_entropy", lambda x: (x == 0) | (x == 1), tolerance=short_tolerance(d))(d)
        ),
    ),
    Declared(
        "results beside others that do require grad",
        lambda d: (
            of(r"triangular_solve|native_\w+_norm|var_mean|std_mean|frexp", ("requires_grad", "is_leaf"))(d)
            or (
                of(r"triangular_solve|native_\w+_norm|var_mean|std_mean|frexp")(d)
                and (d.reference is None or d.subject is None)
            )
        ),
    ),
    Declared(
        "dtypes of tangents",
        lambda d: (
            d.what == "dtype"
            and re.fullmatch(r"t\d+\[\d\]\[1\]", d.where) is not None
            and (
                re.search(r"_d = .*(\bdtype=|frexp\()", text(d)) is not None
                or of("var|std|var_mean|std_mean", ("dtype",))(d)
                or of_the_input(d)
                or (
                    of(OF_NUMBERS, ("dtype",))(d)
                    and d.reference in ("torch.float64", "torch.complex128")
                    and pointlike(OF_NUMBERS, d)
                )
                or re.search(r"tensor\([^\[\n]*dtype=torch\.b?float16", text(d)) is not None
            )
        ),
    ),
    Declared("gradients of `lgamma`", at("lgamma|mvlgamma|multigammaln", multivariate_pole)),
    Declared(
        "slopes of NaN",
        at(
            NAN_FOLLOWED,
            any_nan,
        ),
    ),
    Declared(
        "forward mode of `median`, `max` and `min`",
        of_some("median|nanmedian|max|min|amax|amin|aminmax", np.isnan, "t"),
    ),
    Declared(
        "forward mode of `logsumexp`, `var_mean` and losses",
        lambda d: d.where[0] == "t" and beyond(OF_NONE, d) and empty(OF_NONE, d),
    ),
    Declared("forward mode of `logsumexp`, `var_mean` and losses", of_some("mse_loss", unbounded, "t")),
    Declared(
        "gradient of `cosine_similarity` at 0",
        lambda d: "float16" in text(d) and of_some("cosine_similarity", lambda x: x == 0, "gt", 5e-2)(d),
    ),
    Declared(
        "gradient of `cosine_similarity` at 0",
        lambda d: (
            d.where[0] == "g"
            and "create_graph=True" in text(d)
            and of("cosine_similarity")(d)
            and some("cosine_similarity", lambda x: np.abs(x) < 1e-8, d)
        ),
    ),
    Declared(
        "the operand of three dimensions of `a @ b`",
        lambda d: (
            refused_by(d, "which BmmBackward0 saved as argument") and re.search(r" @ |matmul\(", text(d)) is not None
        ),
    ),
    Declared(
        "`pow` at 0",
        lambda d: beyond("pow|float_power", d) and at("pow|float_power", to_nothing)(d),
    ),
    Declared(
        "second derivatives of `binary_cross_entropy`",
        at("binary_cross_entropy", lambda x, *others: (x == 0) | (x == 1), "g"),
    ),
    Declared("second derivatives of `angle`", at("angle", lambda x: x == 0, "g")),
    Declared("second derivatives of `sinc` near 0", at("sinc", lambda x: np.abs(x) < 1e-4, "g")),
    Declared("second derivatives of `special.i1` and `i1e`", at("i0|i0e|i1|i1e", lambda x: np.abs(x) < 1e-4, "g")),
    Declared("second derivatives of `special.erfcx` far from 0", at("erfcx", lambda x: np.abs(x) > 1e3, "gt")),
    Declared("forward mode of `triangular_solve`", other_triangle),
    Declared("gradient of `nanmean` of nothing but NaN", at("nanmean", np.isnan, "gt")),
    Declared("gradient of `nanmean` of nothing but NaN", at("log_ndtr", np.isnan, "g")),
    Declared("`out=` of a reduction in a dtype", of_small_out),
    Declared("slopes of `special.log_ndtr`", of_some("log_ndtr", np.isinf, "gt")),
    Declared("`matrix_exp` in 16 bits", lambda d: "float16" in text(d) and beyond("matrix_exp", d)),
    Declared(
        "gradient of `ldexp` by its first",
        lambda d: "float16" in text(d) and d.where[0] in "gt" and beyond("ldexp", d),
    ),
    Declared("gradient of `ldexp` by its first", of_some("ldexp", beyond_float32)),
    Declared(
        "dtypes that an operator does not compute with",
        lambda d: (
            refused_by(d, "complex dtype, got torch.bool")
            and re.search(r"tensordot\(|inner\(", statement(d)) is not None
        ),
    ),
    Declared(
        "second derivatives in float16",
        lambda d: (
            d.where[0] == "g" and "=torch.float16" in text(d) and "create_graph=True" in text(d) and beyond(r"\w+", d)
        ),
    ),
    Declared("second derivatives of `mish`", of_some("mish", lambda x: np.abs(x) > 1e3, "g")),
    Declared(
        "tangent of a number to a power, of which one is complex",
        lambda d: d.where[0] == "t" and of("pow|float_power")(d) and real_parts_agree(d),
    ),
    Declared(
        "`cosine_similarity` of integers",
        lambda d: nearly(1e-6, "cosine_similarity", d) and re.search(r"dtype=torch\.(u?int|bool)", text(d)) is not None,
    ),
    Declared(
        "derivatives of `var` and `std` of a number without dimensions",
        lambda d: turned_zero("var|std", lambda x: True, d) and given("var|std", d)[0].ndim == 0,
    ),
    Declared(
        "derivatives of `var` and `std` of a number without dimensions",
        lambda d: (
            refused_by(d, "backward through the graph a second time")
            and any(value.ndim == 0 for value in given("var|std", d)[:1])
        ),
    ),
    Declared("gradients of `prod` of infinities", beside_infinities),
    Declared(
        "tangents of products beside infinities",
        of_some("matmul|mm|bmm|addmm|mv|inner|tensordot|linear", unbounded, "t"),
    ),
    Declared("in-place operations whose operands share", made_larger_beneath),
    Declared("slopes of NaN", at("i0|i1", lambda x: ~(np.abs(x) < 700), "gt")),
    Declared(
        "gradient of `ldexp` by its first",
        lambda d: turned_zero("ldexp", beyond_float32, d) and empty("ldexp", d),
    ),
    Declared("gradients of powers of integers", partial(nearly, 1e-6, "pow|float_power|xlogy|xlog1py")),
    Declared(
        "`var` and `std` of numbers whose squares",
        lambda d: (
            d.where[0] in "gt"
            and of("var_mean|std_mean")(d)
            and some("var_mean|std_mean", lambda x: np.abs(x) > 1e18, d)
        ),
    ),
    Declared(
        "`var` and `std` of numbers whose squares",
        partial(infinite, "var|std|var_mean|std_mean|norm|vector_norm|normalize|cosine_similarity"),
    ),
    Declared(
        "division of integers by zero in place",
        lambda d: (
            d.what == "value"
            and re.search(r"\.(remainder|fmod|floor_divide|div)_\(", text(d)) is not None
            and isinstance(d.reference, np.ndarray)
            and d.reference.dtype.kind in "iu"
            and some("remainder|fmod|floor_divide|div", lambda x: x == 0, d)
        ),
    ),
)
