"""What backward and grad warn of and refuse, batches of gradients, and gradients that stand for none."""

import warnings

import pytest

import rushlight as torch


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def test_backward_that_records_itself_warns_of_the_cycle_and_grad_does_not():
    x = leaf(2)
    with pytest.warns(
        UserWarning, match=r"Using backward\(\) with create_graph=True will create a reference cycle"
    ) as caught:
        x.sum().backward(create_graph=True)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="reference cycle"):
        torch.autograd.backward(x.sum(), create_graph=True)
    x.grad = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autograd.grad((x * x).sum(), x, create_graph=True)
        torch.autograd.backward((x * x).sum(), create_graph=True, inputs=[x])
    x.grad = None


@pytest.mark.parametrize("shape", [(2,), (2, 4), (2, 3, 1)])
def test_a_batch_of_gradients_must_have_the_outputs_shape_behind_its_first_dimension(shape):
    x = leaf(3)
    with pytest.raises(
        RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension of each grad_output"
    ):
        torch.autograd.grad(x.exp(), x, torch.ones(*shape), is_grads_batched=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_a_batch_of_gradients_is_cast_to_the_outputs_dtype(dtype):
    x = leaf(3)
    given = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    (g,) = torch.autograd.grad(x * 2, x, given, is_grads_batched=True)
    assert g.dtype == torch.float32 and g.tolist() == [[2, 4, 6], [8, 10, 12]]


def test_a_complex_gradient_of_a_real_output_is_refused():
    x = leaf(3)
    for batched, shape in ((False, (3,)), (True, (2, 3))):
        with pytest.raises(RuntimeError, match="both grad_output and output are required to have the same dtype"):
            torch.autograd.grad(x * 2, x, torch.ones(*shape, dtype=torch.complex64), is_grads_batched=batched)


def test_zeros_that_stand_for_a_gradient_require_grad_where_the_others_do():
    x, y = leaf(3), leaf(2)
    for create in (False, True):
        found = torch.autograd.grad((x * x).sum(), [x, y], create_graph=create, materialize_grads=True)
        assert [g.requires_grad for g in found] == [create, create] and found[1].tolist() == [0, 0]


def test_zeros_that_stand_for_a_batch_have_the_shape_of_the_input():
    x, y = leaf(3), leaf(2)
    g = torch.autograd.grad(x.exp(), [x, y], torch.ones(4, 3), is_grads_batched=True, materialize_grads=True)
    assert [tuple(v.shape) for v in g] == [(4, 3), (2,)]


def test_a_second_backward_says_how_to_allow_it():
    x = leaf(2)
    y = x.exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        y.backward()


def test_data_and_requires_grad_cannot_be_deleted():
    x = leaf(2)
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del x.data
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        del x.requires_grad


def test_contexts_of_autograd_may_be_left_without_saying_why():
    x = leaf(2)
    for context in (
        torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        torch.autograd.graph.save_on_cpu(),
        torch.autograd.detect_anomaly(),
        torch.autograd.set_detect_anomaly(True),
    ):
        context.__enter__()
        context.__exit__()
    assert not torch.is_anomaly_enabled()
    x.exp().sum().backward()


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_view_of_a_view_made_without_gradients_says_so_when_it_is_changed(mode):
    x = leaf(4).clone()
    with getattr(torch, mode)():
        v = x.view(2, 2)
    w = v.view(4)
    name = mode.removesuffix("_mode")
    with pytest.raises(
        RuntimeError, match=f"Output 0 of View is a view of a view which was created in {name} mode and is being"
    ):
        w.mul_(2)
    with pytest.raises(RuntimeError, match=f"^A view was created in {name} mode and is being modified inplace"):
        v.mul_(2)


def test_whether_several_threads_may_be_used_is_noted():
    enabled, setting = torch.autograd.is_multithreading_enabled, torch.autograd.set_multithreading_enabled
    assert enabled()
    with setting(False):
        assert not enabled()
    assert enabled()
    assert not setting(False)(enabled)() and enabled()
    setting(False)
    assert not enabled()
    setting(True)


def test_the_gradient_given_for_an_output_that_is_an_input_keeps_its_graph():
    x = leaf(2)
    y = x * 3
    (g,) = torch.autograd.grad(y, y, y)
    assert g is y and torch.autograd.grad(g.sum(), x)[0].tolist() == [3.0, 3.0]
    other, several = leaf(0), leaf(2, 3)
    assert torch.autograd.grad([other, several], several, [other, several])[0] is several
    zero = torch.zeros(2, requires_grad=True)
    assert torch.autograd.grad(zero, zero, zero)[0] is zero
    (once,) = torch.autograd.grad([y * 1, y], y, [torch.ones(2), y])  # more than what was given
    assert not once.requires_grad and once.tolist() == [4.0, 4.0]


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_a_gradient_with_a_graph_is_added_to_in_place_and_keeps_it():
    x = leaf(2)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    penalty = (first * first).sum()
    x.backward(torch.ones(2))
    assert x.grad is first and first.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(penalty, x)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [2.0, 2.0]
    x.grad = None


def test_an_input_before_one_that_is_refused_retains_its_gradient():
    x = leaf(2)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"does not require grad: input 1 of backward\(\)"):
        y.sum().backward(inputs=[y, x.detach()])
    assert y.retains_grad


def test_batched_gradients_leave_grad_of_tensors_that_retain_it_alone():
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    (g,) = torch.autograd.grad(y.sum(), x, torch.arange(3.0), is_grads_batched=True)
    assert g.tolist() == [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]] and y.grad is None


def test_batched_gradients_of_a_diagonal_that_was_filled_beyond_a_transpose():
    x = leaf(3, 2)
    y = x * 1
    y.fill_diagonal_(5.0)
    (one,) = torch.autograd.grad(y.t().sum(), x, retain_graph=True)
    (g,) = torch.autograd.grad(y.t().sum(), x, torch.ones(2), is_grads_batched=True)
    assert one.tolist() == [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] and g.tolist() == [one.tolist()] * 2


def test_batched_gradients_of_a_diagonal_of_memory_in_columns():
    x = leaf(2, 3)
    y = (x * 1).t().clone()
    assert y.stride() == (1, 3)
    y.diagonal().zero_()
    (g,) = torch.autograd.grad(y.sum(), x, torch.ones(2), is_grads_batched=True)
    assert g.tolist() == [[[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]] * 2


def test_a_gradient_that_was_saved_and_is_then_added_to_is_noticed():
    x, weight = leaf(2), leaf(2)
    x.sum().backward()
    loss = (weight * x.grad).sum()
    x.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_gradient_of_an_output_that_was_given_another_shape_is_summed_to_the_shape_that_it_had():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x @ x
    with torch.no_grad():
        y.set_(torch.zeros(3))
    torch.autograd.backward(y, torch.tensor([1.0, 2.0, 3.0]), retain_graph=True)
    assert x.grad.tolist() == [12.0, 24.0]
    assert torch.autograd.grad(y, y, torch.ones(3))[0].tolist() == 3.0
    with torch.no_grad():
        y.set_()
    x.grad = None
    y.backward(gradient=torch.zeros(0))
    assert x.grad.tolist() == [0.0, 0.0]


def test_a_gradient_that_does_not_fit_the_shape_that_an_output_had_is_refused():
    x = torch.ones(1, 2, requires_grad=True)
    y = torch.cat([x, x])
    with torch.no_grad():
        y.set_()
    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0 - got \[0\] but expected shape compatible with \[2, 2\]"
    ):
        torch.autograd.grad(y, x, torch.zeros(0), allow_unused=True)


def test_zeros_are_made_for_a_gradient_edge_that_nothing_reaches():
    x, z = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(z * 2)
    zeros, at_x = torch.autograd.grad((x * 2).sum(), (edge, x), materialize_grads=True)
    assert zeros.tolist() == [0.0] * 3 and at_x.tolist() == [2.0] * 2


def test_a_loss_that_was_given_another_shape_has_a_gradient_of_the_shape_that_it_had():
    seen, x = [], torch.ones(3, requires_grad=True)
    y = x.sum()
    with torch.no_grad():
        y.set_(torch.zeros(1))
    y.register_hook(lambda g: seen.append(g.shape))
    y.backward()
    assert seen == [()] and x.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize("kind", [list, tuple])
def test_the_gradient_of_one_tensor_in_a_list(kind: type) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward(kind([torch.tensor([1.0, 3.0])]))
    assert x.grad.tolist() == [2, 6]
    x.sum().backward([None])
    assert x.grad.tolist() == [3, 7]
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        (x * 2).backward(kind([torch.ones(2), torch.ones(2)]))
    with pytest.raises(TypeError, match="can be either Tensors or None, but got float"):
        x.sum().backward(kind([1.0]))


@pytest.mark.parametrize("bad", ["abc", [3], [None], {"a": 3}])
def test_what_is_no_tensor_is_named(bad: object) -> None:
    x = torch.ones(2, requires_grad=True)
    for call in (lambda: torch.autograd.backward(bad), lambda: torch.autograd.grad(bad, x)):
        with pytest.raises(AssertionError, match=r"Expected output to be a torch\.Tensor"):
            call()
    for call in (lambda: x.sum().backward(inputs=bad), lambda: torch.autograd.grad(x.sum(), bad)):
        with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got"):
            call()
