"""Communication hooks, different numbers of batches, and parameters that not every process uses."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

import rushlight as torch

several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")

MODEL = (
    START
    + """\
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.optim import ZeroRedundancyOptimizer

def net(kind=None):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(40, 60), nn.Tanh(), nn.Linear(60, 40), nn.BatchNorm1d(40).eval(), nn.Linear(40, 1))
def error(model, x):
    return (model(x) - x.sum(1, keepdim=True)).square().mean()
"""
)


@pytest.mark.slow
@several
def test_hooks_average_gradients(tmp_path: Path) -> None:
    assert lines(tmp_path, MODEL + """\
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook as power
torch.manual_seed(5)
x = torch.randn(16, 40)
exact = net()
error(exact, x).backward()
def grads(hook, state=None, passes=1, cap=0.005):
    model = DistributedDataParallel(net(), bucket_cap_mb=cap)
    model.register_comm_hook(state, hook)
    for _ in range(passes):
        model.zero_grad()
        error(model, x.chunk(n)[r]).backward()
    return model.module
def off(found):
    return max(((p.grad - q.grad).norm() / q.grad.norm()).item() for p, q in zip(found.parameters(), exact.parameters()))
assert off(grads(default_hooks.allreduce_hook)) < 1e-6
assert 1e-6 < off(grads(default_hooks.fp16_compress_hook)) < 2e-3
assert 1e-4 < off(grads(default_hooks.bf16_compress_hook)) < 1e-2
assert 1e-4 < off(grads(default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook))) < 1e-2
def by_hand(state, bucket):
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0].div_(n))
assert off(grads(by_hand)) < 1e-6
wide = power.PowerSGDState(None, matrix_approximation_rank=40, start_powerSGD_iter=2, min_compression_rate=0.1)
assert off(grads(power.powerSGD_hook, wide, 4)) < 1e-4 and wide.iter == 4  # of full rank: exact
thin = power.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
some = grads(power.powerSGD_hook, thin, 6)
assert 1e-3 < off(some) < 3 and thin.error_dict
square = power.PowerSGDState(None, matrix_approximation_rank=8, start_powerSGD_iter=2)
assert off(grads(power.batched_powerSGD_hook, square, 6, 25)) < 5
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
model = DistributedDataParallel(net()); register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)
error(model, x.chunk(n)[r]).backward(); assert 1e-6 < off(model.module) < 2e-3
register_ddp_comm_hook(DDPCommHookType.POWER_SGD_RANK2, DistributedDataParallel(net()))
for p in some.parameters():
    other = p.grad.clone(); dist.broadcast(other, 0); assert torch.equal(other, p.grad)
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
@several
def test_processes_may_have_different_numbers_of_batches(tmp_path: Path) -> None:
    assert lines(tmp_path, MODEL + """\
from torch.distributed.algorithms.join import Join
def train(counts, zero=False, back=False, **options):
    model = DistributedDataParallel(net(), bucket_cap_mb=0.005)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01) if zero else torch.optim.SGD(model.parameters(), lr=0.01)
    if back: torch.optim.in_backward(optimizer)
    with Join([model, optimizer], **options) if zero else model.join(**options):
        for k in range(counts[r]):
            torch.manual_seed(100 * k + r)
            optimizer.zero_grad()
            error(model, torch.randn(4, 40)).backward()
            optimizer.step()
    return model.module
def alone(counts, whole, kind=torch.optim.SGD):
    model = net()
    optimizer = kind(model.parameters(), lr=0.01)
    for k in range(max(counts)):
        optimizer.zero_grad()
        active = [rank for rank in range(n) if k < counts[rank]]
        for rank in active:
            torch.manual_seed(100 * k + rank)
            (error(model, torch.randn(4, 40)) / (n if whole else len(active))).backward()
        optimizer.step()
    return model
def same(a, b):
    return all(torch.allclose(p, q, atol=1e-5) for p, q in zip(a.parameters(), b.parameters()))
assert same(train([3, 5]), alone([3, 5], True))
assert same(train([4, 0], divide_by_initial_world_size=False, back=True), alone([4, 0], False))
assert same(train([0, 3], zero=True), alone([0, 3], True, torch.optim.Adam))
assert same(train([2, 2]), alone([2, 2], True))
try: train([1, 3], throw_on_early_termination=True)
except RuntimeError as error_: assert "exhausted" in str(error_)
else: raise AssertionError
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
@several
def test_parameters_that_one_process_uses(tmp_path: Path) -> None:
    """The messages are in one order on all processes whichever gradients come."""
    assert lines(tmp_path, MODEL + """\
class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.ways, self.never = nn.Linear(40, 40), nn.ModuleList(nn.Linear(40, 40) for _ in range(2)), nn.Linear(2, 2)
    def forward(self, x, way):
        return self.ways[way](self.first(x))
model = DistributedDataParallel(Chosen(), bucket_cap_mb=0.001, find_unused_parameters=True)
for step in range(4):
    model.zero_grad()
    model(torch.ones(2, 40) * (r + 1), (r + step) % 2).sum().backward()
    mine, other = model.module.ways[(r + step) % 2], model.module.ways[(r + step + 1) % 2]
    assert model.module.never.weight.grad is None and torch.equal(mine.bias.grad, torch.ones(40)) and torch.equal(other.bias.grad, torch.ones(40))
    total = model.module.first.weight.grad.sum(); again = total.clone(); dist.broadcast(again, 0); assert torch.equal(total, again)
from torch.utils.checkpoint import checkpoint
class Again(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = net()
    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=True)
model = DistributedDataParallel(Again())
x = torch.ones(2, 40, requires_grad=True)
model(x * (r + 1)).sum().backward()
bias = model.module.inner[4].bias.grad; assert torch.equal(bias, torch.full_like(bias, 2.0)), bias
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
@several
def test_optimizers_applied_in_backward_wait_for_the_mean(tmp_path: Path) -> None:
    """`_apply_optimizer_in_backward` before and after a module is shared or sharded: the same parameters as of one process."""
    assert lines(tmp_path, START + """\
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import _apply_optimizer_in_backward as apply
from torch.nn.parallel import DistributedDataParallel
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).double()
def shared(module): return DistributedDataParallel(module, bucket_cap_mb=0.0005)
def sharded(module): return fully_shard(module)
def train(way=None, first=False):
    module = net()
    if first: apply(torch.optim.Adam, module.parameters(), {"lr": 0.01})
    model = module if way is None else way(module)
    if not first: apply(torch.optim.Adam, model.parameters(), {"lr": 0.01})
    seen = []
    for step in range(4):
        x = torch.arange(48.).view(8, 6).add(step).sin().double()
        (model(x if way is None else x.chunk(n)[r]) - 1).square().mean().backward()
        seen.append(all(p.grad is None for p in model.parameters()))  # stepped with, and freed
    assert all(seen)
    return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach() for p in model.parameters()]
alone = train()
for way, first in ((shared, True), (shared, False), (sharded, True), (sharded, False)):
    for a, b in zip(alone, train(way, first), strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-14), (way, first, (a - b).abs().max())
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
@several
def test_buffers_are_those_of_the_first_after_a_pass_that_was_averaged(tmp_path: Path) -> None:
    """As in PyTorch: before a forward whose predecessor was averaged, so that passes within `no_sync` send nothing at all."""
    assert lines(tmp_path, START + """\
from torch import nn
from torch.nn.parallel import DistributedDataParallel
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros(1))
    def forward(self, x):
        self.seen += 10 ** r
        return self.weight * x
model = DistributedDataParallel(Counts())
found = []
def step():
    model(torch.ones(1)).sum().backward()
    found.append(model.module.seen.item())
step()
with model.no_sync():
    step(); step(); step()
step(); step()
with torch.no_grad(): model(torch.ones(1))
found.append(model.module.seen.item())
model(torch.ones(1))
found.append(model.module.seen.item())
print(r, *found)
""") == ["0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0", "1 10.0 11.0 21.0 31.0 41.0 15.0 16.0 26.0"]  # fmt: skip


@several
def test_gradients_become_parts_of_buckets_where_nobody_sees_it(tmp_path: Path) -> None:
    """A new gradient lies in its bucket and is not copied back; one that is there already stays the tensor that others hold."""
    assert lines(tmp_path, START + """\
from torch import nn
from torch.nn.parallel import DistributedDataParallel
net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).double()
model = DistributedDataParallel(net, find_unused_parameters=True)
mean = 1.5
def step():
    model(torch.full((1, 4), r + 1., dtype=torch.float64)).sum().backward()
params = list(net.parameters())
step(); model.zero_grad(); step()  # buckets follow the order of gradients from the second pass on
bases = {id(p.grad._held.base) for p in params}
assert len(bases) == 1, bases  # all in one bucket
first = params[0].grad
kept = first.clone()
whole = net[1].weight.detach().sum(0)
assert torch.allclose(first, mean * whole[:, None].expand(3, 4), rtol=1e-14)
model.zero_grad(); step()
assert params[0].grad is not first and torch.equal(first, kept)  # who held it still has what it was
held, seen = [p.grad for p in params], params[0].grad.numpy()
step()  # adds to what is there
assert all(p.grad is g for p, g in zip(params, held))
assert torch.allclose(params[0].grad, kept + kept, rtol=1e-14) and (seen == params[0].grad.numpy()).all()
flat = torch.zeros(sum(p.numel() for p in params), dtype=torch.float64)  # a user's own buffer
model.zero_grad()
for p, part in zip(params, flat.split([p.numel() for p in params])): p.grad = part.view(p.shape)
step()
assert torch.equal(flat[:12].view(3, 4), kept)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(5))
    def forward(self, x, both): return self.a.sum() * x + (self.b.sum() * x if both else 0)
two = DistributedDataParallel(Two(), find_unused_parameters=True)
two(r + 1., True).backward()
with two.no_sync(): two(r + 1., True).backward()
mine = two.module.b.grad.clone()
two(r + 1., False).backward()
with two.no_sync(): late = two(r + 1., True)
two.zero_grad()
two.reducer.prepare_for_backward([])  # as trainers do that average what was computed within no_sync
late.backward()
assert two.module.b.grad[0] == mean and not two.zero_grad()
with two.no_sync(): two(r + 1., True).backward()
assert two.module.b.grad[0] == r + 1
two(r + 1., True).backward()
two.module.b.grad = mine.clone()
two(r + 1., False).backward()
assert torch.equal(two.module.b.grad, mine) and mine[0] == mean + r + 1  # no process used it: as it was
print("well")
""") == ["well"] * 2  # fmt: skip


def test_what_hooks_refuse() -> None:
    hooks = torch.distributed.algorithms.ddp_comm_hooks
    with pytest.raises(ValueError, match="start_powerSGD_iter > 1"):
        hooks.powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1)
    with pytest.raises(ValueError, match="expected joinables"):
        torch.distributed.algorithms.Join([])
