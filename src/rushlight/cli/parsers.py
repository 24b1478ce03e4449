"""Parsers that say which word a misspelt one may have been meant to be."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NoReturn

__all__ = ["Parser", "count"]

WRONG = re.compile(r"unrecognized arguments: (?P<option>-[^\s=]+)|invalid choice: '(?P<choice>[^']*)'")


class Parser(argparse.ArgumentParser):
    """A parser of the command line, whose description and epilog stay as they are laid out; its commands have such parsers, too.

    >>> parser = Parser(prog="rushlight run")
    >>> _ = parser.add_argument("--memory-budget")
    >>> parser.meant("unrecognized arguments: --memory-buget 2GiB")
    '; did you mean --memory-budget?'
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": argparse.RawDescriptionHelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """End with status 2 and a message."""
        super().error(message + self.meant(message))

    def meant(self, message: str) -> str:
        """A question for the end of a message about a word that is none."""
        found = WRONG.search(message)
        word = found[found.lastgroup or 0] if found else ""
        near = get_close_matches(word, words_of(self), 1, 0.7) if word else []
        return f"; did you mean {near[0]}?" if near else ""


def count(text: str) -> int:
    """A number from 1, as an option has it.  Raises argparse's error for others."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text!r}")
    return int(text)


def words_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options and choices of a parser and of its commands."""
    for action in parser._actions:
        yield from action.option_strings
        yield from map(str, action.choices or ())
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from words_of(command)
