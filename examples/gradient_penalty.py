"""Gradients of gradients: a critic with a penalty on its slope, and the curvature of a loss along directions."""

import sys

import rushlight as torch
from rushlight import nn
from rushlight.autograd.functional import hvp

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
torch.manual_seed(0)


def ring(count: int) -> torch.Tensor:
    """Points near a circle: (count, 2)"""
    angle = 6.2832 * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


class Squares(nn.Module):
    """Coordinates and their squares: (N, 2) -> (N, 4)"""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both."""
        return torch.cat([x, x.square()], -1)


critic = nn.Sequential(Squares(), nn.Linear(4, 64), nn.Softplus(), nn.Linear(64, 64), nn.Softplus(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for step in range(steps):
    real, noise = ring(128), 0.4 * torch.randn(128, 2)
    between = torch.lerp(real, noise, torch.rand(128, 1)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    loss = critic(noise).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()  # through `slope`: second derivatives
    optimizer.step()
    if step % max(steps // 5, 1) == 0:
        print(f"step {step:3}  critic {loss.item():7.3f}  mean slope {slope.norm(dim=1).mean().item():.3f}")

print("\nwhat the critic thinks of the plane: light in the middle, where noise is, dark on the ring and beyond")
grid = torch.stack(torch.meshgrid(torch.linspace(1.5, -1.5, 15), torch.linspace(-1.5, 1.5, 40), indexing="ij"), -1)
with torch.no_grad():
    height = critic(grid.flip(-1)).squeeze(-1)
level = ((height - height.min()) / (height.max() - height.min()) * 9.99).int().tolist()
print("\n".join("".join(" .:-=+*#%@"[cell] for cell in row) for row in level))


def loss_of(weight: torch.Tensor) -> torch.Tensor:
    """The critic's loss as a function of its first weight."""
    return torch.func.functional_call(critic, {"1.weight": weight}, (real,)).square().mean()


print("\nthe largest curvature of a loss along its first weight, by Hessian products alone")
weight, v = critic[1].weight.detach(), torch.randn(64, 4)
for turn in range(6):
    _, product = hvp(loss_of, weight, v / v.norm())
    print(f"turn {turn}: {(product * v / v.norm()).sum().item():9.5f}")
    v = product
