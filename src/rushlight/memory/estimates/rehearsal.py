"""A training step on stand-ins: the model's own forward, the engine's backward, the optimizer's state; no arithmetic."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import tree_flatten, tree_unflatten
from rushlight.engine.node import edge_of
from rushlight.memory.counting.holders import INPUT, OPTIMIZER_STATE, PARAMETER
from rushlight.memory.estimates.dry import DryLevel
from rushlight.memory.estimates.dry_run import DryRun
from rushlight.memory.estimates.kept import kept_generators, kept_modules
from rushlight.memory.estimates.standins import STEP_WORK, Tally, like, standin
from rushlight.memory.recordings.recorder import BACKWARD, FORWARD, OPTIMIZER
from rushlight.nn.modules import module as nn_module
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.optim.fused_run import launcher
from rushlight.optim.fusing import InBackward
from rushlight.optim.optimizer import Optimizer
from rushlight.storage import root_of
from rushlight.tensor import LEAF, Tensor, wrap

PRIMES = (5, 7, 11, 13, 17, 19, 23)  # sizes of a parameter that stands for others of as many dimensions


class Rehearsal:
    """A model under a `DryLevel`, with stand-ins in place of its parameters and buffers, until it is left."""

    def __init__(self, model: Any, optimizer: Any = None):
        """model: a module or a function that builds one; optimizer: an optimizer, or a function of the parameters."""
        self.tally = Tally()
        self.level = DryLevel(self.tally)
        self.given, self.optimizer = model, optimizer
        self.in_backward = False  # whether parameters are stepped, and their gradients freed, inside backward
        self.calls = 1  # backward calls that make a step
        self.looks = False  # whether a backward runs before to find the norm of all gradients
        self.states: dict[Any, list[Any]] = {}  # of each parameter, the arrays of its optimizer state
        self.shared: dict[str, Any] = {}  # by name, what is kept once for all of them
        self.shapes: dict[Any, Any] = {}

    def __enter__(self) -> Rehearsal:
        with ExitStack() as stack:
            self.level.on_step = self.keep_state
            stack.callback(setattr, self.level, "on_step", None)  # or both would hold each other, and the model
            stack.enter_context(Setting("levels", (*modes.levels, self.level)))
            stack.enter_context(kept_generators())
            self.model = self.given() if callable(self.given) and not isinstance(self.given, Module) else self.given
            if not isinstance(self.model, Module):
                raise TypeError(
                    f"estimate: expected a Module or a function that builds one, got {type(self.model).__name__}"
                )
            if self.model is self.given:
                stack.enter_context(replaced(self.model))
                stack.enter_context(kept_modules(self.model))
            stack.enter_context(self.named())
            self.fuse()
            for tensor in (*self.model.parameters(), *self.model.buffers()):
                self.tally.add(tensor._held, "", PARAMETER)
                self.tally.categorize(tensor._held, PARAMETER)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.states.clear()
        self.shared.clear()
        self.stack.close()

    def adopt(self, tensors: list[Tensor]) -> None:
        """Let parameters that were made after the beginning be stand-ins, too."""
        for t in tensors:
            t._held = like(t._held)
            self.tally.add(t._held, "", PARAMETER)
            self.tally.categorize(t._held, PARAMETER)

    def fuse(self) -> None:
        """Make the optimizer, if it is to be made, and see whether it steps inside backward."""
        if isinstance(self.optimizer, InBackward):
            self.optimizer = self.optimizer.optimizer
        elif self.optimizer is None:
            self.optimizer = launcher.owner_of(self.model.parameters())
        elif not isinstance(self.optimizer, Optimizer):
            if not callable(self.optimizer):
                raise TypeError(
                    f"estimate: expected an optimizer, or a function of parameters that makes one, got {self.optimizer!r}"
                )
            self.optimizer = self.optimizer(self.model.parameters())
        fusion = getattr(self.optimizer, "_in_backward", None)
        if fusion is not None:
            clip = fusion.clip
            self.calls = 1 if fusion.moments else fusion.total
            self.in_backward = not clip.joint or (clip.passes == 2 and fusion.total == 1)
            self.looks = self.in_backward and clip.joint and fusion.total == 1

    @contextmanager
    def named(self) -> Iterator[None]:
        """Tell the tally which module runs."""
        names = {id(m): n or type(m).__name__ for n, m in self.model.named_modules()}
        stack: list[str] = []

        def enter(module: Module, args: tuple[Tensor, ...]) -> None:
            stack.append(names.get(id(module), type(module).__name__))
            self.tally.module = stack[-1]

        def leave(module: Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            if stack:
                stack.pop()
            self.tally.module = stack[-1] if stack else ""

        handles = [nn_module.register_module_forward_pre_hook(enter),
                   nn_module.register_module_forward_hook(leave, always_call=True)]  # fmt: skip
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    # One step ---------------------------------------------------------------------------------------

    def inputs(self, sample: Any) -> Any:
        """Stand-ins for the tensors in a sample."""
        leaves, spec = tree_flatten(sample)
        made = {id(x): self.input(x) for x in {id(x): x for x in leaves if isinstance(x, Tensor)}.values()}
        return tree_unflatten([made.get(id(x), x) for x in leaves], spec)  # what is given twice is one

    def input(self, x: Tensor) -> Tensor:
        t = wrap(like(x._held))
        t._edge = LEAF if x._edge is LEAF else None
        self.tally.add(t._held, "", INPUT)
        return t

    def forward(self, sample: Any, loss: Callable[..., Any] | None = None) -> Tensor:
        """The loss, a tensor of one element; without gradients, whatever the model returns."""
        self.tally.enter(FORWARD)
        if isinstance(sample, dict):
            out = self.model(**sample)
        else:
            out = self.model(*sample) if isinstance(sample, (tuple, list)) else self.model(sample)
        return out if not modes.grad else scalar_of(out, sample, loss)

    def step(self, sample: Any, loss: Callable[..., Any] | None = None) -> None:
        """Forward, backward and the optimizer's step; of micro-batches, as many as make a step."""
        self.tally.begin_step()
        for p in self.model.parameters():
            p._grad = None
        for call in range(self.calls):
            self.backward(self.forward(sample, loss), self.in_backward and call == self.calls - 1)
        self.tally.enter(OPTIMIZER)
        if self.optimizer is not None:
            self.level.stepped(self.optimizer)

    def backward(self, value: Tensor, stepping: bool) -> None:
        """One backward call.  stepping: whether parameters are stepped in it."""
        self.tally.enter(BACKWARD)
        edge = edge_of(value)
        if edge is None:
            raise RuntimeError("estimate: the loss does not require grad: no parameter that it depends on is trained")
        roots = [(edge, wrap(np.ones(value._held.shape, value._held.dtype)))]
        if self.looks:
            run = DryRun(self.level)
            run.keep, run.accumulated = True, forget
            run.execute(roots)
        run = DryRun(self.level)
        run.accumulated = self.stepped if stepping else None
        run.execute(roots)

    def stepped(self, p: Tensor) -> None:
        """The optimizer's step of one parameter, inside backward."""
        self.keep_state(self.optimizer, p)
        if id(p) in self.states:
            p._grad = None

    # Optimizer state --------------------------------------------------------------------------------

    def keep_state(self, optimizer: Any, p: Tensor) -> None:
        """Step a parameter: its state comes into being, if it was not there yet."""
        if optimizer is None:
            return
        group = next((g for g in optimizer.param_groups if any(q is p for q in g["params"])), None)
        if group is None:
            return
        name = type(optimizer).__name__
        if id(p) in self.states:
            self.stepping(optimizer, p, group)
            return
        made = []
        for key, shape, dtype in self.state_of(optimizer, group, p):
            if key in self.shared:
                continue
            array = standin(shape, dtype)
            self.tally.add(array, name, OPTIMIZER_STATE)
            if key in optimizer._shared:
                self.shared[key] = array
            made.append(array)
        self.states[id(p)] = made

    def state_of(self, optimizer: Any, group: dict[str, Any], p: Tensor) -> list[tuple[str, Any, Any]]:
        """Name, shape and dtype of what the optimizer keeps for a parameter."""
        layout = optimizer._layout(p._held.shape, p._held.dtype, group)
        if layout is not None:
            return [(name, *outline) for name, outline in layout.items()]
        key = type(optimizer), kind_of(group), len(p._held.shape), p._held.dtype
        if key not in self.shapes:
            with Setting("levels", ()):
                self.shapes[key] = state_shapes(optimizer, group, p)
        return [("", scaled(shape, p._held.shape), dtype or p._held.dtype) for shape, dtype in self.shapes[key]]

    def stepping(self, optimizer: Any, p: Tensor, group: dict[str, Any]) -> None:
        """A step of a parameter whose state there is: it reads the gradient, and reads and writes all else."""
        state, name = self.states[id(p)], type(optimizer).__name__
        arrays = (p._held, None if p._grad is None else p._grad._held, *state)
        self.tally.worked(STEP_WORK, name, 0, self.tally.uses(arrays), (*arrays, p._held, *state))
        rows = 0 if p._grad is None or p._grad._held.shape == p._held.shape else len(p._grad._held)
        self.tally.work(optimizer._work(p._held, group) + optimizer._ordering * rows, name)


def forget(p: Tensor) -> None:
    """Drop the gradient of a parameter."""
    p._grad = None


@contextmanager
def replaced(model: Module) -> Iterator[None]:
    """Stand-ins for the memory of a model's parameters and buffers, and no gradients; afterwards all as it was."""
    former, roots = [], {}
    tensors = {id(t): t for t in (*model.parameters(), *model.buffers())}
    for t in tensors.values():
        former.append((t, t.__class__, t._held, t._storage, t._view, t._grad, t._edge))
        root = root_of(t._held)
        if id(root) not in roots:
            roots[id(root)] = like(root)
        t._held, t._storage, t._view, t._grad = view_on(roots[id(root)], t._held, root), None, None, None
    del roots
    try:
        yield
    finally:
        for t, cls, array, storage, view, grad, edge in former:
            t.__class__ = cls
            t._held, t._storage, t._view, t._grad, t._edge = array, storage, view, grad, edge


def view_on(made: Array, array: Array, root: Array) -> Array:
    """What `array` is of its `root`, of the stand-in `made` for that."""
    if array is root or (array.shape == root.shape and array.strides == root.strides):
        return made
    offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, made, offset, array.strides)


def scalar_of(out: Tensor, sample: Any, loss: Callable[..., Any] | None) -> Tensor:
    """The loss of a model's output: what `loss` makes of it, its own loss, or the sum of all that can be trained."""
    if loss is not None:
        count = getattr(getattr(loss, "__code__", None), "co_argcount", 1)
        found = loss(out, sample) if count == 2 else loss(out)
        if not isinstance(found, Tensor) or found.numel() != 1:
            raise TypeError(
                f"estimate: loss must return a tensor of one element, got {getattr(found, 'shape', type(found))}"
            )
        return found
    leaves = [x for x in tree_flatten(out)[0] if isinstance(x, Tensor) and x.requires_grad]
    if not leaves:
        raise RuntimeError("estimate: the model's output does not require grad: pass train=False to estimate inference")
    own = next((x for x in leaves if x.numel() == 1), None)
    return own if own is not None else sum_of(leaves)


def sum_of(leaves: list[Tensor]) -> Tensor:
    """The sum of the elements of tensors."""
    total: Tensor = leaves[0].sum()
    for x in leaves[1:]:
        total = total + x.sum()
    return total


def state_shapes(optimizer: Any, group: dict[str, Any], like: Tensor) -> list[tuple[Any, Any]]:
    """Shapes and dtypes of an optimizer's state of a parameter with as many dimensions, in terms of `PRIMES`.

    One step of a small parameter says it, whatever the optimizer.
    """
    p = Parameter(wrap(np.ones(PRIMES[: like._held.ndim], like._held.dtype)))
    p.grad = wrap(np.ones_like(p._held))
    probe = copy.copy(optimizer)
    probe.state, probe.param_groups = defaultdict(dict), [{**group, "params": [p]}]
    for name in [name for name in probe.__dict__ if name.endswith("_hooks")]:
        probe.__dict__[name] = type(probe.__dict__[name])()
    with Setting("grad", True):
        probe.step(lambda: 0.0) if needs_closure(probe) else probe.step()
    leaves = tree_flatten(probe.state.get(p, {}))[0]
    return [(x._held.shape, None if x._held.dtype == like._held.dtype else x._held.dtype)
            for x in leaves if isinstance(x, Tensor)]  # fmt: skip


def kind_of(group: dict[str, Any]) -> str:
    """What decides the state of a group's parameters: its options."""
    return repr(sorted((k, repr(v)) for k, v in group.items() if k not in ("params", "param_names")))


def needs_closure(optimizer: object) -> bool:
    """Whether `step` evaluates the model itself."""
    return type(optimizer).__name__ == "LBFGS"


def scaled(shape: Any, actual: tuple[int, ...]) -> tuple[int, ...]:
    """A shape in terms of `PRIMES` for a parameter of shape `actual`."""
    sizes = dict(zip(PRIMES, actual, strict=False)) | {math.prod(PRIMES[: len(actual)]): math.prod(actual)}
    if len(actual) == 1:
        sizes = {PRIMES[0]: actual[0]}
    return tuple(sizes.get(n, n) for n in shape)
