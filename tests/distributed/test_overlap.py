"""Messages are on their way while the backward pass computes: what a profile shows of one step."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")


def test_reductions_begin_while_the_backward_computes(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
import json
from torch import nn
from torch.autograd import profiler
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
def net():
    return nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)))
def step(model):
    x = torch.ones(8, 64)
    for _ in range(2): model(x).sum().backward()  # the buckets are dealt anew after the first
    dist.barrier()
    with profiler.profile() as prof:
        model(x).sum().backward()
    return prof
def begins(prof, word):
    return [e.time_range.start for e in prof.function_events if word in e.name]

ddp = step(DistributedDataParallel(net(), bucket_cap_mb=64 * 65 * 4 / 2**20))
layers, messages = begins(ddp, "evaluate_function: Linear"), begins(ddp, "gloo:all_reduce")
assert len(layers) == 4 == len(messages)  # one for each layer
# The bucket of a layer is sent before the gradients of the layer before it are computed.
assert all(a < b for a, b in zip(messages, layers[1:])) and all(a < b for a, b in zip(layers, messages))

model = net()
for layer in model: fully_shard(layer)
shard = step(fully_shard(model))
layers, messages = begins(shard, "evaluate_function: Linear"), begins(shard, "mpi:fully_shard: reduce")
assert len(layers) == 4 and messages and messages[0] < layers[1] and layers[0] < messages[0]
forward = begins(shard, "aten::linear")
gathers = begins(shard, "mpi:fully_shard: gather")
assert gathers[0] < forward[0] and gathers[1] < forward[0] < forward[1]  # the next block's while one computes

messages = [e for e in ddp.function_events if e.name == "gloo:all_reduce"]
assert all(e.is_async and e.self_cpu_time_total == 0 and e.cpu_parent is None and not e.cpu_children for e in messages)
ddp.export_chrome_trace(f"trace{r}.json")
traced = [e for e in json.load(open(f"trace{r}.json"))["traceEvents"] if e["name"] == "gloo:all_reduce"]
assert sorted(e["ph"] for e in traced) == ["b"] * 4 + ["e"] * 4 and len({e["id"] for e in traced}) == 4
print("well")
""") == ["well"] * 2  # fmt: skip
