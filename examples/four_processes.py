"""Four processes train one model (`rushlight run -n 4 four_processes.py`): copies of it, and a model in four parts.

It needs MPI: `pip install 'rushlight[mpi]'`. Run as `python four_processes.py` it starts the four itself.
"""

import os
import subprocess
import sys

import rushlight as torch
from rushlight import distributed as dist
from rushlight import memory, nn, optim
from rushlight.distributed.fsdp import fully_shard
from rushlight.nn.parallel import DistributedDataParallel

size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
if "RANK" not in os.environ:
    command = [sys.executable, "-m", "rushlight", "run", "-n", "4", __file__, str(size)]
    raise SystemExit(subprocess.run(command).returncode)


def say(text: str) -> None:
    """Once, not four times."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def model() -> nn.Module:
    """Eight layers."""
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(size, size), nn.Tanh()) for _ in range(8)])


def train(made: nn.Module, name: str) -> None:
    """Three steps; each process has a fourth of the batch."""
    optimizer = optim.Adam(made.parameters())
    optim.in_backward(optimizer)  # steps each parameter when its averaged gradient has come
    memory.reset_peak()
    torch.manual_seed(1 + dist.get_rank())
    losses = []
    for _ in range(3):
        loss = made(torch.randn(32, size)).square().mean()
        loss.backward()
        losses.append(loss.detach())
    mean = torch.stack(losses)
    dist.all_reduce(mean)
    peaks: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(peaks, memory.peak())
    told = "  ".join(f"{peak / 1e6:5.1f} MB" for peak in peaks)
    say(f"{name:<16}peaks of the processes: {told}; losses {(mean / 4).numpy().round(5)}")


dist.init_process_group("gloo")  # whatever the name, MPI carries the messages
say(f"{dist.get_world_size()} processes, {sum(p.numel() for p in model().parameters()):,} parameters")
train(DistributedDataParallel(model()), "four copies")

sharded = model()
for block in sharded:
    fully_shard(block)
fully_shard(sharded)
train(sharded, "four parts")
dist.destroy_process_group()
