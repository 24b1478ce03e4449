"""Findings as text: a program that stands alone, what it shows on both sides, and how to draw it again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .comparing import Difference
from .observing import EXPRESSIONS, Plain
from .program import Raised, Side, run


@dataclass
class Finding:
    """A program whose sides differ, made small."""

    kind: str
    draw: str  # the seed of the program, as --replay takes it
    statements: list[str]
    lines: list[str]  # the sides' observations
    what: str
    signature: str
    caught: list[int] = field(default_factory=list)  # statements that raise on both sides
    prelude: str = ""

    def text(self) -> str:
        """The finding as it is printed."""
        head = f"== {self.kind}: {self.what}   (python tools/fuzz.py --replay {self.draw})"
        return "\n".join([head, *self.program(), "", *(f"#   {line}" for line in self.lines), ""])

    def program(self) -> list[str]:
        """A program that runs alone, with either library as torch."""
        lines = ["import torch  # or: import rushlight as torch"]
        whole = "\n".join(self.statements)
        lines += ["import numpy as np"] if "np." in whole else []
        lines += ["import weakref"] if "weakref." in whole else []
        lines += self.prelude.split("\n") if self.prelude else []
        for index, text in enumerate(self.statements):
            lines += guarded(text) if index in self.caught else text.split("\n")
        return lines


def guarded(text: str) -> list[str]:
    """The statement, with its exception printed."""
    return ["try:", *(f"    {line}" for line in text.split("\n")), "except Exception as error:", "    print(error)"]


def finding(kind: str, draw: str, difference: Difference, reference: Side, subject: Side) -> Finding:
    """The finding that a shrunk program makes."""
    statements = list(difference.statements)
    with reference.around():
        execution = run(statements, reference)
    caught = [index for index, outcome in enumerate(execution.outcomes) if outcome and index != difference.step]
    if difference.step is None:
        statements.append(f"print({EXPRESSIONS.get(difference.what, '{0}').format(difference.where)})")
    lines = [
        f"{side.name}: {short(value)}"
        for side, value in ((reference, difference.reference), (subject, difference.subject))
    ]
    place = (
        difference.what
        if difference.step is None
        else f"{difference.what} of {difference.statements[difference.step]!r}"
    )
    return Finding(
        kind, draw, statements, lines, f"{place} of {difference.where}", signature(difference), caught, subject.prelude
    )


def short(value: Plain) -> str:
    """An observation in a line or a few."""
    return value.message.split("\n")[0] if isinstance(value, Raised) else " ".join(str(value).split())[:600]


def signature(difference: Difference) -> str:
    """What findings of one cause have in common: the kind of difference and the operators of the program."""
    if difference.what == "grad_fn":
        return f"grad_fn {difference.reference} {difference.subject}"
    words = re.findall(r"[A-Za-z_]\w*(?=\()", "\n".join(difference.statements))
    marks = ["[]="] if any(re.match(r"\w+\[.*\] [-+*/]?=", text) for text in difference.statements) else []
    return " ".join(
        [*difference.key, *sorted({word for word in words if word not in ("arange", "tensor")} | set(marks))]
    )
