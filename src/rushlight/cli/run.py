"""``rushlight run``: an unmodified PyTorch script, with ``torch`` resolved to rushlight."""

import argparse
import builtins
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import NamedTuple

from rushlight.basics.errors import hint
from rushlight.cli import frames
from rushlight.cli.parsers import Parser, count
from rushlight.compat import devices, imports, missing
from rushlight.distributed import faults, launch, mpi

__all__ = ["main"]

EPILOG = """examples:
  rushlight run train.py --epochs 3
  rushlight run -m package.train
  rushlight run -c "import torch; print(torch.rand(3))"
  generate | rushlight run - --epochs 3
  rushlight run --weights ~/resnet18-f37072fd.pth classify.py
  rushlight run --memory-budget 2GiB --spill /scratch train.py
  rushlight run --memory-budget min train.py
  rushlight run --slowdown 1.3x train.py
  rushlight run -n 4 train.py
  rushlight run -n 4 --restarts 3 train.py
  rushlight run torchrun --nproc-per-node 4 train.py

`import torch` and `from torchvision import models` find rushlight. Without a GPU, `.cuda()` and "cuda"
devices mean the CPU, with one line of warning. What rushlight does not have fails with an error that
names it and the line that asked for it.
"""


class Job(NamedTuple):
    """What is run: mode "script", "-", "-m" or "-c"; target None where none was given."""

    mode: str
    target: str | None
    arguments: list[str]


def main(argv: Sequence[str]) -> int:
    """Run the script, module or code in ``argv`` and return its exit status."""
    parser = _parser()
    own, job = split(list(argv), parser)
    options = parser.parse_args(own)
    job = _torchrun(job)
    if job.target is None:
        parser.error("what shall be run? Give a script, - for standard input, -m MODULE or -c CODE")
    refused = refusal(options, job)
    if refused is not None:
        print(f"rushlight run: {refused}", file=sys.stderr)
        return 2
    if options.processes is not None and not mpi.told():
        return _started(options, argv)
    if options.watchable:
        from rushlight.memory import allow_watch

        allow_watch()
    return execute(options, job)


def _torchrun(job: Job) -> Job:
    """A job, or what the program torchrun does where that is what is to be run."""
    if job.mode == "script" and job.target == "torchrun" and not os.path.exists("torchrun"):
        return Job("-m", "torch.distributed.run", job.arguments)
    return job


def _started(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Start this command in several processes, without what says so."""
    own, _ = split(list(argv), _parser())
    words, rest = iter(own), list[str]()
    for word in words:  # what stands behind the script is the script's
        if word in ("-n", "--hosts", "--restarts"):
            next(words)
        elif word != "--label" and not word.startswith(("-n", "--hosts=", "--restarts=")):
            rest.append(word)
    rest += argv[len(own) :]
    try:
        program = [sys.executable, "-m", "rushlight", "run", *rest]
        return launch.start(options.processes, program, options.hosts, options.label, options.restarts)
    except FileNotFoundError as error:
        print(f"rushlight run: {error}", file=sys.stderr)
        return 2


def execute(options: argparse.Namespace, job: Job) -> int:
    """Run a job with the options of `add_options`; its exit status, unless it raises SystemExit."""
    begin = prepared(options, job)
    return _of_group(lambda: _guarded(begin))


def prepared(options: argparse.Namespace, job: Job) -> Callable[[], None]:
    """What runs a job in this process, made ready for it; it raises what the script raises."""
    if options.weights is not None:
        os.environ["RUSHLIGHT_WEIGHTS"] = options.weights
    launch.environment()
    imports.install()
    devices.stay_on_cpu()
    start = STARTS[job.mode]
    if options.slowdown is not None or options.memory_budget == "min":
        start = _chosen(options, job, start)
    elif options.memory_budget is not None:
        start = _within(options.memory_budget, options.spill, start)
    return lambda: start(job.target or "", job.arguments)


def _of_group(begin: Callable[[], int]) -> int:
    """The exit status of a run; where it is a failure, the other processes of its group end too, which would wait for it."""
    try:
        status = begin()
    except SystemExit as stop:
        if stop.code:
            faults.end(stop.code if isinstance(stop.code, int) else 1)
        raise
    if status:
        faults.end(status)
    return status


def refusal(options: argparse.Namespace, job: Job) -> str | None:
    """What is known to go wrong before anything runs."""
    weights, spill, target = options.weights, options.spill, job.target or ""
    if weights is not None and weights != "random" and not os.path.exists(os.path.expanduser(weights)):
        return f"--weights expects a file, a folder of files or the word random, and there is no {weights!r}"
    if spill is not None and not (os.path.isdir(spill) and os.access(spill, os.W_OK | os.X_OK)):
        return f"--spill expects a folder that can be written to, and {spill!r} is none"
    if options.slowdown is not None and options.memory_budget is not None:
        return "--slowdown and --memory-budget are two ways to choose: give one"
    if spill is not None and options.memory_budget is None and options.slowdown is None:
        return "--spill says where a budget puts what does not fit: give --memory-budget BYTES too"
    if job.mode != "script":
        return None
    if not os.path.exists(target):
        return f"no such script: {target}"
    if os.path.isdir(target) and not os.path.isfile(os.path.join(target, "__main__.py")):
        return f"the folder {target} cannot be run: it has no __main__.py"
    return None


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rushlight run",
        usage="rushlight run [OPTION ...] (SCRIPT | - | -m MODULE | -c CODE) [ARGUMENT ...]",
        description="Run an unmodified PyTorch script on rushlight: a file, or what standard input holds (-).",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    add_options(parser)
    parser.add_argument(
        "-n", dest="processes", metavar="N", type=count, help="start N processes that can make a group, by MPI"
    )
    parser.add_argument("--hosts", metavar="A,B|FILE", help="on these machines; they reach each other by ssh")
    parser.add_argument(
        "--restarts",
        metavar="N",
        type=int,
        default=0,
        help="after a failure start all processes again, at most N times; "
        "TORCHELASTIC_RESTART_COUNT counts. The script goes on from its last checkpoint",
    )
    parser.add_argument(
        "--watchable", action="store_true", help="let `rushlight memory watch --attach PID` watch this process"
    )
    parser.add_argument("--label", action="store_true", help="put the rank in front of each line that a process prints")
    return parser


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that runs a script."""
    parser.add_argument(
        "--weights",
        metavar="random|PATH",
        help="where models with weights=... get them: a file, a folder of files, or the word random",
    )
    parser.add_argument(
        "--memory-budget",
        metavar="BYTES|min",
        type=budget_given,
        help="keep all arrays of the process below so many bytes: 2GiB, 500MB; a report follows the run. "
        "min: train in the way that needs fewest, found by trying its first steps in several",
    )
    parser.add_argument(
        "--slowdown",
        metavar="TIMES",
        type=times_given,
        help="train in the way that needs fewest bytes in at most so many times the plain seconds: 1.3x",
    )
    parser.add_argument("--spill", metavar="DIR", help="folder for what does not fit (default: temporary)")


def budget_given(text: str) -> int | str:
    """Bytes, or the word min."""
    return text if text == "min" else bytes_given(text)


def times_given(text: str) -> float:
    """A factor as an option has it: 1.3x, 1.3.  Raises argparse's error for what is none, or less than 1."""
    try:
        found = float(text.removesuffix("x"))
    except ValueError:
        found = 0.0
    if not 1.0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a factor of at least 1, such as 1.3x, got {text!r}")
    return found


def bytes_given(text: str) -> int:
    """Bytes as an option has them: 2GiB, 500MB.  Raises argparse's error for others, and for none."""
    from rushlight.stores.errors import bytes_of

    try:
        found = bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("memory: ")) from None
    if not found:
        raise argparse.ArgumentTypeError("a budget of 0 bytes leaves room for nothing")
    return found


def _within(limit: int, spill: str | None, start: Callable[[str, list[str]], None]) -> Callable[[str, list[str]], None]:
    """`start` within a budget of memory, with a report at the end."""

    def bounded(target: str, rest: list[str]) -> None:
        from rushlight import memory

        used, process = memory.budget(limit, spill), os.getpid()
        try:
            with used:
                start(target, rest)
        finally:
            if os.getpid() == process:  # not one that the script forked
                print(f"\n{used.report()}", file=sys.stderr)

    return bounded


def _chosen(
    options: argparse.Namespace, job: Job, start: Callable[[str, list[str]], None]
) -> Callable[[str, list[str]], None]:
    """`start` in the way that its first steps show to be the best."""
    from rushlight.cli.frontier import search
    from rushlight.memory.planning import scripts
    from rushlight.memory.planning.trials import TrialFailed

    try:
        found = search(options, job)
    except TrialFailed as error:
        print(f"rushlight run: not even as it is could {job.target} be tried: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    point = found.least if options.slowdown is None else found.slowdown(options.slowdown)
    times = point.seconds / max(found.plain.seconds, 1e-12)
    print(f"rushlight run: {point}, {times:.2f} times the plain {found.plain.seconds:.3g} s", file=sys.stderr)
    way = scripts.way_of(point, options.spill)

    def chosen(target: str, rest: list[str]) -> None:
        with scripts.taken(way):
            start(target, rest)

    return chosen


def split(argv: list[str], parser: argparse.ArgumentParser) -> tuple[list[str], Job]:
    """Our own options and the job, as ``python`` splits a command line: what stands behind the script is the script's."""
    index = 0
    while index < len(argv):
        word = argv[index]
        if word in ("-m", "-c"):
            given = argv[index + 1 :]
            return argv[:index], Job(word, given[0] if given else None, given[1:])
        if word == "-":
            return argv[:index], Job(word, word, argv[index + 1 :])
        if not word.startswith("-"):
            return argv[:index], Job("script", word, argv[index + 1 :])
        action = parser._option_string_actions.get(word)
        index += 2 if action is not None and action.nargs is None else 1  # "--name=value" is one word
    return argv, Job("script", None, [])


def _run_script(path: str, rest: list[str]) -> None:
    """Run a file as ``python path`` does; a folder or archive with a ``__main__.py`` too."""
    sys.argv[:] = [path, *rest]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        _first_on_path(os.path.abspath(path))
        runpy.run_path(path, run_name="__main__")
        return
    _first_on_path(os.path.dirname(os.path.realpath(path)))
    path = os.path.abspath(path)  # a script may change its folder: tracebacks still find its lines
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    _execute(code, path, SourceFileLoader("__main__", path))


def _run_module(name: str, rest: list[str]) -> None:
    """Run a module as ``python -m name`` does."""
    sys.argv[:] = [name, *rest]
    _first_on_path(os.getcwd())
    code = imports.code_of(name)
    if code is not None:  # torch.distributed.run, which may be loaded already: nothing that runpy would run
        _execute(code, code.co_filename, None)
        return
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except ImportError as error:
        if not _is_runpys(error):
            raise
        print(f"rushlight run: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _is_runpys(error: BaseException) -> bool:
    """Whether an error says that the module cannot be run, and comes from nothing that ran."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename in (runpy.__file__, "<frozen runpy>")


def _run_code(source: str, rest: list[str]) -> None:
    """Run a string as ``python -c source`` does."""
    sys.argv[:] = ["-c", *rest]
    _first_on_path("")
    _execute(compile(source, "<string>", "exec", dont_inherit=True), None, None)


def _run_input(name: str, rest: list[str]) -> None:
    """Run what standard input holds as ``python -`` does."""
    sys.argv[:] = [name, *rest]
    _first_on_path("")
    _execute(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), None, None)


STARTS: dict[str, Callable[[str, list[str]], None]] = {
    "script": _run_script,
    "-m": _run_module,
    "-c": _run_code,
    "-": _run_input,
}


def _first_on_path(folder: str) -> None:
    """Put ``folder`` where Python puts a script's own, in place of this program's."""
    if sys.flags.safe_path:
        sys.path.insert(0, folder)
    else:
        sys.path[0] = folder


def _execute(code: CodeType, path: str | None, loader: SourceFileLoader | None) -> None:
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __loader__=loader)
    if path is not None:
        module.__file__ = path
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _guarded(begin: Callable[[], None]) -> int:
    """Run, and report an error as Python does, without this program's frames."""
    try:
        begin()
    except KeyboardInterrupt as stop:
        _report(stop, None)
        return 128 + signal.SIGINT
    except Exception as error:
        if isinstance(error, MemoryError) and not getattr(error, "__notes__", ()):
            error.add_note(hint("out-of-memory"))  # NumPy's error
        message = missing.explain(error)
        _report(error, message)
        return 1
    return 0


def _report(error: BaseException, message: str | None) -> None:
    left_out = frames.trim(error)
    trace = error.__traceback__
    if message is not None:
        kind = type(error).__name__
        print("Traceback (most recent call last):", file=sys.stderr)
        traceback.print_list(missing.script_frames(trace))
        print(f"{kind}: {message}", file=sys.stderr)
        return
    if left_out:
        print(left_out, file=sys.stderr)
    sys.excepthook(type(error), error, trace)
