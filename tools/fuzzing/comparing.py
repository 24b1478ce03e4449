"""Two sides' observations of one program, held against each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .observing import Plain, Seen, observe
from .precision import (
    as_good,
    little_noise,
    nearby,
    noise,
    reinterpreted,
    rounding,
    scatter,
    scattered,
    shaken,
    shaken_back,
    shaken_leaves,
    truth,
)
from .program import Execution, Raised, Side, run

# Relative tolerance by dtype; the absolute one is the same of the largest finite element, and of 1.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float16": 4e-3,
    "bfloat16": 3e-2,
}


@dataclass
class Difference:
    """One thing on which the sides differ: ``where`` is an expression of the program, ``what`` the kind of fact."""

    where: str
    what: str
    reference: Plain
    subject: Plain
    statements: list[str] = field(default_factory=list)
    step: int | None = None  # index of the statement, where its outcome differs
    tolerance: float = 0.0  # of the numbers that were compared
    made: list[Plain] = field(default_factory=list)  # what the reference has and the subject refused to make
    refusals: list[tuple[str, str]] = field(default_factory=list)  # of statements that both refuse, in their words
    sides: tuple[Side, Side] | None = None  # on which the program ran: the reference and the subject

    @property
    def key(self) -> tuple[str, ...]:
        """What must stay the same while a program is shrunk."""
        return (self.what, *(side.family for side in (self.reference, self.subject) if isinstance(side, Raised)))


def outcomes(reference: Execution, subject: Execution, blocks: Collection[int] = ()) -> Iterator[Difference]:
    """Statements that ended well on one side alone, or in exceptions of different families.

    blocks: which statements are blocks: behind one that both left by an exception, perhaps at different places, the sides
    go on from different states.
    """
    for step, (a, b) in enumerate(zip(reference.outcomes, subject.outcomes)):
        if not alike(a, b):
            what = "outcome" if b else "leniency"
            yield Difference(f"statement {step}", what, a or "no error", b or "no error", step=step)
            return
        if a and step in blocks:
            return


def alike(a: Raised | None, b: Raised | None) -> bool:
    """Whether both ended well, or both in a refusal."""
    if a is None or b is None:
        return a is b
    return b.family == "refusal" or a.family == b.family


def compare(where: str, a: Plain, b: Plain, what: str = "value", dtype: str = "torch.float64") -> Iterator[Difference]:
    """Differences between two observations of one thing."""
    if isinstance(a, Raised) and a.doubtful:
        return
    if isinstance(a, Seen) and isinstance(b, Seen):
        yield from tensors(where, a, b)
    elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        tolerance = TOLERANCES.get(dtype.removeprefix("torch."), 0.0)
        if not close(a, b, tolerance):
            yield Difference(where, what, a, b, tolerance=tolerance)
    elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from compare(f"{where}[{key!r}]", a[key], b[key], what)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b)):
            yield from compare(f"{where}[{index}]", one, other, what)
    elif not same(a, b):
        numbers = isinstance(a, float | complex) and isinstance(b, float | complex)
        yield Difference(where, what, a, b, tolerance=1e-9 if numbers else 0.0)


def tensors(where: str, a: Seen, b: Seen) -> Iterator[Difference]:
    """Differences between two tensors, fact by fact; values only where dtypes and shapes agree."""
    for name, fact in a.facts.items():
        other = b.facts.get(name)
        if name == "grad" and none_or_zeros(fact) and none_or_zeros(other):
            continue
        if name == "grad":
            yield from compare(f"{where}.grad", fact, other, "grad")
        elif name != "value" or all(a.facts[part] == b.facts[part] for part in ("dtype", "shape")):
            yield from compare(where, fact, other, name, str(a.facts["dtype"]))
    if "grad" in b.facts and "grad" not in a.facts:
        yield from compare(f"{where}.grad", None, b.facts["grad"], "grad")


def none_or_zeros(gradient: Plain) -> bool:
    """Whether a gradient is None or all zeros, which say the same."""
    value = gradient.facts.get("value") if isinstance(gradient, Seen) else gradient
    unreadable = isinstance(value, Raised) and value.doubtful  # PyTorch's tensors of zeros without memory
    return value is None or unreadable or (isinstance(value, np.ndarray) and not value.any())


def same(a: Plain, b: Plain) -> bool:
    """Whether two facts are equal; exceptions by their family, numbers within rounding."""
    if isinstance(a, Raised) and isinstance(b, Raised):
        return alike(a, b)
    if isinstance(a, float | complex) and isinstance(b, float | complex):
        return close(np.asarray(a), np.asarray(b), 1e-9)
    return type(a) is type(b) and bool(a == b)


exact: ContextVar[bool] = ContextVar("exact", default=False)  # whether sides are compared that must agree to the bit


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], tolerance: float) -> bool:
    """Whether arrays agree within the tolerance, NaN with NaN and infinities with themselves."""
    if a.shape != b.shape:
        return False
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():  # as almost always, and much cheaper to see
        return True
    tolerance = 0.0 if exact.get() else tolerance
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        finite = np.isfinite(a)
        scale = float(np.max(np.abs(a[finite]), initial=1.0))  # of a complex number, of both its parts together
        if a.dtype.kind == "c":  # which part is infinite or NaN follows from nothing but the order of operations
            if not np.array_equal(finite, np.isfinite(b)):
                return False
            a, b = a[finite], b[finite]
            return all(
                np.allclose(part(b), part(a), rtol=tolerance, atol=tolerance * scale, equal_nan=True)
                for part in (np.real, np.imag)
            )
        return bool(np.allclose(b, a, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def differences(reference: Execution, subject: Execution, blocks: Collection[int] = ()) -> Iterator[Difference]:
    """Everything on which two executions of one program differ, what happened first before what was left.

    blocks: which statements are blocks. Where one was left by an exception, it may have been raised at different places,
    and what was done before is then not compared.
    """
    broken_off = any(reference.outcomes[step] for step in blocks if step < len(reference.outcomes))
    first = next(outcomes(reference, subject, blocks), None)
    seen, other = observe(reference), observe(subject)
    if first is not None:
        first.made = [value for name, value in seen.items() if name not in other]
        yield first
    if first is None and not broken_off:
        yield from outliving(seen.pop("alive"), other.pop("alive"))
        raised = any(reference.outcomes)
        for name in seen:
            for difference in compare(name, seen[name], other.get(name)):
                if raised and (difference.what == "version" or (exact.get() and name == "log")):
                    continue  # a refusal may come before or after a change is counted, or a hook has run
                yield difference


def outliving(reference: list[str], subject: list[str]) -> Iterator[Difference]:
    """Tensors that outlive their names under the subject alone."""
    more = [name for name in subject if name not in reference]
    if more:
        yield Difference(more[0], "alive", "freed", "alive without a name: a reference cycle, or a table that keeps it")


def hold(statements: list[str], reference: Side, subject: Side) -> list[Difference]:
    """Run a program on both sides: all differences."""
    with reference.around():
        one = run(statements, reference)
    return against(statements, one, subject)


def against(statements: list[str], reference: Execution, subject: Side) -> list[Difference]:
    """Run a program on the subject's side and compare: all differences."""
    if any(outcome is not None and outcome.doubtful for outcome in reference.outcomes):
        reference.names.clear()
        return []
    with subject.around():
        other = run(statements, subject)
    exact.set(subject.exact)
    found = list(differences(reference, other, [step for step, text in enumerate(statements) if "\n" in text]))
    refusals = [(a.message, b.message) for a, b in zip(reference.outcomes, other.outcomes) if a and b]
    for difference in found:
        difference.statements, difference.refusals, difference.sides = statements, refusals, (reference.side, subject)
    return (
        found
        if subject.exact or subject is reference.side
        else list(without_rounding(found, statements, reference.side))
    )


def without_rounding(found: list[Difference], statements: list[str], reference: Side) -> Iterator[Difference]:
    """The differences without those of rounding: in which the subject is about as near the truth as the reference, or that
    are no larger than what the least change of the program's numbers makes."""
    judges: dict[str, dict[str, Any]] = {}
    for difference in found:
        if isinstance(difference.reference, np.ndarray) and isinstance(difference.subject, np.ndarray):
            if reinterpreted(statements, difference.reference, difference.subject):
                continue
        if difference.tolerance:
            judges = judges or {
                judge.__name__: judge(statements, reference)
                for judge in (truth, shaken, shaken_back, shaken_leaves, scatter, nearby)
            }
            sides, tolerance = list(map(np.asarray, (difference.reference, difference.subject))), difference.tolerance
            right, moved, back, slightly, far, near = (judges[name].get(difference.where) for name in judges)
            if right is not None and as_good(
                right, *sides, max(tolerance, rounding(statements, right, sides[0])), 0.0 if near is None else near
            ):
                continue
            if any(other is not None and noise(other, *sides, tolerance) for other in (moved, back)):
                continue
            if slightly is not None and little_noise(slightly, *sides, tolerance):
                continue
            if far is not None and scattered(far, *sides, tolerance):
                continue
        yield difference
