"""Programs that send by hand, as tutorials have them: gradients by all_reduce, a ring, a pipeline, a parameter server; what they cost."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")

NET = (
    START
    + """\
from torch import nn
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
def batch(step):
    torch.manual_seed(100 + step)
    x = torch.randn(8, 6)
    return x, x.sum(1, keepdim=True)
def alone(steps=6):
    model, found = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
def near(a, b):
    assert len(a) == len(b) and max(abs(p - q) for p, q in zip(a, b)) < 1e-5, (a, b)
"""
)


@pytest.mark.slow
def test_a_ring_a_pipeline_and_a_parameter_server(tmp_path: Path) -> None:
    assert lines(tmp_path, NET + """\
def by_hand(average):
    model, found = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        x, y = (t.chunk(n)[r] for t in batch(step))
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        for p in model.parameters():
            average(p.grad)
        optimizer.step()
        loss = loss.detach(); dist.all_reduce(loss); found.append(loss.item() / n)
    return found
def all_reduced(grad):
    dist.all_reduce(grad, op=dist.ReduceOp.SUM)
    grad /= n
def ring(grad):
    total, mine = grad.clone(), grad.clone()
    left, right = (r - 1) % n, (r + 1) % n
    for _ in range(n - 1):
        coming = torch.empty_like(mine)
        sending = dist.isend(mine, right)
        dist.recv(coming, left)
        sending.wait()
        total += coming
        mine = coming
    grad.copy_(total / n)
near(by_hand(all_reduced), alone())
near(by_hand(ring), alone())

def pipeline():
    whole, found = net(), []
    stage = whole[:2] if r == 0 else whole[2:]
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
    for step in range(6):
        x, y = batch(step)
        optimizer.zero_grad()
        losses = []
        if r == 0:
            outs = []
            for part in x.chunk(2):
                outs.append(stage(part))
                dist.send(outs[-1].detach(), 1)
            for out in outs:
                grad = torch.empty_like(out)
                dist.recv(grad, 1)
                out.backward(grad)
        else:
            for part in y.chunk(2):
                hidden = torch.empty(4, 8)
                dist.recv(hidden, 0)
                hidden.requires_grad_()
                loss = (stage(hidden) - part).square().mean() / 2
                loss.backward()
                dist.send(hidden.grad, 0)
                losses.append(loss.item())
        optimizer.step()
        found.append(sum(losses))
    return found
losses = pipeline()
if r == 1: near(losses, alone())

def server():
    model, found = net(), []
    params = list(model.parameters())
    optimizer = torch.optim.SGD(params, lr=0.1)
    for step in range(6):
        if r == 0:  # which has the parameters
            for p in params: dist.send(p.detach(), 1)
            for p in params:
                p.grad = torch.empty_like(p)
                dist.recv(p.grad, 1)
            optimizer.step()
        else:
            with torch.no_grad():
                for p in params: dist.recv(p.data, 0)
            model.zero_grad()
            x, y = batch(step)
            loss = (model(x) - y).square().mean()
            loss.backward()
            for p in params: dist.send(p.grad, 0)
            found.append(loss.item())
    return found
losses = server()
if r == 1: near(losses, alone())
print("well")
""") == ["well"] * 2  # fmt: skip


def test_bytes_that_a_step_moves_are_those_of_the_formulas(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from rushlight.distributed.channel import received
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
def net():
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(256, 256, bias=False), nn.Tanh()) for _ in range(4)))
P = sum(p.nbytes for p in net().parameters())
def moved(model, optimizer):
    for step in range(3):
        before = received.total()
        model(torch.ones(2, 256)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return (received.total() - before) / (P * (n - 1) / n)
ddp = DistributedDataParallel(net())
assert moved(ddp, torch.optim.Adam(ddp.parameters())) == 2
narrow = DistributedDataParallel(net()); narrow.register_comm_hook(None, bf16_compress_hook)
assert moved(narrow, torch.optim.Adam(narrow.parameters())) == 1
zero = DistributedDataParallel(net())
assert moved(zero, ZeroRedundancyOptimizer(zero.parameters(), torch.optim.Adam)) == 3
def sharded(**options):
    model = net()
    for block in model: fully_shard(block, **options)
    return fully_shard(model, **options)
model = sharded()
assert moved(model, torch.optim.Adam(model.parameters())) == 3  # gathered twice, gradients once
model = sharded(reshard_after_forward=False)
assert moved(model, torch.optim.Adam(model.parameters())) == 2
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
def test_a_process_needs_what_is_estimated(tmp_path: Path) -> None:
    """The estimate of each way is at least what is counted, and at most a quarter more."""
    assert lines(tmp_path, START + """\
import gc
from rushlight import memory
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
width, depth = 256, 8
def net():
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh()) for _ in range(depth)))
def sharded():
    model = net()
    for block in model: fully_shard(block)
    return fully_shard(model)
def counted(way, back):
    gc.collect()
    before = memory.current()
    model = sharded() if way == "fully_shard" else DistributedDataParallel(net())
    kind = ZeroRedundancyOptimizer if way == "zero" else torch.optim.Adam
    optimizer = kind(model.parameters(), torch.optim.Adam) if way == "zero" else kind(model.parameters())
    if back: torch.optim.in_backward(optimizer)
    x = torch.randn(16, width)
    for step in range(3):
        if step == 2: memory.reset_peak()
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return memory.peak() - before
counted("ddp", False)
for back in (False, True):
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    found = memory.estimate(model, (16, width), torch.optim.in_backward(optimizer) if back else optimizer, processes=n)
    del model, optimizer
    for way, share in found.processes.items():
        need = counted(way, back)
        assert need <= share.peak * 1.02 + 100_000 and share.peak <= need * 1.25 + 100_000, (way, back, need, share)
        if r == 0: print(way, back, round(share.peak / need, 2), file=sys.stderr)
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
def test_processes_that_fail_start_again_from_the_last_checkpoint(tmp_path: Path) -> None:
    script = """\
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
assert sys.argv[1:] == ["--label", "-n", "5"]
state = {"x": torch.zeros(3), "step": 0}
if os.path.exists("saved/.metadata"): dcp.load(state, checkpoint_id="saved")
first = state["step"]
for step in range(first, 6):
    state["x"] += 1
    state["step"] = step + 1
    dcp.save(state, checkpoint_id="saved")
    if step == 2 and r == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": os.kill(os.getpid(), 9)
    if step == 4 and r == 0 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "1": raise RuntimeError("again")
    dist.barrier()
if r == 0: print(first >= 4, state["x"].tolist(), os.environ["TORCHELASTIC_RESTART_COUNT"])
"""
    path = tmp_path / "script.py"
    path.write_text(script)
    given = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")}
    command = [sys.executable, "-m", "rushlight", "run", "-n", "2", "--restarts", "3", str(path), "--label", "-n", "5"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "True [6.0, 6.0, 6.0] 2", (done.stdout, done.stderr)
    assert "start 2 of 4" in done.stderr and "start 3 of 4" in done.stderr and "start 4" not in done.stderr


def test_a_report_shows_all_processes(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from rushlight import memory
memory.record_history()
x = torch.ones(1000 * (r + 1), requires_grad=True)
x.exp().sum().backward()
memory.record_history(None)
found = [None] * n if r == 0 else None
dist.gather_object(memory.recording(), found)
if r == 0:
    memory.report(found, "report.html", title="exp")
    page = open("report.html").read()
    assert "exp, rank 0</th>" in page and "exp, rank 1</th>" in page
    peaks = [one.peak()[0] for one in found]
    assert peaks[1] - peaks[0] >= 8000, peaks  # the second has twice as many numbers
print("well")
""") == ["well"] * 2  # fmt: skip
