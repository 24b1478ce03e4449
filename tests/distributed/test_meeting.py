"""Processes that were started one by one: how they meet, what becomes of the others when one ends, and what nobody else may say."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from benchmarks import two_hosts
from tests.distributed.test_several import variables

from rushlight import distributed as dist
from rushlight.compat.contexts import free_port
from rushlight.distributed.errors import DistNetworkError, DistStoreError
from rushlight.distributed.meeting import server, words
from rushlight.distributed.meeting.files import FileTable
from rushlight.distributed.meeting.remote import RemoteTable, Server, listening

mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
SHORT = timedelta(seconds=1)
RUN = [sys.executable, "-m", "rushlight", "run"]

START = """\
import datetime, os, signal, sys, time, torch, torch.distributed as dist
method, r, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo", init_method=method, rank=r, world_size=n, timeout=datetime.timedelta(seconds=30))
x = torch.tensor([r + 1.0])
"""


def started(folder: Path, script: str, method: str, count: int, *words: str) -> list[subprocess.Popen[str]]:
    """A script in processes that know their numbers and where they meet."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    return [
        subprocess.Popen([*RUN, str(path), method, str(rank), str(count), *words], env=variables(), text=True, cwd=folder,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(count)
    ]  # fmt: skip


def ended(running: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """How each of some processes ended: status, what it printed, what it said of errors."""
    found = []
    for process in running:
        out, err = process.communicate(timeout=60)
        found.append((process.returncode, out.strip(), err))
    return found


def addresses(folder: Path) -> dict[str, str]:
    return {"tcp": f"tcp://127.0.0.1:{free_port()}", "file": f"file://{folder}/meeting"}


def meetings(folder: Path) -> int:
    """How many processes hold meetings of the groups that were made in a folder; in a second they see that all have gone."""
    end = time.monotonic() + 1
    while True:
        found = 0
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                own = str(folder) in os.readlink(process / "cwd")
                found += own and str(server.__file__).encode() in (process / "cmdline").read_bytes()
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


@mpi
@pytest.mark.parametrize("kind", ["tcp", "file"])
def test_they_make_a_group_and_another_one_after_it(tmp_path: Path, kind: str) -> None:
    found = ended(started(tmp_path, START + """\
dist.all_reduce(x)
half = dist.new_group([0, 1])
if r < 2: dist.all_reduce(x, group=half)
assert "PMI_PORT" not in os.environ and dist.is_available()
if sys.platform == "linux":  # memory that processes share has no name that could stay
    assert all("(deleted)" in line for line in open("/proc/self/maps") if "mpich_shm" in line)
dist.destroy_process_group()
dist.init_process_group(init_method=method.replace("meeting", "again"), rank=r, world_size=n)
dist.broadcast(x, src=2); print(x.item())
""", addresses(tmp_path)[kind], 3))  # fmt: skip
    assert [(status, out) for status, out, _ in found] == [(0, "6.0")] * 3, found
    assert not meetings(tmp_path) and sorted(os.listdir(tmp_path)) == ["script.py"]


@mpi
@pytest.mark.parametrize("end, status", [("os.kill(os.getpid(), signal.SIGKILL)", -9), ("raise ValueError('mine')", 1),
                                         ("os._exit(7)", 7), ("sys.exit(7)", 7)])  # fmt: skip
def test_who_waits_for_a_process_that_ended_is_told_so(tmp_path: Path, end: str, status: int) -> None:
    found = ended(started(tmp_path, START + f"""\
dist.all_reduce(x)
if r == 1: {end}
if r == 0: dist.all_reduce(x)
try: dist.barrier()
except RuntimeError as error: print(error)
""", addresses(tmp_path)["tcp"], 3))  # fmt: skip
    (first, _, said), second, third = found
    assert first == 1 and "Connection closed by peer: rank 1 has ended, and is waited for by rank 0" in said
    assert second[0] == status
    assert third[0] == 0 and third[1].startswith("Connection closed by peer: rank")
    assert not meetings(tmp_path)


@mpi
def test_processes_that_need_no_more_of_one_that_ended_go_on(tmp_path: Path) -> None:
    found = ended(started(tmp_path, START + """\
dist.all_reduce(x)
half = dist.new_group([0, 1])
if r == 2: os._exit(0)
time.sleep(1.5)
dist.all_reduce(x, group=half); dist.send(x, 1) if r == 0 else dist.recv(x, 0); print(x.item())
""", addresses(tmp_path)["tcp"], 3))  # fmt: skip
    assert [(status, out) for status, out, _ in found] == [(0, "12.0"), (0, "12.0"), (0, "")], found


@mpi
@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=pytest.mark.slow)])
def test_programs_start_their_processes_themselves(tmp_path: Path, method: str) -> None:
    script = f"""\
    import os, tempfile, torch, torch.distributed as dist, torch.multiprocessing as mp

    def work(rank, path, queue):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="{free_port()}", RANK=str(rank), WORLD_SIZE="2")
        store = dist.FileStore(path, 2)
        dist.init_process_group("gloo", **({{"store": store, "rank": rank, "world_size": 2}} if path[-1] == "f" else {{}}))
        x = torch.tensor([rank + 1.0])
        dist.all_reduce(x)
        queue.put(x.item())
        if path[-1] == "f" and rank: raise ValueError("mine")

    if __name__ == "__main__":
        context = mp.get_context("{method}")
        for name in ("e", "f"):
            queue, path = context.Queue(), os.path.join(os.getcwd(), "store-" + name)
            processes = [context.Process(target=work, args=(rank, path, queue)) for rank in range(2)]
            for process in processes: process.start()
            print(sorted(queue.get() for _ in processes))
            for process in processes: process.join()
            print([process.exitcode for process in processes])
    """
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    done = subprocess.run([*RUN, str(path)], env=variables(), text=True, capture_output=True, timeout=120, cwd=tmp_path)
    assert done.stdout.splitlines() == ["[3.0, 3.0]", "[0, 0]", "[3.0, 3.0]", "[0, 1]"], done.stderr


def test_who_does_not_come_is_counted(tmp_path: Path) -> None:
    for method in addresses(tmp_path).values():
        with pytest.raises(
            DistStoreError, match=r"Timed out after 1 seconds waiting for clients\. [01]/2 clients joined"
        ):
            dist.init_process_group("gloo", init_method=method, rank=0, world_size=2, timeout=SHORT)
    with pytest.raises(DistNetworkError, match=r"timed out after 1000ms while trying to connect to .*MASTER_ADDR"):
        dist.init_process_group("gloo", init_method=addresses(tmp_path)["tcp"], rank=1, world_size=2, timeout=SHORT)
    assert not dist.is_initialized()


@mpi
def test_slurm_tells_its_processes_where_to_meet(tmp_path: Path) -> None:
    slurm = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    meet = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    script = "import os, torch.distributed as dist\nos.environ['RANK'] = os.environ['SLURM_PROCID']\ndist.init_process_group()\n" \
        "dist.barrier()\nprint(dist.get_rank())\n"  # fmt: skip
    (tmp_path / "script.py").write_text(script)
    running = [
        subprocess.Popen([*RUN, str(tmp_path / "script.py")], env={**variables(), **slurm, **meet, "SLURM_PROCID": str(rank)},
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(2)
    ]  # fmt: skip
    assert [(status, out) for status, out, _ in ended(running)] == [(0, "0"), (0, "1")]


TORCHRUN = "import os, sys, torch, torch.distributed as dist\ndist.init_process_group()\nx = torch.ones(1)\ndist.all_reduce(x)\n" \
    "if sys.argv[1:] and dist.get_rank() == 3: sys.exit(7)\n" \
    "print(*(os.environ[name] for name in ('RANK', 'LOCAL_RANK', 'GROUP_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE')), x.item())\n" \
    "if sys.argv[1:]: dist.barrier()\n"  # fmt: skip


def torchruns(folder: Path, *options: str) -> list[tuple[int, str, str]]:
    """How two commands of torchrun end, each of which is to be that of a machine."""
    (folder / "script.py").write_text(TORCHRUN)
    port = free_port()
    ways = [["--node-rank", str(node), "--master-addr", "localhost", "--master-port", str(port)] for node in range(2)]
    if "c10d" in options:
        ways = [["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "1"]] * 2
    running = [
        subprocess.Popen([*RUN, "torchrun", "--nnodes", "2", "--nproc-per-node", "2", *way, str(folder / "script.py"),
                          *(option for option in options if option != "c10d")],
                         env={**variables(), "PMI_RANK": "0", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"},  # as under srun
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for way in ways
    ]  # fmt: skip
    return ended(running)


@mpi
@pytest.mark.parametrize("options", [(), pytest.param(("c10d",), marks=pytest.mark.slow)])
def test_torchrun_of_several_machines(tmp_path: Path, options: tuple[str, ...]) -> None:
    found = torchruns(tmp_path, *options)
    assert [status for status, _, _ in found] == [0, 0], found
    assert sorted("\n".join(out for _, out, _ in found).splitlines()) == [
        "0 0 0 4 2 4.0", "1 1 0 4 2 4.0", "2 0 1 4 2 4.0", "3 1 1 4 2 4.0"]  # fmt: skip


@mpi
@pytest.mark.slow
def test_a_failure_ends_torchrun_on_all_machines(tmp_path: Path) -> None:
    (first, _, said), (second, _, own) = torchruns(tmp_path, "fail")
    assert (first, second) == (1, 7) and "rank 3 has ended" in said and "ended with status 7" in own


@pytest.mark.parametrize("words, said", [
    (["--nnodes", "1:3"], "expected one number of machines, which does not change, got 1:3"),
    (["--nnodes", "0"], "expected one number of machines"),
    (["--nnodes", "2", "--max-restarts", "1"], "processes of several machines are not started again"),
    (["--nnodes", "2", "--rdzv-backend", "etcd"], "expected static or c10d, got etcd"),
    (["--nnodes", "2", "--node-rank", "2"], "expected --node-rank below --nnodes 2, got 2"),
])  # fmt: skip
def test_torchrun_says_what_it_does_not_do(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from rushlight.distributed import run

    try:
        status = run.main([*words, "script.py"])
    except SystemExit as error:
        status = int(str(error.code))
    assert status == 2 and said in capsys.readouterr().err


@mpi
@pytest.mark.slow
@pytest.mark.skipif(bool(two_hosts.missing(ssh=False)), reason=two_hosts.missing(ssh=False))
def test_two_hosts_meet_without_ssh(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(TORCHRUN)
    with two_hosts.hosts(1000, 1, ssh=False) as hosts:
        running = []
        for node in (1, 0):
            way = [
                "torchrun",
                "--nnodes",
                "2",
                "--node-rank",
                str(node),
                "--master-addr",
                two_hosts.ADDRESSES[0],
                "--master-port",
                "29500",
            ]
            named = [
                "unshare",
                "--uts",
                "sh",
                "-c",
                f'hostname host{node}; exec "$@"',
                "sh",
                *RUN,
                *way,
                str(tmp_path / "script.py"),
            ]
            given = {**variables(), **hosts.environment()}
            running.append(subprocess.Popen(hosts.command(named, node), env=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))  # fmt: skip
        found = ended(running)
    assert [(status, out) for status, out, _ in found] == [(0, "1 0 1 2 1 2.0"), (0, "0 0 0 2 1 2.0")], found


def stores(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Two stores each of one table, as two processes have them."""
    first = dist.TCPStore("localhost", 0, 2, True, wait_for_workers=False)
    path = str(folder / "store")
    return {
        "tcp": (first, dist.TCPStore("localhost", first.port, 2)),
        "file": (dist.FileStore(path, 2), dist.FileStore(path, 2)),
    }


@pytest.mark.parametrize("kind", ["tcp", "file"])
def test_stores_of_two_processes(tmp_path: Path, kind: str) -> None:
    one, two = stores(tmp_path)[kind]
    one.set("key", b"\x00\xff\n")
    assert two.get("key") == b"\x00\xff\n" and two.check(["key"]) and not two.check(["key", "other"])
    assert [two.add("n", 2), one.add("n", 3), two.get("n")] == [2, 5, b"5"]
    two.append("key", "more")
    assert one.get("key") == b"\x00\xff\nmore" and two.compare_set("c", "", "x") == b"x" == one.compare_set(
        "c", "y", "z"
    )
    two.queue_push("q", "item")
    assert one.queue_len("q") == 1 and one.queue_pop("q") == b"item" and two.queue_len("q") == 0
    with pytest.raises(dist.QueueEmptyError):
        two.queue_pop("q", block=False)
    inner = dist.PrefixStore("p", two)
    inner.set("key", "inside")
    assert one.get("p/key") == b"inside" and sorted(one.list_keys()) == ["c", "key", "n", "p/key"]
    assert one.delete_key("c") and not two.delete_key("c")
    with pytest.raises(ValueError, match="invalid literal"):
        two.add("key", 1)
    thread = threading.Timer(0.1, one.set, ("late", "value"))
    thread.start()
    assert two.clone().get("late") == b"value"
    thread.join()
    with pytest.raises(DistStoreError, match="wait timeout after 20ms: no value of missing"):
        two.wait(["missing"], timedelta(milliseconds=20))


def test_a_file_goes_with_its_last_store_and_holds_no_other(tmp_path: Path) -> None:
    path = tmp_path / "store"
    first, second = (dist.FileStore(str(path), 2) for _ in range(2))
    first.set("key", "value")
    del first
    assert path.exists()
    del second
    assert not path.exists()
    path.write_bytes(b"\x80\x04something else\n")
    with pytest.raises(DistStoreError, match="is no file of a store"):
        FileTable(str(path))
    path.write_text('["__init__"]\n')
    with pytest.raises(DistStoreError, match="is no file of a store"):
        FileTable(str(path))


def test_stores_of_one_port_and_of_a_socket_that_listens() -> None:
    first = dist.TCPStore("localhost", 0, 1, True, multi_tenant=True)
    second = dist.TCPStore("localhost", first.port, 1, True, multi_tenant=True)
    first.set("key", "value")
    del first
    assert second.get("key") == b"value"
    listener = socket.create_server(("localhost", 0))
    third = dist.TCPStore("localhost", listener.getsockname()[1], 1, True, master_listen_fd=listener.detach())
    fourth = dist.TCPStore("localhost", third.port, is_master=False)
    fourth.set("key", "other")
    assert third.get("key") == b"other" and second.get("key") == b"value"
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:
            del second, third
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_what_stores_do_not_keep() -> None:
    store = dist.HashStore()
    for wrong in (3, None, ["x"]):
        with pytest.raises(TypeError, match="keeps strings and bytes, got"):
            store.set("key", wrong)
    for call in (store.check, store.wait, store.multi_get):
        with pytest.raises(TypeError, match="expects a list of keys, got the string 'key'"):
            call("key")  # type: ignore[operator]
    store.barrier("all", 1)
    with pytest.raises(DistStoreError, match="no value of two/all"):
        store.barrier("two", 2, timedelta(milliseconds=10))


def test_a_port_that_is_taken_and_a_store_that_has_gone() -> None:
    first = dist.TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(DistNetworkError, match=f"failed to listen on any local network address. port: {first.port}"):
        dist.TCPStore("127.0.0.1", first.port, 1, True)
    with pytest.raises(DistStoreError, match=r"Timed out after 1 seconds waiting for clients. 1/2 clients joined."):
        dist.TCPStore("127.0.0.1", 0, 2, True, SHORT)
    assert listening("localhost") == "127.0.0.1" and listening("no.such.host.invalid") == ""
    code = f"import rushlight.distributed as d; s = d.TCPStore('localhost', {first.port}, is_master=False); print(s.get('key').decode())"
    first.set("key", "value")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout == "value\n"


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"[1, 2]", b'["__class__"]', b'["set", "key"]', b'["set", 1, 2]', b"\x80\x04K\x01.",
                                  b'["wait", "key", "long"]', b'["keys", {"bytes": 1}]', b'{"bytes": "\xc4\x80"}', b"[" * 5000])  # fmt: skip
def test_what_is_no_call_is_neither_answered_nor_done(line: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        words.call(line)
    answering = Server("localhost", 0)
    try:
        with socket.create_connection(answering.server_address, 5) as guest:
            guest.sendall(line + b"\n")
            assert guest.recv(100) == b""
        assert RemoteTable("localhost", answering.server_address[1], 5).keys() == []
    finally:
        answering.end(os.getpid())


def test_strangers_are_not_heard_at_a_meeting() -> None:
    meeting = server.Meeting([17, 18])
    for line in (
        "cmd=put kvsname=a key=b value=c",
        "cmd=initack pmiid=16",
        "cmd=watch",
        "cmd=none",
        "",
        "cmd=watch pmiid=x",
    ):
        one, other = socket.socketpair()
        with one, other:
            guest = server.Guest(one)
            assert not meeting.heard(guest, line) and not meeting.values
    one, other = socket.socketpair()
    with one, other:
        guest = server.Guest(one)
        assert meeting.heard(guest, "cmd=initack pmiid=18") and b"cmd=set rank=1\n" in other.recv(1000)
        assert (
            meeting.heard(guest, "cmd=put kvsname=a key=b value=c d=e")
            and other.recv(1000) == b"cmd=put_result rc=0 msg=success\n"
        )
        assert meeting.heard(guest, "cmd=get kvsname=a key=b") and other.recv(1000).endswith(b" value=c d=e\n")
        assert (
            meeting.heard(guest, "cmd=get kvsname=a key=x")
            and other.recv(1000) == b"cmd=get_result rc=-1 msg=key_not_found\n"
        )


@pytest.mark.parametrize("late", [False, True])
def test_a_meeting_that_nobody_comes_to_ends(late: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(server.__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write(json.dumps([[1], "127.0.0.1", 0.2 if late else 60]).encode() + b"\n")
        running.stdin.flush()
        port = int(running.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as guest:
            guest.sendall(b"x" * (server.LONGEST + 1))
            with pytest.raises((AssertionError, ConnectionError)):
                assert guest.recv(10)
        if not late:
            running.stdin.close()
        assert running.wait(20) == 0


def test_handlers_of_other_addresses() -> None:
    store = dist.HashStore()
    name = f"here{time.time_ns()}"
    dist.register_rendezvous_handler(name, lambda url, timeout, **_: iter([(store, 0, 1)]))
    assert next(iter(dist.rendezvous(f"{name}://x")))[0] is store
    with pytest.raises(RuntimeError, match="already registered"):
        dist.register_rendezvous_handler(name, lambda url: iter(()))
    for url, said, kind in (("pigeon://x", "No rendezvous handler for pigeon://", RuntimeError), (3, "`url` must be a string", RuntimeError),
                             ("tcp://localhost?rank=0&world_size=1", "port number missing", ValueError), ("file://", "path missing", ValueError),
                             ("tcp://localhost:1", "rank parameter missing", ValueError)):  # fmt: skip
        with pytest.raises(kind, match=said):
            next(iter(dist.rendezvous(url)))  # type: ignore[arg-type]


@mpi
def test_ctrl_c_is_heard_while_others_are_waited_for(tmp_path: Path) -> None:
    method = addresses(tmp_path)["file"]
    script = START.replace("dist.init", "print('here', flush=True)\ndist.init")
    (tmp_path / "script.py").write_text(script)
    with subprocess.Popen([*RUN, str(tmp_path / "script.py"), method, "0", "2"], env=variables(), text=True, cwd=tmp_path,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:  # fmt: skip
        assert running.stdout is not None and running.stdout.readline() == "here\n"
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in running.communicate(timeout=20)[1] and running.returncode in (1, 130, -2)
