"""What is handed to native kernels is checked there: what does not fit is refused, and nothing outside is read or written."""

from typing import Any

import numpy as np
import pytest
from tests.ops.declared import unary

import rushlight as torch
from rushlight import kernels as K
from rushlight.kernels.native import loader
from rushlight.nn import functional as F

F4 = np.dtype(np.float32)


@pytest.fixture
def table() -> Any:
    if not loader.tables():
        pytest.skip("no native kernels here")
    return loader.tables()[F4]


def locked() -> Any:
    array = np.ones((2, 3), F4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("given", "out", "words"),
    [
        (np.ones(5, F4), np.ones((2, 3), F4), "expected 6 elements"),
        (np.ones((2, 3)), np.ones((2, 3), F4), "dtype"),
        (np.ones((2, 3), np.int32), np.ones((2, 3), F4), "dtype"),
        (np.ones((2, 3), ">f4"), np.ones((2, 3), F4), "dtype"),
        (np.ones((2, 6), F4)[:, ::2], np.ones((2, 3), F4), "without gaps"),
        (np.ones((2, 3), F4, order="F"), np.ones((2, 3), F4), "without gaps"),
        (np.zeros(25, np.uint8)[1:].view(F4), np.ones((2, 3), F4), "aligned"),
        (np.ones((2, 3), F4), locked(), "writable"),
        (np.ones((2, 3), F4), np.ones((2, 3), F4)[::-1], "without gaps"),
        (np.float32(1), np.ones((2, 3), F4), "expected an array"),
        ([1.0] * 6, np.ones((2, 3), F4), "expected an array"),
        (None, np.ones((2, 3), F4), "expected an array"),
    ],
)
def test_a_kernel_refuses_what_it_would_misread(table: Any, given: Any, out: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=f"softmax.*{words}"):
        table.softmax(given, out, 2, 3, 1)


def test_a_kernel_refuses_sizes_that_are_none(table: Any) -> None:
    x = np.ones((2, 3), F4)
    for sizes in [(-2, -3, 1), (2**32, 2**32, 6), (2, 3, 0)]:
        with pytest.raises(RuntimeError, match="softmax"):
            table.softmax(x, x, *sizes)


def test_a_kernel_refuses_elements_in_two_orders(table: Any) -> None:
    with pytest.raises(RuntimeError, match="one order"):
        table.exp(np.ones((2, 3), F4, order="F"), np.ones((2, 3), F4), 6)


def test_windows_that_do_not_fit_are_refused(table: Any) -> None:
    x, w = np.ones((1, 1, 5), F4), np.ones((1, 1, 3), F4)
    fine = [1, 1, 1, 1, 1, 1, 5, 1, 1, 3, 1, 1, 3, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    y = np.zeros((1, 1, 3), F4)
    table.conv(x, w, y, np.array(fine))
    assert (y == 3).all()
    for at, value in [(0, 2), (1, 0), (3, 2), (6, 6), (9, 4), (12, -3), (15, 0), (18, -1), (18, 2**30), (21, 2**62)]:
        wrong = list(fine)
        wrong[at] = value
        with pytest.raises(RuntimeError, match="conv"):
            table.conv(x, w, y, np.array(wrong))
    with pytest.raises(RuntimeError, match="22 elements"):
        table.conv(x, w, y, np.array(fine[:-1]))


@pytest.mark.parametrize("kernel", ["max_pool", "channel_conv"])
def test_a_plane_that_is_too_large_with_its_padding_is_refused_as_that(table: Any, kernel: str) -> None:
    far = np.array([1, 1, 1, 1, 1, 1, 5, 1, 2, 3, 1, 1, 3, 1, 2**26, 2**26, 0, 0, 0, 1, 1, 1])
    x, w, y, which = np.ones((1, 1, 5), F4), np.ones((1, 1, 3), F4), np.zeros((1, 2, 3), F4), np.zeros((1, 2, 3), "u1")
    given = (x, y, which, far, 0.0) if kernel == "max_pool" else (x, w, y, far)
    with pytest.raises(RuntimeError, match=f"{kernel}.*planes that can be copied with their padding"):
        getattr(table, kernel)(*given)


def test_an_exception_of_a_kernel_leaves_the_next_call_alone(table: Any) -> None:
    x = np.ones((2, 3), F4)
    with pytest.raises(RuntimeError):
        table.softmax(x, x, 2, 4, 1)
    np.testing.assert_allclose(K.softmax(x, 1), 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1,), ()])
def test_a_bias_of_one_element_is_added_to_all_of_a_large_result(path: str, dtype: Any, shape: Any) -> None:
    x, w = torch.ones(301, 7, dtype=dtype), torch.zeros(311, 7, dtype=dtype)
    assert bool((F.linear(x, w, torch.full(shape, 2.0, dtype=dtype)) == 2).all())
    assert bool((F.linear(x.reshape(7, 43, 7), w, torch.full(shape, 2.0, dtype=dtype)) == 2).all())


def masks() -> dict[str, Any]:
    r = np.random.default_rng(3)
    wide = torch.tensor(r.standard_normal((5, 10)).astype("f4"))
    return {
        "(L, 1)": wide[:, :1].contiguous(),
        "(1, 1)": wide[:1, :1].contiguous(),
        "(1, 1, L, 1)": wide[:, :1].reshape(1, 1, 5, 1),
        "stepped": wide[:, ::2],
        "transposed": wide[:, :5].t(),
        "expanded": wide[:, :1].expand(5, 5),
        "of heads": torch.tensor(r.standard_normal((1, 3, 5, 5)).astype("f4")).transpose(2, 3),
        "of the batch": torch.tensor(r.standard_normal((4, 1, 5, 5)).astype("f4")).transpose(2, 3),
    }


@pytest.mark.parametrize("kind", ["added", "bool"])
@pytest.mark.parametrize("name", masks())
def test_attention_reads_masks_of_every_layout(path: str, name: str, kind: str) -> None:
    """With a gradient of the mask, whose backward takes blocks of scores, and with dropout, where all is in blocks."""
    mask = masks()[name]
    mask = mask > -0.5 if kind == "bool" else mask
    whole = mask.expand(4, 3, 5, 5).contiguous()
    q = torch.tensor(np.random.default_rng(0).standard_normal((4, 3, 5, 7)).astype("f4"), requires_grad=True)
    for p in (0.0, 0.5):
        found = []
        for each in (mask, whole):
            torch.manual_seed(0)
            each = each.detach().requires_grad_(kind == "added")
            out = F.scaled_dot_product_attention(q, q, q, attn_mask=each, dropout_p=p)
            found.append((out.detach(), *torch.autograd.grad((out * out.detach()).sum(), [q])))
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_the_gradient_of_an_embedding_without_columns(path: str) -> None:
    w = torch.ones(9, 0, requires_grad=True)
    F.embedding(torch.tensor([1, 2]), w).sum().backward()
    assert w.grad.shape == (9, 0)


def odd(*shape: int) -> Any:
    """Float32 numbers that lie at an odd byte of their buffer."""
    values = np.random.default_rng(1).standard_normal(shape).astype(F4)
    memory = np.zeros(values.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(values.tobytes(), np.uint8)
    found = memory.view(F4).reshape(shape)
    assert not found.flags.aligned
    return found


def test_numbers_at_odd_bytes_are_read_as_they_are(path: str) -> None:
    x, w = odd(6, 5), odd(5)
    straight, w0 = x.copy(), w.copy()
    for name in ("softmax", "log_softmax"):
        np.testing.assert_array_equal(getattr(K, name)(x, 1), getattr(K, name)(straight, 1))
    for name in ("gelu", *(op.name for op in unary() if hasattr(K, op.name))):
        np.testing.assert_array_equal(getattr(K, name)(x), getattr(K, name)(straight), err_msg=name)
    for mine, theirs in zip(K.layer_norm(x, w, w, 1e-5), K.layer_norm(straight, w0, w0, 1e-5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    parameter, expected = x.copy(), x.copy()
    K.sgd(parameter, x, odd(6, 5), 0.1, 0.9)
    K.sgd(expected, straight, odd(6, 5).copy(), 0.1, 0.9)
    np.testing.assert_allclose(parameter, expected, rtol=1e-6)
