"""Gradients that reach tensors which lie on several processes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")


@several
def test_gradients_reach_the_parts(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor, Partial, Replicate, Shard
mesh, whole = dist.init_device_mesh("cpu", (n,)), torch.arange(6.).reshape(3, 2)
made = lambda *where: distribute_tensor(whole.clone(), mesh, where).requires_grad_()
def part(x, where): return distribute_tensor(x, mesh, [where]).to_local()
for where in (Shard(0), Shard(1), Replicate()):
    for _ in range(2):
        p = made(where); (p.to_local() * (r + 1)).sum().backward()
        assert isinstance(p.grad, DTensor) and p.grad.placements == (where,) and (p.grad.to_local() == r + 1).all()
        (p.to_local() * (r + 1)).sum().backward(); assert (p.grad.to_local() == 2 * (r + 1)).all()
    p = made(where); (p.full_tensor() * whole).sum().backward(); assert torch.equal(p.grad.to_local(), part(whole, where))
    for to in (Shard(0), Shard(1), Replicate()):
        p = made(where); moved = p.redistribute(placements=[to])
        assert moved.requires_grad and not moved.is_leaf and moved.placements == (to,)
        (moved.to_local() * part(whole, to)).sum().backward(); assert torch.equal(p.grad.to_local(), part(whole, where))
for where, to, expected in ((Partial(), Replicate(), r + 2), (Partial(), Shard(0), None), (Shard(0), Replicate(), r + 2)):
    x = torch.ones(2, 2, requires_grad=True); (DTensor.from_local(x, mesh, [where]).redistribute(placements=[to]).to_local() * (r + 2)).sum().backward()
    assert x.grad.tolist() == ([[2, 2], [3, 3]] if expected is None else [[expected] * 2] * 2)
p = nn.Parameter(distribute_tensor(whole.clone(), mesh, [Shard(0)])); optimizer = torch.optim.SGD([p], lr=.5)
(p.full_tensor() ** 2).sum().backward(); torch.testing.assert_close(float(nn.utils.clip_grad_norm_([p], 1e9)), float((2 * whole).norm()))
optimizer.step(); assert (p.detach().full_tensor() == 0).all()
with torch.no_grad(): assert not p.to_local().requires_grad and not p.full_tensor().requires_grad
q = made(Shard(0)).detach(); q.to_local().fill_(5); assert (q.full_tensor() == 5).all()
assert q.sum().shape == q.sum().full_tensor().shape == q.max().full_tensor().shape == ()
try: torch.zeros(3, 2).copy_(made(Shard(0)))
except NotImplementedError as error: assert "requires grad" in str(error)
else: raise AssertionError
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip
