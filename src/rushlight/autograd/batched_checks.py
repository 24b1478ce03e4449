"""gradcheck's comparison of vmap with a loop: of backwards, and of forward-mode derivatives."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.autograd import forward_ad
from rushlight.autograd.gradcheck_options import GradcheckError
from rushlight.autograd.run import grad
from rushlight.func.vmap import vmap
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.autograd.jacobian_checks import Check
    from rushlight.basics.arrays import Array

ROWS = 2


def rows_like(check: Any, array: Any) -> Array:
    """Several random arrays like `array`, stacked."""
    return np.stack([check.random_like(array) for _ in range(ROWS)])


def agree(batched: Tensor, rows: list[Any]) -> bool:
    """Whether stacked results are those of a loop."""
    missing = [r is None for r in rows]
    if batched is None or all(missing):
        return all(r is None or not np.any(r._array) for r in rows) and (batched is None or not np.any(batched._array))
    expected = [np.zeros(batched._array.shape[1:]) if r is None else r._array for r in rows]
    return bool(np.allclose(batched._array, np.stack(expected)))


def backward(check: Any) -> None:
    """Raise GradcheckError unless a backward under vmap gives what a loop gives."""
    targets = [check.inputs[i] for i in check.checked]
    for k, out in check.outputs:
        vectors = rows_like(check, out._array)
        rows = [check.vjp([out], [v]) for v in vectors]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a loop is used is no matter here
                found = grad(
                    [out], targets, [wrap(vectors)], retain_graph=True, allow_unused=True, is_grads_batched=True
                )
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\nOutput {k}: the backward does not run "
                                 "inside vmap. It was called by check_batched_grad=True.") from error  # fmt: skip
        for n, i in enumerate(check.checked):
            if not agree(found[n], [r[n] for r in rows]):
                raise GradcheckError(
                    f"For output {k} and input {i}:\n\ngradcheck or gradgradcheck failed while testing batched gradient "
                    f"computation (check_batched_grad=True): vmap of the backward gives\n{found[n]}\nand a loop over the "
                    f"vectors\n{[r[n] for r in rows]}"
                )


def forward(check: Check) -> None:
    """Raise GradcheckError unless forward mode under vmap gives what a loop gives."""
    for i in check.checked:
        tangents = rows_like(check, check.inputs[i]._array)

        def one(t: Tensor, i: int = i) -> tuple[Tensor, ...]:
            with forward_ad.dual_level():
                inputs = [x.detach() if isinstance(x, Tensor) else x for x in check.inputs]
                inputs[i] = forward_ad.make_dual(inputs[i].detach(), t)
                found = check.called(inputs)
                pairs = [forward_ad.unpack_dual(found[k]) for k in check.numbers]
                return tuple(p * 0 if t is None else t for p, t in pairs)

        rows = [check.jvp(i, t) for t in tangents]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = vmap(one)(wrap(tangents))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients with forward mode, got: {error}\nInput {i}: it does not "
                                 "run inside vmap. It was called by check_batched_forward_grad=True.") from error  # fmt: skip
        for n, k in enumerate(check.numbers):
            if not agree(found[n], [wrap(r[n]) for r in rows]):
                raise GradcheckError(
                    f"For output {k} and input {i}:\n\ngradcheck failed while testing batched gradient computation with "
                    f"forward mode (check_batched_forward_grad=True): vmap gives\n{found[n]}\nand a loop over the tangents\n"
                    f"{[wrap(r[n]) for r in rows]}"
                )
