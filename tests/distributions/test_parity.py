"""Distributions give what PyTorch's give: values, gradients, shapes, names and errors."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.distributions import families

import rushlight
import rushlight.distributions

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:Singular sample detected")]  # PyTorch's, of draws


FAMILIES = families.FAMILIES
LIBRARIES = (rushlight, torch)
TOLERANCE = {"float32": {"rtol": 2e-4, "atol": 2e-5}, "float64": {"rtol": 1e-8, "atol": 1e-9}}
# PyTorch's is float32 whatever the dtype; its mode of a Weibull distribution is wrong for concentrations below 1.
LOOSE = {("Multinomial", "entropy")}
# PyTorch's are a polynomial of Bessel functions good to 1e-7, and in float32 differences of large numbers; its generalized
# Pareto raises in float64. tests/distributions/test_new_families.py holds ours against exact values.
ROUGH = {("VonMises", "float64"): {"rtol": 3e-6, "atol": 1e-7}}
ROUGH |= {
    (name, "float32"): {"rtol": 3e-2, "atol": 1e-3} for name in ("ContinuousBernoulli", "ContinuousBernoulli logits")
}
BROKEN = {"GeneralizedPareto"}  # where PyTorch's raises of its own accord, in float64


def tolerance(name: str, dtype: str) -> dict[str, float]:
    """How close ours has to be to PyTorch's."""
    return ROUGH.get((name, dtype), TOLERANCE[dtype])


def pair(name: str, dtype: str = "float64", grad: bool = False, other: bool = False) -> list[tuple[Any, list[Any]]]:
    """(distribution, parameters) of rushlight and of PyTorch."""
    make, first, second = FAMILIES[name]
    made = []
    for lib in LIBRARIES:
        parameters = families.tensors(lib, second if other else first, dtype, grad)
        made.append((make(lib.distributions, *parameters), parameters))
    return made


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class of its error."""
    try:
        return call()
    except (NotImplementedError, ValueError, AttributeError) as error:
        return type(error)


def same(ours: Any, theirs: Any, **tolerance: float) -> None:
    """Assert equal tensors, of equal shapes and dtypes, or equal other things."""
    if not isinstance(theirs, torch.Tensor):
        assert str(ours).replace("rushlight", "torch") == str(theirs)
        return
    a, b = ours.detach().numpy(), theirs.detach().numpy()
    assert a.shape == b.shape and a.dtype == b.dtype
    np.testing.assert_allclose(a, b, **tolerance)


def shown(d: Any) -> str:
    """The text of a distribution; PyTorch's mixtures have made their logits by then."""
    return re.sub(r"(probs: [^)]*\)), logits: [^)]*\)", r"\1", repr(d))


def samples(d: Any, shape: tuple[int, ...] = (4,)) -> tuple[Any, Any]:
    """Draws of PyTorch's distribution for both."""
    torch.manual_seed(0)
    drawn = d.sample(shape)
    return rushlight.tensor(drawn.numpy()), drawn


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FAMILIES)
def test_properties(name: str, dtype: str) -> None:
    (ours, _), (theirs, _) = pair(name, dtype)
    assert shown(ours) == shown(theirs)
    for what in ("mean", "mode", "variance", "stddev"):
        if (name, what) == ("Kumaraswamy", "mode"):
            continue  # PyTorch's is NaN everywhere
        same(outcome(lambda what=what: getattr(ours, what)), outcome(lambda what=what: getattr(theirs, what)),
             **tolerance(name, dtype))  # fmt: skip
    for what in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        if not (name.startswith("Relaxed") and what == "has_rsample"):
            assert getattr(ours, what) == getattr(theirs, what), what
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    assert type(ours.support).__name__ == type(theirs.support).__name__


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FAMILIES)
def test_log_prob_entropy_and_cdf(name: str, dtype: str) -> None:
    (ours, _), (theirs, _) = pair(name, dtype)
    if name in BROKEN and dtype == "float64":
        return
    for shape in ((), (4,), (2, 3)):
        x, y = samples(theirs, shape)
        same(ours.log_prob(x), theirs.log_prob(y), **tolerance(name, dtype))
        if (name, dtype) not in {("StudentT", "float32")}:
            same(outcome(lambda x=x: ours.cdf(x)), outcome(lambda y=y: theirs.cdf(y)), **tolerance(name, dtype))
    entropy = outcome(ours.entropy)
    same(
        entropy,
        outcome(theirs.entropy),
        **(TOLERANCE["float32"] if (name, "entropy") in LOOSE else tolerance(name, dtype)),
    )
    q = np.array([[0.1], [0.45], [0.9]], dtype)
    same(outcome(lambda: ours.icdf(rushlight.tensor(q))), outcome(lambda: theirs.icdf(torch.tensor(q))),
         **tolerance(name, dtype))  # fmt: skip
    for expand in (False, True):
        same(outcome(lambda e=expand: ours.enumerate_support(e)), outcome(lambda e=expand: theirs.enumerate_support(e)))


@pytest.mark.parametrize("name", FAMILIES)
def test_expand(name: str) -> None:
    dtype = "float32" if name in BROKEN else "float64"
    (ours, _), (theirs, _) = pair(name, dtype)
    shape = (3, *theirs.batch_shape)
    x, y = samples(theirs.expand(shape))
    ours, theirs = ours.expand(list(shape)), theirs.expand(list(shape))
    assert ours.batch_shape == theirs.batch_shape and ours.event_shape == theirs.event_shape
    assert type(ours).__name__ == type(theirs).__name__ and shown(ours) == shown(theirs)
    same(ours.log_prob(x), theirs.log_prob(y), **tolerance(name, dtype))
    same(outcome(lambda: ours.mean), outcome(lambda: theirs.mean), **tolerance(name, dtype))
    if name != "Multinomial":  # of which PyTorch's forgets what it needs
        same(outcome(ours.entropy), outcome(theirs.entropy), **tolerance(name, dtype))
    for method in ("sample", "rsample"):
        shapes = [outcome(lambda d=d: tuple(getattr(d, method)((2,)).shape)) for d in (ours, theirs)]  # noqa: B023
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in BROKEN])
def test_gradients_of_log_prob_and_entropy(name: str) -> None:
    (ours, p), (theirs, q) = pair(name, grad=True)
    x, y = samples(theirs, (3,))
    if not theirs.support.is_discrete:
        x, y = x.requires_grad_(), y.requires_grad_()
    for mine, its in ((lambda: ours.log_prob(x), lambda: theirs.log_prob(y)), (ours.entropy, theirs.entropy)):
        result = outcome(its)
        if isinstance(result, type) or not result.requires_grad or (name == "Multinomial" and its == theirs.entropy):
            continue
        wanted = torch.autograd.grad(result.sum(), [*q, y] if y.requires_grad else q, allow_unused=True,
                                     retain_graph=True)  # fmt: skip
        got = rushlight.autograd.grad(mine().sum(), [*p, x] if x.requires_grad else p, allow_unused=True,
                                      retain_graph=True)  # fmt: skip
        for a, b in zip(got, wanted, strict=True):
            zero = [np.zeros(()) if g is None else g.detach().numpy() for g in (a, b)]
            if name == "Wishart factor" and zero[0].shape == (2, 2):
                zero = [np.tril(g) for g in zero]  # above the diagonal PyTorch differentiates by what has to be 0
            limits = {"rtol": 1e-5, "atol": 1e-6} if name == "VonMises" else {"rtol": 1e-7, "atol": 1e-8}
            np.testing.assert_allclose(zero[0], zero[1], **limits)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family[2] is not None])
def test_divergences_and_their_gradients(name: str) -> None:
    first, second = pair(name, grad=True), pair(name, grad=True, other=True)
    values, gradients = [], []
    for lib, (p, a), (q, b) in zip(LIBRARIES, first, second, strict=True):
        values.append(lib.distributions.kl_divergence(p, q))
        found = lib.autograd.grad(values[-1].sum(), [*a, *b], allow_unused=True)
        gradients.append([np.zeros(()) if g is None else g.numpy() for g in found])
    same(*values, **TOLERANCE["float64"])
    for mine, its in zip(*gradients, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-7, atol=1e-8)
    itself = rushlight.distributions.kl_divergence(first[0][0], first[0][0])
    np.testing.assert_allclose(itself.detach().numpy(), 0, atol=1e-12)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "scale": (lambda t: t.distributions.Normal(0.0, t.tensor([1.0, -1.0])), "Expected parameter scale (Tensor of shape (2,)) of distribution Normal(loc: torch.Size([2]), scale: torch.Size([2])) to satisfy the constraint GreaterThan(lower_bound=0.0), but found invalid values"),
    "NaN": (lambda t: t.distributions.Normal(float("nan"), 1.0), "Expected parameter loc"),
    "number as a value": (lambda t: t.distributions.Normal(0.0, 1.0).log_prob(2.0), "must be a Tensor"),
    "shape": (lambda t: t.distributions.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2)), "not broadcastable"),
    "event shape": (lambda t: t.distributions.MultivariateNormal(t.zeros(2), t.eye(2)).log_prob(t.zeros(3)), "match event_shape"),
    "support": (lambda t: t.distributions.Bernoulli(0.5).log_prob(t.tensor(0.3)), "to be within the support (Boolean()) of the distribution"),
    "index": (lambda t: t.distributions.Categorical(t.ones(2)).log_prob(t.tensor(2)), "IntegerInterval(lower_bound=0, upper_bound=1)"),
    "probs and logits": (lambda t: t.distributions.Bernoulli(0.5, 0.5), "Either `probs` or `logits` must be specified, but not both."),
    "neither": (lambda t: t.distributions.Categorical(), "Either `probs` or `logits` must be specified"),
    "scalar probs": (lambda t: t.distributions.Categorical(t.tensor(0.5)), "at least one-dimensional"),
    "negative probs": (lambda t: t.distributions.Categorical(t.tensor([0.5, -1.0])), "Simplex()"),
    "interval": (lambda t: t.distributions.Uniform(1.0, 0.0), "LessThan(upper_bound=0.0)"),
    "no matrix": (lambda t: t.distributions.MultivariateNormal(t.zeros(2)), "Exactly one of"),
    "vector for a matrix": (lambda t: t.distributions.MultivariateNormal(t.zeros(2), t.zeros(2)), "at least two-dimensional"),
    "indefinite": (lambda t: t.distributions.MultivariateNormal(t.zeros(2), -t.eye(2)), "PositiveDefinite()"),
    "asymmetric": (lambda t: t.distributions.MultivariateNormal(t.zeros(2), t.tensor([[1.0, 0.5], [0.0, 1.0]])), "PositiveDefinite()"),
    "too many dimensions": (lambda t: t.distributions.Independent(t.distributions.Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
    "counts": (lambda t: t.distributions.Multinomial(3, t.ones(2)).log_prob(t.tensor([3.0, 1.0])), "Multinomial()"),
    "several totals": (lambda t: t.distributions.Multinomial(t.tensor([3, 4]), t.ones(2)), "inhomogeneous total_count"),
    "different totals": (lambda t: t.distributions.Binomial(t.tensor([3.0, 4.0]), t.tensor(0.2)).entropy(), "Inhomogeneous total count"),
    "no chance": (lambda t: t.distributions.Geometric(t.tensor(0.0)), "to be positive"),
    "string": (lambda t: t.distributions.Normal("a", 1.0), "Input arguments must all be instances of Number"),
    "no bool": (lambda t: t.distributions.Distribution.set_default_validate_args(3), ""),
    "components": (lambda t: t.distributions.MixtureSameFamily(t.distributions.Categorical(t.ones(3)), t.distributions.Normal(t.zeros(2), 1.0)), "does not equal"),
    "no mixture": (lambda t: t.distributions.MixtureSameFamily(t.distributions.Normal(0.0, 1.0), t.distributions.Normal(t.zeros(2), 1.0)), "Mixture distribution needs to be"),
    "no transform": (lambda t: t.distributions.TransformedDistribution(t.distributions.Normal(0.0, 1.0), [3]), "Transform"),
    "too few dimensions": (lambda t: t.distributions.TransformedDistribution(t.distributions.Normal(0.0, 1.0), t.distributions.SoftmaxTransform()), "size at least 1"),
    "cache": (lambda t: t.distributions.ExpTransform(cache_size=2), "cache_size must be 0 or 1"),
    "dependent": (lambda t: t.distributions.constraints.dependent.check(t.zeros(1)), "Cannot determine validity"),
    "no rsample": (lambda t: t.distributions.Bernoulli(0.5).rsample(), ""),
    "no divergence": (lambda t: t.distributions.kl_divergence(t.distributions.Cauchy(0.0, 1.0), t.distributions.Normal(0.0, 1.0)), "No KL(p || q) is implemented"),
    "other transforms": (lambda t: t.distributions.kl_divergence(t.distributions.LogNormal(0.0, 1.0), t.distributions.HalfCauchy(1.0)), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # torch.compile() of PyTorch sets it to False
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    call, words = REFUSED[name]
    errors = []
    for lib in (torch, rushlight):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            call(lib)
        errors.append(caught)
    assert errors[0].type is errors[1].type
    for error in errors:
        assert words in " ".join(str(error.value).split())


CONSTRAINTS: dict[str, Any] = {
    "boolean": [0.0, 1.0, 0.5], "one_hot": [[1.0, 0.0], [1.0, 1.0]], "real": [1.0, float("nan")], "positive": [0.0, 1.0],
    "nonnegative": [0.0, -1.0], "unit_interval": [0.0, 1.0, 1.1], "simplex": [[0.5, 0.5], [0.5, 0.6], [-0.5, 1.5]],
    "nonnegative_integer": [0.0, 1.5, -1.0], "positive_integer": [0.0, 1.0], "real_vector": [[1.0, 2.0], [1.0, float("nan")]],
    "lower_triangular": [[[1.0, 0.0], [1.0, -1.0]], [[1.0, 1.0], [1.0, 1.0]]], "lower_cholesky": [[[1.0, 0.0], [1.0, -1.0]], [[1.0, 0.0], [1.0, 1.0]]],
    "corr_cholesky": [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [1.0, 1.0]]], "square": [[1.0, 0.0], [1.0, 1.0]],
    "symmetric": [[1.0, 0.5], [0.5, 1.0]], "positive_definite": [[1.0, 0.5], [0.5, 1.0]], "positive_semidefinite": [[1.0, 2.0], [2.0, 1.0]],
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name: str) -> None:
    results = []
    for lib in LIBRARIES:
        constraint = getattr(lib.distributions.constraints, name)
        value = lib.tensor(CONSTRAINTS[name])
        results.append(
            (repr(constraint), constraint.event_dim, constraint.is_discrete, constraint.check(value).tolist())
        )
    assert results[0] == results[1]


TRANSFORMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "Exp": (lambda t: t.distributions.ExpTransform(), [[0.5, -1.0], [0.1, 2.0]]),
    "Power": (lambda t: t.distributions.PowerTransform(t.tensor(2.0)), [[0.5, 1.0], [0.1, 2.0]]),
    "Sigmoid": (lambda t: t.distributions.SigmoidTransform(), [[0.5, -1.0], [0.1, 2.0]]),
    "Softplus": (lambda t: t.distributions.SoftplusTransform(), [[0.5, -1.0], [0.1, 2.0]]),
    "Tanh": (lambda t: t.distributions.TanhTransform(), [[0.5, -1.0], [0.1, 2.0]]),
    "Affine": (lambda t: t.distributions.AffineTransform(1.0, -2.0, event_dim=1), [[0.5, -1.0], [0.1, 2.0]]),
    "Compose": (lambda t: t.distributions.ComposeTransform([t.distributions.SoftplusTransform(), t.distributions.StickBreakingTransform()]), [[0.5, -1.0], [0.1, 2.0]]),
    "StickBreaking": (lambda t: t.distributions.StickBreakingTransform(), [[0.5, -1.0], [0.1, 2.0]]),
    "StickBreaking far out": (lambda t: t.distributions.StickBreakingTransform(), [[50.0, -20.0], [-60.0, 40.0]]),
    "Independent": (lambda t: t.distributions.IndependentTransform(t.distributions.ExpTransform(), 1), [[0.5, -1.0], [0.1, 2.0]]),
    "Reshape": (lambda t: t.distributions.ReshapeTransform((2,), (1, 2)), [[0.5, -1.0], [0.1, 2.0]]),
    "inverse": (lambda t: t.distributions.ExpTransform().inv, [[0.5, 1.0], [0.1, 2.0]]),
    "CumulativeDistribution": (lambda t: t.distributions.CumulativeDistributionTransform(t.distributions.Normal(0.0, 1.0)), [[0.5, -1.0], [0.1, 2.0]]),
    "CorrCholesky": (lambda t: t.distributions.CorrCholeskyTransform(), [[0.5, -1.0, 0.3], [0.1, 2.0, -0.4]]),
    "Stack": (lambda t: t.distributions.StackTransform([t.distributions.ExpTransform(), t.distributions.AffineTransform(0.0, 2.0)], dim=1), [[0.5, -1.0], [0.1, 2.0]]),
    "Stack with a cache": (lambda t: t.distributions.StackTransform([t.distributions.ExpTransform(), t.distributions.ExpTransform()], cache_size=1), [[0.5, -1.0], [0.1, 2.0]]),
    "Cat": (lambda t: t.distributions.CatTransform([t.distributions.ExpTransform(), t.distributions.AffineTransform(0.0, 2.0)], dim=-1, lengths=[1, 2]), [[0.5, -1.0, 0.2], [0.1, 2.0, 0.3]]),
    "Cat of events": (lambda t: t.distributions.CatTransform([t.distributions.AffineTransform(0.0, 2.0, event_dim=1), t.distributions.ExpTransform()], dim=0), [[0.5, -1.0, 0.2], [0.1, 2.0, 0.3]]),
    "Cat with a cache": (lambda t: t.distributions.CatTransform([t.distributions.ExpTransform()], lengths=[2]).with_cache(), [[0.5, -1.0, 0.2], [0.1, 2.0, 0.3]]),
    "cached": (lambda t: t.distributions.TanhTransform(cache_size=1), [[0.5, -1.0], [0.1, 20.0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    make, point = TRANSFORMS[name]
    results = []
    for lib in LIBRARIES:
        t, x = make(lib), lib.tensor(point, dtype=lib.float64)
        y = t(x)
        sign = outcome(lambda t=t: int(t.sign))
        results.append((y, t.inv(y), t.log_abs_det_jacobian(x, y), outcome(lambda t=t: tuple(t.forward_shape((5, 2)))), tuple(t.inverse_shape(y.shape)),
                        repr(t), sign, t.bijective, repr(t.domain), repr(t.codomain), t == (t if name == "CorrCholesky" else make(lib))))  # fmt: skip
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs, **TOLERANCE["float64"])


DOMAINS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "real": (lambda c: c.real, [0.3, -1.0]),
    "positive": (lambda c: c.positive, [0.3, -1.0]),
    "above": (lambda c: c.greater_than(2.0), [0.3, -1.0]),
    "at least": (lambda c: c.greater_than_eq(-2.0), [0.3, -1.0]),
    "below": (lambda c: c.less_than(2.0), [0.3, -1.0]),
    "unit": (lambda c: c.unit_interval, [0.3, -1.0]),
    "between": (lambda c: c.interval(-1.0, 4.0), [0.3, -1.0]),
    "half open": (lambda c: c.half_open_interval(-1.0, 4.0), [0.3, -1.0]),
    "vectors": (lambda c: c.independent(c.positive, 1), [0.3, -1.0]),
    "simplex": (lambda c: c.simplex, [0.3, -1.0]),
    "factor": (lambda c: c.lower_cholesky, [[0.3, -1.0], [0.5, 1.0]]),
    "covariance": (lambda c: c.positive_definite, [[0.3, -1.0], [0.5, 1.0]]),
    "integers": (lambda c: c.nonnegative_integer, [0.3]),
    "factor of correlations": (lambda c: c.corr_cholesky, [0.3, -1.0, 0.5]),
    "stretches": (lambda c: c.cat([c.positive, c.real], 0, [1, 2]), [0.3, -1.0, 0.5]),
    "slices": (lambda c: c.stack([c.positive, c.unit_interval], 0), [[0.3, -1.0], [0.5, 1.0]]),
}


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", DOMAINS)
def test_transforms_into_constraints(name: str, registry: str) -> None:
    make, point = DOMAINS[name]
    results = []
    for lib in LIBRARIES:
        constraint = make(lib.distributions.constraints)
        t = outcome(lambda lib=lib, c=constraint: getattr(lib.distributions, registry)(c))
        if isinstance(t, type):
            results.append((t,))
            continue
        y = t(lib.tensor(point, dtype=lib.float64))
        assert bool(constraint.check(y).all())
        results.append((t.bijective, y, t.inv(y)))
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs, **TOLERANCE["float64"])


FORMS = {
    "Exponential": (([1.0, 3.0],), ([0.5, 2.0],)), "Gamma": (([1.5, 3.0], [2.0, 1.0]), ([0.5, 2.0], [1.0, 2.0])),
    "Normal": (([0.3, -1.0], [1.5, 0.7]), ([0.1, 0.4], [1.0, 2.0])), "Gumbel": (([0.3, -1.0], [1.5, 0.7]), ([0.1, 0.4], [1.0, 2.0])),
    "Laplace": (([0.3, -1.0], [1.5, 0.7]), ([0.1, 0.4], [1.0, 2.0])), "Beta": (([1.5, 0.5], [2.0, 3.0]), ([1.0, 2.0], [0.7, 2.0])),
    "ContinuousBernoulli": (([0.3, 0.8],), ([0.5001, 0.6],)), "Pareto": (([1.5, 0.7], [3.0, 0.9]), ([1.0, 0.5], [2.0, 1.0])),
    "Uniform": (([0.1, -1.0], [0.9, 2.0]), ([-1.0, 0.5], [2.0, 2.5])), "Poisson": (([2.0, 0.5],), ([1.0, 3.0],)),
    "Bernoulli": (([0.3, 0.8],), ([0.5, 0.6],)), "Binomial": (([3.0, 4.0], [0.3, 0.8]), ([3.0, 4.0], [0.5, 0.6])),
    "LowRankMultivariateNormal": (([0.3, -1.0], [[1.0], [0.5]], [1.0, 2.0]), ([0.1, 0.2], [[0.3, 1.0], [0.4, -1.0]], [0.5, 1.0])),
    "MultivariateNormal": (([0.3, -1.0], [[1.0, 0.5], [0.5, 4.25]]), ([0.1, 0.2], [[2.0, 0.1], [0.1, 1.0]])),
}  # fmt: skip
MIXED = [(p, q) for p in FORMS for q in FORMS if p != q]


@pytest.mark.parametrize(("p", "q"), MIXED)
def test_divergences_between_families(p: str, q: str) -> None:
    results, gradients = [], []
    for lib in LIBRARIES:
        first = families.tensors(lib, FORMS[p][0], grad=True)
        second = families.tensors(lib, FORMS[q][1], grad=True)
        a, b = getattr(lib.distributions, p)(*first), getattr(lib.distributions, q)(*second)
        results.append(outcome(lambda lib=lib, a=a, b=b: lib.distributions.kl_divergence(a, b)))
        found = results[-1]
        if not isinstance(found, type) and bool(lib.isfinite(found).all()):
            given = lib.autograd.grad(found.sum(), [*first, *second], allow_unused=True)
            gradients.append([np.zeros(()) if g is None else g.numpy() for g in given])
    same(*results, **TOLERANCE["float64"])
    for mine, its in zip(*gradients, strict=True) if gradients else ():
        np.testing.assert_allclose(mine, its, rtol=1e-7, atol=1e-8)


EXPONENTIAL = ["Normal", "Bernoulli", "Beta", "Dirichlet", "Exponential", "Gamma", "ContinuousBernoulli", "Chi2"]


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_exponential_families(name: str) -> None:
    """The entropy and the divergence by derivatives of the normalizer are those in closed form, with their gradients."""
    expfam = rushlight.distributions.ExponentialFamily
    (p, a), (theirs, _) = pair(name, grad=True)
    (q, b), _ = pair(name, grad=True, other=True)
    assert isinstance(p, expfam) and isinstance(theirs, torch.distributions.ExponentialFamily)
    mine, its = p._log_normalizer(*p._natural_params), theirs._log_normalizer(*theirs._natural_params)
    same(mine, its, **TOLERANCE["float64"])
    from rushlight.distributions.exp_family import bregman

    pairs = [(bregman(p, q), rushlight.distributions.kl_divergence(p, q), [*a, *b])]
    if name != "Chi2":
        pairs.append((expfam.entropy(p), p.entropy(), a))
    for general, closed, parameters in pairs:
        np.testing.assert_allclose(general.detach().numpy(), closed.detach().numpy(), rtol=1e-9, atol=1e-12)
        slopes = [rushlight.autograd.grad(y.sum(), parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
                  for y in (general, closed)]  # fmt: skip
        for g, h in zip(*slopes, strict=True):
            np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-7, atol=1e-10)
    assert not bregman(pair(name)[0][0], pair(name, other=True)[0][0]).requires_grad


def test_lkj_draws_what_pytorch_draws() -> None:
    """Of two dimensions, for which the distributions are the same, and whatever is drawn afterwards."""
    for dim in (2, 4):
        drawn = []
        for library in (rushlight, torch):
            library.manual_seed(1)
            factors = library.distributions.LKJCholesky(dim, library.tensor([0.5, 2.0])).sample((3,))
            drawn.append((factors.numpy(), library.rand(2).numpy()))
        (ours, after), (theirs, after_theirs) = drawn
        np.testing.assert_array_equal(after, after_theirs)
        if dim == 2:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)
