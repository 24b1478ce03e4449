"""How the kernels are compiled: which compiler, with which flags, and the compiling itself.

Imports the standard library alone: also who builds a wheel loads this file, where neither rushlight nor NumPy is installed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path  # as the others here, not imported before it is used: the import of rushlight is short

SOURCES = os.path.dirname(os.path.abspath(__file__))
_BASE = ("-std=c++17", "-fPIC", "-pthread", "-fvisibility=hidden")
# Not -ffast-math: sums that may be reordered say so themselves (omp simd), NaN and infinities keep their
# meaning, and linking with it would flush subnormals to zero in the whole process.
_FAST = ("-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd")
# With GCC as fast as -O3 and compiled in half the time; other compilers refuse it and get -O3.
_GCC = (
    "-O2",
    "-ftree-vectorize",
    "-funswitch-loops",
    "-fvect-cost-model=dynamic",
    "--param",
    "vect-epilogues-nomask=0",
    "-fno-ipa-icf",  # of functions alike it makes one, calls of which are no SIMD code
)
_WIDE = "-mprefer-vector-width=512"
_MARCH: dict[int, tuple[tuple[str, ...], ...]] = {
    4: (("-march=x86-64-v4", _WIDE), ("-march=skylake-avx512",)),
    3: (("-march=x86-64-v3",), ("-march=haswell",)),
}
# What a wheel's kernels are compiled for: machine and level of its instructions (0: what all of them have), to Zig's names.
TARGETS: dict[tuple[str, int], tuple[str, ...]] = {
    ("x86_64", 4): ("-mcpu=x86_64_v4", _WIDE),
    ("x86_64", 3): ("-mcpu=x86_64_v3",),
    ("x86_64", 2): ("-mcpu=x86_64_v2",),
    ("aarch64", 0): (),
}
OLDEST_LIBC = "2.17"  # that a wheel's kernels run with: of manylinux2014
SECONDS = 90  # that one processor takes to compile all, measured on a Zen 4
HEAD = 16  # bytes before an ndarray's data pointer in the interpreters that a wheel's kernels are for: all but special builds


def common(head: int, abi: int) -> tuple[str, ...]:
    """The flags of every compilation.  head: bytes of an object's head; abi: the number that the library will tell."""
    return (*_BASE, f"-DRL_OBJECT_HEAD={head}", f"-DRL_ABI={abi}")


def flag_sets(level: int, head: int, abi: int, also: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Flags to try for a processor of an x86-64 level, best first; those of ``$RUSHLIGHT_CXXFLAGS`` come last in each.

    also: flags for what the processor has beyond its level.
    """
    best, *others = (*_MARCH.get(level, ()), ())
    best += also
    every = common(head, abi)
    found = [
        every + _FAST + _GCC + best,
        *(every + _FAST + ("-O3", *march) for march in (best, *others)),
        (*every, "-O2"),
    ]
    own = tuple(os.environ.get("RUSHLIGHT_CXXFLAGS", "").split())
    return [flags + own for flags in found]


def wheel_flags(machine: str, level: int, abi: int) -> tuple[str, ...]:
    """Flags of Zig's compiler for the kernels that a wheel brings."""
    target = ("-target", f"{machine}-linux-gnu.{OLDEST_LIBC}", *TARGETS[machine, level])
    return (*common(HEAD, abi), *_FAST, "-O3", "-g0", "-s", *target)


def in_wheel(machine: str, level: int) -> str:
    """The file's name of the kernels that a wheel brings for a machine."""
    return f"kernels-{machine}-{level}.so"


def find_compiler() -> list[str] | None:
    """``$CXX`` if set, else g++, c++ or clang++ from PATH; the command as a list, None without any."""
    wanted = os.environ.get("CXX")
    for command in [wanted.split()] if wanted else [["g++"], ["c++"], ["clang++"]]:
        path = _which(command[0]) if command else None
        if path:
            return [path, *command[1:]]
    return None


def _which(name: str) -> str | None:
    """As `shutil.which`, whose import takes longer than all else that is done here."""
    folders = [""] if os.sep in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def say(what: str) -> None:
    """Tell whoever waits what for."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"rushlight: {what}", file=sys.stderr, flush=True)


def compile_kernels(compiler: list[str], flags: tuple[str, ...], work: Path, jobs: int) -> str | None:
    """Compile every source side by side, and link: None on success (``kernels.so`` lies in ``work``), else the messages."""
    sources = [os.path.join(SOURCES, name) for name in os.listdir(SOURCES) if name.endswith(".cpp")]
    sources.sort(key=os.path.getsize, reverse=True)
    objects = [str(work / f"{os.path.basename(source)}.o") for source in sources]
    commands = [
        [*compiler, *flags, "-c", source, "-o", target] for source, target in zip(sources, objects, strict=True)
    ]
    errors = _run_side_by_side(commands, work, jobs)
    link = [*compiler, *flags, "-shared", *objects, "-o", str(work / "kernels.so")]
    return errors or _run_side_by_side([link], work, jobs)


def _run_side_by_side(commands: list[list[str]], work: Path, jobs: int) -> str | None:
    from concurrent.futures import ThreadPoolExecutor  # not at import, which it would double

    with ThreadPoolExecutor(jobs) as pool:  # whichever ends first makes room for the next
        errors = list(pool.map(lambda command: _run(command, work), commands))
    return "\n".join(filter(None, errors)) or None


def _run(command: list[str], work: Path) -> str:
    import subprocess

    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=work, check=False)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {done.stdout}"
