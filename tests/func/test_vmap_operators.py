"""vmap against a loop, for every operator: values, gradients taken outside, and gradients of each sample taken inside."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tools.calls import CALLS
from tools.replaying.cases import runner, variables

import rushlight as T
from rushlight.basics.state import modes
from rushlight.dispatch.declare import OPS
from rushlight.func import hessian, jvp, vmap
from rushlight.transforms import batched
from rushlight.transforms.batching import rule_of

SAMPLES = 3
F = T.nn.functional
# A target that all samples share cannot take what differs between them.
REAL = {"F.rrelu(x - 0.5, 0.1, 0.1, training=True)",  # compares with zero
        "F.grid_sample(h, h[..., :2].permute(0, 2, 3, 1)[..., :2] * 2 - 1, mode='nearest', align_corners=False)"}  # rounds places  # fmt: skip
SINGLE_WAY = {"x.clone().fill_(s)", "x.clone().copy_(y)"}


def loss(results: Any) -> Any:
    """A real number that every differentiable result takes part in."""
    parts = [(r.abs() ** 2).sum() for r in results if r.requires_grad]
    return sum(parts[1:], parts[0]) if parts else None


def close(got: Any, want: Any, what: str) -> None:
    got, want = np.asarray(got.detach().numpy()), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, by a loop {want.shape}"
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, by a loop {want.dtype}"
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=what)


def masks(count: int) -> list[tuple[bool, ...]]:
    """Which of the arguments have samples: all, the first alone, all but the first."""
    found = [(True,) * count]
    if count > 1:
        found += [tuple(i == 0 for i in range(count)), tuple(i > 0 for i in range(count))]
    return found


def stacked(rows: Any) -> list[Any]:
    return [np.stack([t.detach().numpy() for t in column]) for column in zip(*rows, strict=True)]


def sample_of(arrays: dict[str, Any], mask: Any, b: int) -> list[Any]:
    return [T.from_numpy(np.array(a[b] if m else a[0])) for a, m in zip(arrays.values(), mask, strict=True)]


def differentiable(t: Any) -> bool:
    return bool(t.dtype.is_floating_point or t.dtype.is_complex)


def by_loop(run: Any, arrays: dict[str, Any], mask: Any) -> Any:
    """Results, and gradients of the floating-point arguments (None where there are none), of all samples."""
    results, grads = [], []
    for b in range(SAMPLES):
        args = [a.requires_grad_() if differentiable(a) else a for a in sample_of(arrays, mask, b)]
        results.append(run(*args))
        total, wanted = loss(results[-1]), [a for a in args if differentiable(a)]
        if total is not None and wanted:
            try:
                grads.append(T.autograd.grad(total, wanted, materialize_grads=True))
            except (RuntimeError, NotImplementedError) as error:
                assert "implemented" in str(error) or "expected a tensor of" in str(error), error
    return stacked(results), stacked(grads) if grads else None


def arguments(arrays: dict[str, Any], mask: Any, dim: int) -> list[Any]:
    return [T.from_numpy(np.array(np.moveaxis(a, 0, dim) if m else a[0]))
            for a, m in zip(arrays.values(), mask, strict=True)]  # fmt: skip


def check(call: str, dtype: str, mask: Any) -> None:
    arrays = variables(call, dtype, SAMPLES)
    run = runner(call, list(arrays))
    want, want_grads = by_loop(run, arrays, mask)
    for dim in (0, -1):
        dims = tuple(dim if m else None for m in mask)
        got = vmap(run, dims, randomness="different")(*arguments(arrays, mask, dim))
        for g, w in zip(got, want, strict=True):
            close(g, w, f"{call} {mask} dim {dim}")
    if want_grads is None:
        return
    dims = tuple(0 if m else None for m in mask)
    args = [a.requires_grad_() if differentiable(a) else a for a in arguments(arrays, mask, 0)]
    wanted = [a for a in args if differentiable(a)]
    moved = [m for a, m in zip(args, mask, strict=True) if differentiable(a)]
    outer = T.autograd.grad(loss(vmap(run, dims, randomness="different")(*args)), wanted, materialize_grads=True)
    for g, w, m in zip(outer, want_grads, moved, strict=True):
        close(g, w if m else w.sum(0), f"{call} {mask}: gradient taken outside")

    def inner(*values: Any) -> Any:
        leaves = [a.detach().requires_grad_() if differentiable(a) else a for a in values]
        targets = [a for a in leaves if differentiable(a)]
        return T.autograd.grad(loss(run(*leaves)), targets, materialize_grads=True)

    for g, w in zip(vmap(inner, dims, randomness="different")(*args), want_grads, strict=True):
        close(g, w, f"{call} {mask}: gradient taken inside")


def attempt(call: str, dtype: str) -> None:
    arrays = variables(call, dtype, SAMPLES)
    for mask in masks(len(arrays))[: 1 if call in SINGLE_WAY else None]:
        check(call, dtype, mask)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="vmap: there is no batching rule", category=UserWarning)
        yield


def collected(applies: Callable[[str], bool]) -> list[str]:
    """The calls that something applies to: no test is collected for the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as while tests run
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="rushlight")
        return [call for call in CALLS if applies(call)]


@pytest.mark.parametrize("call", CALLS)
def test_real(call: str) -> None:
    attempt(call, "float64")


def takes_complex(call: str) -> bool:
    """Whether a call is one of complex numbers too."""
    arrays = variables(call, "complex128", SAMPLES)
    try:
        runner(call, list(arrays))(*sample_of(arrays, (True,) * len(arrays), 0))
    except Exception:
        return False
    return call not in REAL


@pytest.mark.parametrize("call", complex_calls := collected(takes_complex))
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_complex(call: str) -> None:
    attempt(call, "complex128")


# Random ones, those in functions that run sample after sample, those of distributions, which are loaded later, and eigenvalues and
# singular values alone, which are for tensors that no level owns.
UNREACHED = {"alias", "binomial", "conj", "dropout_backward", "eigenvalues", "embedding_bag", "embedding_bag_max", "first_of", "grid_nearest", "grid_points",
             "log_gamma_slope", "log_standard_gamma", "native_dropout", "neg_view", "no_gradient", "opaque", "pool_gather", "put_rows",
             "random_", "resample_bytes", "singular_values", "stft_frames", "take_rows", "von_mises"}  # fmt: skip


def test_every_operator_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()

    def spy(op: Any) -> Any:
        seen.add(op.name)
        return rule_of(op)

    monkeypatch.setattr(batched, "rule_of", spy)
    for call in CALLS:
        for dtype in ("float64", "complex128"):
            arrays = variables(call, dtype, SAMPLES)
            run = runner(call, list(arrays))
            dims = (0,) * len(arrays)

            def inner(*values: Any, run: Any = run) -> Any:
                leaves = [a.detach().requires_grad_() if differentiable(a) else a for a in values]
                targets, total = [a for a in leaves if differentiable(a)], loss(run(*leaves))
                return T.autograd.grad(total, targets, materialize_grads=True) if total is not None and targets else ()

            try:
                vmap(inner, dims, randomness="different")(*arguments(arrays, dims and (True,) * len(arrays), 0))
            except Exception:
                continue
    assert set(OPS) - seen <= UNREACHED, set(OPS) - seen - UNREACHED


def pushing(call: str) -> tuple[Any, list[Any], list[Any]]:
    """(arguments and directions to tangents, all samples of the arguments, all samples of the directions) of a call."""
    arrays = variables(call, "float64", SAMPLES)
    run = runner(call, list(arrays))
    rng = np.random.default_rng(1)
    moving = [i for i, a in enumerate(arrays.values()) if a.dtype.kind == "f"]
    directions = [T.from_numpy(rng.standard_normal(list(arrays.values())[i].shape)) for i in moving]

    def push(args: Any, vectors: Any) -> Any:
        def f(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(moving, values, strict=True):
                full[i] = value
            return tuple(t for t in run(*full) if differentiable(t))

        return jvp(f, tuple(args[i] for i in moving), tuple(vectors))[1]

    return push, [T.from_numpy(a) for a in arrays.values()], directions


def has_tangents(call: str) -> bool:
    """Whether there is a forward mode of a call, and something to differentiate."""
    push, kept, directions = pushing(call)
    try:
        push([a[0].clone() for a in kept], [d[0] for d in directions])
    except (RuntimeError, NotImplementedError, ValueError):
        return False
    return True


@pytest.mark.parametrize("call", moving_calls := collected(has_tangents))
def test_tangents(call: str) -> None:
    push, kept, directions = pushing(call)
    rows = [push([a[b].clone() for a in kept], [d[b] for d in directions]) for b in range(SAMPLES)]
    got = vmap(push, (0, 0), randomness="different")(kept, directions)
    for g, w in zip(got, stacked(rows), strict=True):
        close(g, w, f"{call}: tangents")


def test_most_calls_have_tests_of_each_kind() -> None:
    assert len(complex_calls) > 0.3 * len(CALLS) and len(moving_calls) > 0.8 * len(CALLS)


def test_a_number_that_each_sample_has_its_own_of_is_an_index() -> None:
    x, i, j = T.arange(24.0).view(2, 3, 4), T.tensor([0, 2]), T.tensor([3, 1])
    keys = (
        lambda i, j: i, lambda i, j: (i, j), lambda i, j: (slice(None), j), lambda i, j: (i, None, j), lambda i, j: (..., j),
        lambda i, j: (i, slice(1, 3)), lambda i, j: (1, j), lambda i, j: (i, T.tensor([0, 1])),
    )  # fmt: skip

    def put(x: Any, i: Any, j: Any) -> Any:
        x = x * 1
        x[key(i, j)] = x[0, 0]
        return x

    for key in keys:
        got = T.func.vmap(lambda x, i, j, key=key: x[key(i, j)])(x, i, j)
        assert T.equal(got, T.stack([x[n][key(i[n], j[n])] for n in range(2)]))
        assert T.equal(T.func.vmap(put)(x, i, j), T.stack([put(x[n], i[n], j[n]) for n in range(2)]))
        slope = T.func.vmap(T.func.grad(lambda x, i, j, key=key: (x[key(i, j)] ** 2).sum()))(x, i, j)
        assert T.equal(
            slope,
            T.stack([T.func.grad(lambda x, n=n, key=key: (x[key(i[n], j[n])] ** 2).sum())(x[n]) for n in range(2)]),
        )
    with pytest.raises(IndexError):
        T.func.vmap(lambda x, i: x[i + 5])(x, i)


def test_rules_run_outside_of_their_level_so_that_operators_take_their_fast_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def spy(op: Any) -> Any:
        seen.append((op.name, len(modes.levels)))
        return rule_of(op)

    monkeypatch.setattr(batched, "rule_of", spy)
    x = T.ones(2, 3, 4)
    vmap(lambda x: x.tanh())(x)
    vmap(vmap(lambda x: x.tanh()))(x)
    assert seen == [("tanh", 0), ("tanh", 1), ("tanh", 0)]
    with pytest.raises(RuntimeError):
        vmap(lambda x: x @ T.ones(3, 3))(x)
    assert not modes.levels


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize(
    "dims", [(0, 0, 0), (None, 0, 0), (None, 0, None), (0, 0, None), (0, None, 0), (0, None, None)]
)
def test_a_layer_with_weights_of_each_sample(shape: tuple[int, ...], dims: tuple[Any, ...]) -> None:
    T.manual_seed(0)
    shapes = [(6, *s) if d == 0 else s for s, d in zip((shape, (5, 4), (5,)), dims, strict=True)]
    given = [T.randn(s, dtype=T.float64, requires_grad=True) for s in shapes]
    linear = T.nn.functional.linear
    each = T.stack([linear(*(t[k] if d == 0 else t for t, d in zip(given, dims, strict=True))) for k in range(6)])
    found = vmap(linear, dims)(*given)
    assert T.allclose(found, each)
    for a, b in zip(*(T.autograd.grad(out.sin().sum(), given) for out in (found, each)), strict=True):
        assert T.allclose(a, b)


@pytest.mark.parametrize("f", [lambda x: F.cosine_similarity(x, x.flip(0), dim=0, eps=0.5), lambda x: T.nan_to_num(x).sum(),
                               lambda x: F.binary_cross_entropy(x, x.flip(0)), lambda x: x.clamp(0.1, 0.4).prod()])  # fmt: skip
def test_tangents_of_gradients_that_clamp(f: Callable[..., Any]) -> None:
    """What clamp keeps for its gradient was not there where nothing recorded, in a gradient, for a tangent of that."""
    points = T.tensor([[0.2, 0.7, 0.9], [0.5, 0.1, 0.3]], dtype=T.float64)
    each = T.stack([T.autograd.functional.hessian(f, p) for p in points])
    assert T.allclose(vmap(hessian(f))(points), each)
    with T.no_grad():
        assert T.allclose(
            vmap(lambda x: jvp(f, (x,), (x,))[1])(points), T.stack([T.func.grad(f)(p) @ p for p in points])
        )
