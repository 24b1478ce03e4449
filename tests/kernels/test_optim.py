"""Optimizer steps: against PyTorch's optimizers over several steps, layouts, 16 bits, memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels.dispatch import native

Array = np.ndarray[Any, Any]
STEPS = 4


def run_torch(optimizer: str, x: Array, grads: list[Array], **options: Any) -> Array:
    torch = pytest.importorskip("torch")
    p = torch.nn.Parameter(torch.from_numpy(x.copy()))
    steps = getattr(torch.optim, optimizer)([p], foreach=False, **options)
    for g in grads:
        p.grad = torch.from_numpy(g.copy())
        steps.step()
    out: Array = p.detach().numpy()
    return out


def data(rng: np.random.Generator, dtype: Any, size: int = 70_001) -> tuple[Array, list[Array]]:
    return rng.standard_normal(size).astype(dtype), [rng.standard_normal(size).astype(dtype) for _ in range(STEPS)]


def close(got: Array, want: Array) -> None:
    eps = np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, want, rtol=32 * eps, atol=32 * eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize(("weight_decay", "maximize"), [(0.0, False), (0.1, True)])
def test_adam(
    path: str, rng: np.random.Generator, dtype: str, amsgrad: bool, decoupled: bool, weight_decay: float, maximize: bool
) -> None:
    x, grads = data(rng, dtype)
    options = {"lr": 0.01, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize}
    want = run_torch("AdamW" if decoupled else "Adam", x, grads, **options)
    p, m, v = x.copy(), np.zeros_like(x), np.zeros_like(x)
    top = np.zeros_like(x) if amsgrad else None
    for step, g in enumerate(grads, 1):
        kept = g.copy()
        K.adam(p, g, m, v, top, step, 0.01, 0.9, 0.999, 1e-8, weight_decay, decoupled, maximize)
        np.testing.assert_array_equal(g, kept)
    close(p, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.9, "dampening": 0.3, "maximize": True},
        {"weight_decay": 0.1, "maximize": True},
    ],
)
def test_sgd(path: str, rng: np.random.Generator, dtype: str, options: dict[str, Any]) -> None:
    x, grads = data(rng, dtype)
    want = run_torch("SGD", x, grads, lr=0.1, **options)
    p = x.copy()
    buffer = np.full_like(x, np.nan) if options.get("momentum") else None  # the first step must not read it
    for step, g in enumerate(grads):
        K.sgd(p, g, buffer, 0.1, first=step == 0, **options)
    close(p, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_adagrad(path: str, rng: np.random.Generator, dtype: str) -> None:
    x, grads = data(rng, dtype)
    want = run_torch("Adagrad", x, grads, lr=0.1, lr_decay=0.01, weight_decay=0.02)
    p, total = x.copy(), np.zeros_like(x)
    for step, g in enumerate(grads, 1):
        K.adagrad(p, g, total, step, 0.1, 0.01, 1e-10, 0.02)
    close(p, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_rmsprop(path: str, rng: np.random.Generator, dtype: str, centered: bool, momentum: float) -> None:
    x, grads = data(rng, dtype)
    want = run_torch("RMSprop", x, grads, lr=0.01, centered=centered, momentum=momentum, weight_decay=0.01)
    p, square = x.copy(), np.zeros_like(x)
    buffer = np.zeros_like(x) if momentum else None
    mean = np.zeros_like(x) if centered else None
    for g in grads:
        K.rmsprop(p, g, square, buffer, mean, 0.01, 0.99, 1e-8, 0.01, momentum)
    eps = np.finfo(dtype).eps  # the variance is a difference: its error is larger
    np.testing.assert_allclose(p, want, rtol=4000 * eps, atol=4000 * eps)


def test_any_layout(path: str, rng: np.random.Generator) -> None:
    x, g = (rng.standard_normal((300, 400)).astype("f4") for _ in "xg")
    want, m, v = x.copy(), np.zeros_like(x), np.zeros_like(x)
    K.adam(want, g, m, v, None, 1, 0.1, 0.9, 0.999, 1e-8)
    for make in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2]):
        arrays = [make(a) for a in (x, g, np.zeros_like(x), np.zeros_like(x))]
        K.adam(*arrays, None, 1, 0.1, 0.9, 0.999, 1e-8)
        np.testing.assert_allclose(arrays[0], want, rtol=1e-6, atol=1e-6)
    mixed = np.asfortranarray(x)
    K.adam(mixed, g, np.zeros_like(x), np.zeros_like(x), None, 1, 0.1, 0.9, 0.999, 1e-8)
    np.testing.assert_allclose(mixed, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits(rng: np.random.Generator, dtype: Any) -> None:
    x, g = (rng.standard_normal(1000).astype(dtype) for _ in "xg")
    wide = [a.astype("f4") for a in (x, g)]
    p, m, v, wm, wv = x.copy(), *(np.zeros(1000, dtype) for _ in "mv"), *(np.zeros(1000, "f4") for _ in "mv")
    K.adam(p, g, m, v, None, 1, 0.1, 0.9, 0.999, 1e-3)
    K.adam(wide[0], wide[1], wm, wv, None, 1, 0.1, 0.9, 0.999, 1e-3)
    one = 1.0 / (2048 if dtype is np.float16 else 256) * 1.1  # half a unit in the last place, and a little
    np.testing.assert_allclose(p.astype("f4"), wide[0], rtol=one, atol=1e-7)
    np.testing.assert_allclose(m.astype("f4"), wm, rtol=one, atol=1e-7)
    np.testing.assert_allclose(v.astype("f4"), wv, rtol=one, atol=1e-7)


@pytest.mark.parametrize("shape", [(0,), (), (1,), (3, 0)])
def test_empty_and_single(path: str, shape: tuple[int, ...]) -> None:
    arrays = [np.ones(shape, "f4") for _ in range(4)]
    K.adam(*arrays, None, 1, 0.1, 0.9, 0.999, 1e-8)
    K.sgd(arrays[0], arrays[1], None, 0.1)


def test_infinite_parameters_stay_infinite(path: str) -> None:
    p = np.array([np.inf, 1.0] * 20, "f4")
    K.sgd(p, np.ones(40, "f4"), None, 0.1)
    assert np.isinf(p[0]) and p[1] == np.float32(0.9)


def test_no_temporary_of_the_parameters_size(path: str) -> None:
    arrays = [np.ones(4_000_000, "f4") for _ in range(4)]
    K.adam(*arrays, None, 1, 0.1, 0.9, 0.999, 1e-8)
    tracemalloc.start()
    K.adam(*arrays, None, 2, 0.1, 0.9, 0.999, 1e-8, 0.1)
    K.rmsprop(*arrays[:3], arrays[3], None, 0.1, momentum=0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # a parameter has 16 MB


SGD = (0.1, 0.9, 0.1, 0.01, 1.0, 1.0, 0.0)  # numbers of a step: lr, momentum, dampening, decay, sign, nesterov, first


def padded(triples: list[Any]) -> list[Any]:
    """Parameters, gradients and one state of each, with the other states' places."""
    return [x for i in range(0, len(triples), 3) for x in (*triples[i : i + 3], None, None)]


def test_many_steps_equal_one_by_one(path: str, rng: np.random.Generator) -> None:
    def triples() -> list[Any]:
        r = np.random.default_rng(0)
        return [r.random(shape).astype("f4") for shape in ((), (3, 4), (40_000,)) for _ in range(3)]

    one, many = triples(), triples()
    for i in range(0, 9, 3):
        K.sgd(*one[i : i + 3], 0.1, 0.9, 0.1, 0.01, True)
    K.step_many("sgd", padded(many), [SGD])
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


def test_each_of_many_steps_has_its_numbers(path: str, rng: np.random.Generator) -> None:
    p = [np.ones((2, 3), "f4") for _ in range(3)]
    g = np.ones((2, 3), "f4")
    K.step_many("sgd", [x for q in p for x in (q, g, None, None, None)], [(lr, *SGD[1:]) for lr in (0.0, 0.25, 0.5)])
    assert [float(q[0, 0]) for q in p] == [1.0, np.float32(1 - 0.25 * 1.01), np.float32(1 - 0.5 * 1.01)]


def test_many_steps_also_of_those_that_lie_otherwise(path: str, rng: np.random.Generator) -> None:
    def triples() -> list[Any]:
        r = np.random.default_rng(1)
        whole = [r.random((4, 6)).astype("f4") for _ in range(3)]
        return [*whole, *(x.T for x in triple(r)), *(x[:, ::2] for x in triple(r)), *triple(r)[:2], r.random((4, 6)).astype("f4").T.copy().T,
                *(x.astype("f8") for x in triple(r)), *triple(r)[:2], None, *triple(r)]  # fmt: skip

    def triple(r: np.random.Generator) -> list[Any]:
        return [r.random((4, 6)).astype("f4") for _ in range(3)]

    one, many = triples(), triples()
    for i in range(0, len(one), 3):
        K.sgd(*one[i : i + 3], 0.1, 0.9, 0.1, 0.01, True)
    K.step_many("sgd", padded(many), [tuple(SGD) for _ in range(len(many) // 3)])
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(RuntimeError, match=r"shape|broadcast|size"):
        K.step_many("sgd", [np.ones((2, 3), "f4"), np.ones((3, 2), "f4"), None, None, None], [SGD])


# Of each rule: the numbers of two steps, and how many states it has.
RULED = {
    "adamax": [((0.02, 0.9, 0.99, 1e-3, 0.1, -1.0), (0.02, 0.4, 0.99, 1e-3, 0.0, 1.0)), 2],
    "nadam": [((0.01, 0.02, 0.9, 0.99, 0.3, 1e-3, 0.1, 1.0, -1.0), (0.01, 0.02, 0.4, 0.9, 0.1, 1e-3, 0.0, 0.9, 1.0)), 2],
    "radam": [((0.1, 0.3, 0.9, 0.99, 1e-3, 0.1, 1.0, -1.0), (0.1, 0.0, 0.4, 0.9, 1e-3, 0.0, 0.9, 1.0)), 2],
    "asgd": [((0.1, 1.0, 0.99, 0.1, -1.0), (0.1, 0.3, 0.99, 0.0, 1.0)), 1],
    "adadelta": [((0.5, 0.9, 1e-3, 0.1, -1.0), (1.0, 0.4, 1e-6, 0.0, 1.0)), 2],
    "rprop": [((0.5, 1.2, 1e-6, 50.0, -1.0), (0.5, 1.2, 0.5, 0.6, 1.0)), 2],
}  # fmt: skip


@pytest.mark.parametrize("name", RULED)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rules_are_those_of_the_reference(monkeypatch: Any, rng: np.random.Generator, name: str, dtype: str) -> None:
    numbers, states = RULED[name]
    shapes = ((), (5,), (33, 65), (257, 1025))

    def stepped() -> list[Any]:
        r, found = np.random.default_rng(3), []
        arrays = [[r.standard_normal(shape).astype(dtype) for _ in range(2)] for shape in shapes]
        kept = [[r.random(shape).astype(dtype) for _ in range(states)] + [None] * (3 - states) for shape in shapes]
        for row in numbers * 2:
            found = [x for pair, own in zip(arrays, kept, strict=True) for x in (*pair, *own)]
            K.step_many(name, found, [row])
        return [x for x in found if x is not None]

    fast = stepped()
    monkeypatch.setattr("rushlight.kernels.steps.native", lambda dtype: None)
    for a, b in zip(fast, stepped(), strict=True):
        np.testing.assert_allclose(a, b, rtol=64 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", [name for name in RULED if name != "asgd"])
def test_numbers_that_are_not_finite_go_through_rules_as_in_the_reference(monkeypatch: Any, name: str) -> None:
    numbers, states = RULED[name]
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "f4")

    def stepped() -> list[Any]:
        arrays = [x.ravel().copy() for x in np.meshgrid(odd, odd, *[odd] * states)]
        K.step_many(name, arrays + [None] * (3 - states), [numbers[0]])
        return arrays

    fast = stepped()
    monkeypatch.setattr("rushlight.kernels.steps.native", lambda dtype: None)
    for a, b in zip(fast, stepped(), strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.skipif(not native(np.dtype("f4")), reason="NumPy's steps leave subnormal numbers as they are")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_moments_do_not_stay_subnormal(dtype: str) -> None:
    least = np.finfo(dtype).smallest_normal
    p, g, m, v = np.ones(64, dtype), np.zeros(64, dtype), np.full(64, least, dtype), np.full(64, least, dtype)
    m[0] = np.nan
    K.adam(p, g, m, v, None, 1, 0.1, 0.9, 0.999, 1e-8)
    assert np.isnan(m[0]) and not m[1:].any() and not v.any()
    buffer = np.full(64, least, dtype)
    K.sgd(p, g, buffer, 0.1, 0.9)
    assert not buffer.any()
