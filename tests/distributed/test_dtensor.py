"""Tensors that lie on several processes, and processes in a grid."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

import rushlight as torch

dist = torch.distributed
several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")


@pytest.fixture
def group() -> Iterator[None]:
    """The default group, of one."""
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.slow
@several
def test_parts_of_a_tensor_are_the_tensor(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
from torch.distributed.tensor import DTensor, distribute_tensor, Shard, Replicate, Partial
from torch.nn.utils import get_total_norm
mesh = dist.init_device_mesh("cpu", (n,))
torch.manual_seed(r)
mine = torch.randn(5, 3)
torch.manual_seed(0)
whole = torch.randn(5, 3)
d = distribute_tensor(mine, mesh, [Shard(0)])  # that of the first process
same = lambda a, b: torch.equal(a.full_tensor(), b) and a.dtype is b.dtype and a.shape == b.shape
assert same(d, whole) and d.to_local().shape[0] == (3, 2)[r] and len(d) == 5 and d.numel() == 15 and d.size(1) == 3
assert same(d * 2 + d.exp(), whole * 2 + whole.exp()) and same(d.double(), whole.double()) and same(d > 0, whole > 0)
for of_each in (torch.arctan, torch.digamma, torch.sinc, torch.nn.functional.mish, torch.nn.functional.softplus, torch.nn.functional.hardswish):
    assert same(of_each(d), of_each(whole)), of_each  # whatever its record says is of each element
for order in (1, 2, 3, float("inf"), 0):
    assert torch.allclose(d.norm(order).full_tensor(), whole.norm(order))
assert torch.allclose(get_total_norm([d, whole]), get_total_norm([whole, whole]))
assert torch.allclose(d.sum().full_tensor(), whole.sum()) and d.max().item() == whole.max().item() and not d.isnan().any()
columns = distribute_tensor(torch.nn.Parameter(whole), mesh, [Shard(1)])
assert isinstance(columns, torch.nn.Parameter) and columns.requires_grad and columns.to_local().shape == (5, 2 - r) and same(columns, whole)
assert same(columns.redistribute(placements=[Shard(0)]), whole) and same(columns.redistribute(placements=[Replicate()]), whole)
terms = DTensor.from_local(torch.full((2,), r + 1.0), mesh, [Partial()])
assert terms.full_tensor().tolist() == [3, 3] and terms.shape == (2,)
assert DTensor.from_local(torch.ones(2, 3), mesh, [Shard(0)]).shape == (4, 3)
torch.manual_seed(3); filled = torch.empty(5, 3).uniform_()
torch.manual_seed(3); d.uniform_(); assert same(d, filled)
d.mul_(2).add_(d); assert torch.allclose(d.full_tensor(), filled * 4)
d.copy_(whole); assert same(d, whole)
e = d.clone()
torch._foreach_mul_([d, e], 3.0); assert same(d, whole * 3) and same(e, whole * 3)
both = dist.init_device_mesh("cpu", (1, n), mesh_dim_names=("a", "b"))
twice = distribute_tensor(whole, both, [Shard(0), Shard(0)]); assert same(twice, whole) and twice.to_local().shape[0] == (3, 2)[r]
import torch.distributed.tensor as T
assert same(T.ones(5, 3, device_mesh=mesh, placements=[Shard(0)]), torch.ones(5, 3)) and same(T.full((4,), 7, device_mesh=mesh), torch.full((4,), 7))
torch.manual_seed(4); given = torch.empty(5, 3).normal_()
torch.manual_seed(4); assert same(T.randn(5, 3, device_mesh=mesh, placements=[Shard(1)]), given)
layer = T.distribute_module(torch.nn.Linear(3, 3), mesh); assert isinstance(layer.weight, DTensor) and layer.weight.placements == (Replicate(),)
part = torch.nn.Parameter(d); assert isinstance(part, DTensor) and isinstance(part, torch.nn.Parameter) and part.grad is None
part.grad = d.detach(); assert part.grad.shape == (5, 3)
optimizer = torch.optim.SGD([part], lr=1.0); optimizer.step(); assert part.full_tensor().abs().max() == 0
for call, message in ((lambda: d @ d, "matmul.* of a DTensor"), (lambda: columns * 2, "gradients do not pass"),
                      (lambda: d + whole, "torch.Tensor.add of"), (lambda: d.sum(0), "expected no dim"), (lambda: torch.ones(5, 3).copy_(d), "full_tensor"),
                      (lambda: torch.save(d, "/dev/null"), "checkpoint.save"), (lambda: d.T, "torch.Tensor.T")):
    try: call()
    except NotImplementedError as error:
        import re; assert re.search(message, str(error)), error
    else: raise AssertionError(message)
print("well")
""") == ["well"] * 2  # fmt: skip


@pytest.mark.slow
@several
def test_a_grid_has_groups_along_each_dimension(tmp_path: Path) -> None:
    assert lines(tmp_path, START + """\
mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
row, column = divmod(r, 2)
assert mesh.get_coordinate() == (row, column) and mesh.get_local_rank("data") == row and mesh["model"].get_local_rank() == column
assert dist.get_process_group_ranks(mesh.get_group("data")) == [column, column + 2] and mesh["model"].mesh.tolist() == [2 * row, 2 * row + 1]
x = torch.tensor(float(r)); dist.all_reduce(x, group=mesh.get_group("model")); assert x.item() == 4 * row + 1
flat = mesh["data", "model"]._flatten("all"); assert flat.size() == 4 and flat.get_local_rank() == r and mesh["all"] is flat
print("well")
""", count=4) == ["well"] * 4  # fmt: skip


def test_questions_and_mistakes_of_meshes(group: None) -> None:
    mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"))
    assert (mesh.shape, mesh.ndim, mesh.size(), mesh.size(1), mesh.device_type) == ((1, 1), 2, 1, 1, "cpu")
    assert mesh["a"].get_group() is mesh.get_group("a") and mesh == dist.DeviceMesh(
        "cpu", [[0]], mesh_dim_names=("a", "b")
    )
    assert mesh.get_all_groups() == [mesh.get_group(0), mesh.get_group(1)] and mesh.get_rank() == 0
    line = dist.DeviceMesh.from_group(mesh.get_group(0), "cpu", mesh_dim_names=("x",))
    assert line.mesh_dim_names == ("x",) and len({mesh, mesh["a", "b"]}) == 1
    with pytest.raises(RuntimeError, match="product is the number of processes, 1"):
        dist.init_device_mesh("cpu", (2,))
    with pytest.raises(RuntimeError, match="expected different names"):
        dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a"))
    with pytest.raises(ValueError, match="different ranks below 1"):
        dist.DeviceMesh("cpu", [0, 1])
    with pytest.raises(KeyError, match=r"no dimension is named .c."):
        mesh["c"]
    with pytest.raises(RuntimeError, match="say which"):
        mesh.get_group()


def test_mistakes_with_sharded_modules_and_tensors_are_told(group: None) -> None:
    from rushlight.distributed.fsdp import FSDPModule, fully_shard
    from rushlight.distributed.tensor import DTensor, Shard, distribute_tensor

    mesh = dist.init_device_mesh("cpu", (1,))
    with pytest.raises(ValueError, match="expected 1 placements"):
        distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)])
    with pytest.raises(ValueError, match="no dimension 1 to shard"):
        distribute_tensor(torch.ones(2), mesh, [Shard(1)])
    with pytest.raises(ValueError, match=r"has the part \[3\], got \[2\]"):
        DTensor.from_local(torch.ones(2), mesh, [Shard(0)], shape=(3,))
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert fully_shard(net) is net and isinstance(net, FSDPModule) and isinstance(net, torch.nn.Sequential)
    with pytest.raises(ValueError, match="was called for this FSDPSequential before"):
        fully_shard(net)
    with pytest.raises(NotImplementedError, match="call the module"):
        net[0](torch.ones(1, 2))
    with pytest.raises(NotImplementedError, match="Adafactor"):
        torch.optim.Adafactor(net.parameters())
    for given, message in (
        (torch.nn.ParameterList([torch.tensor(1.0)]), "has no dimensions"),
        (3, "expected a module"),
    ):
        with pytest.raises(ValueError, match=message):
            fully_shard(given)
    with pytest.raises(NotImplementedError, match="give it the state dict"):
        copy.deepcopy(net)
    state = net.state_dict()
    assert isinstance(state["0.weight"], DTensor)
    net.load_state_dict({name: torch.zeros(value.shape) for name, value in state.items()})
    assert net[0].weight.full_tensor().abs().sum() == 0


def test_a_module_without_memory_gets_memory_for_its_parts(group: None) -> None:
    from rushlight.distributed.fsdp import fully_shard

    with torch.device("meta"):
        net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 1))
    assert fully_shard(net)[0].weight.isnan().all().item()
    net.to_empty(device="cpu")
    torch.manual_seed(0)
    for module in (net[0], net[1], net[2]):
        module.reset_parameters()
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 1))
    for p, q in zip(whole.parameters(), net.parameters(), strict=True):
        assert torch.equal(p, q.full_tensor())
    x = torch.randn(4, 20)
    assert torch.equal(net(x), whole(x))
    assert net.double()[0].weight.dtype is torch.float64 and net(x.double()).dtype is torch.float64


def test_a_backward_that_fails_leaves_a_module_that_can_be_trained(group: None) -> None:
    from rushlight.distributed.fsdp import fully_shard

    def grads(fail: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            *(fully_shard(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())) for _ in range(3))
        )
        fully_shard(net)
        if fail:
            y = net(torch.ones(2, 3))
            handle = net[0][0].weight.register_hook(lambda g: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                y.sum().backward()
            handle.remove()
            net.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        return [p.grad.full_tensor() for p in net.parameters()]

    for a, b in zip(grads(False), grads(True), strict=True):
        assert torch.equal(a, b)
