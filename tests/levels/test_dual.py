"""The level stack, proven by dual numbers: tangents through operators, nested, and over the graph."""

import math

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad as fwad


def value(*v):
    return torch.tensor(v, dtype=torch.float64)


def test_tangents_of_products_sums_and_functions():
    with fwad.dual_level():
        x = fwad.make_dual(value(2.0), value(1.0))
        y = (x * x + x.exp() * 3).sum()
        assert math.isclose(fwad.unpack_dual(y).tangent.item(), 4 + 3 * math.exp(2), rel_tol=1e-12)
        assert fwad.unpack_dual(x * value(5.0)).tangent.item() == 5.0
        assert fwad.unpack_dual(value(1.0)).tangent is None


def test_levels_nest_to_second_derivatives():
    with fwad.dual_level() as outer:
        x = fwad.make_dual(value(2.0), value(1.0))
        with fwad.dual_level():
            y = fwad.make_dual(x, value(1.0))
            first = fwad.unpack_dual(y * y * y).tangent
        assert first.tolist() == [12.0]
        assert fwad.unpack_dual(first, level=outer).tangent.tolist() == [12.0]


def test_forward_over_reverse():
    x = value(2.0).requires_grad_()
    with fwad.dual_level():
        d = fwad.make_dual(x, value(1.0))
        (g,) = torch.autograd.grad((d * d * d).sum(), x, create_graph=True)
    y = x * x * x
    with fwad.dual_level():
        t = fwad.unpack_dual(fwad.make_dual(y, value(1.0)) * 2).tangent
    assert g.tolist() == [12.0] and t.tolist() == [2.0]


def test_levels_are_closed_in_order():
    with pytest.raises(RuntimeError, match="no level exists"):
        fwad.make_dual(value(1.0), value(1.0))
    a = fwad.enter_dual_level()
    b = fwad.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last"):
        fwad.exit_dual_level(level=a)
    fwad.exit_dual_level(level=b)
    fwad.exit_dual_level(level=a)
