"""Groups that are made as objects, what their methods refuse, and what is told of groups."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines

import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed import distributed_c10d

several = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
HELP = """\
import datetime
def options(kind, **given):
    found = getattr(dist, f"{kind}Options")()
    for name, value in given.items(): setattr(found, name, value)
    return found
def refused(words, call, kind=RuntimeError):
    try: call()
    except kind as error: assert words in str(error), error
    else: raise AssertionError(words)
one, double, two = torch.zeros(1), torch.zeros(1, dtype=torch.float64), torch.zeros(2)
"""
MADE = """\
import os, datetime, torch, torch.distributed as dist
r, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
made = dist.ProcessGroupGloo._Options()
made._timeout, made._devices = datetime.timedelta(seconds=50), [dist.ProcessGroupGloo.create_device(interface="lo")]
pg = dist.ProcessGroupGloo(dist.FileStore("store", n), r, n, made)
"""


@several
def test_a_group_that_is_not_the_default_one(tmp_path: Path) -> None:
    assert lines(tmp_path, MADE + HELP + """\
assert not dist.is_initialized() and (pg.name(), pg.rank(), pg.size(), pg.options) == ("gloo", r, n, made)
dist.barrier(group=pg)
x = torch.ones(2); dist.all_reduce(x, group=pg); assert x.tolist() == [2, 2]
refused("has not been initialized", lambda: dist.all_reduce(x), ValueError)
some = [torch.ones(2) * (r + 1), torch.ones(2) * 10]; pg.allreduce(some).wait(); assert [t[0] for t in some] == [23, 23]
some = [torch.ones(1) * r, torch.ones(1) * 10 * r]; pg.broadcast(some, options("Broadcast", rootRank=1, rootTensor=1)).wait()
assert some[0] == some[1] == 10
out = [torch.zeros(1) for _ in range(n)]
future = pg.allgather([out], [torch.ones(1) * r]).get_future(); future.wait(); assert [t.item() for t in future.value()] == [0, 1]
whole = [[torch.zeros(1), torch.zeros(2)] for _ in range(n)]; pg.allgather_coalesced(whole, [torch.ones(1) * r, two]).wait(); assert whole[1][0] == 1
broadcast = lambda given, **how: pg.broadcast(given, options("Broadcast", **how))
refused("invalid root rank", lambda: broadcast([one], rootRank=-1)); refused("invalid root tensor", lambda: broadcast([one], rootRank=r, rootTensor=1))
refused("invalid root tensor", lambda: broadcast([])); refused("invalid tensor type", lambda: broadcast([one, double])); refused("invalid tensor size", lambda: broadcast([one, two]))
refused("non-empty tensor list", lambda: pg.allreduce([])); refused("invalid tensor layout", lambda: pg.allreduce([one, one.to_sparse()]))
refused("all have the same type", lambda: pg.allreduce_coalesced([one, double]))
scatter = lambda out, given, **how: pg.scatter(out, given, options("Scatter", **how))
refused("single-element output tensor list", lambda: scatter([], [])); refused("single-element input list", lambda: scatter([one], [], rootRank=r))
refused("Incorrect input list size 1", lambda: scatter([one], [[one]], rootRank=r)); refused("empty input on non-root", lambda: scatter([one], [[one] * n], rootRank=1 - r))
gather = lambda out, given, **how: pg.gather(out, given, options("Gather", **how))
refused("single-element input tensor list", lambda: gather([], [])); refused("single-element output list", lambda: gather([], [one], rootRank=r))
refused("Incorrect output list size 3", lambda: gather([[one] * 3], [one], rootRank=r)); refused("empty output on non-root", lambda: gather([[one] * n], [one], rootRank=1 - r))
refused("non-empty input tensor list", lambda: pg.allgather([], [])); refused("to have the same length", lambda: pg.allgather([], [one]))
refused("invalid output tensor list", lambda: pg.allgather([[one]], [one])); refused("invalid tensor type", lambda: pg.allgather([[double] * n], [one]))
refused("output lists should be equal to world size", lambda: pg.allgather_coalesced([], [one]))
refused("single-element tensor list", lambda: pg.reduce([one, one], options("Reduce")))
print("well")
""") == ["well", "well"]  # fmt: skip


@several
def test_results_and_what_does_not_fit(tmp_path: Path) -> None:
    assert lines(tmp_path, START + HELP + """\
import torch.distributed._functional_collectives as functional
out = [torch.zeros(1) for _ in range(n)]
assert dist.all_gather(out, torch.ones(1) * r, async_op=True).get_future().wait() == out and out[1] == 1
work = dist.reduce_scatter(one, [torch.ones(1)] * n, async_op=True); work.wait(); assert work.result()[0] is one and one == 2
refused("different dtypes", lambda: dist.all_to_all_single(torch.zeros(2), torch.zeros(2, dtype=torch.float64)), ValueError)
refused("different dtypes", lambda: dist.all_to_all([one, one], [double, double]), ValueError)
refused("does not support MAX", lambda: dist.all_reduce(torch.ones(1) * 1j, op=dist.ReduceOp.MAX), ValueError)
refused("PREMUL_SUM", lambda: dist.all_reduce(one, op=dist._make_nccl_premul_sum(2.0)))
mixed = [torch.ones(1) * (r + 1), torch.ones(1) * (r + 1j)]; dist.all_reduce_coalesced(mixed); assert mixed == [3, 1 + 2j]
world, part = dist.group.WORLD, dist.new_group([0, 1], group_desc="mine")
assert (world.group_desc, part.group_desc) == ("default_pg", "mine") and part.group_name != world.group_name
assert functional.all_reduce(torch.ones(1), "sum", part.group_name) == 2
assert dist.distributed_c10d._resolve_process_group(part.group_name) is part and dist.distributed_c10d._world.pg_names[world] == world.group_name
assert dist.distributed_c10d._get_pg_config(part)["ranks"] == [0, 1] and dist.get_backend_config() == "cpu:gloo,cuda:gloo"
refused("same group", lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, one, 1 - r, g) for g in (world, part)]), ValueError)
assert str(dist.P2POp(dist.isend, two, 1 - r)) == f"P2POp(isend pg={world.group_name}, group_src={r}, group_dst={1 - r}, (2,), torch.float32)"
refused("0 has appeared in both", lambda: dist.new_subgroups_by_enumeration([[0], [0, 1]]), ValueError)
refused("must not exceed the world size", lambda: dist.new_subgroups(3), ValueError)
refused("Invalid process group", lambda: dist.destroy_process_group(5), ValueError)
refused("at least 1", lambda: dist.scatter_object_list([], [1, 2]), ValueError)
dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER)
for dtype in (torch.float32, torch.float64, torch.bfloat16):
    for how, least in ((dist.ReduceOp.MAX, 2), (dist.ReduceOp.MIN, 1)):
        for size in (1, 5000):
            x = torch.full((size,), r + 1., dtype=dtype); x[0] = float("nan") if r == 0 else 1; dist.all_reduce(x, op=how)
            assert x[0].isnan() and (x[1:] == least).all()
            x = torch.tensor([1., float("nan")] if r else [float("nan"), 1.]).to(dtype); some = x[:1].clone(); dist.reduce_scatter_tensor(some, x, op=how); assert some.isnan()
short = datetime.timedelta(seconds=.2)
if r == 0:
    refused("Rank 1 failed to pass", lambda: dist.monitored_barrier(timeout=short))
    refused("Rank 0 timed out", lambda: world.monitored_barrier(datetime.timedelta(0)))
dist.barrier(); dist.monitored_barrier(timeout=5, wait_all_ranks=True)
dist.destroy_process_group(part)
refused("has given this one back", lambda: dist.all_reduce(one, group=part), ValueError); refused("given this one back", lambda: dist.send(one, 1 - r, part), ValueError)
refused("given this one back", lambda: dist.destroy_process_group(part), ValueError); assert part.rank() == r
print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


def test_backends_by_device() -> None:
    config = distributed_c10d.BackendConfig
    assert config("gloo").device_backend_map == {"cpu": "gloo", "cuda": "gloo"}
    assert repr(config(dist.Backend("cpu:gloo,cuda:nccl"))) == "cpu:gloo,cuda:nccl"
    with pytest.raises(ValueError, match="Duplicate device type"):
        config("cpu:gloo,cpu:nccl")
    with pytest.raises(ValueError, match="Invalid device:backend pairing"):
        config("cpu:gloo,")
    with pytest.raises(TypeError, match="Expected timeout argument"):
        dist.init_process_group("gloo", timeout=5, store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[arg-type]


def test_stores_below_prefixes() -> None:
    below = dist.HashStore()
    above = dist.PrefixStore("b", dist.PrefixStore("a", below))
    assert above._underlying_non_prefix_store is below
    with pytest.raises(ValueError, match="cannot be None"):
        dist.PrefixStore("a", None)  # type: ignore[arg-type]
    assert torch.distributed.TCPStore("localhost", 0, 1, True).libuvBackend


def test_others_that_are_imagined() -> None:
    dist.init_process_group("fake", rank=1, world_size=4, store=dist.HashStore())
    try:
        x, five = torch.arange(4.0), torch.full((1,), 5.0)
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (1, 4, "fake")
        dist.all_reduce(x)
        assert x.tolist() == [0, 1, 2, 3]
        out = [torch.zeros(1) for _ in range(4)]
        dist.all_gather(out, five)
        assert [t.item() for t in out] == [5] * 4
        whole, part = torch.zeros(4), torch.zeros(1)
        dist.all_gather_into_tensor(whole, five)
        dist.reduce_scatter_tensor(part, x)
        assert whole.tolist() == [5] * 4 and part.item() == 1
        dist.broadcast(part, 0)
        dist.scatter(part, None, src=0)
        dist.gather(part, None, dst=0)
        dist.all_to_all_single(whole, x)
        dist.all_to_all(out, [five] * 4)
        dist.send(five, 2)
        assert part.item() == 1 and dist.recv(part, 2) == 2 and dist.all_reduce(x, async_op=True).wait()
        assert dist.get_rank(dist.new_group([0, 1])) == 1 and dist.get_rank(dist.new_group([0, 2])) == -1
        assert dist.init_device_mesh("cpu", (2, 2)).get_coordinate() == (0, 1)
        said = [5]
        dist.broadcast_object_list(said, src=0)
        assert said == [5]
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model(torch.ones(1, 2)).sum().backward()
        assert model.module.bias.grad.item() == 0.25
        for way in (dist.group.WORLD.channel,):
            room = x.numpy().copy()
            way.all_gather_v(room, x.numpy()[:2], [1, 2, 1, 0])
            assert room.tolist() == [0, 0, 1, 3]
            way.reduce_scatter_v(room[:2], x.numpy(), [1, 2, 1, 0], "SUM")
            assert room[:2].tolist() == [1, 2]
        dist.barrier()
    finally:
        dist.destroy_process_group()
