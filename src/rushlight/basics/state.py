"""Thread-local modes, and one counter that tells whether any thread is in an unusual one.

Operators read `special.count` alone on their fast path: while it is zero, every thread records gradients, nobody
packs saved tensors, records memory, or traces anomalies, and no functional level is active.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any


class _Special:
    """How many (thread, mode) pairs differ from their default.

    observing: how many of them are observers (see `events`); everywhere: the observers of all threads.
    meta: the level of tensors on the device meta, once there was one; while any is alive, it counts as a mode.
    classes: the level of tensors whose class has `__torch_dispatch__`, once there was one: see `ops.python.unread`.
    launcher: what starts backward runs in the place of `Run.execute` while optimizers step inside them, else None.
    """

    __slots__ = ("classes", "count", "everywhere", "launcher", "lock", "meta", "observing")

    def __init__(self) -> None:
        self.count = 0
        self.observing = 0
        self.everywhere: tuple[Any, ...] = ()
        self.launcher: Any = None
        self.meta: Any = None
        self.classes: Any = None
        self.lock = threading.Lock()

    def add(self, n: int) -> None:
        with self.lock:
            self.count += n


special = _Special()

# What the modes of a thread are to an operator: usual, without a graph, or in inference mode; 0 for all others.
RECORDED, UNRECORDED, INFERENCE = 1, 2, 3

DEFAULTS: dict[str, Any] = {
    "grad": True,  # record a graph
    "grad_asked": False,  # gradients were switched on inside of inference mode, where nothing is recorded all the same
    "inference": False,  # results can never enter a graph
    "forward_grad": True,  # propagate tangents
    "saved_hooks": (),  # stack of pack/unpack pairs, innermost last
    "saved_hooks_disabled": None,  # the message of disable_saved_tensors_hooks
    "anomaly": None,  # settings of detect_anomaly
    "levels": (),  # active interpreters, innermost last
    "run": None,  # the backward run of this thread, while hooks may ask for it
    "node": None,  # the node whose backward is running, for anomaly mode's chain
    "observers": (),  # told of every operator and node: see `events`
    "default_device": None,  # the device of factory functions
    "saving": None,  # (operator, argument) of the tensor that is being packed by hooks
    "mutation": None,  # the state of allow_mutation_on_saved_tensors
    "autocast": None,  # what converts the operands of operators, while autocast is on
    "transform": None,  # the innermost function transformation; operators do not ask for it
}


class _Counted:
    """What a thread has added to `special`: taken back when the thread ends, whatever modes it leaves set."""

    __slots__ = ("count", "observing")

    def __init__(self) -> None:
        self.count = self.observing = 0

    def __del__(self) -> None:
        if self.count:
            with special.lock:
                special.count -= self.count
                special.observing -= self.observing


class _Modes(threading.local):
    """This thread's value of each mode."""

    grad: bool
    grad_asked: bool
    inference: bool
    forward_grad: bool
    saved_hooks: tuple[Any, ...]
    saved_hooks_disabled: str | None
    anomaly: Any
    levels: tuple[Any, ...]
    run: Any
    node: Any
    observers: tuple[Any, ...]
    default_device: Any
    saving: Any
    mutation: Any
    autocast: Any
    transform: Any
    odd: int  # how many differ from their default
    way: int  # RECORDED, UNRECORDED, INFERENCE or 0
    keeps: bool = True  # whether operators make what their backward needs: not where no input requires grad
    sleeper: Any = None  # what is called before hooks on saved tensors are entered, if anybody wants to be around them

    def __init__(self) -> None:
        self.__dict__.update(DEFAULTS, odd=0, way=RECORDED, counted=_Counted())


modes = _Modes()


def way_of(inputs: list[Any] | tuple[Any, ...]) -> int:
    """What of this thread's modes matters to an operator: RECORDED, UNRECORDED, INFERENCE; 0 where more does."""
    if special.classes is not None:
        special.classes.join()
    return 0 if special.everywhere or (special.meta is not None and special.meta.owns(inputs)) else modes.way


def set_mode(name: str, value: object) -> Any:
    """Set a mode of this thread and return its former value."""
    values = modes.__dict__
    former = values[name]
    if former is value:
        return former
    default = DEFAULTS[name]
    odd = values["odd"]
    change = (value != default) - (former != default)
    values[name] = value
    if change:
        odd = values["odd"] = odd + change
        counted = values["counted"]
        counted.count += change
        with special.lock:
            special.count += change
            if name == "observers":
                counted.observing += change
                special.observing += change
    if not odd:
        values["way"] = RECORDED
    elif values["grad"] or odd - values["inference"] + values["forward_grad"] != 2:
        values["way"] = 0
    else:
        values["way"] = INFERENCE if values["inference"] else UNRECORDED
    return former


# What hooks and custom functions may set within a backward run, and what ends with it.
SCOPED = ("grad", "grad_asked", "inference", "forward_grad", "saved_hooks", "saved_hooks_disabled")


def scoped() -> tuple[Any, ...]:
    """The values of SCOPED in this thread."""
    values = modes.__dict__
    return tuple(values[name] for name in SCOPED)


def restore_scoped(values: tuple[Any, ...] | None) -> None:
    """Give SCOPED these values; the defaults for None."""
    for name, value in zip(SCOPED, values or [DEFAULTS[name] for name in SCOPED], strict=True):
        if modes.__dict__[name] is not value:
            set_mode(name, value)


def unkept(fn: Callable[..., Any], *args: object) -> Any:
    """fn(*args), a forward whose result nothing will go back through: what it would keep beside it is not made."""
    former = modes.keeps
    modes.keeps = False
    try:
        return fn(*args)
    finally:
        modes.keeps = former


class Setting:
    """Context manager that sets one mode and restores the former value, whatever happens."""

    __slots__ = ("former", "name", "value")

    def __init__(self, name: str, value: Any):
        self.name, self.value = name, value

    def __enter__(self) -> Setting:
        self.former = set_mode(self.name, self.value)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode(self.name, self.former)
