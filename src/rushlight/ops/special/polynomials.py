"""Orthogonal polynomials of torch.special: Chebyshev, Hermite, Laguerre, Legendre, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.dispatch.declare import Array
from rushlight.dispatch.registry import elementwise
from rushlight.tensor import Tensor


def recurrence(first: Callable[..., Any], step: Callable[..., Any], shifted: bool = False) -> Callable[..., Any]:
    """The forward of a family of polynomials: p0 = 1, p1 = first(x), p_(k+1) = step(k, x, p_k, p_(k-1))."""

    def forward(input: Array, n: Array) -> Array:
        x, order = np.broadcast_arrays(np.asarray(input), np.trunc(n))
        x = 2 * x - 1 if shifted else x
        before, now = np.ones(x.shape, x.dtype), np.asarray(first(x), x.dtype)
        out = np.where(order < 0, x.dtype.type(0), np.where(order == 0, before, now))
        for k in range(1, int(order.max(initial=0))):
            before, now = now, step(k, x, now, before)
            np.copyto(out, now, where=order == k + 1)
        return out

    return forward


def _chebyshev(k: int, x: Array, p: Array, q: Array) -> Array:
    return 2 * x * p - q


def _legendre(k: int, x: Array, p: Array, q: Array) -> Array:
    return ((2 * k + 1) * x * p - k * q) / (k + 1)


FAMILIES: dict[str, tuple[str, Any]] = {
    "chebyshev_polynomial_t": ("Chebyshev polynomials of the first kind", recurrence(lambda x: x, _chebyshev)),
    "chebyshev_polynomial_u": ("Chebyshev polynomials of the second kind", recurrence(lambda x: 2 * x, _chebyshev)),
    "chebyshev_polynomial_v": ("Chebyshev polynomials of the third kind", recurrence(lambda x: 2 * x - 1, _chebyshev)),
    "chebyshev_polynomial_w": ("Chebyshev polynomials of the fourth kind", recurrence(lambda x: 2 * x + 1, _chebyshev)),
    "shifted_chebyshev_polynomial_t": ("Chebyshev polynomials of the first kind at 2 input - 1",
                                       recurrence(lambda x: x, _chebyshev, True)),
    "shifted_chebyshev_polynomial_u": ("Chebyshev polynomials of the second kind at 2 input - 1",
                                       recurrence(lambda x: 2 * x, _chebyshev, True)),
    "shifted_chebyshev_polynomial_v": ("Chebyshev polynomials of the third kind at 2 input - 1",
                                       recurrence(lambda x: 2 * x - 1, _chebyshev, True)),
    "shifted_chebyshev_polynomial_w": ("Chebyshev polynomials of the fourth kind at 2 input - 1",
                                       recurrence(lambda x: 2 * x + 1, _chebyshev, True)),
    "hermite_polynomial_h": ("Physicist's Hermite polynomials",
                             recurrence(lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q)),
    "hermite_polynomial_he": ("Probabilist's Hermite polynomials",
                              recurrence(lambda x: x, lambda k, x, p, q: x * p - k * q)),
    "laguerre_polynomial_l": ("Laguerre polynomials",
                              recurrence(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))),
    "legendre_polynomial_p": ("Legendre polynomials", recurrence(lambda x: x, _legendre)),
}  # fmt: skip


def _publish(name: str, title: str, compute: Callable[..., Any]) -> None:
    def forward(input: Array, n: Array) -> Array:
        return compute(input, n)

    def refused(g: Array | Tensor) -> Any:
        raise NotImplementedError(f"the derivative of special.{name} is not implemented: detach() its arguments where "
                                  "they are constants")  # fmt: skip

    forward.__name__ = name
    forward.__doc__ = f"{title}, of degree `n` (0 below 0), broadcast; either may be a number.  (*), (*) -> (*)"
    elementwise(
        ns="special", method=False, inplace=False, refuse="c", cut=True, grads={"input": refused, "n": refused}
    )(forward)


for _name, (_title, _compute) in FAMILIES.items():
    _publish(_name, _title, _compute)
