"""Fits the polynomials of ``kernels/native/vecmath.h`` and ``kernels/reference/special.py``, and the series of special functions.

Run ``python tools/fit_polynomials.py`` (needs mpmath); it prints coefficients, lowest power first, and the
largest relative error of each fit in exact arithmetic.  The method is the plain one: interpolation in
Chebyshev nodes, at 50 digits, of the function divided by its weight, then rounding to the type.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np

mp.mp.dps = 50
Real = Callable[[mp.mpf], mp.mpf]


def interpolate(f: Real, low: float, high: float, degree: int) -> list[mp.mpf]:
    """Coefficients, lowest power first, of the polynomial through ``degree + 1`` Chebyshev nodes."""
    count = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    matrix = mp.matrix(count, count)
    for i, node in enumerate(nodes):
        for j in range(count):
            matrix[i, j] = node**j
    return list(mp.lu_solve(matrix, mp.matrix([f(node) for node in nodes])))


def show(
    name: str,
    f: Real,
    low: float,
    high: float,
    degree: int,
    whole: Callable[[mp.mpf, mp.mpf], mp.mpf],
    kind: type = np.float32,
) -> None:
    """Print the fit of ``f`` and the error of ``whole(x, fit(x))`` (already relative)."""
    rounded = [float(kind(float(c))) for c in interpolate(f, low, high, degree)]
    points = np.linspace(low, high, 2001)
    worst = max(abs(whole(mp.mpf(x), mp.polyval([mp.mpf(c) for c in rounded[::-1]], mp.mpf(x)))) for x in points)
    print(f"{name}: relative error {float(worst):.2e}")
    form = "{:.9e}f" if kind is np.float32 else "{:.17e}"
    print("  " + ", ".join(form.format(c) for c in rounded))


def show_series(name: str, f: Real, terms: int) -> None:
    """Print a Chebyshev series of ``f`` on [-1, 1], from its values in twice as many nodes as any series here has terms."""
    count = 64
    angles = [mp.pi * (2 * k + 1) / (2 * count) for k in range(count)]
    values = [f(mp.cos(angle)) for angle in angles]
    sums = [mp.fdot(values, [mp.cos(j * angle) for angle in angles]) * 2 / count for j in range(terms)]
    print(f"{name}:")
    print("  " + ", ".join(repr(float(c)) for c in [sums[0] / 2, *sums[1:]]))


def scaled_tail(x: mp.mpf) -> mp.mpf:
    """e^(x^2) erfc(x); far out by its continued fraction, in the tail of the incomplete gamma function."""
    return mp.exp(x * x) * mp.gammainc(mp.mpf(1) / 2, x * x, mp.inf) / mp.sqrt(mp.pi)


def scaled_tail_slope(x: mp.mpf) -> mp.mpf:
    """The derivative of that, which cancels."""
    with mp.workdps(90):
        return 2 * x * scaled_tail(x) - 2 / mp.sqrt(mp.pi)


def series() -> None:
    """Those of kernels/reference/normal.py, gamma.py and bessel.py and of their native twins."""

    def far(s: mp.mpf) -> mp.mpf:
        return mp.mpf(15) / 4 * (1 + s) / (1 - s)

    show_series(
        "(1 + 2 x) erfcx(x) in s = (x - 3.75) / (x + 3.75)", lambda s: (1 + 2 * far(s)) * scaled_tail(far(s)), 27
    )
    show_series("-(1 + 2 x)^2 times the slope of erfcx, in s",
                lambda s: -((1 + 2 * far(s)) ** 2) * scaled_tail_slope(far(s)), 29)  # fmt: skip
    show_series("lgamma(2 + z) / z in 2 z", lambda t: mp.loggamma(2 + t / 2) / (t / 2), 20)
    for order in (0, 1):
        show_series(f"sqrt(x) e^-x I_{order}(x) in 16 / x - 1", lambda t, order=order: mp.sqrt(16 / (t + 1)) *  # type: ignore[misc]
                    mp.exp(-16 / (t + 1)) * mp.besseli(order, 16 / (t + 1)), 27)  # fmt: skip


def main() -> None:
    series()
    tiny = 1e-6
    half = 0.3467
    show(
        "exp, (e^r - 1 - r) / r^2",
        lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-9 else mp.mpf(1) / 2,
        -half,
        half,
        4,
        lambda r, p: (1 + r + r * r * p) / mp.exp(r) - 1,
    )
    eighth = float(mp.pi / 4) ** 2 * 1.001
    show("sin, (sin x - x) / x^3 in z = x^2", lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, tiny, eighth, 3,
         lambda z, p: (1 + z * p) * mp.sqrt(z) / mp.sin(mp.sqrt(z)) - 1)  # fmt: skip
    show("cos, (cos x - 1 + x^2 / 2) / x^4 in z = x^2", lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, tiny, eighth, 2,
         lambda z, p: (1 - z / 2 + z * z * p) / mp.cos(mp.sqrt(z)) - 1)  # fmt: skip
    show(
        "tanh, (tanh x - x) / x^3 in z = x^2",
        lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        tiny,
        0.36,
        5,
        lambda z, p: (1 + z * p) * mp.sqrt(z) / mp.tanh(mp.sqrt(z)) - 1,
    )
    show(
        "erf, erf(x) / x - 1 in z = x^2",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        tiny,
        0.86,
        5,
        lambda z, p: (1 + p) * mp.sqrt(z) / mp.erf(mp.sqrt(z)) - 1,
    )
    show(
        "erf, -log(erfc t) / t - 1",
        lambda t: -mp.log(mp.erfc(t)) / t - 1,
        0.92,
        4.0,
        7,
        lambda t, p: (1 - mp.exp(-t - t * p)) / mp.erf(t) - 1,
    )
    show(
        "log, log(m) series in z = s^2, s = (m - 1) / (m + 1)",
        lambda z: (mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) / mp.sqrt(z) - 2) / z,
        tiny,
        0.0295,
        2,
        lambda z, p: (2 + z * p) * mp.sqrt(z) / mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) - 1,
    )
    show(
        "normal distribution, (Phi(x) - 1/2) / x in u = 2 x^2 / 5.5^2 - 1 (absolute error)",
        lambda u: mp.erf(5.5 * mp.sqrt((u + 1) / 2) / mp.sqrt(2)) / (11 * mp.sqrt((u + 1) / 2)),
        -1.0,
        1.0,
        15,
        lambda u, p: 5.5 * mp.sqrt((u + 1) / 2) * p - mp.erf(5.5 * mp.sqrt((u + 1) / 2) / mp.sqrt(2)) / 2,
    )
    show(
        "float64 erf, erf(x) / x - 1 in z = x^2",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        1e-12,
        1.0,
        13,
        lambda z, p: (1 + p) * mp.sqrt(z) / mp.erf(mp.sqrt(z)) - 1,
        np.float64,
    )
    show(
        "float64 erf, -log(erfc t) in u = (t - 3.5) / 2.5",
        lambda u: -mp.log(mp.erfc(3.5 + 2.5 * u)),
        -1.0,
        1.0,
        28,
        lambda u, p: (1 - mp.exp(-p)) / mp.erf(3.5 + 2.5 * u) - 1,
        np.float64,
    )


if __name__ == "__main__":
    main()
