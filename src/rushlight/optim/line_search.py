"""Line search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SUFFICIENT, CURVATURE = 1e-4, 0.9  # c1 and c2 of the conditions


class Point(NamedTuple):
    """A place on the line: how far along, the loss, the gradient, and the slope along the line."""

    t: Any
    loss: float
    grad: Any
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points with their slopes is least, within `bounds` or between the points."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = np.sqrt(square)
    left, right = (a, b) if a.t <= b.t else (b, a)
    at = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(at, low), high)


class StrongWolfe:
    """One search.  evaluate: from how far along to the point there; c1, c2: of the conditions."""

    def __init__(self, evaluate: Callable[[Any], Point], start: Point, tolerance_change: float, max_ls: int = 25,
                 c1: float = SUFFICIENT, c2: float = CURVATURE):  # fmt: skip
        self.evaluate, self.start, self.tolerance, self.max_ls = evaluate, start, tolerance_change, max_ls
        self.c1, self.c2 = c1, c2
        self.evaluations = self.iterations = 0

    def at(self, t: object) -> Point:
        """Evaluate, and count it."""
        self.evaluations += 1
        return self.evaluate(t)

    def too_high(self, p: Point) -> bool:
        """Whether the loss fell less than the slope promises."""
        return bool(p.loss > self.start.loss + self.c1 * p.t * self.start.slope)

    def flat(self, p: Point) -> bool:
        """Whether the slope is small enough to stop."""
        return bool(abs(p.slope) <= -self.c2 * self.start.slope)

    def bracket(self, t: object) -> tuple[list[Point], bool]:
        """Go on until a minimum is passed: the points around it, or the one that is good already, and True."""
        former, point = self.start._replace(t=0), self.at(t)
        while self.iterations < self.max_ls:
            if self.too_high(point) or (self.iterations > 1 and point.loss >= former.loss):
                return [former, point], False
            if self.flat(point):
                return [point], True
            if point.slope >= 0:
                return [former, point], False
            bounds = (point.t + 0.01 * (point.t - former.t), point.t * 10)
            t = cubic_minimum(former, point, bounds)
            former, point = point, self.at(t)
            self.iterations += 1
        return [self.start._replace(t=0), point], False

    def zoom(self, ends: list[Point], width: float) -> Point:
        """Narrow the bracket until a point is good; the better end.  width: of the direction, its largest element."""
        low, high = (0, 1) if ends[0].loss <= ends[-1].loss else (1, 0)
        stuck, done = False, False
        while not done and self.iterations < self.max_ls:
            if abs(ends[1].t - ends[0].t) * width < self.tolerance:
                break
            t, stuck = self.inside(ends, stuck)
            point = self.at(t)
            self.iterations += 1
            if self.too_high(point) or point.loss >= ends[low].loss:
                ends[high] = point
                low, high = (0, 1) if ends[0].loss <= ends[1].loss else (1, 0)
                continue
            if self.flat(point):
                done = True
            elif point.slope * (ends[high].t - ends[low].t) >= 0:
                ends[high] = ends[low]
            ends[low] = point
        return ends[low]

    def inside(self, ends: list[Point], stuck: bool) -> tuple[Any, bool]:
        """Where to look next: the cubic's minimum, moved off the ends when it was near one twice."""
        t = cubic_minimum(ends[0], ends[1])
        left, right = min(ends[0].t, ends[1].t), max(ends[0].t, ends[1].t)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) >= margin:
            return t, False
        if not stuck and left < t < right:
            return t, True
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False

    def run(self, t: Any, width: float) -> Point:
        """Search from step `t`; the point found."""
        ends, done = self.bracket(t)
        return ends[0] if done else self.zoom(ends, width)


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> Any:
    """`cubic_minimum` of two places with their losses and slopes, numbers or tensors of one element."""
    first, second = (Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return float(cubic_minimum(first, second, bounds))


def _strong_wolfe(
    obj_func: Callable[..., tuple[Any, Any]],
    x: Any,
    t: Any,
    d: Any,
    f: Any,
    g: Any,
    gtd: Any,
    c1: float = SUFFICIENT,
    c2: float = CURVATURE,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[Any, Any, Any, int]:
    """Search from `x` along `d` with a first step `t`: the loss, the gradient, the step found, and how often `obj_func(x, t, d)` was called.

    f, g, gtd: the loss and the gradient at `x`, and the slope along `d`.  x, d, g: (N)
    """

    def at(step: Any) -> Point:
        loss, grad = obj_func(x, step, d)
        return Point(step, float(loss), grad.clone(), float(grad.dot(d)))

    search = StrongWolfe(at, Point(0, float(f), g.clone(), float(gtd)), tolerance_change, max_ls, c1, c2)
    found = search.run(float(t), float(d.abs().max()))
    return found.loss, found.grad, found.t, search.evaluations
