"""The older form of checkpointing: a custom function whose backward runs forward, and then a backward, inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.function import Function
from rushlight.autograd.run import backward as run_backward
from rushlight.basics.state import Setting, modes
from rushlight.checkpoint.devices import detach_variable
from rushlight.checkpoint.frame import Random, guarded
from rushlight.generator import default_generator
from rushlight.tensor import Tensor


class CheckpointFunction(Function):
    """`apply(function, preserve_rng_state, *args)` runs `function` without recording it."""

    runs_backward = True  # optimizers that step inside backward wait for its end

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """The first run, without a graph."""
        ctx.run_function = run_function
        ctx.rng = default_generator.state_words() if preserve_rng_state else None
        ctx.autocast = None if modes.autocast is None else modes.autocast.anew()
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """The second run, with a graph, and its backward.  Raises RuntimeError where only some gradients are wanted."""
        if modes.run is not None and modes.run.targets is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        again = detach_variable(tuple(inputs))
        with Random(ctx.rng), Setting("grad", True), Setting("autocast", ctx.autocast), guarded():
            outputs = ctx.run_function(*again)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in again))
