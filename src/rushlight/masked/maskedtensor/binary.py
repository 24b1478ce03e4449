"""Operators of two masked operands, by their names: what `torch.ops.aten` calls them."""

from rushlight.ops.python.aten import packet

__all__ = ["BINARY_NAMES", "INPLACE_BINARY_NAMES", "NATIVE_BINARY_FNS", "NATIVE_INPLACE_BINARY_FNS"]

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp "
    "logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum "
    "minimum fmax fmin not_equal"
).split()
_OF_NO_PLACE = ("logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin")
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _OF_NO_PLACE]
NATIVE_BINARY_FNS = [packet(name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [packet(name) for name in INPLACE_BINARY_NAMES]
