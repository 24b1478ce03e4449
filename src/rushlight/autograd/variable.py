"""Variable: the deprecated name under which tensors once were differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.autograd.run import backward, grad
from rushlight.basics import dtypes
from rushlight.basics.caller import warn
from rushlight.basics.state import modes
from rushlight.engine.run import queue_callback
from rushlight.storage import storage_of
from rushlight.tensor import Tensor, twin, wrap


class Engine:
    """What runs backward, as PyTorch's distributed code asks for it: `Variable._execution_engine`."""

    def queue_callback(self, callback: Callable[..., Any]) -> None:
        """Call `callback()` once at the end of the backward that is going on, unless that fails.

        It may queue more; its errors are those of that backward. Raises RuntimeError outside of a backward.

        >>> import rushlight as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> engine = torch.autograd.Variable._execution_engine
        >>> handle = x.register_hook(lambda grad: engine.queue_callback(lambda: print("all done", x.grad)))
        >>> (x * 2).backward()
        all done tensor([2.])
        """
        queue_callback(callback)

    def run_backward(self, tensors: tuple[Tensor, ...], grad_tensors: tuple[Tensor | None, ...], keep_graph: bool,
                     create_graph: bool, inputs: tuple[Tensor, ...] = (), allow_unreachable: bool = False,
                     accumulate_grad: bool = False) -> tuple[Any, ...]:  # fmt: skip
        """`autograd.backward` where `accumulate_grad` is set, and () then; else what `autograd.grad` gives for `inputs`.

        allow_unreachable: None for inputs that the tensors do not depend on, in place of RuntimeError.
        """
        if accumulate_grad:
            backward(tensors, grad_tensors, keep_graph, create_graph, inputs=inputs or None)
            return ()
        return grad(tensors, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable)

    def is_checkpoint_valid(self) -> bool:
        """Whether the backward that is going on is for all leaves, as reentrant checkpoints need."""
        return modes.run is None or modes.run.targets is None


class VariableMeta(type):
    """Every tensor counts as a Variable."""

    _execution_engine = Engine()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=False)` gives a tensor: a new leaf on the same memory.

    Raises TypeError for what is no tensor.

    >>> import rushlight as torch
    >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    >>> type(x) is torch.Tensor, isinstance(x, torch.autograd.Variable), x.requires_grad
    (True, True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", UserWarning)  # fmt: skip
        if data is None:
            return wrap(np.empty(0, dtypes.get_default_dtype().numpy)).requires_grad_(requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = twin(data)
        made._storage = storage_of(data)
        return made.requires_grad_(requires_grad)
