"""What is looked at when a program has run, as plain data that two sides can be compared by."""

from __future__ import annotations

import re
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .program import Execution, Raised, family

Plain = Any  # numbers, strings, arrays, Seen, and tuples, lists, dictionaries of them


@dataclass
class Seen:
    """What is observed of a tensor."""

    facts: dict[str, Plain] = field(default_factory=dict)


def array(tensor: Any) -> np.ndarray[Any, Any]:
    """The elements, as NumPy has them (bfloat16 as float32)."""
    tensor = tensor.detach()
    if str(tensor.dtype).endswith("bfloat16"):
        tensor = tensor.float()
    return np.array(tensor.resolve_conj().resolve_neg().numpy())


def strides(tensor: Any) -> tuple[int, ...] | None:
    """Strides of the dimensions that have more than one element; None where there are no elements."""
    if 0 in tensor.shape:
        return None
    return tuple(step for step, size in zip(tensor.stride(), tensor.shape) if size > 1)


def node_name(tensor: Any) -> str | None:
    """Name of the operator that made the tensor, without the number of its overload."""
    node = tensor.grad_fn
    return None if node is None else re.sub(r"\d+$", "", type(node).__name__)


def retains(tensor: Any) -> bool:
    """Whether backward leaves the gradient in `.grad`, though this is no leaf."""
    return bool(tensor.retains_grad)


FACTS: dict[str, Callable[[Any], Plain]] = {
    "dtype": lambda t: str(t.dtype),
    "shape": lambda t: tuple(t.shape),
    "value": array,
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "version": lambda t: t._version,
    "stride": strides,
    "offset": lambda t: t.storage_offset() if t.numel() else 0,
    "grad_fn": node_name,
    "is_inference": lambda t: t.is_inference(),
    "output_nr": lambda t: t.output_nr,
}
OF_GRADIENTS = ("dtype", "shape", "value", "requires_grad", "stride")  # the rest is how backward came by them
EXPRESSIONS = {
    "value": "{0}",
    "version": "{0}._version",
    "stride": "{0}.stride()",
    "offset": "{0}.storage_offset()",
    "is_inference": "{0}.is_inference()",
    "storage": "{0}.untyped_storage().data_ptr()",
    "grad": "{0}.grad",
}


class Observer:
    """Observes what one execution left; numbers storages in the order in which they are met."""

    def __init__(self, library: types.ModuleType) -> None:
        self.tensor = library.Tensor
        self.dtype, self.size = library.dtype, library.Size
        self.storages: dict[int, int] = {}
        self.gradients = False

    def variable(self, name: str, value: Any) -> Plain:
        """The value of a variable; gradients, which are named g1, g2, ... by convention, show less."""
        self.gradients = name[0] == "g" and name[1:].isdigit()
        return self(value)

    def __call__(self, value: Any, depth: int = 0) -> Plain:
        """The value as plain data."""
        if isinstance(value, self.tensor):
            return self.see(value, depth)
        if isinstance(value, bool | int | float | complex | str | None):
            return value
        if isinstance(value, self.size):
            return tuple(value)
        if isinstance(value, tuple | list):
            return [self(item, depth + 1) for item in value] if depth < 6 else "..."
        if isinstance(value, dict):
            return {str(key): self(item, depth + 1) for key, item in value.items()} if depth < 6 else "..."
        if isinstance(value, np.ndarray):
            return value.copy()
        return str(value) if isinstance(value, self.dtype) else "object"

    def see(self, tensor: Any, depth: int) -> Seen:
        """Every fact of a tensor; an exception is a fact, too."""
        if self.gradients:
            names = OF_GRADIENTS if tensor.numel() else ("dtype", "shape")  # nothing depends on no elements
            return Seen({name: attempt(FACTS[name], tensor) for name in names})
        facts = {name: attempt(fact, tensor) for name, fact in FACTS.items()}
        facts["storage"] = attempt(self.storage, tensor)
        if depth < 3 and tensor.requires_grad and (facts["is_leaf"] is True or attempt(retains, tensor) is True):
            facts["grad"] = self.gradient(tensor.grad)
        return Seen(facts)

    def gradient(self, value: Any) -> Plain:
        """What is observed of a gradient."""
        before, self.gradients = self.gradients, True
        try:
            return self(value)
        finally:
            self.gradients = before

    def storage(self, tensor: Any) -> int | None:
        """Number of the tensor's storage: equal for tensors that share memory."""
        if tensor.numel() == 0:
            return None
        return self.storages.setdefault(tensor.untyped_storage().data_ptr(), len(self.storages))


def attempt(fact: Callable[[Any], Plain], tensor: Any) -> Plain:
    """The fact, or the exception that asking for it raises."""
    try:
        return fact(tensor)
    except Exception as error:
        return Raised(family(error), f"{type(error).__name__}: {error}")


def observe(execution: Execution) -> dict[str, Plain]:
    """Everything that a program named, then (``alive``) which of its tensors outlive their names."""
    observer = Observer(execution.side.library)
    seen = {name: observer.variable(name, value) for name, value in execution.variables() if not callable_of(value)}
    watched = {name: weakref.ref(value) for name, value in execution.variables() if isinstance(value, observer.tensor)}
    execution.names.clear()
    seen["alive"] = [name for name, ref in watched.items() if ref() is not None]
    return seen


def callable_of(value: Any) -> bool:
    """Whether a value is a function or a class of the program: nothing to compare."""
    functions = types.FunctionType | types.BuiltinFunctionType | types.MethodType  # built in there, written here
    return isinstance(value, type | functions | types.ModuleType | weakref.ref)
