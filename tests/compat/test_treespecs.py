"""Shapes of trees: what they say of themselves, by hand, as text, and classes registered in short."""

import collections
import copy
import dataclasses
import pickle

import pytest

import rushlight
from rushlight.utils import _pytree as pytree

TREES = [
    1,
    [1, (2, {"a": 3})],
    collections.OrderedDict(b=1, a=[2]),
    collections.defaultdict(list, a=1),
    collections.deque([1, 2], maxlen=3),
    {"a": [1, 2, (3,)], "b": None},
    (),
]
Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    first: object
    second: object = None


@dataclasses.dataclass
class Length:
    of: int

    def __hash__(self) -> int:
        return self.of


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_a_shape_survives_text_pickle_and_copy_and_builds_its_tree(tree):
    leaves, spec = pytree.tree_flatten(tree)
    for again in (
        pytree.treespec_loads(pytree.treespec_dumps(spec)),
        pickle.loads(pickle.dumps(spec)),
        copy.deepcopy(spec),
    ):
        assert again == spec and hash(again) == hash(spec)
        assert again.unflatten(leaves) == tree and type(again.unflatten(leaves)) is type(tree)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("tree", [*TREES, Point(1, [2])], ids=repr)
def test_a_shape_says_what_it_says_in_pytorch(tree):
    torch = pytest.importorskip("torch")
    theirs = torch.utils._pytree
    here, there = pytree.tree_structure(tree), theirs.tree_structure(tree)
    assert repr(here) == repr(there)
    for name in ("type", "context", "num_leaves", "num_children", "num_nodes"):
        assert getattr(here, name) == getattr(there, name)
    assert repr(here.children()) == repr(there.children())
    assert pytree.treespec_pprint(here) == theirs.treespec_pprint(there)
    if not hasattr(tree, "_fields"):
        assert pytree.treespec_dumps(here) == theirs.treespec_dumps(there)
    ways = [(pytree.keystr(way), leaf) for way, leaf in pytree.tree_leaves_with_path(tree)]
    assert ways == [(theirs.keystr(way), leaf) for way, leaf in theirs.tree_leaves_with_path(tree)]
    assert [pytree.key_get(tree, way) for way, _ in pytree.tree_leaves_with_path(tree)] == pytree.tree_leaves(tree)


def test_a_tree_is_flattened_as_far_as_a_shape_goes():
    spec = pytree.tree_structure({"a": 1, "b": (2, 3)})
    assert spec.flatten_up_to({"b": ([4], 5), "a": None}) == [None, [4], 5]
    for wrong, words in (
        ({"a": 1, "b": 2}, "Node type mismatch"),
        ({"a": 1, "b": (2,)}, "arity mismatch"),
        ({"a": 1, "c": (2, 3)}, r"missing key\(s\): \{'b'\}; extra key\(s\): \{'c'\}"),
        (3, "Node type mismatch"),
    ):
        with pytest.raises(ValueError, match=words):
            spec.flatten_up_to(wrong)
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that holds 3 items"):
        spec.unflatten([1])
    with pytest.raises(TypeError, match="instance of PyTreeSpec"):
        pytree.tree_unflatten([1], 3)
    assert pytree._broadcast_to_and_flatten({"a": 1, "b": 2}, spec) == [1, 2, 2]
    assert pytree._broadcast_to_and_flatten([1], spec) is None


def test_shapes_are_made_by_hand():
    leaf = pytree.treespec_leaf()
    assert leaf == pytree.LeafSpec() and leaf.is_leaf() and leaf.num_nodes == 1
    assert pytree.treespec_tuple([leaf, leaf]) == pytree.tree_structure((1, 2))
    assert pytree.treespec_dict({"a": leaf}, b=leaf) == pytree.tree_structure({"a": 1, "b": 2})
    assert pytree.tree_structure([1]) != pytree.tree_structure((1,))


def test_text_is_of_known_classes_and_one_protocol():
    spec = pytree.tree_structure([1])
    with pytest.raises(ValueError, match="Unknown protocol -1"):
        pytree.treespec_dumps(spec, -1)
    with pytest.raises(ValueError, match="Unknown protocol 3"):
        pytree.treespec_loads("[3, {}]")
    with pytest.raises(TypeError, match="instance of PyTreeSpec"):
        pytree.treespec_dumps(3)
    with pytest.raises(NotImplementedError, match="namedtuple"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    with pytest.raises(NotImplementedError, match="no class was registered"):
        pytree.treespec_loads('[1, {"type": "Nobody", "context": "null", "children_spec": []}]')


def test_dataclasses_and_constants_are_registered_in_short():
    pytree.register_dataclass(Pair, serialized_type_name="tests.Pair")
    spec = pytree.tree_structure([Pair(1), Pair(2, 3)])
    assert spec.num_leaves == 3 and pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.tree_map(lambda x: x + 1, Pair(1)) == Pair(2) and pytree.tree_leaves(Pair(1, 2)) == [1, 2]
    assert [pytree.keystr(way) for way, _ in pytree.tree_leaves_with_path(Pair(1, 2))] == [".first", ".second"]
    with pytest.raises(ValueError, match="field_names"):
        pytree.register_dataclass(Length, field_names=["nothing"])
    pytree.register_constant(Length)
    leaves, spec = pytree.tree_flatten([Length(2), 1])
    assert leaves == [1] and pytree.tree_unflatten([5], spec) == [Length(2), 5] and pytree.is_constant_class(Length)
    assert spec == pytree.tree_structure([Length(2), 0]) != pytree.tree_structure([Length(3), 0])
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(object)


def test_small_helpers():
    tree, seen = {"a": [1, "b"]}, []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, "b"]
    assert pytree.tree_map_only_(int, seen.append, tree) is tree and seen == [1, "b", 1]
    assert pytree.map_only(int)(lambda x: x + 1)(3) == 4 and pytree.map_only(int)(lambda x: x + 1)("a") == "a"
    assert pytree.arg_tree_leaves(1, [2, 3], k=(4,)) == [1, 2, 3, 4]
    assert pytree.is_namedtuple_class(Point) and not pytree.is_namedtuple_class(tuple)
    result = rushlight.ones(2, 2).max(0)
    assert pytree.is_structseq(result) and pytree.is_structseq_class(type(result)) and not pytree.is_structseq((1,))


def test_ways_of_named_tuples_and_others_are_there_for_those_who_register_their_own() -> None:
    kind = collections.namedtuple("kind", "a b")
    ways = {
        "namedtuple": kind(1, 2), "deque": collections.deque([1, 2], 3), "ordereddict": collections.OrderedDict(a=1, b=2),
        "odict": collections.OrderedDict(a=1), "list": [1], "tuple": (1, 2),
    }  # fmt: skip
    for name, tree in ways.items():
        values, context = getattr(pytree, f"_{name}_flatten")(tree)
        again = getattr(pytree, f"_{name}_unflatten")(values, context)
        assert again == tree and type(again) is type(tree)
