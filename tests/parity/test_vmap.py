"""vmap gives what PyTorch's vmap gives, on PyTorch's own samples of every operator that both have by the same name."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from tools.fuzzing.databases import drawn

import rushlight

torch = pytest.importorskip("torch")
databases = pytest.importorskip("torch.testing._internal.common_methods_invocations")
pytestmark = [pytest.mark.parity, pytest.mark.slow]

# Not comparable: sparse arguments, random or uninitialized results, results unique only up to a sign or phase, no batching in PyTorch, or
# less accurate values in PyTorch.
FREE = {"empty", "empty_like", "new_empty", "linalg.eig", "linalg.eigh", "linalg.svd", "svd", "linalg.qr", "qr", "geqrf",
        "linalg.householder_product", "nn.functional.scaled_dot_product_attention", "linalg.lstsq", "histogramdd", "argwhere",
        "nn.functional.linear_cross_entropy", "special.airy_ai", "special.bessel_j0", "special.bessel_j1", "special.bessel_y0",
        "special.bessel_y1", "sparse.sampled_addmm"}  # fmt: skip
RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "rrelu", "uniform", "fractional", "exponential",
          "geometric", "cauchy", "multi_head")  # fmt: skip


def found(name: str) -> Any:
    """The function of a name, None where this package has none."""
    return functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), rushlight)


OPERATORS = [op for op in databases.op_db
             if not op.variant_test_name and op.name not in FREE and not any(word in op.name for word in RANDOM)
             and callable(found(op.name)) and getattr(op.op, "__module__", None) != databases.__name__
             and torch.float64 in op.supported_dtypes("cpu")]  # fmt: skip


class Misfit(Exception):
    """A sample with arguments that are not the same in both libraries."""


def split(value: Any, tensors: list[Any]) -> Any:
    """The structure of arguments: a function (tensors, library) -> arguments."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach())
        place = len(tensors) - 1
        return lambda given, lib: given[place]
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts = [split(v, tensors) for v in value]
        return lambda given, lib: type(value)(p(given, lib) for p in parts)
    if isinstance(value, dict):
        items = {k: split(v, tensors) for k, v in value.items()}
        return lambda given, lib: {k: p(given, lib) for k, p in items.items()}
    if isinstance(value, torch.dtype):
        return lambda given, lib: getattr(lib, str(value).removeprefix("torch."))
    if value is None or isinstance(value, (bool, int, float, complex, str, slice, type(...))):
        return lambda given, lib: value
    raise Misfit


def flat(lib: Any, results: Any) -> tuple[Any, ...]:
    if isinstance(results, lib.Tensor):
        return (results,)
    return tuple(t for r in results for t in flat(lib, r)) if isinstance(results, (tuple, list)) else ()


def varied(x: Any, pivots: bool = False) -> Any:
    """Three samples after the one given.  pivots: whether whole numbers are a factorisation's, and no others make sense."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return torch.stack([x, x * 0.9, x * 1.1])
    return torch.stack([x, x.flip(0) if x.dim() and not pivots else x, x])


def outcome(lib: Any, fn: Any, build: Any, tensors: Any, dims: Any) -> Any:
    def call(*given: Any) -> Any:
        args, kwargs = build(given, lib)
        return flat(lib, fn(*args, **kwargs))

    return [np.asarray(t.detach().resolve_conj().numpy()) for t in lib.func.vmap(call, dims)(*tensors)]


@pytest.mark.parametrize("op", OPERATORS, ids=[op.name for op in OPERATORS])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_as_in_torch(op: Any, kind: str) -> None:
    if getattr(torch, kind) not in op.supported_dtypes("cpu"):
        pytest.skip("not for complex numbers")
    samples, compared = drawn(op.sample_inputs, "cpu", getattr(torch, kind), requires_grad=False), 0
    for sample in samples[:: max(1, len(samples) // 3)][:4]:
        tensors: list[Any] = []
        try:
            build = split(((sample.input, *sample.args), sample.kwargs), tensors)
        except Misfit:
            continue
        for mask in {(True,) * len(tensors), tuple(i == 0 for i in range(len(tensors)))}:
            given, dims = (
                [varied(x, op.name == "linalg.ldl_solve") if m else x for x, m in zip(tensors, mask, strict=True)],
                tuple(0 if m else None for m in mask),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    one = [rushlight.from_numpy(np.array(x.resolve_conj())) for x in tensors]
                    args, kwargs = build(one, rushlight)
                    found(op.name)(*args, **kwargs)
                    want = outcome(torch, op.op, build, given, dims)
                except Exception:
                    continue
                got = outcome(
                    rushlight,
                    found(op.name),
                    build,
                    [rushlight.from_numpy(np.array(x.resolve_conj())) for x in given],
                    dims,
                )
            compared += 1
            for g, w in zip(got, want, strict=True):
                assert g.shape == w.shape and g.dtype == w.dtype
                np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-8, equal_nan=True)
    if not compared:
        pytest.skip("PyTorch batches none of the samples")
