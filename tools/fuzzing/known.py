"""Findings that are not mended yet, each with its reason: printed after every run, and to be emptied."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .comparing import Difference


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


KNOWN: tuple[Known, ...] = ()


def known(difference: Difference) -> str | None:
    """Why this difference is expected for now, or None."""
    return next((entry.reason for entry in KNOWN if entry.applies(difference)), None)
