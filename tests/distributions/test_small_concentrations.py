"""Samples of distributions of tiny concentration lie inside their supports, and have finite densities."""

import pytest

import rushlight as torch
from rushlight import distributions as D


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("small", [1e-2, 1e-3, 1e-30])
def test_beta_and_dirichlet_give_neither_0_nor_1(small, dtype):
    a = torch.tensor(small, dtype=dtype)
    for distribution in (
        D.Beta(a, a),
        D.Beta(a, 2 * torch.ones_like(a)),
        D.Dirichlet(a.expand(3)),
        D.Dirichlet(a.expand(1)),
    ):
        found = distribution.sample((500,))
        assert found.dtype == dtype and found.min() > 0 and found.max() < 1
        assert distribution.log_prob(found).isfinite().all()


def test_a_small_beta_is_near_either_end_alike():
    found = D.Beta(1e-3, 1e-3).sample((2000,))
    assert abs((found < 0.5).float().mean().item() - 0.5) < 0.05
    assert ((found < 1e-3) | (found > 1 - 1e-3)).float().mean() > 0.98


def test_gradients_of_samples_are_finite():
    a = torch.tensor([0.5, 1e-3, 2.0], requires_grad=True)
    D.Dirichlet(a).rsample((200,)).square().sum().backward()
    assert a.grad.isfinite().all()


@pytest.mark.parametrize("df", [1e-3, 1e-2, 0.1])
def test_student_t_with_few_degrees_of_freedom_is_finite(df):
    assert D.StudentT(torch.tensor(df)).sample((2000,)).isfinite().all()


def test_a_concentration_of_nothing_has_all_its_mass_at_zero():
    nothing = torch.distributions.NegativeBinomial(0, probs=torch.tensor([0.3, 0.5]))
    assert nothing.sample((3,)).abs().sum().item() == 0
    assert nothing.log_prob(torch.tensor([0.0, 1.0])).tolist() == [0.0, -float("inf")]
    found = torch.distributions.Gamma(torch.tensor([0.0, -1.0, 2.0]), 1.0, validate_args=False).sample()
    assert found[:2].tolist() == [torch.finfo(torch.float32).tiny] * 2
    assert found[2].item() > 0.01


def test_values_of_log_prob():
    distributions = torch.distributions
    assert distributions.Gamma(1.0, 1.0).log_prob(1).item() == -1
    assert distributions.Chi2(1.0).log_prob(1).dtype is torch.float32
    with pytest.raises(ValueError, match="The value argument to log_prob must be a Tensor, got int"):
        distributions.Normal(0.0, 1.0).log_prob(1)
    fewer = distributions.Multinomial(10, torch.ones(2)).log_prob(torch.ones(3, 2))
    assert torch.allclose(fewer, torch.full((3,), 0.5).log())
    with pytest.raises(ValueError, match="support"):
        distributions.Multinomial(10, torch.ones(2)).log_prob(torch.ones(3, 2) * 7)
