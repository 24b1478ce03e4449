"""Modules whose parameters several processes share: losses as of one process, and what each process holds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")

# Trains a model twice in each process: alone with the whole batch, and sharded with this process's part of it.
TRAIN = (
    START
    + """\
import copy
from torch import nn
from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
F = nn.functional

class Block(nn.Module):
    def __init__(self, wide=301, how=None):
        super().__init__()
        self.norm, self.a, self.b, self.how = nn.LayerNorm(64), nn.Linear(64, wide), nn.Linear(wide, 64), how
    def inner(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))
    def forward(self, x):
        return self.inner(x) if self.how is None else checkpoint(self.inner, x, use_reentrant=self.how == "reentrant")

class Net(nn.Module):
    def __init__(self, how=None, around=None):
        super().__init__()
        self.first, self.blocks, self.last = nn.Linear(10, 64), nn.ModuleList(Block(how=how) for _ in range(3)), nn.Linear(64, 1)
        self.around = around
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            if self.around is not None:
                x = checkpoint(block, x, use_reentrant=self.around == "reentrant")
            else:
                x = block(x)
        return self.last(x)

def sharded(net, **options):
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)

def train(net, step, optimizer, part, steps, watch=None):
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        x = torch.randn(16, 10)
        y = x.sum(1, keepdim=True)
        if part:
            x, y = x.chunk(n)[r], y.chunk(n)[r]
        loss = step(net, optimizer, x, y)
        if part:
            dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        losses.append(loss.item())
    return losses

def error(net, x, y):
    return (net(x) - y).square().mean()

def plain(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = error(net, x, y)
    loss.backward()
    optimizer.step()
    return loss.detach()

def clipped(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = error(net, x, y)
    loss.backward()
    norms.append(float(nn.utils.clip_grad_norm_(net.parameters(), 0.5)))
    optimizer.step()
    return loss.detach()

def accumulated(net, optimizer, x, y, sync=True):
    optimizer.zero_grad()
    if hasattr(net, "set_requires_gradient_sync"):
        net.set_requires_gradient_sync(sync)
    (error(net, x, y) / 2).backward()
    if hasattr(net, "set_requires_gradient_sync"):
        net.set_requires_gradient_sync(True)
    loss = error(net, x, y)
    (loss / 2).backward()
    optimizer.step()
    return loss.detach()

def unsynced(*args):
    return accumulated(*args, sync=False)

def micro(net, optimizer, x, y):
    (error(net, x, y) / 2).backward()
    loss = error(net, x, y)
    (loss / 2).backward()
    return loss.detach()

def same(step=plain, steps=5, kind=torch.optim.Adam, back=None, build=Net, change=None, shard=sharded, tolerance=1e-6, lr=3e-3):
    global norms
    found = []
    for part in (False, True):
        norms = []
        torch.manual_seed(0)
        net = build()
        if change is not None:
            change(net)
        if part:
            net = shard(net)
            assert all(isinstance(p, DTensor) for p in net.parameters())
        optimizer = kind([p for p in net.parameters() if p.requires_grad], lr=lr)
        if back is not None:
            torch.optim.in_backward(optimizer, **back)
        found.append((train(net, step, optimizer, part, steps), norms, net, optimizer))
    (one, norms_of_one, net, _), (several, norms_of_several, shards, _) = found
    worst = max(abs(a - b) / max(1, abs(a)) for a, b in zip(one, several, strict=True))
    assert worst < tolerance, (step.__name__, worst, one, several)
    assert all(abs(a - b) < 1e-4 * a for a, b in zip(norms_of_one, norms_of_several, strict=True)), (norms_of_one, norms_of_several)
    for p, q in zip(net.parameters(), shards.parameters(), strict=True):
        assert isinstance(q, DTensor) and q.to_local().shape[0] <= -(-p.shape[0] // n), q.shape
        assert (p - q.full_tensor()).abs().max() < 1e-3 and q.grad is None or back is None
    return found
"""
)


def test_losses_are_those_of_one_process(tmp_path: Path) -> None:
    assert lines(tmp_path, TRAIN + """\
same(back={}, steps=50)  # Adam in backward
same(clipped)
same(back={"clip_grad_norm": 0.5})
same(unsynced)
same(back={}, build=lambda: Net("outside"))
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
def test_sharded_modules_work_with_checkpointing_and_frozen_parameters(tmp_path: Path) -> None:
    assert lines(tmp_path, TRAIN + """\
same(accumulated)
same(micro, back={"accumulate": 2})
same(micro, back={"accumulate": 2, "accumulate_into": "moments"})
same(kind=torch.optim.SGD, shard=lambda net: fully_shard(net, reshard_after_forward=True))
same(back={}, build=lambda: Net(around="whole"))
same(build=lambda: Net("reentrant"), back={})
same(build=lambda: Net(around="reentrant"))
def frozen(net):
    net.blocks[1].requires_grad_(False)
    net.blocks[0].a.requires_grad_(False)
    net.first.requires_grad_(False)
same(change=frozen, back={})
class Square(Net):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(64), Block(64)])
def tied(net):
    net.blocks[0].b.weight = net.blocks[0].a.weight
class Twice(Square):
    def forward(self, x):
        x = self.first(x)
        for _ in range(2):
            for block in self.blocks:
                x = block(x)
        return self.last(x)
same(build=Square, change=tied, back={})
same(build=Twice, change=tied, back={})
class Views(Block):
    def inner(self, x):
        left, right = self.a.weight.t().chunk(2, 1)
        wide = torch.cat([x @ left, x @ right.flip(1).flip(1)], -1) + self.a.bias
        return x + F.gelu(wide) @ self.b.weight.T.flip(0).flip(0) + self.b.bias * self.b.weight.detach().sum()
class Viewed(Net):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Views() for _ in range(2))
import functools
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, FullStateDictConfig, ShardingStrategy, StateDictType
from torch.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy, transformer_auto_wrap_policy
def older(net):
    names = list(net.state_dict())
    net = FSDP(net, auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}))
    assert isinstance(net, FSDP) and isinstance(net, Net) and list(net.state_dict()) == names and len(FSDP.fsdp_modules(net)) == 4
    return net
def clipped_by(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = error(net, x, y)
    loss.backward()
    norms.append(float(net.clip_grad_norm_(0.5) if isinstance(net, FSDP) else nn.utils.clip_grad_norm_(net.parameters(), 0.5)))
    optimizer.step()
    return loss.detach()
found = same(clipped_by, shard=older)
one, several, optimizer = found[0][2], found[1][2], found[1][3]
whole = several.state_dict()
assert all(type(t) is torch.Tensor and torch.allclose(t, one.state_dict()[k], atol=1e-4) for k, t in whole.items())
with FSDP.state_dict_type(several, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
    assert bool(several.state_dict()) == (r == 0)
with FSDP.state_dict_type(several, StateDictType.SHARDED_STATE_DICT):
    assert all(isinstance(t, DTensor) for t in several.state_dict().values())
with FSDP.summon_full_params(several):
    assert torch.equal(several.first.weight, whole["first.weight"]) and type(several.first.weight) is nn.Parameter
    with torch.no_grad(): several.first.weight.mul_(2)
assert torch.equal(several.state_dict()["first.weight"], 2 * whole["first.weight"])
several.load_state_dict(whole); assert torch.equal(several.first.weight.full_tensor(), whole["first.weight"])
state = FSDP.optim_state_dict(several, optimizer)
assert state["state"]["first.weight"]["exp_avg"].shape == (64, 10)
optimizer.load_state_dict(FSDP.optim_state_dict_to_load(several, optimizer, state))
assert len(FSDP.fsdp_modules(FSDP(Net(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear})))) == 9
assert len(FSDP.fsdp_modules(FSDP(Net(), auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=30000)))) == 4
same(unsynced, shard=lambda net: FSDP(net, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP))
found = same(build=Viewed, back={})
assert all(block._fsdp_unit.pieces.found for block in found[1][2].blocks)
class Unused(Net):
    def forward(self, x):
        return self.last(self.blocks[0](self.first(x)))
same(build=Unused)
def narrow(net):
    for block in net.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    return fully_shard(net, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float32))
same(kind=torch.optim.SGD, shard=narrow, tolerance=0.1, lr=1e-4)
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
def test_everything_is_freed_by_reference_counts(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from rushlight import memory
from torch import nn
from torch.distributed.fsdp import fully_shard
width, room = 512, 200_000
block, x = 4 * width * width, torch.randn(4, 512)
torch.nn.Linear(8, 8)(torch.ones(1, 8)).sum().backward()
import gc  # everything goes by reference counts
gc.collect(); gc.disable()
def blocks(net):
    for layer in (net[0], net[2]):
        fully_shard(layer)
    return fully_shard(net)
for wrapped in (blocks, nn.parallel.DistributedDataParallel):
    before = memory.current()
    net = wrapped(nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)))
    optimizer = torch.optim.Adam(net.parameters())
    torch.optim.in_backward(optimizer)
    for step in range(2):
        net(x).square().mean().backward()
    net(x)
    assert memory.current() - before > block
    del net, optimizer
    assert memory.current() - before < room, memory.current() - before
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
def test_four_processes_and_replicas_of_shards(tmp_path: Path) -> None:
    assert lines(tmp_path, TRAIN + """\
same(back={}, steps=20)
same(clipped)
mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
def replicated(net):
    return sharded(net, mesh=mesh)
torch.manual_seed(0)
net = replicated(Net())
assert net.first.weight.to_local().shape == (32, 10) and net.first.weight.device_mesh is mesh
alone = (torch.manual_seed(0), Net())[1]
x = torch.randn(16, 10)
(alone(x) ** 2).mean().backward()
(net(x.chunk(4)[r]) ** 2).mean().backward()
for p, q in zip(alone.parameters(), net.parameters()):
    assert torch.allclose(q.grad.full_tensor(), p.grad, atol=1e-5)
norm = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
assert abs(norm.item() - nn.utils.clip_grad_norm_(alone.parameters(), 0.1).item()) < 1e-4
print("well")
""", count=4) == ["well"] * 4  # fmt: skip


def test_a_process_holds_its_part_and_the_blocks_that_compute(tmp_path: Path) -> None:
    """Bytes of arrays: parameters and moments over n between steps; at the peak two blocks more and the gradient of one."""
    assert lines(tmp_path, START + """\
from rushlight import memory
from torch import nn
from torch.distributed.fsdp import fully_shard
torch.nn.Linear(8, 8)(torch.ones(1, 8)).sum().backward()
before = memory.current()
width, depth = 512, 6
blocks = nn.Sequential()
for k in range(depth):  # each is dealt before the next is made
    blocks.append(fully_shard(nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh())))
net = fully_shard(blocks)
block = 4 * width * width
whole = depth * block
room = 200_000
assert memory.current() - before < whole / n + room, memory.current() - before
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
torch.optim.in_backward(optimizer)
x = torch.randn(4, width)
for step in range(3):
    memory.reset_peak()
    net(x).square().mean().backward()
    held, peak = memory.current() - before, memory.peak() - before
    assert held < 3 * whole / n + room, (held, whole)
    # Two blocks that are whole, gradients: one that is computed, one on its way, parts of two.
    assert peak < 3 * whole / n + 4 * block + 2 * block / n + room, (peak - 3 * whole / n) / block
with torch.no_grad():
    memory.reset_peak()
    net(x)
    assert memory.peak() - before < 3 * whole / n + 2 * block + room, (memory.peak() - before - 3 * whole / n) / block
class View(nn.Module):  # what an operator saves of a view of the weight does not keep the weight
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
    def forward(self, x):
        return torch.tanh(x @ self.weight.t())
net = nn.Sequential(*(fully_shard(View()) for _ in range(depth)))
fully_shard(net)
for step in range(2):
    before = memory.current()
    y = net(x)
    held = memory.current() - before
    y.sum().backward()
    del y
    net.zero_grad()
assert held < room, held / block
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
def test_stores_and_budgets_leave_gradients_as_they_are(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
import tempfile
from rushlight import memory, stores
def net():
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.GELU()) for _ in range(4)))
def sharded(model):
    for block in model: fully_shard(block)
    return fully_shard(model)
x = torch.randn(64, 256, generator=torch.Generator().manual_seed(r))
def grads(model, context=None):
    if context is None: model(x).square().mean().backward()
    else:
        with context: model(x).square().mean().backward()
    return [p.grad.full_tensor() if way is sharded else p.grad for p in model.parameters()]
for way in (sharded, DistributedDataParallel):
    plain = grads(way(net()))
    for context in (stores.disk(tempfile.mkdtemp(dir=".")), memory.budget("40MB")):
        assert all(torch.equal(a, b) for a, b in zip(plain, grads(way(net()), context), strict=True)), (way, context)
print("well")
""") == ["well"] * 2  # fmt: skip
