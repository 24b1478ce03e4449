"""Conversions: to and its like, copies, memory formats."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch


def test_to_returns_itself_where_nothing_changes() -> None:
    x = torch.ones(2)
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.float() is x and x.cpu() is x and x.to() is x
    assert x.to(x) is x and x.contiguous() is x and x.type_as(x) is x
    assert x.to(torch.float32, copy=True) is not x


def test_to_takes_its_forms() -> None:
    x = torch.ones(2)
    half = torch.zeros(1, dtype=torch.float16)
    for made in (x.to(torch.float16), x.to("cpu", torch.float16), x.to(half), x.to(dtype=torch.float16), x.half(),
                 x.to(device="cpu", dtype=torch.float16, non_blocking=True), x.to(other=half), x.type_as(half),
                 x.to(torch.device("cpu"), torch.float16, False, True)):  # fmt: skip
        assert made.dtype is torch.float16 and made.tolist() == [1, 1]
    with pytest.raises(AssertionError, match="CUDA"):
        x.to("cuda")
    with pytest.raises(AssertionError, match="CUDA"):
        x.cuda()
    for wrong in ({"foo": 1}, {"dtype": "float"}):
        with pytest.raises(TypeError):
            x.to(**wrong)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"),
     ("long", "int64"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"),
     ("cfloat", "complex64"), ("cdouble", "complex128")],
)  # fmt: skip
def test_shorthands(name: str, dtype: str) -> None:
    for source in (torch.tensor([0.0, 2.0]), torch.tensor([0, 2]), torch.tensor([0.0, 2.0]).bfloat16()):
        made = getattr(source, name)()
        assert made.dtype is getattr(torch, dtype)
        assert made.tolist() == ([False, True] if name == "bool" else [0, 2])


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_casts_are_differentiable() -> None:
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (x.float() * 2).half().sum().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [2, 2, 2]
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    z.to(torch.float32).sum().backward()
    assert z.grad.tolist() == [1, 1]
    assert not x.long().requires_grad


def test_casts_wrap_around_as_in_c() -> None:
    assert torch.tensor([300, -1]).byte().tolist() == [44, 255]
    assert torch.tensor([-1.0, 300.0]).byte().tolist() == [255, 44]
    assert torch.tensor([1.9, -1.9]).long().tolist() == [1, -1]


def test_memory_formats() -> None:
    x = torch.zeros(2, 3, 4, 5)
    y = x.to(memory_format=torch.channels_last)
    assert y.stride() == (60, 1, 15, 3) and y.is_contiguous(memory_format=torch.channels_last)
    assert not y.is_contiguous() and y.contiguous().stride() == x.stride()
    assert y.clone().stride() == y.stride()
    assert y.clone(memory_format=torch.contiguous_format).stride() == x.stride()
    assert x.contiguous(memory_format=torch.channels_last).stride() == y.stride()
    assert torch.empty(1, 2, 3, 4, memory_format=torch.channels_last).stride() == (24, 1, 8, 2)
    assert y.double().stride() == y.stride()
    assert y.dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="rank"):
        torch.zeros(2).contiguous(memory_format=torch.channels_last)


def test_copy_broadcasts_and_casts() -> None:
    x = torch.zeros(2, 3, dtype=torch.int64)
    assert x.copy_(torch.tensor([1.7, 2.0, 3.0])).tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(RuntimeError, match="broadcast"):
        x.copy_(torch.ones(4))
    with pytest.raises(TypeError):
        x.copy_([3])


def test_copy_is_differentiable() -> None:
    a, b = (torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    y = a * 3
    y.copy_(b.float())
    y.sum().backward()
    assert a.grad.tolist() == [0, 0] and b.grad.tolist() == [1, 1]


def test_detach_shares_and_clone_does_not() -> None:
    x = torch.ones(2, requires_grad=True)
    x.detach()[0] = 5
    assert x.tolist() == [5, 1]
    c = x.clone()
    assert c.grad_fn is not None and c.data_ptr() != x.data_ptr()
    assert torch.detach_copy(x).data_ptr() != x.data_ptr()


def test_clone_of_an_expanded_tensor_is_dense() -> None:
    x = torch.ones(3, 1).expand(3, 4)
    assert x.stride() == (1, 0) and x.clone().stride() == (4, 1)
    assert np.shares_memory(x.numpy(), x.clone().numpy()) is False


def test_complex_numbers_are_true_where_either_part_is_not_zero():
    x = torch.tensor([0.5j, 0j, 1 + 0j])
    mask = torch.zeros(3, dtype=torch.bool)
    mask[:] = x
    for found in (x.bool(), x.to(torch.bool), torch.zeros(3, dtype=torch.bool).copy_(x), mask, x.conj().bool()):
        assert found.tolist() == [True, False, True]


def test_the_type_of_a_tensor_class_is_the_default_dtype() -> None:
    assert torch.ones(1, dtype=torch.int64).type(torch.Tensor).dtype is torch.float32
    with pytest.raises(TypeError, match="dtype must be a type, str, or dtype object"):
        torch.ones(1).type(3)
