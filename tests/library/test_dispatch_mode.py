"""Modes that see every operator: what they are given, what they may change, and that gradients do not notice them."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import forward_ad
from rushlight.dispatch.declare import OPS
from rushlight.ops.python.aten import overload_of
from rushlight.utils import _python_dispatch as dispatch
from rushlight.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    """The names of operators, in their order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Changing(TorchDispatchMode):
    """What a function makes of the results of one operator."""

    def __init__(self, which: Any, change: Any) -> None:
        self.which, self.change = which, change

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        return self.change(out, *args) if func is self.which else out


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(27, 8),
        nn.LayerNorm(8),
    )


def gradients(mode: Any = None) -> list[Any]:
    model, x = net(), torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    if mode is None:
        model(x).square().sum().backward()
    else:
        with mode:
            model(x).square().sum().backward()
    return [p.grad for p in model.parameters()] + [model[1].running_mean]


def test_operators_are_seen_forward_and_backward_and_gradients_stay_the_same() -> None:
    names = Names()
    for got, expected in zip(gradients(names), gradients(), strict=True):
        torch.testing.assert_close(got, expected)
    assert {"aten.convolution.default", "aten.native_batch_norm.default", "aten.max_pool2d_with_indices.default",
            "aten.t.default", "aten.addmm.default", "aten.native_layer_norm.default"} <= set(names.seen)  # fmt: skip
    assert "aten.threshold_backward.default" in names.seen and "aten.mm.default" in names.seen


def test_a_mode_changes_values_and_not_derivatives() -> None:
    x = torch.ones(3, requires_grad=True)
    with Changing(torch.ops.aten.sin.default, lambda out, x: out * 2):
        y = x.sin()
    y.sum().backward()
    torch.testing.assert_close(y.detach(), 2 * torch.ones(3).sin())
    torch.testing.assert_close(x.grad, torch.ones(3).cos())


def test_operators_are_keys_of_tables_and_may_be_called_with_arguments_of_their_own() -> None:
    class Squeezed(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert {func: 1}[getattr(getattr(torch.ops.aten, func._opname), func._overloadname)] == 1
            if func is torch.ops.aten.squeeze.dims:
                assert func(torch.ones(1, 4), 0).shape == (4,)  # as torch.ops.aten has it
            return func(args[0] * 2, *args[1:])

    with Squeezed():
        x = torch.arange(3.0).reshape(3, 1).squeeze(1)
    assert x.tolist() == [0, 4, 8]


def test_a_mode_that_runs_nothing_gives_the_result_and_the_graph_is_whole() -> None:
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.zeros(2, 3)

    norm = nn.BatchNorm1d(3).eval()
    x = torch.randn(2, 3, requires_grad=True)
    with Zeros():
        y = x.tanh()
    assert y.tolist() == [[0.0] * 3] * 2
    torch.autograd.grad(y.sum(), x)
    with Changing(torch.ops.aten.tanh.default, lambda out, x: x):
        y = x.tanh()
    assert y is not x and y.grad_fn.name() == "TanhBackward0" and x.is_leaf
    assert norm(x).shape == (2, 3)


def test_results_that_formulas_need_beside_are_made_where_the_mode_did_not() -> None:
    x = torch.randn(4, 5, requires_grad=True)
    expected = torch.autograd.grad(torch.nn.functional.layer_norm(x, (5,)).pow(3).sum(), x)[0]

    class Copies(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with dispatch._disable_current_modes():
                return (
                    func(*args).clone()
                    if "layer_norm" not in str(func)
                    else torch.nn.functional.layer_norm(args[0], (5,))
                )

    with Copies():
        y = torch.nn.functional.layer_norm(x, (5,))
    torch.testing.assert_close(torch.autograd.grad(y.pow(3).sum(), x)[0], expected)


def test_gradients_are_those_at_the_operands_that_were_handed() -> None:
    class Doubled(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(args[0] * 2, *args[1:]) if "layer_norm" in str(func) else func(*args)

    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.arange(20.0, dtype=torch.float64).reshape(4, 5)
    expected = torch.autograd.grad((torch.nn.functional.layer_norm(x, (5,)) * weights).sum(), x)[0]
    with Doubled():
        y = torch.nn.functional.layer_norm(x, (5,))
    torch.testing.assert_close(torch.autograd.grad((y * weights).sum(), x)[0], expected)


def test_operators_that_pytorch_has_not_are_copied_by_name_too() -> None:
    own = overload_of(OPS["pool_scatter"])
    assert str(own) == "rushlight.pool_scatter.default" and copy.deepcopy(own) is own is pickle.loads(pickle.dumps(own))
    with pytest.raises(TypeError, match="missing required argument 'input'"):
        own()


def test_modes_nest_and_the_inner_one_hands_on() -> None:
    outer, inner = Names(), Names()
    with outer, inner:
        assert dispatch._get_current_dispatch_mode() is inner
        assert dispatch._get_current_dispatch_mode_stack() == [outer, inner] and dispatch.is_in_torch_dispatch_mode()
        with dispatch._disable_current_modes() as stack:
            torch.ones(2).exp()
        assert stack == [outer, inner]
        x = torch.ones(2).sin()
        x.mul_(3)
    assert outer.seen == inner.seen == ["aten.sin.default", "aten.mul_.Tensor"]
    assert not dispatch.is_in_torch_dispatch_mode()


def test_a_mode_entered_twice_and_an_error_within_leave_nothing_behind() -> None:
    names = Names()
    with pytest.raises(ZeroDivisionError), names, names:
        torch.ones(2).sin()
        _ = 1 / 0
    assert names.seen == ["aten.sin.default"] * 2 and not dispatch.is_in_torch_dispatch_mode()


def test_a_mode_is_of_its_thread() -> None:
    names = Names()
    with names:
        thread = threading.Thread(target=lambda: torch.ones(2).exp())
        thread.start()
        thread.join()
    assert names.seen == []


def test_views_are_views_and_changes_in_place_are_seen_through_them() -> None:
    with Names() as names:
        x = torch.zeros(4, requires_grad=True)
        y = x * 1
        y[1:].add_(2)
        z = y.sum()
    z.backward()
    assert y.tolist() == [0, 2, 2, 2] and x.grad.tolist() == [1] * 4
    assert {"aten.slice.Tensor", "aten.add_.Tensor"} <= set(names.seen)


def test_under_transforms_modes_see_what_these_hand_on() -> None:
    with Names() as names:
        got = torch.func.grad(lambda x: x.sin().sum())(torch.ones(3))
        rows = torch.vmap(lambda x: x.exp() * 2)(torch.ones(2, 3))
    torch.testing.assert_close(got, torch.ones(3).cos())
    torch.testing.assert_close(rows, torch.full((2, 3), 2.0) * torch.ones(1).exp())
    assert "aten.sin.default" in names.seen and "aten.exp.default" in names.seen


def test_gradients_that_backward_leaves_have_tangents() -> None:
    p, t = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([1.0, 0.0, 2.0])
    with forward_ad.dual_level():
        x = forward_ad.make_dual(p, t)
        h = x * 2
        h.retain_grad()
        (h**3).sum().backward()
        assert forward_ad.unpack_dual(h.grad).tangent.tolist() == [24, 0, 144]
        assert forward_ad.unpack_dual(p.grad).tangent.tolist() == [48, 0, 288]
        (x**3).sum().backward(inputs=[p])
        assert p.grad.tolist() == [27, 108, 243] and forward_ad.unpack_dual(p.grad).tangent.tolist() == [54, 0, 324]


def test_gradients_are_accumulated_in_place_as_without_a_mode() -> None:
    p = torch.ones(3, requires_grad=True)
    with Names() as names:
        (p * 2).sum().backward()
        held = p.grad
        (p * 3).sum().backward()
    assert p.grad is held and held.tolist() == [5, 5, 5] and held._version == 1
    assert names.seen[-1] == "aten.add_.Tensor"
    with Names():
        (p * p).sum().backward(create_graph=True, inputs=[p])
    assert p.grad is not held and p.grad.requires_grad


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_gradients_of_tables_are_sparse_as_without_a_mode(kind: Any) -> None:
    table, at = kind(4, 2, sparse=True, dtype=torch.float64), torch.tensor([[1, 3, 1], [0, 3, 3]])
    found = []
    for _ in range(2):
        loss = (table(at) ** 2).sum() + table(at[:1]).sum()
        with Names():
            found += torch.autograd.grad(loss, table.weight, retain_graph=True)
            (dense,) = torch.autograd.grad(loss + (table.weight * 0).sum(), table.weight, create_graph=True)
        found += torch.autograd.grad(loss, table.weight)
        assert found[-2].is_sparse and found[-1].is_sparse and not dense.is_sparse
        assert torch.equal(found[-2].to_dense(), found[-1].to_dense()) and torch.allclose(dense, found[-1].to_dense())


def test_a_step_inside_backward_is_that_without_a_mode() -> None:
    ended = []
    for mode in (contextlib.nullcontext(), Names()):
        torch.manual_seed(0)
        net, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.ones(2, 3)
        handle = torch.optim.in_backward(torch.optim.AdamW(net.parameters(), lr=0.1), clip_grad_norm=0.1)
        with mode:
            for _ in range(2):
                net(x).sum().backward()
        handle.remove()
        ended.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    torch.testing.assert_close(*ended)


OF_DUALS: dict[str, Any] = {
    "square": lambda x, w: x.square(), "linear": lambda x, w: nn.functional.linear(x, w, w[0]) ** 2, "l1_loss": lambda x, w: nn.functional.l1_loss(x, w) ** 2,
    "rms_norm": lambda x, w: nn.functional.rms_norm(x, (3,), w[0]), "cross_entropy": lambda x, w: nn.functional.cross_entropy(x, w.softmax(1)),
    "var_mean": lambda x, w: torch.var_mean(x, 1)[0] ** 2, "views": lambda x, w: x.t().t().mT.t() * w.mT.t() ** 2, "zero_": lambda x, w: x.clone().zero_() + x**3 * w,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_DUALS)
def test_tangents_of_gradients_are_there_where_a_mode_is_handed_several_operators(name: str) -> None:
    x, w = torch.arange(9.0).double().reshape(3, 3).sin().requires_grad_(), torch.eye(3).double() + 0.5
    found: list[Any] = []
    for mode in (contextlib.nullcontext(), Names()):
        with mode, forward_ad.dual_level():
            out = OF_DUALS[name](forward_ad.make_dual(x, x.detach().cos()), w)
            (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
            found.append([*forward_ad.unpack_dual(out), *forward_ad.unpack_dual(grad)])
    torch.testing.assert_close(*found)
    with Names():
        rows = torch.vmap(lambda m: m.t().clone() + m.clone().zero_())(torch.arange(8.0).reshape(2, 2, 2))
    assert rows.tolist() == [[[0, 2], [1, 3]], [[4, 6], [5, 7]]]


OF_SAMPLES: dict[str, Any] = {
    "max_pool1d": lambda x, at: (nn.functional.max_pool1d(x[None], 2) ** 2).sum(), "clamp": lambda x, at: (x.clamp(-0.5, 0.5) ** 2).sum(),
    "cross_entropy": lambda x, at: nn.functional.cross_entropy(x, at), "max": lambda x, at: (x.max(1)[0] ** 2).sum(),
    "attention": lambda x, at: (nn.functional.scaled_dot_product_attention(x, x, x) ** 2).sum(), "transposed": lambda x, at: (x.t() @ x).det(),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_derivatives_of_each_sample_do_not_notice_a_mode(name: str) -> None:
    x, at = torch.arange(24.0).double().reshape(2, 3, 4).cos(), torch.tensor([[0, 1, 2], [1, 2, 0]])
    f = OF_SAMPLES[name]
    for derivative in (torch.func.grad(f), torch.func.hessian(f)):
        expected = torch.vmap(derivative)(x, at)
        with Names():
            torch.testing.assert_close(torch.vmap(derivative)(x, at), expected)


def test_conjugates_and_transposes_without_memory_are_those_without_a_mode() -> None:
    with Names():
        z = torch.tensor([1 + 2j, 3 - 1j])
        z.conj().mul_(2j)
        assert z.tolist() == [4 - 2j, -2 - 6j] and z.conj().is_conj() and z.conj()[0]._base is z
        memory = torch.zeros(2, dtype=torch.complex64)
        torch.exp(torch.zeros(2, dtype=torch.complex64), out=memory.conj())
        assert memory.tolist() == [1, 1]
        assert torch.ones(2, 3, device="meta").t().is_meta


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_of_large_halves_do_not_overflow_in_a_mode(dtype: Any) -> None:
    x = torch.tensor([[300.0, 500.0, -700.0]], dtype=dtype, requires_grad=True)
    weight, found = torch.tensor([1.0, 2.0, 3.0], dtype=dtype), []
    for mode in (contextlib.nullcontext(), Names()):
        with mode:
            out = nn.functional.rms_norm(x, (3,), weight)
            found.append([out, *torch.autograd.grad(out.sum(), x)])
    torch.testing.assert_close(*found)
