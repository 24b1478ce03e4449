"""``rushlight install-as-torch``: this package counts as PyTorch in the virtual environment it is given in."""

import sys
from collections.abc import Sequence

from rushlight.cli.parsers import Parser
from rushlight.compat.stand_in import Refused, StandIn
from rushlight.compat.torch_version import PYTORCH

__all__ = ["main"]

TEXT = """Put a small distribution named torch into this virtual environment, which is rushlight: then
`pip install timm transformers` fetches no PyTorch, and `python train.py` needs no launcher.
`rushlight run` does the same for one process and writes nothing."""


def main(argv: Sequence[str]) -> int:
    """Install or remove the stand-in; 1 where that is refused."""
    parser = Parser(prog="rushlight install-as-torch", description=TEXT)
    parser.add_argument("--undo", action="store_true", help="take it out again, without a trace")
    given = parser.parse_args(argv)
    stand_in = StandIn()
    try:
        print(undone(stand_in) if given.undo else done(stand_in))
    except Refused as error:
        print(f"rushlight install-as-torch: {error}", file=sys.stderr)
        return 1
    return 0


def done(stand_in: StandIn) -> str:
    """Install, and what to say."""
    stand_in.install()
    return (
        f"torch {PYTORCH[:]} in {stand_in.prefix} is rushlight now: `import torch` finds it, and pip keeps it.\n"
        f"Installers that do not read pip.conf need the constraint {stand_in.constraints}\n"
        "Taken out again by `rushlight install-as-torch --undo`"
    )


def undone(stand_in: StandIn) -> str:
    """Remove, and what to say."""
    if not stand_in.installed:
        raise Refused(f"it is not installed in {stand_in.prefix}: there is nothing to take out")
    stand_in.remove()
    return f"torch in {stand_in.prefix} is rushlight no more"
