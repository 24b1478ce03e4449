"""DistributedDataParallel as its tutorial begins: processes by spawn, a toy model, a checkpoint that rank 0 writes and all read."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29531")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super(ToyModel, self).__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def demo_basic(rank, world_size):
    setup(rank, world_size)
    torch.manual_seed(rank)  # all get the parameters of rank 0
    ddp_model = DDP(ToyModel())
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        outputs = ddp_model(torch.randn(20, 10))
        loss_fn(outputs, torch.randn(20, 5)).backward()
        optimizer.step()
    same(ddp_model)
    print(f"basic {rank}", flush=True)
    cleanup()


def demo_checkpoint(rank, world_size, folder):
    setup(rank, world_size)
    ddp_model = DDP(ToyModel(), find_unused_parameters=True)
    path = os.path.join(folder, "model.checkpoint")
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    map_location = {"cuda:0": "cuda:%d" % rank}
    ddp_model.load_state_dict(torch.load(path, map_location=map_location, weights_only=True))
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    nn.MSELoss()(ddp_model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    optimizer.step()
    same(ddp_model)
    dist.barrier()
    if rank == 0:
        os.remove(path)
    print(f"checkpoint {rank}", flush=True)
    cleanup()


class Stages(nn.Module):
    def __init__(self, dev0, dev1):
        super().__init__()
        self.dev0, self.dev1 = dev0, dev1
        self.net1, self.net2 = nn.Linear(10, 10).to(dev0), nn.Linear(10, 5).to(dev1)

    def forward(self, x):
        x = torch.relu(self.net1(x.to(self.dev0)))
        return self.net2(x.to(self.dev1))


def demo_model_parallel(rank, world_size):
    setup(rank, world_size)
    model = DDP(Stages("cpu", "cpu"))
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    optimizer.zero_grad()
    outputs = model(torch.randn(20, 10))
    nn.MSELoss()(outputs, torch.randn(20, 5).to("cpu")).backward()
    optimizer.step()
    same(model)
    print(f"stages {rank}", flush=True)
    cleanup()


def same(model):
    """Parameters are equal on all processes."""
    for p in model.parameters():
        everywhere = [torch.empty_like(p) for _ in range(dist.get_world_size())]
        dist.all_gather(everywhere, p.detach())
        assert all(torch.equal(q, p) for q in everywhere)


def run_demo(demo_fn, world_size, *args):
    mp.spawn(demo_fn, args=(world_size, *args), nprocs=world_size, join=True)


if __name__ == "__main__":
    world_size = 2
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir()
    run_demo(demo_basic, world_size)
    run_demo(demo_checkpoint, world_size, folder)
    run_demo(demo_model_parallel, world_size)
