"""Special functions against Python's own, identities between them, and constants computed in many digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch

X = np.concatenate([np.linspace(-6, 6, 241), [1e-300, -1e-10, 25.0, 30.0]])
NEAR_ONE = 1 + np.linspace(-1e-6, 1e-6, 9)
POSITIVE = np.concatenate([np.linspace(0.01, 20, 500), 10.0 ** np.arange(-300, 300, 25), NEAR_ONE])


def close(got: Any, want: Any, rtol: float = 1e-14, atol: float = 0) -> None:
    np.testing.assert_allclose(got.numpy() if isinstance(got, torch.Tensor) else got, want, rtol=rtol, atol=atol)


def value(fn: Any, x: Any) -> Any:
    return fn(torch.from_numpy(np.asarray(x, np.float64))).numpy()


def test_error_function() -> None:
    close(value(torch.erf, X), [math.erf(x) for x in X], rtol=4e-15)
    close(value(torch.erfc, X), [math.erfc(x) for x in X], rtol=4e-15, atol=1e-320)


def test_inverses() -> None:
    y = np.concatenate([np.linspace(-0.999, 0.999, 101), 1 - 10.0 ** -np.arange(2, 15)])
    close(value(torch.erf, value(torch.erfinv, y)), y, rtol=2e-15)
    p = np.concatenate([np.linspace(0.001, 0.999, 101), 10.0 ** -np.arange(2.0, 300, 10)])
    close(value(torch.special.ndtr, value(torch.special.ndtri, p)), p, rtol=1e-12)
    assert value(torch.erfinv, [-1, 1]).tolist() == [-math.inf, math.inf]
    assert value(torch.special.ndtri, [0, 1]).tolist() == [-math.inf, math.inf]
    assert np.isnan(value(torch.erfinv, [2.0])).all()


def test_tails_of_the_normal_distribution() -> None:
    close(value(torch.special.ndtr, [-10.0, 0.0, 10.0]), [7.61985302416052606e-24, 0.5, 1], rtol=1e-13)
    close(
        value(torch.special.log_ndtr, [-10.0, -100.0, 3.0]),
        [-53.2312851505124706, -5005.52420869420509, -0.0013508099647481938],
        rtol=1e-13,
    )
    close(
        value(torch.special.erfcx, [-2.0, 0.0, 5.0, 1e3]),
        [108.940904389977972, 1, 0.110704637733068626, 0.000564189301453387654],
        rtol=1e-13,
    )


def test_gamma() -> None:
    want = [math.lgamma(x) for x in POSITIVE]
    close(value(torch.lgamma, POSITIVE), want, rtol=1e-13, atol=1e-15)
    below = np.linspace(-9.9, -0.1, 99)[np.arange(99) % 10 != 9]
    close(value(torch.lgamma, below), [math.lgamma(x) for x in below], rtol=1e-11)
    assert value(torch.lgamma, [0, -1, -2, math.inf, -math.inf]).tolist() == [math.inf] * 5


def test_digamma_and_its_derivatives() -> None:
    euler = 0.57721566490153286
    close(value(torch.digamma, [1, 2, 0.5]), [-euler, 1 - euler, -euler - 2 * math.log(2)], rtol=1e-14)
    x = np.linspace(-3.3, 9, 57)
    close(value(torch.digamma, x + 1), value(torch.digamma, x) + 1 / x, rtol=1e-10, atol=1e-12)
    close(value(lambda t: torch.polygamma(1, t), [1.0, 0.5]), [math.pi**2 / 6, math.pi**2 / 2], rtol=1e-14)
    close(value(lambda t: torch.polygamma(2, t), [1.0]), [-2 * 1.2020569031595942854], rtol=1e-14)
    assert torch.digamma(torch.tensor([0.0, -0.0])).tolist() == [-math.inf, math.inf]
    assert torch.isnan(torch.digamma(torch.tensor([-1.0, -math.inf]))).all()
    assert torch.equal(torch.polygamma(0, torch.tensor([2.5])), torch.digamma(torch.tensor([2.5])))


def test_zeta() -> None:
    x = torch.tensor([2.0, 4.0, 1.0, 0.5], dtype=torch.float64)
    got = torch.special.zeta(x, 1.0).tolist()
    assert got[:3] == [pytest.approx(math.pi**2 / 6, rel=1e-14), pytest.approx(math.pi**4 / 90, rel=1e-14), math.inf]
    assert math.isnan(got[3])
    q = torch.tensor([-0.5, 0.5, 7.0], dtype=torch.float64)
    close(torch.special.zeta(3.0, q).numpy() - torch.special.zeta(3.0, q + 1).numpy(), q.numpy() ** -3.0, rtol=1e-9)


def test_multivariate_gamma() -> None:
    x = 3.5
    want = 0.5 * math.log(math.pi) + math.lgamma(x) + math.lgamma(x - 0.5)
    assert torch.mvlgamma(torch.tensor([x], dtype=torch.float64), 2).item() == pytest.approx(want, rel=1e-14)


def test_modified_bessel_functions() -> None:
    x = [0.0, 0.5, 8.0, 8.5, 100.0]
    close(value(torch.i0, x), [1, 1.06348337074132352, 427.564115721804785, 683.161926990115609,
                                                    1.07375170713107382e42], rtol=1e-14)  # fmt: skip
    close(value(torch.special.i1, x), [0, 0.257894305390896316, 399.873136782560098, 641.619902540066761,
                                                            1.06836939033816248e42], rtol=1e-14)  # fmt: skip
    close(value(torch.special.i0e, X), value(torch.i0, X) * np.exp(-np.abs(X)), rtol=1e-13)
    close(value(torch.special.i1e, -X), -value(torch.special.i1, X) * np.exp(-np.abs(X)), rtol=1e-13)


def test_entropy_and_products_with_logarithms() -> None:
    got = value(torch.special.entr, [0.0, 1.0, math.e, -1.0]).tolist()
    assert got == [0, 0, pytest.approx(-math.e), -math.inf]
    zero = torch.tensor([0.0, 0.0, 2.0])
    assert torch.xlogy(zero, torch.tensor([0.0, -1.0, 1.0])).tolist() == [0, 0, 0]
    assert math.isnan(torch.xlogy(torch.tensor(0.0), torch.tensor(math.nan)))
    assert torch.special.xlog1py(2.0, torch.tensor([0.0])).item() == 0


def test_functions_by_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    x = np.linspace(0.1, 9, 50)
    for name, twin in (("bessel_j0", "j0"), ("bessel_y1", "y1"), ("modified_bessel_k0", "k0"),
                       ("scaled_modified_bessel_k1", "k1e")):  # fmt: skip
        np.testing.assert_array_equal(value(getattr(torch.special, name), x), getattr(special, twin)(x))
    np.testing.assert_array_equal(value(torch.special.airy_ai, x), special.airy(x)[0])
    a = torch.from_numpy(x)
    close((torch.igamma(a, a) + torch.igammac(a, a)).numpy(), 1)


def test_missing_scipy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r"special.bessel_j0\(\) needs SciPy: pip install 'rushlight\[scipy\]"):
        torch.special.bessel_j0(torch.tensor([1.0]))


@pytest.mark.parametrize("name", ["chebyshev_polynomial_t", "hermite_polynomial_h", "hermite_polynomial_he",
                                  "laguerre_polynomial_l", "legendre_polynomial_p"])  # fmt: skip
def test_orthogonal_polynomials(name: str) -> None:
    of = np.polynomial
    families = {"chebyshev_polynomial_t": of.chebyshev.chebval, "hermite_polynomial_h": of.hermite.hermval,
                "hermite_polynomial_he": of.hermite_e.hermeval, "laguerre_polynomial_l": of.laguerre.lagval,
                "legendre_polynomial_p": of.legendre.legval}  # fmt: skip
    family = families[name]
    x = np.linspace(-1.5, 1.5, 7)
    fn = getattr(torch.special, name)
    degrees = np.arange(8)
    want = np.array([family(x, [0] * n + [1]) for n in degrees])
    close(fn(torch.from_numpy(x), torch.from_numpy(degrees[:, None].astype(float))).numpy(), want, atol=1e-12)
    close(fn(torch.from_numpy(x), 5).numpy(), want[5], atol=1e-12)
    assert fn(2.0, torch.tensor([-1.0])).item() == 0


def test_chebyshev_kinds() -> None:
    t = np.linspace(0.1, 3, 9)
    x = torch.from_numpy(np.cos(t))
    close(torch.special.chebyshev_polynomial_u(x, 4), np.sin(5 * t) / np.sin(t), rtol=1e-9, atol=1e-12)
    close(torch.special.chebyshev_polynomial_v(x, 4), np.cos(4.5 * t) / np.cos(t / 2), rtol=1e-9, atol=1e-12)
    close(torch.special.chebyshev_polynomial_w(x, 4), np.sin(4.5 * t) / np.sin(t / 2), rtol=1e-9, atol=1e-12)
    close(torch.special.shifted_chebyshev_polynomial_t(x, 3).numpy(),
                               torch.special.chebyshev_polynomial_t(2 * x - 1, 3).numpy(), rtol=1e-12)  # fmt: skip


def test_names_of_the_namespace() -> None:
    for name, other in (("special.expit", torch.sigmoid), ("special.gammaln", torch.lgamma), ("special.psi", torch.digamma),
                        ("arctan2", torch.atan2), ("absolute", torch.abs), ("fix", torch.trunc), ("clip", torch.clamp)):  # fmt: skip
        found = torch.special if name.startswith("special.") else torch
        assert getattr(found, name.removeprefix("special.")).__wrapped__ is other.__wrapped__
    for name in ("multiply", "subtract", "divide", "negative", "greater", "greater_equal", "less", "less_equal",
                 "not_equal", "arccos", "arcsinh", "arctan"):  # fmt: skip
        assert callable(getattr(torch, name))
        assert callable(getattr(torch.Tensor, name))
        assert callable(getattr(torch.Tensor, f"{name}_"))
