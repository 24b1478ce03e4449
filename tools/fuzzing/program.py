"""One program on one side: statements of Python text, executed one by one in a namespace of their own."""

from __future__ import annotations

import random
import textwrap
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

# What is refused may be wrong in several ways at once, so that the first to be noticed, and its class, differ.
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError)
ACCIDENTS = (RecursionError,)  # a refusal by class, that nobody meant as such
# PyTorch's own failures and gaps: nothing can be held against them.
DOUBTFUL = (
    "INTERNAL ASSERT",
    "returned an invalid gradient",
    "This is currently not supported",
    "Could this error message be improved",
    "materialize_grads cannot be used when the given input is a GradientEdge",
    "Cannot convert a ZeroTensor to numpy",
    "ZeroTensors are immutable",
    "Batching rule not implemented for aten::",
    "that does not support it because it has not been implemented yet",
    "the derivative for '",
    "derivative for aten::",
    "trying to get value out of a tracing tensor",
    "please file us a bug report",
)


class Overtime(BaseException):
    """A program took longer than its limit."""


@dataclass(frozen=True)
class Side:
    """One of the two that are compared: its name, the module called torch there, and what is around a program."""

    name: str
    library: types.ModuleType
    prelude: str = ""  # statements that define helpers of the programs
    exact: bool = False  # whether numbers must agree to the bit
    around: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Raised:
    """A statement ended in an exception."""

    family: str
    message: str

    @property
    def doubtful(self) -> bool:
        """Whether the exception is a failure of the library itself."""
        return any(mark in self.message for mark in DOUBTFUL)


def family(error: BaseException) -> str:
    """What the exception is taken for: a refusal, or by its own class."""
    refusal = isinstance(error, REFUSALS) and not isinstance(error, ACCIDENTS)
    return "refusal" if refusal else type(error).__name__


@lru_cache(20_000)
def code(text: str) -> types.CodeType:
    """The statement, compiled."""
    return compile(text, "<program>", "exec")


# Told of each side on which a program begins to run: where the process ends, the last of them ended it.
entering: ContextVar[Callable[[Side], object]] = ContextVar("entering", default=id)
PRELUDE_NAMES = frozenset({"torch", "np", "weakref", "__builtins__"})


@dataclass
class Execution:
    """Runs statements on a side; ``outcomes`` has an entry for each, None where it ended well."""

    side: Side
    outcomes: list[Raised | None] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import weakref

        import numpy as np

        entering.get()(self.side)
        self.names.update(torch=self.side.library, np=np, weakref=weakref)
        exec(code(self.side.prelude), self.names)
        self.given = frozenset(self.names) | PRELUDE_NAMES

    def do(self, text: str) -> bool:
        """Execute one statement; whether it ended without an exception."""
        try:
            exec(code(text), self.names)
        except Exception as error:
            self.outcomes.append(Raised(family(error), f"{type(error).__name__}: {error}"))
            return False
        self.outcomes.append(None)
        return True

    def variables(self) -> Iterator[tuple[str, Any]]:
        """What the program named, in the order of the names."""
        for name in sorted(self.names):
            if name not in self.given and not name.startswith("_"):
                yield name, self.names[name]


class Writer:
    """Draws a program while it runs on the reference side, so that every statement fits what is there."""

    def __init__(self, rng: random.Random, side: Side) -> None:
        self.rng = rng
        self.execution = Execution(side)
        self.statements: list[str] = []
        self.count = 0
        self.inside = 0
        self.changes = True  # whether changes in place are drawn
        self.awaited: set[str] = set()  # tensors that a hook waits for together with others

    @property
    def names(self) -> dict[str, Any]:
        """Variables of the program so far."""
        return self.execution.names

    def do(self, text: str) -> bool:
        """Add a statement; whether it ended without an exception.  Nothing follows one that raised within a block."""
        if self.inside and any(self.execution.outcomes):
            return False
        self.statements.append(text)
        return self.execution.do(text)

    @contextmanager
    def block(self, manager: str) -> Iterator[None]:
        """Statements drawn inside are those of ``with manager:``; together they are one statement."""
        outer = self.statements, self.execution.outcomes
        if self.inside and any(outer[1]):
            yield  # of a block that has raised already, nothing more is drawn
            return
        self.statements, self.execution.outcomes = [], []
        self.inside += 1
        try:
            with ExitStack() as stack:
                self.enter(manager, stack)
                yield
        finally:
            self.inside -= 1
            body, outcomes = self.statements, self.execution.outcomes
            self.statements, self.execution.outcomes = outer
            self.statements.append(f"with {manager}:\n" + textwrap.indent("\n".join(body or ["pass"]), "    "))
            self.execution.outcomes.append(next(filter(None, outcomes), None))

    def enter(self, manager: str, stack: ExitStack) -> None:
        """Enter a context; a refusal is the outcome of the block."""
        try:
            stack.enter_context(eval(manager, self.names))
        except Exception as error:
            self.execution.outcomes.append(Raised(family(error), f"{type(error).__name__}: {error}"))

    def fresh(self, prefix: str = "v") -> str:
        """A name that is not taken."""
        self.count += 1
        return f"{prefix}{self.count}"

    def let(self, expression: str, prefix: str = "v") -> str | None:
        """Name the value of an expression; None where it raised."""
        name = self.fresh(prefix)
        return name if self.do(f"{name} = {expression}") else None

    def maybe(self, chance: float) -> bool:
        """True that often."""
        return self.rng.random() < chance

    def one(self, *choices: str) -> str:
        """One of the texts."""
        return self.rng.choice(choices)

    def tensors(self) -> list[str]:
        """Names of the tensors there are."""
        kind = self.execution.side.library.Tensor
        return [name for name, value in self.execution.variables() if isinstance(value, kind)]


def run(statements: list[str], side: Side) -> Execution:
    """Execute a program on a side."""
    execution = Execution(side)
    for text in statements:
        execution.do(text)
    return execution
