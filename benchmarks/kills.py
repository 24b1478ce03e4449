"""Kills processes of a group at random moments, and tells what became of the others and of the checkpoint.

    python benchmarks/kills.py --runs 100

Each run trains with `fully_shard` in four processes that save a checkpoint at every step, and goes on from the one that is there.
One of the processes is killed at a random moment, from when it is started on.  Held: all processes have ended within 10 seconds,
`rushlight run` names the one that was killed, and the checkpoint is whole: every number in it is of one step.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

LIMIT = 10.0  # seconds from the kill to the end of the last process
MARK = "RUSHLIGHT_KILLS"  # the variable by which the processes of a run are found

SCRIPT = """\
import os, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
net = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)))
for layer in net:
    fully_shard(layer)
fully_shard(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
step = torch.zeros(())
state = {"model": net.state_dict(), "step": step}
if os.path.exists("saved/.metadata"):
    dcp.load(state, checkpoint_id="saved")
    net.load_state_dict(state["model"])
while True:
    net(torch.ones(4, 64)).sum().backward()
    optimizer.step()
    step += 1
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(step.item())  # of which a checkpoint is made that shows what it is made of
    dcp.save({"model": net.state_dict(), "step": step}, checkpoint_id="saved")
"""


class Run(NamedTuple):
    """What became of a run.  delay: seconds until the kill, rank: which, ended: seconds after it; wrong: what was not as held"""

    delay: float
    rank: int
    ended: float
    steps: float
    wrong: str


def processes(mark: str) -> dict[int, list[bytes]]:
    """The processes of a run by number, with their environment; those that have ended are none."""
    found = {}
    for path in Path("/proc").iterdir():
        try:
            given = (path / "environ").read_bytes().split(b"\0") if path.name.isdigit() else []
            if f"{MARK}={mark}".encode() in given and b"witness.py" not in (path / "cmdline").read_bytes():
                found[int(path.name)] = given
        except OSError:  # it has ended meanwhile
            continue
    return found


def ranks(mark: str) -> dict[int, int]:
    """The numbers of the processes that MPI's launcher has started, by rank."""
    return {int(v[9:]): p for p, names in processes(mark).items() for v in names if v.startswith(b"PMI_RANK=")}


def left(mark: str, seconds: float) -> bool:
    """Whether a process of a run is still there after so many seconds."""
    until = time.monotonic() + seconds
    while processes(mark):
        if time.monotonic() > until:
            return True
        time.sleep(0.02)
    return False


def steps(folder: Path) -> tuple[float, str]:
    """The step that a checkpoint is of, 0 without one; what is wrong with it."""
    import rushlight as torch
    from rushlight.distributed import checkpoint as dcp

    if not (folder / "saved" / ".metadata").exists():
        return 0.0, ""
    net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
    state = {"model": net.state_dict(), "step": torch.zeros(())}
    dcp.load(state, checkpoint_id=folder / "saved")
    step = state["step"].item()
    mixed = [name for name, x in state["model"].items() if not bool((x == step).all())]
    return step, f"step {step} with other numbers in {mixed}" if mixed else ""


def killed(folder: Path, count: int, wait: float, chance: random.Random) -> Run:
    """Start a run in a folder, kill one of its processes after at most `wait` seconds, and see what becomes of it."""
    (folder / "train.py").write_text(SCRIPT)
    mark = f"{os.getpid()}-{chance.random()}"
    words = [sys.executable, "-m", "rushlight", "run", "-n", str(count), "train.py"]
    started = subprocess.Popen(words, env={**os.environ, MARK: mark}, cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    while len(found := ranks(mark)) < count:
        if started.poll() is not None:
            raise RuntimeError(f"the processes did not start: {started.communicate()[1]}")
        time.sleep(0.02)
    rank, delay = chance.randrange(count), chance.uniform(0, wait)
    time.sleep(delay)
    begin = time.monotonic()
    os.kill(found[rank], 9)
    wrong = [f"not ended after {LIMIT} s"] if left(mark, LIMIT) else []
    ended = time.monotonic() - begin
    if wrong:
        started.kill()
    _, said = started.communicate()
    if f"rank {rank} was killed by signal 9" not in said or started.returncode != 137:
        wrong.append(f"status {started.returncode}: {said}")
    step, mixed = steps(folder)
    return Run(delay, rank, ended, step, "; ".join([*wrong, mixed] if mixed else wrong))


def main() -> int:
    """Kill as often as is asked for; print each run and the slowest end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--wait", type=float, default=8.0, help="seconds from the start, at most, to the kill")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, runs = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.runs):
            run = killed(Path(folder), given.processes, given.wait, chance)
            runs.append(run)
            print(f"{number:4d}  rank {run.rank} after {run.delay:5.2f} s: all ended in {run.ended:5.2f} s; "
                  f"checkpoint of step {run.steps:.0f} {run.wrong}", flush=True)  # fmt: skip
    bad = [run for run in runs if run.wrong]
    print(f"{len(runs)} kills, slowest end {max(run.ended for run in runs):.2f} s, {runs[-1].steps:.0f} steps saved, "
          f"{len(bad)} not as held")  # fmt: skip
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
