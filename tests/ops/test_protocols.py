"""Tensors among Python's and NumPy's objects."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import rushlight as torch


def test_questions() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert x.numel() == x.nelement() == 6 and x.dim() == x.ndimension() == 2 and x.size(-1) == 3
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.element_size() == 8
    assert x.is_floating_point() and not x.is_complex() and x.is_signed() and torch.is_tensor(x)
    assert x.is_same_size(torch.zeros(2, 3)) and not x.is_pinned() and x.is_cpu and not x.is_cuda
    assert torch.is_nonzero(torch.tensor([2])) and not torch.is_nonzero(torch.tensor(0.0))
    assert x[1:].storage_offset() == 3 and x.is_set_to(x.detach()) and not x.is_set_to(x.clone())
    with pytest.raises(IndexError):
        x.size(2)
    with pytest.raises(IndexError):
        x.stride(-3)


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j])
def test_item_and_conversions(value: Any) -> None:
    t = torch.tensor([value], dtype=torch.float64 if isinstance(value, float) else None)
    assert t.item() == value and type(t.item()) is type(value) and complex(t) == value
    if not isinstance(value, complex):
        assert float(t) == value and int(t) == int(value)


def test_conversions_refuse_several_elements() -> None:
    with pytest.raises(RuntimeError, match="2 elements"):
        torch.ones(2).item()
    for convert in (float, int, complex):
        with pytest.raises(ValueError, match="one element"):
            convert(torch.ones(2))
    with pytest.raises(TypeError):
        operator.index(torch.tensor(1.0))
    assert [5, 6][torch.tensor(1)] == 6 and range(torch.tensor(2)) == range(2)


def test_tolist() -> None:
    assert torch.zeros(2, 0).tolist() == [[], []] and torch.tensor(2).tolist() == 2
    assert torch.tensor([1.5]).bfloat16().tolist() == [1.5]


def test_numpy_shares_memory_and_refuses_gradients() -> None:
    x = torch.zeros(2)
    x.numpy()[0] = 1
    assert x.tolist() == [1, 0]
    y = torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        y.numpy()
    assert y.numpy(force=True).tolist() == [0, 0]
    with pytest.raises(TypeError, match="BFloat16"):
        torch.zeros(1).bfloat16().numpy()


def test_numpy_functions() -> None:
    x = torch.ones(2, 3)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert isinstance(np.sin(x), torch.Tensor)
    assert isinstance(np.ones(3) * x, torch.Tensor) and (np.float64(2) * x).dtype is torch.float32
    assert (x * np.ones(3)).dtype is torch.float64
    assert np.sum(x, axis=0).tolist() == [2, 2, 2]
    assert np.array(x, copy=True) is not x.numpy()


def test_format_and_repr() -> None:
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.ones(2, requires_grad=True) * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    assert repr(torch.zeros(2, 0, dtype=torch.int32)) == "tensor([], size=(2, 0), dtype=torch.int32)"


# Copies --------------------------------------------------------------------------------------------


def test_copy_shares_and_deepcopy_does_not() -> None:
    x = torch.ones(2, requires_grad=True)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert shallow.data_ptr() == x.data_ptr() and deep.data_ptr() != x.data_ptr()
    assert shallow.requires_grad and deep.requires_grad and deep.is_leaf
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_deepcopy_keeps_what_is_shared() -> None:
    whole = torch.arange(6.0)
    part = whole[2:4]
    whole.note = [1]
    a, b, again = copy.deepcopy([whole, part, whole])
    assert a is again and a.note == [1] and a.note is not whole.note
    b.zero_()
    assert a.tolist() == [0, 1, 0, 0, 4, 5] and whole[2] == 2
    assert a._version == 1


def test_deepcopy_keeps_gradient_and_strides() -> None:
    x = torch.zeros(2, 3).t().requires_grad_()
    x.grad = torch.ones(3, 2)
    y = copy.deepcopy(x)
    assert y.stride() == (1, 3) and y.grad.tolist() == x.grad.tolist() and y.grad is not x.grad


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool", "int16"])
def test_pickle(dtype: str) -> None:
    x = torch.tensor([[0, 1, 0], [1, 1, 0]]).to(getattr(torch, dtype))
    for t in (x, x.t(), x[:, 1:], x[:, :1].expand(2, 4), x[:0], x[0, 0]):
        back = pickle.loads(pickle.dumps(t))
        assert back.dtype is t.dtype and back.tolist() == t.tolist() and back.shape == t.shape
    assert pickle.loads(pickle.dumps(x.t())).stride() == (1, 3)
    assert pickle.loads(pickle.dumps(x[:, :1].expand(2, 4))).stride()[1] == 0


def test_pickle_keeps_attributes_and_warns_of_hooks() -> None:
    x = torch.ones(2, requires_grad=True)
    x.note = "a"
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="will not be serialized"):
        back = pickle.loads(pickle.dumps(x))
    assert back.note == "a" and back.requires_grad and back.is_leaf


def test_named_results_are_pickled_and_printed() -> None:
    found = torch.ones(2).sort()
    back = pickle.loads(pickle.dumps(found))
    assert type(back) is torch.return_types.sort and back.indices.tolist() == [0, 1]
    assert repr(found).startswith("torch.return_types.sort(\nvalues=tensor(")
    values, indices = found
    assert values is found.values and found[1] is indices


# Memory --------------------------------------------------------------------------------------------


def test_resize() -> None:
    x = torch.arange(6.0)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert x.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(8)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.zeros(3).resize_as_(torch.zeros(2, 2)).shape == (2, 2)
    assert torch.zeros(4).resize_(2, 2, 1, 1, memory_format=torch.channels_last).stride() == (2, 1, 2, 2)
    assert torch.arange(6.0).reshape(2, 3).t().resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="require grad"):
        torch.zeros(2, requires_grad=True).resize_(3)
    with pytest.raises(RuntimeError, match="negative"):
        torch.zeros(2).resize_(-2)


def test_set() -> None:
    a, b = torch.arange(6.0), torch.zeros(1)
    b.set_(a)
    b[0] = 9
    assert a[0] == 9 and b.is_set_to(a)
    assert torch.zeros(1).set_(a.untyped_storage(), 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]]
    assert b.set_().numel() == 0
    with pytest.raises(TypeError, match="'source' must be Tensor or Storage, not int"):
        b.set_(3)
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.zeros(1).set_(a, 4, (3,))
    with pytest.raises(RuntimeError, match="type"):
        torch.zeros(1).set_(torch.zeros(1).double())


def test_storages() -> None:
    x = torch.arange(6.0)[2:]
    assert x.untyped_storage().nbytes() == 24 and len(x.storage()) == 6 and x.storage().tolist()[2] == 2
    assert x.untyped_storage().data_ptr() == x.data_ptr() - 8
    assert torch.is_storage(x.storage()) and not torch.is_storage(x)


def test_dlpack_shares_memory() -> None:
    array = np.zeros(2)
    torch.from_dlpack(array)[0] = 3
    assert array[0] == 3
    x = torch.zeros(2)
    np.from_dlpack(x)
    torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))[1] = 4
    assert x.tolist() == [0, 4] and x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="gradient"):
        torch.zeros(1, requires_grad=True).__dlpack__()
    with pytest.raises(RuntimeError):
        torch.from_dlpack([1])


def test_subclasses() -> None:
    class Own(torch.Tensor):
        pass

    own = torch.ones(2).as_subclass(Own)
    own.note = 1
    assert type(own) is Own and type(copy.deepcopy(own)) is Own and copy.deepcopy(own).note == 1
    x = torch.ones(2, requires_grad=True)
    assert (x * 2).as_subclass(Own).grad_fn is not None
    assert torch.Tensor._make_subclass(Own, torch.ones(1), True).requires_grad


def test_a_class_called_with_a_tensor_shows_it_with_its_place_in_the_graph() -> None:
    class Own(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    for made in (torch.Tensor, torch.FloatTensor, Own):
        x.grad = None
        (made(x * 2) * 3).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [6, 6] and not made(x).is_leaf
    plain = torch.ones(2)
    Own(plain).add_(1)
    assert plain.tolist() == [2, 2]
    meta = torch.ones(2, device="meta")
    for found in (meta.as_subclass(Own), Own(meta), meta.as_subclass(Own).detach()):
        assert found.__class__ is Own and found.device.type == "meta" and found.shape == (2,)
    assert meta.detach().__class__ is torch.Tensor
    with pytest.raises(NotImplementedError, match=r"as_subclass: a tensor of the layout torch\.sparse_coo"):
        torch.eye(2).to_sparse().as_subclass(Own)


def test_what_cannot_be_exchanged_is_refused_as_in_pytorch() -> None:
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        torch.ones(2).__dlpack__(stream=3)
    with pytest.raises(ValueError, match="Unknown device type meta"):
        torch.ones(2, device="meta").__dlpack_device__()


def test_hooks_are_warned_of_before_a_tensor_is_saved() -> None:
    x = torch.ones(2, requires_grad=True)
    torch.utils.hooks.warn_if_has_hooks(x)
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="will not be serialized"):
        torch.utils.hooks.warn_if_has_hooks(x)
    assert (
        torch.amp.autocast_mode.autocast is torch.autocast and torch.amp.grad_scaler.GradScaler is torch.amp.GradScaler
    )
