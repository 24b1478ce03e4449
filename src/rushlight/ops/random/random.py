"""Random numbers: tensors of given size, after another tensor, and draws whose parameters are tensors."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import dtypes, events
from rushlight.basics.dtype_words import in_c, older
from rushlight.basics.eights import EIGHTS, refuse
from rushlight.basics.state import special
from rushlight.dispatch import randomness
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.formats import empty_in_format, memory_format
from rushlight.dispatch.options import (
    META,
    blank,
    check_count,
    check_options,
    dtype_with,
    filled,
    made,
    numpy_dtype,
    place_of,
    size_of,
)
from rushlight.dispatch.registry import function
from rushlight.generator import Generator, default_generator
from rushlight.kernels.dispatch import bits, rounded
from rushlight.ops.random.exact import held
from rushlight.tensor import Tensor, layout

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.basics.devices import device
    from rushlight.basics.dtypes import dtype
    from rushlight.kernels.twister import Twister

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
HALVES = (dtypes.float16.numpy, dtypes.bfloat16.numpy)
LAST = 16  # normal numbers that are made together
AT_ONCE = 1 << 14  # of 16 bits that are drawn in 32


def source(generator: Generator | None) -> Twister:
    """NumPy's generator behind `generator` or, of None, the default one.  Raises RuntimeError where vmap refuses draws."""
    if special.count:
        randomness.check()
    if generator is None:
        return default_generator.numpy
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    randomness.note(generator)
    return generator.numpy


def uniform_array(shape: tuple[int, ...], dtype: Any, generator: Any, low: float = 0.0, high: float = 1.0) -> Array:
    """Numbers evenly from [low, high), drawn in `dtype`; those of 16 bits in float32."""
    if dtype in (F32, F64) and low == 0 and high == 1:
        return source(generator).random(shape, dtype)
    if dtypes.is_complex(dtype):
        return pairs(uniform_array((*shape, 2), dtypes.of(dtype).to_real().numpy, generator, low, high), dtype)
    if dtype in EIGHTS:
        refuse("uniform", dtype)
    if dtype not in (F32, F64, *HALVES):
        raise NotImplementedError(
            f"\"uniform\" not implemented for '{older(dtypes.of(dtype))}': it needs a floating-point dtype"
        )
    numbers = np.empty(shape, F32 if dtype in HALVES else dtype)
    source(generator).evenly(low, high, numbers)
    if dtype in HALVES:
        numbers, bounds = rounded(numbers, dtype), np.array([low, high], dtype)
        # As of wider numbers, what is rounded to the end of the range is its start.
        np.copyto(bits(numbers), bits(bounds)[0], where=numbers == bounds[1])
    return numbers


def normal_array(shape: tuple[int, ...], dtype: Any, generator: Any) -> Array:
    """Numbers of the standard normal distribution, drawn in `dtype`; complex ones have variance 1 too."""
    rng = source(generator)
    if dtype in (F32, F64):
        return rng.standard_normal(shape, dtype=dtype)
    if dtype in HALVES:
        numbers = np.empty(shape, dtype)
        put_halves(numbers, 0.0, 1.0, rng)
        return numbers
    if dtypes.is_complex_half(dtype):
        return normal_array(shape, np.dtype(np.complex64), generator).astype(dtype)
    if dtype.kind == "c":
        both = rng.standard_normal((*shape, 2), dtype=F32 if dtype.itemsize == 8 else F64)
        both *= both.dtype.type(0.5**0.5)
        return pairs(both, dtype)
    if dtype in EIGHTS:
        refuse("normal", dtype)
    raise NotImplementedError(
        f"\"normal\" not implemented for '{older(dtypes.of(dtype))}': it needs a floating-point dtype"
    )


def put_halves(x: Array, mean: float, std: float, rng: Twister) -> None:
    """Normal numbers of 16 bits into memory without gaps: of 32, 16 at a time, the last 16 anew where some are left; rounded once."""
    if x.size < LAST:
        x[...] = (rng.two_by_two(x.size) * std + mean).reshape(x.shape)
        return
    flat = x.reshape(-1)  # a view: without gaps
    whole = flat.size // LAST * LAST
    parts = [flat[start : min(start + AT_ONCE, whole)] for start in range(0, whole, AT_ONCE)]
    for part in (*parts, *([flat[-LAST:]] if whole < flat.size else [])):
        numbers = rng.standard_normal(part.size, F32)
        if (mean, std) != (0, 1):
            numbers = (numbers * np.float64(np.float32(std)) + np.float64(np.float32(mean))).astype(F32)
        rounded(numbers, x.dtype, part)


def pairs(both: Array, dtype: Any) -> Array:
    """Pairs in the last dimension as complex numbers."""
    return np.asarray(both.view(dtype)).reshape(both.shape[:-1])


@functools.cache
def extremes(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest number of a dtype of integers or truths."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def integer_array(
    low: int, high: int, shape: tuple[int, ...], dtype: np.dtype[Any], generator: Generator | None
) -> Any:
    """Integers evenly from [low, high)."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    rng = source(generator)
    if dtype.kind in "iub":
        least, most = extremes(dtype)
        if low < least or high - 1 > most:
            bound = "from" if low < least else "to - 1"
            raise RuntimeError(
                f"{bound} is out of bounds for {in_c(dtypes.of(dtype))}: randint got low={low} and high={high}"
            )
    if dtype.kind in "iu":
        return rng.integers(low, high, shape, dtype)
    if dtype.kind in "fV" and dtype not in EIGHTS:
        low, high = held("randint", low, high, dtype)
    if high > 1 << 63:
        return rng.integers(low, high, shape, np.uint64).astype(dtype)
    return rng.integers(low, high, shape, np.int64).astype(dtype)


def by_memory(x: Array) -> Array:
    """An array with its dimensions in the order of its memory, in which numbers are drawn."""
    if x.flags.c_contiguous or x.__class__ is not np.ndarray:
        return x
    return x.transpose(sorted(range(x.ndim), key=lambda dim: -x.strides[dim]))


def scattered(shape: tuple[int, ...], dtype: Any, generator: Generator | None) -> Array:
    """Normal numbers that are drawn two by two; complex ones have variance 1 too."""
    if dtypes.is_complex(dtype):
        both = scattered((*shape, 2), F64, generator)
        both *= 0.5**0.5
        return both.view(np.complex128).reshape(shape).astype(dtype)
    numbers, rng = np.empty(shape, dtype), source(generator)
    rng.fill(numbers, rng.two_by_two)
    return numbers


def _fresh(name: str, draw: Callable[..., Any], args: tuple[Any, ...], size: Any, generator: Generator | None,
           out: Any, dtype: dtype | None, device: device | str | int | None, layout: layout | None,
           requires_grad: bool, pin_memory: bool) -> Tensor:  # fmt: skip
    where = check_options(name, device, layout, pin_memory)
    kind = dtype_with(name, dtype, out)
    size = size_of(name, args, size)
    check_count(size)
    if where is META:
        return made(blank(np.empty, size, kind, where), requires_grad)
    if special.observing:
        draw = partial(events.observed, events.DRAW, name, (), (), draw)
    if randomness.innermost() is not None:
        t = randomness.fresh(lambda shape: draw(shape, kind, generator), size).requires_grad_(requires_grad)
        return filled(name, out, t)
    return filled(name, out, made(draw(size, kind, generator), requires_grad))


@function()
def rand(*args: Sequence[int] | int, size: int | Sequence[int] | None = None, generator: Generator | None = None,
         out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None,
         device: device | str | int | None = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Numbers evenly from [0, 1), in the size given as ints or one sequence."""
    return _fresh("rand", uniform_array, args, size, generator, out, dtype, device, layout, requires_grad, pin_memory)


@function()
def randn(*args: int | Sequence[int], size: int | Sequence[int] | None = None, generator: Generator | None = None,
          out: Tensor | None = None, dtype: dtype | None = None, layout: layout | None = None,
          device: device | str | int | None = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Numbers of the standard normal distribution, in the size given as ints or one sequence."""
    return _fresh("randn", normal_array, args, size, generator, out, dtype, device, layout, requires_grad, pin_memory)


def bounds(name: str, args: tuple[Any, ...], low: Any, high: Any, size: Any, sized: bool) -> tuple[Any, Any, Any]:
    """low, high and size of `randint`'s overloads: (high, size) and (low, high, size)."""
    values = list(args)
    if sized and size is None and values and isinstance(values[-1], (tuple, list)):
        size = values.pop()
    if high is None and values:
        high = values.pop()
    if low is None and values:
        low = values.pop()
    if values or high is None or (sized and size is None):
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected (high, "
                        "size) or (low, high, size)")  # fmt: skip
    return operator.index(0 if low is None else low), operator.index(high), size


@function()
def randint(*args: object, low: object = None, high: object = None, size: int | Sequence[int] | None = None,
            generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None,
            layout: layout | None = None, device: device | str | int | None = None, requires_grad: bool = False,
            pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Integers evenly from [low, high), int64 unless dtype is given: randint(high, size), randint(low, high, size)."""
    where = check_options("randint", device, layout, pin_memory)
    size = None if size is None else size_of("randint", (), size)
    lo, hi, shape = bounds("randint", args, low, high, size, True)
    kind = dtype_with("randint", dtype, out, dtypes.int64)
    if dtypes.is_complex(kind):
        raise RuntimeError(
            f"randint: check_random_bounds handles only integral, floating-point and boolean types, got {dtypes.of(kind)}"
        )
    size = size_of("randint", (shape,))
    if where is META:
        return made(blank(np.empty, size, kind, where), requires_grad)
    if randomness.innermost() is not None:
        return filled("randint", out, randomness.fresh(lambda s: integer_array(lo, hi, s, kind, generator), size))
    return filled("randint", out, made(integer_array(lo, hi, size, kind, generator), requires_grad))


@function()
def randperm(n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None,
             layout: layout | None = None, device: device | str | int | None = None, requires_grad: bool = False,
             pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A random order of the integers from 0 to n - 1, int64 unless dtype is given."""
    where = check_options("randperm", device, layout, pin_memory)
    n = as_int(n, "randperm", "n")
    if n < 0:
        raise RuntimeError(f"randperm: n must be non-negative, got {n}")
    check_count((n,))
    kind = dtype_with("randperm", dtype, out, dtypes.int64)
    check_permuted(n, kind)
    if where is META:
        return made(blank(np.empty, (n,), kind, where), requires_grad)
    if randomness.innermost() is not None:
        return filled("randperm", out, randomness.fresh(lambda s: orders(s, kind, generator), (n,)))
    return filled(
        "randperm", out, made(source(generator).permutation(n).astype(kind, copy=False), requires_grad, where)
    )


def check_permuted(n: int, dtype: np.dtype[Any]) -> None:
    """Raise RuntimeError unless a dtype holds the numbers below `n`."""
    if dtype.kind == "b":
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'")
    if dtype.kind in "iu" and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"randperm: value cannot be converted to type {dtype}_t without overflow: {n - 1}")
    if dtype.kind == "f" and n > (1 << np.finfo(dtype).nmant + 1) + 1:
        raise RuntimeError(f"n cannot be greater than {(1 << np.finfo(dtype).nmant + 1) + 1} for {older(dtype)} type.")


def orders(shape: tuple[int, ...], kind: Any, generator: Any) -> Any:
    """Random orders of the numbers below the last of the sizes, each drawn apart."""
    found, rng = np.empty(shape, kind), source(generator)
    for place in np.ndindex(shape[:-1]):
        found[place] = rng.permutation(shape[-1])
    return found


def _like(name: str, draw: Callable[..., Any], input: Tensor, dtype: dtype | None, device: device | str | int | None,
          layout: layout | None, requires_grad: bool, memory_format: memory_format | None, generator: Generator | None,
          pin_memory: bool) -> Tensor:  # fmt: skip
    kind = input._held.dtype if dtype is None else numpy_dtype(name, dtype)
    if place_of(name, input, device, layout, pin_memory) is META:
        return made(blank(np.empty, input._held.shape, kind, META), requires_grad)
    place = None if randomness.innermost() is not None else empty_in_format(input._array, kind, memory_format)
    if place is not None and draw is normal_array and not place.flags.c_contiguous:
        draw = scattered
    if special.observing:
        draw = partial(events.observed, events.DRAW, name, (), (), draw)
    if place is None:
        t = randomness.fresh(lambda shape: draw(shape, kind, generator), input._array.shape)
        return t.requires_grad_(requires_grad)
    if place.flags.c_contiguous:
        return made(draw(place.shape, kind, generator), requires_grad)
    ordered = by_memory(place)
    ordered[...] = draw(ordered.shape, kind, generator)
    return made(place, requires_grad)


@function()
def rand_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None,
              device: device | str | int | None = None, requires_grad: bool = False,
              memory_format: memory_format | None = None, generator: Generator | None = None,
              pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Numbers evenly from [0, 1) in the shape of `input`."""
    return _like(
        "rand_like", uniform_array, input, dtype, device, layout, requires_grad, memory_format, generator, pin_memory
    )


@function()
def randn_like(input: Tensor, *, dtype: dtype | None = None, layout: layout | None = None,
               device: device | str | int | None = None, requires_grad: bool = False,
               memory_format: memory_format | None = None, generator: Generator | None = None,
               pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Numbers of the standard normal distribution in the shape of `input`."""
    return _like(
        "randn_like", normal_array, input, dtype, device, layout, requires_grad, memory_format, generator, pin_memory
    )


@function()
def randint_like(input: Tensor, *args: object, low: object = None, high: object = None, dtype: dtype | None = None,
                 layout: layout | None = None, device: device | str | int | None = None, requires_grad: bool = False,
                 memory_format: memory_format | None = None, generator: Generator | None = None,
                 pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Integers evenly from [low, high) in the shape and dtype of `input`: randint_like(input, low=0, high)."""
    lo, hi, _ = bounds("randint_like", args, low, high, None, False)

    def draw(shape: Any, kind: Any, rng: Any) -> Any:
        return integer_array(lo, hi, shape, kind, rng)

    return _like(
        "randint_like", draw, input, dtype, device, layout, requires_grad, memory_format, generator, pin_memory
    )


@function()
def manual_seed(seed: int) -> Generator:
    """Seed the default generator, which is returned."""
    return default_generator.manual_seed(int(seed))


@function()
def seed() -> int:
    """Seed the default generator from the operating system's entropy, and return that seed."""
    return default_generator.seed()


@function()
def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


@function()
def get_rng_state() -> Tensor:
    """The state of the default generator as a tensor of bytes."""
    return default_generator.get_state()


@function()
def set_rng_state(new_state: Tensor) -> None:
    """Restore a state of the default generator.  new_state: what `get_rng_state` returned."""
    default_generator.set_state(new_state)
