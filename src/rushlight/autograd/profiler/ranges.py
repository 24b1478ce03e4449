"""Ranges for the profilers of NVIDIA and Intel: every operator and node announces itself to them."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

from rushlight.autograd.profiler.assemble import name_of
from rushlight.autograd.profiler.collector import shape_of
from rushlight.basics.errors import explained
from rushlight.basics.events import EVALUATE, EVALUATE_LEAF, FUNCTION, INPLACE, MARK, NODE, OPERATOR, Observation
from rushlight.basics.state import modes
from rushlight.engine.node import next_seq

SILENT = (EVALUATE, EVALUATE_LEAF)  # what wraps a node or leaf: the node's own range is the outermost


def coming_number() -> int:
    """The sequence number that the next node will get.  In a program of several threads another may take it."""
    return int(repr(next_seq.__self__)[6:-1])  # type: ignore[attr-defined]  # "count(7)"


def range_text(kind: int, what: Any, inputs: Any, statics: Any, shapes: bool) -> str:
    """The text of a range: the name; of an operator the number that its node will get, of a node the number that it got
    when it was recorded; the sizes of the inputs if `shapes`."""
    if kind == NODE:
        text = f"{what.name()}, stashed seq={what.seq}"
    else:
        text = name_of(kind, what)
        if kind in (OPERATOR, INPLACE, FUNCTION):
            text += f", seq={coming_number() if modes.grad else 0}"
    if shapes and kind != MARK:
        text += f", sizes = {[shape_of(x) for x in (*inputs, *statics)]}"
    return text


class Ranges:
    """An observer that opens a range when something begins and closes it when that ends."""

    passive = False

    def __init__(self, push: Any, pop: Any, shapes: bool):
        self.push, self.pop, self.shapes = push, pop, shapes

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> bool:
        """Open a range; whether there is one to close."""
        if kind in SILENT:
            return False
        self.push(range_text(kind, what, inputs, statics, self.shapes))
        return True

    def end(self, kind: int, what: Any, inputs: object, statics: object, token: bool, result: Any) -> None:
        """Close it."""
        if token:
            self.pop()


class _Emitter:
    """What the two context managers have in common."""

    package = label = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False

    def functions(self, module: object) -> tuple[Any, Any]:
        """How to open a range of a text, and how to close it."""
        raise NotImplementedError

    def __enter__(self) -> _Emitter | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self.label} annotation context manager is not reentrant")
        try:
            module = importlib.import_module(self.package)
        except ImportError as error:
            raise explained(
                ImportError(
                    f"{type(self).__name__}() needs the package {self.package}: pip install 'rushlight[{self.package}]'",
                    name=self.package,
                ),
                "missing-extra",
            ) from error
        self.entered = True
        self._observation = Observation(Ranges(*self.functions(module), self.record_shapes))
        self._observation.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.enabled:
            self._observation.__exit__(kind, error, tb)


class emit_nvtx(_Emitter):
    """While active, every operator and every node of a backward opens an NVTX range, for Nsight Systems and nvprof.

    The range of an operator ends in `seq=N`, N being the number of the node that it will record; the range of a node in
    `stashed seq=M`, the number that it got when it was recorded: where they agree, the operator recorded the node. In a
    backward without create_graph operators have `seq=0`. record_shapes adds the sizes of the inputs, [] for what is no
    tensor.

    Raises ImportError without the package nvtx, RuntimeError when entered twice.
    """

    package, label = "nvtx", "NVTX"

    def functions(self, module: Any) -> tuple[Any, Any]:
        return module.push_range, module.pop_range


class emit_itt(_Emitter):
    """As `emit_nvtx`, with tasks of Intel's Instrumentation and Tracing Technology, for VTune.

    Raises ImportError without the package ittapi, RuntimeError when entered twice.
    """

    package, label = "ittapi", "ITT"

    def functions(self, module: Any) -> tuple[Any, Any]:
        domain = module.domain("rushlight")
        return lambda text: module.task_begin(domain, module.string_handle(text)), lambda: module.task_end(domain)
