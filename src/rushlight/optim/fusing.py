"""`in_backward`: an ordinary optimizer that steps inside backward."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.signatures import signature_of
from rushlight.optim import moments
from rushlight.optim.clipping import Clipping
from rushlight.optim.fused_run import launcher
from rushlight.optim.fused_step import Fusion
from rushlight.optim.optimizer import Optimizer
from rushlight.tensor import Tensor

__all__ = ["InBackward", "in_backward"]


class InBackward:
    """The handle that `in_backward` returns; a context manager that removes it at the end.

    Attributes:
        optimizer: the optimizer, which is an ordinary one.
    """

    def __init__(self, optimizer: Optimizer, fusion: Fusion):
        self.optimizer, self._fusion = optimizer, fusion

    @property
    def grad_norm(self) -> Any:
        """The norm of the gradients of the last step before they were clipped, a 0-d tensor; None before, or without.

        With `clip_by` "group" or "parameter": a list, None where there was no gradient.
        """
        return self._fusion.norm

    @property
    def steps(self) -> int:
        """How many steps there have been."""
        return self._fusion.steps

    @property
    def backward_calls(self) -> int:
        """How many backward calls of the step at hand there have been."""
        return self._fusion.calls

    @property
    def interrupted(self) -> list[Tensor]:
        """The parameters that had been stepped when the last backward failed; empty after one that did not."""
        return [p for p in (ref() for ref in self._fusion.interrupted) if p is not None]

    @property
    def active(self) -> bool:
        """Whether the optimizer steps inside backward by this handle."""
        return self.optimizer._in_backward is self._fusion

    def remove(self) -> None:
        """Have the optimizer step when `step` is called, as ever; harmless when it does so already.

        Gradients that were accumulated for a step remain where an ordinary optimizer finds them.  Warns where parameters were
        stepped in a backward without a `step` after it, in a loop that calls it.  Raises RuntimeError
        where a part of a step is in the moments: complete it with `optimizer.step()` before.
        """
        if not self.active:
            return
        if self._fusion.folded:
            raise RuntimeError(
                f"in_backward: {self._fusion.calls} of {self._fusion.total} backward calls of a step are in the optimizer's "
                "moments (accumulate_into='moments'): complete it with optimizer.step() before remove()"
            )
        self.optimizer._in_backward = None
        launcher.drop(id(self._fusion), False)
        if self._fusion.skipped:
            warn(
                f"in_backward: backward was called without step() of {type(self.optimizer).__name__} after it, in a loop that calls "
                "it, and parameters have been stepped in it. Take gradients that are not to train with torch.autograd.grad, or "
                "remove() the handle before."
            )

    def __enter__(self) -> InBackward:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is not None:
            self._fusion.folded.clear()
            self._fusion.counted = self._fusion.steps
        self.remove()

    def __repr__(self) -> str:
        return f"<{type(self.optimizer).__name__} in backward, {self.steps} steps{'' if self.active else ', removed'}>"


def in_backward(
    optimizer: Optimizer,
    *,
    accumulate: int = 1,
    accumulate_into: str = "grad",
    backwards: int = 1,
    clip_grad_norm: float | Sequence[float | None] | None = None,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    clip_by: str = "all",
    clip_passes: int = 2,
    clip_grad_value: float | None = None,
) -> InBackward:
    """Have `optimizer` step inside backward: each parameter as soon as its gradient is complete, which is then freed.

    It remains the same optimizer, with its groups, options, state, schedules and checkpoints; `add_param_group` adds to
    what is stepped, options are read when a parameter steps, frozen parameters are left out.  `step()` and `zero_grad()`
    may still be called: after a step they do nothing, and in the middle of one `step()` completes it and `zero_grad()`
    drops it.  Numbers are those of a loop that steps after backward.

    Args:
        optimizer: any but L-BFGS; one of your own must treat each parameter by itself.
        accumulate: micro-batches, of one backward call each, that make a step.  Divide their losses by it, as ever.
        accumulate_into: "grad" keeps the sum of gradients in `.grad`; "moments" adds each gradient to Adam's moments and
            frees it (Zhang et al., 2023), which is not quite Adam: the mean square is from the sum of the squares.
        backwards: backward calls, one for each of several losses, that make a micro-batch.
        clip_grad_norm: the largest norm of the gradients, as `nn.utils.clip_grad_norm_` has it; with `clip_by="group"`
            possibly one for each group.
        norm_type, error_if_nonfinite: as `clip_grad_norm_` has them; nothing is stepped where it raises.
        clip_by: whether the norm is of "all" gradients, of each "group", or of each "parameter".
        clip_passes: 2: backward runs once to find the norm and once more to step, which takes the time of another
            backward and no memory.  1: gradients wait until the norm is known, which takes memory and no time.
        clip_grad_value: the largest magnitude of an element.

    Returns a handle: `remove()` or leaving a `with` block undoes it, and `grad_norm` is the norm found last.  Keep the
    optimizer or the handle.

    Raises TypeError for what is not an optimizer, ValueError for options that make no sense, RuntimeError for an
    optimizer that cannot be stepped so and for one that is fused already.

    Example:
        >>> import rushlight as torch
        >>> model = torch.nn.Linear(4, 1)
        >>> optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        >>> with torch.optim.in_backward(optimizer, clip_grad_norm=1.0) as handle:
        ...     model(torch.ones(2, 4)).sum().backward()
        >>> model.weight.grad is None, len(optimizer.state), handle.steps
        (True, 2, 1)
    """
    if accumulate_into not in ("grad", "moments"):
        raise ValueError(f"in_backward: accumulate_into must be 'grad' or 'moments', got {accumulate_into!r}")
    for name, value in (("accumulate", accumulate), ("backwards", backwards)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"in_backward: {name} must be a whole number of at least 1, got {value!r}")
    clip = Clipping(clip_grad_value, clip_grad_norm, norm_type, error_if_nonfinite, clip_by, clip_passes)
    check_fusable(optimizer)
    into_moments = accumulate_into == "moments"
    if into_moments:
        check_moments(optimizer, clip, accumulate)
    fusion = Fusion(optimizer, clip, accumulate, backwards, into_moments)
    optimizer._in_backward = fusion
    launcher.add(fusion)
    return InBackward(optimizer, fusion)


def check_fusable(optimizer: Optimizer) -> None:
    """Raise unless the optimizer can step one parameter at a time, and does not do so in backward already."""
    kind = type(optimizer).__name__
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"in_backward: expected an optimizer of rushlight.optim, got {kind}")
    if optimizer._in_backward is not None:
        raise RuntimeError(f"in_backward: this {kind} steps inside backward already: remove() its handle before")
    reason = optimizer.refused_in_backward
    if reason is None and needs_closure(optimizer):
        reason = "its step needs a closure, which evaluates the model and runs backward again"
    if reason is None and any(group.get("differentiable") for group in optimizer.param_groups):
        reason = "with differentiable=True its step is recorded, after a backward with create_graph=True"
    if reason is not None:
        raise RuntimeError(f"in_backward: {kind} cannot step inside backward: {reason}. Call step() after backward.")
    for i, group in enumerate(optimizer.param_groups):
        for n, p in enumerate(group["params"]):
            if not p.is_leaf:
                raise RuntimeError(f"in_backward: parameter {n} of group {i} of the {kind} is not a leaf: gradients are "
                                   "accumulated in leaves alone. Call step() after backward.")  # fmt: skip
    if launcher.owner_of(p for group in optimizer.param_groups for p in group["params"]) is not None:
        raise RuntimeError(f"in_backward: another optimizer that steps inside backward has parameters of this {kind}: they "
                           "cannot be stepped by both. remove() the other's handle before.")  # fmt: skip


def needs_closure(optimizer: Optimizer) -> bool:
    """Whether `step` cannot be called without arguments."""
    step = type(optimizer).step
    parameters = list(signature_of(getattr(step, "__wrapped__", step)).parameters.values())[1:]
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.default is p.empty and p.kind not in free for p in parameters)


def check_moments(optimizer: Optimizer, clip: Clipping, accumulate: int) -> None:
    """Raise unless gradients can be accumulated in the optimizer's moments."""
    reason = moments.refusal(optimizer)
    if reason is not None:
        raise RuntimeError(f"in_backward: accumulate_into='moments': {reason}")
    if accumulate > 1 and (clip.limit is not None or clip.value is not None):
        raise RuntimeError(
            "in_backward: accumulate_into='moments' cannot clip: the gradient of the whole step, which would be clipped, "
            "never exists. Use accumulate_into='grad'."
        )
