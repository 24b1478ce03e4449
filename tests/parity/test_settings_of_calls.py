"""Settings of functions that few calls use give PyTorch's values, dtypes, gradients and kinds of errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def tried(library: Any, call: Any) -> Any:
    """What a call gives under a library: arrays and dtypes of its results, or the class of its error."""
    try:
        found = call(library)
    except Exception as error:
        return type(error).__name__
    return [(str(x.dtype), np.array(x.detach().tolist())) for x in found]


def agree(call: Any) -> None:
    theirs, ours = tried(torch, call), tried(rushlight, call)
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs
        return
    for (dtype, value), (wanted, expected) in zip(ours, theirs, strict=True):
        assert dtype == wanted
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-6)


PARTS = [..., 0, 1, slice(None), slice(1, None), None]


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 2), (3,), ()])
def test_several_ellipses_each_go_on_by_as_many_dimensions(shape: tuple[int, ...]) -> None:
    for parts in itertools.product(PARTS, repeat=4):
        if parts.count(...) < 2:
            continue

        def call(t: Any, parts: tuple[Any, ...] = parts) -> list[Any]:
            x = t.arange(float(np.prod(shape, dtype=int))).reshape(shape)
            y = x.clone()
            y[parts] = -1.0
            return [x[parts], y]

        agree(call)


def test_something_behind_a_second_ellipsis_among_tensors_is_refused() -> None:
    x = rushlight.arange(24.0).reshape(2, 3, 4)
    rows = rushlight.tensor([0, 1])
    assert x[..., rows, ...].equal(x[..., rows])
    for index in [(..., rows, ..., 0), (rows, ..., ..., rows), (..., ..., rows, None)]:
        with pytest.raises(IndexError, match="too many indices"):
            x[index]
        with pytest.raises(IndexError, match="too many indices"):
            x[index] = 1.0


@pytest.mark.parametrize("dtypes", [*itertools.product(["bool", "uint8", "int64", "float32", "complex64"], repeat=3)])
@pytest.mark.parametrize("factors", [(1, 1), (2, 1), (0.5, 2), (0, 2.5), (True, False)])
def test_addr_computes_in_the_dtype_that_all_three_have_together(dtypes: Any, factors: Any) -> None:
    def call(t: Any) -> list[Any]:
        values = ([[1, 0, 3], [0, 2, 1]], [2, 3], [1, 0, 4])
        input, one, other = (t.tensor(v).to(getattr(t, d)) for v, d in zip(values, dtypes, strict=True))
        return [t.addr(input, one, other, beta=factors[0], alpha=factors[1])]

    agree(call)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("norm_type", [float("inf"), -float("inf"), 2.0])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_lp_pool_by_an_infinite_power_is_the_extreme_of_each_window(n: int, norm_type: float, ceil_mode: bool) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 6, 5, 4)[: n + 2])

    def call(t: Any) -> list[Any]:
        x = t.tensor(data, requires_grad=True)
        y = getattr(t.nn.functional, f"lp_pool{n}d")(x, norm_type, 2, 2, ceil_mode)
        (y * y).sum().backward()
        return [y, x.grad]

    agree(call)


@pytest.mark.parametrize("places", [[-1], [0, -2], [-3, 0], [-4], [3], []])
def test_index_fill_takes_places_that_count_from_the_end(places: list[int]) -> None:
    def call(t: Any) -> list[Any]:
        x = t.arange(6.0).reshape(2, 3)
        at = t.tensor(places, dtype=t.int64)
        return [x.index_fill(1, at, 9.0), x.clone().index_fill_(-1, at, t.tensor(7.0))]

    agree(call)


def test_gradients_of_index_fill_by_its_value_count_a_place_once_however_it_is_named() -> None:
    x, value = rushlight.arange(3.0).requires_grad_(), rushlight.tensor(5.0, requires_grad=True)
    x.index_fill(0, rushlight.tensor([-1, 2]), value).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1, 0]
    assert value.grad is not None and value.grad.item() == 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_word_as_padding_of_a_transposed_convolution_is_a_type_error(n: int) -> None:
    agree(lambda t: [getattr(t.nn, f"ConvTranspose{n}d")(2, 2, 3, padding="same")(t.ones((1, 2, 4, 4, 4)[: n + 2]))])


def test_local_response_norm_over_no_channels_is_refused() -> None:
    agree(lambda t: [t.nn.functional.local_response_norm(t.ones(1, 2, 3), 0)])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "float16", "float64", "complex64"])
def test_full_of_a_tensor_has_the_default_dtype_of_its_kind(dtype: str) -> None:
    agree(lambda t: [t.full((2,), t.tensor(1, dtype=getattr(t, dtype)))])


INDEXED: dict[str, Any] = {
    "getitem": lambda t, x, at: x[at],
    "setitem": lambda t, x, at: x.__setitem__(at, t.ones(2, 3)) or x,
    "index_put": lambda t, x, at: x.index_put((at,), t.tensor(1.0)),
    "index_put of lists": lambda t, x, at: x.index_put([[0, 1]], t.tensor(1.0)),
    "index_put of an int": lambda t, x, at: x.index_put((0,), t.tensor(1.0)),
    "index_copy": lambda t, x, at: x.index_copy(0, at, t.ones(2, 3)),
    "index_fill": lambda t, x, at: x.index_fill(0, at, 1.0),
    "index_add": lambda t, x, at: x.index_add(0, at, t.ones(2, 3)),
    "index_select": lambda t, x, at: x.index_select(0, at),
    "repeat_interleave": lambda t, x, at: x.repeat_interleave(at, 0),
    "gather": lambda t, x, at: x.gather(1, at[:, None]),
    "lengths of ctc_loss": lambda t, x, at: t.nn.functional.ctc_loss(
        x[:, None].expand(2, 2, 3), t.ones(2, 1).long(), at + 1, at
    ),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32"])
def test_indices_have_the_dtypes_that_pytorch_takes(name: str, dtype: str) -> None:
    agree(lambda t: [INDEXED[name](t, t.arange(6.0).reshape(2, 3), t.tensor([0, 1]).to(getattr(t, dtype)))])


def test_sums_of_numbers_that_are_not_nan_say_which_dtypes_they_take() -> None:
    for name, dtype in itertools.product(["nansum", "nanmean"], ["int32", "float64", 5, None]):
        agree(
            lambda t, name=name, d=dtype: [
                getattr(t, name)(t.ones(2), dtype=getattr(t, d) if isinstance(d, str) else d)
            ]
        )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_max_pool_of_bools_is_not_implemented(n: int) -> None:
    agree(lambda t: [getattr(t.nn.functional, f"max_pool{n}d")(t.ones((1, 1, 2, 2, 2)[: n + 2]).bool(), 2)])


@pytest.mark.parametrize("shape", [(0, 3, 4), (5, 0, 4), (0, 4)])
def test_ctc_loss_of_nothing_is_refused(shape: tuple[int, ...]) -> None:
    n = shape[1] if len(shape) == 3 else 1
    agree(lambda t: [t.nn.functional.ctc_loss(t.zeros(shape), t.zeros(n, 0).long(), (shape[0],) * n, (0,) * n)])


def test_grouped_heads_want_a_dimension_of_heads() -> None:
    agree(lambda t: [t.nn.functional.scaled_dot_product_attention(*[t.ones(3, 4)] * 3, enable_gqa=True)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["mean", "nanmean"])
def test_means_of_more_elements_than_16_bits_count(name: str, dtype: str) -> None:
    def call(t: Any) -> list[Any]:
        x = t.linspace(0, 1, 70000).to(getattr(t, dtype)).requires_grad_()
        y = getattr(x, name)()
        return [y, t.autograd.grad(y, x, t.tensor(1000.0, dtype=y.dtype))[0][:3], x.detach().reshape(2, -1).mean(1)]

    agree(call)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_say_which_lengths_and_dimensions_they_take(name: str) -> None:
    for n in (-1, 0, 1, 4, None):
        agree(lambda t, n=n: [getattr(t.fft, name)(t.tensor([1.0, 2.0, -1.0]), n).resolve_conj()])
    for dim in (None, (0, 1), (-1,), 0):
        agree(lambda t, dim=dim: [getattr(t.fft, name + "2")(t.arange(6.0).reshape(2, 3), dim=dim).resolve_conj()])


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("n", [0, 1, 4, 5])
@pytest.mark.parametrize("d", [1.0, 0.0, -2.0])
def test_frequencies_of_no_elements_and_of_no_spacing(name: str, n: int, d: float) -> None:
    for dtype in (None, "float64", "int64", "complex64"):
        agree(lambda t, dtype=dtype: [getattr(t.fft, name)(n, d, dtype=dtype and getattr(t, dtype))])
