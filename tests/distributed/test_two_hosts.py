"""Two hosts joined by a cable: network namespaces of this machine, and MPI's launcher reaches the other by ssh."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks import two_hosts
from tests.distributed.test_several import START, runs, variables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"),
    pytest.mark.skipif(bool(two_hosts.missing()), reason=two_hosts.missing()),
]

TRAIN = (
    START
    + """\
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1)).double()
def train(model, back, part):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    if back: torch.optim.in_backward(optimizer)
    torch.manual_seed(1)
    losses = []
    for _ in range(10):
        x = torch.randn(8, 64, dtype=torch.float64)
        optimizer.zero_grad()
        loss = (model(x.chunk(n)[r] if part else x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        if part: dist.all_reduce(loss := loss.detach(), op=dist.ReduceOp.AVG)
        losses.append(loss.item())
    return torch.tensor(losses)
alone = train(net(), False, False)
for back in (False, True):
    assert torch.allclose(train(DistributedDataParallel(net()), back, True), alone, rtol=1e-6)
    assert torch.allclose(train(fully_shard(net()), back, True), alone, rtol=1e-6)

import os
print(os.environ["SSH_CONNECTION"].split()[2] if r == 1 else os.environ.get("SSH_CONNECTION"))
"""
)


def start(hosts: two_hosts.Hosts, folder: Path, script: str) -> subprocess.Popen[str]:
    """Start a script on both hosts."""
    (folder / "script.py").write_text(script)
    words = [sys.executable, "-m", "rushlight", "run", "-n", "2", "--hosts", hosts.addresses, "script.py"]
    given = {k: v for k, v in {**variables(), **hosts.environment()}.items() if k != "SSH_CONNECTION"}
    return subprocess.Popen(
        hosts.command(words), env=given, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("bandwidth, latency", [(1000, 1), (100, 20)])
def test_two_hosts_train_as_one(tmp_path, bandwidth, latency):
    with two_hosts.hosts(bandwidth, latency) as hosts:
        said, errors = start(hosts, tmp_path, TRAIN).communicate(timeout=240)
    assert sorted(said.split()) == [two_hosts.ADDRESSES[1], "None"], errors


def test_processes_end_with_a_message_when_the_cable_is_cut(tmp_path):
    script = """\
import datetime, os, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
x = torch.ones(1000)
open(f"number{dist.get_rank()}", "w").write(str(os.getpid()))
try:
    for step in range(10**9):
        dist.all_reduce(x, op=dist.ReduceOp.AVG)
        if step == 20 and dist.get_rank() == 0: print("cut", flush=True)
except dist.DistBackendError as error:
    open(f"said{dist.get_rank()}", "w").write(str(error))
    raise
"""
    with two_hosts.hosts(1000, 1) as hosts:
        running = start(hosts, tmp_path, script)
        assert running.stdout is not None and running.stdout.readline() == "cut\n"
        hosts.cut()
        end = time.monotonic() + 3 + 20
        while running.poll() is None or in_use(hosts):
            assert time.monotonic() < end, in_use(hosts)
            time.sleep(0.1)
        _, errors = running.communicate()
    assert running.returncode == 1 and "rank 0 failed" in errors and "within 3 s" in errors
    for rank in range(2):
        assert (
            "all_reduce: not every process of the group has called it within 3 s"
            in (tmp_path / f"said{rank}").read_text()
        )
        assert not runs(int((tmp_path / f"number{rank}").read_text()))


def in_use(hosts: two_hosts.Hosts) -> list[str]:
    """The programs on both hosts that are there: of MPI's launcher, ssh, witnesses and scripts."""
    found = []
    for name in hosts.names:
        done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True)
        for number in done.stdout.split():
            words = Path(f"/proc/{number}/cmdline")
            said = words.read_bytes().replace(b"\0", b" ").decode() if words.exists() else ""
            if "sshd" not in said and runs(int(number)):
                found.append(said)
    return found
