"""Who is right where numbers differ: both sides are held against the reference's answer in float64, and against its answer
to a program whose numbers are other by a rounding."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .observing import Plain, Seen, observe
from .program import Execution, Side, run

LOW = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
TIMES = 4.0  # how many times the reference's own error is no finding

Array = np.ndarray[Any, Any]


def truth(statements: list[str], reference: Side) -> dict[str, Array]:
    """Arrays that the program leaves on the reference's side when it computes in float64, by their expressions."""
    library = reference.library
    default = library.get_default_dtype()
    library.set_default_dtype(library.float64)
    try:
        with reference.around():
            return dict(arrays_of(run([widened(text) for text in statements], reference)))
    finally:
        library.set_default_dtype(default)


MOVED = """
def moved(module):
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(1 + PART * torch.cos(torch.arange(p.numel(), dtype=p.dtype)).view(p.shape))
    return module"""


def shaken(statements: list[str], reference: Side, part: float = 1e-13) -> dict[str, Array]:
    """Arrays that the program leaves when the numbers that its prelude makes are other by about that part; none without.

    Those of modules are made in float32, which has no such part, and are moved afterwards.
    """
    prelude = re.sub(r"(?<=\* )\d\.\d\b", lambda number: repr(float(number[0]) * (1 + part)), reference.prelude)
    if prelude == reference.prelude:
        return {}
    after = [re.sub(r"filled\(.*\)\.double\(\)", r"moved(\g<0>)", text) for text in statements]
    with reference.around():
        made = replace(reference, prelude=prelude + MOVED.replace("PART", repr(part)))
        return dict(arrays_of(run(after, made)))


def shaken_back(statements: list[str], reference: Side) -> dict[str, Array]:
    """As `shaken`, to the other side: what is 0 but for its rounding has another sign on one of them."""
    return shaken(statements, reference, -1e-13)


# Where the least change may make a large one.
JUMPS = r"==|!=|[<>]|round|sgn|sign|floor|ceil|int64"
SHARP = re.compile(rf"{JUMPS}|clamp|relu")  # slopes jump, too
GROWN = 1e-4  # to what part of the largest number a part in 10^13 may grow, and still is rounding


def shaken_leaves(
    statements: list[str], reference: Side, part: float = 1e-13, sharp: re.Pattern[str] = SHARP
) -> dict[str, Array]:
    """Arrays that the program leaves when the numbers of its leaves are other by about that part; none where that may be
    seen otherwise than as rounding: where what is sharp is called."""

    def other(leaf: re.Match[str]) -> str:
        return moved_numbers(leaf, part)

    moved = [re.sub(r"torch\.tensor\([^()]*, dtype=torch\.float64\)", other, text) for text in statements]
    if moved == statements or any(sharp.search(text) for text in statements):
        return {}
    with reference.around():
        return dict(arrays_of(run(moved, reference)))


def scatter(statements: list[str], reference: Side) -> dict[str, Array]:
    """How far apart the numbers are that the program leaves when its leaves are other by some roundings.

    All are moved to the same side: where the program jumps, all of them have jumped, and only what a rounding makes of
    one of them makes another. `sin(exp(25))` has no digit that says anything.
    """
    jumps = re.compile(JUMPS)
    runs = [shaken_leaves(statements, reference, part * 1e-15, jumps) for part in range(1, 7)]
    with np.errstate(all="ignore"):
        return {
            name: np.max(values, axis=0) - np.min(values, axis=0)
            if first.dtype.kind == "f"
            else np.max(np.abs(np.subtract(values, first)), axis=0)
            for name, first in runs[0].items()
            if first.dtype.kind in "fc" and all(name in other and other[name].shape == first.shape for other in runs)
            for values in [[other[name] for other in runs]]
        }


ROUNDED = re.compile(r"torch\.tensor\([^()]*(?:\('-?(?:nan|inf)'\)[^()]*)*, dtype=torch\.(b?float16|float32)\)")
BITS = {"bfloat16": 7, "float16": 10, "float32": 23}  # behind the point


def nearby(statements: list[str], reference: Side) -> dict[str, Array]:
    """How far the reference is off in 16 or 32 bits, at most, where the program's leaves are other by some of their roundings.

    Where all but rounding cancels, it may happen to be off by nothing.
    """
    worst: dict[str, Array] = {}
    for part in (1, 2, 3, -1, -2) if ROUNDED.search("\n".join(statements)) else ():

        def other(leaf: re.Match[str], part: int = part) -> str:
            return moved_numbers(leaf, part * 2.0 ** -BITS[leaf[1]])

        moved = [ROUNDED.sub(other, text) for text in statements]
        right = truth(moved, reference)
        with reference.around():
            found = dict(arrays_of(run(moved, reference)))
        for name in right.keys() & found.keys():
            if right[name].shape == found[name].shape and right[name].dtype.kind == "f":
                with np.errstate(all="ignore"):
                    worst[name] = np.fmax(worst.get(name, np.float64(0.0)), away(right[name], found[name]))
    return worst


def moved_numbers(leaf: re.Match[str], part: float) -> str:
    """The text of a leaf, each number another one by its own part."""
    parts = itertools.cycle((part, -2 * part, 3 * part))
    return re.sub(
        r"\b\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)", lambda number: repr(float(number[0]) * (1 + next(parts))), leaf[0]
    )


def little_noise(moved: Array, reference: Array, subject: Array, tolerance: float) -> bool:
    """Whether the sides differ by rounding that grew, and that is small all the same."""
    if not noise(moved, reference, subject, tolerance):
        return False
    with np.errstate(all="ignore"):
        largest = max(1.0, float(np.max(np.abs(reference), where=np.isfinite(reference), initial=0.0)))
        return bool(np.nanmax(np.abs(moved - reference)) <= GROWN * largest)


def scattered(apart: Array, reference: Array, subject: Array, tolerance: float) -> bool:
    """Whether each element differs by no more than what some roundings make of it."""
    if not apart.shape == reference.shape == subject.shape or reference.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        alike = (reference == subject) | (np.isnan(reference) & np.isnan(subject))
        # a quotient by 0 on one side, by what rounding leaves of 0 on the other: huge, and another with every rounding
        size = np.abs(reference)
        alike |= ~np.isfinite(subject) & (size > 1e12) & (apart > 0.1 * size)
        largest = max(1.0, float(np.max(np.abs(reference), where=np.isfinite(reference), initial=0.0)))
        allowed = TIMES * np.where(np.isfinite(apart), apart, 0.0) + tolerance * largest
        return bool(np.all(alike | (np.abs(subject - reference) <= allowed)))


def reinterpreted(statements: list[str], reference: Array, subject: Array) -> bool:
    """Whether integers are the bits of numbers that differ by rounding alone."""
    if reference.dtype != np.int64 or subject.dtype != np.int64 or reference.shape != subject.shape:
        return False
    if not any(".view(torch.int64)" in text for text in statements):
        return False
    a, b = (np.ascontiguousarray(side).view(np.float64) for side in (reference, subject))
    with np.errstate(all="ignore"):
        return bool(np.allclose(b, a, rtol=1e-9, atol=1e-9, equal_nan=True))


def noise(moved: Array, reference: Array, subject: Array, tolerance: float) -> bool:
    """Whether the sides differ by no more than a program that is all but the same does: by rounding that grew."""
    if not moved.shape == reference.shape == subject.shape or reference.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        growth, apart = np.abs(moved - reference), np.abs(subject - reference)
        largest = max(1.0, float(np.max(np.abs(reference), where=np.isfinite(reference), initial=0.0)))
        return bool(np.nanmax(apart) <= TIMES * np.nanmax(growth) + tolerance * largest)


def rounding(statements: list[str], right: Array, reference: Array) -> float:
    """The relative rounding of what the program may compute in float32 and give back in float64; 0 where it does not.

    It does where it says so, and where the reference has other numbers once float64 is the default dtype (right): booleans
    and integers become numbers of that dtype.
    """
    told = re.search(r"\.float\(\)|float32|complex64", "\n".join(statements)) is not None
    alike = right.shape == reference.shape and np.allclose(reference, right, rtol=1e-12, atol=0, equal_nan=True)
    return 1e-6 if told or not alike else 0.0


def widened(text: str) -> str:
    """The statement in double precision; the numbers it begins with stay what the smaller dtype makes of them."""
    low = "|".join(LOW)

    def after(match: re.Match[str]) -> str:
        return f"{match[0]}.to(torch.{LOW[match[2]]})"

    text = re.sub(rf"(torch\.tensor\([^()]*(?:\('-?(?:nan|inf)'\)[^()]*)*), dtype=torch\.({low})\)", after, text)
    text = re.sub(rf"dtype=torch\.({low})\b(?!\)\.to\()", lambda match: f"dtype=torch.{LOW[match[1]]}", text)
    return re.sub(r"\.(float|half|bfloat16)\(\)", ".double()", text)


def arrays_of(execution: Execution) -> Iterator[tuple[str, Array]]:
    """Every array and number that is observed, by the expression that comparing names it with."""
    for name, value in observe(execution).items():
        yield from arrays_in(name, value)


def arrays_in(where: str, value: Plain) -> Iterator[tuple[str, Array]]:
    """The arrays and numbers in one observation."""
    if isinstance(value, np.ndarray | float | complex):
        yield where, np.asarray(value)
    elif isinstance(value, Seen):
        yield from arrays_in(where, value.facts.get("value"))
        yield from arrays_in(f"{where}.grad", value.facts.get("grad"))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays_in(f"{where}[{key!r}]", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from arrays_in(f"{where}[{index}]", item)


def as_good(right: Array, reference: Array, subject: Array, tolerance: float, near: Array | float = 0.0) -> bool:
    """Whether the subject's numbers are about as near the right ones as the reference's.

    tolerance: a part of the largest number that is no finding whatever the reference's error. near: the reference's error
    for a program that is all but the same.
    """
    if right.shape != subject.shape or right.dtype.kind not in "fc":
        return False
    if right.dtype.kind == "c":
        parts = ((a.real, b.real, c.real) for a, b, c in ((right, reference, subject),))
        others = ((a.imag, b.imag, c.imag) for a, b, c in ((right, reference, subject),))
        return all(as_good(*part, tolerance) for part in (*parts, *others))
    with np.errstate(all="ignore"):
        errors, allowed = away(right, subject), away(right, reference)
        largest = max(1.0, float(np.max(np.abs(right), where=np.isfinite(right), initial=0.0)))
        near = np.asarray(near)
        common = max(float(np.max(error, where=np.isfinite(error), initial=0.0)) for error in (allowed, near))
        alike = away(reference.astype(np.float64), subject) <= tolerance * largest
        return bool(np.all(alike | (errors <= TIMES * common + tolerance * largest)))


def away(right: Array, got: Array) -> Array:
    """Distances; 0 where both are the same infinity or NaN, infinity where one alone is finite."""
    distance = np.abs(got.astype(np.float64) - right)
    alike = (got == right) | (np.isnan(got) & np.isnan(right))
    return np.where(alike, 0.0, np.where(np.isnan(distance), np.inf, distance))
