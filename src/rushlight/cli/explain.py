"""``rushlight explain``: what caused a message, and what to do about it; the sections of docs/errors.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from rushlight.cli.parsers import Parser

__all__ = ["main", "sections"]

PAGES = (
    Path(__file__).with_name("errors.md"),  # in a wheel
    Path(__file__).resolve().parents[3] / "docs" / "errors.md",  # in a clone
)
EPILOG = """examples:
  rushlight explain                               all sections
  rushlight explain backward-twice                one of them, as messages name them
  rushlight explain "cannot be multiplied"        those with these words of a message
"""


def main(argv: Sequence[str]) -> int:
    """Print one section, those that have some words, or the names of all; exit status 1 where there is none."""
    parser = Parser(
        prog="rushlight explain",
        description="Say what caused a message, and what to do.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "words", metavar="NAME | WORDS", nargs="*", help="as a message has it: [rushlight explain NAME]"
    )
    words = " ".join(parser.parse_args(argv).words).strip().strip("[]").removeprefix("rushlight explain").strip()
    known = sections()
    if not words:
        print("\n".join(f"{name:<32}{first_sentence(text)}" for name, text in known.items()))
        return 0
    found = [words] if words in known else [name for name, text in known.items() if has(text, words)]
    if not found:
        near = get_close_matches(words, known, 3, 0.5)
        hint = f"; near to it: {', '.join(near)}" if near else ""
        print(f"rushlight explain: nothing is known of {words!r}{hint}. Without words it lists all", file=sys.stderr)
        return 1
    print("\n\n".join(f"{name}\n\n{plain(known[name])}" for name in found))
    return 0


def sections() -> dict[str, str]:
    """The text of each section by its name, in the page's order."""
    page = next(page for page in PAGES if page.exists()).read_text(encoding="utf-8")
    parts = re.split(r"^## (\S+)\n", page, flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def first_sentence(text: str) -> str:
    """The beginning of what a section says."""
    found = " ".join(plain(text).removeprefix("Cause. ").split())
    return found if len(found) <= 86 else found[:85].rsplit(" ", 1)[0] + " …"


def has(text: str, words: str) -> bool:
    """Whether words stand in a section, however its lines are broken; numbers of a message may be others."""

    def bare(x: str) -> str:
        return re.sub(r"\d+", "0", " ".join(x.lower().split()))

    return bare(words) in bare(text)


def plain(text: str) -> str:
    """Markdown as a terminal shows it: no fences, no stars, and links as their words."""
    lines = [line for line in text.splitlines() if not line.startswith("```")]
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", "\n".join(lines))
    return text.replace("**", "").strip()
