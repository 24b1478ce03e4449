"""Findings that are not mended yet, each with its reason: printed after every run, and to be emptied."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .comparing import Difference

NAMED = ("grad_fn", "output_nr")
SHARED = (
    "value",
    "storage",
    "offset",
    "stride",
    "version",
    "shape",
    "grad",
    "leniency",
    "outcome",
    "is_leaf",
    "requires_grad",
    "output_nr",
)


@dataclass(frozen=True)
class Known:
    """A finding that is known.

    reason: what differs. program: a pattern of the program's text; message: a pattern of either side's refusal;
    what: the facts that differ by it, () for all.
    """

    reason: str
    program: str = ""
    message: str = ""
    what: tuple[str, ...] = ()

    def applies(self, difference: Difference) -> bool:
        """Whether the difference is this one."""
        said = " ".join(str(getattr(side, "message", "")) for side in (difference.reference, difference.subject))
        return (
            (not self.what or difference.what in self.what)
            and re.search(self.program, "\n".join(difference.statements)) is not None
            and re.search(self.message, said) is not None
        )


KNOWN: tuple[Known, ...] = (
    Known("set_, .data = and resize_ as changes, and of tensors with a graph", r"\.set_\(|\.data = |\.resize_(as_)?\("),
    Known("view(dtype) keeps the gradient where PyTorch drops it", r"\.view\(torch\.\w+\)"),
    Known(
        "detach_, requires_grad_ of views",
        r"(?m)^\s*v\d+\.(detach_|requires_grad_)\(",
        r"",
        ("outcome", "leniency", "is_leaf", "requires_grad", "grad"),
    ),
    Known("names and numbers of outputs in the graph", what=NAMED),
)


def known(difference: Difference) -> str | None:
    """Why this difference is expected for now, or None."""
    return next((entry.reason for entry in KNOWN if entry.applies(difference)), None)
