"""``torch._subclasses.fake_utils``: which results lie on the memory of which operands."""

from __future__ import annotations

from typing import Any

from rushlight.storage import storage_of
from rushlight.tensor import Tensor
from rushlight.utils import _pytree

__all__ = ["output_alias_each_other", "outputs_alias_inputs", "outputs_are_inputs"]


def _tensors(tree: object) -> list[Any]:
    """The tensors in a tree."""
    return [x for x in _pytree.tree_flatten(tree)[0] if isinstance(x, Tensor)]


def _memories(tree: object) -> list[int]:
    """The storages of the tensors in a tree, by their numbers."""
    return [storage_of(x)._cdata for x in _tensors(tree)]


def outputs_alias_inputs(outputs: object, inputs: object) -> bool:
    """Whether a result lies on the memory of an operand."""
    return bool(set(_memories(outputs)) & set(_memories(inputs)))


def outputs_are_inputs(outputs: object, inputs: object) -> bool:
    """Whether a result is an operand."""
    given = {id(x) for x in _tensors(inputs)}
    return any(id(x) in given for x in _tensors(outputs))


def output_alias_each_other(outputs: object) -> bool:
    """Whether two results lie on one memory."""
    found = _memories(outputs)
    return len(set(found)) != len(found)
