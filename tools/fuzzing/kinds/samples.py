"""Calls of operators as PyTorch's own test suite makes them, written out as text."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..databases import drawn
from ..program import Writer

RANDOM = ("dropout", "rand", "bernoulli", "multinomial", "normal", "poisson", "uniform", "exponential", "geometric",
          "cauchy", "empty", "rrelu", "gumbel", "multi_head_attention", "svd_lowrank", "pca_lowrank", "fractional")  # fmt: skip
MANY_ANSWERS = ("eig", "svd", "lobpcg", "geqrf", "ldl")  # vectors up to sign, or what only a library reads
# What these answer of equal elements, and which of them gets the gradient, is any of several.
TIED = frozenset("sort argsort msort median nanmedian mode topk kthvalue quantile nanquantile".split())
LARGEST = 64  # elements of one input
PER_OPERATOR = 40


@dataclass
class Sample:
    """A call: the operator's full name, the lines that make its inputs, and its arguments as text."""

    name: str
    inputs: list[str]
    arguments: list[str]
    keywords: dict[str, str]

    @property
    def call(self) -> str:
        """The call as an expression."""
        return spelled(self.name, self.arguments, self.keywords)


def spelled(name: str, arguments: Sequence[str], keywords: Mapping[str, str]) -> str:
    """A call as text."""
    given = [*arguments, *(f"{key}={text}" for key, text in keywords.items())]
    return f"{name}({', '.join(given)})"


def tied(name: str) -> bool:
    """Whether an operator has no one answer where elements are equal."""
    return name.rsplit(".", 1)[-1] in TIED


@cache
def database() -> list[tuple[str, Any]]:
    """Operators with a public name, from PyTorch's tests.  Empty where those cannot be imported."""
    import torch

    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except Exception:
        return []
    found = []
    for op in op_db:
        name = f"torch.{op.name}"
        if (
            op.variant_test_name == ""
            and not any(word in name for word in RANDOM + MANY_ANSWERS)
            and "._" not in name
            and resolves(torch, op.name)
        ):
            found.append((name, op))
    return found


def resolves(root: Any, path: str) -> bool:
    """Whether there is such a name."""
    for part in path.split("."):
        root = getattr(root, part, None)
    return callable(root)


@cache
def samples_of(index: int) -> list[Any]:
    """The first samples of an operator."""
    import torch

    _, op = database()[index]
    torch.manual_seed(index)
    dtype = torch.float64 if torch.float64 in op.dtypes else torch.int64
    try:
        return drawn(op.sample_inputs, "cpu", dtype, requires_grad=False, most=PER_OPERATOR)
    except Exception:
        return []


def sample(w: Writer) -> Sample | None:
    """A call from the database, its tensors changed in dtype and perhaps in layout."""
    operators = database()
    if not operators:
        return None
    index = w.rng.randrange(len(operators))
    samples = samples_of(index)
    if not samples:
        return None
    chosen = w.rng.choice(samples)
    name = operators[index][0]
    made = Made(w.rng, tied(name), w.rng.choice(("float64",) * 5 + ("float32", "complex128", "float16", "bfloat16")))
    try:
        arguments = [made.text(chosen.input), *(made.text(value) for value in chosen.args)]
        keywords = {key: made.text(value) for key, value in chosen.kwargs.items()}
    except TypeError:
        return None
    if keywords.get("dropout_p", "0.0") != "0.0":
        return None
    return Sample(name, made.inputs, arguments, keywords)


@dataclass
class Made:
    """Turns the arguments of a sample into text; the tensors get lines and names of their own."""

    rng: random.Random
    distinct: bool
    dtype: str

    def __post_init__(self) -> None:
        self.inputs: list[str] = []

    def text(self, value: Any) -> str:
        """One argument.  Raises TypeError for what cannot be written out in a line."""
        if hasattr(value, "requires_grad") and hasattr(value, "tolist"):
            return self.tensor(value)
        if isinstance(value, tuple | list):
            inner = ", ".join(self.text(item) for item in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        return argument_text(value)

    def tensor(self, value: Any) -> str:
        """A line for the tensor, and its name."""
        if value.numel() > LARGEST:
            raise TypeError("a tensor of too many elements")
        name = f"a{len(self.inputs) or ''}"
        kind = str(value.dtype).removeprefix("torch.")
        floating = value.dtype.is_floating_point
        kind = self.dtype if floating else kind
        if floating and self.distinct and value.numel() > 1:
            value = value.flatten().argsort().argsort().sub(value.numel() // 2).reshape(value.shape) * 0.5
        text = f"torch.tensor({rounded(value.tolist())}, dtype=torch.{kind})"
        text += f".reshape({tuple(value.shape)})" if 0 in value.shape else ""
        if value.dim() > 1 and self.rng.random() < 0.15:
            text += ".mT.contiguous().mT"
        text += ".requires_grad_()" if floating and self.rng.random() < 0.75 else ""
        self.inputs.append(f"{name} = {text}")
        return name


def rounded(value: Any) -> Any:
    """Numbers as multiples of an eighth, so that every dtype has them."""
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value * 8) / 8 if isinstance(value, float) and abs(value) < 1e6 else value


def argument_text(value: Any) -> str:
    """A plain argument as text.  Raises TypeError for what is none."""
    if isinstance(value, bool | int | float | complex | str | None):
        text = repr(value)
        return f"float('{text}')" if text.lstrip("-") in ("inf", "nan") else text
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    text = str(value)
    if text.startswith("torch.") and text.replace("torch.", "").replace("_", "").isalnum():
        return text
    raise TypeError(f"no text for {type(value).__name__}")
