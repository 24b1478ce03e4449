"""Meta-learning of sine waves with torch.func: an inner step for every task at once, and a step through it."""

import argparse
import math

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, stack_module_state, vmap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, x):
        return self.layers(x)


def tasks(count, points):
    """Amplitudes and phases, and points of their waves: (count, points, 1) each."""
    amplitude = torch.empty(count, 1, 1).uniform_(0.5, 3.0)
    phase = torch.empty(count, 1, 1).uniform_(0.0, math.pi)

    def draw():
        x = torch.empty(count, points, 1).uniform_(-4.0, 4.0)
        return x, amplitude * torch.sin(x + phase)

    return draw(), draw()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--inner-lr", type=float, default=0.05)
    parser.add_argument("--inner-steps", type=int, default=2)
    parser.add_argument("--first-order", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = Net()
    params = dict(net.named_parameters())
    optimizer = torch.optim.Adam(params.values(), lr=5e-3)

    def loss_of(p, x, y):
        return nn.functional.mse_loss(functional_call(net, p, (x,)), y)

    def adapted_loss(p, x1, y1, x2, y2):
        for _ in range(args.inner_steps):
            g = grad(loss_of)(p, x1, y1)
            p = {k: p[k] - args.inner_lr * (g[k].detach() if args.first_order else g[k]) for k in p}
        return loss_of(p, x2, y2)

    for it in range(args.iterations):
        (x1, y1), (x2, y2) = tasks(args.tasks, 8)
        losses = vmap(adapted_loss, in_dims=(None, 0, 0, 0, 0))(params, x1, y1, x2, y2)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        if it % 3 == 0:
            print(f"iteration {it} loss {losses.mean().item():.6f}")

    # Ensembles, gradients of each example, and curvature, as in the tutorials of functional programs.
    models = [Net() for _ in range(3)]
    stacked, buffers = stack_module_state(models)
    base = models[0].to("meta")
    out = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), (0, 0, None))(stacked, buffers, x1[0])
    print(f"ensemble loss {((out - y1[0]) ** 2).mean().item():.6f}")
    detached = {k: v.detach() for k, v in params.items()}
    each, values = vmap(grad_and_value(loss_of), (None, 0, 0))(detached, x1[0], y1[0])
    norms = torch.cat([g.flatten(1) for g in each.values()], 1).norm(dim=1)
    print(f"norms of gradients loss {norms.mean().item():.6f} values loss {values.mean().item():.6f}")
    jacobian = vmap(jacrev(lambda x: functional_call(net, detached, (x,))))(x1[0])
    curvature = hessian(lambda b: loss_of({**detached, "layers.4.bias": b}, x1[0], y1[0]))(detached["layers.4.bias"])
    print(f"curvature loss {curvature.sum().item():.6f} slopes loss {jacobian.abs().mean().item():.6f}")


if __name__ == "__main__":
    main()
