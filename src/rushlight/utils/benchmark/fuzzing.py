"""Tensors of random sizes and layouts, for measurements over many of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.dtypes import dtype as Dtype
from rushlight.dispatch.named import named
from rushlight.generator import default_generator
from rushlight.tensor import Tensor

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

TRIES = 1000  # samples that constraints may refuse, one after the other
T = TypeVar("T")
Number = int | float
Values = dict[str, Any]


class ParameterAlias:
    """A value of a parameter that is the value of another one."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn.

    distribution: "uniform" or "loguniform" between minval and maxval, which belong to them, or a dictionary of values and
    their probabilities, whose sum is 1. strict: accepted. Raises AssertionError for others.
    """

    def __init__(
        self,
        name: str,
        minval: Number | None = None,
        maxval: Number | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if not isinstance(distribution, dict) and distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        if isinstance(distribution, dict) and not math.isclose(sum(distribution.values()), 1, abs_tol=1e-6):
            raise AssertionError("Distribution is not normalized")
        if not isinstance(distribution, dict) and (minval is None or maxval is None):
            raise AssertionError(f"{distribution}: minval and maxval must be given")
        self._distribution = distribution

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """A value."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[int(state.choice(len(values), p=list(self._distribution.values())))]
        assert self._minval is not None and self._maxval is not None
        whole = isinstance(self._minval, int) and isinstance(self._maxval, int)
        if self._distribution == "loguniform":
            drawn = math.exp(state.uniform(math.log(self._minval), math.log(self._maxval)))
            return min(max(int(drawn), self._minval), self._maxval) if whole else drawn
        return (
            int(state.randint(int(self._minval), int(self._maxval) + 1))
            if whole
            else float(state.uniform(self._minval, self._maxval))
        )


class FuzzedTensor:
    """A tensor of sizes that are numbers or parameters' names.

    steps: of the slices that it is of a larger tensor. probability_contiguous: of lying in the order of its dimensions.
    min_elements, max_elements, max_allocation_bytes: others are drawn anew. dim_parameter: the parameter that says how many
    dimensions of `size` it has; roll_parameter: by how many its dimensions are turned. tensor_constructor: makes it of
    `size` and `dtype`.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: Dtype = dtypes.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous, self._dtype = probability_contiguous, dtype
        self._limits = min_elements, max_elements, max_allocation_bytes
        self._dim_parameter, self._roll_parameter = dim_parameter, roll_parameter
        self._constructor = tensor_constructor or self.default_tensor_constructor
        if cuda:
            raise NotImplementedError("FuzzedTensor(cuda=True): there is no such device: tensors are on the CPU")

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: tuple[int, ...], dtype: Dtype, **kwargs: object) -> Tensor:
        """Numbers of [0, 1), integers below 127."""
        if dtype.is_floating_point or dtype.is_complex:
            return named.rand(size=size, dtype=dtype)  # type: ignore[no-any-return]
        return named.randint(1, 127, size=size, dtype=dtype)  # type: ignore[no-any-return]

    def _get_size_and_steps(self, params: Values) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The sizes, the steps, and the sizes of what it is sliced out of."""
        dim = int(params[self._dim_parameter]) if self._dim_parameter is not None else len(self._size)
        turn = int(params[self._roll_parameter]) % dim if self._roll_parameter is not None else 0

        def resolved(values: Sequence[str | int]) -> tuple[int, ...]:
            found = [int(params[v]) if isinstance(v, str) else v for v in values][:dim]
            found += [1] * (dim - len(found))
            return (*found[turn:], *found[:turn])

        size, steps = resolved(self._size), resolved(self._steps or ())
        return size, steps, tuple(n * step for n, step in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: Values) -> bool:
        """Whether it has neither too few nor too many elements."""
        size, _, whole = self._get_size_and_steps(params)
        count, (least, most, memory) = math.prod(size), self._limits
        fits = memory is None or math.prod(whole) * self._dtype.itemsize <= memory
        return fits and (least is None or count >= least) and (most is None or count <= most)

    def _make_tensor(self, params: Values, state: np.random.RandomState) -> tuple[Tensor, Values]:
        """The tensor, and what there is to know of it."""
        size, steps, whole = self._get_size_and_steps(params)
        raw, dim = self._constructor(size=whole, dtype=self._dtype, **params), len(size)
        order = np.arange(dim)
        if state.rand() > self._probability_contiguous and dim > 1:
            order = state.permutation(dim)
            raw = raw.permute(tuple(map(int, order))).contiguous().permute(tuple(map(int, np.argsort(order))))
        made = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        known = {"numel": int(made.numel()), "order": order, "steps": steps, "is_contiguous": made.is_contiguous(),
                 "dtype": str(self._dtype)}  # fmt: skip
        return made, known


class Fuzzer:
    """Draws parameters, and tensors of them.

    constraints: functions of all parameters by name that say whether they are wanted. seed: of all draws.

    >>> import rushlight as torch
    >>> from torch.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
    >>> fuzzer = Fuzzer([FuzzedParameter("n", 1, 16, "loguniform")], [FuzzedTensor("x", size=("n",))], seed=0)
    >>> [tensors["x"].shape[0] for tensors, properties, parameters in fuzzer.take(3)]
    [7, 4, 5]
    """

    def __init__(
        self,
        parameters: list[FuzzedParameter | list[FuzzedParameter]],
        tensors: list[FuzzedTensor | list[FuzzedTensor]],
        constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters, self._tensors = _flat(parameters), _flat(tensors)
        self._constraints = constraints or []
        names = [*(p.name for p in self._parameters), *(t.name for t in self._tensors)]
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"Parameter names in tensors and parameters must be unique: {double}")
        self._rejections = self._total_generated = 0

    @property
    def rejection_rate(self) -> float:
        """The share of samples that were not wanted."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], Values, Values]]:
        """Tensors, what there is to know of them, and parameters, each by name: `n` times."""
        state = np.random.RandomState(self._seed)
        default_generator.manual_seed(int(state.randint(0, 2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {each.name: each._make_tensor(params, state) for each in self._tensors}
            yield {k: t for k, (t, _) in made.items()}, {k: known for k, (_, known) in made.items()}, params

    def _generate(self, state: np.random.RandomState) -> Values:
        """Parameters that are wanted.  Raises ValueError where a thousand are not."""
        for _ in range(TRIES):
            self._total_generated += 1
            found = self._resolve_aliases({p.name: p.sample(state) for p in self._parameters})
            wanted = all(constraint(found) for constraint in self._constraints)
            if wanted and all(t.satisfies_constraints(found) for t in self._tensors):
                return found
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolve_aliases(params: Mapping[str, Any]) -> Values:
        """The parameters, those that are another's name being its value."""
        found = dict(params)
        for key, value in params.items():
            seen = {key}
            while isinstance(value, ParameterAlias) and value.alias_to not in seen:
                seen.add(value.alias_to)
                value = params[value.alias_to]
            if isinstance(value, ParameterAlias):
                raise ValueError(f"parameters are each other's aliases: {sorted(seen)}")
            found[key] = value
        return found


def _flat(given: Sequence[T | list[T]]) -> list[T]:
    """All of what may be in lists."""
    return [each for part in given for each in (part if isinstance(part, list) else [part])]
