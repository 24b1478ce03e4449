"""How arrays are made smaller.  Each codec turns a flat array into arrays and a note, or None where it does not help."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from rushlight.basics.dtypes import is_complex, real_of

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array

BLOCK = 256  # elements that share a scale
CHUNK = 1 << 18  # elements worked on at a time, so that temporaries stay in the cache
SAMPLE = 1 << 14  # elements that are tried before a lossless form is chosen
FEW_ZEROS = 0.1  # the share of zeros under which they are not left out
TRIED = 1 << 13  # bytes of a plane on which ways of zlib are compared
WORTH = 0.9  # of its size a plane of bytes must come down to
Coded = tuple[list[Any], Any] | None


def chunks(count: int) -> Any:
    """Slices of CHUNK elements."""
    return (slice(i, min(i + CHUNK, count)) for i in range(0, count, CHUNK))


def real_parts(array: Array) -> Array:
    """Complex numbers as twice as many real ones."""
    return array.view(real_of(array[:0]).dtype) if is_complex(array.dtype) else array


# bool and integers: exact -------------------------------------------------------------------------------


def bits(array: Array) -> Coded:
    """A bool array as bits."""
    return [np.packbits(array)], ("bits",)


def bits_back(parts: list[Any], note: tuple[str, ...], count: int, dtype: np.dtype[Any]) -> Array:
    """The reverse of `bits`."""
    return np.unpackbits(parts[0], count=count).view(np.bool_)


def narrowed(array: Array) -> Coded:
    """Integers in the smallest type that holds all of them."""
    low, high = int(array.min()), int(array.max())
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32):
        info = np.iinfo(kind)
        if info.min <= low and high <= info.max and info.dtype.itemsize < array.itemsize:
            return [array.astype(kind)], ("narrowed",)
    return None


def narrowed_back(parts: list[Any], note: tuple[str, ...], count: int, dtype: np.dtype[Any]) -> Any:
    """The reverse of `narrowed`."""
    return parts[0].astype(dtype)


# bfloat16 -----------------------------------------------------------------------------------------------


def halved(array: Array) -> Coded:
    """Floating-point numbers of 4 or 8 bytes rounded to bfloat16, to nearest even; None if a finite one would overflow."""
    real = real_parts(array)
    if real.dtype.itemsize <= 2:
        return None
    out = np.empty(real.size, np.uint16)
    for at in chunks(real.size):
        x = real[at]
        with np.errstate(over="ignore"):
            y = x.astype(np.float32, copy=False).astype(ml_dtypes.bfloat16).view(np.uint16)
        if ((y & 0x7FFF) == 0x7F80).any() and not np.array_equal((y & 0x7FFF) == 0x7F80, np.isinf(x)):
            return None
        out[at] = y
    return [out], ("halved",)


def halved_back(parts: list[Any], note: tuple[str, ...], count: int, dtype: np.dtype[Any]) -> Array:
    """The reverse of `halved`."""
    out = np.empty(count, dtype)
    real = real_parts(out)
    for at in chunks(real.size):
        real[at] = parts[0][at].view(ml_dtypes.bfloat16)
    return out


# 8 bits with a scale for each block ----------------------------------------------------------------------


def quantized(array: Array, generator: Any = None) -> Coded:
    """Floating-point numbers as 8-bit multiples of a scale for each BLOCK; None where one is not finite."""
    real = real_parts(array)
    wide = np.float64 if real.dtype == np.float64 else np.float32
    out, scales = np.empty(real.size, np.int8), np.empty(-(-real.size // BLOCK), wide)
    for at in chunks(real.size):
        x = real[at].astype(wide)
        full = x.size // BLOCK * BLOCK
        for part, first in ((x[:full], at.start), (x[full:], at.start + full)):
            if part.size and not quantize_blocks(
                part, out[first : first + part.size], scales[first // BLOCK :], generator
            ):
                return None
    return [out, scales.view(f"u{scales.itemsize}")], ("quantized",)  # as integers, which every store keeps exactly


def quantize_blocks(x: Array, out: Array, scales: Array, generator: Any) -> bool:
    """Quantize whole blocks, or one that is not full, overwriting `x`; False where a number is not finite."""
    rows = x.reshape(-1, BLOCK if x.size % BLOCK == 0 else x.size)
    scale = np.maximum(rows.max(1), -rows.min(1))
    if not np.isfinite(scale).all():
        return False
    scale /= 127
    scales[: len(scale)] = scale
    scale[scale == 0] = 1
    rows /= scale[:, None]
    if generator is not None:
        rows += generator.random(rows.shape, dtype=rows.dtype)
        np.floor(rows, out=rows)
    else:
        np.rint(rows, out=rows)
    np.clip(rows, -127, 127, out=rows)
    out.reshape(rows.shape)[...] = rows
    return True


def quantized_back(parts: list[Any], note: tuple[str, ...], count: int, dtype: np.dtype[Any]) -> Array:
    """The reverse of `quantized`."""
    numbers, scales = parts[0], parts[1].view(f"f{parts[1].itemsize}")
    out = np.empty(count, dtype)
    real = real_parts(out)
    for at in chunks(real.size):
        x = numbers[at].astype(scales.dtype)
        full = x.size // BLOCK * BLOCK
        first = at.start // BLOCK
        x[:full].reshape(-1, BLOCK)[...] *= scales[first : first + full // BLOCK, None]
        if full < x.size:
            x[full:] *= scales[first + full // BLOCK]
        real[at] = x
    return out


# Lossless -------------------------------------------------------------------------------------------------


def sparse(array: Array) -> Coded:
    """Numbers without the zeros, and a bit for each; None where there are few zeros."""
    words = array.view(np.dtype(f"u{real_parts(array).itemsize}"))
    step = max(1, words.size // SAMPLE)
    if np.count_nonzero(words[::step]) > (1 - FEW_ZEROS) * words[::step].size:
        return None
    there = words != 0
    return [np.packbits(there), words[there]], ("sparse",)


def sparse_back(parts: list[Any], note: tuple[str, ...], count: int, dtype: np.dtype[Any]) -> Array:
    """The reverse of `sparse`."""
    out = np.zeros(count, dtype)
    words = out.view(parts[1].dtype)
    words[np.unpackbits(parts[0], count=words.size).view(np.bool_)] = parts[1]
    return out


def zipped(data: Any, strategy: int) -> bytes:
    """`data` by zlib at its fastest."""
    way = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
    return way.compress(data) + way.flush()


def best_way(plane: Array) -> int | None:
    """The strategy of zlib by which a plane of bytes becomes smallest; None where that is not worth it.

    Bytes of exponents repeat without order: codes by frequency alone take half the time that looking for repetitions takes, and a fifth
    fewer bytes.
    """
    sample = plane[:TRIED].data
    sizes = {way: len(zipped(sample, way)) for way in (zlib.Z_HUFFMAN_ONLY, zlib.Z_DEFAULT_STRATEGY)}
    best = min(sizes, key=sizes.__getitem__)
    return best if sizes[best] < WORTH * len(sample) else None


def deflated(array: Array) -> Coded:
    """Planes of bytes (all first bytes, all second ones...), those by zlib that it makes smaller; None if it does none."""
    width = real_parts(array).itemsize
    planes = array.view(np.uint8).reshape(-1, width)
    kept: list[Any] = []
    packed: list[bool] = []
    for k in range(width):
        plane = np.ascontiguousarray(planes[:, k])
        way = best_way(plane)
        kept.append(plane if way is None else np.frombuffer(zipped(plane.data, way), np.uint8))
        packed.append(way is not None)
    return (kept, ("deflated", tuple(packed))) if any(packed) else None


def deflated_back(parts: list[Any], note: tuple[Any, ...], count: int, dtype: np.dtype[Any]) -> Array:
    """The reverse of `deflated`."""
    out = np.empty(count, dtype)
    planes = out.view(np.uint8).reshape(-1, len(parts))
    for k, (part, packed) in enumerate(zip(parts, note[1], strict=True)):
        planes[:, k] = np.frombuffer(zlib.decompress(part), np.uint8) if packed else part
    return out


BACK = {"bits": bits_back, "narrowed": narrowed_back, "halved": halved_back, "quantized": quantized_back,
        "sparse": sparse_back, "deflated": deflated_back}  # fmt: skip
