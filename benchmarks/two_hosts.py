"""Two hosts on one machine, joined by a cable of a given bandwidth and latency.

    python benchmarks/two_hosts.py --bandwidth 1000 --latency 1 -- rushlight run -n 2 --hosts {hosts} train.py

Each host is a network namespace of the kernel; the second has an ssh server of its own, by which MPI's launcher starts processes
there.  The cable is a pair of TUN devices: the kernel lets packets out at the bandwidth (its token bucket filter), and a process
takes each to the other side when the latency is over, as the kernel's netem would, which not every kernel has.
Needs root, `ip`, `tc`, /dev/net/tun and an ssh server, and says which is missing.
"""

import argparse
import contextlib
import fcntl
import getpass
import multiprocessing
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
ADDRESSES = ("10.77.0.1", "10.77.0.2")
PACKET = 32_000  # bytes: of jumbo frames, so that a program in Python is fast enough


def missing(ssh: bool = True) -> str:
    """What this machine lacks for two hosts; empty where it has all.  ssh: whether one reaches the other by it"""
    if os.name != "posix" or os.geteuid() != 0:
        return "two hosts on one machine need root"
    for program in ("ip", "tc", *(("ssh", "ssh-keygen") if ssh else ())):
        if shutil.which(program) is None:
            return f"two hosts on one machine need the program {program}"
    if ssh and server() is None:
        return "two hosts on one machine need an ssh server (sshd)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "two hosts on one machine need /dev/net/tun"
    done = ip("netns", "list", check=False)
    return "" if done.returncode == 0 else f"network namespaces cannot be made: {done.stderr.strip()}"


def server() -> str | None:
    """The path of the ssh server, which has to be started by it."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


def ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the program ip."""
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def device(name: str) -> int:
    """Make a TUN device; the file that its packets come from and go to."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


class Way:
    """One direction of the cable.  latency: seconds"""

    def __init__(self, source: int, sink: int, latency: float) -> None:
        self.source, self.sink, self.latency = source, sink, latency
        self.on_way = deque[tuple[float, bytes]]()

    def take(self) -> None:
        """Take the packets that wait."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.on_way.append((time.monotonic() + self.latency, os.read(self.source, 65536)))

    def give(self) -> None:
        """Deliver the packets whose time it is."""
        while self.on_way and self.on_way[0][0] <= time.monotonic():
            with contextlib.suppress(OSError):  # the other end is down: the packet is lost
                os.write(self.sink, self.on_way[0][1])
            self.on_way.popleft()


def carry(ends: Sequence[int], latency: float) -> None:
    """Be the cable between two devices."""
    with contextlib.suppress(OSError):  # before all that computes, where it may
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ways = {a: Way(a, b, latency) for a, b in (ends, ends[::-1])}
    while True:
        next_one = min((way.on_way[0][0] for way in ways.values() if way.on_way), default=None)
        wait = None if next_one is None else max(0.0, next_one - time.monotonic())
        ready, _, _ = select.select(list(ways), [], [], wait)
        for end in ready:
            ways[end].take()
        for way in ways.values():
            way.give()


class Hosts:
    """Two hosts.  names: of the namespaces"""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self.names, self.folder = names, folder

    addresses = ",".join(ADDRESSES)

    def command(self, words: Sequence[str], host: int = 0) -> list[str]:
        """What runs a command on one of them."""
        return ["ip", "netns", "exec", self.names[host], *words]

    def environment(self) -> dict[str, str]:
        """The environment in which MPI's launcher reaches the other host."""
        # They are one machine to who asks the kernel: UCX would go by its memory.
        apart = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "cable", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "cable"}
        return {**os.environ, **apart, "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(self.folder / "ssh")}

    def cut(self) -> None:
        """Take the cable out of the second host."""
        ip("-n", self.names[1], "link", "set", "cable", "down")


def keys(folder: Path) -> None:
    """Write what an ssh server and who asks it need: keys, and a program that asks with them."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "sshd").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n"
        f"PidFile none\nListenAddress {ADDRESSES[1]}\nPasswordAuthentication no\n"
    )
    # A server that is gone is found out: else what runs there would be waited for.
    options = ["UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "LogLevel=ERROR", "BatchMode=yes"]
    script = (
        f'#!/bin/sh\nexec ssh -i {folder}/user {" ".join(f"-o {o}" for o in options)} -l {getpass.getuser()} "$@"\n'
    )
    (folder / "ssh").write_text(script)
    (folder / "ssh").chmod(0o755)


@contextlib.contextmanager
def hosts(bandwidth: float, latency: float, ssh: bool = True) -> Iterator[Hosts]:
    """Two hosts and a cable, for as long as the block runs.

    bandwidth: megabits per second, latency: ms in each direction; ssh: whether one reaches the other by it
    """
    names = [f"rushlight{os.getpid()}{end}" for end in "ab"]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = []
        for name, address in zip(names, ADDRESSES, strict=True):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            files.append(device(f"{name[9:]}"))
            stack.callback(os.close, files[-1])
            ip("link", "set", name[9:], "netns", name, "name", "cable", "mtu", str(PACKET))
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up", "txqueuelen", "1000")
            shape = ["tbf", "rate", f"{bandwidth}mbit", "burst", str(2 * PACKET), "limit", str(64 * PACKET)]
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "cable", "root", *shape], check=True)
        cable = multiprocessing.get_context("fork").Process(target=carry, args=(files, latency / 1e3), daemon=True)
        cable.start()
        stack.callback(cable.join)
        stack.callback(cable.kill)
        found = Hosts(names, folder)
        if ssh:
            answering(found, stack)
        yield found


def answering(found: Hosts, stack: contextlib.ExitStack) -> None:
    """Start the second host's ssh server, which ends with the stack."""
    keys(found.folder)
    Path("/run/sshd").mkdir(exist_ok=True)  # where the server lets go of its rights
    words = found.command([str(server()), "-D", "-e", "-f", str(found.folder / "sshd")], 1)
    with open(found.folder / "log", "w") as log:
        running = subprocess.Popen(words, stderr=log)
    stack.callback(running.wait)
    stack.callback(running.terminate)
    listening(found, running)


def listening(found: Hosts, running: subprocess.Popen[bytes]) -> None:
    """Wait until the ssh server answers.  Raises RuntimeError, with what it said, where it does not."""
    until = time.monotonic() + 20
    while subprocess.run(
        found.command([str(found.folder / "ssh"), ADDRESSES[1], "true"]), capture_output=True
    ).returncode:
        if running.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the ssh server does not answer: {(found.folder / 'log').read_text()}")
        time.sleep(0.1)


def main() -> int:
    """Run a command on the first host; {hosts} in it stands for both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bandwidth", type=float, default=1000, help="Mbit/s in each direction")
    parser.add_argument("--latency", type=float, default=1, help="ms in each direction")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if reason := missing():
        print(reason, file=sys.stderr)
        return 2
    words = [word.replace("{hosts}", Hosts.addresses) for word in given.command if word != "--"]
    with hosts(given.bandwidth, given.latency) as found:
        return subprocess.run(found.command(words), env=found.environment()).returncode


if __name__ == "__main__":
    sys.exit(main())
