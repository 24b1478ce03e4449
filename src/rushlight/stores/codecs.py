"""How arrays are made smaller.  Each codec turns a flat array into arrays and a note, or None where it does not help."""

from __future__ import annotations

import zlib
from typing import Any

import ml_dtypes
import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex, real_of
from rushlight.kernels import entropy

BLOCK = 256  # elements that share a scale
CHUNK = 1 << 18  # elements worked on at a time, so that temporaries stay in the cache
SAMPLE = 1 << 12  # elements that are tried before a lossless form is chosen
FEW_ZEROS = 0.1  # the share of zeros under which they are not left out
WORTH = 0.95  # of its size a plane of bytes must come down to
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


def quantized(array: Array, generator: object = None) -> Coded:
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
    with np.errstate(over="ignore"):
        np.nextafter(scale, 0, out=scale, where=np.isinf(scale * 127))  # the largest number comes back as one
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


def words_of(array: Array) -> Array:
    """Its bits as unsigned numbers, one for each real number."""
    return array.view(f"u{real_parts(array[:0]).itemsize}")


def few(words: Array, count: int) -> Array:
    """Some of the words, evenly spread."""
    return words[:: max(1, words.size // count)]


def smaller(words: Array) -> tuple[list[Any], Any]:
    """Words by zlib or by codes for some of their bytes, whichever helps more; as they are, with no note, if neither does."""
    if not words.size:
        return [words], None
    need = bits_needed(words)
    if repeats(words, need):
        return [np.frombuffer(zlib.compress(in_planes(words).data, 1), np.uint8)], ("zipped",)
    mask = sum(1 << k for k, bits in enumerate(need) if bits < 8 * WORTH)
    if not mask:
        return [words], None
    return entropy.coded(words.view(np.uint8), words.itemsize, mask), ("planes", mask)


def in_planes(words: Array) -> Array:
    """All first bytes, then all second ones..."""
    return np.ascontiguousarray(words).view(np.uint8).reshape(-1, words.itemsize).T.copy()


def bits_needed(words: Array) -> list[float]:
    """Of each byte of a word, how many bits codes by frequency take of it, with their tables."""
    planes = in_planes(few(words, SAMPLE))
    tables = 8 * entropy.OVERHEAD / min(words.size, entropy.CHUNK)
    shares = [np.bincount(plane, minlength=256) / plane.size for plane in planes]
    return [float(-(share * np.log2(np.maximum(share, 1e-9))).sum()) + tables for share in shares]


def repeats(words: Array, need: list[float]) -> bool:
    """Whether zlib, which finds what occurs twice, takes fewer bits than codes by frequency, by far."""
    some = words[:SAMPLE]
    inorder = np.sort(some)  # a quarter of the time of `unique`
    if np.count_nonzero(inorder[1:] != inorder[:-1]) > some.size // 2:
        return False
    return len(zlib.compress(in_planes(some).data, 1)) < 0.5 * some.size * sum(min(bits, 8.0) for bits in need) / 8


def spread(parts: list[Any], note: Any, words: Array) -> None:
    """The reverse of `smaller`, into `words`."""
    if note is None:
        words[:] = parts[0]
    elif note[0] == "zipped":
        planes = np.frombuffer(zlib.decompress(parts[0]), np.uint8).reshape(words.itemsize, -1)
        words.view(np.uint8).reshape(-1, words.itemsize)[...] = planes.T
    else:
        entropy.decoded(parts, words.itemsize, note[1], words.view(np.uint8))


def lossless(array: Array) -> Coded:
    """Exactly, without the zeros where there are many; None where nothing helps."""
    words = words_of(array)
    some = few(words, SAMPLE)
    if np.count_nonzero(some) <= (1 - FEW_ZEROS) * some.size:
        bits, kept = entropy.squeezed(words)
        parts, note = smaller(kept)
        return [bits, *parts], ("lossless", kept.size, note)
    parts, note = smaller(words)
    return None if note is None else (parts, ("lossless", None, note))


def lossless_back(parts: list[Any], note: tuple[Any, ...], count: int, dtype: np.dtype[Any]) -> Array:
    """The reverse of `lossless`."""
    _, kept, inner = note
    out = np.empty(count, dtype)
    words = words_of(out)
    if kept is None:
        spread(parts, inner, words)
    else:
        there = np.empty(kept, words.dtype)
        spread(parts[1:], inner, there)
        entropy.spread([parts[0], there], words)
    return out


BACK = {
    "bits": bits_back,
    "narrowed": narrowed_back,
    "halved": halved_back,
    "quantized": quantized_back,
    "lossless": lossless_back,
}
