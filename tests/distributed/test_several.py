"""Groups of several processes, started by MPI's launcher on this machine."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from benchmarks import kills

from rushlight.distributed import witness

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
START = "import torch, torch.distributed as dist, sys\ndist.init_process_group('gloo')\nr, n = dist.get_rank(), dist.get_world_size()\n"


def variables() -> dict[str, str]:
    """The environment without what a group is told by."""
    # What is printed line by line without a buffer arrives in pieces that mix.
    without = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "PYTHONUNBUFFERED")
    return {k: v for k, v in os.environ.items() if k not in without}


def run(folder: Path, script: str, *options: str, count: int = 2, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script as one of `count` processes each."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    start = [sys.executable, "-m", "rushlight", "run", *(["-n", str(count)] if count > 1 else []), str(path), *options]
    return subprocess.run(start, env={**variables(), **more}, capture_output=True, text=True, timeout=240, cwd=folder)


def lines(folder: Path, script: str, *options: str, count: int = 2, **more: str) -> list[str]:
    """What the processes print, sorted."""
    done = run(folder, script, *options, count=count, **more)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def test_collectives(tmp_path):
    assert lines(tmp_path, START + """\
def near(a, b):
    assert torch.equal(a, torch.as_tensor(b, dtype=a.dtype)), (a, b)
x = torch.arange(3.) + r
dist.all_reduce(x); near(x, [1., 3, 5])
for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.complex64):
    h = torch.full((2,), r + 1, dtype=dtype); dist.all_reduce(h, op=dist.ReduceOp.AVG); near(h, [1.5, 1.5])
i = torch.tensor([r + 1, 4]); dist.all_reduce(i, op=dist.ReduceOp.PRODUCT); near(i, [2, 16])
i = torch.tensor([r + 1, 4]); dist.all_reduce(i, op=dist.ReduceOp.BOR); near(i, [3, 4])
b = torch.tensor([r == 1, False]); dist.all_reduce(b, op=dist.ReduceOp.MAX); near(b, [True, False])
columns = torch.zeros(3, 2).t(); columns.fill_(r); dist.broadcast(columns, src=1); near(columns, torch.ones(2, 3))
part = torch.full((2,), float(r)); dist.reduce(part, dst=1); assert part[0] == (1 if r == 1 else 0)
out = [torch.zeros(2, dtype=torch.bfloat16) for _ in range(n)]
dist.all_gather(out, torch.full((2,), r, dtype=torch.bfloat16)); near(torch.stack(out), [[0, 0], [1, 1]])
whole = torch.zeros(4); dist.all_gather_into_tensor(whole, torch.full((2,), float(r))); near(whole, [0, 0, 1, 1])
mine = torch.zeros(2); dist.scatter(mine, [torch.ones(2), torch.ones(2) * 2] if r == 0 else None, src=0); near(mine, [r + 1.] * 2)
got = [torch.zeros(1), torch.zeros(1)] if r == 1 else None; dist.gather(torch.full((1,), r + 5.), got, dst=1)
assert r == 0 or [t.item() for t in got] == [5, 6]
piece = torch.zeros(2); dist.reduce_scatter_tensor(piece, torch.arange(4.)); near(piece, [[0, 2], [4, 6]][r])
piece = torch.zeros(2, dtype=torch.float16); dist.reduce_scatter(piece, [torch.ones(2).half(), 2 * torch.ones(2).half()])
near(piece, [2 * (r + 1)] * 2)
t = torch.zeros(1 + 2 * r); dist.all_to_all_single(t, torch.arange(2.) + 10 * r, [1, 2 * r], [1, 1] if r == 0 else [0, 2])
assert t.tolist() == ([0] if r == 0 else [1, 10, 11]), t
w = dist.all_reduce(x, async_op=True); assert w.wait() and w.is_completed(); near(x, [2., 6, 10])
found = [None] * n; dist.all_gather_object(found, {"rank": r}); assert found == [{"rank": 0}, {"rank": 1}]
said = ["a" if r == 0 else None]; dist.broadcast_object_list(said); assert said == ["a"]
only = [None]; dist.scatter_object_list(only, ["x", "y"] if r == 0 else None); assert only == ["xy"[r]]
g = dist.new_group([1]); assert dist.get_rank(g) == (-1 if r == 0 else 0) and dist.all_reduce(x, group=g) is None
dist.barrier(); dist.monitored_barrier(); print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


def test_groups_have_collectives_as_methods(tmp_path):
    assert lines(tmp_path, START + """\
pg, x = dist.group.WORLD, torch.full((2,), r + 1.)
def near(a, b): torch.testing.assert_close(a, torch.tensor(b, dtype=a.dtype).reshape(a.shape))
assert (pg.rank(), pg.size()) == (r, n)
t = x.clone(); assert pg.allreduce([t]).wait(); near(t, [3., 3])
t = x.clone(); pg.allreduce(t, dist.ReduceOp.MAX).wait(); near(t, [2., 2])
most = dist.AllreduceOptions(); most.reduceOp = dist.ReduceOp.PRODUCT
t, u = x.clone(), x.clone(); pg.allreduce([t], most).wait(); near(t, [2., 2]); pg.allreduce_coalesced([u, t]).wait(); near(t, [4., 4])
t = x.clone(); pg.broadcast(t, 1).wait(); near(t, [2., 2]); t = x.clone(); pg.broadcast([t]).wait(); near(t, [1., 1])
second = dist.ReduceOptions(); second.rootRank = 1
t = x.clone(); pg.reduce([t], second).wait(); near(t, [[1., 1], [3., 3]][r]); t = x.clone(); pg.reduce(t, root=0).wait()
near(t, [[3., 3], [2., 2]][r])
for given in (([torch.zeros(2), torch.zeros(2)], x), ([[torch.zeros(2), torch.zeros(2)]], [x])):
    pg.allgather(*given).wait(); parts = given[0][0] if len(given[0]) == 1 else given[0]; near(torch.cat(list(parts)), [1., 1, 2, 2])
whole = torch.zeros(4); pg._allgather_base(whole, x).wait(); near(whole, [1., 1, 2, 2])
t = torch.zeros(2); pg.scatter([t], [[x, x * 5]] if r == 0 else [], dist.ScatterOptions()).wait(); near(t, [[1., 1], [5., 5]][r])
got = [torch.zeros(2), torch.zeros(2)] if r == 1 else []; pg.gather(got, x, 1).wait(); assert r == 0 or got[1].tolist() == [2, 2]
t = torch.zeros(2); pg.reduce_scatter(t, [x, x * 2]).wait(); near(t, [[3., 3], [6., 6]][r])
t = torch.zeros(1); pg._reduce_scatter_base(t, x).wait(); near(t, [3.])
t = torch.zeros(2); pg.alltoall_base(t, x, [], []).wait(); near(t, [1., 2])
out = [torch.zeros(1), torch.zeros(1)]; pg.alltoall(out, [x[:1], x[1:]]).wait(); near(torch.cat(out), [1., 2])
if r == 0: pg.send([x], 1, 7).wait()
else: pg.recv([t], 0, 7).wait(); near(t, [1., 1])
pg.barrier().wait(); print("well"); dist.destroy_process_group()
""") == ["well", "well"]  # fmt: skip


def test_gradients_pass_between_processes(tmp_path):
    assert lines(tmp_path, START + """\
import torch.distributed.nn.functional as F
x = torch.full((2,), r + 1., requires_grad=True)
def grad(y):
    (g,) = torch.autograd.grad(y, x); return g.tolist()
weight = 10. ** r  # of this process's loss
assert grad((F.all_reduce(x) * weight).sum()) == [11, 11]
assert grad((F.broadcast(x, 1) * weight).sum()) == ([0, 0] if r == 0 else [11, 11])
assert grad(sum((t * weight * (k + 1)).sum() for k, t in enumerate(F.all_gather(x)))) == [11 * (r + 1)] * 2
assert grad((F.reduce(x, 0) * weight).sum()) == [1, 1]
assert grad((F.reduce_scatter(torch.empty(2), [x, x * 2]) * weight).sum()) == [21, 21]
assert grad(sum((t * weight).sum() for t in F.all_to_all([torch.empty(2)] * 2, [x, x * 2]))) == [21, 21]
assert grad((F.scatter([x, x * 3], 0) * weight).sum()) == ([31, 31] if r == 0 else [0, 0])
assert grad(sum((t * weight).sum() for t in F.gather(x, 1))) == [10, 10]
print("well")
""") == ["well", "well"]  # fmt: skip


def test_messages(tmp_path):
    assert lines(tmp_path, START + """\
x = torch.full((3,), float(r), dtype=torch.float16)
right, left = (r + 1) % n, (r - 1) % n
for _ in range(n - 1):
    got = torch.zeros_like(x)
    work = dist.isend(x, right); assert dist.recv(got, left) == left; work.wait(); x = got
ops = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, (y := torch.zeros_like(x)), left)]
for work in dist.batch_isend_irecv(ops): work.wait()
if r == 0:
    whose = sorted(dist.recv(torch.zeros(1)) for _ in range(n - 1)); assert whose == [1, 2], whose
else:
    dist.send(torch.ones(1), 0)
print(x[0].item(), y[0].item())
""", count=3) == ["0.0 2.0", "1.0 0.0", "2.0 1.0"]  # fmt: skip


TRAIN = """\
import torch, torch.distributed as dist, sys
from torch.nn.parallel import DistributedDataParallel
mode = sys.argv[1]
dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0 if n == 1 else r)  # all get the parameters of the first
nn = torch.nn
net = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32).eval(), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))
torch.manual_seed(1)
model = DistributedDataParallel(net, bucket_cap_mb=0.002, gradient_as_bucket_view=mode == "views", find_unused_parameters=mode == "unused")
if mode == "hook" and n > 1:
    model.register_comm_hook(None, lambda state, bucket: dist.all_reduce(bucket.buffer().div_(n), async_op=True).get_future().then(lambda _: bucket.buffer()))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
if mode in ("backward", "clipped"):
    torch.optim.in_backward(optimizer, clip_grad_norm=0.5 if mode == "clipped" else None)
losses = []
for step in range(30):
    x = torch.randn(16, 10)
    y = x.sum(1, keepdim=True)
    x, y = x.chunk(n)[r], y.chunk(n)[r]
    optimizer.zero_grad()
    if mode == "accumulated":
        with model.no_sync():
            (model(x) - y).square().mean().div(2).backward()
        (model(x) - y).square().mean().div(2).backward()
        loss = (model(x) - y).square().mean()
    else:
        loss = (model(x) - y).square().mean()
        loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    losses.append(mean.item())
if r == 0:
    print(*losses)
"""


LONG = [pytest.param(mode, marks=pytest.mark.slow) for mode in ("views", "accumulated", "unused", "hook")]


@pytest.mark.parametrize("mode", ["plain", "backward", "clipped", *LONG])
def test_losses_of_several_processes_are_those_of_one(tmp_path, mode):
    one = run(tmp_path, TRAIN, mode, count=1, RANK="0", WORLD_SIZE="1")
    assert one.returncode == 0, one.stderr
    for count in (2, 4) if mode == "backward" else (2,):
        (found,) = lines(tmp_path, TRAIN, mode, count=count)
        assert [float(v) for v in found.split()] == pytest.approx([float(v) for v in one.stdout.split()], rel=1e-5)


def test_a_process_that_fails_ends_all(tmp_path):
    """Also before there is a group, when the others wait for it to make one."""
    done = run(
        tmp_path,
        "import os\nif os.environ['RANK'] == '1': raise RuntimeError('a bad file')\n" + START + "print('never')\n",
    )
    assert done.returncode == 1 and "never" not in done.stdout
    assert "rank 1 failed" in done.stderr and "a bad file" in done.stderr and "rank 0" not in done.stderr
    done = run(tmp_path, START + "if r == 1: sys.exit(7)\ndist.barrier()\nprint('never')\n")
    assert done.returncode == 7 and "never" not in done.stdout and "rank 1 ended with status 7" in done.stderr


def test_a_process_that_is_killed_ends_all_and_is_named(tmp_path):
    done = run(tmp_path, START + "import os, signal\nif r == 1: os.kill(os.getpid(), signal.SIGKILL)\ndist.barrier()\n")
    assert done.returncode == 137 and "rank 1 was killed by signal 9" in done.stderr and "rank 0" not in done.stderr


@pytest.mark.parametrize(
    "program, status, killed",
    [("os.kill(os.getpid(), 9)", 137, True), ("sys.exit(137)", 137, False), ("os._exit(3)", 3, False)],
)
def test_how_a_process_ended_is_written_down_before_the_launcher_hears_of_it(tmp_path, program, status, killed):
    """The witness holds what the launcher listens to until then: the order of what is written is the order of the ends."""
    ends, (read, held) = tmp_path / "ends", os.pipe()
    ends.mkdir()
    words = [sys.executable, "-I", "-S", witness.__file__, sys.executable, "-c", f"import os, sys\n{program}"]
    running = subprocess.Popen(words, env={witness.FOLDER: str(ends), "PMI_RANK": "2"}, pass_fds=[held])
    os.close(held)
    assert os.read(read, 1) == b""  # closed by all
    os.close(read)
    end = witness.first(str(ends))
    assert end is not None and end[1:] == ("2", status, killed, False) and running.wait() == status
    witness.write("3", 1)
    (ends / "0").write_text("0 0 137 1")  # of a process that was ended while it wrote
    assert witness.first(str(ends)) == end


def runs(process: int) -> bool:
    """Whether a process of this number is there, and not only its number until somebody asks for its end."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_what_started_them(tmp_path, number):
    """After SIGTERM, which goes on to them, as they do; none runs on."""
    path = tmp_path / "script.py"
    path.write_text(START + """\
import os, signal, time
def saved(*_): os.write(1, f"saved {r}\\n".encode()); sys.exit(0)  # the signal may come within print
signal.signal(signal.SIGTERM, saved)
dist.barrier(); print(os.getpid(), flush=True); time.sleep(60)
""")  # fmt: skip
    start = [sys.executable, "-m", "rushlight", "run", "-n", "2", str(path)]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True, env=variables()) as running:
        assert running.stdout is not None
        numbers = [int(running.stdout.readline()) for _ in range(2)]
        running.send_signal(number)
        said = running.stdout.read().splitlines()  # until no process is left that may print
    assert sorted(said) == (["saved 0", "saved 1"] if number == signal.SIGTERM else [])
    assert running.returncode == (0 if number == signal.SIGTERM else -9)
    end = time.monotonic() + 10
    while any(runs(process) for process in numbers):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="reads /proc")
def test_kills_at_random_moments_end_all_and_leave_a_whole_checkpoint(tmp_path):
    """Some from before a process has told MPI that it is there, some from while it trains; each run goes on from the last."""
    chance, found = random.Random(1), []
    for wait in (0.5, 8, 8, 8, 8):
        found.append(kills.killed(tmp_path, 4, wait, chance))
    assert not [run for run in found if run.wrong]
    assert found[-1].steps > 0 and [run.steps for run in found] == sorted(run.steps for run in found)


def test_collectives_that_do_not_match_are_told(tmp_path):
    done = run(tmp_path, START + "dist.all_reduce(torch.ones(2 + r))\n", RUSHLIGHT_DISTRIBUTED_DEBUG="1")
    assert done.returncode == 1
    assert (
        "rank 0 all_reduce(float32[2], SUM, None) at " in done.stderr
        and "rank 1 all_reduce(float32[3], SUM, None)" in done.stderr
    )


def test_who_is_late_is_named(tmp_path):
    script = START.replace("'gloo'", "'gloo', timeout=datetime.timedelta(seconds=1)").replace(
        "import torch", "import datetime, torch"
    )
    done = run(tmp_path, script + "import time\nif r == 0: dist.monitored_barrier()\nelse: time.sleep(20)\n")
    assert done.returncode == 1 and "Rank 1 failed to pass monitoredBarrier within 1 s" in done.stderr


SPAWN = """\
import torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, count, start):
    dist.init_process_group("gloo", rank=rank, world_size=count)
    x = torch.tensor(start + rank)
    dist.all_reduce(x)
    print(f"sum {x.item()}")

if __name__ == "__main__":
    mp.spawn(work, args=(2, 1.0), nprocs=2)
"""
PROCESSES = (
    SPAWN.split("if __name__")[0]
    + """\
if __name__ == "__main__":
    mp.set_start_method("spawn")
    processes = [mp.Process(target=work, args=(rank, 2, 1.0)) for rank in range(2)]
    for process in processes: process.start()
    for process in processes: process.join()
"""
)


@pytest.mark.parametrize("script, count", [(SPAWN, 1), (SPAWN, 2), (PROCESSES, 2)])
def test_programs_that_start_their_processes(tmp_path, script, count):
    assert lines(tmp_path, script, count=count) == ["sum 3.0", "sum 3.0"]


def test_collectives_that_give_new_tensors(tmp_path):
    assert lines(tmp_path, START + """\
import torch.distributed._functional_collectives as funcol
def near(a, b):
    assert torch.equal(a, torch.as_tensor(b, dtype=a.dtype)), (a, b)
x, world = torch.arange(4.) + 10 * r, dist.group.WORLD
near(funcol.all_reduce(x, "sum", world), [10., 12, 14, 16]); near(x, torch.arange(4.) + 10 * r)
near(funcol.all_gather_tensor(x[:2].reshape(2, 1), 1, [0, 1]), [[0, 10], [1, 11]])
near(funcol.reduce_scatter_tensor(x.reshape(1, 4), "avg", 1, world), [[5., 6]] if r == 0 else [[7., 8]])
near(funcol.broadcast(x, 1, world), [10., 11, 12, 13])
near(funcol.permute_tensor(x, [1, 0], world), torch.arange(4.) + 10 * (1 - r))
w = torch.ones(2, requires_grad=True)
(funcol.all_gather_tensor_autograd(w, 0, world) * (r + 1)).sum().backward(); near(w.grad, [3., 3])
w = torch.ones(4, requires_grad=True)
(funcol.reduce_scatter_tensor_autograd(w, "sum", 0, world) * (r + 1)).sum().backward(); near(w.grad, [1., 1, 2, 2])
w = torch.ones(2, requires_grad=True)
(funcol.all_to_all_single_autograd(w, None, None, world) * (r + 1)).sum().backward(); near(w.grad, [1., 2])
for call, words in ((lambda: funcol.all_reduce(x, "mean", world), "Invalid reduce operation"), (lambda: funcol.reduce_scatter_tensor(x[:3], "sum", 0, world), "must be a multiple"),
                    (lambda: funcol.all_reduce(x, "sum", [0]), "make no group"), (lambda: dist.broadcast(x), "Must specify global_rank or group_rank"),
                    (lambda: dist.broadcast(x, 0, group_src=0), "both group_rank and global_rank"), (lambda: dist.send(x, r), "should not be the same as the rank of the current process"),
                    (lambda: dist.gather(x, [x, x] if r else None), "must" ), (lambda: dist.scatter(x, [x, x] if r else None), "must"), (lambda: dist.batch_isend_irecv([1]), "Each op is expected"),
                    (lambda: dist.get_rank("none"), "is not registered"), (lambda: dist.all_gather([x.double(), x.double()], x), "Invalid usage of tensors with different dtypes")):
    try:
        call()
    except ValueError as error:
        assert words.lower() in str(error).lower(), error
    else:
        raise AssertionError(words)
print(r, "done")
""") == ["0 done", "1 done"]  # fmt: skip
