"""The syntax trees of the sources, each parsed once in a process."""

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"))
