"""What is noted of steps while they are traced or run: `preserve_node_meta` and `annotate` have it kept in their ``meta``."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.fx.node import Node

__all__ = ["annotate", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta",
           "set_stack_trace"]  # fmt: skip

# What a step has of the one that it was made from; the rest is of passes, and theirs to copy.
COPIED = ("nn_module_stack", "stack_trace", "custom", "source_fn_stack", "quantization_tag")


class _Here(threading.local):
    """This thread's part."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserved = False


here = _Here()


def has_preserved_node_meta() -> bool:
    """Whether what is noted is kept."""
    return here.preserved


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A context in which steps get what is noted of the step that they are made from."""
    former = here.meta, here.preserved
    here.meta, here.preserved = dict(here.meta), enable
    try:
        yield
    finally:
        here.meta, here.preserved = former


def set_stack_trace(stack: list[str]) -> None:
    """Note where steps come from, in `preserve_node_meta`."""
    if here.preserved and stack:
        here.meta["stack_trace"] = "".join(stack)


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A context whose steps get this in ``meta["custom"]``, beside what contexts around it say."""
    former = here.meta
    here.meta = {**former, "custom": {**former.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        here.meta = former


def format_stack() -> list[str]:
    """Where the step that runs was traced, where that is known, and else the calls that led here."""
    if here.preserved and "stack_trace" in here.meta:
        return [here.meta["stack_trace"]]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """A context in which a step runs, whose notes go to those that are made of it."""
    if not here.preserved or not node.meta:
        yield
        return
    former = here.meta
    here.meta = {**node.meta, "from_node": [*node.meta.get("from_node", ()), (node.name, node.target)]}
    try:
        yield
    finally:
        here.meta = former


def get_current_meta() -> dict[str, Any]:
    """What is noted now."""
    return here.meta


def noted(node: Node) -> None:
    """Give a new step what is noted."""
    if here.preserved or "custom" in here.meta:
        node.meta.update({key: here.meta[key] for key in (*COPIED, "from_node") if key in here.meta})
