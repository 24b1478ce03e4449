"""A neural differential equation by hand: Runge and Kutta's steps, with gradients through them or by the adjoint equation."""

import argparse
import math

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4_step(f, t, dt, y):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt * k1 / 2)
    k3 = f(t + dt / 2, y + dt * k2 / 2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def odeint(f, y, times):
    found = [y]
    for t, following in zip(times[:-1], times[1:], strict=True):
        y = rk4_step(f, t, following - t, y)
        found.append(y)
    return torch.stack(found)


class Adjoint(torch.autograd.Function):
    """The same path; its gradient is integrated backwards, so nothing between the steps is kept."""

    @staticmethod
    def forward(ctx, f, y, times, *params):
        with torch.no_grad():
            path = odeint(f, y, times)
        ctx.f = f
        ctx.save_for_backward(times, path, *params)
        return path

    @staticmethod
    def backward(ctx, grad):
        times, path, *params = ctx.saved_tensors
        f = ctx.f
        a = torch.zeros_like(grad[-1])
        totals = [torch.zeros_like(p) for p in params]

        def dynamics(t, state):
            y, a, *_ = state
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                out = f(t, y)
                vjp_y, *vjp_p = torch.autograd.grad(out, (y, *params), -a, allow_unused=True)
            return [
                out.detach(),
                vjp_y,
                *(torch.zeros_like(p) if g is None else g for p, g in zip(params, vjp_p, strict=True)),
            ]

        def add(state, other, scale):
            return [s + scale * o for s, o in zip(state, other, strict=True)]

        for i in range(len(times) - 1, 0, -1):
            a = a + grad[i]
            state = [path[i], a, *totals]
            t, dt = times[i], times[i - 1] - times[i]
            k1 = dynamics(t, state)
            k2 = dynamics(t + dt / 2, add(state, k1, dt / 2))
            k3 = dynamics(t + dt / 2, add(state, k2, dt / 2))
            k4 = dynamics(t + dt, add(state, k3, dt))
            for k, scale in ((k1, 1), (k2, 2), (k3, 2), (k4, 1)):
                state = add(state, k, dt * scale / 6)
            _, a, *totals = state
        return None, a + grad[0], None, *totals


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--niters", type=int, default=12)
    parser.add_argument("--batch_time", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=12)
    parser.add_argument("--adjoint", action="store_true")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    if args.double:
        torch.set_default_dtype(torch.float64)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = torch.linspace(0.0, 5.0, 101)
    with torch.no_grad():
        true_y = odeint(lambda _, y: torch.mm(y**3, true_A), torch.tensor([[2.0, 0.0]]), t)
    func = Field()
    optimizer = torch.optim.RMSprop(func.parameters(), lr=5e-3)
    for it in range(1, args.niters + 1):
        optimizer.zero_grad()
        s = torch.randint(0, len(t) - args.batch_time, (args.batch_size,))
        batch_y0, batch_t = true_y[s], t[: args.batch_time]
        batch_y = torch.stack([true_y[s + i] for i in range(args.batch_time)], dim=0)
        pred = (
            Adjoint.apply(func, batch_y0, batch_t, *func.parameters())
            if args.adjoint
            else odeint(func, batch_y0, batch_t)
        )
        loss = torch.mean(torch.abs(pred - batch_y))
        loss.backward()
        optimizer.step()
        if it % 3 == 0:
            with torch.no_grad():
                total = torch.mean(torch.abs(odeint(func, true_y[0], t) - true_y))
            print(f"Iter {it:04d} | batch loss {loss.item():.6f} | total loss {total.item():.6f}")
    y0 = torch.tensor([[1.0, 0.5]], requires_grad=True)
    through = torch.autograd.grad(odeint(func, y0, t[:4])[-1].sum(), (y0, *func.parameters()))
    adjoint = torch.autograd.grad(
        Adjoint.apply(func, y0, t[:4], *func.parameters())[-1].sum(), (y0, *func.parameters())
    )
    worst = max((p - q).abs().max().item() for p, q in zip(through, adjoint, strict=True))
    assert math.isfinite(worst) and worst < 1e-4, worst


if __name__ == "__main__":
    main()
