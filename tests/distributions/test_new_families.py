"""What exact values, integrals and samples say of families whose closed forms are easily wrong."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.distributions as D
from rushlight.distributions import constraints

F64 = torch.float64


def t(*values: float) -> Any:
    return torch.tensor(values, dtype=F64)


DENSITIES: dict[str, tuple[Callable[[], Any], float, float]] = {
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(t(0.1, 0.45, 0.5, 0.9999)), 0.0, 1.0),
    "FisherSnedecor": (lambda: D.FisherSnedecor(t(4.0, 5.0), t(9.0, 6.0)), 0.0, 400.0),
    "Kumaraswamy": (lambda: D.Kumaraswamy(t(2.0, 3.0), t(3.0, 1.5)), 0.0, 1.0),
    "VonMises": (lambda: D.VonMises(t(0.5, -2.0, 0.0), t(0.1, 3.0, 200.0)), -math.pi, math.pi),
    "GeneralizedPareto": (lambda: D.GeneralizedPareto(t(0.0, 1.0), t(1.0, 2.0), t(-0.5, 0.1)), 0.0, 200.0),
    "InverseGamma": (lambda: D.InverseGamma(t(3.0, 4.0), t(2.0, 1.0)), 0.0, 300.0),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_integrate_to_one_and_give_mean_and_entropy(name: str) -> None:
    make, low, high = DENSITIES[name]
    d = make()
    count = 400_000
    x = low + (torch.arange(count, dtype=F64) + 0.5).unsqueeze(-1) * ((high - low) / count)
    inside = d.support.check(x.expand(count, *d.batch_shape))
    log_p = torch.where(inside, make().__class__.log_prob(_unchecked(d), x), torch.tensor(-math.inf, dtype=F64))
    p = log_p.exp()
    step = (high - low) / count
    np.testing.assert_allclose((p.sum(0) * step).numpy(), 1.0, atol=2e-4)
    if name == "VonMises":
        circular = 1 - ((p * (x - d.loc).cos()).sum(0) * step)
        np.testing.assert_allclose(circular.numpy(), d.variance.numpy(), rtol=1e-6)
        return
    np.testing.assert_allclose((p * x).sum(0).numpy() * step, d.mean.numpy(), rtol=2e-3)
    if name != "FisherSnedecor":
        entropy = -(p * log_p.masked_fill(p == 0, 0.0)).sum(0) * step
        np.testing.assert_allclose(entropy.numpy(), d.entropy().numpy(), atol=2e-3)


def _unchecked(d: Any) -> Any:
    d._validate_args = False
    return d


def test_continuous_bernoulli_is_smooth_around_one_half() -> None:
    """Of logits that are nearly 0 mean, variance and density are 1/2 + t / 12, 1/12 - t^2 / 240, exp(t (x - 1/2))."""
    for dtype, close in ((torch.float32, 1e-6), (F64, 1e-14)):
        logits = torch.tensor([0.0, 1e-9, -1e-5, 1e-3, -0.2, 0.49, 0.51], dtype=dtype, requires_grad=True)
        d, big = D.ContinuousBernoulli(logits=logits), D.ContinuousBernoulli(logits=logits.detach().double())
        exact = (
            0.5 + logits[:4].double() / 12 - logits[:4].double().pow(3) / 720,
            1 / 12 - logits[:4].double().square() / 240,
        )
        for mine, its in zip((d.mean, d.variance), exact):
            np.testing.assert_allclose(mine[:4].detach().numpy(), its.detach().numpy(), rtol=close)
        for what in ("mean", "variance"):
            np.testing.assert_allclose(
                getattr(d, what).detach().numpy(), getattr(big, what).numpy(), rtol=30 * close, err_msg=what
            )
        d.mean.sum().backward()
        assert logits.grad is not None
        np.testing.assert_allclose(logits.grad.numpy(), d.variance.detach().numpy(), rtol=100 * close)
    u = torch.linspace(0.01, 0.99, 9, dtype=F64).unsqueeze(-1)
    np.testing.assert_allclose(big.cdf(big.icdf(u)).numpy(), u.expand(9, 7).numpy(), rtol=1e-9)


def test_extreme_continuous_bernoullis_are_finite() -> None:
    d = D.ContinuousBernoulli(logits=torch.tensor([-500.0, 500.0]))
    for value in (d.mean, d.variance, d.entropy(), d.log_prob(torch.tensor([0.0, 1.0])), d.rsample((5,))):
        assert bool(torch.isfinite(value).all())
    with pytest.raises(ValueError, match="The parameter probs has invalid values"):
        D.ContinuousBernoulli(torch.tensor(1.5), validate_args=True)


def test_the_mode_of_kumaraswamy_is_the_highest_density() -> None:
    d = D.Kumaraswamy(t(2.0, 3.0), t(3.0, 1.5))
    x = torch.linspace(0.0005, 0.9995, 1999, dtype=F64).unsqueeze(-1)
    highest = x.squeeze(-1)[d.log_prob(x).argmax(0)]
    np.testing.assert_allclose(d.mode.numpy(), highest.numpy(), atol=1e-3)
    assert bool(D.Kumaraswamy(t(0.5), t(2.0)).mode.isnan().all())


def test_von_mises_is_exact_and_its_samples_are_angles_around_loc() -> None:
    c = t(0.5, 4.0, 30.0)
    d = D.VonMises(t(3.0, -1.0, 0.0), c)
    np.testing.assert_allclose(d.log_prob(d.loc).numpy(), c.numpy() - np.log(2 * np.pi * np.i0(c.numpy())), rtol=1e-12)
    torch.manual_seed(0)
    x = d.sample((20_000,))
    assert x.dtype == F64 and bool((x >= -math.pi).all()) and bool((x < math.pi).all())
    np.testing.assert_allclose((x - d.loc).sin().mean(0).numpy(), 0, atol=0.03)
    np.testing.assert_allclose(1 - (x - d.loc).cos().mean(0).numpy(), d.variance.numpy(), atol=0.03)
    large = D.VonMises(torch.tensor(0.0), torch.tensor(1e4)).log_prob(torch.tensor(0.01))
    np.testing.assert_allclose(large, 0.5 * math.log(1e4 / (2 * math.pi)) - 0.5, rtol=1e-3)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_lkj_correlations_have_the_variance_of_the_paper(dim: int) -> None:
    """Each is 2 B - 1 for B of Beta(c - 1 + dim / 2) in both parameters: its variance is 1 / (2 c + dim - 1)."""
    concentration = t(0.5, 1.0, 3.0)
    torch.manual_seed(3)
    factors = D.LKJCholesky(dim, concentration).sample((20_000,))
    assert bool(constraints.corr_cholesky.check(factors).all())
    correlations = factors @ factors.mT
    for i in range(dim):
        for j in range(i):
            variance = correlations[..., i, j].square().mean(0)
            np.testing.assert_allclose(variance.numpy(), (1 / (2 * concentration + dim - 1)).numpy(), rtol=0.06)


def test_lkj_density_of_two_rows_integrates_to_one() -> None:
    d = D.LKJCholesky(2, t(0.7, 1.0, 4.0))
    r = torch.linspace(-1, 1, 200_002, dtype=F64)[1:-1]
    factor = torch.zeros(len(r), 1, 2, 2, dtype=F64)
    factor[:, 0, 0, 0], factor[:, 0, 1, 0], factor[:, 0, 1, 1] = 1.0, r, (1 - r.square()).sqrt()
    total = d.log_prob(factor).exp().sum(0) * (r[1] - r[0])
    np.testing.assert_allclose(total.numpy(), 1.0, atol=5e-3)


def test_low_rank_normals_are_the_full_ones() -> None:
    torch.manual_seed(0)
    loc, w, diag = torch.randn(2, 4, dtype=F64), torch.randn(4, 2, dtype=F64), torch.rand(4, dtype=F64) + 0.5
    d = D.LowRankMultivariateNormal(loc, w, diag)
    full = D.MultivariateNormal(loc, w @ w.mT + torch.diag(diag))
    x = torch.randn(3, 2, 4, dtype=F64)
    for mine, its in ((d.log_prob(x), full.log_prob(x)), (d.entropy(), full.entropy()), (d.variance, full.variance),
                      (d.covariance_matrix, full.covariance_matrix), (d.precision_matrix, full.precision_matrix),
                      (d.scale_tril, full.scale_tril)):  # fmt: skip
        np.testing.assert_allclose(mine.numpy(), its.numpy(), rtol=1e-9, atol=1e-12)
    for p, q in ((d, full), (full, d), (d, d)):
        np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), 0, atol=1e-12)
    with pytest.raises(ValueError, match="cov_diag must be a batch of vectors"):
        D.LowRankMultivariateNormal(torch.zeros(2), torch.zeros(2, 1), torch.ones(3))
    with pytest.raises(ValueError, match="cov_factor must be a batch of matrices"):
        D.LowRankMultivariateNormal(torch.zeros(2), torch.zeros(3, 1), torch.ones(2))
    with pytest.raises(ValueError, match="Incompatible batch shapes"):
        D.LowRankMultivariateNormal(torch.zeros(3, 2), torch.zeros(4, 2, 1), torch.ones(2))


def test_wishart_of_one_row_is_a_gamma_distribution() -> None:
    wishart = D.Wishart(t(3.0, 5.5), scale_tril=torch.tensor([[1.3]], dtype=F64))
    gamma = D.Gamma(wishart.df / 2, torch.full((2,), 0.5 / 1.69, dtype=F64))
    x = t(0.4, 3.0)
    np.testing.assert_allclose(wishart.log_prob(x[:, None, None]).numpy(), gamma.log_prob(x).numpy(), rtol=1e-12)
    np.testing.assert_allclose(wishart.entropy().numpy(), gamma.entropy().numpy(), rtol=1e-12)
    other = D.Wishart(t(4.0, 2.0), scale_tril=torch.tensor([[0.7]], dtype=F64))
    wanted = D.kl_divergence(gamma, D.Gamma(other.df / 2, torch.full((2,), 0.5 / 0.49, dtype=F64)))
    np.testing.assert_allclose(D.kl_divergence(wishart, other).numpy(), wanted.numpy(), rtol=1e-10)
    np.testing.assert_allclose(D.ExponentialFamily.entropy(wishart).numpy(), gamma.entropy().numpy(), rtol=1e-10)


def test_wishart_entropy_is_the_mean_of_its_density_and_kl_of_matrices_is_not_negative() -> None:
    covariance = torch.tensor([[1.0, 0.5], [0.5, 4.25]], dtype=F64)
    d = D.Wishart(t(4.0, 6.0), covariance)
    torch.manual_seed(0)
    x = d.rsample((40_000,))
    assert x.requires_grad is False and bool(d.support.check(x).all())
    np.testing.assert_allclose(-d.log_prob(x).mean(0).numpy(), d.entropy().numpy(), atol=0.05)
    np.testing.assert_allclose(D.ExponentialFamily.entropy(d).numpy(), d.entropy().numpy(), rtol=1e-10)
    q = D.Wishart(t(5.0), 1.3 * covariance)
    wanted = (d.log_prob(x) - q.log_prob(x)).mean(0)
    np.testing.assert_allclose(D.kl_divergence(d, q).numpy(), wanted.numpy(), atol=0.05)


def test_wishart_refuses_and_warns() -> None:
    with pytest.raises(ValueError, match=r"expected to be greater than ndim - 1 = 1"):
        D.Wishart(t(1.0), torch.eye(2, dtype=F64))
    with pytest.raises(AssertionError, match="Exactly one of covariance_matrix"):
        D.Wishart(t(3.0))
    with pytest.warns(UserWarning, match="below 2, the rows of a sample"):
        d = D.Wishart(1.5, torch.eye(2, dtype=F64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        D.Wishart(2.0, torch.eye(2, dtype=F64))
    assert bool(d.support.check(d.rsample((200,), max_try_correction=20)).all())


def test_gradients_reach_the_parameters_through_samples() -> None:
    for make, n in ((D.FisherSnedecor, 2), (D.Kumaraswamy, 2), (D.InverseGamma, 2)):
        parameters = [t(2.0, 3.0).requires_grad_() for _ in range(n)]
        make(*parameters).rsample((3,)).sum().backward()
        assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in parameters)
    df, factor = t(4.0).requires_grad_(), torch.eye(2, dtype=F64).requires_grad_()
    D.Wishart(df, scale_tril=factor).rsample((3,)).sum().backward()
    assert df.grad is not None and factor.grad is not None


def test_register_kl_takes_any_class_and_warns_of_two_formulas() -> None:
    class Mixin:
        pass

    class Marked(D.Normal, Mixin):
        pass

    class Other(D.Cauchy, Mixin):
        pass

    D.register_kl(D.Cauchy, Mixin)(lambda p, q: "by the mixin")
    assert D.kl_divergence(D.Cauchy(0.0, 1.0), Marked(0.0, 1.0)) == "by the mixin"
    D.register_kl(Other, D.Cauchy)(lambda p, q: "p is nearer")
    D.register_kl(D.Cauchy, Other)(lambda p, q: "q is nearer")
    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        assert D.kl_divergence(Other(0.0, 1.0), Other(0.0, 1.0)) == "p is nearer"
    with pytest.raises(TypeError, match="type_q"):
        D.register_kl(D.Normal, 3)  # type: ignore[arg-type]


def test_names_that_libraries_of_distributions_import() -> None:
    from rushlight.distributions.transforms import _InverseTransform
    from rushlight.distributions.utils import _standard_normal, _sum_rightmost, euler_constant

    assert isinstance(D.ExpTransform().inv, _InverseTransform)
    assert _standard_normal(torch.Size([2, 3]), dtype=F64, device=torch.device("cpu")).dtype == F64
    assert _sum_rightmost(torch.ones(2, 3), 1).tolist() == [3.0, 3.0]
    assert math.isclose(euler_constant, 0.5772156649015329)
    assert all(getattr(D, name).__doc__ for name in D.__all__ if isinstance(getattr(D, name), type))


def test_standard_gamma_by_its_name_in_torch() -> None:
    shapes = t(0.5, 3.0).expand(20_000, 2).requires_grad_()
    torch.manual_seed(0)
    x = torch._standard_gamma(shapes)
    np.testing.assert_allclose(x.detach().mean(0).numpy(), [0.5, 3.0], rtol=0.03)
    (slope,) = torch.autograd.grad(x.sum(), shapes)
    np.testing.assert_allclose(slope.mean(0).numpy(), 1.0, rtol=0.05)


def test_the_pair_that_a_transform_keeps_is_read_by_subclasses() -> None:
    class Scaled(D.Transform):
        domain = codomain = constraints.real
        bijective = True

        def _call(self, x: Any) -> Any:
            return 2 * x

        def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
            kept_x, kept_y = self._cached_x_y
            assert kept_x is x and kept_y is y
            return torch.full_like(x, math.log(2))

    t = Scaled(cache_size=1)
    x = torch.ones(2)
    assert t.log_abs_det_jacobian(x, t(x)).shape == (2,)


def test_joined_transforms_refuse() -> None:
    with pytest.raises(AssertionError, match="must be Transform instances"):
        D.CatTransform([3])  # type: ignore[list-item]
    with pytest.raises(AssertionError, match=r"x\.size\(0\) = 2 must equal len\(transforms\) 1"):
        D.StackTransform([D.ExpTransform()])(torch.zeros(2))
    with pytest.raises(AssertionError, match=r"must match transforms"):
        D.CatTransform([D.ExpTransform()], lengths=[1, 2])
    with pytest.raises(AssertionError, match="out of range"):
        D.CatTransform([D.ExpTransform()], dim=3)(torch.zeros(2))
    with pytest.raises(ValueError, match="flattened lower-diagonal"):
        D.CorrCholeskyTransform().forward_shape((4,))


@pytest.mark.parametrize("concentration", [0.0, 1e17, math.inf, math.nan])
def test_angles_of_concentrations_that_accept_nothing_are_drawn(concentration):
    d = D.VonMises(
        torch.zeros(200, dtype=torch.float64),
        torch.full((200,), concentration, dtype=torch.float64),
        validate_args=False,
    )
    drawn = d.sample()
    assert drawn.isnan().all() if math.isnan(concentration) else bool((drawn.std() > 1) == (concentration == 0))


def test_wishart_matrices_by_the_name_that_libraries_call() -> None:
    made = torch.distributions.Wishart(4.0, scale_tril=torch.eye(2).expand(3, 2, 2))._bartlett_sampling(torch.Size([5]))
    assert made.shape == (5, 3, 2, 2) and made.mT.equal(made) and bool((made.diagonal(dim1=-2, dim2=-1) > 0).all())
