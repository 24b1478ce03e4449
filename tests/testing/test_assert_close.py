"""assert_close passes for what is close and says where what is not differs most."""

import math
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import rushlight as torch

close = torch.testing.assert_close
NAN, INF = math.nan, math.inf


def tensor(*values: Any, dtype: Any = None) -> torch.Tensor:
    """A tensor of these values."""
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (tensor(1.0, 2.0), tensor(1.000001, 2.0), {}),
        (tensor(1.0, dtype=torch.bfloat16), tensor(1.01, dtype=torch.bfloat16), {}),
        (tensor(1.0), tensor(1.5), {"rtol": 0.4, "atol": 0}),
        (tensor(INF, -INF), tensor(INF, -INF), {}),
        (tensor(NAN, 1.0), tensor(NAN, 1.0), {"equal_nan": True}),
        (tensor(1, 2), tensor(1.0, 2.0), {"check_dtype": False}),
        (tensor(), tensor(), {}),
        (torch.ones(2, 3), torch.ones(3, 2).T, {}),
        (torch.nn.Parameter(torch.ones(1)), torch.ones(1), {}),
        ([1, {"a": tensor(1.0), "b": None}], (1, OrderedDict(b=None, a=tensor(1.0))), {}),
        (np.ones(2), np.ones(2), {}),
        (1, 1.0, {"check_dtype": False}),
        (np.float32(1), 1.0, {}),
        (NAN, NAN, {"equal_nan": True}),
        (INF, INF, {}),
        (True, True, {}),
        ([], (), {}),
        ({}, {}, {}),
    ],
)
def test_what_is_close_passes(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "options", "message"),
    [
        (tensor(1.0), tensor(1.1), {}, "Tensor-likes are not close!"),
        (tensor(1.0), tensor(1.00001), {"rtol": 0, "atol": 0}, "Tensor-likes are not equal!"),
        (tensor(NAN), tensor(NAN), {}, "nan at index (0,)"),
        (tensor(INF), tensor(-INF), {}, "inf at index (0,)"),
        (torch.tensor(1.0), torch.tensor(2.0), {}, "Scalars are not close!\n\nExpected 2.0 but got 1.0."),
        (tensor(1), tensor(1.0), {}, "The values for attribute 'dtype' do not match: torch.int64 != torch.float32."),
        (tensor(1.0), tensor(1.0, 1.0), {}, "'shape' do not match: torch.Size([1]) != torch.Size([2])"),
        (torch.ones(2, 3), torch.ones(3, 2).T, {"check_stride": True}, "'stride()' do not match: (3, 1) != (1, 2)"),
        (tensor(255, dtype=torch.uint8), tensor(0, dtype=torch.uint8), {}, "difference: 255 at index (0,)"),
        (tensor(True, False), tensor(True, True), {}, "difference: 1 at index (1,)"),
        (1, 2, {}, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
        (1, 1.0, {}, "The (d)types do not match"),
        (1.0, 0.0, {}, "Relative difference: inf"),
        (1.0, INF, {}, "Scalars are not close!"),
        (True, False, {}, "Booleans mismatch: True is not False"),
        (None, 1, {}, "None mismatch: None is not 1"),
        ([1, 2], [1], {}, "The length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, {}, "Missing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']"),
        ([{"k": [1, 2]}], [{"k": [1, 3]}], {}, "The failure occurred for item [0]['k'][1]"),
    ],
)  # fmt: skip
def test_what_differs_is_said(actual: Any, expected: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError) as failure:
        close(actual, expected, **options)
    assert message in str(failure.value)


def test_a_message_says_how_many_elements_differ_and_where_most() -> None:
    with pytest.raises(AssertionError) as failure:
        close(torch.tensor([[1.0, 2.0], [3.0, 9.0]]), torch.tensor([[1.0, 4.0], [3.0, 4.0]]))
    assert str(failure.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 5.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 1.25 at index (1, 1) (up to 1.3e-06 allowed)"
    )


def test_messages_of_ones_own() -> None:
    with pytest.raises(AssertionError, match=r"^mine$"):
        close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match=r"^Before: Scalars are not equal!"):
        close(1, 2, msg=lambda generated: f"Before: {generated}")


def test_what_cannot_be_compared_is_refused() -> None:
    for actual, expected in ((tensor(1.0), np.ones(1)), (tensor(1.0), [1.0]), ("a", "a"), ({1}, {1}), ({}, [])):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            close(actual, expected)
    with pytest.raises(TypeError, match="Parameter"):
        close(torch.nn.Parameter(torch.ones(1)), torch.ones(1), allow_subclasses=False)
    with pytest.raises(TypeError, match=r"item \[0\]"):
        close(["a"], ["a"])
    for name, other in (("rtol", "atol"), ("atol", "rtol")):
        with pytest.raises(ValueError, match=f"but got no {other}"):
            close(1.0, 1.0, **{name: 1.0})


def test_tensors_with_a_graph_are_compared_without_it() -> None:
    x = torch.ones(2, requires_grad=True)
    close(x * 2, torch.full((2,), 2.0))
    with pytest.raises(AssertionError):
        close(x * 2, x)


@pytest.mark.parametrize("wide", [torch.uint16, torch.uint32, torch.uint64])
@pytest.mark.parametrize("other", [torch.int64, torch.int8, torch.bool, torch.uint8])
def test_unsigned_integers_are_compared_with_those_of_other_dtypes(wide: torch.dtype, other: torch.dtype) -> None:
    whole, rest = tensor([1, 0]).to(wide), tensor([1, 0]).to(other)
    torch.testing.assert_close(whole, rest, check_dtype=False)
    torch.testing.assert_close(rest, whole, check_dtype=False)
    with pytest.raises(AssertionError, match="not equal"):
        torch.testing.assert_close(whole, 1 - rest.long(), check_dtype=False)


def test_numbers_beyond_int64_are_no_negative_ones() -> None:
    least = tensor([-1])
    with pytest.raises(AssertionError):
        torch.testing.assert_close(least.view(torch.uint64), least, check_dtype=False)
