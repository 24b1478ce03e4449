"""Programs of views, changes in place and arithmetic on dual tensors give the values and tangents that PyTorch gives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import rushlight
import rushlight.autograd.forward_ad as our_ad

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")]

SHAPE = (3, 4)
VIEWS = [
    lambda x: x[0], lambda x: x[..., 1:], lambda x: x.transpose(0, -1), lambda x: x.unsqueeze(0), lambda x: x.squeeze(),
    lambda x: x.reshape(-1), lambda x: x.diagonal(0, 0, -1), lambda x: x[..., ::2], lambda x: x.unbind(0)[-1],
    lambda x: x.split(2, 0)[0], lambda x: x.view_as(x), lambda x: x.flip(0), lambda x: x.unfold(0, 2, 2), lambda x: x.detach()[0],
]  # fmt: skip
CHANGES = [
    lambda x, y: x.mul_(y), lambda x, y: x.add_(y, alpha=2), lambda x, y: x.copy_(y), lambda x, y: x.zero_(),
    lambda x, y: x.sin_(), lambda x, y: x.mul_(0.5), lambda x, y: x.fill_(0.3), lambda x, y: x.__setitem__(0, y.sum()),
    lambda x, y: x.sub_(x.clone()), lambda x, y: x.clamp_(-0.5, 0.5), lambda x, y: x.__setitem__(Ellipsis, y),
]  # fmt: skip
VALUES = [
    lambda x, y: x * y, lambda x, y: x.sin() + y, lambda x, y: x.clone(), lambda x, y: x.exp().sum(), lambda x, y: x.new_zeros(x.shape),
    lambda x, y: x.cumsum(-1), lambda x, y: x.contiguous(),
]  # fmt: skip


def program(seed: int) -> list[tuple[Any, ...]]:
    """Steps: (kind, operation, operands), as indices that are taken modulo what there is."""
    rng = random.Random(seed)
    kinds = rng.choices(["view", "change", "value"], [4, 5, 3], k=14)
    sizes = {"view": len(VIEWS), "change": len(CHANGES), "value": len(VALUES)}
    return [(kind, rng.randrange(sizes[kind]), rng.randrange(1000), rng.randrange(1000)) for kind in kinds]


def run(steps: Any, lib: Any, ad: Any) -> list[Any]:
    """What a program gives: for each step an error's presence, and at last values and tangents of all tensors."""
    rng = np.random.default_rng(7)
    told: list[Any] = []
    with ad.dual_level():
        fresh = [lib.from_numpy(rng.standard_normal(SHAPE)) for _ in range(4)]
        pool = [ad.make_dual(fresh[0], fresh[1]), fresh[2], fresh[3][:, 1:]]
        for kind, op, i, j in steps:
            x, y = pool[i % len(pool)], pool[j % len(pool)]
            try:
                if kind == "view":
                    pool.append(VIEWS[op](x))
                elif kind == "change":
                    CHANGES[op](x, y.clone())  # memory that does not overlap
                else:
                    pool.append(VALUES[op](x, y))
                told.append("done")
            except (RuntimeError, IndexError):
                told.append("refused")
        for x in pool:
            t = ad.unpack_dual(x).tangent
            told.append((x.detach().numpy().copy(), np.zeros(x.shape) if t is None else t.numpy()))
    return told


@pytest.mark.parametrize("seed", range(300))
def test_program(seed: int) -> None:
    steps = program(seed)
    for ours, theirs in zip(run(steps, rushlight, our_ad), run(steps, torch, torch.autograd.forward_ad), strict=True):
        if isinstance(ours, str) or isinstance(theirs, str):
            assert ours == theirs, steps
        else:
            np.testing.assert_allclose(ours[0], theirs[0], atol=1e-9, err_msg=str(steps))
            np.testing.assert_allclose(ours[1], theirs[1], atol=1e-9, err_msg=str(steps))
