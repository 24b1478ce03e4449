"""Samples are distributed as they should be, and their gradients are those of the distributions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.distributions import families

import rushlight as torch
from rushlight import distributions as D
from rushlight.kernels.reference.gamma_sample import log_gamma_slope

N = 20_000


def distribution(name: str, grad: bool = False) -> Any:
    """One of the table, in float64."""
    make, parameters, _ = families.FAMILIES[name]
    return make(D, *families.tensors(torch, parameters, grad=grad))


def property_of(d: Any, name: str) -> Any:
    """A property, or None where there is none."""
    try:
        return getattr(d, name).detach().numpy()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", families.FAMILIES)
def test_moments_and_support(name: str) -> None:
    d = distribution(name)
    torch.manual_seed(1)
    x = d.sample((N,))
    assert x.shape == (N, *d.batch_shape, *d.event_shape) and not x.requires_grad
    assert bool(d.support.check(x).all())
    mean, variance = property_of(d, "mean"), property_of(d, "variance")
    if mean is None or variance is None:
        return
    light = np.isfinite(mean) & np.isfinite(variance)
    if name in ("Pareto", "StudentT", "LogNormal", "FisherSnedecor", "GeneralizedPareto", "InverseGamma", "VonMises"):
        return  # the moments of samples vary too much, or are those of angles
    off = np.abs(x.numpy().mean(0) - mean)[light] / np.sqrt(variance[light] / N)
    assert off.max(initial=0) < 5
    np.testing.assert_allclose(x.numpy().var(0)[light], variance[light], rtol=0.15)


@pytest.mark.parametrize("name", ["Normal", "Uniform", "Exponential", "Laplace", "LogNormal", "Gamma", "Chi2", "Cauchy",
                                  "HalfNormal", "HalfCauchy", "Gumbel", "Weibull", "Pareto", "MixtureSameFamily",
                                  "TransformedDistribution", "GeneralizedPareto", "Kumaraswamy", "ContinuousBernoulli",
                                  "ContinuousBernoulli logits", "InverseGamma"])  # fmt: skip
def test_samples_follow_the_cdf(name: str) -> None:
    """Kolmogorov and Smirnov's test: the largest distance is over 1.95 / sqrt(n) once in a thousand times."""
    if name in ("Gamma", "Chi2", "InverseGamma"):
        pytest.importorskip("scipy")
    d = distribution(name)
    torch.manual_seed(2)
    ranks = np.sort(d.cdf(d.sample((N,))).numpy(), 0)
    steps = np.arange(1, N + 1)[:, None] / N
    distance = np.maximum(steps - ranks, ranks - (steps - 1 / N)).max()
    assert distance < 1.95 / math.sqrt(N)


@pytest.mark.parametrize("name", ["Bernoulli", "Categorical", "Geometric", "Poisson", "Binomial", "NegativeBinomial"])
def test_samples_follow_the_probabilities(name: str) -> None:
    d = distribution(name)
    torch.manual_seed(3)
    x = d.sample((N,))
    for k in range(2):
        share = (x == k).double().mean(0)
        chance = d.log_prob(torch.full(d.batch_shape, k, dtype=x.dtype)).exp()
        assert bool(((share - chance).abs() < 4.5 * (chance * (1 - chance) / N).sqrt()).all())


MOVED = {
    "Beta": ([1.8, 0.6], [2.2, 3.5]),
    "Dirichlet": ([[1.7, 2.5, 3.0], [0.6, 0.6, 1.9]],),
    "StudentT": ([4.0, 2.0, 0.7], [0.1, 1.2, 1.5], [0.9, 1.8, 2.5]),
    "RelaxedBernoulli": (0.6, [0.4, 0.5]),
    "RelaxedOneHotCategorical": (0.8, [[0.25, 0.35, 0.4], [0.15, 0.15, 0.7]]),
}


@pytest.mark.parametrize("name", MOVED)
def test_samples_follow_the_density(name: str) -> None:
    """The mean of q / p at samples of p is 1, the integral of q, of the same family with other parameters."""
    make, parameters, _ = families.FAMILIES[name]
    p = make(D, *families.tensors(torch, parameters))
    q = make(D, *families.tensors(torch, MOVED[name]))
    torch.manual_seed(4)
    x = p.sample((N,))
    ratio = (q.log_prob(x) - p.log_prob(x)).exp()
    np.testing.assert_allclose(ratio.numpy().mean(0), 1, atol=6 * ratio.numpy().std(0).max() / math.sqrt(N) + 1e-9)


# name: (distribution of parameters, the expectation of f under it in closed form, f, parameters)
EXPECTATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "Normal": (D.Normal, lambda m, s: m**2 + s**2, torch.square, (0.5, 1.5)),
    "Uniform": (D.Uniform, lambda a, b: (a * a + a * b + b * b) / 3, torch.square, (0.5, 1.5)),
    "Exponential": (D.Exponential, lambda r: 2 / r**2, torch.square, (1.5,)),
    "Laplace": (D.Laplace, lambda m, b: m**2 + 2 * b**2, torch.square, (0.5, 1.5)),
    "LogNormal": (D.LogNormal, lambda m, s: (m + s**2 / 2).exp(), lambda x: x, (0.5, 0.5)),
    "Gumbel": (D.Gumbel, lambda m, b: m + 0.5772156649 * b, lambda x: x, (0.5, 1.5)),
    "HalfNormal": (D.HalfNormal, lambda s: s**2, torch.square, (1.5,)),
    "Gamma": (D.Gamma, lambda a, r: a * (a + 1) / r**2, torch.square, (1.5, 2.0)),
    "Gamma of a small shape": (D.Gamma, lambda a, r: a.digamma() - r.log(), torch.log, (0.3, 2.0)),
    "Gamma of a large shape": (D.Gamma, lambda a, r: a.digamma() - r.log(), torch.log, (30.0, 2.0)),
    "Chi2": (D.Chi2, lambda k: k.div(2).digamma() + math.log(2), torch.log, (3.0,)),
    "Beta": (D.Beta, lambda a, b: a * (a + 1) / ((a + b) * (a + b + 1)), torch.square, (0.7, 1.5)),
    "StudentT": (D.StudentT, lambda k, m, s: m**2 + s**2 * k / (k - 2), torch.square, (9.0, 0.5, 1.5)),
    "Weibull": (D.Weibull, lambda s, k: s * (1 + 1 / k).lgamma().exp(), lambda x: x, (1.5, 2.0)),
    "Pareto": (D.Pareto, lambda s, a: s.log() + 1 / a, torch.log, (1.5, 4.0)),
}


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_gradients_of_samples(name: str) -> None:
    """The mean gradient of f at samples is the gradient of the expectation of f."""
    make, expectation, f, values = EXPECTATIONS[name]
    torch.manual_seed(5)
    wide = [torch.full((4 * N,), v, dtype=torch.float64, requires_grad=True) for v in values]
    got = torch.autograd.grad(f(make(*wide).rsample()).sum(), wide)
    parameters = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    wanted = torch.autograd.grad(expectation(*parameters), parameters)
    for g, w in zip(got, wanted, strict=True):
        assert abs(float(g.mean()) - float(w)) < 5 * float(g.std()) / math.sqrt(4 * N) + 1e-9


def test_gradients_of_dirichlet_samples() -> None:
    a = torch.tensor([0.5, 1.0, 2.5], dtype=torch.float64).expand(4 * N, 3).clone().requires_grad_()
    torch.manual_seed(6)
    (got,) = torch.autograd.grad(D.Dirichlet(a).rsample()[:, 0].sum(), a)
    wanted = np.array([3.5, -0.5, -0.5]) / 16  # of a_0 / sum(a)
    assert (np.abs(got.numpy().mean(0) - wanted) < 5 * got.numpy().std(0) / math.sqrt(4 * N)).all()


def test_gradients_of_vectors_through_their_factor() -> None:
    factor = torch.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=torch.float64, requires_grad=True)
    d = D.MultivariateNormal(torch.zeros(2, dtype=torch.float64), scale_tril=factor)
    torch.manual_seed(7)
    (got,) = torch.autograd.grad(d.rsample((4 * N,)).square().sum() / (4 * N), factor)
    np.testing.assert_allclose(got.tril().numpy(), 2 * factor.detach().numpy(), atol=0.1)


@pytest.mark.parametrize("shape", [1e-3, 0.5, 3.0, 11.9, 12.1, 100.0, 1e6])
def test_slopes_of_gamma_samples(shape: float) -> None:
    """Against differences of quantiles, by SciPy."""
    special = pytest.importorskip("scipy.special")
    u = np.array([0.001, 0.2, 0.5, 0.8, 0.999])
    h = 1e-4 * shape
    with np.errstate(all="ignore"):  # small shapes have quantiles below all numbers
        low, log_z, high = (np.log(special.gammaincinv(a, u)) for a in (shape - h, shape, shape + h))
        wanted = (high - low) / (2 * h)
    finite = np.isfinite(wanted) & (log_z > -600)
    got = log_gamma_slope(np.full(5, shape), np.where(finite, log_z, 0.0))
    np.testing.assert_allclose(got[finite], wanted[finite], rtol=1e-5)


def test_slopes_of_the_exponential_distribution_are_known() -> None:
    """Of shape 1 and small z the slope of log z is 1 - log z - Euler's constant, up to z."""
    z = np.array([1e-9])
    np.testing.assert_allclose(log_gamma_slope(np.ones(1), np.log(z)), 1 - 0.5772156649015329 - np.log(z), rtol=1e-8)


def test_small_shapes_do_not_underflow() -> None:
    a = torch.full((1000,), 1e-4, requires_grad=True)
    torch.manual_seed(8)
    x = D.Dirichlet(a.reshape(500, 2)).rsample()
    assert bool(x.isfinite().all()) and np.allclose(x.detach().numpy().sum(-1), 1)
    x[:, 0].sum().backward()
    assert bool(a.grad.isfinite().all())


def test_second_derivatives_of_gamma_samples_are_refused() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    (g,) = torch.autograd.grad(D.Gamma(a, 1.0).rsample(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        torch.autograd.grad(g, a)


def test_straight_through_gradients_are_those_of_the_probabilities() -> None:
    logits = torch.tensor([0.1, 0.5, -0.2], requires_grad=True)
    weights = torch.tensor([1.0, 2.0, 3.0])
    x = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    assert sorted(x.tolist()) == [0.0, 0.0, 1.0]
    (got,) = torch.autograd.grad((x * weights).sum(), logits)
    (wanted,) = torch.autograd.grad((logits.softmax(-1) * weights).sum(), logits)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)


def test_samples_inside_vmap() -> None:
    loc, shape = torch.arange(3.0), torch.tensor([1.0, 2.0, 3.0])
    draw = torch.vmap(lambda m, a: D.Normal(m, 1.0).sample() + D.Gamma(a, 1.0).rsample(), randomness="different")
    assert draw(loc, shape).shape == (3,)
    scores = torch.vmap(lambda m: D.Normal(m, 1.0).log_prob(m + 1))(loc)
    np.testing.assert_allclose(scores.numpy(), D.Normal(0.0, 1.0).log_prob(torch.ones(3)).numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        torch.vmap(lambda s: D.Normal(0.0, s).mean)(loc - 1)


def test_nothing_is_checked_on_demand() -> None:
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)


def test_subclasses_and_registered_divergences() -> None:
    class Unit(D.Normal):
        def __init__(self, loc: Any) -> None:
            super().__init__(loc, 1.0)

    assert D.kl_divergence(Unit(1.0), D.Normal(0.0, 1.0)) == 0.5  # that of the base class
    with pytest.raises(NotImplementedError, match=r"Unit, a subclass of Normal .* needs an expand of its own"):
        Unit(0.0).expand([2])
    D.register_kl(Unit, Unit)(lambda p, q: "ours")
    assert D.kl_divergence(Unit(1.0), Unit(0.0)) == "ours"
    with pytest.raises(TypeError, match="Expected type_p to be a class"):
        D.register_kl(3, Unit)  # type: ignore[arg-type]


def test_sample_n_warns() -> None:
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)
