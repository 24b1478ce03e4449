"""Makes a program that shows a difference small: fewer statements, smaller expressions, smaller numbers."""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Holds = Callable[[list[str]], bool]
Edit = Callable[[Any], None]


def shrink(statements: list[str], holds: Holds, seconds: float = 8.0) -> list[str]:
    """The smallest program found, within the time, that still ``holds``."""
    deadline = time.process_time() + seconds

    def fits(candidate: list[str]) -> bool:
        return time.process_time() < deadline and holds(candidate)

    while True:
        before = statements
        statements = fewer(statements, fits)
        statements = without_aliases(smaller(statements, fits), fits)
        if statements == before or time.process_time() > deadline:
            return statements


def fewer(statements: list[str], holds: Holds) -> list[str]:
    """Without every statement that is not needed; large pieces are tried first."""
    size = max(1, len(statements) // 2)
    while size:
        start = max(0, len(statements) - size)
        while True:
            candidate = statements[:start] + statements[start + size :]
            if len(candidate) < len(statements) and holds(candidate):
                statements = candidate
            if start == 0:
                break
            start = max(0, start - size)
        size //= 2
    return statements


def without_aliases(statements: list[str], holds: Holds) -> list[str]:
    """With the second names of things, ``b = a``, replaced by the first."""
    for index, text in reversed(list(enumerate(statements))):
        match = re.fullmatch(r"(\w+) = (\w+)", text)
        if match:
            new, old = match.groups()
            rest = [re.sub(rf"\b{new}\b", old, later) for later in statements[index + 1 :]]
            if holds([*statements[:index], *rest]):
                statements = [*statements[:index], *rest]
    return statements


def smaller(statements: list[str], holds: Holds) -> list[str]:
    """With every statement made as simple as it can be."""
    for index in reversed(range(len(statements))):
        improved = True
        while improved:
            improved = False
            for text in simpler(statements[index]):
                candidate = [*statements[:index], text, *statements[index + 1 :]]
                if holds(candidate):
                    statements, improved = candidate, True
                    break
    return statements


def simpler(text: str) -> Iterator[str]:
    """Every text that is one step simpler than this one."""
    tree = ast.parse(text)
    for position, node in enumerate(ast.walk(tree)):
        for edit in edits(node):
            changed = copy.deepcopy(tree)
            target = next(other for place, other in enumerate(ast.walk(changed)) if place == position)
            try:
                edit(target)
                result = ast.unparse(ast.fix_missing_locations(changed))
                ast.parse(result)
            except (ValueError, SyntaxError, AttributeError, TypeError):
                continue
            if simpler_than(result, text):
                yield result


def simpler_than(one: str, other: str) -> bool:
    """Whether a text is shorter, or as long with smaller figures."""
    return (len(one), one) < (len(ast.unparse(ast.parse(other))), ast.unparse(ast.parse(other)))


def edits(node: ast.AST) -> Iterator[Edit]:
    """Changes that simplify a node in place."""
    yield from block_edits(node)
    if isinstance(node, ast.Constant):
        yield from constant_edits(node)
    elif isinstance(node, ast.Call):
        yield from (deleting("keywords", i) for i, keyword in enumerate(node.keywords) if keyword.arg != "dtype")
        yield from (deleting("args", index) for index in range(len(node.args)))
        if isinstance(node.func, ast.Attribute):
            yield becoming(lambda call: call.func.value)
        yield from (becoming(partial(argument, index)) for index in range(len(node.args)))
    elif isinstance(node, ast.Tuple | ast.List):
        yield from (deleting("elts", index) for index in range(len(node.elts)) if len(node.elts) > 1)
        yield from (partial(narrow, index) for index in range(columns(node)))
    elif isinstance(node, ast.BinOp):
        yield becoming(lambda operation: operation.left)
        yield becoming(lambda operation: operation.right)
    elif isinstance(node, ast.UnaryOp):
        yield becoming(lambda operation: operation.operand)
    elif isinstance(node, ast.Subscript):
        yield becoming(lambda subscript: subscript.value)


def block_edits(node: ast.AST) -> Iterator[Edit]:
    """Statements of a block that go, blocks that become their bodies, decorators that go."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    if len(body) > 1:
        yield from (deleting("body", index) for index in range(len(body)))
    for index, inner in enumerate(body):
        if isinstance(inner, ast.With | ast.Try | ast.If | ast.For):
            yield partial(unwrap, index)
    yield from (deleting("decorator_list", index) for index in range(len(getattr(node, "decorator_list", []))))


def constant_edits(node: ast.Constant) -> Iterator[Edit]:
    """Smaller numbers."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    candidates: tuple[float, ...] = (0, 1, 2, value // 2) if isinstance(value, int) else (1.0, 2.0, 3.0)
    for other in candidates:
        if abs(other) < abs(value):
            yield partial(setter, other)


def argument(index: int, call: ast.Call) -> ast.expr:
    """One argument of a call."""
    return call.args[index]


def columns(node: ast.Tuple | ast.List) -> int:
    """Length of the rows of a nested list; 0 where it has no rows of one length, or of a single element."""
    lengths = {len(row.elts) if isinstance(row, ast.List) else 0 for row in node.elts}
    length = lengths.pop() if len(lengths) == 1 else 0
    return length if length > 1 else 0


def narrow(index: int, node: Any) -> None:
    """Take one column from a nested list."""
    for row in node.elts:
        del row.elts[index]


def unwrap(index: int, block: Any) -> None:
    """Put the body of a statement of the block in its place."""
    block.body[index : index + 1] = block.body[index].body


def setter(value: float, constant: ast.Constant) -> None:
    """Give a constant another value."""
    constant.value = value


def deleting(attribute: str, index: int) -> Edit:
    """The change that takes one item from a list of the node."""
    return lambda node: getattr(node, attribute).__delitem__(index)


def becoming(choose: Callable[[Any], ast.AST]) -> Edit:
    """The change by which a node becomes one of its parts."""

    def change(node: Any) -> None:
        part = choose(node)
        node.__class__ = part.__class__
        node.__dict__.clear()
        node.__dict__.update(part.__dict__)

    return change
