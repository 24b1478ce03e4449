"""Optimizer state dealt to processes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

import rushlight as torch

several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")


@pytest.mark.slow
@several
def test_losses_are_those_of_one_process_with_a_part_of_the_state(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from rushlight import memory
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

def train(part, back, steps=20):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256))
    model = DistributedDataParallel(net, bucket_cap_mb=0.3) if part else net
    groups = [{"params": net[:4].parameters()}, {"params": net[4:].parameters(), "lr": 2e-3}]
    optimizer = ZeroRedundancyOptimizer(groups, torch.optim.Adam, lr=1e-3) if part else torch.optim.Adam(groups, lr=1e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    if back: torch.optim.in_backward(optimizer)
    torch.manual_seed(1)
    found = []
    for step in range(steps):
        x = torch.randn(8, 256)
        if part: x = x.chunk(n)[r]
        optimizer.zero_grad()
        before = memory.current()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        loss = loss.detach()
        if part: dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        found.append(loss.item())
        if step == 0 and back: state = memory.current() - before
    return found, (state if back else None), optimizer, net

one = train(False, False)
for back in (False, True):
    several = train(True, back)
    assert max(abs(a - b) for a, b in zip(one[0], several[0])) < 1e-6, (one[0], several[0])
    whole = 2 * sum(p.nbytes for p in one[3].parameters())
    if back: assert whole / n - 20_000 < several[1] < whole / n + 20_000, (several[1], whole)
for q in several[3].parameters():
    other = q.detach().clone(); dist.broadcast(other, 0); assert torch.equal(other, q)
optimizer = several[2]
optimizer.consolidate_state_dict(to=1)
ordinary = one[2].state_dict()
if r == 1:
    state = optimizer.state_dict()
    assert list(state["state"]) == list(range(8)) and state["param_groups"][1]["params"] == ordinary["param_groups"][1]["params"]
    assert all(torch.allclose(state["state"][k]["exp_avg"], ordinary["state"][k]["exp_avg"], atol=1e-6) for k in range(8))
    assert abs(state["param_groups"][0]["lr"] - ordinary["param_groups"][0]["lr"]) < 1e-12
else:
    try: optimizer.state_dict()
    except RuntimeError as error: assert "call consolidate_state_dict(to=...) before" in str(error)
    else: raise AssertionError
fresh = ZeroRedundancyOptimizer([{"params": several[3][:4].parameters()}, {"params": several[3][4:].parameters()}], torch.optim.Adam, lr=5.0)
fresh.load_state_dict(ordinary)
assert len(fresh.state) < 8 and all("exp_avg" in state for state in fresh.state.values()) and fresh.param_groups[0]["lr"] < 1e-3
print("well")
""") == ["well"] * 2  # fmt: skip


def test_a_process_that_there_is_not_gets_no_state() -> None:
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    try:
        optimizer = torch.distributed.optim.ZeroRedundancyOptimizer(
            torch.nn.Linear(2, 1).parameters(), torch.optim.Adam
        )
        optimizer.consolidate_state_dict(to=1)
        with pytest.raises(RuntimeError, match="consolidate_state_dict"):
            optimizer.state_dict()
        optimizer.consolidate_state_dict()
        assert optimizer.state_dict()["param_groups"]
    finally:
        torch.distributed.destroy_process_group()


def test_what_it_refuses() -> None:
    layer = torch.nn.Linear(2, 1)
    with pytest.raises(ValueError, match="init_process_group"):
        torch.distributed.optim.ZeroRedundancyOptimizer(layer.parameters(), torch.optim.Adam)
    with pytest.raises(NotImplementedError, match="in_backward"):
        torch.distributed.optim.ZeroRedundancyOptimizer(layer.parameters(), torch.optim.Adam, overlap_with_ddp=True)
