"""What counts as a change of memory, and what changing it does to values that are computed from it again."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.memory.awake import awake

import rushlight as torch
from rushlight import memory, storage, stores

STALE = "modified by an inplace operation"


# Versions --------------------------------------------------------------------------------------------


def test_assigned_data_keeps_the_version_counter_that_earlier_views_share() -> None:
    x = torch.ones(4).mul_(1)
    v = x[:2]
    x.data = torch.ones(3)
    assert (x._version, v._version) == (1, 1)
    x.mul_(2)
    assert (x._version, v._version) == (2, 2)
    v.mul_(3)
    assert (x._version, v._version) == (3, 3)
    assert x.tolist() == [2, 2, 2]
    assert v.tolist() == [3, 3]


def test_assigned_data_does_not_take_the_version_of_what_was_assigned() -> None:
    x, y = torch.ones(2).mul_(1), torch.ones(2).mul_(1).mul_(1)
    x.data = y
    y.mul_(1)
    assert (x._version, y._version) == (1, 3)


def test_a_saved_view_is_noticed_to_have_changed_after_its_base_was_given_other_memory() -> None:
    a = torch.ones(2, requires_grad=True)
    x = torch.ones(4)
    loss = (a * x[:2]).sum()
    x.data = torch.ones(4)
    x.mul_(2)
    with pytest.raises(RuntimeError, match=STALE):
        loss.backward()


def test_integers_are_refused_as_data_of_a_tensor_that_requires_grad() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point"):
        x.data = torch.arange(3)


@pytest.mark.parametrize("create_graph", [True, False])
def test_data_of_another_shape_after_forward_is_no_operand_of_backward(create_graph: bool) -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 3, requires_grad=True)
    product, sum_ = x @ w, x + w.sum(0)
    x.data = torch.ones(2, 1)
    assert x._version == 0
    with pytest.raises(RuntimeError, match=r"which MmBackward0 saved as argument 'input', has the shape \[2, 1\] now"):
        torch.autograd.grad(product.sum(), [w], create_graph=create_graph)
    with pytest.raises(RuntimeError, match=r"`.data` gave it the shape \[2, 1\] after AddBackward0 had used it"):
        torch.autograd.grad(sum_.sum(), [x], create_graph=create_graph)
    (x + torch.ones(2, 3)).sum().backward()  # what was computed since is broadcast as ever
    assert x.grad is not None and x.grad.tolist() == [[3], [3]]


def test_data_of_another_shape_before_forward_is_an_operand_as_any_other() -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.full((2, 2), 3.0, requires_grad=True)
    x.data = torch.full((2, 2), 2.0)
    v = x.view(4)
    for used in (
        x * w,
        x / w,
        x @ w,
        x**2,
        x.sin() * w,
        torch.where(w > 0, x, w) * x,
        (v * v).view(2, 2),
        x.clone().mul_(x),
    ):
        x.grad = None
        used.sum().backward()
        assert x.grad is not None and x.grad.shape == (2, 2)
    y = torch.ones(3)
    y.data = torch.ones(2)
    y.mul_(x[0])  # a change in place of it, which is saved
    (y * y).sum().backward()
    (torch.nn.functional.linear(x, w) * x).sum().backward()


def test_data_of_the_shape_that_other_data_gave_is_what_was_saved_with_it() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    first = (x * x).sum()
    x.data = torch.ones(2, 2)
    second = (x * x + x).sum()
    x.data = torch.full((2, 2), 3.0)
    second.backward()
    assert x.grad is not None and x.grad.tolist() == [[7, 7], [7, 7]]
    with pytest.raises(RuntimeError, match=r"which `\.data` gave it"):
        first.backward()
    x.data, x.grad = torch.full((2, 3), 4.0), None
    first.backward()
    assert x.grad is not None and x.grad.tolist() == [[8, 8, 8], [8, 8, 8]]


def test_data_that_was_away_between_forward_and_backward_is_what_was_saved() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    loss, whole = (x * x + x).sum(), x.data
    x.data = torch.empty(0)
    x.data = whole
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [[3, 3, 3], [3, 3, 3]]
    loss = (x * x).sum()
    with torch.no_grad():
        x.mul_(2)
    assert x._version == 1
    with pytest.raises(RuntimeError, match=STALE):
        loss.backward()


def test_views_stay_on_the_old_memory_of_a_base_with_new_data() -> None:
    x = torch.ones(2, 3, requires_grad=True).clone()
    v = x.t()
    x.data = torch.arange(6.0).view(2, 3)
    v.mul_(5)
    assert v.tolist() == [[5, 5], [5, 5], [5, 5]]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert v.permute(1, 0).tolist() == [[5, 5, 5], [5, 5, 5]]


def test_a_tracked_change_of_a_view_that_its_base_has_no_room_for_is_refused() -> None:
    x = torch.ones(2, 3, requires_grad=True).clone()
    v = x.t()
    x.data = torch.ones(3)
    with pytest.raises(RuntimeError, match="out of bounds for the storage"):
        v.mul_(5), v.sum().backward()


def test_a_view_whose_history_cannot_be_made_again_is_refused_at_every_use() -> None:
    x = torch.ones(1, 2, requires_grad=True)
    part = x.unsafe_chunk(2, 1)[1]
    view = part.squeeze()
    part.data = part.clone()  # memory of one element, of which the view was the second
    part[0:0] = 0
    for use in (view.clone, view.sin, view.backward):
        with pytest.raises(RuntimeError, match="that its base has been given"):
            use()
    assert x.grad is None


@pytest.mark.parametrize("change", ["resize_(2)", "resize_as_(torch.ones(2))", "set_(torch.zeros(3))", "set_()",
                                    "set_(torch.zeros(3).untyped_storage())"])  # fmt: skip
def test_resize_and_set_count_as_changes_of_a_saved_tensor(change: str) -> None:
    a, x = torch.ones(3, requires_grad=True), torch.ones(3)
    loss = (a * x).sum()
    eval(f"x.{change}")
    assert x._version == 1
    with pytest.raises(RuntimeError, match=STALE):
        loss.backward()


def test_resize_to_the_same_size_is_no_change() -> None:
    x = torch.ones(3)
    assert x.resize_(3)._version == 0
    assert x.resize_as_(torch.ones(3))._version == 0


def test_set_shares_memory_but_no_version_counter() -> None:
    x, y = torch.ones(4), torch.ones(3).mul_(1).mul_(1)
    x.set_(y)
    y.mul_(3)
    assert (x._version, y._version) == (1, 3)
    assert x.tolist() == [3, 3, 3]


def test_set_to_memory_of_what_requires_grad_is_refused_while_gradients_are_recorded() -> None:
    p, x = torch.ones(2, requires_grad=True), torch.zeros(2)
    for source in (p, p * 2):
        with pytest.raises(RuntimeError, match=r"set_: the source requires grad.*detach\(\)"):
            x.set_(source)
    with pytest.raises(RuntimeError, match="set_: cannot be called on a tensor that was computed with a graph"):
        (p * 2).set_(x)
    x.set_(p.detach())
    with torch.no_grad():
        x.set_(p)
    assert x.data_ptr() == p.data_ptr() and not x.requires_grad


def test_the_gradient_of_a_leaf_of_another_shape_by_now_is_refused() -> None:
    p = torch.ones(1, 2, 3, requires_grad=True)
    total = p.cumsum(0).sum()
    with torch.no_grad():
        p.transpose_(0, 1)
    with pytest.raises(RuntimeError, match=r"invalid gradient for a leaf: got shape \[1, 2, 3\], expected \[2, 1, 3\]"):
        total.backward()


def test_the_shape_of_a_view_changed_without_gradients_is_in_its_history() -> None:
    p = torch.tensor([[[1.0], [2.0]]], requires_grad=True)
    v = p[:]
    with torch.no_grad():
        v.transpose_(0, 1)
    (v * torch.tensor([[[10.0]], [[20.0]]])).sum().backward()
    assert p.grad.tolist() == [[[10.0], [20.0]]]


def test_set_of_a_storage_of_another_dtype_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        torch.ones(3).set_(torch.ones(3, dtype=torch.float64).storage())


# Inference tensors -----------------------------------------------------------------------------------


def made_in_inference_mode() -> dict[str, Callable[[], Any]]:
    return {"factory": lambda: torch.ones(3), "result": lambda: torch.ones(3) * 2, "data": lambda: torch.ones(3).data,
            "view": lambda: torch.ones(6)[::2], "detached": lambda: torch.ones(3).detach()}  # fmt: skip


@pytest.mark.parametrize("kind", made_in_inference_mode())
def test_inference_tensors_are_not_saved_nor_written_outside(kind: str) -> None:
    with torch.inference_mode():
        x = made_in_inference_mode()[kind]()
    a = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        a * x
    for write in (lambda: torch.add(torch.ones(3), 1, out=x), lambda: torch.arange(3, out=x), lambda: x.resize_(2),
                  lambda: x.set_(torch.ones(3))):  # fmt: skip
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    assert (a - x).requires_grad  # nothing is saved
    assert (a * x.clone()).requires_grad


def test_data_of_an_inference_tensor_makes_an_inference_tensor() -> None:
    with torch.inference_mode():
        x = torch.ones(3)
    y = torch.ones(3)
    y.data = x
    assert y.is_inference()
    x.data = torch.ones(3)
    assert not x.is_inference()


def test_a_view_outside_of_an_inference_tensor_that_requires_grad_is_an_untracked_leaf() -> None:
    with torch.inference_mode():
        x = torch.ones(3, requires_grad=True)
    v = x.view(3, 1)
    assert (v.requires_grad, v.is_leaf, v.grad_fn, v.is_inference()) == (False, True, None, True)


def test_inference_mode_resizes_what_requires_grad() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        assert x.resize_(2).requires_grad
    with torch.no_grad(), pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        x.resize_(1)


def test_a_layer_made_in_inference_mode_runs() -> None:
    with torch.inference_mode():
        layer = torch.nn.Linear(3, 3)
    assert layer(torch.ones(3)).requires_grad


# Recomputation ---------------------------------------------------------------------------------------

CONTEXTS: dict[str, Callable[[], Any]] = {
    "default": lambda: torch.enable_grad(), "recompute": stores.recompute, "disk": lambda: stores.disk(min_bytes=100),
    "loose budget": awake, "budget": lambda: memory.budget(memory.current() + 5_700_000),
    "tight budget": lambda: memory.budget(memory.current() + 4_350_000),
}  # fmt: skip


def shown(p: Any) -> Any:
    array = p.detach().numpy()
    array *= 3
    return array


def stepped(p: Any) -> None:
    p.grad = torch.ones_like(p)
    torch.optim.SGD([p], lr=0.5).step()
    p.grad = None


def changed(p: Any) -> None:
    with torch.no_grad():
        p.mul_(3)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "data": lambda p: p.data.mul_(3), "optimizer": stepped, "in place": changed, "array": shown,
    "other data": lambda p: setattr(p, "data", torch.zeros(512, 512)), "storage": lambda p: p.storage().fill_(0.0),
    "set_": lambda p: p.detach().set_(torch.zeros(512, 512)),
}  # fmt: skip


def gradient(context: Callable[[], Any], change: Callable[[Any], Any]) -> float:
    torch.manual_seed(0)
    p = torch.nn.Parameter(torch.randn(512, 512))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stores.StoreWarning)
        with context():
            loss = (p * 1.0).tanh().exp().sum()
            kept = change(p)
            loss.backward()
    del kept
    return float(p.grad.abs().sum())


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_computed_again_is_as_it_was_before_a_parameter_changed(context: str, change: str) -> None:
    assert gradient(CONTEXTS[context], CHANGES[change]) == gradient(CONTEXTS["default"], lambda p: None)


@pytest.mark.parametrize("context", ["default", "recompute", "disk", "loose budget", "budget"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_change_of_a_saved_result_by_data_is_seen_everywhere_alike(context: str, which: int) -> None:
    def run(context: Callable[[], Any]) -> float:
        torch.manual_seed(0)
        p = torch.nn.Parameter(torch.randn(512, 512))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", stores.StoreWarning)
            with context():
                x = p * 1.0
                y = x.tanh()
                z = y.exp()
                (x, y, z)[which].data.mul_(3)
                z.sum().backward()
        return float(p.grad.abs().sum())

    assert run(CONTEXTS[context]) == run(torch.enable_grad)


def normed_linear() -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    norm, linear = torch.nn.LayerNorm(256), torch.nn.Linear(256, 256)
    return norm, linear, torch.randn(1024, 256, requires_grad=True)


def in_place(h: Any, norm: Any) -> None:
    with torch.no_grad():
        h.mul_(3)


@pytest.mark.parametrize("change", [
    lambda h, norm: norm.weight.data.mul_(3), lambda h, norm: shown(norm.weight), lambda h, norm: h.data.mul_(3),
    lambda h, norm: shown(h), lambda h, norm: setattr(h, "data", torch.zeros(3)), lambda h, norm: stepped(norm.weight), in_place,
], ids=["weight data", "weight array", "input data", "input array", "input replaced", "weight stepped", "in place"])  # fmt: skip
def test_the_input_of_a_linear_layer_is_what_it_was_whatever_its_norm_is_computed_from(change: Any) -> None:
    norm, linear, x = normed_linear()
    h = x * 1.0
    y = linear(norm(h))
    assert type(y.grad_fn.saved[0]).__name__ == "Rebuilt"  # what this test is about
    kept = change(h, norm)
    (found,) = torch.autograd.grad(y.sum(), linear.weight)
    del kept
    norm, linear, x = normed_linear()
    (expected,) = torch.autograd.grad(linear(norm(x * 1.0)).sum(), linear.weight)
    assert torch.equal(found, expected)


def test_a_saved_result_of_a_norm_changed_by_data_is_taken_as_it_is() -> None:
    norm, linear, x = normed_linear()
    n = norm(x * 1.0)
    y = linear(n)
    n.data.mul_(3)
    (found,) = torch.autograd.grad(y.sum(), linear.weight)
    np.testing.assert_allclose(found[0].numpy(), n.detach().numpy().sum(0), rtol=1e-3, atol=1e-3)


def test_nothing_is_remembered_of_memory_once_graphs_are_gone() -> None:
    gc.collect()
    before = len(storage.dependents)
    norm, linear, x = normed_linear()
    y = linear(norm(x * 1.0))
    assert len(storage.dependents) > before
    y.sum().backward()
    with stores.recompute():
        x.tanh().exp().sum().backward()
    del y
    assert len(storage.dependents) == before


@pytest.mark.parametrize("room", [10**10, 4_300_000])
def test_a_budget_checks_the_versions_of_parameters_and_small_tensors(room: int) -> None:
    layer = torch.nn.Linear(512, 512)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x, small = torch.ones(4, 512, requires_grad=True), torch.ones(4, 1)
    with memory.budget(memory.current() + room):
        loss = layer(x).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        with pytest.raises(RuntimeError, match=STALE):
            loss.backward()
        loss = (x * small).sum()
        small.mul_(2)
        with pytest.raises(RuntimeError, match=STALE):
            loss.backward()


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_saved_tensor_that_was_changed_and_dropped_is_still_refused(context: str) -> None:
    p = torch.nn.Parameter(torch.randn(512, 512))
    with CONTEXTS[context]():
        h = p * 1
        y = h.sin().sum()
        h.add_(1)
        del h
        with pytest.raises(RuntimeError, match=STALE):
            y.backward()
    norm, linear, x = normed_linear()
    n = norm(x * 1.0)
    y = linear(n)
    with torch.no_grad():
        n.mul_(2)
    del n
    with pytest.raises(RuntimeError, match=STALE):
        torch.autograd.grad(y.sum(), linear.weight)
