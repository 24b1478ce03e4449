"""What of two sides' numbers is taken for rounding, and what is not."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def left(*statements: str, factor: float = 1.0, plus: float = 0.0) -> bool:
    """Whether a difference of ``y`` is left when the other side has ``factor`` times the reference's number, and more."""
    from tools.fuzzing.comparing import Difference, without_rounding
    from tools.fuzzing.kinds.base import with_torch
    from tools.fuzzing.observing import observe
    from tools.fuzzing.program import run

    reference, _ = with_torch()
    value = observe(run(list(statements), reference))["y"].facts["value"]
    found = Difference("y", "value", value, value * factor + plus, list(statements), tolerance=1e-9)
    return bool(list(without_rounding([found], list(statements), reference)))


def test_what_the_least_change_of_a_leaf_makes_is_rounding():
    leaf, fine = "x = torch.tensor([3.1, 5.7], dtype=torch.float64)", "y = (x * 1e5).sin().sum()"
    assert not left(leaf, fine, factor=1 + 5e-8)
    assert left(leaf, fine, factor=1 + 1e-5)


def test_numbers_of_which_a_rounding_leaves_nothing_say_nothing_and_those_beside_them_do():
    chaos = "y = x.pow(2).exp().sin()"
    assert not left("x = torch.tensor([5.0, 7.0, 9.0], dtype=torch.float64)", chaos, factor=0.9999)
    assert left("x = torch.tensor([1.0, 7.0, 9.0], dtype=torch.float64)", chaos, factor=0.9999)


def test_gradients_of_what_is_equal_jump_and_are_compared_all_the_same():
    leaf = "x = torch.tensor([2.0, 2.0], dtype=torch.float64).requires_grad_()"
    assert left(leaf, "y = torch.autograd.grad(x.amax(), x)[0]", factor=0.8)


def test_what_jumps_is_not():
    leaf, jumps = "x = torch.tensor([1.0, 2.0], dtype=torch.float64)", "y = (x == 2).double().sum()"
    assert left(leaf, jumps, factor=1 + 1e-8)
    kink = "y = (x - x.flip(0).flip(0) * 1.0).abs().sqrt().sum() + 1"
    assert left(leaf, kink, factor=1.5)


def test_numbers_are_judged_as_arrays_are():
    from tools.fuzzing.comparing import hold
    from tools.fuzzing.kinds.base import with_torch

    program = ["x = torch.tensor([True])", "y = [x.sin().item() * 2]"]  # in float32, where both sides are off
    assert not hold(program, *with_torch())


def test_bits_of_numbers_are_compared_as_numbers():
    import numpy as np
    from tools.fuzzing.precision import reinterpreted

    seen = ["y = x.view(torch.int64)"]
    bits, close, other = (np.array([1.0, number]).view(np.int64) for number in (0.0, -1e-17, 0.5))
    assert reinterpreted(seen, bits, close)
    assert not reinterpreted(seen, bits, other)
    assert not reinterpreted(["y = x.long()"], bits, close)


def test_what_becomes_float32_unsaid_is_compared_as_float32():
    flag, fine = "x = torch.tensor([True])", "y = x.sin().double().cos()"
    assert not left(flag, fine, factor=1 + 1e-7)
    assert left(flag, fine, factor=1 + 1e-5)
    assert left("x = torch.tensor([0.75], dtype=torch.float64)", fine, factor=1 + 1e-7)


def test_numbers_that_are_written_with_exponents_are_moved_too():
    large, all_cancels = "x = torch.tensor([1.0, 1e+30, 0.5], dtype=torch.float64)", "y = (x - x.mean()).sum()"
    assert not left(large, all_cancels, factor=1.5)
    assert left(large, "y = (x * 2).sum()", factor=1 + 1e-8)


def test_what_is_left_of_a_cancellation_in_16_bits_is_held_against_what_is_left_nearby():
    begin = ("a = torch.tensor([[1.0, -2.0]], dtype=torch.bfloat16)",
             "w = torch.tensor([0.25, 0.375], dtype=torch.bfloat16).requires_grad_()")  # fmt: skip
    weighted = "y = torch.autograd.grad(torch.cov(a, aweights=w), w)[0]"
    assert not left(*begin, weighted, plus=0.125)
    assert left(*begin, weighted, plus=4.0)
    assert left(*begin, "y = a * 3", plus=0.5)


def test_a_quotient_by_what_rounding_leaves_of_0_may_be_infinite_and_others_may_not():
    leaf = "x = torch.tensor([0.1, 3.0], dtype=torch.float64)"
    chaos = "y = 1 / (torch.complex(x, 3 * x) / torch.complex(x, 3 * x)).imag"
    assert not left(leaf, chaos, factor=float("inf"))
    assert left(leaf, "y = 1e13 * x", factor=float("inf"))
    assert left(leaf, chaos.replace("imag", "real"), factor=float("inf"))
