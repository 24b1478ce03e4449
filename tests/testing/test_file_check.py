"""FileCheck: what stands in a text, in order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rushlight.testing import FileCheck

TEXT = "a b c\nfoo bar\nbaz foo\nend\n"
CHECKS = {
    "one after the other": lambda: FileCheck().check("a").check("foo").check("foo"),
    "not between": lambda: FileCheck().check_not("zip").check("foo").check_not("zip"),
    "not behind": lambda: FileCheck().check("end").check_not("foo"),
    "on the next line": lambda: FileCheck().check("a").check_next("foo"),
    "on the first line": lambda: FileCheck().check_next("a"),
    "on the same line": lambda: FileCheck().check("foo").check_same("bar"),
    "so often": lambda: FileCheck().check_count("foo", 2).check_not("baz"),
    "so often and no more": lambda: FileCheck().check_count("foo", 2, exactly=True).check("end"),
    "in any order": lambda: FileCheck().check_dag("baz").check_dag("a").check("end"),
    "an expression": lambda: FileCheck().check_regex(r"f\w+ b"),
}
FAILURES: dict[str, tuple[Callable[[], FileCheck], str]] = {
    "too often": (lambda: FileCheck().check("foo").check("foo").check("foo"), 'Expected to find "foo" but did not'),
    "between": (lambda: FileCheck().check("a").check_not("foo").check("end"), 'Expected to not find "foo" but found'),
    "before": (lambda: FileCheck().check_not("foo").check_dag("baz"), 'Expected to not find "foo" but found'),
    "two lines below": (lambda: FileCheck().check("a").check_next("baz"), "on the next line"),
    "one line below": (lambda: FileCheck().check("a").check_same("bar"), "on the same line"),
    "once too often": (lambda: FileCheck().check_count("foo", 1, exactly=True), 'Expected to not find "foo"'),
    "not often enough": (lambda: FileCheck().check_count("foo", 3), "From CHECK-COUNT-3: foo"),
    "one of several": (lambda: FileCheck().check_dag("baz").check_dag("zip"), 'Expected to find "zip"'),
    "an expression": (lambda: FileCheck().check_regex(r"q\w+"), "Expected to find regex"),
    "nothing": (FileCheck, "No checks have been added"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_text_passes(name: str) -> None:
    CHECKS[name]().run(TEXT)


@pytest.mark.parametrize("name", FAILURES)
def test_a_text_fails_with_what_was_looked_for(name: str) -> None:
    made, said = FAILURES[name]
    with pytest.raises(RuntimeError, match=said):
        made().run(TEXT)


def test_checks_are_read_from_comments() -> None:
    FileCheck().run("# CHECK-COUNT-2: foo\n# CHECK-NOT: zip\n#CHECK-NEXT: end", TEXT)
    with pytest.raises(RuntimeError, match=r"From CHECK: zip"):
        FileCheck().run("# CHECK: zip", TEXT)


def test_what_is_underlined() -> None:
    underlined = "  foo bar\n  ~~~ <--- HERE"
    FileCheck().check_source_highlighted("foo").run(underlined)
    with pytest.raises(RuntimeError, match="highlighted but it is not"):
        FileCheck().check_source_highlighted("bar").run(underlined)


def test_checks_of_nothing_are_refused() -> None:
    with pytest.raises(RuntimeError, match="Count == 0"):
        FileCheck().check_count("foo", 0)
