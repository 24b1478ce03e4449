"""What a differentiable step of NAdam can be differentiated by, besides parameters and gradients."""

import pytest

import rushlight as torch


def stepped(**values):
    """The sum of squares of the parameters after a step, from numbers or tensors for what is not at its default."""
    f64 = torch.float64
    start, grad = torch.tensor([1.0, 2.0], dtype=f64), torch.tensor([0.3, -0.4], dtype=f64)
    p = start.requires_grad_().clone()
    p.grad = grad
    product = values.pop("mu_product", 0.8)
    options = {"lr": 0.1, "betas": (values.pop("beta1", 0.9), 0.99), "momentum_decay": values.pop("decay", 0.004)}
    optimizer = torch.optim.NAdam([p], differentiable=True, **options)
    product = product.clone() if isinstance(product, torch.Tensor) else torch.tensor(product, dtype=f64)
    optimizer.state[p].update(step=torch.tensor(1.0), mu_product=product, exp_avg=start * 0.1, exp_avg_sq=start * 0.2)
    optimizer.step()
    return (p * p).sum()


@pytest.mark.parametrize(("name", "at"), [("mu_product", 0.8), ("beta1", 0.9), ("decay", 0.1)])
def test_gradient_by_what_the_momenta_depend_on(name, at):
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(stepped(**{name: x}), x)
    step = 1e-5
    want = (stepped(**{name: at + step}).item() - stepped(**{name: at - step}).item()) / (2 * step)
    assert abs(slope.item()) > 1e-6
    assert slope.item() == pytest.approx(want, rel=1e-4)
