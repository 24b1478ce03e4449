"""`tensor[index]`, `tensor[index] = value` and index_put: against NumPy, with gradients and errors."""

import math

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

RNG = np.random.default_rng(2)
A = RNG.standard_normal((3, 4, 5))
I, J = np.array([0, 2, 0]), np.array([[1, -1], [3, 0]])
MASK = RNG.random((3, 4)) > 0.4
FULL = RNG.random((3, 4, 5)) > 0.5

INDICES = {
    "vector": (I,), "negative": (-I,), "matrix": (J % 3,), "list": ([0, 2],), "nested list": ([[0, 1], [2, 2]],),
    "second": (slice(None), J), "last": (Ellipsis, I), "two": (I, I), "two apart": (I, slice(None), I),
    "broadcast": (I[:, None], I[None]), "all three": (I, I, I), "with slice": (I, slice(1, 3)), "after slice": (slice(1, None), I),
    "with None": (None, I, None), "between": (slice(None), I, slice(None, None, 2)), "mask": (MASK,), "full mask": (FULL,),
    "row mask": (MASK[:, 0],), "mask and slice": (MASK, slice(1, 3)), "mask later": (slice(None), MASK[0]),
    "mask and vector": (MASK[:, 0], I[: MASK[:, 0].sum()]), "empty": (np.zeros(0, np.int64),), "empty list": ([],),
    "range": (range(2),), "numpy int": (np.int64(1), I),
}  # fmt: skip


def ours(index):
    """The same index with tensors for arrays."""
    return tuple(torch.from_numpy(p) if isinstance(p, np.ndarray) else p for p in index)


def theirs(index):
    """The same index for NumPy."""
    return tuple(
        np.asarray(p, np.int64) if isinstance(p, list) and not p else list(p) if isinstance(p, range) else p
        for p in index
    )


@pytest.mark.parametrize("name", [n for n in INDICES if n != "numpy int"])
def test_reading_is_numpys(name):
    index = INDICES[name]
    np.testing.assert_array_equal(torch.from_numpy(A)[ours(index)].numpy(), A[theirs(index)])


@pytest.mark.parametrize("name", INDICES)
def test_gradients_of_reading(name):
    check_gradients(lambda t: t[ours(INDICES[name])], A)


@pytest.mark.parametrize("name", [n for n in INDICES if n != "numpy int"])
def test_writing_is_numpys(name):
    index, want = INDICES[name], A.copy()
    shape = A[theirs(index)].shape
    value = RNG.standard_normal(shape[-1:]) if shape else np.asarray(1.5)
    t = torch.from_numpy(A.copy())
    if 0 not in shape:
        want[theirs(index)] = value
        t[ours(index)] = torch.from_numpy(value)
    t[ours(index)] = 0.25
    want[theirs(index)] = 0.25
    np.testing.assert_array_equal(t.numpy(), want)
    assert t._version == 2 - (0 in shape)


UNIQUE = {"list", "mask", "full mask", "row mask", "mask and slice", "mask later", "mask and vector", "range"}


@pytest.mark.parametrize("name", sorted(UNIQUE))
def test_gradients_of_writing(name):
    """Of repeated indices any value may win, and all of them get the gradient: these have none."""
    index = INDICES[name]

    def write(t, v):
        t = t * 1
        t[ours(index)] = v
        return t

    value = RNG.standard_normal(A[theirs(index)].shape[-1:])
    check_gradients(write, A, value if name != "mask and vector" else np.asarray(1.5))


def test_ints_go_before_tensors():
    t = torch.from_numpy(A)
    assert t[0, :, torch.tensor([1, 2])].shape == (4, 2)  # NumPy would put the 2 first
    np.testing.assert_array_equal(t[0, :, torch.tensor([1, 2])].numpy(), A[0][:, [1, 2]])


def test_truth_as_an_index():
    t = torch.arange(3.0)
    assert t[True].shape == (1, 3) and t[False].shape == (0, 3) and t[torch.tensor(True)].shape == (1, 3)
    zero = torch.tensor(2.0)
    assert zero[True].tolist() == [2.0] and zero[None].shape == (1,) and zero[...].shape == ()
    zero[()] = 3.0
    assert zero.item() == 3.0
    t[t > 0.5] = 9
    assert t.tolist() == [0.0, 9.0, 9.0]


@pytest.mark.parametrize("index, error", [
    (5, IndexError), ((0, 9), IndexError), ((0, 0, 0, 0), IndexError), (np.s_[::-1], ValueError), (np.s_[::0], ValueError),
    (torch.tensor([3]), IndexError), (torch.tensor([-4]), IndexError), (torch.tensor([0.5]), IndexError),
    (torch.zeros(2, dtype=torch.bool), IndexError), ("a", (TypeError, IndexError, ValueError)), (1.5, (TypeError, IndexError)),
    ((torch.tensor([0, 1]), torch.tensor([0, 1, 2])), IndexError), (slice("a"), TypeError),
    ((torch.tensor([0]),) * 4, IndexError),
])  # fmt: skip
def test_refusals(index, error):
    t = torch.from_numpy(A.copy())
    with pytest.raises(error):
        t[index]
    with pytest.raises(error):
        t[index] = 1.0


def test_refused_values():
    t = torch.from_numpy(A.copy())
    with pytest.raises(RuntimeError, match="shape"):
        t[0] = torch.zeros(3)
    with pytest.raises(RuntimeError, match="shape"):
        t[torch.tensor([0, 1])] = torch.zeros(3, 5, dtype=torch.float64)
    with pytest.raises(TypeError, match="can't assign a str"):
        t[0] = "x"
    with pytest.raises(IndexError, match="0-dim"):
        torch.tensor(1.0)[0]
    leaf = torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1.0
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1.0))


def test_values_are_cast_and_leading_ones_dropped():
    t = torch.zeros(2, 3, dtype=torch.int64)
    t[0] = torch.tensor([[[1.7, 2.2, 3.0]]])
    t[torch.tensor([False, True])] = torch.tensor([[4.5]])
    assert t.tolist() == [[1, 2, 3], [4, 4, 4]]


@pytest.mark.parametrize("index", [[0, 1], torch.tensor([0]), torch.tensor([True, True]), (0, [0, 1])])
def test_values_of_another_dtype_are_refused_by_tensors_as_indices(index):
    t = torch.zeros(2, 2)
    with pytest.raises(RuntimeError, match=r"for the destination and .* for the source"):
        t[index] = torch.tensor([1, 2])
    assert not t.any()
    t[True] = torch.tensor([1, 2])  # all elements, which no tensor of indices names
    assert t.tolist() == [[1, 2], [1, 2]]


def test_a_mask_converts_a_single_number_unless_it_is_complex():
    t = torch.zeros(2)
    t[torch.tensor([True, False])] = torch.tensor(3)
    t.index_put_((torch.tensor([False, True]),), torch.tensor([4], dtype=torch.float64))
    assert t.tolist() == [3, 4]
    with pytest.raises(RuntimeError, match="cannot be converted"):
        t[torch.tensor([True, False])] = torch.tensor(1j)
    for dtype, number in ((torch.int64, math.nan), (torch.uint8, 300), (torch.float32, 1e300), (torch.float16, 1e5)):
        with pytest.raises(RuntimeError, match="cannot be converted"):
            torch.zeros(2, dtype=dtype)[torch.tensor([True, False])] = torch.tensor(number, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="dtypes match"):
        t.index_put_((torch.tensor([True, False]),), torch.tensor(1), accumulate=True)


def test_uint8_masks_warn():
    t = torch.arange(3)
    with pytest.warns(UserWarning, match="uint8"):
        assert t[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [0, 2]
    for value in (5, torch.tensor([5, 5])):
        with pytest.warns(UserWarning, match="uint8"):
            t[torch.tensor([1, 0, 1], dtype=torch.uint8)] = value
        assert t[:3].tolist() == [5, 1, 5]


def test_a_changed_index_is_noticed():
    t, i = torch.zeros(3, requires_grad=True), torch.tensor([0, 1])
    out = t[i].sum()
    i[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_only_the_index_is_saved():
    saved = []
    t, i = torch.zeros(100, requires_grad=True), torch.tensor([0, 1])
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x.shape) or x, lambda x: x):
        t[i], t.index_select(0, i), t.gather(0, i), t.masked_fill(torch.zeros(100, dtype=torch.bool), 1.0)
    assert [tuple(s) for s in saved] == [(2,), (2,), (2,), (100,)]


def test_index_put():
    t = torch.zeros(3, 2)
    where = (torch.tensor([0, 0, 2]), torch.tensor([1, 1, 0]))
    assert t.index_put(where, torch.ones(3), accumulate=True).tolist() == [[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]]
    assert t.index_put_((None, torch.tensor([1])), torch.tensor([5.0])) is t
    assert t.tolist() == [[0.0, 5.0]] * 3
    with pytest.raises(RuntimeError, match="dtypes match"):
        t.index_put(where, torch.ones(3, dtype=torch.float64))
    check_gradients(lambda t, v: t.index_put((torch.tensor([0, 0]), torch.tensor([1, 1])), v, True), A, A[0, :2])
    check_gradients(lambda t, v: t.index_put((torch.tensor([0, 1]),), v), A, A[0, 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64])
def test_other_dtypes(dtype):
    t = torch.tensor([[1, 0], [0, 1]], dtype=dtype)
    assert torch.equal(t[torch.tensor([1, 0])], torch.tensor([[0, 1], [1, 0]], dtype=dtype))
    t[torch.tensor([0]), 1] = 1
    assert torch.equal(t, torch.tensor([[1, 1], [0, 1]], dtype=dtype))
    assert t.index_put((torch.tensor([0, 0]),), torch.ones(2, 2, dtype=dtype), accumulate=True).dtype is dtype


def test_assigning_keeps_the_history_of_both():
    x, y = torch.ones(3, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)
    out = torch.zeros(5)
    out[:3] = x * 3
    out[torch.tensor([3, 4])] = y * y
    out[0] = 7.0
    (out * torch.arange(5.0)).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 6.0] and y.grad.tolist() == [12.0, 16.0]


def test_an_index_of_an_ellipsis_alone():
    t = torch.arange(3)
    for index in (..., (...,)):
        assert t[index].tolist() == [0, 1, 2] and t[index].data_ptr() == t.data_ptr()
    assert torch.tensor(2)[...,].item() == 2
