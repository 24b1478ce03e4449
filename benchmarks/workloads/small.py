"""Many small operators: what the library itself costs."""

from itertools import pairwise
from typing import Any

from workloads.registry import Step, classifying, equal, normal, training, workload


def mlp(torch: Any, *widths: int) -> Any:
    layers: list[Any] = []
    for inside, outside in pairwise(widths):
        layers += [torch.nn.Linear(inside, outside), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


@workload()
def mlp_step(torch: Any) -> Step:
    """MLP 64-128-128-10, batch 32"""
    return classifying(torch, mlp(torch, 64, 128, 128, 10), normal(torch, 32, 64), 10)


@workload()
def mlp_adam(torch: Any) -> Step:
    """MLP 784-512-256-10, batch 128, Adam"""
    return classifying(torch, mlp(torch, 784, 512, 256, 10), normal(torch, 128, 784), 10,
                       lambda model: torch.optim.Adam(model.parameters()))  # fmt: skip


@workload()
def mlp_one_row(torch: Any) -> Step:
    """The MLP without gradients, one row"""
    model, x = equal(mlp(torch, 64, 128, 128, 10)), normal(torch, 1, 64)
    return torch.no_grad()(lambda: model(x).sum())


@workload()
def chain(torch: Any) -> Step:
    """200 operators on 5 numbers, forward and backward"""
    x = normal(torch, 5).requires_grad_()

    def step() -> Any:
        x.grad, h = None, x
        for _ in range(50):
            h = (h * 0.99 + 0.01).sin() * x
        h.sum().backward()
        return x.grad.sum()

    return step


@workload()
def broadcasting(torch: Any) -> Step:
    """Pairwise distances by broadcasting, 200 x 200 x 16, backward"""
    x = normal(torch, 200, 16).requires_grad_()

    def step() -> Any:
        x.grad = None
        ((x[:, None] - x[None]).square().sum(-1) + 1e-6).sqrt().mean().backward()
        return x.grad.square().sum()

    return step


@workload()
def views_in_place(torch: Any) -> Step:
    """60 changes in place through views of a 64 x 64 matrix, and backward"""
    w = normal(torch, 64, 64).requires_grad_()

    def step() -> Any:
        w.grad, h = None, w * 1.0
        for i in range(60):
            h[i].mul_(0.9).add_(h[i + 1].detach())
        h.square().mean().backward()
        return w.grad.sum()

    return step


@workload()
def shapes(torch: Any) -> Step:
    """100 views: transpose, unsqueeze, reshape, chunk, cat, and backward"""
    x = normal(torch, 32, 32).requires_grad_()

    def step() -> Any:
        x.grad, h = None, x
        for _ in range(20):
            a, b = h.t().unsqueeze(0).reshape(32, 32).chunk(2)
            h = torch.cat([b, a])
        h.square().sum().backward()
        return x.grad.sum()

    return step


@workload()
def custom_functions(torch: Any) -> Step:
    """40 calls of a custom Function on 64 x 64, and backward"""

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            s = torch.sigmoid(x)
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, s = ctx.saved_tensors
            return g * (s + x * s * (1 - s))

    x = normal(torch, 64, 64).requires_grad_()

    def step() -> Any:
        x.grad, h = None, x
        for _ in range(40):
            h = Swish.apply(h)
        h.sum().backward()
        return x.grad.sum()

    return step


@workload()
def flow(torch: Any) -> Step:
    """A normalizing flow of 8 coupling layers, 512 x 2, Adam"""
    nn = torch.nn
    model = equal(nn.ModuleList([mlp(torch, 1, 64, 2) for _ in range(8)]))
    x = normal(torch, 512, 2)

    def loss() -> Any:
        h, log_slope = x, 0.0
        for i, net in enumerate(model):
            a, b = h[:, i % 2 : i % 2 + 1], h[:, 1 - i % 2 : 2 - i % 2]
            scale, shift = net(a).chunk(2, 1)
            b, log_slope = b * scale.tanh().exp() + shift, log_slope + scale.tanh().sum(1)
            h = torch.cat([a, b] if i % 2 == 0 else [b, a], 1)
        return -(torch.distributions.Normal(0.0, 1.0).log_prob(h).sum(1) + log_slope).mean()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@workload()
def policy(torch: Any) -> Step:
    """Policy gradient: 50 decisions one by one, MLP 4-128-2, then backward, Adam"""
    model, seen = equal(mlp(torch, 4, 128, 2)), normal(torch, 50, 4)

    def loss() -> Any:
        picked = []
        for row in seen:
            decide = torch.distributions.Categorical(logits=model(row))
            picked.append(decide.log_prob(torch.tensor(1)))
        return -(torch.stack(picked) * torch.linspace(1, 0, 50)).sum()

    return training(torch, model, loss, torch.optim.Adam(model.parameters(), lr=1e-3))


@workload()
def simulation(torch: Any) -> Step:
    """A mass on a spring: 100 steps of Euler over 1,000 particles, gradient by stiffness"""
    stiffness, start = torch.tensor(2.0, requires_grad=True), normal(torch, 1000, 3)

    def step() -> Any:
        stiffness.grad, place, speed = None, start, torch.zeros(1000, 3)
        for _ in range(100):
            speed = speed - 0.01 * stiffness * place
            place = place + 0.01 * speed
        place.square().mean().backward()
        return stiffness.grad

    return step


@workload()
def linear_algebra(torch: Any) -> Step:
    """Gaussian process: Cholesky, solve and log-determinant of 300 x 300, backward"""
    x, y = normal(torch, 300, 4), normal(torch, 300, 1, seed=1)
    scale = torch.tensor(1.0, requires_grad=True)

    def step() -> Any:
        scale.grad = None
        kernel = torch.exp(-torch.cdist(x, x).square() / (2 * scale**2)) + 0.1 * torch.eye(300)
        root = torch.linalg.cholesky(kernel)
        loss = (y * torch.cholesky_solve(y, root)).sum() + 2 * root.diagonal().log().sum()
        loss.backward()
        return loss

    return step


@workload()
def fourier(torch: Any) -> Step:
    """Fourier layers: rfft2, product of complex weights, irfft2, 8 x 16 x 64 x 64, backward"""
    x = normal(torch, 8, 16, 64, 64)
    w = torch.view_as_complex(normal(torch, 16, 16, 12, 12, 2)).requires_grad_()

    def step() -> Any:
        w.grad = None
        low = torch.fft.rfft2(x)[..., :12, :12]
        out = torch.zeros(8, 16, 64, 33, dtype=torch.complex64)
        out[..., :12, :12] = torch.einsum("nixy,ioxy->noxy", low, w)
        loss = torch.fft.irfft2(out).square().mean()
        loss.backward()
        return loss

    return step
