"""Derivatives forward, and many at once: a pendulum's sensitivity, gradients of each sample, a whole Jacobian."""

import sys

import rushlight as torch
from rushlight import memory, nn
from rushlight.func import functional_call, grad, jacfwd, jacrev, jvp, vmap

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500


def pendulum(length: torch.Tensor) -> torch.Tensor:
    """The angle after 2 seconds of swinging from 1 radian."""
    angle, speed = torch.ones_like(length), torch.zeros_like(length)
    for _ in range(steps):
        speed = speed - 2 / steps * 9.81 / length * angle.sin()
        angle = angle + 2 / steps * speed
    return angle


length = torch.tensor(1.0)
before = memory.current()
memory.reset_peak()
angle, tangent = jvp(pendulum, (length,), (torch.tensor(1.0),))
forward = memory.peak() - before
memory.reset_peak()
slope = grad(pendulum)(length)
backward = memory.peak() - before
print(f"a pendulum of 1 m is at {angle.item():+.4f} rad after 2 s; a metre more moves it by {tangent.item():+.4f} rad")
print(f"{steps} steps of time: forward mode {forward:,} bytes, backward {backward:,}, the same slope: "
      f"{abs(slope - tangent).item() < 1e-3}")  # fmt: skip

print("\nseveral lengths at once, by vmap:")
lengths = torch.linspace(0.5, 2.0, 7)
_, tangents = vmap(lambda x: jvp(pendulum, (x,), (torch.ones(()),)))(lengths)
for x, d in zip(lengths.tolist(), tangents.tolist(), strict=True):
    print(f"  {x:4.2f} m  {d:+8.3f} rad/m  {'◀' * max(0, round(-4 * d))}{'▶' * max(0, round(4 * d))}")

print("\nthe norm of each sample's own gradient, without a loop:")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
parameters = dict(model.named_parameters())
x, y = torch.randn(5, 4), torch.randn(5, 1)


def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Of one sample."""
    return (functional_call(model, parameters, (x,)) - y).square().sum()


each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
norms = sum(g.flatten(1).square().sum(1) for g in each.values()).sqrt()
print("  " + "  ".join(f"{norm:.3f}" for norm in norms.tolist()))

whole = jacfwd(model)(x[0]), jacrev(model)(x[0])
print("\nforward and reverse Jacobians agree:", torch.allclose(*whole, atol=1e-6))
