"""The syntax trees of the package's files."""

import ast
import functools
import gc
from pathlib import Path


@functools.cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file; forgotten after the last test here (`conftest.py`): all together are a million objects."""
    gc.disable()  # which would look through all of them again and again, for two thirds of the time
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(tree(path)))


def dotted(node: ast.AST) -> str:
    """The name that an expression is, as `a.b.c`, "" for another; of what is no name, as `.b.c`.  `ast.unparse` of each takes long."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""
