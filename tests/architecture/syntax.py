"""The syntax trees of the package's files."""

import ast
import functools
from pathlib import Path


@functools.cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file; forgotten after the tests of a file (`conftest.py`): all together are a million objects."""
    return ast.parse(path.read_text(encoding="utf-8"))
