"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.engine.modes import enable_grad
from rushlight.optim.line_search import Point, StrongWolfe
from rushlight.optim.line_search import _cubic_interpolate as _cubic_interpolate
from rushlight.optim.line_search import _strong_wolfe as _strong_wolfe
from rushlight.optim.optimizer import Optimizer, ParamsT
from rushlight.optim.options import check_lr, given
from rushlight.optim.stepper import raw
from rushlight.storage import STEP, bump, settle
from rushlight.tensor import Tensor, wrap

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS (Nocedal, 1980): quasi-Newton steps from the last changes of parameters and gradients.

    Args:
        params: tensors or named tensors; all in one group.
        lr: step length, a number or a tensor of one element.
        max_iter: most iterations of one `step`.
        max_eval: most evaluations of one `step`; None: 1.25 times max_iter.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when neither parameters nor loss change by more.
        history_size: how many changes are remembered: 2 * history_size vectors of the parameters' size.
        line_search_fn: None or "strong_wolfe".

    `step` needs a closure that clears gradients, evaluates the model, runs backward and returns the loss.
    """

    elementwise = False

    refused_in_backward = (
        "L-BFGS looks for a direction of all parameters together and evaluates the model several times in a step"
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, given(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> Any:
        return self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Iterate up to `max_iter` times; the loss at the start, as the closure returned it."""
        return _Run(self, closure).go()

    def _flat_grad(self) -> Array:
        """All gradients in one new vector; zeros where there is none.  Raises RuntimeError if one has not a number for each element."""
        grads = [p.grad.to_dense() if p.grad is not None and p.grad.is_sparse else p.grad for p in self._params]
        for p, grad in zip(self._params, grads, strict=True):
            if grad is not None and grad._array.size != p._array.size:
                raise RuntimeError(f"LBFGS: a gradient of shape {list(grad.shape)} does not fit its parameter of shape "
                                   f"{list(p.shape)}: was p.data replaced? Clear p.grad")  # fmt: skip
        both = zip(self._params, grads, strict=True)
        return np.concatenate([np.zeros(raw(p).size, raw(p).dtype) if g is None else raw(g).ravel() for p, g in both])

    def _move(self, t: Any, direction: Array) -> None:
        """Add `t` times a direction to the parameters."""
        start = 0
        for p in self._params:
            array = raw(p)
            settle(array)
            array += float(t) * direction[start : start + array.size].reshape(array.shape)
            start += array.size
            bump(p, STEP)

    def _set(self, values: list[Any]) -> None:
        for p, value in zip(self._params, values, strict=True):
            settle(p._array)
            p._array[...] = value
            bump(p, STEP)


def largest(x: Array) -> Any:
    """The largest absolute value of a vector, without another one."""
    return np.maximum(-x.min(initial=0.0), x.max(initial=0.0))


class _Run:
    """One call of `step`."""

    direction: Any  # of the last move, and how far along it
    t: Any
    changes: list[Any]  # of the gradient, the steps that made them, and 1 over their products
    steps: list[Any]
    ro: list[Any]
    scale: Any  # of the first guess of the inverse Hessian
    al: list[Any] | None
    grad: Any
    loss: float
    prev_grad: Any
    prev_loss: float

    def __init__(self, owner: LBFGS, closure: Callable[[], Any]):
        self.owner, self.closure, self.group = owner, closure, owner.param_groups[0]
        self.state = owner.state[owner._params[0]]
        if self.group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        self.lr = _number(self.group["lr"])

    def evaluate(self) -> Any:
        """Call the closure; the loss as it is."""
        with enable_grad():
            return self.closure()

    def go(self) -> Any:
        """Iterate."""
        state, group = self.state, self.group
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = self.evaluate()
        self.loss, self.grad = float(first), self.owner._flat_grad()
        state["func_evals"] += 1
        if self.is_flat():
            return first
        self.load()
        self.evaluations = 1
        n_iter = 0
        while n_iter < group["max_iter"]:
            n_iter += 1
            state["n_iter"] += 1
            self.choose_direction()
            slope = self.grad.dot(self.direction)
            if slope > -group["tolerance_change"]:
                break
            count = self.advance(slope, n_iter)
            self.evaluations += count
            state["func_evals"] += count
            last = n_iter == group["max_iter"] or self.evaluations >= group["max_eval"]
            if last or self.is_flat() or self.is_still():
                break
        self.store()
        return first

    def is_flat(self) -> bool:
        """Whether the gradient is as good as zero."""
        return bool(largest(self.grad) <= self.group["tolerance_grad"])

    def is_still(self) -> bool:
        """Whether parameters or loss hardly changed."""
        least = self.group["tolerance_change"]
        moved = abs(largest(self.direction) * float(self.t))
        return bool(moved <= least or abs(self.loss - self.prev_loss) < least)

    def choose_direction(self) -> None:
        """Remember the last change; then set direction and step length."""
        if self.state["n_iter"] == 1:
            self.direction, self.scale = -self.grad, 1
            self.changes, self.steps, self.ro = [], [], []
            self.t = min(1.0, 1.0 / np.abs(self.grad).sum()) * self.lr
        else:
            self.remember()
            self.direction = self.quasi_newton()
            self.t = self.lr
        self.prev_grad, self.prev_loss = self.grad, self.loss  # nobody changes it: the next one is a new vector

    def remember(self) -> None:
        """Add the change of the gradient and the step that made it, if they are of use."""
        change, step = self.grad - self.prev_grad, self.direction * float(self.t)
        ys = change.dot(step)
        if ys > 1e-10:
            if len(self.changes) == self.group["history_size"]:
                for history in (self.changes, self.steps, self.ro):
                    history.pop(0)
            self.changes.append(change)
            self.steps.append(step)
            self.ro.append(1.0 / ys)
            self.scale = ys / change.dot(change)

    def quasi_newton(self) -> Any:
        """The inverse Hessian, as the history has it, times the negative gradient: the two-loop recursion."""
        if self.al is None:
            self.al = [None] * self.group["history_size"]
            self.state["al"] = []  # its place among the others; `store` fills it
        d = -self.grad
        for i in reversed(range(len(self.changes))):
            self.al[i] = self.steps[i].dot(d) * self.ro[i]
            d -= self.al[i] * self.changes[i]
        d *= self.scale
        for i, change in enumerate(self.changes):
            d += self.steps[i] * (self.al[i] - change.dot(d) * self.ro[i])
        return d

    def advance(self, slope: object, n_iter: int) -> int:
        """Move along the direction; how often the closure was called."""
        owner = self.owner
        if self.group["line_search_fn"] == "strong_wolfe":
            return self.search(slope)
        owner._move(self.t, self.direction)
        if n_iter == self.group["max_iter"]:
            return 0
        self.loss, self.grad = float(self.evaluate()), owner._flat_grad()
        return 1

    def search(self, slope: Any) -> int:
        """Move to where the strong Wolfe conditions hold; how often the closure was called."""
        owner, direction = self.owner, self.direction
        origin = [p._array.copy() for p in owner._params]

        def at(t: object) -> Point:
            owner._move(t, direction)
            loss, grad = float(self.evaluate()), owner._flat_grad()
            owner._set(origin)
            return Point(t, loss, grad, grad.dot(direction))

        start = Point(0, self.loss, self.grad, slope)
        left = self.group["max_eval"] - self.evaluations
        search = StrongWolfe(at, start, self.group["tolerance_change"], min(25, left))
        found = search.run(self.t, float(largest(direction)))
        self.t, self.loss, self.grad = found.t, found.loss, found.grad
        owner._move(self.t, direction)
        return search.evaluations

    def load(self) -> None:
        """Take up what the last call left."""
        kept: dict[str, Any] = {k: _arrays(v) for k, v in self.state.items()}
        self.direction, self.t, self.scale = kept.get("d"), kept.get("t"), kept.get("H_diag")
        self.changes, self.steps, self.ro = (kept.get(k, []) for k in ("old_dirs", "old_stps", "ro"))
        self.prev_grad, self.prev_loss = kept.get("prev_flat_grad"), kept.get("prev_loss", 0.0)
        self.al = kept.get("al")

    def store(self) -> None:
        """Leave it for the next call."""
        kept = {"d": self.direction, "t": self.t, "old_dirs": self.changes, "old_stps": self.steps, "ro": self.ro}
        kept |= {"H_diag": self.scale, "prev_flat_grad": self.prev_grad, "prev_loss": self.prev_loss}
        if self.al is not None:
            kept["al"] = self.al
        self.state.update({k: _tensors(v) for k, v in kept.items()})


def _number(value: float) -> float:
    """A NumPy scalar for a tensor of one element, a Python number as it is."""
    return value._array.reshape(())[()] if isinstance(value, Tensor) else value


def _arrays(value: object) -> object:
    if isinstance(value, list):
        return [_arrays(v) for v in value]
    return (value._array if value.ndim else value._array[()]) if isinstance(value, Tensor) else value


def _tensors(value: object) -> object:
    if isinstance(value, list):
        return [_tensors(v) for v in value]
    return wrap(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value
