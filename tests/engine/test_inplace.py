"""In-place changes: refusals, histories of views and bases."""

import gc
import weakref
from typing import Any

import pytest
from tests.leaves import leaf

import rushlight as torch
from rushlight.engine import views


def test_a_leaf_that_requires_grad_is_not_changed():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="view of a leaf"):
        x[0:1].add_(1)
    assert x.tolist() == [1.0, 2.0]
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0] and x.is_leaf


def test_in_place_on_a_view_changes_the_history_of_the_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    v = y[1:]
    v.mul_(torch.tensor([10.0, 100.0], dtype=torch.float64))
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    (y * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).sum().backward()
    assert x.grad.tolist() == [2.0, 40.0, 600.0]


def test_other_views_follow_the_base():
    x = leaf(1.0, 2.0)
    y = x * 1
    other = y.view(2, 1)
    y.mul_(5)
    other.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_a_view_of_a_constant_base_starts_to_require_grad():
    base, x = torch.zeros(3, dtype=torch.float64), leaf(7.0)
    view = base[0:1]
    base[0:1] = x
    assert base.requires_grad and view.requires_grad
    (view * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_views_of_views_and_transposed_bases():
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    y = (x * 1).t()
    y[1:].t()[0].exp_()
    y.sum().backward()
    assert torch.allclose(x.grad[0, 1:], x[0, 1:].exp()) and x.grad[1].tolist() == [1.0, 1.0, 1.0]


def test_setitem_cuts_the_gradient_of_what_it_overwrites():
    x, w = leaf(1.0, 2.0, 3.0), leaf(9.0)
    y = x * 1
    y[1] = w[0] * 2
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 6.0] and w.grad.tolist() == [2 * 18.0 * 2]


def test_second_order_through_an_in_place_change_of_a_view():
    x = leaf(2.0, 3.0)
    y = x * 1
    y[0:1].mul_(x[1:2])
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    # f = (ab)^2 + b^2: gradient (2ab^2, 2a^2 b + 2b), row sums of the Hessian (2b^2 + 4ab, 4ab + 2a^2 + 2)
    assert g.tolist() == [36.0, 30.0] and h.tolist() == [42.0, 34.0]


def test_views_made_without_grad_and_of_several_outputs_refuse():
    x = leaf(1.0, 2.0)
    y = x * 1
    with torch.no_grad():
        v = y[0:1]
    with pytest.raises(RuntimeError, match="no_grad mode"):
        v.mul_(2)
    a, _ = (x * 1).unbind()
    with pytest.raises(RuntimeError, match="multiple views"):
        a.mul_(2)


def test_dtype_and_shape_must_allow_the_result():
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64).add_(0.5)
    with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape \[2, 2\]"):
        torch.ones(2).add_(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.ones(1).expand(3).add_(1)


def test_versions_count_changes_and_are_shared_by_views():
    x = torch.ones(3)
    v = x[1:]
    assert (x._version, v._version) == (0, 0)
    v.add_(1)
    x.mul_(2)
    assert x._version == v._version == 2
    assert x.detach()._version == 2 and x.data._version == 0


def test_detach_shares_memory_and_version_but_no_history():
    x = leaf(1.0)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.data_ptr() == y.data_ptr()
    z = y * y
    d.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.backward()


FRESH = {
    "a batch times a matrix": lambda a: a @ torch.ones(2, 3),
    "a batch times a vector": lambda a: a @ torch.ones(2),
    "a vector times a batch": lambda a: torch.ones(2) @ a,
    "kron": lambda a: torch.kron(a[0], torch.ones(2, 1)),
    "combinations": lambda a: torch.combinations(a[0, 0]),
}


@pytest.mark.parametrize("name", FRESH)
def test_results_are_no_views_whatever_they_are_made_by(name):
    a, p = torch.ones(2, 2, 2), torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        y = FRESH[name](a)
    assert not y._is_view()
    count = y.sum().item()
    y.mul_(p).sum().backward()
    assert p.grad.item() == count
    x = torch.ones(2, 2, 2, requires_grad=True)
    y = FRESH[name](x)
    y.mul_(2)
    y.sum().backward()
    assert x.grad.sum() == 2 * torch.autograd.grad(FRESH[name](x).sum(), x)[0].sum()
    t = torch.func.jvp(lambda x: FRESH[name](x).mul_(x.sum()), (a,), (a,))[1]
    assert t.equal(2 * FRESH[name](a) * a.sum())


@pytest.mark.parametrize(
    "change", [lambda y: y[0].fill_(1), lambda y: y.fill_diagonal_(1.0), lambda y: y.view(-1).add_(1)]
)
def test_a_change_of_a_view_that_saved_nothing_is_freed_all_the_same(change):
    x = torch.ones(2, 2, requires_grad=True)
    y = x + x
    change(y)
    total = y.sum()
    total.backward(retain_graph=True)
    total.backward()
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()


@pytest.mark.parametrize("operator", ["exp_", "sqrt_", "tanh_", "reciprocal_", "softmax"])
def test_a_gradient_depends_on_the_view_that_was_changed_as_on_a_result(operator: str) -> None:
    """The formulas of these take their result: of a view, that is the view as it then was."""

    def second(view: bool) -> list[torch.Tensor]:
        x = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
        y = (x * 1).view(2, 1)[:, 0] if view else x * 1
        if operator == "softmax":
            y = Softmax.apply(y)
        else:
            getattr(y, operator)()
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        return list(torch.autograd.grad((g * g).sum(), [y, x]))

    for one, other in zip(second(True), second(False), strict=True):
        torch.testing.assert_close(one, other)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.copy_(torch.exp(x.detach()))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@pytest.mark.parametrize("then", ["y = y[:1]", "y.data = y.t()", "del y"])
def test_a_changed_view_that_is_another_by_now_leaves_the_second_derivative_as_it_is(then: str) -> None:
    x = torch.tensor([[1.0, 4.0], [2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    whole = x * 1
    y = whole[:]
    y.exp_()
    names = {"torch": torch, "y": y}
    del y
    exec(then, names)
    (g,) = torch.autograd.grad((whole * torch.tensor([1.0, 2.0])).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    torch.testing.assert_close(h, x.detach().exp() * torch.tensor([1.0, 2.0], dtype=torch.float64))


def test_a_view_that_lags_behind_its_base_is_not_replayed_to_be_changed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.arange(6.0).requires_grad_()
    h = x * 1.0
    row = h.view(2, 3)[0]
    with monkeypatch.context() as patched:
        patched.setattr(views, "replay", None)
        row.mul_(2).add_(1).mul_(3)
    assert row.grad_fn is not None
    (h.square().sum() + row.sum()).backward()
    inner = 6 * torch.arange(6.0) + 3
    assert x.grad.tolist() == [*(2 * inner * 6 + 6)[:3].tolist(), *(2 * torch.arange(6.0))[3:].tolist()]


def test_a_view_that_lags_behind_and_is_saved_has_its_own_history() -> None:
    x = torch.tensor([1.0, 2.0, 3.0]).requires_grad_()
    h = x * 1.0
    part = h[1:]
    part.mul_(2)
    part.mul_(part)  # saves what it had before, which depends on the first change
    h.sum().backward()
    assert x.grad.tolist() == [1, 16, 24]


def test_a_view_that_lags_behind_retains_the_gradient_of_its_last_history() -> None:
    x = torch.ones(3).requires_grad_()
    h = x * 1.0
    part = h[:2]
    part.retain_grad()
    part.mul_(3).add_(1).mul_(5)
    (h * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    part.sum()  # brings its edge up to date
    assert x.grad.tolist() == [15, 30, 3]


def _products(v: Any) -> None:
    v.add_(v @ v)


def _views(v: Any) -> None:
    w = v.view_as(v)
    u = v @ w
    w.tanh_()
    v.addcmul_(u, v)
    w.sum()


def _rows(v: Any) -> None:
    v[0].add_((v @ v)[0])
    v[1].mul_(v[0])


def _state(v: Any) -> None:
    h = torch.zeros_like(v)
    for _ in range(3):
        h.add_(v * h)


@pytest.mark.parametrize("change", [_products, _views, _rows, _state])
def test_what_is_changed_by_what_was_computed_from_it_is_freed(change: Any) -> None:
    """Its history goes on from nodes that had saved it.  (PyTorch keeps such tensors for ever.)"""
    held = []
    gc.disable()
    try:
        for _ in range(2):
            v = torch.ones(4, 4, requires_grad=True).exp()
            change(v)
            held.append(weakref.ref(v))
            held.append(weakref.ref(v._edge))
            del v
        assert [ref() for ref in held] == [None] * 4
    finally:
        gc.enable()


def test_gradients_of_what_was_changed_are_refused_as_before() -> None:
    v = torch.ones(2, 2, requires_grad=True).exp()
    v.add_(v @ v)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        v.sum().backward()
    x = torch.ones(3, requires_grad=True)
    h = x.exp()
    total = torch.zeros(3)
    for _ in range(3):  # what does not keep it is differentiated
        total.add_(h * 2)
        total.mul_(0.5)
    total.sum().backward()
    assert torch.allclose(x.grad, torch.full((3,), 2 * (0.5 + 0.25 + 0.125) * 2.718281828))
