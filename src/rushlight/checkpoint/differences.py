"""Where the second run of a checkpointed function differs from the first, and the errors that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from rushlight.checkpoint.frame import Frame


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first did."""


class Record(NamedTuple):
    """What is remembered of one saved tensor."""

    saving: Any  # (operator, argument), None where the hooks were not told
    where: tuple[str, int]  # the user's file and line
    shape: Any  # or the name of the type of what hooks inside the function made of the tensor
    dtype: Any
    checksum: Any  # of the values, where they are compared

    def metadata(self) -> dict[str, Any]:
        """What is compared by default."""
        return {"shape": self.shape, "dtype": self.dtype}

    def source(self) -> str:
        """Who saved it, and where."""
        operator = "an operator" if self.saving is None else f"{self.saving[0]} (argument {self.saving[1]!r})"
        return f"saved by {operator} at {self.where[0]}:{self.where[1]}"


ADVICE = (
    " The function must do the same when it is run again: it may not depend on what changed in between (counters, global "
    "state, tensors changed in place, random numbers that are not preserved). With debug=True the error lists the operators "
    "of both runs."
)


def compare(first: Record, again: Record, index: int) -> None:
    """Raise CheckpointError where a tensor of the second run is not the one of the first."""
    same_operator = first.saving is None or again.saving is None or first.saving[0] == again.saving[0]
    if first.metadata() == again.metadata() and same_operator and first.checksum == again.checksum:
        return
    if first.metadata() != again.metadata():
        what = "have different metadata than"
        details = f"saved metadata: {first.metadata()}\nrecomputed metadata: {again.metadata()}"
    elif not same_operator:
        what, details = "come from another operator than", f"saved shape: {first.shape}, as was recomputed"
    else:
        what, details = "have other values than", f"shape: {first.shape}, dtype: {first.dtype}"
    raise CheckpointError(
        f"torch.utils.checkpoint: Recomputed values for the following tensors {what} during the forward pass.\n"
        f"tensor at position {index}:\n{details}\n"
        f"in the forward pass {first.source()}\nin the recomputation {again.source()}.{ADVICE}"
    )


def too_many(frame: Frame, record: Record) -> NoReturn:
    """Raise CheckpointError for a tensor that the first run did not save."""
    raise CheckpointError(
        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass "
        f"({len(frame.holders)}). The first that is too many, of shape {record.shape}, is {record.source()}.{ADVICE}"
    )


def check_count(frame: Frame, count: int, found: bool) -> None:
    """Raise CheckpointError where the second run saved fewer tensors than the first."""
    if count >= len(frame.holders) and found:
        return
    if frame.check == "none" and found:
        return
    missing = frame.records[count].source() if count < len(frame.records) else "unknown"
    raise CheckpointError(
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
        f"Number of tensors saved during forward: {len(frame.holders)}\n"
        f"Number of tensors saved during recomputation: {count}.\n"
        f"The first that is missing was {missing}.{ADVICE}"
    )


def describe(first: list[str], again: list[str], message: str) -> str:
    """An error's message with the operators of both runs, and where they part."""
    same = next((i for i, (a, b) in enumerate(zip(first, again, strict=False)) if a != b), min(len(first), len(again)))

    def listed(lines: list[str]) -> str:
        shown = [f"{'>' if i == same else ' '} {i:4d} {line}" for i, line in enumerate(lines)]
        return "\n".join(shown) or "  (none)"

    return (
        f"{message}\n\nYou are seeing this error because you passed `debug=True` to checkpoint, or enabled it for all.\n\n"
        f"Operators executed during the original forward:\n{listed(first)}\n\n"
        f"Operators executed during recomputation:\n{listed(again)}\n\nThe first difference is marked with >."
    )
