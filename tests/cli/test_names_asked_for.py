"""Names of PyTorch that libraries ask for and that look there by accident, or by half."""

import copy
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import rushlight as torch
from rushlight.utils import _pytree as pytree


def test_annotations_of_jit_are_the_module():
    assert torch.jit.annotations.List is list or torch.jit.annotations.List.__name__ == "List"
    assert torch.jit.annotations.BroadcastingList2 is not None


def test_copies_of_layouts_are_the_layouts():
    for layout in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        assert copy.deepcopy(layout) is layout
        assert pickle.loads(pickle.dumps(layout)) is layout


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "tree", [[1, 2], (1, 2), {"a": 1}, OrderedDict(a=1), defaultdict(list, a=[1]), deque([1, 2], 3), Pair(1, 2)]
)
def test_containers_come_apart_and_together_by_the_table(tree):
    way = pytree.SUPPORTED_NODES[pytree._get_node_type(tree)]
    children, context = way.flatten_fn(tree)
    again = way.unflatten_fn(children, context)
    assert again == tree
    assert type(again) is type(tree)
    assert pytree.tree_unflatten(*pytree.tree_flatten(tree)) == tree


def test_an_override_is_told_of_equality_by_the_method():
    seen = []

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return 1

    assert (torch.ones(2) == Like()) == 1
    assert seen == [torch.Tensor.eq]

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    assert (torch.ones(2).as_subclass(Own) == 1).all()
    assert torch.Tensor.__eq__ in seen
