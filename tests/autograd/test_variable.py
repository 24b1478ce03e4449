"""torch.autograd.Variable, the deprecated name."""

import pytest

import rushlight as torch
from rushlight.autograd import Variable


def test_it_gives_a_leaf_on_the_same_memory() -> None:
    data = torch.ones(2)
    x = Variable(data, requires_grad=True)
    assert type(x) is torch.Tensor and x.is_leaf and x.requires_grad and not data.requires_grad
    assert x.data_ptr() == data.data_ptr() and x is not data
    Variable(data).add_(1)
    assert data.tolist() == [2, 2] and data._version == x._version == 1
    y = Variable(x * 2)
    assert y.grad_fn is None and not y.requires_grad


def test_what_is_a_variable() -> None:
    assert isinstance(torch.ones(1), Variable) and isinstance(torch.nn.Parameter(torch.ones(1)), Variable)
    assert not isinstance(3, Variable)
    assert Variable().shape == (0,)


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="has to be a tensor, but got int"):
        Variable(3)
    with pytest.raises(RuntimeError, match="floating point and complex"):
        Variable(torch.ones(2, dtype=torch.int64), requires_grad=True)
    with pytest.warns(UserWarning, match="volatile was removed"):
        Variable(torch.ones(2), volatile=True)


def test_the_engine_runs_backward():
    engine = torch.autograd.Variable._execution_engine
    x, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y, one = (x * x).sum(), torch.tensor(1.0)
    assert engine.run_backward((y,), (one,), True, False, (), allow_unreachable=True, accumulate_grad=True) == ()
    assert x.grad.tolist() == [2, 2]
    g, none = engine.run_backward((y,), (one,), True, False, (x, other), allow_unreachable=True, accumulate_grad=False)
    assert g.tolist() == [2, 2]
    assert none is None
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        engine.run_backward((y,), (one,), False, False, (x, other))
