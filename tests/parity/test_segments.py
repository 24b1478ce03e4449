"""Functions that are seldom called, and classes of old, against PyTorch."""

from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore::RuntimeWarning"),
]
LIBRARIES = (rushlight, torch)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize(
    ("shape", "lengths", "axis"), [((6,), [1, 2, 3], 0), ((4, 3), [1, 3], 0), ((2, 6), [[1, 5], [2, 4]], 1)]
)
def test_segments(reduce: str, initial: float | None, shape: tuple[int, ...], lengths: Any, axis: int) -> None:
    data = np.random.default_rng(0).standard_normal(shape)
    found = []
    for t in LIBRARIES:
        x = t.tensor(data, requires_grad=True)
        y = t.segment_reduce(x, reduce, lengths=t.tensor(lengths), axis=axis, initial=initial)
        y.pow(2).sum().backward()
        found.append([y.detach().numpy(), x.grad.numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_segments_that_are_empty_or_do_not_fit() -> None:
    for reduce in ("sum", "mean", "max", "min", "prod"):
        ours, theirs = (t.segment_reduce(t.ones(2), reduce, lengths=t.tensor([0, 2])).numpy() for t in LIBRARIES)
        np.testing.assert_array_equal(ours, theirs)
    for t in LIBRARIES:
        with pytest.raises(RuntimeError, match="Expected all rows of lengths"):
            t.segment_reduce(t.ones(4), "sum", lengths=t.tensor([1, 1]))


@pytest.mark.parametrize("generalized", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_some_eigenvalues(largest: bool, generalized: bool) -> None:
    rng = np.random.default_rng(0)
    A, B = (m @ m.T + np.eye(12) for m in (rng.standard_normal((12, 12)), rng.standard_normal((12, 12))))
    start = rng.standard_normal((12, 2))
    found = []
    for t in LIBRARIES:
        a, b, x = t.tensor(A), t.tensor(B) if generalized else None, t.tensor(start)
        values, vectors = t.lobpcg(a, 2, b, x, niter=2000, tol=1e-10, largest=largest)
        right = vectors if b is None else b @ vectors
        np.testing.assert_allclose((a @ vectors).numpy(), (right * values).numpy(), atol=1e-5)
        found.append(values.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    with pytest.raises(ValueError, match="smaller than 3 x"):
        rushlight.lobpcg(rushlight.eye(4), 2)


def test_storages_of_a_dtype() -> None:
    for t in LIBRARIES:
        assert (
            t.FloatStorage([1, 2]).tolist() == [1.0, 2.0] and len(t.LongStorage(3)) == 3 and len(t.HalfStorage()) == 0
        )
        storage = t.ones(2).storage()
        assert isinstance(storage, t.FloatStorage) and not isinstance(storage, t.DoubleStorage)


def test_dense_tensors_have_no_parts_of_sparse_ones() -> None:
    for name in (
        "coalesce",
        "indices",
        "values",
        "crow_indices",
        "col_indices",
        "ccol_indices",
        "row_indices",
        "is_coalesced",
    ):
        said = []
        for t in LIBRARIES:
            with pytest.raises(RuntimeError) as error:
                getattr(t.ones(2, 2), name)()
            said.append(str(error.value))
        assert said[0] == said[1]


def test_replicas_of_modules() -> None:
    for t in LIBRARIES:
        replica = t.nn.BatchNorm2d(2)._replicate_for_data_parallel()
        assert (replica._parameters, list(replica._buffers), replica._is_replica) == (
            {},
            ["running_mean", "running_var", "num_batches_tracked"],
            True,
        )


def ranged(t: Any) -> Any:
    return lambda x: t.arange(0, x.size(0), 2)


def test_ranges_of_what_is_traced() -> None:
    for t in LIBRARIES:
        text = t.fx.symbolic_trace(ranged(t)).code
        assert "arange(0, size, 2)" in text


def test_elements_behind_the_last_segment_are_of_none_where_that_is_allowed() -> None:
    for program in (
        lambda t: t.segment_reduce(t.arange(5.0), "sum", lengths=t.tensor([2]), unsafe=True).tolist(),
        lambda t: t.segment_reduce(t.arange(8.0).view(4, 2), "mean", offsets=t.tensor([0, 1, 3]), unsafe=True).tolist(),
        lambda t: t._foreach_pow(t.tensor(2.0), [t.ones(2), t.full((1,), 3.0)])[1].tolist(),
    ):
        assert program(rushlight) == program(torch)
    for refused, kind in (
        (lambda t: t.segment_reduce(t.arange(2), "sum", lengths=t.tensor([2])), NotImplementedError),
        (lambda t: t.quantile(t.ones(3), [0.5]), TypeError),
        (lambda t: t._foreach_pow(t.ones(2), [t.ones(2)]), TypeError),
    ):
        for t in LIBRARIES:
            with pytest.raises(kind):
                refused(t)


@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("initial", [0.0, 1.0, 2.0])
def test_what_segments_begin_with_shares_no_gradient(reduce: str, initial: float) -> None:
    found = []
    for t in LIBRARIES:
        x = t.tensor([1.0, 2.0, 2.0, 0.0, 5.0, 0.0], requires_grad=True)
        y = t.segment_reduce(x, reduce, lengths=t.tensor([3, 0, 3]), initial=initial)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]
