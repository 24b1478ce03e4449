"""The loop that the elementwise optimizers share: one formula, on raw blocks or, to be differentiated, on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from rushlight import kernels
from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.state import special
from rushlight.dispatch import functions as ops
from rushlight.dispatch.formats import preserve_format
from rushlight.engine.modes import enable_grad, no_grad, set_grad_enabled
from rushlight.engine.rows import Rows
from rushlight.kernels.reference.optim import blocks, fitted
from rushlight.kernels.reference.rules import RULES
from rushlight.optim.memory import as_real, zeros_like
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.options import LATER, number
from rushlight.storage import STEP, bump, dependents, settle
from rushlight.tensor import Tensor, wrap


class Stepper(Optimizer):
    """An optimizer that treats every element alike.

    A subclass names the state that is of the parameter's size (`_slots`, by group), gives its start (`_start`),
    the numbers of one step (`_numbers`), and the formula: a function of (xp, param, grad, *slots, **numbers) that
    returns the new param and slots.  `xp` is NumPy, or the module of operators when a step is differentiated.

    One that has a native kernel names it (`_kernel`), with the states it takes, and the numbers that it takes (`_row`).
    """

    _kernel: ClassVar[str] = ""
    _states: ClassVar[tuple[str, ...]] = ()  # of the kernel, in its order; those that a group has not are None

    _fill: ClassVar[dict[str, Any]] = {}  # options that older checkpoints lack, beside those of `LATER`
    _needs: ClassVar[tuple[str, ...]] = ()  # the numbers that the formula names
    _counts_in_tensors: ClassVar[bool] = True  # whether `step` is a tensor, which older checkpoints have as a number
    _formula: Callable[..., tuple[Any, ...]]

    def __init_subclass__(cls, **more: object) -> None:
        super().__init_subclass__(**more)
        names = _arguments(cls.__init__)
        cls._fill = {**cls._fill, **{name: value for name, value in LATER.items() if name in names}}
        cls._needs = _arguments(cls._formula, keywords_only=True) if hasattr(cls, "_formula") else ()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._fill.items():
                group.setdefault(name, value)
            for p in group["params"]:
                kept = self.state.get(p)
                if kept and "step" in kept and self._counts_in_tensors and not isinstance(kept["step"], Tensor):
                    kept["step"] = scalar(float(kept["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient.

        closure: evaluates the model again and returns the loss, which `step` returns.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        groups = self.param_groups if special.classes is None else self._for_classes(self.param_groups)
        for group in self._for_rows(groups) if Rows.sparse else groups:
            self._settled(group)
            self._step_group(group)
        return loss

    def _for_classes(self, groups: list[dict[str, Any]]) -> list[Any]:
        """Step the parameters whose class has `__torch_dispatch__`, by operators; the groups with those that are left."""
        left = []
        for group in groups:
            params = [p for p in group["params"] if p._grad is not None and (p._dispatched or p._grad._dispatched)]
            for p in params:
                state = self.state[p]
                with no_grad():
                    if not state:
                        self._begin(state, p, group)
                    self._step_handed(p, p._grad, state, group)
                    if not state:
                        del self.state[p]
            left.append({**group, "params": [p for p in group["params"] if all(p is not q for q in params)]})
        return left

    def _step_handed(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change one parameter by operators that its class is asked for: by those of the formula, or as PyTorch does."""
        self._update_tensors(p, grad, state, group)

    def _for_rows(self, groups: list[dict[str, Any]]) -> list[Any]:
        """Step the parameters with sparse gradients; the groups with those that are left."""
        left = []
        for group in groups:
            params = [p for p in group["params"] if p._grad is not None and p._grad.is_sparse]
            if params:
                for p in params:
                    with no_grad():
                        self._step_rows(p, p._grad, group)
                group = {**group, "params": [p for p in group["params"] if all(p is not q for q in params)]}
            left.append(group)
        return left

    def _step_rows(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Change one parameter by a sparse gradient, whose places may repeat.  Raises RuntimeError where that is not defined."""
        name = {"AdamW": "Adam"}.get(type(self).__name__, type(self).__name__)
        more = (
            ", please consider SparseAdam instead"
            if name == "Adam"
            else ": give the embedding sparse=False, or use SGD"
        )
        raise RuntimeError(f"{name} does not support sparse gradients{more}")

    def step_param(self, param: Tensor, group: dict[str, Any]) -> None:
        """Change one parameter, of a group, by its gradient, as `step` does."""
        step = type(self).step
        if getattr(step, "__wrapped__", step) is Stepper.step:
            settle(param._array)
            one = {**group, "params": (param,)}
            for each in self._for_rows([one]) if Rows.sparse else (one,):
                self._step_group(each)
        else:
            super().step_param(param, group)

    def _settled(self, group: dict[str, Any]) -> None:
        """Say that the parameters of a group are about to change."""
        if dependents:
            for p in group["params"]:
                settle(p._array)

    def _step_group(self, group: dict[str, Any]) -> None:
        if group.get("fused"):
            refuse_complex(group)
        elif group.get("capturable"):
            _refuse_capturable(group)
        if group.get("differentiable"):
            self._step_differentiable(group)
            return
        if self._kernel:
            self._step_natively(group)
            return
        options, states = self._options(group), self.state
        for p in group["params"]:
            grad = p.grad
            if grad is not None:
                state = states[p]
                if not state:
                    self._begin(state, p, group)
                self._update(p, grad, state, group, options)

    def _step_natively(self, group: dict[str, Any]) -> None:
        options, slots, states = tuple(map(number, self._options(group))), self._slots(group), self.state
        together = Together(self._kernel)
        for p in group["params"]:
            grad = p.grad
            if grad is not None:
                state = states[p]
                if not state:
                    self._begin(state, p, group)
                kept = [state[name] if name in slots else None for name in self._states]
                together.add(p, grad, kept, self._row(state, options))
        together.run()

    def _step_differentiable(self, group: dict[str, Any]) -> None:
        if group.get("foreach"):
            raise AssertionError("_foreach ops don't support autograd: choose foreach=True or differentiable=True")
        for p in group["params"]:
            grad = p.grad
            if grad is not None:
                state = self.state[p]
                if not state:
                    self._begin(state, p, group)
                with set_grad_enabled(bool(self.defaults["differentiable"])):
                    self._update_tensors(p, grad, state, group)

    # What subclasses say ---------------------------------------------------------------------------

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Names of the state of the parameter's size."""
        raise NotImplementedError

    def _begin(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        """Fill the empty state of a parameter with all that it has, or leave it empty where memory does not suffice."""
        made: dict[str, Any] = {}
        self._start(made, p, group)
        state.update(made)

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        """Fill the empty state of a parameter."""
        state["step"] = scalar(0.0)
        for name in self._slots(group):
            state[name] = zeros(p)

    def _numbers(self, state: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        """Advance the counters of a parameter and return what the formula names: the step, and options of the group."""
        if type(self)._formula in RULES.values():
            return dict(zip(self._needs, self._row(state, self._options(group)), strict=True))
        now = advance(state)
        return {name: now if name == "step" else group[name] for name in self._needs if name == "step" or name in group}

    def _options(self, group: dict[str, Any]) -> Any:
        """What `_update` or `_row` wants to know of the group, read once for all of its parameters."""
        return self._slots(group)

    def _row(self, state: dict[str, Any], options: tuple[Any, ...]) -> tuple[Any, ...]:
        """Advance the counters of a parameter and return what the kernel multiplies by: by default the options as they are."""
        advance(state)
        return options

    def _work(self, array: Array, group: dict[str, Any]) -> int:
        return 0 if self._kernel and array.itemsize > 2 else super()._work(array, group)

    # The two ways to apply a formula ----------------------------------------------------------------

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: tuple[Any, ...]
    ) -> None:
        """Change one parameter and its state in place, without temporaries of their size."""
        slots = [state[name] for name in options]
        numbers = {k: _numbers(v) for k, v in self._numbers(state, group).items()}
        run_blocks(type(self)._formula, p, grad, slots, numbers)

    def _update_tensors(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change one parameter and its state by operators that are recorded."""
        slots = [state[name] for name in self._slots(group)]
        numbers = self._numbers(state, group)
        written = [ops.view_as_real(t) if t.dtype.is_complex else t for t in (p, *slots)]
        grad = ops.view_as_real(grad) if grad.dtype.is_complex else grad
        param, *kept = [t.clone() for t in written]  # formulas may save what is then overwritten
        for t, value in zip(written, type(self)._formula(ops, param, grad, *kept, **numbers), strict=True):
            t.copy_(value)


# Bytes up to which parameters step in one call: they are all in memory then, so none that a budget moves.
AT_ONCE = 1 << 18
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


class Together:
    """Steps of a group by a native kernel: small parameters wait, to step in one call.  kernel: its name."""

    def __init__(self, kernel: str):
        self.kernel = kernel
        self.arrays: list[Any] = []
        self.numbers: list[tuple[Any, ...]] = []

    def add(self, p: Tensor, grad: Tensor, kept: list[Tensor | None], numbers: tuple[Any, ...]) -> None:
        """Step a parameter, at the latest when `run` is called."""
        bump(p, STEP)
        for t in kept:
            if t is not None:
                bump(t, STEP)
        kept += [None] * (kernels.SLOTS - len(kept))
        array = p._array
        if (array.dtype is F32 or array.dtype is F64) and array.nbytes <= AT_ONCE and not p._elsewhere:
            self.arrays += (array, grad._array, *[None if t is None else t._array for t in kept])
            self.numbers.append(numbers)
        else:
            arrays = [raw(p), raw(grad), *(None if t is None else raw(t) for t in kept)]
            kernels.step_many(self.kernel, arrays, [numbers])

    def run(self) -> None:
        """Step those that wait."""
        if self.arrays:
            kernels.step_many(self.kernel, self.arrays, self.numbers)


def run_blocks(
    formula: Callable[..., Any], p: Tensor, grad: Tensor, slots: list[Tensor], numbers: dict[str, Any]
) -> None:
    """Apply `formula` to one parameter and its slots, block by block; 16-bit floats are rounded once, at the end."""
    with np.errstate(all="ignore"):
        for block in blocks(*fitted(raw(p), raw(grad), *(raw(t) for t in slots))):
            param, g, *kept = (wide(a) for a in block)
            for old, new in zip((block[0], *block[2:]), formula(np, param, g, *kept, **numbers), strict=True):
                old[...] = new
    bump(p, STEP)
    for t in slots:
        bump(t, STEP)


def regularized(param: Tensor, grad: Tensor, weight_decay: Any, maximize: bool) -> Any:
    """The gradient, turned round to maximize, with the L2 penalty added."""
    if maximize:
        grad = -grad
    return grad + weight_decay * param if not is_zero(weight_decay) else grad


def decayed(
    param: Tensor, grad: Tensor, lr: Any, weight_decay: Any, maximize: bool, decoupled: bool
) -> tuple[Any, Any]:
    """Parameter and gradient of the Adams: the penalty is added to the gradient, or, decoupled, taken off the parameter."""
    grad = regularized(param, grad, 0 if decoupled else weight_decay, maximize)
    return param * (1 - lr * weight_decay) if decoupled and not is_zero(weight_decay) else param, grad


def penalties(lr: float, weight_decay: float, decoupled: bool) -> tuple[Any, Any]:
    """What of the parameter is added to the gradient, and what it is multiplied by: decay is one or, decoupled, the other."""
    return (0.0, 1 - lr * weight_decay if not is_zero(weight_decay) else 1.0) if decoupled else (weight_decay, 1.0)


def moments(grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, beta1: Any, beta2: Any) -> tuple[Any, Any]:
    """The running means of the gradient and of its square, which the Adams keep."""
    return lerp(exp_avg, grad, 1 - beta1), beta2 * exp_avg_sq + (1 - beta2) * grad * grad


def is_zero(value: object) -> bool:
    """Whether an option is the plain number zero: a tensor may be differentiated, and is kept."""
    return not isinstance(value, Tensor) and value == 0


def lerp(start: Tensor, end: Tensor, weight: Any) -> Any:
    """`start` moved towards `end` by the fraction `weight`."""
    return start + weight * (end - start)


def scalar(value: float) -> Tensor:
    """A counter: a 0-d tensor, float32 unless the default dtype is float64."""
    wide = dtypes.get_default_dtype() is dtypes.float64
    return wrap(np.array(value, np.float64 if wide else np.float32))


def advance(state: dict[str, Any]) -> float:
    """Count a step; which one it is."""
    array = state["step"]._array
    array += 1
    return float(array)


def zeros(p: Tensor) -> Tensor:
    """Zeros of the shape, dtype and memory order of a parameter."""
    if p._dispatched:
        return ops.zeros_like(p, memory_format=preserve_format)
    made = wrap(zeros_like(p._array))
    return p._alike(made) if p._spread else made  # type: ignore[attr-defined]


def wide(array: Array) -> Array:
    """A block of 16-bit floats in float32, any other as it is."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def raw(t: Tensor) -> Array:
    """The array of a tensor, complex numbers as pairs of reals."""
    array = t._array
    return as_real(array)


def _numbers(value: Any) -> Any:
    """An option with Python numbers for tensors of one element."""
    return tuple(map(number, value)) if isinstance(value, tuple) else number(value)


def _arguments(function: Callable[..., Any], keywords_only: bool = False) -> tuple[str, ...]:
    """Names of the arguments of a Python function; none of another callable."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames
    return names[code.co_argcount if keywords_only else 0 : code.co_argcount + code.co_kwonlyargcount]


def refuse_complex(group: dict[str, Any]) -> None:
    """Fused steps are of real numbers: refused where a complex parameter has a gradient."""
    if any(p.grad is not None and p.is_complex() for p in group["params"]):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors, and no complex ones: leave it out"
        )


def _refuse_capturable(group: dict[str, Any]) -> None:
    """Graph capture needs a GPU: refused where a parameter with a gradient is on the CPU."""
    if any(p.grad is not None and p.device.type != "cuda" for p in group["params"]):
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices: ['cuda'], but they are on cpu. "
            "Leave capturable=False there."
        )
