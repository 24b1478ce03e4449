"""Making tensors: from data, of a size, after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [(1, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), (2j, "complex64", ()), ([], "float32", (0,)),
     ([[], []], "float32", (2, 0)), ([1, 2], "int64", (2,)), ([1, 2.5], "float32", (2,)), ([True, 2], "int64", (2,)),
     ([1, 2j], "complex64", (2,)), ([2.0, np.float64(1)], "float64", (2,)),
     ([[1.0], [np.float64(1)]], "float64", (2, 1)),
     (((1, 2), (3, 4)), "int64", (2, 2)), (range(3), "int64", (3,)),
     (np.float64(1), "float64", ()), ([np.float64(1), 2.0], "float64", (2,)), ([np.float32(1), 2.0], "float32", (2,)),
     (np.ones(2, np.int16), "int16", (2,)), (bytearray(b"ab"), "int64", (2,))],
)  # fmt: skip
def test_tensor_infers(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    t = torch.tensor(data)
    assert t.dtype is getattr(torch, dtype) and tuple(t.shape) == shape


@pytest.mark.parametrize(
    ("data", "error"),
    [("a", TypeError), (["a"], ValueError), (None, RuntimeError), ([None], RuntimeError), ([[1, 2], [3]], ValueError),
     ([[1, 2], 3], TypeError), ([1, [2]], TypeError), (2**63, ValueError), ([2**70], ValueError),
     ({1: 2}, RuntimeError),
     ({1}, RuntimeError), (np.array(["a"]), TypeError)],
)  # fmt: skip
def test_tensor_refuses(data: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        torch.tensor(data)


def test_tensor_in_a_dtype() -> None:
    assert torch.tensor([1.9, -1.9], dtype=torch.int32).tolist() == [1, -1]
    assert torch.tensor([3, 0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor(-1, dtype=torch.uint8).item() == 255
    assert torch.tensor(1e39, dtype=torch.float32).item() == float("inf")
    assert torch.tensor([1.0], dtype=float).dtype is torch.float64
    for bad in (300, float("nan")):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.tensor(bad, dtype=torch.uint8)
    with pytest.raises(TypeError, match="complex"):
        torch.tensor(1j, dtype=torch.float32)
    with pytest.raises(TypeError, match=r"torch\.dtype"):
        torch.tensor(1, dtype="float32")


def test_tensor_copies_and_warns_of_tensors() -> None:
    array = np.ones(2)
    t = torch.tensor(array)
    array[0] = 5
    assert t.tolist() == [1, 1]
    with pytest.warns(UserWarning, match="recommended"):
        copied = torch.tensor(t)
    t[0] = 7
    assert copied.tolist() == [1, 1]
    assert torch.tensor([torch.tensor(1.0), 2]).tolist() == [1, 2]
    assert torch.tensor([torch.tensor([1.0]), torch.tensor([2.0])]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="one element"):
        torch.tensor([torch.ones(2), torch.ones(2)])
    with pytest.warns(UserWarning, match="extremely slow"):
        assert tuple(torch.tensor([np.ones(3), np.ones(3)]).shape) == (2, 3)


def test_requires_grad_needs_a_dtype_with_gradients() -> None:
    assert torch.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)
    with pytest.raises(RuntimeError, match="floating point"):
        torch.zeros(1, dtype=torch.int64, requires_grad=True)


def test_devices() -> None:
    assert torch.zeros(1, device="cpu").device == torch.device("cpu")
    with pytest.raises(AssertionError, match="CUDA"):
        torch.zeros(1, device="cuda")
    with pytest.raises(RuntimeError, match="mps"):
        torch.tensor(1.0, device="mps")
    with torch.device("cpu"):
        assert torch.ones(1).item() == 1
    with torch.device("cuda"), pytest.raises(AssertionError):
        torch.ones(1)
    assert torch.ones(1).item() == 1 and torch.get_default_device() == torch.device("cpu")


def test_a_device_by_keyword() -> None:
    assert torch.device(device="cuda:1") == torch.device("cuda", 1) == torch.device(device=torch.device("cuda:1"))
    with pytest.raises(TypeError):
        torch.device(device="cpu", index=0)


def test_from_numpy_shares() -> None:
    array = np.zeros(3, np.float32)
    t = torch.from_numpy(array)
    t[0] = 1
    assert array[0] == 1
    with pytest.raises(TypeError):
        torch.from_numpy([1])
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(array[::-1])
    with pytest.raises(ValueError, match="byte order"):
        torch.from_numpy(array.astype(">f4"))
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(array)


def test_as_tensor_shares_where_it_can() -> None:
    array, t = np.zeros(2), torch.zeros(2, requires_grad=True)
    assert torch.as_tensor(t) is t
    torch.as_tensor(array)[0] = 4
    assert array[0] == 4
    assert torch.as_tensor(array, dtype=torch.float32).dtype is torch.float32
    assert torch.as_tensor([1, 2]).dtype is torch.int64


def test_asarray() -> None:
    array = np.zeros(2)
    torch.asarray(array)[0] = 4
    assert array[0] == 4
    torch.asarray(array, copy=True)[0] = 5
    assert array[0] == 4
    assert torch.asarray([1, 2], dtype=torch.float64).dtype is torch.float64
    assert torch.asarray(bytearray(np.ones(2, np.float32).tobytes())).tolist() == [1, 1]
    with pytest.raises(ValueError, match="alias"):
        torch.asarray(array, dtype=torch.float32, copy=False)
    with pytest.raises(ValueError, match="alias"):
        torch.asarray([1, 2], copy=False)
    t = torch.ones(2, requires_grad=True)
    assert not torch.asarray(t, requires_grad=False).requires_grad
    assert torch.asarray(t, requires_grad=True) is t


def test_what_is_made_of_a_tensor_or_an_array_is_where_it_is_asked_for() -> None:
    for data in (torch.ones(2), np.ones(2, np.float32), torch.arange(2)):
        for make in (torch.asarray, torch.as_tensor):
            assert make(data, device="meta").device.type == "meta"
            with torch.device("meta"):
                assert make(data).device.type == "meta"
    with pytest.raises(ValueError, match="can't alias tensor from device 'cpu' to 'meta'"):
        torch.asarray(np.ones(2), device="meta", copy=False)
    with pytest.raises(NotImplementedError, match="no data"):
        torch.asarray(torch.ones(2, device="meta"), device="cpu")
    for data in (torch.ones(2), np.ones(2, np.float32)):
        assert torch.asarray(data, dtype=torch.float64, device="meta", copy=True).dtype is torch.float64


def test_asarray_keeps_the_graph_of_a_tensor_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.ops.create import create

    monkeypatch.setattr(create, "told", set())
    t = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="unspecified requires_grad now defaults to obj.requires_grad"):
        assert torch.asarray(t) is t
    assert torch.asarray(t * 2).grad_fn is not None
    assert torch.asarray(t, dtype=torch.float64).requires_grad


def test_frombuffer() -> None:
    memory = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = torch.frombuffer(memory, dtype=torch.int32, offset=4, count=2)
    assert t.tolist() == [1, 2]
    t[0] = 9
    assert memory[4] == 9
    for options in ({"offset": 16}, {"count": 5}, {"offset": 1}, {"count": 0}):
        with pytest.raises(ValueError):
            torch.frombuffer(memory, dtype=torch.int32, **options)
    with pytest.warns(UserWarning, match="not writable"):
        torch.frombuffer(bytes(4), dtype=torch.uint8)


# Of a size -----------------------------------------------------------------------------------------


def test_sizes_are_given_in_several_ways() -> None:
    for made in (torch.zeros(2, 3), torch.zeros((2, 3)), torch.zeros([2, 3]), torch.zeros(size=(2, 3)),
                 torch.zeros(torch.Size([2, 3])), torch.zeros(torch.tensor(2), np.int64(3))):  # fmt: skip
        assert tuple(made.shape) == (2, 3)
    assert torch.zeros([]).ndim == 0
    for wrong in ((), (2.0,), ((2,), (3,))):
        with pytest.raises(TypeError):
            torch.zeros(*wrong)
    with pytest.raises(RuntimeError, match="negative"):
        torch.zeros(-1)


def test_full_follows_its_value() -> None:
    assert torch.full((2,), 3).dtype is torch.int64
    assert torch.full((2,), True).dtype is torch.bool
    assert torch.full((), 2j).dtype is torch.complex64
    assert torch.full((2,), 3, dtype=torch.float16).tolist() == [3, 3]
    with pytest.raises(TypeError):
        torch.full(2, 3)


def test_arange() -> None:
    assert torch.arange(3).tolist() == [0, 1, 2]
    assert torch.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert torch.arange(start=1, end=3).tolist() == [1, 2]
    assert torch.arange(3, 0, -1).tolist() == [3, 2, 1]
    assert torch.arange(1, 2.5, 0.5).dtype is torch.float32
    assert torch.arange(5, dtype=torch.float64).dtype is torch.float64
    for wrong in ((5, 1), (0, 1, 0), (float("nan"),)):
        with pytest.raises(RuntimeError):
            torch.arange(*wrong)


def test_linspace_and_logspace() -> None:
    assert torch.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert torch.linspace(3, 10, 5, dtype=torch.int64).tolist() == [3, 4, 6, 8, 10]
    assert torch.linspace(0, 1, 1).tolist() == [0]
    assert torch.linspace(torch.tensor(0.0), 1j, 2).dtype is torch.complex64
    assert torch.logspace(0, 2, 3).tolist() == [1, 10, 100]
    assert torch.logspace(0, 3, 4, base=2).tolist() == [1, 2, 4, 8]
    with pytest.raises(RuntimeError):
        torch.linspace(0, 1, -1)
    with pytest.raises(RuntimeError):
        torch.linspace(torch.tensor([0.0]), 1, 3)
    with pytest.raises(TypeError):
        torch.linspace(0, 1)


def test_eye_and_triangles() -> None:
    assert torch.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert torch.tril_indices(2, 3).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torch.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    with pytest.raises(RuntimeError):
        torch.eye(-1)


def test_out() -> None:
    out = torch.empty(3, dtype=torch.float64)
    assert torch.zeros(3, out=out) is out and out.tolist() == [0, 0, 0]
    assert torch.arange(3, out=out).tolist() == [0, 1, 2]


# After another -------------------------------------------------------------------------------------


def test_like_keeps_dtype_and_order() -> None:
    t = torch.zeros(2, 3, dtype=torch.float64).t()
    for made in (
        torch.empty_like(t),
        torch.zeros_like(t),
        torch.ones_like(t),
        torch.full_like(t, 2),
        torch.rand_like(t),
    ):
        assert made.dtype is torch.float64 and made.stride() == t.stride() and tuple(made.shape) == (3, 2)
    assert torch.ones_like(t, dtype=torch.int32, memory_format=torch.contiguous_format).stride() == (2, 1)
    assert (
        torch.zeros(1, 2, 3, 4).expand(5, 2, 3, 4).shape
        == torch.empty_like(torch.zeros(1, 2, 3, 4).expand(5, 2, 3, 4)).shape
    )


def test_new() -> None:
    t = torch.zeros(1, dtype=torch.int16)
    assert t.new_ones(2, 2).tolist() == [[1, 1], [1, 1]] and t.new_zeros((2,)).dtype is torch.int16
    assert t.new_full((2,), 7).tolist() == [7, 7] and t.new_tensor([1.5]).tolist() == [1]
    assert tuple(t.new_empty(size=(3,)).shape) == (3,)
    assert t.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)


def test_strides_are_made() -> None:
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    with pytest.raises(RuntimeError):
        torch.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError):
        torch.empty_permuted((2, 3), (0, 0))


# Filling -------------------------------------------------------------------------------------------


def test_fill_cuts_the_history() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.fill_(5)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    z = x * 2
    z[1:].zero_()
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [2, 0, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        x.zero_()


def test_fill_with_a_tensor_has_a_gradient() -> None:
    v = torch.tensor(2.0, requires_grad=True)
    torch.fill(torch.zeros(3), v).sum().backward()
    assert v.grad.item() == 3
    with pytest.raises(RuntimeError, match="0-dimension"):
        torch.zeros(3).fill_(torch.ones(2))


def test_fill_diagonal() -> None:
    assert torch.zeros(5, 2).fill_diagonal_(1, wrap=True).tolist() == [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1]]
    assert torch.zeros(2, 3).fill_diagonal_(1).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(RuntimeError):
        torch.zeros(2, 3, 3).fill_diagonal_(1)


# Types ---------------------------------------------------------------------------------------------


def test_legacy_constructors() -> None:
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert tuple(torch.Tensor(2, 3).shape) == (2, 3)
    assert torch.LongTensor([1.5]).tolist() == [1]
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.ones(1).type() == "torch.FloatTensor"
    assert torch.ones(1).type("torch.DoubleTensor").dtype is torch.float64
    assert torch.ones(1).type(torch.IntTensor).dtype is torch.int32
    with pytest.raises(ValueError):
        torch.ones(1).type("FloatTensor")
    with pytest.raises(TypeError):
        torch.LongTensor(torch.ones(2))


def test_default_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        made = (torch.tensor(1.0), torch.zeros(1), torch.rand(1), torch.tensor([1]) / 2)
        assert all(t.dtype is torch.float64 for t in made)
        assert torch.tensor(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.tensor(1.0).dtype is torch.float32


def test_inference_mode_makes_inference_tensors() -> None:
    with torch.inference_mode():
        assert torch.zeros(1).is_inference() and torch.tensor(1.0).is_inference() and torch.rand(1).is_inference()
    assert not torch.zeros(1).is_inference()


def test_dtypes_that_are_there_by_name_alone() -> None:
    assert torch.float8_e4m3fn.itemsize == 1 and repr(torch.float8_e5m2) == "torch.float8_e5m2"
    assert torch.float8_e4m3fn != torch.float8_e5m2 and torch.float8_e4m3fn.is_floating_point
    assert torch.finfo(torch.float8_e4m3fn).max == 448 and torch.finfo(torch.float8_e5m2).bits == 8
    for make in (torch.zeros(2).to, lambda kind: torch.zeros(2, dtype=kind), lambda kind: torch.ones(1).type(kind)):
        assert make(torch.float8_e5m2).dtype is torch.float8_e5m2
        with pytest.raises(NotImplementedError, match=r"torch\.quint8 is there by name alone"):
            make(torch.quint8)


def test_numbers_of_8_bits_are_kept_and_moved_and_hardly_computed_with() -> None:
    x = torch.tensor([[0.5, 300.0], [1e9, -torch.inf]]).to(torch.float8_e4m3fn)
    assert x.tolist() == [[0.5, 288.0], [448.0, -448.0]]
    assert x.flip(0).t()[1].tolist() == [-448.0, 288.0]
    assert (x * x).tolist() == [[0.25, 448.0], [448.0, 448.0]]
    with pytest.raises(
        NotImplementedError, match=r"not implemented for 'Float8_e4m3fn': .* convert them with x\.float"
    ):
        x + 1
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        x * torch.ones(2, 2)
    powers = torch.tensor([0.0, 1.0, -3.0, 1e38, torch.nan]).to(torch.float8_e8m0fnu)
    assert powers.view(torch.uint8).tolist() == [0, 127, 129, 253, 255]
    assert powers[1:3].tolist() == [1.0, 4.0]


@pytest.mark.parametrize("uneven", [[[], [1]], [[[]], [[], []]], [[[]], [[1.0]]], [[], [[]]]])
def test_numbers_behind_an_empty_list_are_not_lost_in_silence(uneven):
    with pytest.raises(ValueError, match="expected sequence of length"):
        torch.tensor(uneven)
