"""Passes one after the other, in an order that constraints allow."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rushlight.basics.signatures import signature_of
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[[Any], Any]


def _name(each: Pass) -> str:
    return each.__name__ if inspect.isfunction(each) else type(each).__name__


def pass_result_wrapper(fn: Pass | None) -> Pass | None:
    """A function of modules as a pass that says it changed them: for functions that return None or a module."""
    if fn is None:
        return None

    def wrapped(gm: GraphModule) -> PassResult:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return result if isinstance(result, PassResult) else PassResult(result, True)

    wrapped.__name__ = _name(fn)
    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Callable[[Pass, Pass], bool]:
    """A constraint: of any two passes, whether the first may come before the second."""

    def holds(a: Pass, b: Pass) -> bool:
        return a is not that or b is not this

    return holds


def _topological_sort_passes(passes: list[Pass], constraints: list[Callable[[Pass, Pass], bool]]) -> list[Pass]:
    """Passes in an order that all constraints allow.  Raises RuntimeError where there is none."""
    done, left = [], list(passes)
    while left:
        ready = next((p for p in left if all(c(p, q) for c in constraints for q in left if q is not p)), None)
        if ready is None:
            raise RuntimeError(f"Circular dependency detected within the following passes: {[_name(p) for p in left]}")
        done.append(ready)
        left.remove(ready)
    return done


class PassManager:
    """Runs passes.

    passes: functions of a GraphModule that return a PassResult; constraints: of any two passes, whether the first may come
    before the second; steps: how often all of them run, unless nothing changes; run_checks_after_each_pass: call what
    `add_checks` was given; suppress_check_failures: go on where that raises.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Callable[[Pass, Pass], bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ):
        self.passes, self.constraints, self.steps = list(passes or ()), list(constraints or ()), steps or 1
        self.run_checks_after_each_pass, self.suppress_check_failures = (
            run_checks_after_each_pass,
            suppress_check_failures,
        )
        self._validated = not self.constraints

    def add_pass(self, _pass: Pass) -> None:
        """Run this one, too, as the last one."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[[Pass, Pass], bool]) -> None:
        """Let this hold, too."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raises RuntimeError where the order of the passes is not as the constraints would have it."""
        for constraint in self.constraints:
            for at, first in enumerate(self.passes):
                for second in self.passes[at + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {_name(second)} before {_name(first)}"
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes into an order that all constraints allow.  Raises RuntimeError where there is none."""
        self.passes, self._validated = _topological_sort_passes(self.passes, self.constraints), True

    def add_checks(self, check: Callable[..., Any]) -> None:
        """Call this with the module after each pass.  Raises TypeError for what does not take one argument."""
        if len(signature_of(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        setattr(self, "check", check)  # noqa: B010  (a method, to mypy)

    def check(self, module: GraphModule) -> None:
        """What is called after each pass: nothing, until `add_checks`."""

    def __call__(self, module: GraphModule) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self._checked(module)
        overall = False
        for _ in range(self.steps):
            changed = False
            for at, each in enumerate(self.passes):
                result = self._run(module, each, [_name(p) for p in self.passes[:at]])
                module, changed = result.graph_module, changed or result.modified
            overall = overall or changed
            if not changed:
                break
        return PassResult(module, overall)

    def _run(self, module: GraphModule, each: Pass, before: list[str]) -> PassResult:
        try:
            result = each(module)
            if not isinstance(result, PassResult):
                raise TypeError(f"The result of the pass {_name(each)} should be type PassResult, not {type(result).__name__}: see "
                                "pass_result_wrapper")  # fmt: skip
        except Exception as error:
            raise Exception(
                f"An error occurred when running the {_name(each)!r} pass after the following passes: {before}"
            ) from error
        result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self._checked(result.graph_module)
        return result

    def _checked(self, module: GraphModule) -> None:
        try:
            self.check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise
