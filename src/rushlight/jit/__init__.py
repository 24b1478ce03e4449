"""``torch.jit``: TorchScript compiles, and here is nothing to compile to, so scripted models stay what they are.

``script`` and ``trace`` return their argument, the decorators theirs, and nothing ever runs as TorchScript.  Files of
TorchScript hold programs: they are refused.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import rushlight.jit.annotations as annotations  # type: ignore[assignment]  # noqa: F401 (the import above takes the name)
from rushlight.futures import Future
from rushlight.jit.settings import (
    enable_onednn_fusion,
    export_opnames,
    fuser,  # noqa: F401
    isinstance,
    onednn_fusion_enabled,
    optimized_execution,  # noqa: F401
    set_fusion_strategy,
    strict_fusion,
)
from rushlight.nn.modules.module import Module

__all__ = ["Attribute", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
           "TracerWarning", "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze",
           "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled",
           "optimize_for_inference", "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy",
           "strict_fusion", "trace", "trace_module", "unused", "wait"]  # fmt: skip

Thing = TypeVar("Thing")
Result = TypeVar("Result")


class ScriptModule(Module):
    """What PyTorch makes of a scripted module: `script` makes none, and a class derived from it is a module."""


class RecursiveScriptModule(ScriptModule):
    """What PyTorch makes of a module that is scripted: `script` makes none."""


class ScriptFunction:
    """What PyTorch makes of a scripted function: there are none.  Raises TypeError when called."""

    def __init__(self, *arguments: object) -> None:
        raise TypeError(
            "ScriptFunction: there is nothing to compile to; torch.jit.script returns functions as they are"
        )


class Error(RuntimeError):
    """What PyTorch raises for an error inside TorchScript: never raised."""


class Attribute(NamedTuple):
    """A value with the type that TorchScript shall see: of use to TorchScript alone."""

    value: Any
    type: Any


def script(
    obj: Thing, optimize: None = None, _frames_up: int = 0, _rcb: object = None, example_inputs: object = None
) -> Thing:
    """`obj`, a module, function or class, as it is.

    >>> import rushlight as torch
    >>> @torch.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    return obj


def trace(func: Thing, example_inputs: object = None, *args: object, **options: object) -> Thing:
    """`func`, a module or function, as it is: it is not run, and it keeps its control flow."""
    return func


def trace_module(mod: Thing, inputs: object, *args: object, **options: object) -> Thing:
    """`mod` as it is."""
    return mod


def script_if_tracing(fn: Thing) -> Thing:
    """`fn` as it is: nothing is ever traced."""
    return fn


_script_if_tracing = _overload = _overload_method = script_if_tracing


def _get_trace_graph(*args: object, **options: object) -> NoReturn:
    """Refused: raises NotImplementedError.  torch.fx traces modules here."""
    raise NotImplementedError("torch.jit._get_trace_graph: nothing is traced for TorchScript here; torch.fx.symbolic_trace gives "
                              "the operators of a module")  # fmt: skip


class TracerWarning(Warning):
    """What PyTorch warns of while it traces for TorchScript: nothing is traced here."""


def script_method(fn: Thing) -> Thing:
    """`fn` as it is."""
    return fn


def freeze(mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Module:
    """`mod` as it is.  Raises RuntimeError for a module in training mode, as PyTorch does."""
    if mod.training:
        raise RuntimeError("torch.jit.freeze: the module is in training mode; call eval() before")
    return mod


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> Module:
    """`mod` as it is."""
    return mod


def unused(fn: Thing) -> Thing:
    """`fn` as it is."""
    return fn


def export(fn: Thing) -> Thing:
    """`fn` as it is."""
    return fn


def interface(obj: Thing) -> Thing:
    """The class `obj` as it is."""
    return obj


def ignore(drop: object = False, **options: object) -> Any:
    """A decorator that returns its function as it is, with arguments in brackets or without.

    Raises RuntimeError for what is neither a function nor a bool.
    """
    if callable(drop):
        return drop
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"torch.jit.ignore: expected a function or a bool, got {drop!r}")

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    return decorate


def annotate(the_type: object, the_value: Thing) -> Thing:
    """`the_value` as it is.

    >>> import rushlight as torch
    >>> torch.jit.annotate(list[int], [])
    []
    """
    return the_value


def fork(func: Callable[..., Result], *args: object, **kwargs: object) -> Future[Result]:
    """A future of `func(*args, **kwargs)`, which runs now, as PyTorch runs it outside TorchScript; what it raises is raised here.

    >>> import rushlight as torch
    >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(2), 1))
    tensor([2., 2.])
    """
    future: Future[Result] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Result]) -> Result:
    """What a future of `fork` holds.  Raises TypeError for what is no future."""
    if not builtins.isinstance(future, Future):
        raise TypeError(f"torch.jit.wait: future must be a torch.jit.Future, got {type(future).__name__}")
    return future.wait()


_fork, _wait = fork, wait


def is_scripting() -> bool:
    """Whether this runs as TorchScript: no."""
    return False


def is_tracing() -> bool:
    """Whether this is being traced: no."""
    return False


def save(m: object, f: object, _extra_files: object = None) -> NoReturn:
    """Raises NotImplementedError: there are no TorchScript programs to write."""
    raise NotImplementedError(f"torch.jit.save: {type(m).__name__} is no TorchScript program, and none can be written: write "
                              "its parameters with torch.save(model.state_dict(), file)")  # fmt: skip


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> NoReturn:
    """Raises NotImplementedError: a TorchScript file is a program, and nothing in a file is executed."""
    raise NotImplementedError(f"torch.jit.load: {f!r} would be a TorchScript program, and rushlight executes nothing that is "
                              "in a file: build the model in Python and load its parameters with "
                              "model.load_state_dict(torch.load(file))")  # fmt: skip
