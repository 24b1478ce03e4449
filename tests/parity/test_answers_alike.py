"""Calls of libraries, each asked of PyTorch and of rushlight: what they give, warn of, or raise is alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def put(t: Any, index: Any, value: Any) -> list[float]:
    x = t.zeros(2, 3)
    x[index] = value
    return x.flatten().tolist()  # type: ignore[no-any-return]


def grid_twice(t: Any, n: int) -> list[float]:
    theta = t.ones(1, n, n + 1, requires_grad=True)
    total = t.nn.functional.affine_grid(theta, [1, 1] + [2] * n, align_corners=False).sum()
    total.backward()
    total.backward()
    return theta.grad.flatten().tolist()  # type: ignore[no-any-return]


def flat_weights(t: Any) -> list[float]:
    layer = t.nn.LSTM(2, 2)
    layer._flat_weights = [w.detach() * 0 for w in layer._flat_weights]
    return layer(t.ones(1, 1, 2))[0].flatten().tolist()  # type: ignore[no-any-return]


def longer_than_promised(t: Any) -> int:
    class Numbers(t.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Any:
            return iter(range(4))

    loader = t.utils.data.DataLoader(Numbers())
    len(loader)
    return len(list(loader))


def numbered(t: Any) -> list[Any]:
    batches = t.utils.data.dataloader._InfiniteConstantSampler()
    return [next(iter(batches)), next(iter(batches))]


def with_tangents(t: Any, name: str) -> Any:
    forward = t.autograd.forward_ad
    with forward.dual_level():
        x, mean = forward.make_dual(t.ones(2, 2, 2), t.ones(2, 2, 2)), forward.make_dual(t.zeros(2), t.ones(2))
        options = {"use_input_stats": False} if name == "instance_norm" else {}
        return getattr(t.nn.functional, name)(x, mean, t.ones(2), **options).tolist()


CALLS: dict[str, Callable[[Any], Any]] = {
    "assert_allclose of two dtypes": lambda t: t.testing.assert_allclose(t.ones(2), t.ones(2, dtype=t.float64)),
    "assert_allclose within float32": lambda t: t.testing.assert_allclose(t.ones(2), t.ones(2) * (1 + 5e-5)),
    "assert_allclose beyond float32": lambda t: t.testing.assert_allclose(t.ones(2), t.ones(2) * 1.01),
    "assert_allclose beyond float64": lambda t: t.testing.assert_allclose(t.ones(2).double(), t.ones(2).double() * (1 + 5e-5)),
    "a mask and another dtype": lambda t: put(t, t.ones(2, 3, dtype=t.bool), t.ones(6, dtype=t.float64)),
    "indices and another dtype": lambda t: put(t, (slice(None), [1]), t.ones(2, 1, dtype=t.int64)),
    "a number's index and another dtype": lambda t: put(t, (slice(None), 1), t.ones(2, dtype=t.int64)),
    "affine_grid, run backward twice": lambda t: grid_twice(t, 2),
    "affine_grid in space, run backward twice": lambda t: grid_twice(t, 3),
    "other weights of an LSTM": flat_weights,
    "more samples than promised": longer_than_promised,
    "batch norm by statistics with tangents": lambda t: with_tangents(t, "batch_norm"),
    "instance norm by statistics with tangents": lambda t: with_tangents(t, "instance_norm"),
    "kinds of reductions": lambda t: t.distributed.ReduceOp.SUM == t.distributed.ReduceOp.RedOpType.SUM,
    "a sampler without end": numbered,
    "chunks of a storage": lambda t: t.arange(3, dtype=t.uint8).untyped_storage()[1:].tolist(),
    "a loaded library": lambda t: t.ops.load_library("/nowhere/lib.so"),
}  # fmt: skip


def told(call: Callable[[Any], Any], t: Any) -> tuple[Any, ...]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call(t)
        except Exception as error:
            found = type(error)
    return found, {each.category for each in caught if "samples" in str(each.message)}


@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name: str) -> None:
    assert told(CALLS[name], rushlight) == told(CALLS[name], reference)


def test_words_of_two_dtypes_and_of_more_samples() -> None:
    for t in (reference, rushlight):
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            put(t, t.ones(2, 3, dtype=t.bool), t.ones(6, dtype=t.float64))
        with pytest.warns(UserWarning, match="samples have been fetched"):
            longer_than_promised(t)


def test_slopes_of_rrelu_inside_vmap_are_drawn_as_randomness_says() -> None:
    x = -rushlight.ones(3, 4)

    def slopes(randomness: str) -> Any:
        return rushlight.vmap(lambda row: rushlight.nn.functional.rrelu(row, training=True), randomness=randomness)(x)

    same, different = slopes("same"), slopes("different")
    assert rushlight.equal(same[0], same[1])
    assert not rushlight.equal(different[0], different[1])
    with pytest.raises(RuntimeError, match="random"):
        slopes("error")
