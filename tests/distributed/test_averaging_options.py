"""What DistributedDataParallel averages, and when: options, sparse gradients, files, and parameters averaged now and then."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

import rushlight as torch
from rushlight.nn.parallel.distributed import _BucketCapacityConfig

several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
HEAD = (
    START
    + """\
import io
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        self.register_buffer("mine", torch.tensor([float(r)]))
    def forward(self, x, both=True): return self.a * x + (self.b * x if both else 0)
def grads(model): return [p.grad.item() for p in model.module.parameters()]
def refused(kind, words, call):
    try: call()
    except kind as error: assert words in str(error), error
    else: raise AssertionError(words)
"""
)


@several
def test_the_forward_decides_whether_gradients_are_averaged(tmp_path: Path) -> None:
    assert lines(tmp_path, HEAD + """\
model = DDP(Two(), find_unused_parameters=True)
with model.no_sync(): late = model(r + 1.)
late.backward(); assert grads(model) == [r + 1] * 2
model.zero_grad(); now = model(r + 1.)
with model.no_sync(): now.backward()
assert grads(model) == [1.5, 1.5]
model.zero_grad()
with model.no_sync(): model(r + 1.).backward()
model(r + 1., False).backward(); assert grads(model) == [3., 1.5]  # b had a gradient since the last that was averaged
model.zero_grad(); model(r + 1.).backward(); was = grads(model)
model(r + 1., False).backward(); assert was == [1.5, 1.5] and grads(model) == [3., 1.5]  # b had none: as it was
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


@several
def test_options_and_files(tmp_path: Path) -> None:
    assert lines(tmp_path, HEAD + """\
for options, here in (({}, 0), ({"broadcast_buffers": False}, r), ({"forward_sync_buffers": False}, 0)):
    model = DDP(Two(), **options); assert model.module.mine.item() == here and model.broadcast_buffers == (not options)
left = Two(); DDP._set_params_and_buffers_to_ignore_for_model(left, ["a", "mine"])
model = DDP(left); model(r + 1.).backward(); assert grads(model) == [r + 1., 1.5] and model.module.mine.item() == r
mesh = dist.init_device_mesh("cpu", (n,)); assert DDP(Two(), device_mesh=mesh).process_group.size() == n
small = dist.init_device_mesh("cpu", (n, 1), mesh_dim_names=("a", "b")); alone = DDP(Two(), device_mesh=small["b"])
alone(r + 1.).backward(); assert grads(alone) == [r + 1.] * 2
refused(RuntimeError, "both process_group and device_mesh", lambda: DDP(Two(), process_group=dist.group.WORLD, device_mesh=mesh))
refused(RuntimeError, "1D", lambda: DDP(Two(), device_mesh=small))
refused(TypeError, "other", lambda: DDP(Two(), other=1))
refused(ValueError, "at the same time", lambda: DDP(Two(), param_to_hook_all_reduce=nn.Parameter(torch.ones(1))))
refused(NotImplementedError, "autocast", lambda: DDP(Two(), mixed_precision=nn.parallel.distributed._MixedPrecision()))
model = DDP(Two(), bucket_cap_mb_list=[1e-6, 1]); assert len(model.reducer.buckets) == 2
file = io.BytesIO(); torch.save(model, file); file.seek(0); again = torch.load(file, weights_only=False)
again(r + 1.).backward(); assert grads(again) == [1.5, 1.5]
refused(RuntimeError, "default process group", lambda: torch.save(DDP(Two(), process_group=dist.new_group([0, 1])), io.BytesIO()))
late = DDP(Two()); late._set_static_graph(); late(r + 1.).backward(); late(r + 1., False).backward()
refused(RuntimeError, "before training loop starts", late._set_static_graph)
told = late._get_ddp_logging_data()
assert (told["world_size"], told["iteration"], told["has_error"], told["module_name"], told["bucket_sizes"]) == (2, 2, 1, "Two", "8")
built = DDP(Two()); built._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS); built(r + 1.).backward(); assert grads(built) == [1.5, 1.5]
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


@several
def test_sparse_tensors_are_added_at_their_places(tmp_path: Path) -> None:
    assert lines(tmp_path, HEAD + """\
x = torch.sparse_coo_tensor([[r, 2]], [r + 1., 10.], (4,)); dist.all_reduce(x)
assert x.is_sparse and x.to_dense().tolist() == [1, 2, 20, 0]
x = torch.sparse_coo_tensor([[3] * r], [1.] * r, (4,)); dist.all_reduce(x, op=dist.ReduceOp.AVG); assert x.to_dense().tolist() == [0, 0, 0, .5]
refused(RuntimeError, "unsupported reduction", lambda: dist.all_reduce(x, op=dist.ReduceOp.MAX))
layer = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1)); model = DDP(layer)
with torch.no_grad(): layer[1].weight.fill_(1)
for _ in range(2):
    model.zero_grad(); model(torch.tensor([r, 2])).sum().backward()
    grad = layer[0].weight.grad; assert grad.is_sparse and grad.to_dense()[:, 0].tolist() == [.5, .5, 1, 0, 0] and layer[1].bias.grad == 2
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


@several
def test_parameters_averaged_now_and_then(tmp_path: Path) -> None:
    assert lines(tmp_path, HEAD + """\
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, optimizer_overlap_hooks, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.model_averaging import averagers, hierarchical_model_averager, utils
from torch.distributed.optim import PostLocalSGDOptimizer, as_functional_optim
p, q = nn.Parameter(torch.full((2,), r + 1.)), nn.Parameter(torch.full((1,), r + 1., dtype=torch.float64))
utils.average_parameters([p, q], None); assert p.tolist() == [1.5, 1.5] and q.item() == 1.5
model = DDP(Two()); hook = PostLocalSGDState(None, dist.new_subgroups(1)[0], 2); model.register_comm_hook(hook, post_localSGD_hook)
averager = averagers.PeriodicModelAverager(period=2, warmup_steps=2)
optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=1.), averager)
found = []
for _ in range(5):
    optimizer.zero_grad(); model(r + 1.).backward(); optimizer.step(); found.append(model.module.a.item())
assert found == [-.5, -2., -3.5, -4.5 - r, -6.5], found  # averaged gradients, then averaged parameters in every second step
assert optimizer.state_dict()["step"] == 5 and optimizer.state is optimizer.optim.state
optimizer.load_state_dict({**optimizer.state_dict(), "step": 7}); assert averager.step == 7
tree = hierarchical_model_averager.HierarchicalModelAverager({2: 1, 4: n})
assert [tree._find_process_group() and tree._find_process_group().size() for tree.step in range(1, 5)] == [None, 1, None, n]
refused(ValueError, "positive", lambda: averagers.PeriodicModelAverager(0))
refused(ValueError, "must be equal to the size", lambda: hierarchical_model_averager.HierarchicalModelAverager({2: 1}))
for kind in (DDPCommHookType.QUANTIZE_PER_TENSOR, DDPCommHookType.QUANTIZE_PER_CHANNEL):
    model = DDP(nn.Linear(600, 2)); register_ddp_comm_hook(kind, model)
    x = torch.linspace(-1, 1, 600) * (r + 1); model(x).sum().backward()
    torch.testing.assert_close(model.module.weight.grad, (torch.linspace(-1, 1, 600) * 1.5).expand(2, 600), rtol=0, atol=.01)
model = DDP(Two()); register_ddp_comm_hook(DDPCommHookType.NOOP, model); model(r + 1.).backward(); assert grads(model) == [r + 1.] * 2
model = DDP(Two()); stepping = optimizer_overlap_hooks._OptimizerHookState(as_functional_optim(torch.optim.SGD, lr=1.))
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
model.register_comm_hook(None, optimizer_overlap_hooks._hook_then_optimizer(allreduce_hook, stepping))
model(r + 1.).backward(); assert model.module.a.item() == -.5
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


def test_sizes_of_buckets() -> None:
    mib = 2**20
    plain = _BucketCapacityConfig.create(None, None)
    assert plain.caps() == [mib, 25 * mib] and plain.bucket_cap_mb == 25 and not plain.has_custom_per_bucket_caps
    assert _BucketCapacityConfig.create(2, None).caps() == [2 * mib, 2 * mib]
    listed = _BucketCapacityConfig.create(2, [1, 3])
    assert listed.caps() == [mib, 3 * mib] and listed.bucket_bytes_cap == 3 * mib
    assert plain.compute_bucket_size_limits(False, True) == ([mib, 25 * mib], [])
    assert listed.compute_bucket_size_limits(True, True) == ([mib, 3 * mib], [mib, 3 * mib])
    with pytest.raises(AssertionError, match="python reducer is not supported"):
        _BucketCapacityConfig.create(None, [1], use_python_reducer=True)
    with pytest.raises(NotImplementedError, match=r"grad|supported"):
        torch.distributed.algorithms.model_averaging.utils.get_params_to_average([1])


@several
def test_what_does_not_fit_is_said_on_all_processes(tmp_path: Path) -> None:
    assert lines(tmp_path, HEAD + """\
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.optim.zero_redundancy_optimizer import _broadcast_object
refused(RuntimeError, "rank 1 has the parameter weight", lambda: DDP(nn.Linear(2, 2 + r)))
refused(RuntimeError, "rank 1 has 3 parameters, rank 0 2", lambda: DDP(nn.ParameterList([torch.ones(1)] * (2 + r))))
model = DDP(Two()); assert (model.device, model.device_type) == (torch.device("cpu"), "cpu")
model.register_comm_hook(None, lambda state, bucket: bucket.buffer()); refused(TypeError, "returns a torch.futures.Future", model(1.).backward)
def wrong(state: object, bucket: dist.GradBucket) -> int: ...
refused(ValueError, "return annotation", lambda: DDP(Two()).register_comm_hook(None, wrong))
class Counts(Joinable):
    def __init__(self): self.seen, self.last = [], None
    def step(self):
        Join.notify_join_context(self); x = torch.ones(1); dist.all_reduce(x); self.seen.append(x.item())
    def join_hook(self, **options):
        hook, owner = JoinHook(), self
        hook.main_hook = lambda: dist.all_reduce(torch.zeros(1))
        hook.post_hook = lambda last: setattr(owner, "last", last)
        return hook
    join_device, join_process_group = torch.device("cpu"), dist.group.WORLD
counts = Counts()
with Join([counts]):
    for _ in range(2 + 2 * r): counts.step()
assert counts.seen == [2, 2, 1, 1][:2 + 2 * r] and counts.last == (r == 1) and isinstance(model, Joinable)
refused(TypeError, "abstract", Joinable)
def ends():
    with Join([counts], throw_on_early_termination=True):
        for _ in range(2 + 2 * r): counts.step()
refused(RuntimeError, "Detected at least one rank" if r else "Rank 0 exhausted all inputs", ends)
optimizer = ZeroRedundancyOptimizer([nn.Parameter(torch.ones(k)) for k in (9, 7, 5, 3)], torch.optim.SGD, lr=.1)
assert [[p.numel() for p in groups[0]["params"]] for groups in optimizer._partition_parameters()] == [[9, 3], [7, 5]]
refused(ValueError, "dense", lambda: ZeroRedundancyOptimizer([torch.sparse_coo_tensor(size=(2, 3))], torch.optim.SGD, lr=.1))
assert _broadcast_object(r, 1) == 1
refused(ValueError, "do not implement forward", lambda: fully_shard(nn.ModuleList([nn.Linear(2, 2)])))
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip
