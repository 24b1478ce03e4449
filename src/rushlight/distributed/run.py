"""``torchrun``: starts a script as the processes of a group, by MPI's launcher where there are several on one machine."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from rushlight.distributed import launch, mpi, nodes

__all__ = ["main"]


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line, as far as it means something for one process; other options are taken and have no effect."""
    parser = argparse.ArgumentParser(prog="torchrun", description="Start a training script with a process group.")
    parser.add_argument("-n", "--nproc-per-node", "--nproc_per_node", default="1")
    for name, usual in (
        ("nnodes", "1"),
        ("node-rank", "0"),
        ("master-addr", "localhost"),
        ("master-port", "29500"),
        ("rdzv-id", "none"),
        ("rdzv-backend", ""),
        ("rdzv-endpoint", ""),
        ("rdzv-conf", ""),
        ("max-restarts", "0"),
        ("monitor-interval", "0.1"),
        ("start-method", "spawn"),
        ("role", "default"),
        ("log-dir", ""),
        ("redirects", "0"),
        ("tee", "0"),
        ("local-ranks-filter", ""),
    ):
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", default=usual)
    parser.add_argument("--standalone", action="store_true", help="on this machine alone")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    parser.add_argument("--run-path", "--run_path", action="store_true", help="as without: scripts run as __main__")
    parser.add_argument("--use-env", "--use_env", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-python", "--no_python", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    given.count = {"auto": 1, "cpu": os.cpu_count() or 1}.get(given.nproc_per_node) or counted(
        parser, given.nproc_per_node
    )
    given.nodes = nodes.count(parser, given)
    if given.no_python:
        parser.error("--no-python starts a program that is no Python script: start it itself")
    return given


def counted(parser: argparse.ArgumentParser, text: str) -> int:
    """A number of processes; exits with status 2 for what is none."""
    if not text.isdigit() or not int(text):
        parser.error(f"--nproc-per-node: expected a number, auto or cpu, got {text!r}")
    return int(text)


def main(argv: Sequence[str] | None = None, local_rank: bool = False) -> int:
    """Run a script with the variables that `init_process_group` reads, in one process or several.

    argv: the arguments, the process's own by default; local_rank: whether scripts get --local-rank=N, as those that
    torch.distributed.launch starts do unless it is told --use-env.
    """
    given = parsed(argv)
    given.local_rank = local_rank and not given.use_env
    os.environ.update(TORCHELASTIC_RUN_ID=given.rdzv_id, GROUP_RANK="0", GROUP_WORLD_SIZE="1", ROLE_NAME=given.role)
    if given.nodes == 1 and mpi.told():  # the processes are there already: `rushlight run -n 4 torchrun ...`
        launch.environment()
    elif given.nodes > 1 or given.count > 1:
        return started(given)
    else:
        os.environ.update(
            RANK="0", LOCAL_RANK="0", ROLE_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1", ROLE_WORLD_SIZE="1",
            MASTER_ADDR=given.master_addr, MASTER_PORT=given.master_port,
            TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS=given.max_restarts,
        )  # fmt: skip
    run(given)
    return 0


def started(given: argparse.Namespace) -> int:
    """Start several processes and wait for them; their exit status."""
    script = ["-m", given.training_script] if given.module else [given.training_script]
    if given.local_rank:  # which each process says to its script
        script = ["-m", "torch.distributed.launch", *script]
    program = [sys.executable, "-m", "rushlight", "run", *script, *given.training_script_args]
    if given.nodes > 1:
        return nodes.start(given, given.nodes, program)
    os.environ.update(MASTER_ADDR=given.master_addr, MASTER_PORT=given.master_port)
    try:
        restarts = int(given.max_restarts) if given.max_restarts.isdigit() else 0
        return launch.start(given.count, program, restarts=restarts)
    except FileNotFoundError as error:
        print(f"torchrun: {error}", file=sys.stderr)
        return 2


def run(given: argparse.Namespace) -> None:
    """Run the script in this process."""
    local = [f"--local-rank={os.environ['LOCAL_RANK']}"] if given.local_rank else []
    sys.argv[:] = [given.training_script, *local, *given.training_script_args]
    if given.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(given.training_script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(given.training_script)))
        runpy.run_path(given.training_script, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
