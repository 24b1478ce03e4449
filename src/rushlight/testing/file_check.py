"""Checks of what stands in a text, in the order in which it stands there: `FileCheck`, after the program of that name of LLVM."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, Self

from rushlight.basics.naming import called

__all__ = ["FileCheck"]

_LINE = re.compile(
    r"^\s*#\s*CHECK(?:-(?P<kind>NOT|NEXT|SAME|DAG|REGEX|COUNT-(?P<exactly>EXACTLY-)?(?P<count>\d+)))?: ?(?P<text>.*)$",
    re.MULTILINE,
)
Span = tuple[int, int]


class Check(NamedTuple):
    """One check: its kind in capitals, what is looked for, how often."""

    kind: str
    text: str
    times: int = 1

    def __str__(self) -> str:
        kind = "CHECK" + (f"-{self.kind}" if self.kind else "")
        return f"From {kind}{f'-{self.times}' if self.kind == 'COUNT' else ''}: {self.text}\n"


def _added(kind: str, doc: str) -> Callable[[FileCheck, str], FileCheck]:
    """The method that adds a check of a kind."""

    def check(self: FileCheck, test_string: str) -> FileCheck:
        return self._with(kind, test_string)

    return called(check, f"check_{kind.lower().replace('-', '_')}".rstrip("_"), doc)


class FileCheck:
    """Checks that are collected by calls and made by `run`: each looks on from where the one before has found its text.

    Raises RuntimeError for what is not found, or what is found and must not be.

    >>> import rushlight as torch
    >>> torch.testing.FileCheck().check("mul").check_next("add").check_not("div").run("a = mul(x)\\nb = add(a)\\n")
    """

    def __init__(self) -> None:
        self.checks: list[Check] = []

    def _with(self, kind: str, text: str, count: int = 1) -> Self:
        self.checks.append(Check(kind, text, count))
        return self

    check = _added("", "It comes next, somewhere.")
    check_not = _added("NOT", "It does not stand between what is found before and what is found after.")
    check_next = _added("NEXT", "It stands on the line after.")
    check_same = _added("SAME", "It stands on the same line, behind.")
    check_dag = _added("DAG", "It comes next, in any order with those of such calls right before and behind.")
    check_regex = _added("REGEX", "What a regular expression fits comes next.")
    check_source_highlighted = _added("SOURCE-HIGHLIGHTED", 'It comes next, and the line below underlines it with "~".')

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> Self:
        """It comes so often one after the other.  exactly: and does not stand between there and what is found after."""
        if not count and not exactly:
            raise RuntimeError("Count == 0 && !exactly doesn't do anything: a text is found at least 0 times anywhere")
        if count:
            self._with("COUNT", test_string, count)
        return self._with("NOT", test_string) if exactly else self

    def run(self, *args: object) -> None:
        """Make the checks of a text, or of what prints as one; `run(checks, text)` makes those that comments in a text say.

        Such a comment is `# CHECK: words`, or CHECK-NOT, CHECK-NEXT, CHECK-SAME, CHECK-DAG, CHECK-COUNT-2, CHECK-COUNT-EXACTLY-2.
        """
        if len(args) not in (1, 2) or (len(args) == 2 and not isinstance(args[0], str)):
            raise TypeError("run(): expected a text, or checks and a text")
        for found in _LINE.finditer(str(args[0]) if len(args) == 2 else ""):
            if found["count"]:
                self.check_count(found["text"], int(found["count"]), bool(found["exactly"]))
            else:
                self._with(found["kind"] or "", found["text"])
        if not self.checks:
            raise RuntimeError(
                "No checks have been added to this FileCheck: call check() and its like, or give run() comments that say some"
            )
        Search(str(args[-1])).run(self.checks)


FileCheck.__module__ = "torch"


class Search:
    """A text, and where in it the last check found what it looked for."""

    def __init__(self, text: str):
        self.text = text
        self.last: Span = (0, 0)

    def run(self, checks: list[Check]) -> None:
        """Make the checks.  What must not be there is looked for once it is known where what comes after is."""
        absent: list[Check] = []
        i = 0
        while i < len(checks):
            check = checks[i]
            i += 1
            if check.kind == "NOT":
                absent.append(check)
                continue
            group = [check]
            while check.kind == "DAG" and i < len(checks) and checks[i].kind == "DAG":
                group.append(checks[i])
                i += 1
            before = self.last[1]
            spans = self.spans(group)
            self.refuse(absent, before, min(start for start, _ in spans))
            self.last = (min(start for start, _ in spans), max(end for _, end in spans))
            absent = []
        self.refuse(absent, self.last[1], len(self.text))

    def spans(self, group: list[Check]) -> list[Span]:
        """Where a check, or several whose order is free, find their texts."""
        check, start = group[0], self.last[1]
        if check.kind == "DAG":
            return [self.find(c, start) for c in group]
        if check.kind == "COUNT":
            return [self.again(check) for _ in range(check.times)]
        span = self.find(check, start)
        lines = self.text.count("\n", start, span[0])
        if (check.kind == "SAME" and lines) or (check.kind == "NEXT" and self.last[1] and lines != 1):
            where = "the same line" if check.kind == "SAME" else "the next line"
            self.fail(f'Expected to find "{check.text}" on {where} but found it {lines} lines below', check, *span)
        if check.kind == "SOURCE-HIGHLIGHTED" and not self.underlined(*span):
            self.fail(f'Expected to find "{check.text}" highlighted but it is not.', check, *span)
        return [span]

    def again(self, check: Check) -> Span:
        """The next place of a text."""
        self.last = self.find(check, self.last[1])
        return self.last

    def find(self, check: Check, start: int) -> Span:
        """Where a text, or what an expression fits, stands from a place on."""
        if check.kind == "REGEX":
            found = re.compile(check.text).search(self.text, start)
            if found is not None:
                return found.span()
            self.fail(f'Expected to find regex "{check.text}" but did not find it', check, start, start)
        at = self.text.find(check.text, start)
        if at < 0:
            self.fail(f'Expected to find "{check.text}" but did not find it', check, start, start)
        return at, at + len(check.text)

    def underlined(self, start: int, end: int) -> bool:
        """Whether the line below has "~" under a place."""
        first = self.text.rfind("\n", 0, start) + 1
        below = self.text.find("\n", end)
        marks = self.text[below + 1 :].partition("\n")[0] if below >= 0 else ""
        return set(marks[start - first : end - first]) == {"~"}

    def refuse(self, absent: list[Check], start: int, end: int) -> None:
        """Fail where one of these texts stands between two places."""
        for check in absent:
            at = self.text.find(check.text, start, end)
            if at >= 0:
                self.fail(f'Expected to not find "{check.text}" but found it', check, at, at + len(check.text))

    def fail(self, said: str, check: Check, start: int, end: int) -> NoReturn:
        """Raise RuntimeError, with the lines around a place, which is underlined."""
        first = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", end)
        above, line = self.text[:first].splitlines()[-2:], self.text[first : stop if stop >= 0 else len(self.text)]
        marks = " " * (start - first) + "~" * max(end - start, 1) + " <--- HERE"
        raise RuntimeError("\n".join([said, "Searched string:", *above, line, marks, str(check)]))
