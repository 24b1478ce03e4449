"""Two older functions of `rushlight.autograd.gradcheck`, which programs still import: Jacobians by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.autograd.gradcheck_options import Options
from rushlight.autograd.jacobian_checks import Check, as_tuple
from rushlight.basics.caller import warn
from rushlight.tensor import Tensor, wrap


def told(name: str, grad_out: float) -> None:
    """Warn that a function is none to use, and refuse gradients other than 1.  Raises ValueError."""
    warn(
        f"`{name}` was part of PyTorch's private API and is not meant to be exposed: use `gradcheck`, or `func.jacrev`",
        FutureWarning,
    )
    if grad_out != 1.0:
        raise ValueError(f"{name}: Expected grad_out to be 1.0, got {grad_out}: it is not used any more")


def joined(parts: dict[str, Any]) -> Tensor:
    """One Jacobian of those of a real output, or refused."""
    if "" not in parts:
        raise NotImplementedError("Jacobians of complex outputs: use `func.jacrev` of their parts")
    return wrap(np.ascontiguousarray(parts[""]))


def numerical(
    fn: Callable[..., Any], inputs: tuple[Any, ...], target: object, eps: float, grad_out: float
) -> tuple[Tensor, ...]:
    """The Jacobians of the first output by finite differences."""
    told("get_numerical_jacobian", grad_out)
    inputs, wanted = as_tuple(inputs), as_tuple(inputs if target is None else target)
    check = Check(lambda *xs: fn(xs), inputs, Options()._replace(eps=eps))
    check.outputs = [(0, check.called()[0])]
    numbers = [i for i, x in enumerate(inputs) if any(x is t for t in wanted) and x.is_floating_point()]
    return tuple(joined(check.numerical(i)[0]) for i in numbers)


def analytical(
    inputs: tuple[Any, ...], output: Tensor, nondet_tol: float, grad_out: float
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of an output by backward, twice, and whether they are equal."""
    told("get_analytical_jacobian", grad_out)
    check = Check(lambda *xs: output, as_tuple(inputs), Options())
    check.outputs = [(0, output)]
    first, second = ([joined(parts) for parts in check.backward(0)] for _ in range(2))
    reentrant = all(float((a - b).abs().max()) <= nondet_tol for a, b in zip(first, second, strict=True) if a.numel())
    return tuple(first), reentrant, True, True


def _get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, outputs: Any = None, target: Any = None, eps: float = 1e-3
) -> list[tuple[Tensor, ...]]:
    """For each input, or each of `target`: the Jacobians of all outputs of `fn(*inputs)` by central differences.

    Each is of (elements of the input, elements of the output); of a complex input it holds the derivative along the real axis
    plus i times that along the imaginary axis.
    """
    given = as_tuple(inputs)
    wanted = [t for t in as_tuple(given if target is None else target) if isinstance(t, Tensor)]
    return [
        _by_differences(lambda: as_tuple(fn(*given)), t, eps) for t in wanted if t.is_floating_point() or t.is_complex()
    ]


def _by_differences(called: Callable[[], tuple[Any, ...]], x: Tensor, eps: float) -> tuple[Tensor, ...]:
    """The Jacobians of all that is returned, by each element of `x`, whose values are changed for it and put back."""
    values, axes = x.detach(), (1.0, 1j) if x.is_complex() else (1.0,)
    rows: list[list[Any]] = []
    for index in np.ndindex(*x.shape):
        former, columns = values[index].clone(), []
        for axis in axes:
            ends = []
            for sign in (1, -1):
                values[index] = former + sign * eps * axis
                ends.append([out.detach().clone().reshape(-1) for out in called()])
            values[index] = former
            columns.append([(up - down) * axis / (2 * eps) for up, down in zip(*ends, strict=True)])
        rows.append([sum(parts[1:], parts[0]) for parts in zip(*columns, strict=True)])
    return tuple(wrap(np.stack([r._array for r in column])) for column in zip(*rows, strict=True))
