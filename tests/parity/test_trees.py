"""Trees of containers as `torch.utils._pytree` has them: shapes, named tuples, results with names, text of shapes."""

from __future__ import annotations

import importlib
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

Point = namedtuple("Point", "x y")


class Placed(Point):
    """A class of named tuples of one's own."""


class Colour(Enum):
    RED = 1


@dataclass
class Pair:
    left: int
    right: int


def pytree(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils._pytree")


def ways(p: Any, tree: Any) -> list[tuple[str, Any]]:
    return [(p.keystr(way), leaf) for way, leaf in p.tree_flatten_with_path(tree)[0]]


def extremes(t: Any) -> Any:
    return t.tensor([1, 3, 2]).max(0)


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "leaves of a shape": lambda t, p: p.tree_leaves([t.Size([2, 3]), 4]),
    "a shape of shapes": lambda t, p: repr(p.tree_structure(t.Size([2, 3]))),
    "ways into a shape": lambda t, p: ways(p, {"a": t.Size([2, 3])}),
    "what is made of a shape": lambda t, p: p.tree_map(str, t.Size([1, 2])),
    "text of a shape": lambda t, p: p.treespec_dumps(p.tree_structure(t.Size([1]))),
    "named tuples of a class": lambda t, p: repr(p.tree_structure(Placed(1, 2))),
    "ways into results": lambda t, p: [way for way, _ in ways(p, extremes(t))],
    "ways into named tuples": lambda t, p: ways(p, [Point(1, 2)]),
    "types by a union": lambda t, p: p.tree_map_only(int | str, lambda x: x * 2, [1, "a", 2.0]),
    "a class of named tuples": lambda t, p: [p.is_namedtuple(x) for x in (Point, Placed(1, 2), (1,), tuple)],
    "an enum in text": lambda t, p: p.treespec_dumps(p.tree_structure({Colour.RED: 1})),
}


@pytest.mark.parametrize("name", CASES)
def test_trees_are_as_in_pytorch(name: str) -> None:
    ours, theirs = (CASES[name](t, pytree(t)) for t in (rushlight, reference))
    assert ours == theirs


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_text_of_named_tuples_and_enums_is_read_again(t: Any) -> None:
    p = pytree(t)
    p._register_namedtuple(Point, serialized_type_name="tests.Point")
    for tree in (Point(1, [2]), {Colour.RED: 3}):
        spec = p.tree_structure(tree)
        assert p.treespec_loads(p.treespec_dumps(spec)) == spec


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_a_context_is_written_as_its_class_says(t: Any) -> None:
    p = pytree(t)

    class Box:
        def __init__(self, held: Any) -> None:
            self.held = held

    p.register_pytree_node(
        Box, lambda b: ([b.held], {1}), lambda held, _: Box(*held), serialized_type_name=f"{t.__name__}.Box",
        to_dumpable_context=lambda c: sorted(c), from_dumpable_context=lambda c: set(c),
    )  # fmt: skip
    spec = p.tree_structure(Box(5))
    assert "[1]" in p.treespec_dumps(spec)
    assert p.treespec_loads(p.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        p.tree_flatten_with_path(Box(5))


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_registrations_that_lack_something_are_refused(t: Any) -> None:
    p = pytree(t)
    with pytest.raises(ValueError, match="must be None or registered"):
        p.register_pytree_node(set, list, set, to_dumpable_context=lambda c: c)
    with pytest.raises(ValueError, match=r"does not include all dataclass fields.*\s*Missing fields in `field_names`"):
        p.register_dataclass(Pair, field_names=["left"])
    with pytest.raises(ValueError, match="Unexpected fields in `field_names`"):
        p.register_dataclass(Pair, field_names=["left", "right", "more"])
    with pytest.raises(TypeError):
        p.tree_map_only(3, str, [1])
