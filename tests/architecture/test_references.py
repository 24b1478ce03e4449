"""How many references mean that nobody else holds an object differs between versions of Python: no constant says it."""

import ast
from pathlib import Path

from tests.architecture.syntax import dotted, nodes

import rushlight

PACKAGE = Path(rushlight.__file__).parent


def counts_a_variable(node: ast.AST) -> bool:
    """Of what is given as an attribute, which no variable holds, the count is the same everywhere."""
    return (
        isinstance(node, ast.Call) and dotted(node.func).endswith("getrefcount") and isinstance(node.args[0], ast.Name)
    )


def test_counts_of_references_are_compared_with_what_was_measured() -> None:
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.Compare)
        and any(counts_a_variable(side) for side in (node.left, *node.comparators))
        and any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
    ]
    assert not found, f"see basics/references.py: {found}"
