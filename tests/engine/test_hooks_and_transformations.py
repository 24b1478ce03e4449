"""Saved-tensor hooks that change nothing leave every derivative as it is: inside transformations, and through views."""

import gc
import weakref

import pytest
from tests.ops.declared import by_results

import rushlight as torch
from rushlight import func


def unchanged():
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)


def copied():
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)


def point(grad: bool = False) -> torch.Tensor:
    return torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize("hooks", [unchanged, copied])
@pytest.mark.parametrize("f", [torch.var, torch.prod, lambda x: x.softmax(-1), lambda x: x.sin().exp()])
def test_second_derivatives_of_transformations(f, hooks) -> None:
    expected = func.jacrev(func.jacfwd(f))(point())
    with hooks():
        found = func.jacrev(func.jacfwd(f))(point())
        outside = point(grad=True)
        (around,) = torch.autograd.grad(func.jacfwd(f)(outside).sum(), outside)
    assert torch.equal(found, expected)
    through = point(grad=True)
    assert torch.equal(around, torch.autograd.grad(func.jacfwd(f)(through).sum(), through)[0])


def test_second_derivatives_through_a_view_that_was_changed() -> None:
    found = []
    for hooks in (unchanged(), torch.enable_grad()):
        with hooks:
            x = point(grad=True)
            doubled = x + x
            doubled.view(-1).square_()
            (first,) = torch.autograd.grad(doubled.sin().sum(), x, create_graph=True)
            found.append(torch.autograd.grad(first.sum(), x)[0])
    assert torch.equal(*found)


@pytest.mark.parametrize("name", by_results())
def test_a_dual_result_that_is_saved_makes_no_cycle(name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        x = point(grad=True)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            tangent = torch.autograd.forward_ad.unpack_dual(getattr(dual, name)()).tangent
        alive = weakref.ref(x)
        del x, dual, tangent
        assert alive() is None
    finally:
        gc.enable()
