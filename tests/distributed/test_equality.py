"""A GPT on text and a ResNet train on several processes as on one with the same global batch: the same losses."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
TEXT = Path(__file__).resolve().parents[2] / "docs" / "distributed.md"

# Arguments: what trains, the dtype, the steps, the file with the text, and in how many parts one process takes a batch, whose
# gradients it adds up.  Prints each way with its worst difference from one process.
TRAIN = (
    START
    + """\
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from rushlight.models.language import GPT
from rushlight.models.resnet import BasicBlock, ResNet
what, dtype, steps, path = sys.argv[1], getattr(torch, sys.argv[2]), int(sys.argv[3]), sys.argv[5]
parts = int(sys.argv[4])
text = torch.tensor(list(open(path, "rb").read()))

def gpt():
    return GPT(256, length=32, layers=2, width=64, heads=4)
def resnet():
    net = ResNet(BasicBlock, (1, 1, 1, 1), num_classes=10)
    net.layer4, net.fc = nn.Identity(), nn.Linear(256, 10)  # three quarters of the parameters less
    return net.eval()  # the statistics of batches are of each process
def tokens(step):
    begins = torch.randint(len(text) - 33, (8, 1)) + torch.arange(33)
    return text[begins][:, :-1], text[begins][:, 1:]
def images(step):
    classes = torch.randint(10, (8,))
    return torch.randn(8, 3, 32, 32, dtype=dtype) + classes.view(8, 1, 1, 1) / 5, classes
def cost(out, wanted):
    return nn.functional.cross_entropy(out.flatten(0, -2), wanted.flatten())
build, batch = (gpt, tokens) if what == "gpt" else (resnet, images)

def sharded(net):
    for block in net.blocks if what == "gpt" else (net.layer1, net.layer2, net.layer3):
        fully_shard(block)
    return fully_shard(net)
def averaged(net):
    return DistributedDataParallel(net, bucket_cap_mb=0.1)
WAYS = {"ddp": averaged, "zero": averaged, "fully_shard": sharded}

def train(way=None, back=False):
    torch.manual_seed(0)
    net = build().to(dtype)
    model = WAYS[way](net) if way else net
    if way == "zero":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    if back:
        torch.optim.in_backward(optimizer)
    torch.manual_seed(1)
    losses = []
    for step in range(steps):
        x, y = batch(step)
        if way:
            x, y = x.chunk(n)[r], y.chunk(n)[r]
        optimizer.zero_grad()
        losses_of_parts = []
        for some, wanted in zip(x.chunk(1 if way else parts), y.chunk(1 if way else parts), strict=True):
            loss = cost(model(some), wanted) / (1 if way else parts)
            loss.backward()
            losses_of_parts.append(loss.detach())
        optimizer.step()
        loss = sum(losses_of_parts)
        if way:
            dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        losses.append(loss.item())
    return losses

found = [train() if r == 0 else None]
dist.broadcast_object_list(found)
(alone,) = found
for way in WAYS:
    for back in (False, True):
        several = train(way, back)
        worst = max(abs(a - b) / abs(a) for a, b in zip(alone, several, strict=True))
        if r == 0:
            print(way, back, worst, alone[0], alone[-1])
"""
)


def differences(folder: Path, *arguments: str, count: int) -> dict[tuple[str, str], float]:
    """The worst relative difference of a loss, by way and whether the optimizer is in backward; losses fall meanwhile."""
    done = run(folder, TRAIN, *arguments, str(TEXT), count=count)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        way, back, worst, first, last = line.split()
        assert float(last) < float(first)
        found[way, back] = float(worst)
    assert len(found) == 6
    return found


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("what", ["gpt", "resnet"])
def test_losses_are_those_of_one_process_for_fifty_steps(tmp_path: Path, what: str, count: int) -> None:
    found = differences(tmp_path, what, "float64", "50", "1", count=count)
    assert max(found.values()) < 1e-6, found


@pytest.mark.slow
@pytest.mark.parametrize("what", ["gpt", "resnet"])
def test_losses_in_float32_are_those_of_one_process_that_adds_up_two_parts(tmp_path: Path, what: str) -> None:
    """To the bit: all sums are of the same numbers then.  Of a whole batch they are rounded otherwise, which training makes grow."""
    found = differences(tmp_path, what, "float32", "50", "2", count=2)
    assert max(found.values()) == 0, found


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("what, steps", [("gpt", "50"), ("resnet", "3")])
def test_losses_in_float32_are_those_of_one_process(tmp_path: Path, what: str, steps: str, count: int) -> None:
    """Of the ResNet as long as rounding lets them: after ten steps one process that adds up two parts is 4e-5 away from itself."""
    found = differences(tmp_path, what, "float32", steps, "1", count=count)
    assert max(found.values()) < 1e-6, found
