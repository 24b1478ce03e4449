"""Where memory is held: the blocks behind parameters, gradients, optimizer state and what the graph saved."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from itertools import chain, compress, starmap
from operator import not_
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.dispatch.keeping.masks import Mask
from rushlight.dispatch.keeping.unmade import place_of
from rushlight.dispatch.plan import OpNode
from rushlight.engine.node import Node
from rushlight.engine.saved import Packed, PackedResults
from rushlight.memory.budgets.paged import complete, present
from rushlight.memory.budgets.pages import Kept
from rushlight.memory.recordings.recording import CATEGORIES
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.optim.optimizer import Optimizer
from rushlight.storage import root_of
from rushlight.tensor import Tensor

UNKNOWN, PARAMETER, GRADIENT, OPTIMIZER_STATE, ACTIVATION, INPUT, TEMPORARY, AUTOGRAD_DETAIL = range(len(CATEGORIES))


class Held(NamedTuple):
    """A block that something holds.  address, size: in bytes."""

    address: int
    size: int
    category: int
    name: str  # of the parameter, module or operator
    array: Any


def block_of(array: Array) -> Any:
    """The array whose memory that of `array` is, None if NumPy did not allocate it."""
    root = root_of(array)
    return root if root.flags.owndata else None


def held(array: Array | None, category: int, name: str = "") -> Iterator[Held]:
    """The block of an array, once: nothing if another allocated it."""
    root = block_of(array) if isinstance(array, np.ndarray) else None
    if root is not None and root.nbytes:
        yield Held(root.__array_interface__["data"][0], root.nbytes, category, name, root)


def several(node: OpNode, name: str) -> list[Any] | tuple[Any, ...]:
    """What a node keeps under a name; a custom function may call anything of its own so."""
    found = getattr(node, name, None)
    return found if isinstance(found, (tuple, list)) else ()


def within_budget(item: object) -> Iterator[Any]:
    """What a budget keeps of a saved tensor, while that is in memory."""
    found = item.packed.alive() if isinstance(item, Packed) and isinstance(item.packed, Kept) else None
    if found is not None:
        yield found


def saved_arrays(node: Any) -> Iterator[Any]:
    """The arrays that a node keeps for its backward, without those that hooks packed; with those that a budget keeps."""
    for item in (*several(node, "saved"), *several(node, "outs")):
        if isinstance(item, Tensor):
            if place_of(item) is None:  # else nothing is there yet
                yield present(item)
        elif isinstance(item, Mask):
            yield item.memory
        elif item is not None and isinstance(getattr(item, "array", None), np.ndarray):
            yield item.array
        else:
            yield from within_budget(item)
    aux = getattr(node, "aux", None)
    for item in aux.items if isinstance(aux, PackedResults) else several(node, "aux"):
        if isinstance(item, np.ndarray):
            yield item
        else:
            yield from within_budget(item)
    yield from getattr(aux, "held", ())
    for entry in getattr(getattr(node, "ctx", None), "_saved", None) or ():  # of a custom function
        item = None if entry is None else entry[0]
        if isinstance(item, Tensor):
            yield present(item)
        elif isinstance(getattr(item, "array", None), np.ndarray):
            yield item.array  # type: ignore[union-attr]


def names_of_modules(modules: list[Any]) -> dict[int, str]:
    """Qualified names by id: of every module below the outermost ones, which go by their class."""
    inner = {id(child) for module in modules for child in module._modules.values() if child is not None}
    names: dict[int, str] = {}
    for root in (m for m in modules if id(m) not in inner):
        for name, module in root.named_modules():
            names.setdefault(id(module), name or type(root).__name__)
    return names


def of_modules(modules: list[Any], names: dict[int, str]) -> Iterator[Held]:
    """Parameters, buffers and gradients of modules."""
    for module in modules:
        for key, tensor in (*module._parameters.items(), *module._buffers.items()):
            if isinstance(tensor, Tensor):
                name = f"{names.get(id(module), type(module).__name__)}.{key}"
                yield from held(present(tensor), PARAMETER, name)
                if isinstance(tensor._grad, Tensor):
                    yield from held(present(tensor._grad), GRADIENT, name)


def homes(module: Module, names: dict[int, str]) -> dict[int, str]:
    """The module that has a parameter or buffer, by the address of its block."""
    found: dict[int, str] = {}
    for part in module.modules():
        for held_by in of_modules([part], names):
            if held_by.category == PARAMETER:
                found[held_by.address] = names.get(id(part), type(part).__name__)
    return found


def homes_of_state(optimizer: Optimizer, known: dict[int, str]) -> dict[int, str]:
    """The module of the parameter that a block of an optimizer's state is for, by address."""
    found: dict[int, str] = {}
    for parameter, state in optimizer.state.items():
        home = next((known.get(block.address) for block in held(getattr(parameter, "_held", None), PARAMETER)), None)
        if home is None or not isinstance(state, dict):
            continue
        for value in state.values():
            if isinstance(value, Tensor):
                found.update(dict.fromkeys((block.address for block in held(value._held, OPTIMIZER_STATE)), home))
    return found


def of_optimizer(optimizer: Optimizer) -> Iterator[Held]:
    """The state that an optimizer keeps."""
    for state in optimizer.state.values():
        for key, value in state.items() if isinstance(state, dict) else ():
            if isinstance(value, Tensor):
                yield from held(present(value), OPTIMIZER_STATE, key)


def in_frames() -> list[Any]:
    """The local variables of the functions that run now, in all threads."""
    found: list[Any] = []
    for frame in sys._current_frames().values():
        within: Any = frame
        while within is not None:
            if within.f_code is not in_frames.__code__:
                names = within.f_locals
                found += names.values()
                if names.__class__ is dict and within.f_code.co_flags & inspect.CO_OPTIMIZED:
                    names.clear()  # a copy that the frame would keep, and with it what the function drops
            within = within.f_back
        del frame
    return found


def known(classes: set[int], others: bool = False) -> list[Any]:
    """The objects that the collector of cycles knows whose class has one of these ids, or none of them.

    Among them are tuples that other threads are making, and Python refuses to finish one that somebody else holds:
    `tuple(x for x in y)` ends in a SystemError there.  So all are asked for, looked at and let go within one call of
    `list`, which runs no code of Python's, so that no other thread runs either.
    """
    held: list[list[Any]] = []
    hold: Iterator[Any] = filter(
        None, map(held.append, starmap(gc.get_objects, [()]))
    )  # yields nothing, as what lets go
    objects = chain.from_iterable(chain(hold, held, filter(None, starmap(held.clear, [()])), [[None]]))
    wanted = map(classes.__contains__, map(id, map(type, chain.from_iterable(held))))
    return list(compress(objects, map(not_, wanted) if others else wanted))


def collected() -> list[Any]:
    """All that is known, and what `gc.freeze` hides, as far as others lead there; of tuples and lists those that others hold."""
    found = known({id(tuple), id(list)}, others=True)
    seen = {id(x) for x in found}
    todo = [*found, sys.modules, *in_frames()]
    while todo:
        reached = {id(x): x for x in gc.get_referents(*todo)}
        todo = [x for key, x in reached.items() if key not in seen and gc.is_tracked(x)]
        seen.update(map(id, todo))
        found += todo
    return found


def collected_of(*classes: type) -> list[Any]:
    """Those that are of some classes, among millions: no code of other classes runs, nor of Python's for each object."""
    wanted, todo = set[int](), list(classes)
    while todo:
        kind = todo.pop()
        wanted.add(id(kind))
        todo += type.__subclasses__(kind)
    if not gc.get_freeze_count():
        return known(wanted)
    found = collected()
    return list(compress(found, map(wanted.__contains__, map(id, map(type, found)))))


def everything() -> Iterator[Held]:
    """All that is held by objects of ours, the most telling category first: later ones may repeat a block."""
    found = collected_of(Tensor, Node, Module, Optimizer)
    modules = [x for x in found if isinstance(x, Module) and "_modules" in x.__dict__]
    yield from of_modules(modules, names_of_modules(modules))
    tensors = [x for x in found if isinstance(x, Tensor) and complete(x)]
    for t in tensors:
        if isinstance(t, Parameter):
            yield from held(present(t), PARAMETER, "parameter")
    for t in tensors:
        if isinstance(t._grad, Tensor):
            yield from held(present(t._grad), GRADIENT, "gradient")
    for optimizer in (x for x in found if isinstance(x, Optimizer)):
        yield from of_optimizer(optimizer)
    for node in (x for x in found if isinstance(x, Node)):
        for array in saved_arrays(node):
            yield from held(array, ACTIVATION, node.name())
    for t in tensors:
        yield from held(present(t), UNKNOWN, "tensor")


def distinct() -> dict[int, Held]:
    """Every block once, by address, with its most telling category."""
    found: dict[int, Held] = {}
    for block in everything():
        found.setdefault(block.address, block)
    return found
