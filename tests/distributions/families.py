"""Families with parameters, made alike with rushlight and with PyTorch."""

from collections.abc import Callable
from typing import Any

PROBS = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]
LOGITS = [[1.0, 2.0, 3.0], [0.0, 0.5, 1.0]]
FACTOR = [[1.0, 0.0], [0.5, 2.0]]
COVARIANCE = [[1.0, 0.5], [0.5, 4.25]]
LOC, SCALE = [0.3, -1.0], [1.5, 0.7]

# name: (make(distributions, parameters as tensors), parameters, others for divergences or None)
Family = tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...] | None]


def plain(name: str) -> Callable[..., Any]:
    """A family by its positional parameters."""
    return lambda d, *p: getattr(d, name)(*p)


def logits(name: str) -> Callable[..., Any]:
    """A family by its logits."""
    return lambda d, x: getattr(d, name)(logits=x)


FAMILIES: dict[str, Family] = {
    "Normal": (plain("Normal"), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "Categorical": (plain("Categorical"), (PROBS,), ([[0.3, 0.3, 0.4]],)),
    "Categorical logits": (logits("Categorical"), (LOGITS,), ([[0.1, -0.3, 0.4]],)),
    "Bernoulli": (plain("Bernoulli"), ([0.3, 0.8],), ([0.5, 0.6],)),
    "Bernoulli logits": (logits("Bernoulli"), ([0.3, -2.0],), ([0.5, 0.6],)),
    "Uniform": (plain("Uniform"), ([0.0, -1.0], [1.0, 2.0]), ([-1.0, -1.5], [2.0, 2.5])),
    "Independent": (lambda d, m, s: d.Independent(d.Normal(m, s), 1), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "MultivariateNormal": (plain("MultivariateNormal"), (LOC, COVARIANCE), ([0.1, 0.2], [[2.0, 0.1], [0.1, 1.0]])),
    "MultivariateNormal precision": (
        lambda d, m, p: d.MultivariateNormal(m, precision_matrix=p), ([LOC, [1.0, 2.0], [0.0, 0.0]], COVARIANCE),
        ([0.1, 0.2], [[2.0, 0.1], [0.1, 1.0]])),
    "MultivariateNormal factor": (
        lambda d, m, f: d.MultivariateNormal(m, scale_tril=f), (LOC, [FACTOR, [[2.0, 0.0], [1.0, 1.0]]]),
        ([0.1, 0.2], [[1.0, 0.0], [0.1, 1.0]])),
    "OneHotCategorical": (plain("OneHotCategorical"), (PROBS,), ([[0.3, 0.3, 0.4]],)),
    "OneHotCategoricalStraightThrough": (logits("OneHotCategoricalStraightThrough"), (LOGITS,), ([[0.3, 0.3, 0.4]],)),
    "Exponential": (plain("Exponential"), ([1.0, 3.0],), ([2.0, 0.5],)),
    "Laplace": (plain("Laplace"), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "LogNormal": (plain("LogNormal"), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "Geometric": (plain("Geometric"), ([0.3, 0.8],), ([0.5, 0.6],)),
    "Geometric logits": (logits("Geometric"), ([0.3, -0.8],), ([0.5, 0.6],)),
    "Poisson": (plain("Poisson"), ([2.0, 0.5],), ([1.0, 3.0],)),
    "Beta": (plain("Beta"), ([1.5, 0.5], [2.0, 3.0]), ([1.0, 2.0], [0.7, 2.0])),
    "Gamma": (plain("Gamma"), ([1.5, 0.5], [2.0, 3.0]), ([1.0, 2.0], [0.7, 2.0])),
    "Dirichlet": (plain("Dirichlet"), ([[1.5, 2.0, 3.0], [0.5, 0.6, 1.7]],), ([[1.0, 2.0, 1.0]],)),
    "Chi2": (plain("Chi2"), ([3.0, 1.5],), ([2.0, 0.5],)),
    "StudentT": (plain("StudentT"), ([3.0, 1.5, 0.5], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), None),
    "Cauchy": (plain("Cauchy"), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "HalfNormal": (plain("HalfNormal"), (SCALE,), ([1.0, 2.0],)),
    "HalfCauchy": (plain("HalfCauchy"), (SCALE,), None),
    "Gumbel": (plain("Gumbel"), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "Binomial": (lambda d, p: d.Binomial(5, p), ([0.3, 0.8],), ([0.5, 0.6],)),
    "Binomial logits": (lambda d, x: d.Binomial(5, logits=x), ([0.3, -0.8],), ([0.5, 0.6],)),
    "Multinomial": (lambda d, p: d.Multinomial(5, p), (PROBS,), None),
    "NegativeBinomial": (lambda d, p: d.NegativeBinomial(3, p), ([0.3, 0.6],), None),
    "Weibull": (plain("Weibull"), (SCALE, [2.0, 1.5]), None),
    "Pareto": (plain("Pareto"), (SCALE, [3.0, 1.5]), None),
    "MixtureSameFamily": (
        lambda d, w, m: d.MixtureSameFamily(d.Categorical(w), d.Normal(m, 0.5)),
        ([[0.3, 0.7], [0.5, 0.5]], [[0.0, 1.0], [2.0, 3.0]]), None),
    "MixtureSameFamily of vectors": (
        lambda d, w, m: d.MixtureSameFamily(d.Categorical(w), d.Independent(d.Normal(m, 0.5), 1)),
        ([0.3, 0.7], [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]), None),
    "TransformedDistribution": (
        lambda d, m, s: d.TransformedDistribution(d.Normal(m, s), [d.AffineTransform(1.0, -2.0), d.TanhTransform()]),
        (LOC, [0.5, 0.3]), None),
    "TransformedDistribution of vectors": (
        lambda d, m, s: d.TransformedDistribution(d.Normal(m, s), [d.StickBreakingTransform()]), (LOC, SCALE), None),
    "TransformedDistribution that broadcasts": (
        lambda d, m, a, b: d.TransformedDistribution(d.Normal(m, 0.5), [d.AffineTransform(a, b), d.SigmoidTransform()]),
        (0.2, [1.0, 2.0], [2.0, -3.0]), None),
    "ContinuousBernoulli": (plain("ContinuousBernoulli"), ([0.3, 0.8, 0.52],), ([0.5001, 0.6, 0.1],)),
    "ContinuousBernoulli logits": (logits("ContinuousBernoulli"), ([0.7, -2.0, 12.0],), ([0.5, 0.6, 0.1],)),
    "FisherSnedecor": (plain("FisherSnedecor"), ([1.5, 3.0, 5.0], [2.0, 3.0, 7.0]), None),
    "GeneralizedPareto": (
        plain("GeneralizedPareto"), ([0.0, 1.0, 0.0, 2.0], [1.0, 2.0, 1.0, 3.0], [0.0, 0.3, -0.5, 1.5]), None),
    "InverseGamma": (plain("InverseGamma"), ([3.0, 1.5, 0.5], [2.0, 1.0, 3.0]), ([2.0, 2.5, 1.0], [1.0, 1.0, 2.0])),
    "Kumaraswamy": (plain("Kumaraswamy"), ([0.5, 2.0, 3.0], [1.5, 3.0, 0.5]), None),
    "LKJCholesky": (lambda d, c: d.LKJCholesky(3, c), ([0.5, 1.0, 4.0],), None),
    "LogisticNormal": (plain("LogisticNormal"), (LOC, SCALE), ([0.1, 0.4], [1.0, 2.0])),
    "LowRankMultivariateNormal": (
        plain("LowRankMultivariateNormal"), ([LOC, [1.0, 2.0]], [[1.0], [0.5]], [1.0, 2.0]),
        ([0.1, 0.2], [[0.3, 1.0], [0.4, -1.0]], [0.5, 1.0])),
    "VonMises": (plain("VonMises"), ([0.3, -1.0, 3.0], [0.5, 4.0, 30.0]), None),
    "Wishart": (plain("Wishart"), ([3.0, 4.5], COVARIANCE), None),
    "Wishart precision": (lambda d, n, p: d.Wishart(n, precision_matrix=p), ([5.0, 4.5], COVARIANCE), None),
    "Wishart factor": (lambda d, n, f: d.Wishart(n, scale_tril=f), (5.0, FACTOR), None),
    "RelaxedBernoulli": (lambda d, t, p: d.RelaxedBernoulli(t, p), (0.5, [0.3, 0.6]), None),
    "RelaxedOneHotCategorical": (lambda d, t, p: d.RelaxedOneHotCategorical(t, p), (0.7, PROBS), None),
}  # fmt: skip


def tensors(lib: Any, parameters: tuple[Any, ...], dtype: str = "float64", grad: bool = False) -> list[Any]:
    """The parameters as tensors of a library."""
    return [lib.tensor(p, dtype=getattr(lib, dtype), requires_grad=grad) for p in parameters]
