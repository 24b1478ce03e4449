"""The calls that are replayed, and the values that they are made on."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tools.calls import CALLS

import rushlight as torch

SHAPES: dict[str, tuple[int, ...]] = {
    "x": (2, 3, 4), "y": (2, 3, 4), "z": (2, 3, 4), "v": (4,), "w": (4,), "s": (), "a": (3, 4), "b": (4, 5), "c": (4, 3),
    "p": (3, 3), "q": (2, 3, 3), "h": (2, 4, 6, 6), "k": (4, 2, 3, 3), "n": (3, 4), "r": (4,), "t": (2, 3, 4)}  # fmt: skip
SPACE = {"T": torch, "F": torch.nn.functional, "L": torch.linalg, "S": torch.special, "X": torch.fft, "torch": torch}
VARIABLE = re.compile(r"(?<![\w.'\"])([a-z])(?![\w'\"(=])")
DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "int64", "bool")


def value(name: str, rng: Any, dtype: str) -> Any:
    """The array of a variable: what the legend of `tools/calls.py` says of it."""
    shape = SHAPES[name]
    if name in "nr":
        return rng.integers(0, 3, shape)
    if name == "t":
        return rng.random(shape) < 0.5
    x = rng.uniform(0.2, 0.9, shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.uniform(0.2, 0.9, shape)
    if name == "p":
        return x @ x.conj().T + 2 * np.eye(3)
    return x + 3 * np.eye(3) if name == "q" else x


def variables(call: str, dtype: str = "float64", samples: int = 0) -> dict[str, Any]:
    """The variables of a call by name, in alphabetical order; with `samples`, each an array of so many."""
    names = sorted(set(VARIABLE.findall(call)) & set(SHAPES))
    rng = np.random.default_rng(len(call))
    if not samples:
        return {name: value(name, rng, dtype) for name in names}
    return {name: np.stack([value(name, rng, dtype) for _ in range(samples)]) for name in names}


def flat(results: Any) -> tuple[Any, ...]:
    """The tensors, and what else there is, in a nest of results."""
    if isinstance(results, (tuple, list)):
        return tuple(t for r in results for t in flat(r))
    return (results,)


def runner(call: str, names: list[str]) -> Callable[..., Any]:
    """The call as a function of its variables, its results in one tuple."""
    code = compile(call, call, "eval")
    return lambda *values: flat(eval(code, {**SPACE, **dict(zip(names, values, strict=True))}))


@dataclass
class Case:
    """A call `run(*tensors())`.  The tensors are made anew each time, so that a change of one stays in its run."""

    name: str
    run: Callable[..., Any]
    tensors: Callable[[], list[Any]]


def called(call: str, dtype: str) -> Case:
    """A call of the table on variables of a dtype."""
    arrays = variables(call, dtype)

    def tensors() -> list[Any]:
        made = (torch.from_numpy(np.array(array)) for array in arrays.values())
        kind = getattr(torch, dtype)
        return [t.to(kind) if t.is_floating_point() or t.is_complex() else t for t in made]

    return Case(call if dtype == "float64" else f"{call} [{dtype}]", runner(call, list(arrays)), tensors)


def written(name: str, inputs: list[str], call: str) -> Case:
    """A call with lines that make its inputs, as the fuzzer writes them."""
    made = [line.split(" = ", 1) for line in inputs]
    sources = [source.removesuffix(".requires_grad_()") for _, source in made]

    def tensors() -> list[Any]:
        return [eval(source, {"torch": torch}) for source in sources]

    return Case(f"{name}: {call} of {'; '.join(sources)}", runner(call, [n for n, _ in made]), tensors)


def table(dtypes: tuple[str, ...] = DTYPES) -> Iterator[Case]:
    """The calls of `tools/calls.py`, in each of the dtypes."""
    for dtype, call in itertools.product(dtypes, CALLS):
        yield called(call, dtype)


def database(per_operator: int) -> Iterator[Case]:
    """Samples of PyTorch's own tests, where it is installed."""
    import random

    from tools.fuzzing.kinds import samples

    for index, (name, _) in enumerate(samples.database()):
        for position, chosen in enumerate(samples.samples_of(index)[:per_operator]):
            made = samples.Made(random.Random(f"{name} {position}"), samples.tied(name), "float64")
            try:
                arguments = [made.text(chosen.input), *(made.text(each) for each in chosen.args)]
                keywords = {key: made.text(each) for key, each in chosen.kwargs.items()}
            except (TypeError, RuntimeError):  # it cannot be written out, as sparse tensors
                continue
            yield written(name, made.inputs, samples.spelled(name, arguments, keywords))
