"""Programs written for PyTorch and ways to start them: torchrun's command line, Slurm's environment, whole programs as they are."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.distributed.test_several import variables

from rushlight.distributed import launch

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
PROGRAMS = Path(__file__).resolve().parent / "programs"
RUSHLIGHT = [sys.executable, "-m", "rushlight", "run"]

TRAIN = """\
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE")
print(*(os.environ.get(name) for name in names), dist.is_torchelastic_launched(), x.item(), *sys.argv[1:])
"""


def printed(folder: Path, *words: str, status: int = 0, **more: str) -> list[str]:
    """The lines that a command prints, sorted; what it says of errors where it is to fail."""
    done = subprocess.run(words, env={**variables(), **more}, capture_output=True, text=True, timeout=240, cwd=folder)
    assert done.returncode == status, done.stderr
    return sorted(done.stdout.splitlines()) if not status else done.stderr.splitlines()


TORCHRUN = ["0 2 0 0 0 2 True 2.0 --epochs 3", "1 2 1 0 1 2 True 2.0 --epochs 3"]


def test_torchrun_under_rushlight(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    words = ["torchrun", "--nproc-per-node", "2", "train.py", "--epochs", "3"]
    assert printed(tmp_path, *RUSHLIGHT, *words) == TORCHRUN


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "torchrun -n 2 -m train --epochs 3",
        "-m torch.distributed.run --standalone --nproc_per_node=2 train.py --epochs 3",
        "-m torch.distributed.launch --use-env --nproc_per_node=2 train.py --epochs 3",
        "-n 2 torchrun --nproc-per-node 2 train.py --epochs 3",
    ],
)
def test_other_spellings_of_torchrun(tmp_path: Path, words: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    assert printed(tmp_path, *RUSHLIGHT, *words.split()) == TORCHRUN


@pytest.mark.slow
def test_the_older_launcher_says_the_local_rank_to_scripts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    found = printed(
        tmp_path, *RUSHLIGHT, "-m", "torch.distributed.launch", "--nproc_per_node=2", "train.py", "--epochs", "3"
    )
    assert found == [line.replace("2.0", f"2.0 --local-rank={rank}") for rank, line in enumerate(TORCHRUN)]


SLURM = """\
import os, torch, torch.distributed as dist
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=os.environ["SLURM_LOCALID"])
dist.init_process_group("gloo", init_method="env://", world_size=size, rank=rank)
x = torch.tensor([rank + 1.0])
dist.all_reduce(x)
print(rank, dist.get_node_local_rank(), x.item())
"""


def task(rank: int) -> dict[str, str]:
    """What srun says to one of two processes."""
    return {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)}  # fmt: skip


@pytest.mark.slow
def test_a_script_that_reads_what_slurm_says(tmp_path: Path) -> None:
    """Two processes with the environment of srun, which MPI connects as srun --mpi would."""
    (tmp_path / "train.py").write_text(SLURM)
    words = [launch.launcher(), "-launcher", "fork"]
    for rank in range(2):
        given = [f"{name}={value}" for name, value in task(rank).items()]
        words += [*([":"] if rank else []), "-n", "1", "env", *given, *RUSHLIGHT, "train.py"]
    assert printed(tmp_path, *words) == ["0 0 3.0", "1 1 3.0"]


@pytest.mark.slow
@pytest.mark.parametrize("script", [SLURM, TRAIN])
def test_processes_of_slurm_that_mpi_does_not_connect_are_told(tmp_path: Path, script: str) -> None:
    (tmp_path / "train.py").write_text(script)
    said = printed(tmp_path, *RUSHLIGHT, "train.py", status=1, **task(1))
    assert "srun started 2 processes, and MPI knows of this one alone" in said[-1] and "rushlight run -n 2" in said[-1]


@pytest.mark.slow
def test_within_an_allocation_of_slurm_processes_are_started_by_srun(tmp_path: Path) -> None:
    """srun is a program here that notes its arguments and runs what it is given."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "srun").write_text("""\
#!/bin/sh
echo "$@" >> srun.log
while [ $# -gt 0 ]; do case "$1" in --nodelist|-N|-n|--input) shift 2;; -*) shift;; *) break;; esac; done
export SLURM_PROCID=0 SLURM_NODEID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1
exec "$@"
""")
    (tmp_path / "srun").chmod(0o755)
    name = socket.gethostname()
    allocation = {"SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "SLURM_NNODES": "1", "SLURM_NODELIST": name,
                  "SLURM_JOB_NODELIST": name, "SLURM_TASKS_PER_NODE": "2"}  # fmt: skip
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    found = printed(tmp_path, *RUSHLIGHT, "-n", "2", "train.py", PATH=path, **allocation)
    assert [line.split()[:2] for line in found] == [["0", "2"], ["1", "2"]]
    assert "-N 1 -n 1" in (tmp_path / "srun.log").read_text()


PROGRAM = {
    "ddp_spawn": [f"{part} {rank}" for part in ("basic", "checkpoint", "stages") for rank in range(2)],
    "ddp_trainer": [f"rank {r} epoch {e} batch 32 steps 4 fell True" for r in range(2) for e in range(3)],
    "by_hand": ["well 0", "well 1"],
    "pipeline": ["well 0", "well 1"],
    "parameter_server": ["well 0", "well 1"],
}
ARGUMENTS = {"ddp_spawn": ["."], "ddp_trainer": ["3", "10"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAM)
def test_programs_for_two_processes_run_as_they_are(tmp_path: Path, name: str) -> None:
    words = [str(PROGRAMS / f"{name}.py"), *ARGUMENTS.get(name, [])]
    assert printed(tmp_path, *RUSHLIGHT, "-n", "2", *words) == sorted(PROGRAM[name])


@pytest.mark.slow
def test_a_trainer_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    script = str(PROGRAMS / "ddp_trainer.py")
    first = printed(tmp_path, *RUSHLIGHT, "torchrun", "--standalone", "--nproc-per-node=2", script, "2", "1")
    second = printed(tmp_path, *RUSHLIGHT, "-n", "2", script, "3", "1")
    assert sorted(first + second) == sorted(PROGRAM["ddp_trainer"])


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAM)
def test_programs_print_the_same_with_pytorch(tmp_path: Path, name: str) -> None:
    pytest.importorskip("torch")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    start = [sys.executable] if name in ("ddp_spawn", "by_hand") else torchrun  # which start their processes
    words = [*start, str(PROGRAMS / f"{name}.py"), *ARGUMENTS.get(name, [])]
    assert printed(tmp_path, *words, PYTHONPATH="") == sorted(PROGRAM[name])
