"""PyTorch's random numbers: those of the Mersenne Twister, by the formulas by which PyTorch's CPU generator makes them of its words.

Source of the words: Matsumoto and Nishimura, "Mersenne Twister" (1998), which NumPy has. A number in [0, 1) is the
lowest 24 bits of one word, or the lowest 53 of two for float64. Normal numbers are those of Box and Muller (1958): of
16 at a time where there are as many, else of two, of which the second waits for the next call.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from rushlight.kernels.coins import coins
from rushlight.kernels.dispatch import Array, native
from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports, exports_of_bytes
from rushlight.kernels.reference import draws

exports(
    # twister.cpp: state, output, elements; the first number, how far they reach and where they end
    evenly="uanddd",
)
exports_of_bytes(
    # twister.cpp: state, where words or exponential numbers go, how many
    words="uan",
    exponentials="uan",
    # numbers, how far behind each but the last that lies which it changes places with, how many
    shuffle="aan",
    # a state, how many words it goes on by
    skip="un",
    # numbers that become normal ones, how many times 16
    box_muller="an",
    # draws.cpp: state, a normal number that waits, parameters in whose place numbers go (normal ones have none), how many
    normals="uaan",
    log_gammas="uaan",
    poissons="uaan",
    # state, trials, chances, how many
    binomials="uaan",
)

WORDS = 624  # of the state
STATE_BYTES = 5056  # of PyTorch's generator, which holds them in 64 bits each
AT_ONCE = 1 << 12  # words drawn at a time
LAST = 16  # normal numbers of one block
WIDE = 1 << 28  # integers of as large a range are made of words of 64 bits
STATE = ctypes.c_uint32 * (WORDS + 1)  # of NumPy: the words, and the place of the next one
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
# 64-bit words of a state: the seed; how many words are left, and that there are any, in the upper half; which is
# next; the words; and of normal numbers among others the one that waits and whether one does.
SEEDED = 1 << 32
WAITING, WAITS = 4 + WORDS, 6 + WORDS


def shuffle(numbers: Array, drawn: Array) -> None:
    """Change each but the last of (N) int64 with the one that lies `drawn` (N - 1) int64 behind it, one after the other."""
    table = loader.of_bytes()
    if table is not None:
        table.shuffle(numbers, drawn, numbers.size)
        return
    order = numbers.tolist()
    for i, z in enumerate(drawn.tolist()):
        order[i], order[i + z] = order[i + z], order[i]
    numbers[...] = order


def resumed(state: Array) -> Twister:
    """A generator that goes on from a state, (625) uint32."""
    generator = Twister(0)
    generator._memory[...] = state
    return generator


def tossed(state: Array, limit: int, count: int) -> Array:
    """(count) bool, True where the lowest 53 bits of two words are below `limit`; see `coins`."""
    generator, found = resumed(state), np.empty(count, bool)
    generator.fill(found, lambda some: (generator.words64(some) & np.uint64((1 << 53) - 1)) < limit)
    state[...] = generator._memory
    return found


def skipped(state: Array, count: int) -> Array:
    """A state, (625) uint32, after `count` more words."""
    generator = resumed(state)
    generator.bit_generator.random_raw(count, output=False)
    return generator._memory.copy()


def _box_muller(u: Array) -> None:
    """Numbers in [0, 1), (*, 16), made normal."""
    radius = np.sqrt(-2 * np.log(1 - u[..., :8]))
    angle = u.dtype.type(2 * math.pi) * u[..., 8:]
    np.multiply(radius, np.cos(angle), out=u[..., :8])
    np.multiply(radius, np.sin(angle), out=u[..., 8:])


def _made_normal(flat: Array) -> None:
    """Numbers in [0, 1), (16 n), made normal in place."""
    table = loader.of_bytes()
    if table is not None and flat.dtype == F32:
        table.box_muller(flat, flat.size // LAST)
        return
    whole = flat.reshape(-1, LAST)
    with np.errstate(all="ignore"):
        for start in range(0, len(whole), AT_ONCE // LAST):
            _box_muller(whole[start : start + AT_ONCE // LAST])


class _Unseeded(ISeedSequence):
    """What NumPy is given for a seed where another one follows at once: to make one of its own takes twenty times as long."""

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> Any:
        """As many words, of which NumPy copies one after the other: from a tuple in no time."""
        return (1,) * n_words


UNSEEDED: Any = _Unseeded()


class Twister(np.random.Generator):
    """NumPy's generator with PyTorch's numbers: of the distributions that are not here, NumPy's, from the same words.

    seed: 64 bits, of which the lower 32 count, as in PyTorch.
    """

    def __init__(self, seed: int):
        super().__init__(np.random.MT19937(UNSEEDED))
        # Where NumPy keeps the words and the place of the next: native code reads and writes there, and so do states.
        self.address = int(self.bit_generator.ctypes.state_address)
        self._memory: Array = np.ctypeslib.as_array(STATE.from_address(self.address))
        self._legacy = np.random.RandomState(self.bit_generator)
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Begin with the words of a seed."""
        self.seed = seed
        self.waiting: float | None = None  # the second number of a normal pair
        self._legacy.seed(seed & 0xFFFFFFFF)

    def state(self) -> Array:
        """The state as PyTorch's generator writes it, (632) of uint64."""
        found, position = np.zeros(STATE_BYTES // 8, np.uint64), int(self._memory[WORDS])
        if position == WORDS and self._memory[0] == self.seed & 0xFFFFFFFF:
            position = 0  # nothing was drawn: the first word is the seed itself
        left = WORDS + 1 - position if position else 1
        found[0], found[1], found[2] = self.seed, left | SEEDED, position
        found[3 : 3 + WORDS] = self._memory[:WORDS]
        if self.waiting is not None:
            found[WAITING : WAITING + 1].view(np.float64)[0], found[WAITS] = self.waiting, 1
        return found

    def set_state(self, found: Array) -> None:
        """Restore what `state` gave, or PyTorch's.  Raises RuntimeError for words that are no state."""
        words, next_, left = found[3 : 3 + WORDS], int(found[2]), int(found[1]) & 0xFFFFFFFF
        if next_ > WORDS or int(words.max()) >> 32:
            raise RuntimeError(f"RNG state is damaged: expected 624 words of 32 bits and the place of the next one in them, got "
                               f"place {next_} and words up to {int(words.max())}")  # fmt: skip
        self.seed = int(found[0])
        self._memory[:WORDS], self._memory[WORDS] = words, WORDS if left == 1 else next_
        self.waiting = float(found[WAITING : WAITING + 1].view(np.float64)[0]) if found[WAITS] & 0xFFFFFFFF else None

    def fill(self, out: Array, each: Callable[[int], Array]) -> None:
        """Fill `out`, without gaps, with what `each(count)` draws, some at a time: nothing is made of its size."""
        flat = out.reshape(-1)
        for start in range(0, flat.size, AT_ONCE):
            part = flat[start : start + AT_ONCE]
            part[...] = each(part.size)

    def words(self, count: int) -> Array:
        """(count) of 32 bits, in as many or more."""
        table = loader.of_bytes()
        if table is None:
            return self.bit_generator.random_raw(count)
        found = np.empty(count, np.uint32)
        with self.bit_generator.lock:
            table.words(self.address, found, count)
        return found

    def ahead(self, count: int) -> Array:
        """The state as it is, (625) uint32, from which others draw the next `count` words: it goes on by those."""
        with self.bit_generator.lock:
            found = self._memory.copy()
            table = loader.of_bytes()
            if table is not None:
                table.skip(self.address, count)
            else:
                self._memory[...] = skipped(found, count)
        return found

    def coins(self, p: float, count: int) -> Array:
        """Bits that are set with probability p, ((count + 7) // 8) uint8: see `coins`."""
        with self.bit_generator.lock:
            return coins(self._memory, p, 1, count)

    def words64(self, count: int) -> Array:
        """(count) of 64 bits, the upper half drawn first."""
        words = self.words(2 * count).astype(np.uint64, copy=False)
        return words[::2] << np.uint64(32) | words[1::2]

    def _single(self, count: int) -> Array:
        return (self.words(count) & np.uint32(0xFFFFFF)).astype(np.float32) * np.float32(2.0**-24)

    def _double(self, count: int) -> Array:
        return (self.words64(count) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Evenly from [0, 1)."""
        made = np.empty(() if size is None else size, dtype) if out is None else out
        self._evenly(0.0, 1.0, 1.0, made)
        return float(made) if size is None and out is None else made

    def evenly(self, low: float, high: float, out: Array) -> None:
        """Evenly from [low, high) into float32 or float64 without gaps: what would be rounded to `high` is `low`, as in PyTorch.

        Of float32 rounded once, as where a processor multiplies and adds at once.
        """
        kind = out.dtype.type
        self._evenly(float(kind(low)), float(kind(high) - kind(low)), float(kind(high)), out)

    def _evenly(self, start: float, span: float, end: float, out: Array) -> None:
        table = native(out.dtype)
        if table is not None:
            with self.bit_generator.lock:
                table.evenly(self.address, out, out.size, start, span, end)
            return
        each = self._single if out.dtype == F32 else self._double

        def drawn(count: int) -> Array:
            numbers = (each(count).astype(np.float64, copy=False) * span + start).astype(out.dtype, copy=False)
            numbers[numbers == end] = start
            return numbers

        self.fill(out, drawn)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Evenly from [low, high): the rest of a word of 32 bits, or of 64 where the range is of 2**28 numbers or more.

        From all of int64 as the words are, without `low`.  All as PyTorch draws them.
        """
        if low.__class__ is not int and (np.ndim(low) or np.ndim(high)):
            return super().integers(low, high, size, dtype, endpoint)
        low, high = (0, int(low)) if high is None else (int(low), int(high))
        span = high - low + endpoint
        made = np.empty(() if size is None else size, dtype)

        def each(count: int) -> Array:
            words = self.words(count) if span < WIDE else self.words64(count)
            if span == 1 << 64:
                return words
            rest: Array = words % words.dtype.type(span)
            return rest.astype(np.int64) + low if low else rest

        self.fill(made, each)
        return made[()] if size is None else made

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Of mean 0 and variance 1."""
        made = np.empty(() if size is None else size, dtype) if out is None else out
        flat = made.reshape(-1)
        if flat.size < LAST:
            self.fill(flat, self.two_by_two)
            return float(made) if size is None and out is None else made
        self.random(dtype=made.dtype, out=flat)
        _made_normal(flat[: flat.size // LAST * LAST])
        if flat.size % LAST:
            self.random(dtype=made.dtype, out=flat[-LAST:])
            _made_normal(flat[-LAST:])
        return made

    def two_by_two(self, count: int) -> Array:
        """(count) normal numbers in pairs, of which one too many waits for the next call: PyTorch's where there are few, or gaps."""
        return self._each("normals", np.empty(count))

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Of rate 1."""
        made = np.empty(() if size is None else size, dtype) if out is None else out
        self.fill(made, self._exponentials)
        return float(made) if size is None and out is None else made

    def log_gammas(self, shapes: Array) -> Array:
        """Logarithms of gamma variables of rate 1, of float64 shapes: -inf for those of 0 or below.  (*) -> (*)"""
        return self._each("log_gammas", np.array(shapes, np.float64, order="C"))

    def poissons(self, rates: Array) -> Array:
        """Poisson variables of float64 rates.  (*) -> (*) float64"""
        return self._each("poissons", np.array(rates, np.float64, order="C"))

    def _each(self, name: str, found: Array) -> Array:
        """For each float64 parameter a number in its place, drawn one after the other."""
        table = loader.of_bytes()
        if table is None:
            draw = self._drawn[name]
            found[...] = np.reshape([draw(self, x) for x in found.ravel().tolist()], found.shape)
            return found
        with self.bit_generator.lock:
            waiting = np.array((0.0 if self.waiting is None else self.waiting, self.waiting is not None))
            getattr(table, name)(self.address, waiting, found, found.size)
            self.waiting = float(waiting[0]) if waiting[1] else None
        return found

    _drawn: ClassVar[dict[str, Callable[[Any, float], float]]] = {
        "normals": lambda self, _: self._normal(),
        "poissons": lambda self, rate: draws.poisson(self._uniform, rate),
        "log_gammas": lambda self, shape: draws.log_gamma(self._uniform, self._normal, shape),
    }

    def _uniform(self) -> float:
        draw = self.bit_generator.random_raw  # one number at a time: arrays of one take twenty times as long
        return float(((draw() & 0x1FFFFF) << 32 | draw()) * 2.0**-53)

    def _normal(self) -> float:
        found, self.waiting = self.waiting, None
        if found is None:
            angle, radius = 2 * math.pi * self._uniform(), math.sqrt(-2 * math.log1p(-self._uniform()))
            found, self.waiting = radius * math.cos(angle), radius * math.sin(angle)
        return found

    def binomials(self, counts: Array, chances: Array) -> Array:
        """How many of `counts` trials succeed with probabilities `chances`, both float64.  (*), (*) -> (*) float64"""
        n, p = (np.array(x, np.float64, order="C") for x in np.broadcast_arrays(counts, chances))
        table = loader.of_bytes()
        if table is None:
            pairs = zip(n.ravel().tolist(), p.ravel().tolist(), strict=True)
            n[...] = np.reshape([draws.binomial(self._uniform, *pair) for pair in pairs], n.shape)
            return n
        with self.bit_generator.lock:
            table.binomials(self.address, n, p, n.size)
        return n

    def _exponentials(self, count: int) -> Array:
        table = loader.of_bytes()
        if table is None:
            return -np.log1p(-self._double(count))
        made = np.empty(count)
        with self.bit_generator.lock:
            table.exponentials(self.address, made, count)
        return made

    def geometric(self, p: Any, size: Any = None) -> Any:
        """Trials up to the first success."""
        if np.ndim(p):
            return super().geometric(p, size)
        made = np.empty(size, np.float64)
        with np.errstate(all="ignore"):
            self.fill(made, lambda count: np.ceil(np.log(self._double(count)) / math.log(1 - p)))
        return made

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """The numbers below `x` in another order; of an array, NumPy's."""
        if np.ndim(x):
            return super().permutation(x, axis)
        order = np.arange(x)
        if x > 1:
            drawn: Array = self.words(x - 1) % np.arange(x, 1, -1, dtype=np.uint64)
            shuffle(order, drawn.view(np.int64))
        return order
