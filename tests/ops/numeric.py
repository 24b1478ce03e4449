"""Derivatives by differences, to hold those of operators against."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight as torch


def cotangent(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Fixed random numbers of a shape and NumPy dtype."""
    draw = np.random.default_rng(seed)
    value = np.asarray(draw.standard_normal(shape))
    if np.dtype(dtype).kind == "c":
        value = np.asarray(value + 1j * draw.standard_normal(shape))
    return value.astype(dtype)


def outputs_of(result: Any) -> list[Any]:
    """The floating-point and complex tensors among the results."""
    results = result if isinstance(result, (tuple, list)) else [result]
    return [t for t in results if isinstance(t, torch.Tensor) and t.numpy(force=True).dtype.kind in "fc"]


def loss(fn: Any, arrays: list[np.ndarray[Any, Any]]) -> float:
    """Real inner product of the outputs with fixed random numbers."""
    total = 0.0
    for i, out in enumerate(outputs_of(fn(*(torch.from_numpy(a.copy()) for a in arrays)))):
        value = out.numpy(force=True)
        total += float(np.real(np.vdot(value, cotangent(value.shape, value.dtype, i))))
    return total


def differences(fn: Any, arrays: list[np.ndarray[Any, Any]], eps: float) -> list[np.ndarray[Any, Any]]:
    """Gradients of `loss` by central differences: of complex arrays d/dRe + i d/dIm."""
    found = []
    for k, a in enumerate(arrays):
        grad = np.zeros(a.shape, a.dtype)
        for index in np.ndindex(a.shape):
            for step in (eps, 1j * eps) if a.dtype.kind == "c" else (eps,):
                ends = []
                for sign in (1, -1):
                    moved = a.copy()
                    moved[index] += sign * step
                    ends.append(loss(fn, [*arrays[:k], moved, *arrays[k + 1 :]]))
                grad[index] += (ends[0] - ends[1]) / (2 * eps) * (1j if isinstance(step, complex) else 1)
        found.append(grad)
    return found


def gradients(fn: Any, arrays: list[Any], create_graph: bool = False) -> list[Any]:
    """Gradients of `loss` by the engine, as tensors; `arrays` may be tensors that require grad."""
    leaves = [a if isinstance(a, torch.Tensor) else torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    outs = outputs_of(fn(*leaves))
    seeds = [torch.from_numpy(cotangent(tuple(o.shape), o.numpy(force=True).dtype, i)) for i, o in enumerate(outs)]
    roots = [(o, s) for o, s in zip(outs, seeds, strict=True) if o.requires_grad]
    if not roots:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad([o for o, _ in roots], leaves, [s for _, s in roots], create_graph=create_graph,
                                allow_unused=True)  # fmt: skip
    return [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)]


def check_gradients(fn: Any, *arrays: Any, second: bool = True, eps: float = 1e-6, tol: float = 1e-6) -> None:
    """Compare first and, if `second`, second derivatives of `fn` with differences."""
    given = [np.asarray(a) for a in arrays]
    for g, want in zip(gradients(fn, given), differences(fn, given, eps), strict=True):
        np.testing.assert_allclose(g.numpy(force=True), want, rtol=tol, atol=tol)
    if second:

        def first_order(*tensors: Any) -> Any:
            leaves = [t if t.requires_grad else t.requires_grad_() for t in tensors]
            return gradients(fn, leaves, create_graph=True)

        for g, want in zip(gradients(first_order, given), differences(first_order, given, eps), strict=True):
            np.testing.assert_allclose(g.numpy(force=True), want, rtol=tol * 10, atol=tol * 10)
