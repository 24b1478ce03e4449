"""Saved tensors: what is kept, version checks, pack and unpack hooks."""

import pytest
from tests.leaves import leaf

import rushlight as torch
from rushlight.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks


def packed_by(build):
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        build()
    return seen


def test_only_what_the_needed_gradients_name_is_saved():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    frozen = torch.ones(2, dtype=torch.float64)
    assert len(packed_by(lambda: x * w)) == 2
    assert [t.tolist() for t in packed_by(lambda: x * frozen)] == [[1.0, 1.0]]
    assert packed_by(lambda: x + w) == []
    assert packed_by(lambda: x * 3) == []
    assert packed_by(lambda: x.sum()) == []


def test_a_saved_input_changed_in_place_is_noticed_and_the_message_says_who():
    x = leaf(1.0, 2.0)
    c = torch.ones(2, dtype=torch.float64)
    y = x * c
    c.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*MulBackward0 saved as argument 'other'"):
        y.sum().backward()


def test_both_sites_are_named_under_anomaly_mode():
    x = leaf(1.0, 2.0)
    c = torch.ones(2, dtype=torch.float64)
    with torch.autograd.detect_anomaly():
        y = x * c
        c.add_(1)
        with pytest.raises(RuntimeError, match=r"(?s)changed by add.* at .*test_saved\.py:\d+.*y = x \* c"):
            y.sum().backward()


def test_a_saved_output_changed_in_place_is_noticed():
    y = leaf(1.0).exp()
    z = y * 1
    y.add_(1)
    with pytest.raises(RuntimeError, match="ExpBackward0 saved as its result"):
        z.sum().backward()


def test_in_place_operators_keep_the_value_they_overwrite():
    x, w = leaf(3.0), leaf(5.0)
    y = x * 1
    y.mul_(w)
    y.sum().backward()
    assert w.grad.tolist() == [3.0] and x.grad.tolist() == [5.0]


def test_hooks_nest_inner_first():
    order = []

    def hooks(name):
        return saved_tensors_hooks(
            lambda t: order.append(f"pack {name}") or t, lambda t: order.append(f"unpack {name}") or t
        )

    x = leaf(2.0)
    with hooks("outer"), hooks("inner"):
        y = x.exp()
    y.backward()
    assert order == ["pack inner", "pack outer", "unpack outer", "unpack inner"]


def test_hooks_may_replace_the_value_and_work_at_second_order():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy):
        y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [12.0] and h.tolist() == [12.0]


def test_an_unpack_hook_must_return_a_tensor():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t, lambda t: "nothing"):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.backward()


def test_a_pack_hook_may_not_change_its_input():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t), pytest.raises(RuntimeError, match="in place"):
        x * x


def test_hooks_can_be_disabled():
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
        assert (leaf(1.0) * 2).requires_grad


def test_save_on_cpu_copies():
    x = leaf(2.0)
    a = x * 1
    with save_on_cpu():
        y = a * a
    with torch.no_grad():
        a.data.mul_(100)
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_saved_attributes_of_a_node():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    assert y.grad_fn._saved_other is w and y.grad_fn._saved_self is x
    z = x.exp()
    assert z.grad_fn._saved_result.tolist() == z.tolist()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.grad_fn._saved_result


def test_hooks_see_auxiliary_results_too():
    x = torch.ones(64, requires_grad=True)
    seen = packed_by(lambda: torch.nn.functional.dropout(x, 0.5))
    assert len(seen) == 1 and seen[0].nbytes <= 64
    with saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy):
        y = torch.nn.functional.dropout(x, 0.5)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize(("product", "packed"), [
    (lambda a, b: a.mv(b), [(2, 3), (3,)]), (lambda a, b: a @ b, [(2, 3), (3,)]), (lambda a, b: a.mm(b[:, None]), [(3, 1), (2, 3)]),
    (lambda a, b: a * b, [(3,), (2, 3)]),
])  # fmt: skip
def test_products_save_their_operands_in_the_order_that_hooks_see_in_pytorch(product, packed) -> None:
    a, b, log = torch.ones(2, 3).requires_grad_(), torch.ones(3).requires_grad_(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append(tuple(t.shape)), t)[1], lambda t: t):
        product(a, b)
    assert log == packed
