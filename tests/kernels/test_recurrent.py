"""Sequences of recurrent steps against loops over steps in float64."""

from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight import kernels as K
from rushlight.kernels import recurrent
from rushlight.kernels.native import loader

SIZES: tuple[list[int], ...] = ([3, 3, 3], [9, 9, 4, 4, 1], [1, 1], [17], [0, 0])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_cell(g: Any, h: Any, c: Any, w: Any) -> Any:
    i, f, a, o = np.split(g + h @ w.T, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(a)
    return sigmoid(o) * np.tanh(c), c


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("hidden", [1, 20, 49])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_lstm_equals_a_loop(path: str, rng: np.random.Generator, sizes: list[int], hidden: int, reverse: bool, dtype: str) -> None:  # fmt: skip
    total, batch = sum(sizes), max(sizes)
    shapes = (total, 4 * hidden), (batch, hidden), (batch, hidden), (4 * hidden, hidden)
    gates, h, c, w = ((rng.standard_normal(shape) / 2).astype(dtype) for shape in shapes)
    steps = recurrent.steps_of(sizes, reverse)
    want, want_h, want_c = np.empty((total, hidden)), h.astype("f8"), c.astype("f8")
    for start, n in steps.tolist():
        rows = slice(start, start + n)
        want_h[:n], want_c[:n] = lstm_cell(gates[rows].astype("f8"), want_h[:n], want_c[:n], w.astype("f8"))
        want[rows] = want_h[:n]
    out, last_h, last_c, cells = K.lstm(gates, steps, h, c, w, None, True)
    for found, expected in ((out, want), (last_h, want_h), (last_c, want_c)):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, atol=2e-6 if dtype == "f4" else 1e-14)
    assert cells is not None
    np.testing.assert_allclose(out, gates[:, 3 * hidden :] * np.tanh(cells), atol=1e-6)


def arguments(rng: np.random.Generator, sizes: list[int], n: int, dtype: str) -> dict[str, tuple[Any, ...]]:
    """What each kernel takes beside steps, by its name."""
    total, batch = sum(sizes), max(sizes)
    rows, first = (total, n), (batch, n)

    def made(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple((rng.random(shape) - 0.4).astype(dtype) for shape in shapes)

    return {
        "lstm": made((total, 4 * n), first, first, (4 * n, n)), "lstm_cell": made((total, 4 * n), (total, 4 * n), rows),
        "lstm_cell_backward": made(rows, rows, (total, 5 * n), rows), "gru": made((total, 3 * n), first, (3 * n, n), (3 * n,)),
        "rnn": made(rows, first, (n, n)), "lstm_backward": made(rows, first, first, (total, 4 * n), rows, first, (4 * n, n)),
        "gru_backward": made(rows, first, (total, 3 * n), rows, rows, first, (3 * n, n)),
        "rnn_backward": made(rows, first, rows, (n, n)),
    }  # fmt: skip


def run(name: str, steps: Any, *a: Any) -> list[Any]:
    calls: dict[str, Any] = {
        "lstm_cell": lambda: K.lstm_cell(*a),
        "lstm_cell_backward": lambda: (K.lstm_cell_backward(*a), K.lstm_cell_backward(None, *a[1:]), K.lstm_cell_backward(a[0], None, *a[2:])),
        "lstm": lambda: K.lstm(a[0], steps, *a[1:], None, True), "gru": lambda: K.gru(a[0], steps, *a[1:], True),
        "rnn": lambda: K.rnn(a[0], steps, *a[1:], False),
        "lstm_backward": lambda: K.lstm_backward(a[0], a[1:3], *a[3:6], steps, a[6], None),
        "gru_backward": lambda: K.gru_backward(*a[:6], steps, a[6]),
        "rnn_backward": lambda: K.rnn_backward(*a[:3], steps, a[3], True),
    }  # fmt: skip
    found = [x for result in calls[name]() for x in (result if isinstance(result, tuple) else (result,))]
    return [x for x in found if x is not None]


@pytest.mark.parametrize(
    "name", ["lstm", "gru", "rnn", "lstm_cell", "lstm_backward", "gru_backward", "rnn_backward", "lstm_cell_backward"]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.skipif(not loader.tables(), reason="no native kernels here")
def test_native_equals_the_reference(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, name: str, dtype: str, reverse: bool
) -> None:
    for sizes in SIZES:
        for hidden in (1, 33, 100):
            given, steps = arguments(rng, sizes, hidden, dtype)[name], recurrent.steps_of(sizes, reverse)
            again = [x.copy() for x in given]
            found = [*run(name, steps, *given), given[0]]
            with monkeypatch.context() as patched:
                patched.setattr(loader, "_tables", {})
                want = [*run(name, steps, *again), again[0]]
            for one, other in zip(found, want, strict=True):
                scale = abs(other).max(initial=1)
                np.testing.assert_allclose(one, other, atol=(4e-6 if dtype == "f4" else 4e-14) * scale)


def test_gates_that_lie_apart_are_written(path: str, rng: np.random.Generator) -> None:
    steps = recurrent.steps_of([2, 2], False)
    wide, h, w = rng.random((4, 10)), rng.random((2, 5)), rng.random((5, 5))
    apart = wide[:, ::2]
    out, _ = K.rnn(apart, steps, h, w, False)
    np.testing.assert_array_equal(out, apart)
    assert (wide[:, ::2] < 1).all()


@pytest.mark.skipif(not loader.tables(), reason="no native kernels here")
def test_steps_outside_the_rows_are_refused(rng: np.random.Generator) -> None:
    gates, h, w = rng.random((4, 5)), rng.random((2, 5)), rng.random((5, 5))
    for wrong in ([[0, 2], [3, 2]], [[0, 3]], [[-1, 2]]):
        with pytest.raises(RuntimeError, match=r"rnn .native kernel.: steps"):
            K.rnn(gates, np.array(wrong, np.int64), h, w, False)


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("dtype", [rushlight.bfloat16, rushlight.float16])
def test_16_bit_layers_round_once(mode: str, dtype: Any) -> None:
    """Sequences in 16 bits are those of float32 layers with the same (rounded) weights and inputs, rounded."""
    rushlight.manual_seed(0)
    net = getattr(rushlight.nn, mode)(5, 6, 1).to(dtype)
    wide = getattr(rushlight.nn, mode)(5, 6, 1)
    wide.load_state_dict({k: v.float() for k, v in net.state_dict().items()})
    x = rushlight.randn(4, 3, 5).to(dtype).requires_grad_()
    y = x.detach().float().requires_grad_()
    out, want = net(x)[0], wide(y)[0]
    assert out.dtype == dtype
    assert (out == want.to(dtype)).all()
    out.sum().backward()
    want.sum().backward()
    for one, other in zip((x, *net.parameters()), (y, *wide.parameters()), strict=True):
        assert one.grad.dtype == dtype
        assert (one.grad.float() - other.grad).abs().max() <= 0.02 * other.grad.abs().max()
