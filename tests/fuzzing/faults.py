"""Faults to plant in rushlight, each with the kinds of programs that must notice it.

``python -m tests.fuzzing.faults NAME SECONDS FIRST AT`` plants one and prints the programs that differ, as ``--replay`` takes
them, and the seconds of processor time that it took, of which it has so many. It begins with program number FIRST, and
keeps in the file AT which program it runs and on which side, for a reference that ends the process.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

FAULTS: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {}
Plant = Callable[[], None]


def noticed_by(*kinds: str) -> Callable[[Plant], Plant]:
    """Enter a fault into the table."""

    def enter(plant: Plant) -> Plant:
        FAULTS[plant.__name__] = (kinds, plant)
        return plant

    return enter


def formula(name: str, change: Callable[..., Any], index: int = 0) -> None:
    """Change what a gradient formula of an operator gives."""
    from rushlight.dispatch.declare import OPS

    found = OPS[name].formulas[index]
    former, requests = found.fn, found.requests
    found.fn = lambda *args, **kwargs: change(former(*args, **kwargs), dict(zip(requests, args), **kwargs))
    found.raw = None
    vars(OPS[name])["inline"] = {}


def forward(name: str, change: Callable[..., Any]) -> None:
    """Change what the forward of an operator gives."""
    from rushlight.dispatch.declare import OPS

    op = OPS[name]
    former = op.forward
    vars(op).update(forward=lambda *args, **kwargs: change(former(*args, **kwargs), *args), large=None)


@noticed_by("views")
def a_version_is_not_counted() -> None:
    from rushlight.engine import inplace

    inplace.written = lambda tensor, name: None  # type: ignore[assignment]


@noticed_by("operators")
def a_broadcast_sum_takes_the_mean() -> None:
    from rushlight.engine import conform

    former = conform.add_up
    conform.add_up = lambda g, axes, *rest: former(g, axes, *rest) / np.prod([g.shape[i] for i in axes])  # type: ignore[assignment]


@noticed_by("hooks")
def a_hook_is_called_twice() -> None:
    from rushlight.engine import hooks

    former = hooks.call_hook
    hooks.call_hook = lambda hook, node, what, *args: (
        former(hook, node, what, *args),
        former(hook, node, what, *args),
    )[1]


@noticed_by("hooks")
def hooks_are_called_last_to_first() -> None:
    from rushlight.basics.handles import Hooks

    former = Hooks.values
    Hooks.values = lambda self: list(former(self))[::-1]


@noticed_by("transforms")
def a_tangent_is_stale_after_a_change() -> None:
    from rushlight.transforms.dual import DualLevel

    DualLevel.change = lambda self, target, tangent: None  # type: ignore[method-assign]


@noticed_by("transforms")
def a_tangent_loses_its_sign() -> None:
    from rushlight.transforms.dual import DualLevel

    former = DualLevel.give
    DualLevel.give = lambda self, x, tangent: former(self, x, tangent.abs())  # type: ignore[method-assign]


@noticed_by("views")
def a_view_is_a_copy() -> None:
    from rushlight.dispatch.declare import OPS

    for name in ("permute", "select", "diagonal", "unsqueeze", "index"):
        if name in OPS:
            forward(name, lambda out, *rest: out.copy())


@noticed_by("operators")
def integers_overflow() -> None:
    def narrow(out: Any, *rest: Any) -> Any:
        whole = np.asarray(out)
        return whole.astype(np.int8).astype(whole.dtype) if whole.dtype.kind == "i" else out

    for name in ("sum", "prod", "cumsum", "add", "mul"):
        forward(name, narrow)


@noticed_by("operators", "views")
def a_gradient_is_twice_too_large() -> None:
    formula("tanh", lambda g, given: g * 2)


@noticed_by("operators", "views")
def a_conjugate_is_missing() -> None:
    from rushlight.ops.elementwise import arith

    for name in ("exp", "sin", "mul"):
        formula(name, lambda g, given: g if not np.iscomplexobj(getattr(g, "_array", g)) else arith.conj(g))


@noticed_by("operators", "layers")
def a_kink_has_the_wrong_side() -> None:
    def change(g: Any, given: dict[str, Any]) -> Any:
        out = given.get("out", given.get("input"))
        return g if not isinstance(g, np.ndarray) else np.where(np.asarray(out) == 0, given["g"], g)

    formula("relu", change)


@noticed_by("grads")
def a_kept_graph_is_freed() -> None:
    from rushlight.engine import run

    former = run.Run.__init__

    def init(self: Any, keep_graph: bool, create_graph: bool, *rest: Any) -> None:
        former(self, create_graph, create_graph, *rest)

    run.Run.__init__ = init  # type: ignore[method-assign]


@noticed_by("operators", "views")
def a_mask_is_inverted_where_it_is_not_contiguous() -> None:
    from rushlight.dispatch.declare import OPS

    op = OPS["where"]
    former = op.forward
    vars(op)["forward"] = lambda c, x, y: former(
        c if getattr(c, "flags", None) is None or c.flags.c_contiguous else ~c, x, y
    )


@noticed_by("views")
def a_change_of_a_view_is_no_history_of_its_base() -> None:
    from rushlight.engine import inplace

    former = inplace.rebase

    def rebase(tensor: Any, edge: Any) -> None:
        if tensor._view is None:
            former(tensor, edge)

    inplace.rebase = rebase


@noticed_by("modes")
def no_grad_leaks_out_of_its_block() -> None:
    from rushlight.engine import modes

    former = modes.no_grad.__exit__

    def leave(self: Any, kind: Any, error: Any, tb: Any) -> None:
        former(self, kind, error, tb)
        modes.set_mode("grad", self.__class__ is not modes.no_grad)

    modes.no_grad.__exit__ = leave  # type: ignore[method-assign]


@noticed_by("transforms")
def a_batched_dimension_is_off_by_one() -> None:
    from rushlight.transforms.batching import moves

    former = moves.further
    moves.further = lambda d, ndim: d if isinstance(d, int) and d > 0 else former(d, ndim)


@noticed_by("hooks", "views")
def gradients_overwrite_each_other() -> None:
    from rushlight.engine import accumulate

    def array(leaf: Any, g: Any) -> None:
        leaf._grad = None
        former(leaf, g)

    former = accumulate.accumulate_array
    accumulate.accumulate_array = array
    from rushlight.engine import run

    run.accumulate_array = array  # type: ignore[attr-defined]


@noticed_by("views")
def a_saved_result_makes_a_cycle() -> None:
    from rushlight.engine import saved

    former = saved.SavedOutput.__init__

    class Keeping(saved.SavedOutput):
        __slots__ = ("kept",)

        def __init__(self, tensor: Any, nr: int) -> None:
            former(self, tensor, nr)
            self.kept = tensor

    from rushlight.dispatch import call

    call.SavedOutput = Keeping  # type: ignore[misc]


@noticed_by("views", "grads")
def a_leaf_may_be_changed_in_place() -> None:
    from rushlight.engine import inplace

    inplace.check = lambda tensor, requires_grad: None


@noticed_by("views", "grads")
def a_changed_saved_tensor_is_not_noticed() -> None:
    from rushlight.storage import Storage

    Storage.version = property(lambda self: 0, lambda self, value: None)  # type: ignore[assignment, misc]


@noticed_by("operators", "grads")
def second_derivatives_lose_a_term() -> None:
    formula("sigmoid", lambda g, given: g.detach() * 1 if hasattr(g, "detach") else g)


@noticed_by("grads")
def unused_inputs_have_gradients_of_zero() -> None:
    import rushlight
    from rushlight.autograd import run

    former = run.grad

    def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs["materialize_grads"] = kwargs.get("allow_unused") is not False or kwargs.get("materialize_grads", False)
        return former(outputs, inputs, *args, **kwargs)

    rushlight.autograd.grad = grad


@noticed_by("layers")
def weight_decay_has_the_wrong_sign() -> None:
    from rushlight.optim import SGD

    former = SGD._options

    def options(self: Any, group: dict[str, Any]) -> Any:
        lr, momentum, dampening, decay, *rest = former(self, group)
        return (lr, momentum, dampening, -decay, *rest)

    SGD._options = options  # type: ignore[method-assign]


@noticed_by("layers")
def a_schedule_is_a_step_ahead() -> None:
    from rushlight.optim.lr_scheduler import ExponentialLR

    ExponentialLR.get_lr = lambda self: [g["lr"] * self.gamma**2 for g in self.optimizer.param_groups]  # type: ignore[method-assign]


@noticed_by("layers")
def buffers_are_not_loaded() -> None:
    from rushlight.nn import Module

    former = Module.load_state_dict

    def load(self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        own = dict(self.named_buffers())
        return former(self, {k: own.get(k, v) for k, v in state.items()}, *args, **kwargs)

    Module.load_state_dict = load


@noticed_by("memory")
def a_store_rounds_what_it_keeps() -> None:
    from rushlight.stores import chain

    former = chain.unpack

    def unpack(packed: Any) -> Any:
        tensor = former(packed)
        return tensor.half().to(tensor.dtype) if tensor.is_floating_point() else tensor

    chain.unpack = unpack


@noticed_by("functions")
def an_output_without_gradient_gets_one() -> None:
    from rushlight.autograd import function

    function.FunctionCtx.mark_non_differentiable = lambda self, *tensors: None


@noticed_by("functions")
def absent_gradients_are_always_zeros() -> None:
    from rushlight.autograd import function

    function.FunctionCtx.set_materialize_grads = lambda self, value: None


@noticed_by("saved")
def a_saved_tensor_is_unpacked_twice() -> None:
    from rushlight.engine import saved

    former = saved.Packed.unpack
    saved.Packed.unpack = lambda self: (former(self), former(self))[1]  # type: ignore[method-assign]


@noticed_by("threads")
def threads_overwrite_gradients_of_each_other() -> None:
    from contextlib import nullcontext

    from rushlight.engine import accumulate

    accumulate.LOCKS = (nullcontext(),) * 64  # type: ignore[assignment]
    accumulate.became = lambda leaf, g: setattr(leaf, "_grad", g) is None


@noticed_by("threads")
def a_thread_begins_in_the_mode_of_another() -> None:
    from rushlight.basics import state

    first = state.modes.__dict__
    state._Modes.__init__ = lambda self: self.__dict__.update(first)  # type: ignore[misc]


@noticed_by("transforms")
def results_are_detached_with_their_tangents() -> None:
    from rushlight.func import transform

    transform.out_of_graphs = lambda x: x._array.level.detached(x)


@noticed_by("general")
def the_fast_path_forgets_a_factor() -> None:
    from rushlight.dispatch.declare import OPS

    OPS["mul"].inline.update({name: f"2 * ({source})" for name, source in OPS["mul"].inline.items()})
    found = OPS["sin"].formulas[0]
    exact = found.fn
    found.raw, found.raw_requests = (lambda g, input: exact(g, input) * 1.001), ("g", "input")


@noticed_by("native")
def a_kernel_differs_from_its_reference() -> None:
    from rushlight.kernels import elementwise

    former = elementwise._normal_cdf
    elementwise._normal_cdf = lambda x: former(x) * 1.001  # what runs where there are no native kernels


@contextmanager
def planted(name: str) -> Any:
    """The fault, for as long as the process lives: what was generated from it stays."""
    FAULTS[name][1]()
    yield FAULTS[name][0]


def main(name: str, seconds: float, first: int, at: str) -> None:
    """Print programs that differ while the fault is there, for so many seconds of processor time."""
    from tools.fuzzing.judging import judge
    from tools.fuzzing.kinds import kind
    from tools.fuzzing.program import Overtime, entering
    from tools.fuzzing.worker import Worker

    number = first
    place = os.open(at, os.O_WRONLY | os.O_CREAT)
    worker = Worker()
    entering.set(lambda side: os.pwrite(place, f"{number:12} {side.library.__name__ != 'torch':d}".encode(), 0))
    with planted(name) as kinds:
        for number in itertools.count(first):
            if time.process_time() > seconds:
                return
            chosen = kinds[number % len(kinds)]
            try:
                _, found = worker.differences(kind(chosen), f"planted:{number}")
            except Overtime:
                continue
            if judge(found, kind(chosen).ignored)[0]:
                print(f"{chosen}:planted:{number}", time.process_time(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
