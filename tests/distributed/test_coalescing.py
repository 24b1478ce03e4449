"""Several collectives in one message, groups of a part of the processes, lists of objects as messages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.distributed.test_several import START, lines, run

from rushlight import distributed as dist

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")


def test_collectives_of_a_block_are_one_message_of_each_kind(tmp_path: Path) -> None:
    script = (
        START
        + """\
from rushlight.distributed import channel
begun = []
for name in ("all_reduce", "all_gather", "reduce_scatter"):
    def counted(self, *words, _plain=getattr(channel.Several, name), _name=name):
        begun.append(_name)
        return _plain(self, *words)
    setattr(channel.Several, name, counted)
a, b, c = torch.full((2,), r + 1.), torch.full((3, 2), r + 2.).t(), torch.tensor(float(r))
dist.all_reduce_coalesced([a, b, c])
assert (a == 3).all() and (b == 5).all() and b.shape == (2, 3) and c == 1 and begun == ["all_reduce"]
outs = [[torch.empty(2), torch.empty(3, dtype=torch.bool), torch.empty((), dtype=torch.bfloat16)] for _ in range(n)]
given = [torch.full((2,), float(r)), torch.tensor([r == 0] * 3), torch.tensor(r + 5., dtype=torch.bfloat16)]
work = dist.all_gather_coalesced(outs, given, async_op=True)
work.wait()
assert [[t.tolist() for t in out] for out in outs] == [[[k, k], [k == 0] * 3, k + 5] for k in range(n)]
begun.clear()
h = torch.full((2,), r + 1, dtype=torch.bfloat16)
with dist._coalescing_manager(async_ops=True) as manager:
    for x in (a, b): dist.all_reduce(x, op=dist.ReduceOp.AVG)
    dist.all_reduce(h)
    assert begun == []
    wide, long = torch.empty(n, 3), torch.empty(2 * n, dtype=torch.int16)
    dist.all_gather_into_tensor(wide, torch.full((3,), float(r)))
    dist.all_gather_into_tensor(long, torch.tensor([r, 10 * r], dtype=torch.int16))
    small, part = torch.empty(1), torch.empty(2, 2)
    dist.reduce_scatter_tensor(small, torch.arange(2.) + r)
    dist.reduce_scatter_tensor(part, torch.arange(8.).view(4, 2))
manager.wait()
assert begun == ["all_reduce"] * 2 + ["all_gather"] * 2 + ["reduce_scatter"], begun  # gathered ones are of two dtypes
assert (a == 3).all() and (b == 5).all() and h.tolist() == [3, 3]
assert wide.tolist() == [[k] * 3 for k in range(n)] and long.tolist() == [0, 0, 1, 10]
assert small.tolist() == [2 * r + 1] and part.tolist() == [[8. * r, 8. * r + 2], [8. * r + 4, 8. * r + 6]]
with dist._coalescing_manager():
    dist.all_reduce(c)
assert c == 2
try:
    with dist._coalescing_manager(): 1 / 0
except ZeroDivisionError: dist.all_reduce(c)  # begins at once again
assert c == 4
print("well")
"""
    )
    assert lines(tmp_path, script) == ["well"] * 2


def test_groups_of_a_part_of_the_processes(tmp_path: Path) -> None:
    script = (
        START
        + """\
ranks = dist.get_process_group_ranks
mine, every = dist.new_subgroups(group_size=2)
assert ranks(mine) == [r // 2 * 2, r // 2 * 2 + 1] and len(every) == 2
x = torch.tensor(r); dist.all_reduce(x, group=mine); assert x == [1, 1, 5, 5][r]
mine, _ = dist.new_subgroups_by_enumeration([[3, 0], [1]])
assert (mine and ranks(mine)) == [[0, 3], [1], None, [0, 3]][r]
turned = dist.new_group([3, 1], sort_ranks=False)
assert dist.get_rank(turned) == {3: 0, 1: 1}.get(r, -1)
x = torch.tensor(r); dist.broadcast(x, group_src=0, group=turned); assert x == [0, 3, 2, 3][r]
if r in (1, 2):  # the others do not call it
    pair = dist.new_group([1, 2], use_local_synchronization=True)
    x = torch.tensor(r); dist.all_reduce(x, group=pair); assert x == 3
whole = dist.new_group(); x = torch.ones(1); dist.all_reduce(x, group=whole); assert x == 4
half = dist.split_group(dist.group.WORLD, [[0, 2], [1, 3]])
x = torch.tensor(r); dist.all_reduce(x, group=half); assert x == [2, 4][r % 2] and ranks(half) == [r % 2, r % 2 + 2]
last = dist.split_group(half, [[1]])
assert (last and ranks(last)) == [None, None, [2], [3]][r]
if r == 0: dist.send_object_list(["a", {"b": torch.ones(2)}], dst=3)
if r == 3:
    found = [None, None]
    assert dist.recv_object_list(found) == 0 and found[0] == "a" and found[1]["b"].tolist() == [1, 1]
print("well")
"""
    )
    assert lines(tmp_path, script, count=4) == ["well"] * 4


def test_calls_that_do_not_match_are_told_with_both_lines(tmp_path: Path) -> None:
    script = (
        START
        + """\
if r == 0:
    dist.all_reduce(torch.ones(2))
else:
    dist.broadcast(torch.ones(2), src=0)
"""
    )
    done = run(tmp_path, script, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if "different collectives" in line]
    for rank, (name, line) in enumerate([("all_reduce(float32[2]", 5), ("broadcast(float32[2]", 7)]):
        assert any(f"rank {rank} {name}" in text and f"script.py:{line}" in text for text in told), done.stderr


def test_the_level_of_debugging_is_of_the_variable_or_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUSHLIGHT_DISTRIBUTED_DEBUG", raising=False)
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "info")
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(RuntimeError, match="expected OFF, INFO or DETAIL"):
        dist.get_debug_level()


def test_what_groups_refuse() -> None:
    dist.init_process_group("gloo", world_size=1, rank=0)
    try:
        for size in (None, 0, 2):
            with pytest.raises(ValueError, match="group_size"):
                dist.new_subgroups(group_size=size)
        with pytest.raises(ValueError, match="has appeared in both"):
            dist.new_subgroups_by_enumeration([[0], [0]])
        with pytest.raises(ValueError, match="different numbers"):
            dist.split_group(None, [[0, 1]])
        with pytest.raises(ValueError, match="one dtype"):
            dist.all_reduce_coalesced([])
        assert dist.get_default_backend_for_device("cpu") == "gloo" and dist.is_backend_available("gloo")
        with pytest.raises(ValueError, match="device"):
            dist.get_default_backend_for_device("toaster")
    finally:
        dist.destroy_process_group()
