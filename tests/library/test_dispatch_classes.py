"""Tensor classes with `__torch_dispatch__`: what they are asked, what becomes of their answers, and what they are made of."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight._C import DisableTorchDispatch
from rushlight.nn import functional as F
from rushlight.ops.python import unread
from rushlight.utils import _python_dispatch as dispatch
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map

LOG: list[str] = []


class Logged(torch.Tensor):
    """A tensor around another, which writes down what it is asked."""

    @staticmethod
    def __new__(cls: Any, elem: Any, requires_grad: bool = False) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, device=elem.device,
            requires_grad=requires_grad,
        )  # fmt: skip
        made.elem = elem
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(str(func))
        given = tree_map(inner, (args, kwargs or {}))
        out = func(*given[0], **given[1])
        return dispatch.return_and_correct_aliasing(func, args, kwargs, tree_map(outer, out))


def inner(x: Any) -> Any:
    """What a logged tensor is around."""
    return x.elem if isinstance(x, Logged) else x


def outer(x: Any) -> Any:
    """A tensor as a logged one."""
    return Logged(x) if isinstance(x, torch.Tensor) else x


class Scaled(torch.Tensor):
    """A weight of 8-bit integers and one number, which multiplies by what it stands for."""

    @staticmethod
    def __new__(cls: Any, whole: Any, scale: float) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=torch.float32)
        made.whole, made.scale = whole, scale
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def of(x: Any) -> Any:
        scale = float(x.abs().max()) / 127
        return Scaled((x / scale).round().to(torch.int8), scale)

    def plain(self) -> Any:
        return self.whole.to(torch.float32) * self.scale

    def __tensor_flatten__(self) -> Any:
        return ["whole"], self.scale

    @classmethod
    def __tensor_unflatten__(cls, parts: Any, scale: Any, size: Any, stride: Any) -> Any:
        return cls(parts["whole"], scale)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aten = torch.ops.aten
        if func in (aten.detach.default, aten.t.default, aten.clone.default):
            return cls(func(args[0].whole), args[0].scale)
        if func in (aten.mm.default, aten.addmm.default):
            return func(*(x.plain() if isinstance(x, cls) else x for x in args))
        return NotImplemented


@pytest.fixture(autouse=True)
def _empty() -> None:
    LOG.clear()


def logged(*values: float, grad: bool = True) -> Any:
    return Logged(torch.tensor(values), requires_grad=grad)


def test_operators_forward_and_backward_are_those_of_pytorch_under_its_names() -> None:
    x, y = logged(1.0, 2.0, 3.0), logged(4.0, 5.0, 6.0)
    z = (x * y).sum()
    assert type(z) is Logged and z.grad_fn.name() == "SumBackward0" and z.requires_grad
    z.backward()
    assert LOG == ["aten.mul.Tensor", "aten.sum.default", "aten.ones_like.default", "aten.expand.default", "aten.mul.Tensor",
                   "aten.mul.Tensor", "aten.detach.default", "aten.detach.default"]  # fmt: skip
    assert type(x.grad) is Logged and x.grad.elem.tolist() == [4, 5, 6] and y.grad.elem.tolist() == [1, 2, 3]
    former = x.grad
    (x * 2).sum().backward()
    assert x.grad is former and former.elem.tolist() == [6, 7, 8] and LOG[-1] == "aten.add_.Tensor"


def test_arguments_are_those_of_pytorch() -> None:
    calls: list[Any] = []

    class Told(Logged):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append((str(func), types, args[1:], kwargs))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Told(torch.arange(12.0).reshape(3, 4))
    x.sum(1)
    torch.softmax(x, 1)
    x[1:]
    x[:, 0]
    x.add_(x, alpha=2)
    x.to(torch.float64)
    F.layer_norm(x, (4,))
    assert [(name, args) for name, _, args, _ in calls[:2]] == [("aten.sum.dim_IntList", ([1],)), ("aten._softmax.default", (1, False))]  # fmt: skip
    assert [(name, args) for name, _, args, _ in calls[2:4]] == [
        ("aten.slice.Tensor", (0, 1, 2**63 - 1)),
        ("aten.select.int", (1, 0)),
    ]
    assert calls[4][0] == "aten.add_.Tensor" and calls[4][3] == {"alpha": 2} and calls[4][1] == (Told,)
    assert calls[5][0] == "aten._to_copy.default" and calls[5][3] == {"dtype": torch.float64}
    assert calls[6][0] == "aten.native_layer_norm.default" and calls[6][2] == ([4], None, None, 1e-05)


def test_a_wrapper_has_a_shape_and_no_memory() -> None:
    x = Logged(torch.arange(6.0, dtype=torch.float64).reshape(2, 3).t())
    assert x.shape == (3, 2) and x.stride() == (1, 3) and x.dtype is torch.float64 and not x.is_contiguous()
    assert x.data_ptr() == 0 and x.numel() == 6 and x.storage_offset() == 0 and x.is_leaf and len(x) == 3
    for values in (x.numpy, x.tolist, lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match="__torch_dispatch__"):
            values()
    with pytest.raises(NotImplementedError, match="is known to the class alone"):
        np.add(x._array, 1)
    for values in (lambda: x._array[0, 0], lambda: np.asarray(x._array), lambda: x._array.sum(), lambda: x._array + 1):
        with pytest.raises(NotImplementedError, match="is known to the class alone"):
            values()
    assert repr(x) == "Logged(..., size=(3, 2), dtype=torch.float64)" and LOG == []
    assert x.sum().item() == 15.0 and bool(x.sum()) and float(x.max()) == 5.0
    placed = torch.Tensor._make_wrapper_subclass(
        Logged, (2,), strides=(2,), storage_offset=3, device="meta", requires_grad=True
    )
    assert (
        str(placed.device) == "meta"
        and placed.storage_offset() == 3
        and placed.stride() == (2,)
        and placed.requires_grad
    )


def test_what_cannot_be_a_wrapper_is_refused() -> None:
    with pytest.raises(TypeError, match="has no __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(type("Plain", (torch.Tensor,), {}), (2,))
    with pytest.raises(TypeError, match="must be a subclass of Tensor"):
        torch.Tensor._make_wrapper_subclass(int, (2,))
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        torch.Tensor._make_wrapper_subclass(Logged, (2,), colour=1)


def test_a_class_with_memory_runs_operators_on_it_by_super() -> None:
    seen: list[str] = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = torch.Tensor._make_subclass(Seen, torch.ones(3), True)
    y = x * 2
    assert type(y) is torch.Tensor and y.requires_grad and seen == ["aten.mul.Tensor"]
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert type(torch.ones(2).as_subclass(Seen) + 1) is torch.Tensor and seen[-1] == "aten.add.Tensor"


def test_gradients_of_all_kinds_are_those_of_plain_tensors() -> None:
    torch.manual_seed(0)
    image, kernel = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    rows = torch.randn(4, 6)
    calls = [
        (lambda x, w: F.conv2d(x, w, padding=1), (image, kernel)),
        (lambda x: F.max_pool2d(x, 2), (image,)),
        (lambda x: F.gelu(x).relu().tanh().sigmoid(), (rows,)),
        (lambda x: F.layer_norm(x, (6,)), (rows,)),
        (lambda x: F.group_norm(x, 3), (image,)),
        (lambda x: F.cross_entropy(x, torch.tensor([0, 5, 2, 1]), label_smoothing=0.1), (rows,)),
        (lambda x: x.std(1) + x.var(1) + x.norm(2, 1) + x.logsumexp(1) + x.prod(1) + x.amax(1), (rows,)),
        (lambda x: torch.maximum(x, x.flip(0)) + x.clamp(-0.5, 0.5) + x.clamp(min=0), (rows,)),
        (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (torch.randn(1, 2, 4, 8),)),
        (lambda x: F.embedding(torch.tensor([0, 2, 2]), x), (rows,)),
        (lambda x: x[1:, ::2].t().reshape(-1) @ x[0].repeat(2)[:9], (rows,)),
        (
            lambda x: (
                F.smooth_l1_loss(x, x.roll(1, 0))
                + F.kl_div(x, x.softmax(1), reduction="sum")
                + F.mse_loss(x, x.flip(1))
            ),
            (rows,),
        ),
    ]
    for call, inputs in calls:
        plain = [x.clone().requires_grad_() for x in inputs]
        call(*plain).sum().backward()  # type: ignore[no-untyped-call]
        wrapped = [Logged(x, requires_grad=True) for x in inputs]
        call(*wrapped).sum().backward()  # type: ignore[no-untyped-call]
        for x, y in zip(plain, wrapped, strict=True):
            torch.testing.assert_close(y.grad.elem, x.grad, rtol=1e-4, atol=1e-5)


def test_second_derivatives_go_through_the_class() -> None:
    x = logged(1.0, 2.0)
    (g,) = torch.autograd.grad((x.sigmoid() * x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), x)
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    (h,) = torch.autograd.grad((plain.sigmoid() * plain**3).sum(), plain, create_graph=True)
    torch.testing.assert_close(second.elem, torch.autograd.grad(h.sum(), plain)[0])


def test_changes_in_place_are_recorded_and_views_follow() -> None:
    x = logged(1.0, 2.0, 3.0, 4.0)
    y = x.clone()
    part = y.view(2, 2)
    part.mul_(2)
    assert part._is_view() and part._base is y and y.elem.tolist() == [2, 4, 6, 8]
    y[0] = 0.0
    y.sum().backward()
    assert x.grad.elem.tolist() == [0, 2, 2, 2] and type(x.grad) is Logged
    with pytest.raises(RuntimeError, match="leaf"):
        x.mul_(2)
    z = logged(1.0)
    w = z.exp()
    w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.sum().backward()
    v = logged(2.0, grad=False)
    r = logged(3.0)
    product = r.relu() * v
    v.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_saved_inputs_of_rules_are_checked_for_changes() -> None:
    x = logged(1.0, 2.0)
    y = x.clone()
    z = F.gelu(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = F.gelu(logged(1.0))
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.sum().backward()


def test_a_parameter_around_a_wrapper_is_trained() -> None:
    layer = nn.Linear(3, 2)
    start = layer.weight.detach().clone()
    layer.weight = nn.Parameter(Logged(start.clone()))
    assert isinstance(layer.weight, nn.Parameter) and type(layer.weight) is Logged and layer.weight.is_leaf
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    twin = nn.Linear(3, 2)
    twin.load_state_dict({"weight": start, "bias": layer.bias.detach()})
    for kind, options in ((torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), (torch.optim.AdamW, {}),
                          (torch.optim.Adam, {"amsgrad": True}), (torch.optim.RMSprop, {})):  # fmt: skip
        steps = [kind(m.parameters(), lr=0.1, foreach=False, **options) for m in (layer, twin)]
        for _ in range(3):
            for step, model in zip(steps, (layer, twin), strict=True):
                step.zero_grad()
                model(torch.ones(4, 3)).square().sum().backward()
                step.step()
        torch.testing.assert_close(layer.weight.elem, twin.weight.detach(), rtol=1e-5, atol=1e-5)
    assert "aten.t.default" in LOG and "aten.addmm.default" in LOG and "aten.addcdiv_.default" in LOG
    state = layer.state_dict()
    assert type(state["weight"]) is Logged
    layer.load_state_dict(state)


def test_a_quantized_weight_is_used_by_a_layer_and_is_made_of_its_parts() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(4, 3)
    dense = layer.weight.detach().clone()
    layer.weight = nn.Parameter(Scaled.of(dense), requires_grad=False)
    x = torch.randn(2, 4, requires_grad=True)
    out = layer(x)
    assert type(out) is torch.Tensor
    torch.testing.assert_close(out, F.linear(x, dense, layer.bias), rtol=0.05, atol=0.05)
    out.sum().backward()
    torch.testing.assert_close(x.grad, layer.weight.plain().sum(0).expand(2, 4))
    assert dispatch.is_traceable_wrapper_subclass(layer.weight) and not dispatch.is_traceable_wrapper_subclass(x)
    turned = dispatch.transform_subclass(layer.weight, lambda name, part: -part)
    assert type(turned) is Scaled and (turned.whole == -layer.weight.whole).all()
    with pytest.raises(RuntimeError, match="expected \\[4, 3\\]"):
        dispatch.transform_subclass(layer.weight, lambda name, part: part, outer_size=(4, 3))
    with pytest.raises(
        TypeError, match=r"(?s)Multiple dispatch failed for 'torch\.ops\.aten\.sin\.default'; all.*Scaled"
    ):
        layer.weight.sin()


def test_copies_and_files_have_what_the_class_holds() -> None:
    x = logged(1.0, 2.0)
    x.label = "mine"
    deep = copy.deepcopy(x)
    assert type(deep) is Logged and deep.elem is not x.elem and deep.label == "mine" and deep.requires_grad
    shallow = copy.copy(x)
    assert type(shallow) is Logged and shallow.elem is x.elem
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    with torch.serialization.safe_globals([Logged]):
        read = torch.load(file)["x"]
    assert type(read) is Logged and read.elem.tolist() == [1, 2] and read.requires_grad and read.label == "mine"

    class Wrong(Logged):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.ones(2)

    with pytest.raises(RuntimeError, match="__deepcopy__"):
        copy.deepcopy(Wrong(torch.ones(2)))
    with pytest.raises(RuntimeError, match="detach"):
        nn.Parameter(Wrong(torch.ones(2)))


def test_modes_come_first_and_then_classes() -> None:
    seen: list[Any] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((str(func), types))
            return func(*args, **(kwargs or {}))

    class Silent(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = logged(1.0, 2.0)
    with Mode():
        (x * 3).sum().backward()
    assert seen[0] == ("aten.mul.Tensor", (Logged,)) and LOG[0] == "aten.mul.Tensor" and x.grad.elem.tolist() == [3, 3]
    assert [name for name, _ in seen] == LOG
    with Silent():
        assert (x * 3).elem.tolist() == [3, 6]
        with pytest.raises(TypeError, match="Multiple dispatch failed"):
            torch.ones(2).mul(2)
        with pytest.raises(TypeError, match="Multiple dispatch failed"):
            torch.ones(2).mul_(2)
    with Silent(), Mode():
        assert x.mul(3).elem.tolist() == [3, 6]


def test_out_is_written_by_copying() -> None:
    x, out = Logged(torch.ones(2)), Logged(torch.zeros(2))
    assert torch.add(x, x, out=out) is out and out.elem.tolist() == [2, 2] and LOG[-1] == "aten.copy_.default"


def test_subclasses_are_asked_before_their_superclasses_and_others_from_the_left() -> None:
    class Inner(Logged):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            LOG.append("inner")
            return NotImplemented

    x, y = Logged(torch.ones(2)), Inner(torch.ones(2))
    assert (x + y).elem.tolist() == [2, 2] and LOG == ["inner", "aten.add.Tensor"]


def test_functions_that_are_no_operators_ask_too() -> None:
    x = Logged(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    assert x.nonzero().elem.tolist() == [[0, 1], [1, 0]] and len(x.nonzero(as_tuple=True)) == 2
    assert torch.equal(x, x) and torch.allclose(x, x) and 3.0 in x and 5.0 not in x
    assert torch.zeros_like(x).elem.tolist() == [[0, 0], [0, 0]] and type(x.new_ones(2)) is Logged
    assert x.new_full((2,), 7.0).elem.tolist() == [7, 7] and type(torch.rand_like(x)) is Logged
    assert F.one_hot(Logged(torch.tensor([0, 2])), 3).elem.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert x.unique().elem.tolist() == [0, 2, 3]
    assert (
        type(torch.ones_like(x, requires_grad=True)) is Logged and torch.ones_like(x, requires_grad=True).requires_grad
    )
    x.t_()
    assert x.elem.tolist() == [[0, 3], [2, 0]]
    with pytest.raises(RuntimeError, match="use squeeze"):
        logged(1.0).clone().squeeze_()
    names = {name.split(".")[1] for name in LOG}
    assert {
        "nonzero",
        "equal",
        "allclose",
        "zeros_like",
        "new_ones",
        "new_full",
        "rand_like",
        "_unique2",
        "t_",
    } <= names


def test_without_dispatch_nobody_is_asked() -> None:
    from rushlight.compat.rooms.private._mode_utils import no_dispatch

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("asked")

    x = torch.Tensor._make_subclass(Refusing, torch.ones(3))
    for context in (no_dispatch(), torch._C._DisableTorchDispatch()):
        with context:
            assert (x + 1).tolist() == [2, 2, 2]
            with pytest.raises(NotImplementedError, match="is known to the class alone"):
                _ = Logged(torch.ones(2)) + 1
    with pytest.raises(AssertionError, match="asked"):
        _ = x + 1


def test_other_threads_and_transformations_ask_too() -> None:
    x, got = logged(1.0, 2.0), []
    thread = threading.Thread(target=lambda: got.append(type(x * 2)))
    thread.start()
    thread.join()
    assert got == [Logged]
    assert torch.func.grad(lambda v: (v * v).sum())(Logged(torch.tensor([1.0, 3.0]))).elem.tolist() == [2, 6]
    y = logged(1.0, 2.0)
    torch.utils.checkpoint.checkpoint(lambda v: (v * v).sin(), y, use_reentrant=False).sum().backward()
    torch.testing.assert_close(y.grad.elem, 2 * y.elem * (y.elem**2).cos())


def test_custom_functions_and_hooks_see_the_class() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.elem * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (saved,) = ctx.saved_tensors
            assert type(saved) is Logged
            return Logged(g * 2)

    x, seen = logged(1.0, 2.0), []
    x.register_hook(lambda g: seen.append(type(g)))
    y = Double.apply(x)
    assert type(y) is torch.Tensor
    y.sum().backward()
    assert seen == [Logged] and x.grad.elem.tolist() == [2, 2]


def test_plain_tensors_pay_nothing_once_no_such_tensor_is_there() -> None:
    gc.collect()
    assert not unread.alive
    x = logged(1.0)
    assert torch.basics.state.modes.levels and unread.alive
    del x
    gc.collect()
    (
        torch.ones(2, dtype=torch.float64) * torch.ones(2)
    ).sum()  # of two dtypes: by the general path, which finds nobody there
    assert not unread.alive
    levels = [level for level in torch.basics.state.modes.levels if level is torch.basics.state.special.classes]
    assert not levels


VIEWS: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x.t(), "view": lambda x: x.view(4, 3), "index": lambda x: x[1:], "unsqueeze": lambda x: x.unsqueeze(0),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 3), "select": lambda x: x.select(1, 2), "split": lambda x: x.split(2)[1],
    "expand": lambda x: x.expand(2, 3, 4), "diagonal": lambda x: x.diagonal(), "unfold": lambda x: x.unfold(1, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_what_has_no_memory_say_shapes_where_classes_are_not_asked(name: str) -> None:
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError("nobody asks")

    inner = torch.arange(12.0).view(3, 4)
    outer, expected = Wrapper(inner), VIEWS[name](inner)
    result = Wrapper(torch.empty_strided(expected.shape, expected.stride()))
    with DisableTorchDispatch():
        seen = VIEWS[name](outer)
        assert (seen.shape, seen.stride(), seen.storage_offset()) == (expected.shape, expected.stride(), expected.storage_offset())  # fmt: skip
        assert result.set_(seen) is result and result.storage_offset() == expected.storage_offset()
        with pytest.raises(NotImplementedError, match="taken as an array"):
            outer + 1
        with pytest.raises(NotImplementedError, match="taken as an array"):
            seen + 1


class Answering(torch.Tensor):
    """A tensor for which a function answers."""

    @staticmethod
    def __new__(cls: Any, answer: Any, size: Any = (2,), **options: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, size, **options)
        made.answer = answer
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0].answer(func, args, kwargs)


def test_operators_of_python_ask_the_other_operand_where_classes_have_no_answer() -> None:
    class Other:
        def __radd__(self, other: object) -> str:
            return "added"

    silent = Answering(lambda *call: NotImplemented)
    assert silent + Other() == "added"
    with pytest.raises(TypeError, match="unsupported operand"):
        silent + 1
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.ops.aten.add.Tensor'"):
        silent.add(1)


def test_what_is_no_tensor_is_refused_as_an_answer() -> None:
    with pytest.raises(RuntimeError, match=r"Unable to cast 'arf' to Tensor"):
        Answering(lambda *call: "arf").neg()


def test_operators_are_handed_python_numbers_and_give_lists() -> None:
    seen: list[Any] = []

    def answer(func: Any, args: Any, kwargs: Any) -> Any:
        seen.append((func.__module__, func.__name__, args[1:], kwargs))
        return torch.ones(2)

    x = Answering(answer)
    x.masked_fill(torch.ones(2) > 0, 0.0)
    x.var(0)
    assert seen[0][:2] == ("torch._ops.aten", "masked_fill.Scalar") and type(seen[0][2][1]) is float
    assert seen[1][3] == {"correction": 1} and type(seen[1][3]["correction"]) is int
    assert (
        type(torch.ops.aten.split.Tensor(torch.ones(2), 1)) is list
        and type(torch.ops.aten.unbind(torch.ones(2))) is list
    )
    assert type(torch.ops.aten.sort.default(torch.ones(2))) is not list


def test_sizes_and_strides_of_what_has_no_memory_go_together() -> None:
    for error, words, size, options in (
        (TypeError, "must be tuple of ints", 3, {}), (RuntimeError, "setting storage offset without stride", (2,), {"storage_offset": 1}),
        (RuntimeError, "must match dimensionality of strides", (2, 3), {"strides": (1,)}), (RuntimeError, "Only Tensors", (2,), {"dtype": torch.int64, "requires_grad": True}),
        (ValueError, "Unknown sizes_strides_policy", (2,), {"dispatch_sizes_strides_policy": "x"}),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            Answering(None, size, **options)
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        Answering(None).item()
    assert torch.Tensor.__repr__(Answering(None), tensor_contents="shown") == "Answering(shown)"


def test_classes_have_the_attributes_of_tensors_as_they_are() -> None:
    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    t: Any = torch.Tensor._make_wrapper_subclass(Wrapper, (2,), device="meta")  # type: ignore[attr-defined]
    for name in ("size", "stride", "dtype", "layout", "device", "requires_grad"):
        assert getattr(t.__class__, name) is getattr(torch.Tensor, name)
    assert t.device.type == "meta" and torch._C.parse_schema("a::f(Tensor x) -> Tensor").name == "a::f"


class Kept(torch.Tensor):
    """A tensor without memory, with an attribute that tensors have as a method, and one in a slot."""

    __slots__ = ("slot",)

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Kept:
        t: Any = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)  # type: ignore[attr-defined]
        t.diag, t.slot = inner, inner + 1
        return t

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*tree_map(lambda x: x.diag if isinstance(x, Kept) else x, args), **(kwargs or {}))
        return cls(found) if isinstance(found, torch.Tensor) else found

    def __repr__(self) -> str:  # type: ignore[override]
        return super().__repr__(tensor_contents="x")  # type: ignore[call-arg]


def through_a_file(t: Any) -> Any:
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    with torch.serialization.safe_globals([Kept]):
        return torch.load(file)


@pytest.mark.parametrize("copied", [through_a_file, copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
@pytest.mark.parametrize("parameter", [False, True])
def test_attributes_of_such_tensors_are_kept(copied: Callable[[Any], Any], parameter: bool) -> None:
    t: Any = Kept(torch.tensor([2.0, 3.0]))
    found = copied(nn.Parameter(t) if parameter else t)
    assert type(found) is Kept and found.diag.tolist() == [2, 3] and found.slot.tolist() == [3, 4]
    assert isinstance(found, nn.Parameter) == parameter


def test_parameters_of_such_classes_say_so() -> None:
    assert repr(nn.Parameter(Kept(torch.ones(2)))) == "Parameter(Kept(x, requires_grad=True))"
    assert repr(Kept(torch.ones(2))) == "Kept(x)"
    assert torch.Tensor._make_subclass(nn.Parameter, torch.ones(2), require_grad=True).requires_grad  # type: ignore[attr-defined]
