"""Gradients of gradients, forward mode, vmap."""

from itertools import pairwise
from typing import Any

from workloads.registry import Step, equal, integers, normal, training, workload


def mlp(torch: Any, *widths: int) -> Any:
    layers: list[Any] = []
    for inside, outside in pairwise(widths):
        layers += [torch.nn.Linear(inside, outside), torch.nn.Tanh()]
    return equal(torch.nn.Sequential(*layers[:-1]))


@workload()
def gradient_penalty(torch: Any) -> Step:
    """Gradient penalty of a critic, MLP 64-256-256-1, batch 64, Adam"""
    model, x = mlp(torch, 64, 256, 256, 1), normal(torch, 64, 64).requires_grad_()

    def loss() -> Any:
        out = model(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return out.mean() + (slope.norm(dim=1) - 1).square().mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-4))


@workload(same=1e-2)
def gradient_penalty_images(torch: Any) -> Step:
    """Gradient penalty of a convolutional critic, 8 x 32 px, Adam"""
    nn = torch.nn
    model = equal(nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
                                nn.Flatten(), nn.Linear(4096, 1)))  # fmt: skip
    x = normal(torch, 8, 3, 32, 32).requires_grad_()

    def loss() -> Any:
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (slope.flatten(1).norm(dim=1) - 1).square().mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-4))


@workload()
def hessian(torch: Any) -> Step:
    """Hessian of an MLP's loss by 40 inputs, torch.autograd.functional"""
    model, x = mlp(torch, 40, 64, 1), normal(torch, 40)
    return lambda: torch.autograd.functional.hessian(lambda x: model(x).sum(), x).square().sum()


@workload()
def hessian_products(torch: Any) -> Step:
    """Hessian-vector product by all parameters of an MLP 64-256-256-10, batch 64"""
    model, x, y = mlp(torch, 64, 256, 256, 10), normal(torch, 64, 64), integers(torch, 10, 64)
    parameters = list(model.parameters())
    vectors = [torch.ones_like(p) for p in parameters]

    def step() -> Any:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        slopes = torch.autograd.grad(loss, parameters, create_graph=True)
        return sum(p.sum() for p in torch.autograd.grad(slopes, parameters, vectors))

    return step


@workload()
def jacobian_reverse(torch: Any) -> Step:
    """func.jacrev of an MLP 64-128-32 at one point"""
    model, x = mlp(torch, 64, 128, 32), normal(torch, 64)
    return lambda: torch.func.jacrev(model)(x).square().sum()


@workload()
def jacobian_forward(torch: Any) -> Step:
    """func.jacfwd of an MLP 16-128-128 at one point"""
    model, x = mlp(torch, 16, 128, 128), normal(torch, 16)
    return lambda: torch.func.jacfwd(model)(x).square().sum()


@workload()
def jvp(torch: Any) -> Step:
    """func.jvp of an MLP 256-256-256, batch 64"""
    model, x, v = mlp(torch, 256, 256, 256, 256), normal(torch, 64, 256), normal(torch, 64, 256, seed=1)
    return lambda: torch.func.jvp(model, (x,), (v,))[1].square().sum()


@workload()
def functional_jvp(torch: Any) -> Step:
    """autograd.functional.jvp of an MLP 256-256-256, batch 64"""
    model, x, v = mlp(torch, 256, 256, 256, 256), normal(torch, 64, 256), normal(torch, 64, 256, seed=1)
    return lambda: torch.autograd.functional.jvp(model, x, v)[1].square().sum()


@workload()
def per_sample(torch: Any) -> Step:
    """Gradients of each of 64 samples by vmap(grad), small convolutional net"""
    nn = torch.nn
    model = equal(
        nn.Sequential(
            nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
        )
    )
    weights = {name: p.detach() for name, p in model.named_parameters()}
    x, y = normal(torch, 64, 1, 28, 28), integers(torch, 10, 64)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(torch.func.functional_call(model, weights, (x[None],)), y[None])

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    return lambda: sum(g.square().sum() for g in each(weights, x, y).values())


@workload()
def per_sample_mlp(torch: Any) -> Step:
    """Gradients of each of 128 samples by vmap(grad), MLP 64-256-10"""
    model = mlp(torch, 64, 256, 10)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    x, y = normal(torch, 128, 64), integers(torch, 10, 128)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    return lambda: sum(g.square().sum() for g in each(weights, x, y).values())


@workload()
def ensemble(torch: Any) -> Step:
    """Eight MLPs 64-128-10 as one by vmap over their weights, batch 64"""
    models = [mlp(torch, 64, 128, 10) for _ in range(8)]
    weights, buffers = torch.func.stack_module_state(models)
    x = normal(torch, 64, 64)
    each = torch.func.vmap(lambda w, b: torch.func.functional_call(models[0], (w, b), (x,)))
    return lambda: each(weights, buffers).square().sum()


@workload()
def inner_steps(torch: Any) -> Step:
    """Meta-learning: gradient through three inner steps of an MLP 1-40-40-1, Adam"""
    model = mlp(torch, 1, 40, 40, 1)
    x, y = normal(torch, 20, 1), normal(torch, 20, 1, seed=1)
    names = [name for name, _ in model.named_parameters()]

    def loss() -> Any:
        weights = list(model.parameters())
        for _ in range(3):
            inner = torch.nn.functional.mse_loss(torch.func.functional_call(model, dict(zip(names, weights)), (x,)), y)
            slopes = torch.autograd.grad(inner, weights, create_graph=True)
            weights = [w - 0.1 * g for w, g in zip(weights, slopes)]
        return torch.nn.functional.mse_loss(torch.func.functional_call(model, dict(zip(names, weights)), (x,)), y)

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@workload()
def physics(torch: Any) -> Step:
    """A physics-informed network: u_t and u_xx of an MLP 2-64-64-64-1 at 1,024 points, Adam"""
    model, at = mlp(torch, 2, 64, 64, 64, 1), normal(torch, 1024, 2).requires_grad_()

    def loss() -> Any:
        u = model(at)
        (slope,) = torch.autograd.grad(u.sum(), at, create_graph=True)
        (curve,) = torch.autograd.grad(slope[:, 1].sum(), at, create_graph=True)
        return (slope[:, 0] - 0.1 * curve[:, 1]).square().mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))
