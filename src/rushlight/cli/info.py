"""``rushlight info``: the versions in use, in lines that fit into a bug report."""

import importlib.metadata
import platform
import sys
from collections.abc import Sequence

from rushlight.cli.parsers import Parser
from rushlight.version import __version__

__all__ = ["main"]

OPTIONAL = ("scipy", "cupy-cuda12x", "safetensors", "mpi4py", "tqdm", "torch")


def main(argv: Sequence[str]) -> int:
    """Print the versions and return 0."""
    parser = Parser(prog="rushlight info", description="Print the versions in use.")
    parser.parse_args(argv)
    rows = {
        "rushlight": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "numpy": version_of("numpy"),
        "ml_dtypes": version_of("ml_dtypes"),
    }
    rows |= {name: version_of(name) for name in OPTIONAL}
    width = max(map(len, rows))
    print("\n".join(f"{name:<{width}}  {value}" for name, value in rows.items()))
    return 0


def version_of(distribution: str) -> str:
    """The installed version of ``distribution``, or "not installed"."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
