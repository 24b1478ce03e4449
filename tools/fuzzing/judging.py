"""Which differences of a program are findings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .comparing import Difference
from .declared import declared
from .known import known

NOT_THERE = re.compile(
    r"AttributeError: (module 'rushlight[\w.]*'|type object '\w+'|'(Tensor|Parameter)' object) has no attribute"
)
ORDER = (
    "value",
    "grad",
    "dtype",
    "shape",
    "requires_grad",
    "storage",
    "alive",
    "is_leaf",
    "version",
    "stride",
    "grad_fn",
)


def judge(found: Sequence[Difference], ignored: tuple[str, ...] = ()) -> tuple[list[Difference], list[str]]:
    """The findings, and the reasons of those known.  What an expected refusal entails is not looked at.

    ignored: facts that the kind of programs is not about.
    """
    findings: list[Difference] = []
    reasons: list[str] = []
    for difference in found:
        if difference.what in ignored or more_forms(difference):
            continue
        reason = expected(difference) or known(difference)
        if reason is not None:
            reasons.append(reason)
        elif not declared(difference):
            findings.append(difference)
            continue
        if difference.step is not None:
            return [], reasons
    return sorted(findings, key=gravity), reasons


def more_forms(difference: Difference) -> bool:
    """Whether rushlight takes arguments that PyTorch has no form for: nobody's program means something else by them."""
    return difference.what == "leniency" and str(getattr(difference.reference, "message", "")).startswith("TypeError")


def expected(difference: Difference) -> str | None:
    """Why a refusal of rushlight's says nothing against it: a name that is not there yet, a budget that is too small."""
    message = getattr(difference.subject, "message", "")
    if difference.what == "outcome" and NOT_THERE.match(message):
        return "a name that is not there"
    return "a budget that cannot be kept" if message.startswith("BudgetError") else None


def gravity(difference: Difference) -> int:
    """What is looked at first: values before names."""
    return ORDER.index(difference.what) if difference.what in ORDER else 0
