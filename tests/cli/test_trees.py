"""torch.utils._pytree, which scripts import although its name begins with an underscore."""

from collections import OrderedDict, defaultdict, namedtuple

import pytest

from rushlight.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


def test_trees_are_taken_apart_and_put_together() -> None:
    tree = {"b": 1, "a": (2, [3, None]), "c": Point(4, OrderedDict(d=5)), "e": defaultdict(int, f=6)}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == pytree.tree_leaves(tree) == [*pytree.tree_iter(tree)] == [1, 2, 3, None, 4, 5, 6]
    assert isinstance(spec, pytree.TreeSpec) and spec == pytree.tree_structure(tree)
    assert (spec.num_leaves, spec.num_children, spec.type) == (7, 4, dict) and not spec.is_leaf()
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert pytree.tree_is_leaf(1) and not pytree.tree_is_leaf([1]) and pytree.tree_structure(1).is_leaf()
    with pytest.raises(ValueError, match="holds 7 items"):
        pytree.tree_unflatten([1], spec)


def test_is_leaf_ends_a_tree_early() -> None:
    def pair(tree: object) -> bool:
        return isinstance(tree, tuple) and len(tree) == 2

    assert pytree.tree_leaves([(1, 2), (3,)], is_leaf=pair) == [(1, 2), 3]
    assert pytree.tree_map(len, [(1, 2), [(3, 4)]], is_leaf=pair) == [2, [2]]


def test_maps_over_several_trees() -> None:
    add = lambda a, b: [a, b]
    assert pytree.tree_map(add, [1, (2,)], [3, ([4],)]) == [[1, 3], ([2, [4]],)]
    assert pytree.tree_map(add, {"a": 1, "b": 2}, OrderedDict(b=3, a=4)) == {"a": [1, 4], "b": [2, 3]}
    for other in ([1], (1, 2), 3, [1, 2, 3]):
        with pytest.raises(ValueError, match=r"arity mismatch|type mismatch|keys mismatch"):
            pytree.tree_map(add, [1, 2], other)
    with pytest.raises(ValueError, match="keys"):
        pytree.tree_map(add, {"a": 1}, {"b": 1})


def test_leaves_of_a_type() -> None:
    tree = [1, 2.0, ("a", -3)]
    assert pytree.tree_map_only(int, abs, tree) == [1, 2.0, ("a", 3)]
    assert pytree.tree_map_only((int, float), lambda x: x + 1, tree) == [2, 3.0, ("a", -2)]
    assert pytree.tree_map_only(lambda x: x == "a", str.upper, tree) == [1, 2.0, ("A", -3)]
    assert pytree.tree_any_only(int, lambda x: x < 0, tree) and not pytree.tree_all_only(int, lambda x: x < 0, tree)
    assert pytree.tree_all(bool, tree) and pytree.tree_any(lambda x: x == 1, tree)
