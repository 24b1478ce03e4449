"""``rushlight run``: an unmodified PyTorch script, with ``torch`` resolved to rushlight."""

import argparse
import builtins
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType, TracebackType

from rushlight.compat import devices, imports, missing

__all__ = ["main"]

EPILOG = """examples:
  rushlight run train.py --epochs 3
  rushlight run -m package.train
  rushlight run -c "import torch; print(torch.rand(3))"
  generate | rushlight run - --epochs 3
  rushlight run --weights ~/resnet18-f37072fd.pth classify.py
  rushlight run --memory-budget 2GiB --spill /scratch train.py

`import torch` and `from torchvision import models` find rushlight. Without a GPU, `.cuda()` and "cuda"
devices mean the CPU, with one line of warning. What rushlight does not have fails with an error that
names it and the line that asked for it.
"""


def main(argv: Sequence[str]) -> int:
    """Run the script, module or code in ``argv`` and return its exit status."""
    own, mode, target, rest = _split(list(argv))
    parser = _parser()
    options = parser.parse_args(own)
    if target is None:
        parser.error("what shall be run? Give a script, - for standard input, -m MODULE or -c CODE")
    refusal = _refusal(options.weights, mode, target)
    if refusal is not None:
        print(f"rushlight run: {refusal}", file=sys.stderr)
        return 2
    if options.weights is not None:
        os.environ["RUSHLIGHT_WEIGHTS"] = options.weights
    imports.install()
    devices.stay_on_cpu()
    start = STARTS[mode]
    if options.memory_budget is not None:
        start = _within(options.memory_budget, options.spill, start)
    return _guarded(start, target, rest)


def _refusal(weights: str | None, mode: str, target: str) -> str | None:
    """What is known to go wrong before anything runs."""
    if weights is not None and weights != "random" and not os.path.exists(os.path.expanduser(weights)):
        return f"--weights expects a file, a folder of files or the word random, and there is no {weights!r}"
    if mode != "script":
        return None
    if not os.path.exists(target):
        return f"no such script: {target}"
    if os.path.isdir(target) and not os.path.isfile(os.path.join(target, "__main__.py")):
        return f"the folder {target} cannot be run: it has no __main__.py"
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rushlight run",
        usage="rushlight run [OPTION ...] (SCRIPT | - | -m MODULE | -c CODE) [ARGUMENT ...]",
        description="Run an unmodified PyTorch script on rushlight: a file, or what standard input holds (-).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--weights",
        metavar="random|PATH",
        help="where models with weights=... get them: a file, a folder of files, or the word random",
    )
    parser.add_argument(
        "--memory-budget",
        metavar="BYTES",
        type=_bytes,
        help='keep all arrays of the process below so many bytes: "2GiB", "500MB"; a report follows the run',
    )
    parser.add_argument("--spill", metavar="DIR", help="where what does not fit goes: temporary files by default")
    return parser


def _bytes(text: str) -> int:
    from rushlight.stores.errors import bytes_of

    try:
        return bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("memory: ")) from None


def _within(limit: int, spill: str | None, start: Callable[[str, list[str]], None]) -> Callable[[str, list[str]], None]:
    """`start` within a budget of memory, with a report at the end."""

    def bounded(target: str, rest: list[str]) -> None:
        from rushlight import memory

        with memory.budget(limit, spill) as used:
            start(target, rest)
        print(f"\n{used.report()}", file=sys.stderr)

    return bounded


def _split(argv: list[str]) -> tuple[list[str], str, str | None, list[str]]:
    """Our own options, how to run, what to run, and its arguments, as ``python`` splits a command line."""
    index = 0
    while index < len(argv):
        word = argv[index]
        if word in ("-m", "-c"):
            if index + 1 == len(argv):
                return [*argv[:index]], word, None, []
            return argv[:index], word, argv[index + 1], argv[index + 2 :]
        if word == "-":
            return argv[:index], word, word, argv[index + 1 :]
        if not word.startswith("-"):
            return argv[:index], "script", word, argv[index + 1 :]
        index += 2 if word in ("--weights", "--memory-budget", "--spill") else 1
    return argv, "script", None, []


def _run_script(path: str, rest: list[str]) -> None:
    """Run a file as ``python path`` does; a folder or archive with a ``__main__.py`` too."""
    sys.argv[:] = [path, *rest]
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        _first_on_path(os.path.abspath(path))
        runpy.run_path(path, run_name="__main__")
        return
    _first_on_path(os.path.dirname(os.path.realpath(path)))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    path = os.path.abspath(path)  # a script may change its folder and look beside itself afterwards
    _execute(code, path, SourceFileLoader("__main__", path))


def _run_module(name: str, rest: list[str]) -> None:
    """Run a module as ``python -m name`` does."""
    sys.argv[:] = [name, *rest]
    _first_on_path(os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


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


def _guarded(start: Callable[[str, list[str]], None], target: str, rest: list[str]) -> int:
    """Run, and report an error as Python does, without this program's frames."""
    try:
        start(target, rest)
    except Exception as error:
        message = missing.explain(error)
        _report(error, message)
        return 1
    return 0


def _report(error: Exception, message: str | None) -> None:
    trace = _script_frames(error.__traceback__)
    if message is not None:
        kind = type(error).__name__
        print("Traceback (most recent call last):", file=sys.stderr)
        traceback.print_list(missing.script_frames(trace))
        print(f"{kind}: {message}", file=sys.stderr)
        return
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _script_frames(trace: TracebackType | None) -> TracebackType | None:
    """``trace`` from the script's first frame on; None if the script never began."""
    while trace is not None and _belongs_to_runner(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _belongs_to_runner(filename: str) -> bool:
    return filename == __file__ or filename == runpy.__file__ or filename == "<frozen runpy>"
