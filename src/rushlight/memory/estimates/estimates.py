"""What training will need, before it runs: shapes only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rushlight.kernels.native import loader
from rushlight.memory.counting.account import human
from rushlight.memory.estimates.processes import Share
from rushlight.memory.recordings.recording import Recording
from rushlight.stores.errors import bytes_of

PHASES = ("before the first step", "forward", "backward", "the optimizer's step")


@dataclass(frozen=True)
class Saving:
    """What one technique would do.  peak: bytes with it; saves: bytes fewer than without; how: the line that does it."""

    name: str
    peak: int
    saves: int
    how: str


@dataclass(frozen=True)
class Estimate:
    """What a step needs, in bytes.

    parameters: with buffers. gradients, optimizer_state, activations, inputs: the most that was alive of each at once;
    activations are what is saved for the backward. peak: the most alive at once, in `peak_phase`; by_category,
    by_module (activations): what that consists of. phases: the most alive in each phase. ran: operators without a
    shape rule, which ran for real on zeros, and how often: where there are any, the peak is a guess. read: lines of
    the user that read values which are not computed (`if x.sum() > 0`), and how often: where there are any, it is one
    too. processes: what each
    of several processes needs, by the way of dealing: "ddp", "zero", "fully_shard"; empty unless asked for.
    """

    parameters: int
    gradients: int
    optimizer_state: int
    activations: int
    inputs: int
    peak: int
    peak_phase: str
    by_category: dict[str, int]
    by_module: dict[str, int]
    phases: dict[str, int]
    ran: dict[str, int]
    read: dict[str, int]
    processes: dict[str, Share]
    _tally: Any = field(repr=False, compare=False)
    _setup: Any = field(repr=False, compare=False)

    @property
    def timeline(self) -> Recording:
        """Every birth and death of a block in two steps, as a recording: `memory.report` shows it."""
        return self._tally.recording()  # type: ignore[no-any-return]

    @property
    def savings(self) -> list[Saving]:
        """What each technique would save for this model, the most effective first: each is rehearsed as the step was."""
        return self._setup.savings(self.peak)  # type: ignore[no-any-return]

    def largest_batch(self, limit: Any) -> int:
        """The most samples in a batch with which the peak stays within `limit`, bytes or text like "8 GiB".

        The first dimension of the sample's tensors is the batch, and of tensors of that size that `loss` refers to.
        Raises ValueError where one sample is too much.
        """
        return self._setup.largest_batch(bytes_of(limit, "largest_batch"), self.peak)  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        from rushlight.memory.reports import display

        rows = [*self.rows(), ("peak", human(self.peak))]
        rows += [(f"peak in {name}", human(n)) for name, n in self.phases.items()]
        return display.table(rows, f"a training step, with its peak in {self.peak_phase}")

    def rows(self) -> list[tuple[str, str]]:
        """The most of each kind, as text."""
        rows = [("parameters", self.parameters), ("gradients", self.gradients), ("optimizer state", self.optimizer_state),
                ("activations", self.activations), ("inputs", self.inputs)]  # fmt: skip
        return [(name, human(n)) for name, n in rows]

    def __str__(self) -> str:
        lines = [f"{name:<18}{n:>10}" for name, n in self.rows()]
        lines += [
            f"{'peak':<18}{human(self.peak):>10}  in {self.peak_phase}: "
            + ", ".join(
                f"{name.replace('_', ' ')} {n / max(self.peak, 1):.0%}"
                for name, n in self.by_category.items()
                if n * 100 >= self.peak
            )
        ]
        lines += [f"each process, {name:<12} {share}" for name, share in self.processes.items()]
        if self.ran:
            lines.append(
                "a guess, which may be low: computed on zeros, for want of a shape rule, so that their working memory is not "
                "counted and results whose size depends on values may be empty: " + ", ".join(self.ran)
            )
        if self.read:
            lines.append(
                "a guess, which may be low: the step reads values, which an estimate does not compute, so that what it decides by them "
                "may be decided otherwise: " + ", ".join(self.read)
            )
        if not loader.built() and not loader.may_build():
            lines.append(
                "of the native kernels, which are not in use here: on NumPy alone working memory is larger, and the peak with it "
                "(by up to 40 % where attention has most of it)"
            )
        return "\n".join(lines)

    def table(self) -> str:
        """The figures and what each technique would save, as text."""
        lines = [str(self), ""]
        for s in self.savings:
            lines.append(f"{s.name:<44}{human(s.saves):>10} less: {human(s.peak):>8}   {s.how}")
        return "\n".join(lines)

    __repr__ = __str__


def estimate(
    model: object,
    sample: Any,
    optimizer: object = None,
    *,
    loss: Callable[..., Any] | None = None,
    train: bool = True,
    processes: int = 1,
) -> Estimate:
    """What training steps of a model will need, from shapes: nothing is computed, and hardly any memory is touched.

    Args:
        model: a module, or a function that builds one: then its parameters take no memory either.
        sample: what the model is called with: a tensor, a tuple of arguments, or a dictionary of keyword arguments; or
            the shape of one float32 tensor, a tuple of ints. Values of tensors over 64 kB are not looked at.
        optimizer: an optimizer of the model's parameters, or a function that makes one of them, such as its class, or
            the handle of `optim.in_backward`.
        loss: a function of the model's output, or of output and sample, giving the loss; without it, the output that
            has one element, or the sum of all outputs.
        train: False for a forward without gradients.
        processes: of how many, each with a batch as `sample`, to say what each needs.

    The model's own Python code runs, hooks and checkpoints included, twice: values that it looks at (`.item()`) are
    those of zeros where tensors are large. The model, its gradients, the optimizer and the random numbers are left as
    they are. Two steps are rehearsed, with gradients set to None before each, as in

        optimizer.zero_grad(); loss(model(*sample)).backward(); optimizer.step()

    Raises TypeError for what is no model, and what the model raises for inputs that do not fit.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> model = torch.nn.Sequential(torch.nn.Linear(1000, 1000), torch.nn.ReLU(), torch.nn.Linear(1000, 1))
    >>> found = memory.estimate(model, (64, 1000), torch.optim.Adam)
    >>> found.parameters, found.optimizer_state
    (4008004, 8016024)
    >>> memory.estimate(model, (64, 1000), torch.optim.Adam, processes=8).processes["fully_shard"].optimizer_state
    1002003
    >>> memory.estimate(lambda: torch.nn.Linear(100_000, 100_000), (1, 100_000)).parameters
    40000400000
    """
    from rushlight.memory.estimates.rehearsals import Setup

    return Setup(model, sample, optimizer, loss, train).estimate(processes)
