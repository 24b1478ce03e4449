"""What happens while profiling, written down with as little work as possible: the sense is made of it afterwards."""

from __future__ import annotations

import sys
import threading
import weakref
from time import perf_counter_ns as clock
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics.caller import is_ours
from rushlight.basics.events import DRAW, EVALUATE, FUNCTION, INPLACE, LEAF, NODE, OPERATOR
from rushlight.dispatch.keeping.unmade import place_of
from rushlight.engine.node import Node
from rushlight.tensor import Tensor

DEEPEST = 64  # frames of a stack that are kept
MESSAGE = -1  # the kind of rows of messages, which are no observation points
MESSAGES = -1  # in the place of a thread, of what goes on beside all of them

thread_of = threading.get_ident


class Row(NamedTuple):
    """One stretch of time.  what: an operator, a class or a name; extra: a `Details` or None."""

    kind: int
    what: Any
    start: int
    stop: int
    seq: int
    thread: int
    extra: Any


class Free(NamedTuple):
    """Memory given back."""

    time: int
    nbytes: int
    address: int
    thread: int


class Details:
    """What was recorded of an event beside its times."""

    __slots__ = ("allocated", "concrete", "flops", "modules", "shapes", "stack")

    def __init__(self) -> None:
        self.shapes: Any = None
        self.concrete: Any = None  # the arguments that are no tensors
        self.stack: Any = None
        self.modules: str | None = None
        self.allocated: tuple[tuple[int, int], ...] = ()  # (bytes, address) of each result with memory of its own
        self.flops: int | None = None  # floating-point operations, where the operator says how many


def sequence_number(result: object) -> int:
    """The number of the node that recorded `result`, -1 if none did."""
    if result.__class__ is tuple or result.__class__ is list:
        result = result[0] if result else None
    edge = getattr(result, "_edge", None)
    return int(getattr(getattr(edge, "node", edge), "seq", -1))


class Collector:
    """An observer that notes times and sequence numbers, of one thread or of all."""

    passive = True

    def __init__(self, everywhere: bool = False) -> None:
        self.rows: list[Any] = []  # in the order in which they ended: the fields of `Row`
        self.frees: list[Free] = []
        self.active = True
        self.thread = 0 if everywhere else thread_of()
        self.threads: dict[int, str] = {self.thread: threading.current_thread().name}

    def here(self) -> int:
        """The thread, whose name is kept."""
        thread = self.thread or thread_of()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread

    def begin(self, kind: int, what: Node | Tensor | tuple[str | None, ...], inputs: Any, statics: Any) -> int:
        """The time."""
        return clock()

    def end(
        self,
        kind: int,
        what: Node | Tensor | tuple[str | None, ...],
        inputs: Any,
        statics: Any,
        start: int,
        result: Any,
    ) -> None:
        """Note a stretch of time that ends now."""
        self.note(kind, what, inputs, statics, start, clock(), result)

    def message(self, what: str, start: int, stop: int, shapes: list[list[int]]) -> None:
        """Note a message, from its beginning until it was seen to be done."""
        if self.active:
            self.threads[MESSAGES] = "messages"
            self.rows.append((MESSAGE, what, start, stop, -1, MESSAGES, self.told(shapes)))

    def told(self, shapes: list[list[int]]) -> Details | None:
        """What is noted of a message besides its time."""
        return None

    def note(self, kind: int, what: Any, inputs: object, statics: object, start: int, stop: int, result: Any) -> None:
        """Note a stretch of time."""
        if not self.active:
            return
        extra = None
        if kind == OPERATOR:
            edge = getattr(result, "_edge", None)
            try:
                seq = -1 if edge is None else edge.seq
            except AttributeError:  # a port, or the mark of a leaf
                seq = sequence_number(result)
        elif kind == NODE or kind == EVALUATE:
            what, seq = what.name(), what.seq
        else:
            what, seq, extra = self.identify(kind, what, result)
        self.rows.append((kind, what, start, stop, seq, self.thread or self.here(), extra))

    def identify(self, kind: int, what: Any, result: object) -> tuple[Any, int, Any]:
        """What is kept of something that is no operator: no node, which would keep its graph alive, and no leaf."""
        if kind == NODE or kind == EVALUATE:
            return what.name(), what.seq, None
        if kind == INPLACE or kind == FUNCTION:
            return what, sequence_number(result), None
        return (what if isinstance(what, (str, tuple)) else None), -1, None


class DetailedCollector(Collector):
    """An observer that notes shapes, stacks, modules and memory too."""

    def __init__(self, everywhere: bool, shapes: bool, stack: bool, modules: bool, memory: bool):
        super().__init__(everywhere)
        self.shapes, self.stack, self.modules = shapes, stack, modules
        self.memory = Memory(self) if memory else None

    def note(self, kind: int, what: Any, inputs: Any, statics: Any, start: int, stop: int, result: Any) -> None:
        if not self.active:
            return
        details = Details()
        if self.shapes:
            details.shapes = [shape_of(x) for x in (*inputs, *statics)]
            details.concrete = [concrete(x) for x in (*inputs, *statics)]
            if kind == OPERATOR and what.cost is not None and result is not None:
                details.flops = what.cost(inputs, statics)
        if self.stack:
            details.stack = frames(sys._getframe(1))
        if self.modules:
            details.modules = module_path(sys._getframe(1))
        if self.memory is not None:
            details.allocated = self.memory.made(kind, what, inputs, result)
        if kind == OPERATOR:
            seq = sequence_number(result)
        else:
            what, seq, _ = self.identify(kind, what, result)
        self.rows.append((kind, what, start, stop, seq, self.here(), details))

    def told(self, shapes: list[list[int]]) -> Details | None:
        details = Details()
        if self.shapes:
            details.shapes, details.concrete = shapes, [None] * len(shapes)
        return details


def shape_of(x: Tensor) -> Any:
    """The sizes of a tensor or array; of a sequence of tensors, those of each; [] of anything else."""
    if isinstance(x, Tensor):
        return list(x._array.shape)
    if isinstance(x, np.ndarray):
        return list(x.shape)
    if isinstance(x, (tuple, list)) and x and isinstance(x[0], Tensor):
        return [list(t._array.shape) for t in x if isinstance(t, Tensor)]
    return []


def concrete(x: object) -> Any:
    """An argument that is no tensor: a number, bool or word as it is, a list of them, others as text.  None for a tensor."""
    if x is None or isinstance(x, (Tensor, np.ndarray)):
        return None
    if isinstance(x, (bool, int, float, str)):
        return x
    if isinstance(x, (tuple, list)):
        return None if any(isinstance(part, (Tensor, np.ndarray)) for part in x) else [concrete(part) for part in x]
    text = repr(x)
    return text if len(text) <= 100 else text[:97] + "..."


def frames(frame: Any) -> list[tuple[Any, int]]:
    """(code, line) of the frames outside this package and the functions that it writes out, the innermost first."""
    found: list[tuple[Any, int]] = []
    while frame is not None and len(found) < DEEPEST:
        code = frame.f_code
        if not is_ours(frame):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return found


def module_path(frame: Any) -> str:
    """The classes of the modules whose forward is running, the outermost first: "A.B"."""
    names = []
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount and code.co_varnames[0] == "self":
            module = frame.f_locals.get("self")
            if hasattr(module, "named_modules"):
                names.append(type(module).__name__)
        frame = frame.f_back
    return ".".join(reversed(names))


class Memory:
    """Which arrays were made while profiling, and when their memory was given back."""

    def __init__(self, collector: Collector):
        self.collector = collector
        self.alive: dict[int, Any] = {}  # by address of the object: the weak reference that waits for its end

    def made(self, kind: int, what: Any, inputs: Any, result: Any) -> tuple[tuple[int, int], ...]:
        """(bytes, address) of each array among the results whose memory is new."""
        if kind not in (OPERATOR, NODE, FUNCTION, LEAF, DRAW):
            return ()
        if kind == LEAF:  # the gradient may have been copied
            inputs, result = (), what._grad
        results = result if isinstance(result, (tuple, list)) else (result,)
        known = {id(root(x)) for x in inputs if x is not None}
        if kind == NODE:
            known |= {id(root(x)) for x in kept_by(what) if isinstance(x, Tensor)}
        found = []
        for x in results:
            owner = root(x)
            if owner is None or id(owner) in known or id(owner) in self.alive or not owner.nbytes:
                continue
            found.append((owner.nbytes, self.follow(owner)))
        return tuple(found)

    def follow(self, owner: Any) -> int:
        """Note the end of an array when it comes; its address."""
        key, nbytes, address = id(owner), owner.nbytes, int(owner.ctypes.data)
        frees, alive, collector = self.collector.frees, self.alive, self.collector

        def gone(_: object) -> None:
            alive.pop(key, None)
            if collector.active:
                frees.append(Free(clock(), nbytes, address, thread_of()))

        alive[key] = weakref.ref(owner, gone)
        return address


def kept_by(node: Any) -> Any:
    """What a node keeps: tensors, and what stands for some."""
    if node.plan is not None:
        return node.saved or ()
    context = getattr(node, "ctx", None)
    return [entry[0] for entry in getattr(context, "_saved", None) or () if entry is not None]


def root(x: Tensor) -> Any:
    """The array that owns the memory of a tensor or array; None of anything else, of foreign memory, and of what stands
    for an array under a transformation, or is not made yet."""
    if isinstance(x, Tensor) and place_of(x) is not None:
        return None
    array = x._array if isinstance(x, Tensor) else x
    if array.__class__ is not np.ndarray:
        return None
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else None
