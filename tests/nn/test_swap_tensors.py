"""Two tensors that exchange everything but their identity."""

import weakref

import pytest

import rushlight as torch


def test_everything_is_exchanged_but_identity() -> None:
    a, b = torch.zeros(2), torch.nn.Parameter(torch.ones(3))
    b.note, holder = 1, [a, b]
    torch.utils.swap_tensors(a, b)
    assert type(holder[0]) is torch.nn.Parameter and a.tolist() == [1, 1, 1] and a.note == 1 and a.requires_grad
    assert type(b) is torch.Tensor and b.tolist() == [0, 0] and not hasattr(b, "note") and not b.requires_grad
    (a**2).sum().backward()
    assert a.grad.tolist() == [2, 2, 2] and b.grad is None


def test_what_a_graph_or_a_weak_reference_leads_to_is_refused() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.zeros(2)
    out = (a * 2).sum()
    with pytest.raises(RuntimeError, match="Cannot swap t1: a graph leads to it"):
        torch.utils.swap_tensors(a, b)
    out.backward()
    del out
    torch.utils.swap_tensors(a, b)
    assert b.grad.tolist() == [2, 2] and not a.requires_grad
    kept = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        torch.utils.swap_tensors(b, a)
    assert kept() is a
    with pytest.raises(TypeError, match="expected a Tensor for argument 't2', got int"):
        torch.utils.swap_tensors(b, 1)
