"""Names that programs made for PyTorch reach without importing them, and small functions of its own modules."""

import pickle
from collections import namedtuple

import numpy as np
import pytest
from tests.processes import printed_as_torch

import rushlight as torch
from rushlight.autograd import functional
from rushlight.compat import reached
from rushlight.compat.rooms import _guards, _utils
from rushlight.compat.rooms._subclasses.fake_tensor import unset_fake_temporarily
from rushlight.optim import lbfgs, lr_scheduler
from rushlight.profiler import scheduled
from rushlight.utils.data._utils.pin_memory import pin_memory

PROGRAM = """
import functools, importlib, torch
from rushlight.compat.reached import BELOW
for parent, names in BELOW.items():
    for name in names.split():
        module = functools.reduce(getattr, [*parent.split(".")[1:], name], torch)
        assert module is importlib.import_module(f"{parent}.{name}"), (parent, name)
assert torch.cuda.amp.common.amp_definitely_not_available() and not hasattr(torch.nn, "nonesuch")
from torch.utils.data.dataloader import Dataset
from torch.functional import F
from torch.random import Generator
assert Dataset is torch.utils.data.Dataset and F is torch.nn.functional and Generator is torch.Generator
assert torch.AcceleratorError.__module__ == "torch" and issubclass(torch.AcceleratorError, RuntimeError)
torch._functorch.config.donated_buffer = False
"""


def test_modules_are_reached_by_dots() -> None:
    printed_as_torch(PROGRAM)


def test_a_module_is_lent_to_once() -> None:
    module = type(torch)("torch.nn")
    reached.lend(module)
    first = module.__getattr__
    reached.lend(module)
    assert module.__getattr__ is first and module.common_types is not None
    with pytest.raises(AttributeError, match="no attribute"):
        module.nonesuch


def test_tensors_in_lists_of_so_many_bytes() -> None:
    given = [torch.ones(3), torch.ones(2, dtype=torch.int64), torch.ones(2), torch.ones(9), torch.ones(1)]
    lists = list(_utils._take_tensors(given, 20))
    assert [[t.numel() for t in each] for each in lists] == [[3, 2], [9], [2], [1]]
    assert list(_utils._take_tensors([], 20)) == []


def test_nothing_is_compiled() -> None:
    assert _guards.TracingContext.try_get() is None
    with pytest.raises(RuntimeError, match="ongoing trace"):
        _guards.TracingContext.get()
    with _guards.tracing(None) as context, unset_fake_temporarily():
        assert context is None


def test_the_search_along_a_line() -> None:
    x, d = torch.tensor([2.0, -1.0], dtype=torch.float64), torch.tensor([-1.0, 0.5], dtype=torch.float64)
    calls = []

    def objective(x: torch.Tensor, t: float, d: torch.Tensor) -> tuple[float, torch.Tensor]:
        calls.append(t)
        at = x + t * d
        return float((at**4).sum()), 4 * at**3

    loss, grad = objective(x, 0.0, d)
    found, slope, t, count = lbfgs._strong_wolfe(objective, x, 0.1, d, loss, grad, grad.dot(d))
    assert count == len(calls) - 1 and found < loss and found == objective(x, t, d)[0]
    assert abs(float(slope.dot(d))) <= 0.9 * abs(float(grad.dot(d)))
    strict = lbfgs._strong_wolfe(objective, x, 0.1, d, loss, grad, grad.dot(d), c2=0.01)
    assert abs(float(strict[1].dot(d))) <= 0.01 * abs(float(grad.dot(d)))
    assert lbfgs._cubic_interpolate(0, 1.0, torch.tensor(-2.0), 2, 1.0, torch.tensor(2.0)) == pytest.approx(1.0)
    assert lbfgs._cubic_interpolate(0, 1.0, -2.0, 2, 1.0, 2.0, bounds=(1.5, 2)) == 1.5


def test_parts_of_jacobians() -> None:
    a, b = torch.ones(2), torch.ones(1, dtype=torch.float64)
    first, second = functional._construct_standard_basis_for((a, b), (2, 1))
    assert first.tolist() == [[1, 0], [0, 1], [0, 0]] and second.tolist() == [[0], [0], [1]]
    assert first.dtype is torch.float32 and second.dtype is torch.float64
    assert functional._as_tuple(a, "inputs", "f") == (False, (a,))
    graph = (a * a.clone().requires_grad_(),)
    assert functional._grad_postprocess(graph, True)[0] is graph[0]
    assert not functional._grad_postprocess((graph,), False)[0][0].requires_grad
    assert functional._tuple_postprocess((a,), False) is a and functional._tuple_postprocess((a,), True) == (a,)
    assert functional._tuple_postprocess(((a, b),), (False, True)) == (a, b)
    assert functional._tuple_postprocess(((a,), (b,)), (True, False)) == (a, b)
    assert functional._tuple_postprocess(((a,),), (False, False)) is a


def test_whether_a_part_may_run_its_own_backward() -> None:
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(torch.autograd._is_checkpoint_valid()))
    y.sum().backward(retain_graph=True)
    torch.autograd.grad(y.sum(), x)
    assert seen == [True, False] and torch.autograd._is_checkpoint_valid()


def test_whether_something_is_profiled() -> None:
    assert not torch.autograd._profiler_enabled()
    with torch.profiler.profile():
        assert torch.autograd._profiler_enabled()
    assert not torch.autograd._profiler_enabled()
    left = torch.autograd.profiler.profile()
    left.__enter__()
    torch.autograd._disable_profiler()
    assert not torch.autograd._profiler_enabled()
    torch.ones(2).sum()
    assert not left.function_events
    assert scheduled._default_schedule_fn(3) is torch.profiler.ProfilerAction.RECORD


def test_autocast_keeps_copies_where_it_is_told_so() -> None:
    assert torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with torch.autocast("cpu"):
            assert not torch.is_autocast_cache_enabled()
            torch.set_autocast_cache_enabled(True)
            assert torch.is_autocast_cache_enabled()
        with torch.autocast("cpu", cache_enabled=True):
            assert torch.is_autocast_cache_enabled()
        assert not torch.is_autocast_cache_enabled()
    finally:
        torch.set_autocast_cache_enabled(True)


def test_batches_that_are_pinned() -> None:
    Pair = namedtuple("Pair", "a b")
    given = {"a": ["x", b"y", Pair(1, None)], "b": np.float64(2)}
    assert pin_memory(given) == given and isinstance(pin_memory(given)["a"][2], Pair)
    with pytest.raises(RuntimeError, match="no accelerator"):
        pin_memory([torch.ones(2)])


def test_older_names() -> None:
    assert torch.nn.modules.conv._ConvTransposeMixin is torch.nn.modules.conv._ConvTransposeNd
    assert torch.nn.functional._Reduction.get_enum("mean") == 1
    schedule = lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0), 1)
    with lr_scheduler._enable_get_lr_call(schedule):
        assert schedule.get_lr() == [1.0]
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def test_limits_of_pythons_types() -> None:
    assert torch.finfo(float) == torch.finfo(torch.float64) == torch.finfo(complex) and torch.iinfo(int).bits == 64
    for limits, given in (
        (torch.finfo, int),
        (torch.finfo, bool),
        (torch.iinfo, float),
        (torch.iinfo, bool),
        (torch.finfo, str),
    ):
        with pytest.raises(TypeError):
            limits(given)


def test_an_operator_that_a_compiler_may_look_into() -> None:
    @torch.library.triton_op("test_reached::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, g: g * 2)
    x = torch.ones(2, requires_grad=True)
    twice(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and torch.ops.test_reached.twice(x).tolist() == [2, 2]


def test_masks_of_attention() -> None:
    canonical = torch.nn.functional._canonical_mask
    mask = torch.tensor([True, False])
    with pytest.warns(UserWarning, match="mismatched a and b"):
        assert canonical(mask, "a", torch.float32, "b", torch.float64).tolist() == [-np.inf, 0]
    made = canonical(mask, "a", torch.float32, "b", torch.float64, check_other=False)
    assert made.dtype is torch.float64 and canonical(made, "a", None, "b", torch.float32) is made
    assert canonical(None, "a", None, "b", torch.float32) is None
    with pytest.raises(AssertionError, match="only bool and floating types of a"):
        canonical(torch.ones(2, dtype=torch.int64), "a", None, "b", torch.float32)
    assert torch.nn.functional._none_or_dtype(mask) is torch.bool and torch.nn.functional._none_or_dtype(None) is None
    with pytest.raises(RuntimeError, match="must be None or"):
        torch.nn.functional._none_or_dtype(3)


def test_exceptions_are_raised_elsewhere_with_their_traceback() -> None:
    try:
        raise ValueError("of a worker")
    except ValueError:
        wrapped = pickle.loads(pickle.dumps(_utils.ExceptionWrapper(where="in a worker")))
    assert wrapped.exc_type is ValueError and "of a worker" in wrapped.exc_msg
    with pytest.raises(ValueError, match="Caught ValueError in a worker"):
        wrapped.reraise()
