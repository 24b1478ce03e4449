"""Which steps of a graph something can run: questions that parts of graphs are chosen by."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight.basics.dtypes import dtype
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

Dtypes = tuple[Sequence[Sequence[dtype]], Mapping[str, Sequence[dtype]]]


class OperatorSupportBase(abc.ABC):
    """Says of steps whether they can be run."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether this one can.  submodules: of the graph's module, by path."""


class OperatorSupport(OperatorSupportBase):
    """By the name of what a step calls, as `get_node_target` gives it.

    support_dict: for each name that is supported None, or dtypes that may come by position and by name.
    """

    def __init__(self, support_dict: Mapping[str, Dtypes | None] | None = None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether this one can; what calls nothing always."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        name = get_node_target(submodules, node)
        if name not in self._support_dict:
            return False
        allowed = self._support_dict[name]
        if allowed is None:
            return True
        by_place, by_name = allowed
        return all(_dtype_of(node.args[i]) in kinds for i, kinds in enumerate(by_place) if i < len(node.args)) and all(
            _dtype_of(node.kwargs[key]) in kinds for key, kinds in by_name.items() if key in node.kwargs
        )


def _dtype_of(given: object) -> object:
    """The dtype of what a step takes, as `ShapeProp` noted it."""
    return getattr(given.meta.get("tensor_meta"), "dtype", None) if isinstance(given, Node) else None


class _Supports(OperatorSupportBase):
    def __init__(self, ask: Callable[[Mapping[str, Any], Node], bool]):
        self._ask = ask

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        return self._ask(submodules, node)


def create_op_support(is_node_supported: Callable[[Mapping[str, Any], Node], bool]) -> OperatorSupportBase:
    """What says so by a function."""
    return _Supports(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of them can run."""
    return _Supports(lambda submodules, node: all(x.is_node_supported(submodules, node) for x in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of them can run."""
    return _Supports(lambda submodules, node: any(x.is_node_supported(submodules, node) for x in op_support))


class OpSupports:
    """Questions that are often asked."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: dtype) -> OperatorSupportBase:
        """All but what takes a tensor of that dtype."""
        return _Supports(lambda submodules, node: all(_dtype_of(used) is not dtype for used in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """All but the steps of these names."""
        return _Supports(lambda submodules, node: node.name not in disallow_set)
