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
    """One search.  evaluate: from how far along to the point there."""

    def __init__(self, evaluate: Callable[[Any], Point], start: Point, tolerance_change: float, max_ls: int = 25):
        self.evaluate, self.start, self.tolerance, self.max_ls = evaluate, start, tolerance_change, max_ls
        self.evaluations = self.iterations = 0

    def at(self, t: object) -> Point:
        """Evaluate, and count it."""
        self.evaluations += 1
        return self.evaluate(t)

    def too_high(self, p: Point) -> bool:
        """Whether the loss fell less than the slope promises."""
        return bool(p.loss > self.start.loss + SUFFICIENT * p.t * self.start.slope)

    def flat(self, p: Point) -> bool:
        """Whether the slope is small enough to stop."""
        return bool(abs(p.slope) <= -CURVATURE * self.start.slope)

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
