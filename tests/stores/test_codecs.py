"""Compression: what is declared of losses, and exactness where exactness is declared."""

import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.stores.nets import within

import rushlight as torch
from rushlight import stores
from rushlight.stores import codecs

RNG = np.random.default_rng(3)
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128]
SIZES = [1, 7, 255, 256, 257, 1000, codecs.CHUNK + 300]


def there_and_back(store: Any, array: Any) -> tuple[Any, Any]:
    parts, note = store.encode(array, None)
    return store.decode(parts, note, array.size, array.dtype), parts


def numbers(kind: Any, n: int, spread: float = 1.0) -> Any:
    x = RNG.standard_normal(n) * np.exp(spread * RNG.standard_normal(n))
    return (x + 1j * x[::-1]).astype(kind) if np.dtype(kind).kind == "c" else x.astype(kind)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_lossless_is_exact(kind: Any, n: int) -> None:
    x = numbers(kind, n)
    with np.errstate(all="ignore"):
        special = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38]), n).astype(kind)
    zeros = np.where(RNG.random(n) < 0.6, 0, x).astype(kind)
    for a in (x, zeros, np.zeros(n, kind), special, np.full(n, 1.5, kind)):
        found, _ = there_and_back(stores.compress("lossless"), a)
        assert found.dtype == a.dtype and found.tobytes() == a.tobytes()


def test_exponents_go_by_their_frequency_and_repetitions_are_found() -> None:
    x = numbers(np.float32, 1 << 16)
    exponents = np.ascontiguousarray(x.view(np.uint8).reshape(-1, 4)[:, 3])
    found, parts = there_and_back(stores.compress("lossless"), x)
    assert sum(p.nbytes for p in parts) < 3 * x.size + 0.9 * len(zlib.compress(exponents.data, 1))
    tiled = np.tile(x[:1000], 64)
    found, parts = there_and_back(stores.compress("lossless"), tiled)
    assert found.tobytes() == tiled.tobytes()
    assert sum(p.nbytes for p in parts) < 0.1 * tiled.nbytes
    positive = np.maximum(x, 0)
    found, parts = there_and_back(stores.compress("lossless"), positive)
    assert found.tobytes() == positive.tobytes()
    assert sum(p.nbytes for p in parts) < 0.45 * positive.nbytes  # neither zeros nor exponents in full


@pytest.mark.parametrize("how", ["lossless", "bf16", "int8"])
def test_integers_and_bools_are_exact_and_smaller(how: str) -> None:
    for kind in (np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64):
        a = RNG.integers(0, 2, 5000).astype(kind)
        found, parts = there_and_back(stores.compress(how), a)
        assert found.dtype == a.dtype and (found == a).all()
        assert sum(p.nbytes for p in parts) <= (700 if kind is np.bool_ else 5000)
    for a in (np.array([-(2**63), 2**63 - 1]), np.array([-1, 255]), np.arange(-200, 200), np.array([0, 2**33])):
        found, _ = there_and_back(stores.compress(how), a)
        assert found.dtype == a.dtype and (found == a).all()


@pytest.mark.parametrize("how", ["bf16", "int8"])
@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_losses_are_within_what_is_declared(how: str, kind: Any) -> None:
    for n in SIZES:
        for spread in (0.0, 1.0, 6.0 if np.dtype(kind).itemsize > 2 else 1.0):
            a = numbers(kind, n, spread)
            found, _ = there_and_back(stores.compress(how), a)
            if np.dtype(kind).itemsize == 2:  # rounding to 16 bits comes on top
                a, found = a.astype(np.float32), found.astype(np.float32)
                assert np.abs(a - found).max() <= np.abs(a).max() * (1 / 254 + 2.0**-8)
            else:
                within(how, codecs.real_parts(a), codecs.real_parts(found))


def test_bf16_rounds_to_nearest_even_and_keeps_what_would_overflow() -> None:
    a = np.array([1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 1e-6, np.inf, -np.inf, np.nan, -0.0], np.float32)
    found, parts = there_and_back(stores.compress("bf16"), a)
    assert found[:4].tolist() == [1.0, 1.0, 1 + 4 * 2.0**-8, 1 + 2.0**-7]
    assert found[4:6].tolist() == [np.inf, -np.inf] and np.isnan(found[6]) and np.signbit(found[7])
    assert parts[0].nbytes == a.nbytes // 2
    for big in (np.array([1.0, 3.4e38], np.float32), np.array([1e300])):
        assert there_and_back(stores.compress("bf16"), big)[0].tobytes() == big.tobytes()
    tiny = np.array([1e-320, 1e-45, 1e-39])
    assert np.abs(there_and_back(stores.compress("bf16"), tiny)[0] - tiny).max() <= 1e-40
    assert there_and_back(stores.compress("bf16"), np.array([1.5], np.float16))[1][0].dtype == np.float16


def test_int8_keeps_what_is_not_finite_and_rounds_at_random_without_bias() -> None:
    a = numbers(np.float32, 1000)
    for odd in (np.inf, np.nan, -np.inf):
        a[700] = odd
        assert there_and_back(stores.compress("int8"), a)[0].tobytes() == a.tobytes()
    for kind in (np.float32, np.float64):
        largest = np.full(300, np.finfo(kind).max, kind)
        found, _ = there_and_back(stores.compress("int8"), largest)
        assert np.isfinite(found).all() and np.allclose(found / largest, 1, rtol=1e-6)
    torch.manual_seed(1)
    before = torch.initial_seed(), torch.get_rng_state().clone()
    x = np.full(256 * 400, 0.3, np.float32)
    x[::256] = 1.0
    found, _ = there_and_back(stores.compress("int8", stochastic=True), x)
    rest = found.reshape(-1, 256)[:, 1:]
    assert abs(rest.mean() - 0.3) < 2e-4 and np.abs(rest - 0.3).max() <= 1 / 127 + 1e-6
    assert (torch.get_rng_state() == before[1]).all()
    nearest, _ = there_and_back(stores.compress("int8"), x)
    assert abs(nearest.reshape(-1, 256)[:, 1:].mean() - 0.3) > 5e-4


def test_a_store_of_gradients_through_masks() -> None:
    x = torch.randn(64, 64).requires_grad_()
    mask = torch.rand(64, 64) > 0.5
    y = torch.where(mask, (x * 2).exp(), x).masked_fill(mask, 0.5).sum()
    y.backward()
    plain = x.grad.clone()
    x.grad = None
    with stores.compress("int8", min_bytes=0, operator=["where", "masked_fill*"]):
        y = torch.where(mask, (x * 2).exp(), x).masked_fill(mask, 0.5).sum()
    y.backward()
    assert (x.grad == plain).all()
