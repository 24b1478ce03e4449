"""How many references mean that nobody else holds an object differs between versions of Python: no constant says it."""

import ast
from pathlib import Path

from tests.architecture.syntax import dotted, nodes
from tests.processes import printed

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


LOOKED_ON = """
import sys
def look(frame, event, arg):
    if "rushlight" in frame.f_code.co_filename:
        dict(frame.f_locals)
        return look
{start}
import rushlight as torch
{end}
counts = []
import importlib
for room, name in (("basics.references", "HELD"), ("storage", "ALONE"), ("dispatch.keeping.spare", "ALONE"), ("dispatch.keeping.gates", "ALONE"),
                   ("dispatch.keeping.masks", "ALONE"), ("memory.estimates.dry_run", "ALONE")):
    counts.append(getattr(importlib.import_module(f"rushlight.{{room}}"), name))
kept, x = [], torch.ones(3).requires_grad_()
x.register_hook(kept.append)
for _ in range(2):
    (x * 2).sum().backward()
print([g.tolist() for g in kept], *(sorted(each, key=str) if isinstance(each, set) else each for each in counts))
"""


def test_references_are_counted_alike_where_a_debugger_looks_on() -> None:
    none, traced, profiled = (
        printed("-c", LOOKED_ON.format(start=start, end=end))
        for start, end in (("", ""), ("sys.settrace(look)", "sys.settrace(None)"), ("sys.setprofile(look)", "sys.setprofile(None)"))
    )  # fmt: skip
    assert none.startswith("[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]") and none == traced == profiled
