"""Nodes that are called, and what they show of what they take and keep."""

import pytest

import rushlight as torch
from rushlight.autograd.graph import get_gradient_edge


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def test_a_node_called_with_a_wrong_number_of_gradients_is_a_type_error():
    x = leaf(2)
    node = (x**2).grad_fn
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        node(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="expected 1 arguments, got 0 instead"):
        node()
    with pytest.raises(TypeError, match="expected 2 arguments, got 1 instead"):
        x.unbind()[0].grad_fn(torch.ones(()))


def test_a_node_called_gives_one_tensor_for_one_input_and_a_tuple_for_several():
    x = leaf(2)
    assert (x**2).grad_fn(torch.ones(2)).tolist() == [2.0, 2.0]
    assert x.exp().grad_fn(torch.ones(2)).requires_grad
    found = (x * 3).grad_fn(torch.ones(2))
    assert found[0].tolist() == [3.0, 3.0] and found[1] is None
    assert x.unbind()[0].grad_fn(torch.tensor(5.0), None).tolist() == [5.0, 0.0]
    assert x.exp().grad_fn(None) is None


def test_the_node_of_a_leaf_called_accumulates():
    x = leaf(2)
    x.register_hook(lambda g: g * 10)
    assert get_gradient_edge(x).node(torch.tensor([1.0, 2.0])) == ()
    assert x.grad.tolist() == [1.0, 2.0]


INPUTS = {
    "a condition": (lambda x: torch.where(x > 0, x, x * 2), 2),
    "an index": (lambda x: x.gather(0, torch.zeros(1, dtype=torch.int64)), 1),
    "indices": (lambda x: x[torch.tensor([0])], 1),
    "a mask": (lambda x: x.masked_fill(x > 0, 1.0), 1),
    "an exponent": (lambda x: x**2, 1),
    "a base": (lambda x: 2**x, 1),
    "a weight": (lambda x: torch.lerp(x, x, 0.5), 2),
    "a factor": (lambda x: x * 2, 2),
}


@pytest.mark.parametrize("case", INPUTS)
def test_inputs_that_can_have_no_gradient_are_no_inputs_of_a_node(case):
    make, count = INPUTS[case]
    seen = []
    x = leaf(3)
    node = make(x).grad_fn
    assert len(node.next_functions) == count
    node.register_hook(
        lambda inputs, outputs: seen.append(len(inputs)) or tuple(g if g is None else g * 2 for g in inputs)
    )
    make_plain = leaf(3)
    y = make(x)
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append(len(inputs)) or tuple(g if g is None else g * 2 for g in inputs)
    )
    y.sum().backward()
    make(make_plain).sum().backward()
    assert seen == [count] and torch.allclose(x.grad, 2 * make_plain.grad)


def test_saved_indices_have_none_for_a_dimension_taken_whole():
    x = leaf(3, 4)
    assert x[:, [0, 1]].grad_fn._saved_indices[0] is None
    assert [i.tolist() for i in x[:, [0, 1]].grad_fn._saved_indices[1:]] == [[0, 1]]
    assert [i.tolist() for i in x[torch.tensor([0]), torch.tensor([1])].grad_fn._saved_indices] == [[0], [1]]
    y = x * 1
    y[:, [0]] = torch.ones(3, 1)
    assert y.grad_fn._saved_indices[0] is None and y.grad_fn._saved_indices[1].tolist() == [0]


def test_raw_saved_tensors_of_operators_and_custom_functions_are_saved_tensors():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(2)
    kept = [x.exp().grad_fn._raw_saved_result, Double.apply(x).grad_fn._raw_saved_tensors[0]]
    assert all(isinstance(k, torch.autograd.SavedTensor) for k in kept)
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_the_node_that_runs_is_found_by_what_it_calls() -> None:
    seen: list[str] = []
    current = torch._C._current_autograd_node

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(current().name())
            return g * 2

    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(current().name()))
    y = Double.apply(x)
    y.register_hook(lambda g: seen.append(type(current()).__name__))
    y.sin().sum().backward()
    assert seen == ["DoubleBackward", "DoubleBackward", "torch::autograd::AccumulateGrad"]
    assert current() is None


def test_hooks_that_are_put_into_a_tensor_run() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    for tensor in (x, y):
        tensor._backward_hooks = {0: lambda g: g * 3}
    y.sum().backward()
    assert x.grad.tolist() == [18.0, 18.0]
    x._backward_hooks = None
    assert torch.autograd.grad(x.sum(), x)[0].tolist() == [1.0, 1.0]


def test_what_cannot_be_differentiated_twice_is_an_error_in_the_graph() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    x, g = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (found,) = torch.autograd.grad(Once.apply(x), x, g, create_graph=True)
    assert type(found.grad_fn).__name__ == "Error" and found.grad_fn.name() == "torch::autograd::Error"
