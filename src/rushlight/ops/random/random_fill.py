"""Random numbers in place, and with tensors as parameters: normal, bernoulli, poisson, binomial, multinomial."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtype_words import in_c, older
from rushlight.basics.eights import EIGHTS, refuse
from rushlight.dispatch import call, families, randomness, shapes
from rushlight.dispatch.by_sample import per_sample
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int, two_sizes
from rushlight.dispatch.operands import check_tensor, one_number, raw
from rushlight.dispatch.options import META, blank, check_options, dtype_with, filled, made, shape_alone, size_of
from rushlight.dispatch.outs import converting, moving
from rushlight.dispatch.registry import function, op
from rushlight.kernels.dispatch import bits, is_half, widened
from rushlight.levels.batch import everything
from rushlight.ops.elementwise.convert import cast
from rushlight.ops.elementwise.shared import is_unknown, nothing, number
from rushlight.ops.random.exact import exact, held
from rushlight.ops.random.random import F32, F64, HALVES, by_memory, normal_array, put_halves, source, uniform_array
from rushlight.ops.reduce.sums import tensor_argument
from rushlight.tensor import Tensor, layout

if TYPE_CHECKING:
    from rushlight.basics.devices import device
    from rushlight.basics.dtypes import dtype
    from rushlight.generator import Generator
    from rushlight.kernels.twister import Twister

AT_ONCE = 1 << 14  # weights of `multinomial` that are worked on at once, in float64


@op(
    aten_call="drawn",
    name="random_",
    grads={"input": lambda g: nothing(g)},
    complex_half="moves",
    shape=shapes.same,
    batch=families.drawn,
)
def drawn(input: Array, draw: Callable[..., Any]) -> Array:
    """Random numbers in the shape and dtype of `input`, which `draw(array)` puts into an array.  (*) -> (*)"""
    out = np.empty(input.shape, input.dtype)
    draw(out)
    return out


drawn.into(lambda x, draw: draw(x))


def redraw(name: str, self: Tensor, draw: Callable[..., Any], kinds: str = "fVcW") -> Tensor:
    """Fill a tensor in place by `draw(array)`.  Raises RuntimeError for dtypes of other kinds."""
    check_tensor(name, "input", self, 1)
    if self._array.dtype.kind not in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{older(self.dtype)}'")
    if self._array.dtype in EIGHTS:
        refuse(name, self._array.dtype)
    randomness.check_target(self)
    return call.apply_inplace(drawn.op, (self,), (draw,))


def put(x: Array, rng: Twister, each: Callable[[int], Array]) -> None:
    """Fill `x`, in the order of its memory, with what `each(count)` draws, some at a time."""
    x = by_memory(x)
    if x.flags.c_contiguous:
        rng.fill(x, each)
        return
    made = np.empty(x.shape, x.dtype)
    rng.fill(made, each)
    x[...] = made


def refill(
    name: str, self: Tensor, generator: Generator | None, each: Callable[[Twister, int], Array], kinds: str = "fV"
) -> Tensor:
    """Fill a tensor in place with what `each(source, count)` draws, some at a time."""

    def draw(x: Array) -> None:
        rng = source(generator)
        put(x, rng, lambda count: each(rng, count))

    return redraw(name, self, draw, kinds)


def parts(x: Array) -> Array:
    """Complex numbers (*) as pairs of real ones, a view (*, 2)."""
    return x[..., None].view(dtypes.real_of(x).dtype)


def put_uniform(x: Array, low: float, high: float, generator: Generator | None) -> None:
    """Numbers evenly from [low, high), for both parts of complex numbers."""
    x = by_memory(parts(x) if dtypes.is_complex(x.dtype) else x)
    if x.dtype in (F32, F64) and x.flags.c_contiguous:
        source(generator).evenly(low, high, x)
    else:
        x[...] = uniform_array(x.shape, x.dtype, generator, low, high)


def put_normal(x: Array, mean: float, std: float, generator: Generator | None) -> None:
    """Numbers of a normal distribution; of complex ones, both parts have this mean and half the variance."""
    if dtypes.is_complex(x.dtype):
        put_normal(parts(x), mean, std * 0.5**0.5, generator)
        return
    rng = source(generator)
    if x.dtype in HALVES and x.flags.c_contiguous:
        put_halves(x, mean, std, rng)
        return
    if x.dtype not in (F32, F64) or not x.flags.c_contiguous:
        put(x, rng, lambda count: rng.two_by_two(count) * std + mean)
        return
    rng.standard_normal(out=x, dtype=x.dtype)
    if std != 1:
        x *= x.dtype.type(std)
    if mean:
        x += x.dtype.type(mean)


def _between(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], low: float, high: float | None
) -> tuple[Any, Any]:
    """The arguments `from` (a word Python reserves) and `to`."""
    given = dict(zip(("from", "to"), args, strict=False))
    for word in ("from", "to"):
        if word in kwargs:
            given[word] = kwargs.pop(word)
    if kwargs or len(args) > 2:
        raise TypeError(f"{name}() got an unexpected argument {next(iter(kwargs), args[2:])!r}")
    return given.get("from", low), given.get("to", high)


@function(method=True, ns="Tensor")
def uniform_(self: Tensor, *args: float, generator: Generator | None = None, **kwargs: object) -> Tensor:
    """Fill with numbers evenly from [from, to): uniform_(from=0, to=1).  Raises RuntimeError where from > to."""
    low, high = _between("uniform_", args, kwargs, 0.0, 1.0)
    limit = _largest(self._array.dtype) if isinstance(self, Tensor) and self._array.dtype.kind in "fVc" else math.inf
    for name, bound in (("from", low), ("to", high)):
        if not abs(bound) <= limit:
            raise RuntimeError(f"{name} is out of bounds for {self.dtype}: uniform_ got from={low} and to={high}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    if high - low > limit:
        raise RuntimeError(f"uniform_ expects to-from <= {limit}, but found to={high} and from={low}")
    return redraw("uniform_", self, lambda x: put_uniform(x, low, high, generator))


@functools.cache
def _largest(dtype: np.dtype[Any]) -> float:
    return dtypes.finfo(dtypes.of(dtype)).max


@function(method=True, ns="Tensor")
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the normal distribution.  Raises RuntimeError where std < 0."""
    check_std(std)
    return redraw("normal_", self, lambda x: put_normal(x, mean, std, generator))


def check_std(std: float) -> None:
    """Raise RuntimeError for negative standard deviations."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")


@function(method=True, ns="Tensor")
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithms have a normal distribution of this mean and standard deviation."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return refill("log_normal_", self, generator, lambda rng, count: np.exp(rng.two_by_two(count) * std + mean))


@function(method=True, ns="Tensor")
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the exponential distribution of rate `lambd`."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return refill("exponential_", self, generator, lambda rng, count: rng.standard_exponential(count) * (1 / lambd))


@function(method=True, ns="Tensor")
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return refill(
        "cauchy_", self, generator, lambda rng, count: np.tan((rng.random(count) - 0.5) * math.pi) * sigma + median
    )


@function(method=True, ns="Tensor")
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials, each a success with probability `p`, up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return refill("geometric_", self, generator, lambda rng, count: rng.geometric(p, count), "fViu")


@function(method=True, ns="Tensor")
def random_(self: Tensor, *args: int, generator: Generator | None = None, **kwargs: object) -> Tensor:
    """Fill with integers: random_(to) from [0, to), random_(from, to); random_() from all the dtype holds exactly."""
    if len(args) == 1:
        args = (0, args[0])
    given = bool(kwargs)
    low, high = _between("random_", args, kwargs, 0, None)
    kind = self._array.dtype
    top = _top(kind) + (kind.kind in "fV") if high is None else as_int(high, "random_", "to")
    low = as_int(low, "random_", "from")
    if low >= top:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={top}")
    if kind.kind in "iub" and not (_bottom(kind) <= low and top <= _top(kind)):
        beyond = "to - 1" if _bottom(kind) <= low else "from"
        raise RuntimeError(f"{beyond} is out of bounds for {in_c(self.dtype)}: random_ got from={low} and to={top}")
    if kind.kind in "fV" and high is not None:
        low, top = held("random_", low, top, kind)
    if high is None and low == -1 << 63:
        top = 1 << 63  # all words, whatever the dtype holds exactly
    return redraw("random_", self, lambda x: put_integers(x, low, top, source(generator), not (args or given)), "fViub")


def put_integers(x: Array, low: int, top: int, rng: Twister, all_there_are: bool) -> None:
    """Integers from [low, top).  Those of 32 bits, where none is left out, are made of words of 32 bits."""
    wide = np.uint64 if top > 1 << 63 else np.int64
    if all_there_are and x.dtype == np.int32:
        put(x, rng, lambda count: rng.words(count) & np.uint32(top - 1))
    else:
        put(x, rng, lambda count: rng.integers(low, top, count, wide))


def _top(kind: np.dtype[Any]) -> int:
    """One more than the largest integer below which all are exact."""
    if kind.kind == "b":
        return 2
    return int(np.iinfo(kind).max) + 1 if kind.kind in "iu" else exact(kind)


def _bottom(kind: np.dtype[Any]) -> int:
    return 0 if kind.kind == "b" else int(np.iinfo(kind).min)


# Bernoulli -----------------------------------------------------------------------------------------


def check_probability(p: Any) -> None:
    """Raise RuntimeError for what is no probability."""
    p = everything(p)
    low, high = (p.min(), p.max()) if isinstance(p, np.ndarray) and p.size else (p, p)
    if not isinstance(p, np.ndarray) or p.size:
        if not (0 <= low and high <= 1):
            got = f"p={low}" if low == high else f"p between {low} and {high}"
            raise RuntimeError(
                f"bernoulli_ expects p to be in [0, 1], but got {got}: Expected p_in >= 0 && p_in <= 1 to be true"
            )


def put_truths(truths: Array, x: Array) -> None:
    """x = truths, as 1 and 0; of 16 bits by their bits, since NumPy converts one after the other."""
    if is_half(x.dtype):
        np.multiply(truths, bits(np.ones((), x.dtype)), out=bits(x), casting="unsafe")
    else:
        x[...] = truths


def coins(x: Array, p: object, generator: Generator | None) -> None:
    """1 with probability `p`, else 0: an array of float32 is compared with numbers of 24 bits, all else with such of 53."""
    rng = source(generator)
    if isinstance(p, np.ndarray) and p.ndim:
        wide = widened(p) if is_half(p.dtype) else p
        put_truths(rng.random(x.shape, dtype=F64 if wide.dtype == F64 else F32) < wide, x)
    else:
        put(x, rng, lambda count: rng.random(count) < p)


@function(method=True, ns="Tensor")
def bernoulli_(self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p` (a number, or a tensor that broadcasts), else 0."""
    chances = raw(p)
    if isinstance(p, Tensor) and chances.dtype.kind not in "fV":
        raise RuntimeError(f"bernoulli_(): expected probabilities tensor to have floating type, got {p.dtype}")
    check_probability(chances)
    if randomness.innermost() is not None and isinstance(p, Tensor):
        return self.copy_(by_chance(p.expand(self.shape), generator))
    if isinstance(p, Tensor) and not fits(p.shape, self.shape):
        p.expand(self.shape)  # which says what does not go together
    return redraw("bernoulli_", self, lambda x: coins(x, chances, generator), "fViub")


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether what has a shape can be expanded to another."""
    behind = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape, behind, strict=True))


def by_chance(p: Tensor, generator: Generator | None) -> Any:
    """1 with the probability that each element is, else 0, inside vmap."""
    level = randomness.check()
    if level is not None and level.randomness == "same" and level.whole(p)[1] is not None:
        raise RuntimeError("Vmap does not currently support same randomness with a batched tensor input: bernoulli() draws "
                           "by probabilities that differ from sample to sample. Use randomness='different'")  # fmt: skip
    kind = F64 if p._array.dtype == F64 else F32
    u = randomness.fresh(lambda shape: source(generator).random(shape, dtype=kind), p._array.shape)
    return cast(u < p.detach(), p._array.dtype)


@function(method=True)
@converting("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element of `input` is (or with probability `p`), else 0.  (*) -> (*)"""
    array = tensor_argument("bernoulli", input)
    if p is None:
        if array.dtype.kind not in "fV":
            raise NotImplementedError(f"\"bernoulli\" not implemented for '{older(dtypes.of(array.dtype))}': its elements are "
                                      "probabilities")  # fmt: skip
        check_probability(array)
    else:
        check_probability(p)
    chances = array if p is None else p
    if randomness.innermost() is not None:
        if p is None:
            return by_chance(input, generator)
        input = randomness.apart(input)
    return drawn(input, lambda x: coins(x, chances, generator))


# Other distributions -------------------------------------------------------------------------------


@op(
    aten=("normal.Tensor_float",),
    half=None,
    grads={"mean": lambda g, mean: nothing(mean), "std": lambda g, std: nothing(std)},
    batch=families.parametric,
)
def normal_op(
    mean: Array | None, std: Array | None, mean_value: float, std_value: float, generator: Generator | None
) -> Array:
    """Normal numbers whose mean or standard deviation are tensors.  (*), (*) -> (*)"""
    given: Any = mean if mean is not None else std
    shape = np.broadcast_shapes(*(a.shape for a in (mean, std) if a is not None))
    out = normal_array(shape, given.dtype, generator)
    out *= std_value if std is None else std
    out += mean_value if mean is None else mean
    return out


@normal_op.shape
def _(mean: Array | None, std: Array | None) -> list[shapes.Made]:
    given = [a for a in (mean, std) if a is not None]
    return [shapes.Made(np.broadcast_shapes(*(a.shape for a in given)), given[0].dtype)]


@function()
def normal(mean: Any = 0.0, std: Any = 1.0, size: int | Sequence[int] | None = None, *,
           generator: Generator | None = None, out: Tensor | None = None, dtype: dtype | None = None,
           layout: layout | None = None, device: device | str | int | None = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers: normal(mean, std) with tensors (one may be a number), or normal(mean, std, size) with numbers.

    Gradients with respect to mean and std are zero. Raises RuntimeError where an std is negative.
    """
    if size is not None:  # of numbers, for which tensors of one stand, too
        mean, std = (one_number("normal", *of) for of in (("mean", mean), ("std", std)))
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        return filled("normal", out, normal_of(mean, std, generator))
    if size is None:
        raise TypeError("normal() with numbers needs the argument 'size'")
    where = check_options("normal", device, layout, pin_memory)
    check_std(std)
    kind = dtype_with("normal", dtype, out)
    shape = size_of("normal", (size,))
    if where is META:
        return made(blank(np.empty, shape, kind, where), requires_grad)
    if randomness.innermost() is not None:
        t = randomness.fresh(lambda s: normal_array(s, kind, generator), shape) * std + mean
        return filled("normal", out, t.requires_grad_(requires_grad))
    if kind in HALVES:
        array = np.empty(shape, kind)
        put_halves(array, mean, std, source(generator))
    else:
        array = normal_array(shape, kind, generator)
        array *= array.dtype.type(std)
        array += array.dtype.type(mean)
    return filled("normal", out, made(array, requires_grad))


def normal_of(mean: Tensor, std: Tensor, generator: Generator | None) -> Tensor:
    """`normal` where a parameter is a tensor."""
    if isinstance(std, Tensor):
        if std._array.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if not (everything(std._array) >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    else:
        check_std(std)
    means, stds = (randomness.apart(x) if isinstance(x, Tensor) else None for x in (mean, std))
    try:
        return normal_op(means, stds, 0.0 if means is not None else mean, 1.0 if stds is not None else std, generator)
    except ValueError as error:
        words = two_sizes(mean.shape, std.shape)
        raise RuntimeError(f"normal(): {words}: those of mean and std do not broadcast") from error


@op(
    half=None,
    grads={"input": lambda g: nothing(g)},
    shape=shapes.dense,
    batch=families.parametric,
)
def poisson_op(input: Array, generator: Generator | None) -> Array:
    """Numbers of the Poisson distribution of rates `input`.  (*) -> (*)"""
    return source(generator).poissons(input).astype(input.dtype)


@poisson_op.work
def _(input: Array) -> int:
    return 8 * input.size


@function()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the Poisson distribution whose rates are the elements of `input`.  (*) -> (*)"""
    array = tensor_argument("poisson", input)
    if array.dtype.kind not in "fV":
        raise NotImplementedError(
            f"\"poisson\" not implemented for '{older(dtypes.of(array.dtype))}': its elements are rates"
        )
    if not (everything(array) >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return poisson_op(randomness.apart(input), generator)


@op(
    half=None,
    grads={"count": lambda g, count: nothing(count), "prob": lambda g, prob: nothing(prob)},
    shape=lambda count, prob: [shapes.Made(np.broadcast_shapes(count.shape, prob.shape), count.dtype)],
    batch=families.parametric,
)
def binomial_op(count: Array, prob: Array, generator: Generator | None) -> Array:
    """Numbers of successes.  (*), (*) -> (*)"""
    return source(generator).binomials(count, prob).astype(count.dtype)


@function()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`.  (*), (*) -> (*)"""
    check_probability(everything(raw(prob)).astype(np.float64))
    return binomial_op(randomness.apart(count), prob, generator)


@function(method=True)
@moving(same_dtype="multinomial expects Long tensor out: ")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with probabilities proportional to the elements of each row.  (N) or (M, N) -> (num_samples) or
    (M, num_samples) of int64

    Raises RuntimeError for negative weights, rows without weight, and more draws than there are weights without
    replacement.
    """
    level = randomness.innermost()
    if level is not None:
        input = randomness.apart(input)
        if level.randomness == "same" and getattr(raw(input), "interpreted", False):
            raise RuntimeError("Vmap does not currently support same randomness with a batched tensor input: multinomial() "
                               "draws by weights that differ from sample to sample. Use randomness='different'")  # fmt: skip
    return categories(input, num_samples, replacement, generator)


@per_sample
def categories(input: Tensor, num_samples: int, replacement: bool, generator: Generator | None) -> Tensor:
    """multinomial."""
    array = tensor_argument("multinomial", input)
    if is_unknown(array):  # zeros, of which nothing can be drawn
        count = math.prod(array.shape[:-1]) * num_samples
        return made(np.arange(count).reshape(*array.shape[:-1], num_samples) % max(array.shape[-1], 1))
    n = check_weights(array, num_samples, replacement)
    if input._meta:
        return shape_alone((*array.shape[:-1], num_samples), np.int64)
    rows, rng = np.atleast_2d(array), source(generator)
    found = np.empty((len(rows), num_samples), np.int64)
    draw = drawn_again if replacement and num_samples > 1 else drawn_once
    for at in runs(len(rows), n):
        found[at] = draw(rows[at].astype(np.float64), num_samples, rng)
    return made(found.reshape((num_samples,) if array.ndim == 1 else found.shape))


def runs(count: int, size: int) -> list[slice]:
    """Rows of `size` elements, some at a time: what is made of them in float64 is small beside them all."""
    step = max(AT_ONCE // max(size, 1), 1)
    return [slice(i, i + step) for i in range(0, count, step)]


def drawn_again(rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Places in each row of weights, which may come again."""
    ends = np.cumsum(rows, axis=1)
    aim = rng.random((len(rows), count)) * ends[:, -1:]
    found = np.stack([np.searchsorted(e, a, "right") for e, a in zip(ends, aim, strict=True)])
    return np.minimum(found, rows.shape[1] - 1)


def drawn_once(rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Different places in each row of weights: each is a rate, and the first events to happen are a draw."""
    with np.errstate(divide="ignore"):
        rows = np.divide(rng.standard_exponential(rows.shape), rows, out=rows)
    return np.argsort(rows, axis=1)[:, :count]


def check_weights(array: Array, num_samples: int, replacement: bool) -> int:
    """The number of weights in a row of multinomial's argument, which is checked."""
    if array.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if array.dtype.kind not in "fV":
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {older(dtypes.of(array.dtype))}"
        )
    n = array.shape[-1]
    if number(num_samples) <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > n:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} > {n}"
        )
    check_probabilities(everything(array))
    return int(n)


def check_probabilities(rows: Array) -> None:
    """Raise RuntimeError for weights that are not finite, or negative, or all 0 in a row."""
    rows = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])
    wild = negative = nothing = False
    for at in runs(*rows.shape) if rows.size else ():
        wide = rows[at].astype(np.float64)
        wild |= not np.isfinite(wide).all()
        negative |= bool((wide < 0).any())
        nothing |= bool((wide.sum(axis=-1) <= 0).any())
    if wild or negative:
        which = "= infinity or NaN" if wild else "< 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {which}): probability tensor "
                           "contains either `inf`, `nan` or element < 0")  # fmt: skip
    if nothing:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
