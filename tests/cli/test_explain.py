"""What messages say of where they are explained, and what is said there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rushlight.cli import explain, main

ROOT = Path(__file__).resolve().parents[2]
KNOWN = explain.sections()


def named_in_the_package() -> set[str]:
    """The names behind `rushlight explain` in messages of the package."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "rushlight").rglob("*.py"))
    return {name for text in texts for name in re.findall(r"\[rushlight explain ([a-z][a-z-]*)\]", text)}


def test_every_message_has_its_section_and_every_section_its_message() -> None:
    assert named_in_the_package() == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_a_section_has_cause_and_cure_and_shows_its_own_message(name: str) -> None:
    text = KNOWN[name]
    assert text.startswith("**Cause.** ") and "\n**Cure.** " in text
    shown = re.findall(r"\[rushlight explain ([a-z-]+)\]", text)
    assert set(shown) <= {name}  # the examples run with all pages
    assert shown or name in ("nothing-was-recorded", "missing-extra", "missing-name")  # nothing to run alone


def test_links_of_sections_lead_somewhere() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page):
        assert (ROOT / "docs" / target).exists(), target


def test_one_section_by_its_name_or_as_the_message_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "backward-twice"]) == 0
    one = capsys.readouterr().out
    assert one.startswith("backward-twice\n\nCause. ") and "retain_graph=True" in one and "```" not in one
    assert main(["explain", "[rushlight explain backward-twice]"]) == 0
    assert capsys.readouterr().out == one


def test_sections_by_words_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "linear: input of shape [3, 7] and weight of shape [2, 8] cannot be multiplied"]) == 0
    assert capsys.readouterr().out.startswith("sizes-of-a-product\n")


def test_all_are_listed_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(KNOWN) and max(map(len, lines)) <= 120


def test_what_is_not_known_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "backwards-twice"]) == 1
    told = capsys.readouterr().err
    assert "near to it: backward-twice" in told
