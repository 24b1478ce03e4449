"""Views whose history is invalid, leaves among views, pieces that are no views, and results that nothing saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch


def test_repr_shows_an_invalid_history_and_does_not_raise() -> None:
    x = torch.ones(4, requires_grad=True).clone()
    piece, _ = x.split(2)
    with torch.no_grad():
        view = x[:2]
    x.mul_(2)
    for t in (piece, view):
        assert repr(t) == str(t) == "tensor([2., 2.], grad_fn=<Invalid>)"
        with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
            _ = t.grad_fn


def test_a_leaf_that_is_a_view_stays_one_when_its_base_changes() -> None:
    x = torch.ones(3)
    v = x[:2]
    x.mul_(2)
    v.requires_grad_()
    assert v.is_leaf
    x.mul_(2)
    (v * 2).sum().backward()
    assert v.is_leaf
    assert v.grad.tolist() == [2, 2]


@pytest.mark.parametrize("split", [lambda x: x.unsafe_split(2), lambda x: x.unsafe_chunk(2),
                                   lambda x: torch.unsafe_split_with_sizes(x, [2, 2])])  # fmt: skip
def test_unsafe_pieces_share_memory_and_may_be_changed(split: object) -> None:
    a = torch.ones(4, requires_grad=True)
    x = a * 1
    y, z = split(x)  # type: ignore[operator]
    assert y.data_ptr() == x.data_ptr()
    assert not y._is_view()
    y.mul_(5)
    assert x.tolist() == [5, 5, 1, 1]
    (y.sum() + z.sum()).backward()
    assert a.grad.tolist() == [5, 5, 1, 1]


@pytest.mark.parametrize("correction", [0, 1])
def test_variances_may_be_changed_before_backward(correction: int) -> None:
    x = torch.tensor([1.0, 2.0, 6.0], requires_grad=True)
    v = torch.var(x, 0, correction=correction)
    v.mul_(2)
    v.backward()
    torch.testing.assert_close(x.grad, 4 * (x.detach() - 3) / (3 - correction))


def test_without_degrees_of_freedom_the_gradient_of_a_variance_is_infinite() -> None:
    x = torch.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]], requires_grad=True)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        torch.var(x, 1, correction=3).sum().backward()
    assert x.grad[0].tolist() == [-torch.inf, -torch.inf, torch.inf]
    assert x.grad[1].isnan().all()


@pytest.mark.parametrize("change", [
    lambda c: c.fill_diagonal_(0), lambda c: c.as_strided((2,), (3,), 0).zero_(), lambda c: c.as_strided((2,), (3,), 0)[:].mul_(0),
])  # fmt: skip
def test_strides_of_complex_numbers_are_followed_to_their_real_parts(change):
    leaf = torch.ones(2, 2, 2, dtype=torch.float64, requires_grad=True)
    pairs = leaf * 1
    change(torch.view_as_complex(pairs))
    assert pairs.tolist() == [[[0, 0], [1, 1]], [[1, 1], [0, 0]]]
    pairs.sum().backward()
    assert leaf.grad.tolist() == [[[0, 0], [1, 1]], [[1, 1], [0, 0]]]


@pytest.mark.parametrize("changed", [True, False])
def test_strides_over_real_parts_have_their_gradients_whether_or_not_the_complex_numbers_change(changed: bool) -> None:
    leaf = torch.ones(3, dtype=torch.complex128, requires_grad=True)
    whole = leaf * 1
    pair = whole.real.as_strided((2,), (1,))  # of which the second is no real part
    with torch.no_grad():
        whole.mul_(2 if changed else 1)
    pair.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    "index", [slice(None), (slice(0, 1), ...), (..., slice(0, 3)), (), ..., (slice(None), slice(0, 9))]
)
def test_a_tensor_that_is_written_whole_by_slices_is_written_itself(index) -> None:
    source, target = torch.ones(1, 3, requires_grad=True), torch.zeros(1, 3)
    target[index] = source
    assert target.grad_fn is not None and target.grad_fn.name() == "CopyIntoBackward0"
    for _ in range(2):  # nothing was saved that a backward could free
        target.sum().backward()
    assert source.grad is not None and source.grad.tolist() == [[2, 2, 2]]


def test_no_elements_may_begin_behind_the_memory() -> None:
    none = torch.view_as_real(torch.zeros(0, dtype=torch.complex128)).select(1, 1)
    assert none.as_strided((0,), (0,)).shape == (0,)
    assert none.as_strided((2, 0), (1, 1), 3).shape == (2, 0)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
        none.as_strided((1,), (1,))


def smaller(row: int, *now: object) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A leaf of six numbers, a tensor of them that was made smaller in place, and a row of what it was before."""
    leaf = torch.arange(1.0, 7.0, requires_grad=True)
    whole = leaf.view(2, 3) * 1
    piece = whole[row]
    whole.as_strided_(*now)
    return leaf, whole, piece


@pytest.mark.parametrize("create_graph", [True, False])
def test_a_change_of_a_view_of_what_was_larger_goes_through_what_the_base_still_shows(create_graph) -> None:
    leaf, whole, piece = smaller(0, (2, 2), (2, 1))
    factors = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    piece.mul_(factors)
    found = torch.autograd.grad((whole * whole).sum(), [leaf, factors], create_graph=create_graph)
    assert [g.tolist() for g in found] == [[2, 16, 54, 8, 0, 0], [2, 16, 54]]
    _, whole, piece = smaller(0, (1, 1), (0, 0))
    piece[:0].clamp_(max=1.0)  # none of it
    whole.sum().backward()


@pytest.mark.parametrize(("row", "now"), [(0, ((2,), (1,), 3)), (0, ((2,), (1,))), (1, ((2, 2), (2, 1)))])
def test_a_gradient_that_the_smaller_base_has_no_room_for_is_refused(row, now) -> None:
    _, whole, piece = smaller(row, *now)
    piece.mul_(2)
    with pytest.raises(RuntimeError, match="a gradient or tangent has room for what its tensor shows now"):
        whole.sum().backward()


def test_a_recorded_change_of_a_part_of_what_overlaps_itself_is_refused() -> None:
    factor = torch.tensor(2.0, requires_grad=True)
    for size, stride in (((2, 2), (1, 1)), ((2, 2), (0, 1)), ((3, 2), (2, 1))):
        whole = torch.ones(6)
        whole.as_strided_(size, stride)
        if stride == (2, 1):  # no two elements at one place
            whole[0].mul_(factor)
            assert torch.autograd.grad(whole.sum(), factor)[0].item() == 2
            continue
        with pytest.raises(RuntimeError, match="several of whose elements lie on one place in memory"):
            whole[0].mul_(factor)
        assert whole.tolist() == [[1, 1], [1, 1]]
    crossed = torch.arange(8.0)
    crossed.as_strided_((3, 2), (2, 3))
    crossed[0].mul_(factor)  # 0, 3; 2, 5; 4, 7: crossed, but apart
    assert torch.autograd.grad(crossed.sum(), factor)[0].item() == 3


@pytest.mark.parametrize("retains", [True, False])
def test_the_gradient_of_a_piece_can_be_asked_for_after_its_history_is_lost(retains: bool) -> None:
    piece = torch.ones(2, 2, requires_grad=True).clone().unbind()[0]
    if retains:
        piece.retain_grad()
    with torch.no_grad():
        piece.zero_()
    assert piece.retains_grad is retains
    assert piece.grad is None
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view"):
        _ = piece.grad_fn


def test_a_view_becomes_a_leaf_when_its_base_requires_grad_by_now() -> None:
    base = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    view = base.diagonal()
    base.requires_grad_()
    assert view.requires_grad_() is view
    total = (view * 2).sum()
    assert torch.autograd.grad(total, [view], retain_graph=True)[0].tolist() == [2, 2]
    total.backward()
    assert view.grad.tolist() == [2, 2] and base.grad is None


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_view_that_was_not_recorded_becomes_a_leaf_and_is_refused_where_it_is_used(mode: Any, leaf: bool) -> None:
    base = torch.ones(2, 2, requires_grad=True)
    base = base if leaf else base * 1
    with mode():
        view = base[0]
    with torch.no_grad():
        base.mul_(3)
    assert view.requires_grad_() is view and view.requires_grad and view.grad is None
    view.retain_grad()
    refused = f"created in {'no_grad' if mode is torch.no_grad else 'inference'} mode and its base"
    for use in (lambda: view * 2, lambda: view.is_leaf, lambda: view.register_post_accumulate_grad_hook(print)):
        with pytest.raises(RuntimeError, match=refused):
            use()
    assert view.requires_grad_(False) is view  # what requires grad is its base
    with pytest.raises(RuntimeError, match=refused):
        view.register_hook(print)


@pytest.mark.parametrize("operator", [
    lambda x: x * x, lambda x: torch.cat([x, x]), lambda x: x / x, lambda x: torch.ones(2).mul_(x), lambda x: torch.addcmul(x, x, x),
    lambda x: torch.lerp(x, x, x), lambda x: x @ x, lambda x: torch.nn.functional.mse_loss(x, x),
])  # fmt: skip
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_operators_of_several_tensors_save_nothing_for_views_that_were_not_recorded(
    operator: Callable[[torch.Tensor], Any], mode: Any
) -> None:
    base = torch.ones(2, 2, requires_grad=True)
    with mode():
        view = base[0]

    def refuse(tensor: torch.Tensor) -> torch.Tensor:
        raise AssertionError("a tensor was saved")

    with torch.autograd.graph.saved_tensors_hooks(refuse, refuse):
        total = operator(view).sum()
    assert total.requires_grad
    total.backward(retain_graph=True)
    assert base.grad is None and view.grad is None
    total.backward()


def test_operators_of_one_tensor_save_such_a_view() -> None:
    base = torch.ones(2, 2, requires_grad=True)
    with torch.no_grad():
        view = base[0]
    total = view.sin().sum()
    total.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        total.backward()


def test_what_another_operand_needs_of_such_a_view_is_saved() -> None:
    base, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    with torch.no_grad():
        view = base[0]
    packed: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.numel()) or t, lambda t: t):  # type: ignore[func-returns-value]
        y = view * x
    assert packed == [2]
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones(2)) and base.grad is None
    y = view * x
    with torch.no_grad():
        base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("pieces", [lambda x: x.unsafe_chunk(2), lambda x: x.unsafe_split(2),
                                    lambda x: x.unsafe_split_with_sizes([2, 2])])  # fmt: skip
def test_pieces_of_inference_tensors_are_inference_tensors(pieces: Callable[[torch.Tensor], Any]) -> None:
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x = torch.ones(4)
    piece = pieces(x)[0]
    assert piece.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        piece * w


def test_the_parts_of_a_view_that_was_resized_follow_a_change_of_them() -> None:
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    z = torch.complex(torch.ones(3, 1, dtype=torch.float64), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).view(
        -1
    )
    z.resize_(2, 2)
    parts = torch.view_as_real(z)
    parts.mul_(x)
    assert parts.grad_fn.name() == "ViewAsRealBackward0"
    assert parts.tolist() == [[[2.0, 2.0], [2.0, 4.0]], [[2.0, 6.0], [2.0, 2.0]]]
    (parts * 3).sum().backward()
    assert x.grad == 3 * (4 + 1 + 2 + 3 + 1)


def test_the_gradient_of_gaps_between_the_elements_of_a_base_is_zero() -> None:
    factor = torch.full((5,), 2.0, requires_grad=True)
    base = torch.arange(6.0)[::2].detach()
    base.as_strided((5,), (1,)).mul_(factor)
    for _ in range(3):  # in memory that others have used
        factor.grad, others = None, torch.full((5,), float("nan"))
        base.sum().backward(retain_graph=True)
        del others
        assert factor.grad.tolist() == [0.0, 0.0, 2.0, 0.0, 4.0]


@pytest.mark.parametrize(
    "use", [lambda v: v * 3, lambda v: 3 * v + torch.ones(2), torch.nn.Softplus(), lambda v: (v * v) * v]
)
def test_gradients_come_to_a_view_that_was_changed_beside_its_graph_as_far_as_it_and_no_further(use: Any) -> None:
    leaf = torch.tensor([[1.0, 2.0]]).view(2).requires_grad_()
    view = leaf.view_as(leaf)
    leaf.detach().mul_(2)
    expected = view.detach().clone().requires_grad_()
    use(expected).sum().backward()
    found, nothing = torch.autograd.grad(use(view).sum(), [view, leaf], allow_unused=True)
    assert found.tolist() == expected.grad.tolist() and nothing is None


@pytest.mark.parametrize("change", [lambda v: v.squeeze_(), lambda v: v.t_(), lambda v: v.as_strided_((2, 1), (1, 1))])
def test_a_view_whose_shape_was_changed_follows_a_base_that_comes_to_require_grad(change: Any) -> None:
    base = torch.tensor([1.0, 2.0])
    view = base.unsqueeze(0)
    change(view)
    base.requires_grad_()
    (view * view).sum().backward()
    assert base.grad.tolist() == [2.0, 4.0] and not view.is_leaf


def test_a_view_made_without_gradients_and_given_another_shape_with_them_is_refused_once_its_base_requires_grad() -> (
    None
):
    base = torch.tensor([1.0, 2.0])
    with torch.no_grad():
        view = base.unsqueeze(0)
    view.squeeze_()
    assert (view * 2).tolist() == [2.0, 4.0]
    base.requires_grad_()
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.sin()


def test_hooks_of_a_view_whose_history_is_lost_see_the_gradient_that_comes_as_far_as_it() -> None:
    leaf = torch.tensor([1.0, 2.0]).view(2).requires_grad_()
    view, before = leaf.t(), leaf.t()
    before.retain_grad()
    leaf.detach().mul_(2)
    log = []
    view.register_hook(lambda g: log.append(g.tolist()))
    torch.autograd.graph.register_multi_grad_hook([leaf, view], lambda g: log.append("any"), mode="any")
    view.retain_grad()
    (view * 3).sum().backward()
    assert log == [[3.0, 3.0], "any"] and view.grad.tolist() == [3.0, 3.0] and leaf.grad is None
    (before * 3).sum().backward()
    assert before.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("change", [lambda v: v.fill_diagonal_(1.0), lambda v: v[0].mul_(3.0)])
def test_a_change_of_a_part_computes_no_gradient_for_what_nobody_asks_for(change: Any) -> None:
    whole = torch.ones(2, 2).requires_grad_() * 2
    change(whole)
    log = []
    whole.grad_fn.register_hook(lambda inputs, outputs: log.append(inputs[0]))
    whole.sum().backward(inputs=[whole])
    assert log == [None] and whole.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
