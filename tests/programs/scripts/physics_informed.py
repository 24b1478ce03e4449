"""A network that satisfies the heat equation: derivatives of the network in the loss, Adam and then LBFGS, and an unknown coefficient."""

import argparse
import math

import torch
from torch import nn
from torch.func import functional_call, hessian, jacrev, vmap


class Sine(nn.Module):
    def __init__(self, w0=1.0):
        super().__init__()
        self.w0 = nn.Parameter(torch.tensor(w0))

    def forward(self, x):
        return torch.sin(self.w0 * x)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), Sine(), nn.Linear(width, 1)
        )
        self.log_diffusivity = nn.Parameter(torch.zeros(()))
        self.layers.apply(self.initial)

    @staticmethod
    def initial(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_normal_(m.weight)
            nn.init.constant_(m.bias, 0.0)

    def forward(self, xt):
        return self.layers(xt)


def residual(net, xt):
    """u_t - k u_xx, by two passes of autograd."""
    xt = xt.clone().requires_grad_(True)
    u = net(xt)
    first = torch.autograd.grad(u, xt, torch.ones_like(u), create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), xt, create_graph=True)[0]
    return first[:, 1:] - net.log_diffusivity.exp() * second[:, :1]


def residual_by_func(net, xt):
    """The same by transformations of the network."""
    params = dict(net.named_parameters())

    def u(point):
        return functional_call(net, params, (point[None],)).squeeze()

    first, second = vmap(jacrev(u))(xt), vmap(hessian(u))(xt)
    return (first[:, 1] - params["log_diffusivity"].exp() * second[:, 0, 0])[:, None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--adam-steps", type=int, default=20)
    parser.add_argument("--lbfgs-steps", type=int, default=3)
    parser.add_argument("--func", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(args.seed)
    net = Net(args.width)
    inside = torch.rand(128, 2)
    data = torch.cartesian_prod(torch.linspace(0, 1, 8), torch.linspace(0, 1, 8))
    truth = torch.exp(-0.5 * math.pi**2 * data[:, 1:]) * torch.sin(math.pi * data[:, :1])
    equation = residual_by_func if args.func else residual

    def loss_of():
        return (net(data) - truth).square().mean() + 0.01 * equation(net, inside).square().mean()

    optimizer = torch.optim.NAdam(net.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
    for step in range(args.adam_steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.detach())
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.8f}")
    optimizer = torch.optim.LBFGS(
        net.parameters(), max_iter=8, history_size=10, line_search_fn="strong_wolfe", tolerance_grad=1e-9
    )
    for step in range(args.lbfgs_steps):

        def closure():
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            return loss

        print(f"lbfgs {step} loss {optimizer.step(closure).item():.8f}")
    eigenvalues = torch.linalg.eigvalsh(hessian(lambda p: (functional_call(net, {"log_diffusivity": p}, (data,)) - truth).square().mean()
                                                + 0.0 * p**2)(net.log_diffusivity.detach()).reshape(1, 1))  # fmt: skip
    assert torch.allclose(residual(net, inside), residual_by_func(net, inside)) and eigenvalues.abs().item() < 1e-12
    print(f"coefficient loss {(net.log_diffusivity.exp() - 0.5).abs().item():.6f}")


if __name__ == "__main__":
    main()
