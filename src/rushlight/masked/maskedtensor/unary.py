"""Operators of one masked operand, by their names: what `torch.ops.aten` calls them."""

from rushlight.ops.python.aten import packet

__all__ = ["INPLACE_UNARY_NAMES", "NATIVE_INPLACE_UNARY_FNS", "NATIVE_UNARY_FNS", "UNARY_NAMES"]

UNARY_NAMES = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip "
    "conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan "
    "nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc"
).split()
_OF_NO_PLACE = ("angle", "isnan", "positive", "signbit")  # their results are not of the operand's dtype, or the operand
INPLACE_UNARY_NAMES = [f"{name}_" for name in UNARY_NAMES if name not in _OF_NO_PLACE]
NATIVE_UNARY_FNS = [packet(name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [packet(name) for name in INPLACE_UNARY_NAMES]
