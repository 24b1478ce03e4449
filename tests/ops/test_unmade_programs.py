"""Random programs on logits that are not made do what they do on logits that are."""

import random

import numpy as np
import pytest

import rushlight as torch
from rushlight.ops.linear.unmade_products import limits, looked

F = torch.nn.functional


class Program:
    """A random program on the result of a linear layer; what it showed is in `seen`, the last error too."""

    def __init__(self, seed):
        self.draw, self.seen = random.Random(seed), []
        torch.manual_seed(seed)
        lead = self.draw.choice([(6,), (2, 3), (3, 2)])
        kind = {"dtype": torch.float64}
        self.x = torch.randn(*lead, 3, requires_grad=self.draw.random() < 0.9, **kind)
        self.w = torch.randn(5, 3, requires_grad=True, **kind)
        self.b = torch.randn(5, requires_grad=True, **kind) if self.draw.random() < 0.5 else None
        self.h = self.x * 2 if self.draw.random() < 0.7 else self.x
        self.y = torch.randint(0, 5, lead)
        self.by = self.draw.choice([self.layer, self.layer, self.product])
        self.known = [self.by()]
        self.losses = []

    def layer(self):
        return F.linear(self.h, self.w, self.b)

    def product(self):
        return self.h @ self.w.T

    def run(self):
        for _ in range(self.draw.randint(3, 9)):
            step = self.draw.choice(STEPS)
            try:
                step(self)
            except (RuntimeError, ValueError, IndexError) as error:
                self.seen.append(f"{type(error).__name__}: {str(error)[:150]}")
        for t in (self.x, self.w, self.b):
            self.seen.append(None if t is None or t.grad is None else t.grad.numpy().copy())
        self.seen += [t.detach().numpy().copy() for t in self.known]
        return self.seen

    def any(self):
        return self.draw.choice(self.known)

    def view(self):
        z = self.any()
        ways = [
            lambda: z.view(-1, 5), lambda: z.flatten(0, -2), lambda: z.transpose(0, -1), lambda: z[1:], lambda: z[0],
            lambda: z.unsqueeze(0), lambda: z[..., 1:], lambda: z.reshape(6, 5), lambda: z.permute(*range(z.ndim)[::-1]),
            lambda: z.detach(), lambda: z.contiguous(), lambda: z.double(), lambda: z * 1, lambda: z[:, ::2], lambda: z.T,
            lambda: z[:, :-1].reshape(-1, 5), lambda: z[1:].contiguous(), lambda: z[:, 1:].flatten(0, 1), lambda: z[..., :-1, :].clone(),
            lambda: z.transpose(0, 1).reshape(-1, z.shape[-1]), lambda: torch.reshape(z, (-1, z.shape[-1])), lambda: z.to(z),
            lambda: z.squeeze(), lambda: z.narrow(0, 0, 2), lambda: z.view(3, 2, 5), lambda: z.clone(), lambda: z.expand(2, *z.shape),
        ]  # fmt: skip
        self.known.append(self.draw.choice(ways)())

    def loss(self):
        z = self.any()
        if not z.ndim:
            return
        options = self.draw.choice(
            [{}, {}, {"reduction": "sum"}, {"ignore_index": 2}, {"label_smoothing": 0.2}, {"reduction": "none"}]
        )
        target = self.y.reshape(-1) if z.ndim == 2 else self.y.transpose(0, -1) if self.draw.random() < 0.3 else self.y
        target = target[: len(z)]
        found = F.cross_entropy(z, target, **options)
        self.losses.append(found.mean() * self.draw.choice([1, 3]))
        self.seen.append(self.losses[-1].detach().numpy().copy())

    def together(self):
        self.losses = [sum(self.losses)] if self.losses else []

    def backward(self):
        if self.losses:
            self.losses[-1].backward(retain_graph=self.draw.random() < 0.5)

    def gradients(self):
        if self.losses:
            targets = [t for t in (self.x, self.w, self.h, self.any()) if t.requires_grad and self.draw.random() < 0.6]
            create = self.draw.random() < 0.3
            found = torch.autograd.grad(
                self.losses[-1], targets, retain_graph=True, create_graph=create, allow_unused=True
            )
            self.seen += [None if g is None else g.detach().numpy().copy() for g in found]
            if create:
                parts = [(g * g).sum() for g in found if g is not None and g.requires_grad]
                self.losses.append(sum(parts) if parts else self.losses[-1])

    def change(self):
        what = self.draw.choice([self.w, self.h, self.any(), self.y])
        with torch.no_grad():
            what.mul_(1) if what is self.y else what.mul_(1.5)

    def replace(self):
        what = self.draw.choice([self.w, self.h, self.any()])
        what.data = what.data * 2
        self.y.data = self.y.data.flip(0) if self.draw.random() < 0.2 else self.y.data

    def hook(self):
        z = self.any()
        if z.requires_grad:
            z.register_hook(lambda g: self.seen.append(g.detach().numpy().copy()))

    def retain(self):
        z = self.any()
        if z.requires_grad and not z.is_leaf:
            z.retain_grad()

    def look(self):
        self.seen.append(self.any().detach().numpy().copy())

    def forget(self):
        if len(self.known) > 1:
            self.known.pop(0)

    def another(self):
        self.known.append(self.by())

    def recorded_change(self):
        z = self.any()
        z.mul_(2)


STEPS = [
    Program.view, Program.view, Program.loss, Program.loss, Program.loss, Program.backward, Program.backward, Program.gradients,
    Program.change, Program.replace, Program.hook, Program.retain, Program.look, Program.forget, Program.another,
    Program.together, Program.recorded_change,
]  # fmt: skip


def same(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True)
    return type(a) is type(b) and a == b


def difference(seed, monkeypatch):
    """What differs for a seed, None if nothing."""
    found = []
    for classes in (1, 1 << 60):
        looked.clear()
        monkeypatch.setattr(limits, "classes", classes)
        monkeypatch.setattr(limits, "nbytes", 0)
        found.append(Program(seed).run())
    late, usual = found
    if len(late) != len(usual):
        return f"{len(late)} results, {len(usual)}"
    return next((f"{i}: {a} != {b}" for i, (a, b) in enumerate(zip(late, usual, strict=True)) if not same(a, b)), None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 600, 100))
def test_programs_show_the_same(monkeypatch, first):
    for seed in range(first, first + 100):
        assert difference(seed, monkeypatch) is None, seed
