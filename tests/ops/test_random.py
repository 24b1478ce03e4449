"""Random numbers: repeatable, of the right distribution, drawn without waste."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

import rushlight as torch

N = 20000


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(17)


def near(t: Any, mean: float, std: float) -> None:
    """Mean and deviation are those expected, within five standard errors or so."""
    x = t.numpy(force=True).astype(np.float64)
    assert abs(x.mean() - mean) < 6 * std / N**0.5 and abs(x.std() - std) < 0.05 * std + 1e-12


def test_repeatable() -> None:
    g = torch.Generator().manual_seed(5)
    draws = {
        "rand": lambda: torch.rand(4, generator=g), "randn": lambda: torch.randn(4, generator=g),
        "randint": lambda: torch.randint(10, (4,), generator=g), "randperm": lambda: torch.randperm(6, generator=g),
        "normal": lambda: torch.normal(torch.zeros(4), 1.0, generator=g),
        "bernoulli": lambda: torch.bernoulli(torch.full((9,), 0.5), generator=g),
        "multinomial": lambda: torch.multinomial(torch.ones(8), 4, generator=g),
        "poisson": lambda: torch.poisson(torch.full((4,), 9.0), generator=g),
        "uniform_": lambda: torch.zeros(4).uniform_(generator=g),
        "random_": lambda: torch.zeros(4).random_(generator=g),
        "exponential_": lambda: torch.zeros(4).exponential_(generator=g),
    }  # fmt: skip
    for name, draw in draws.items():
        g.manual_seed(5)
        first, second = draw().tolist(), draw().tolist()
        g.manual_seed(5)
        assert draw().tolist() == first, name
        assert second != first, name


def test_states() -> None:
    state = torch.get_rng_state()
    first = torch.rand(3).tolist()
    torch.set_rng_state(state)
    assert torch.rand(3).tolist() == first and state.dtype is torch.uint8
    with torch.random.fork_rng():
        torch.rand(10)
    after = torch.rand(1).item()
    torch.set_rng_state(state)
    torch.rand(3)
    assert torch.rand(1).item() == after
    assert torch.initial_seed() == 17 and torch.seed() == torch.initial_seed()
    for wrong, error in ((torch.zeros(3, dtype=torch.uint8), RuntimeError), (torch.zeros(56), TypeError)):
        with pytest.raises(error):
            torch.set_rng_state(wrong)


def test_generators_are_copied() -> None:
    g = torch.Generator().manual_seed(3)
    torch.randint(5, (3,), generator=g, dtype=torch.int32)
    for twin in (g.clone_state(), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert twin is not g and twin.initial_seed() == 3
        assert torch.rand(2, generator=twin).tolist() == torch.rand(2, generator=g.clone_state()).tolist()
    with pytest.raises(TypeError, match="Generator"):
        torch.rand(1, generator=np.random.default_rng())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
def test_rand_and_randn(dtype: str) -> None:
    kind = getattr(torch, dtype)
    u, n = torch.rand(N, dtype=kind), torch.randn(N, dtype=kind)
    assert u.dtype is n.dtype is kind
    if kind.is_complex:
        near(u.real, 0.5, 12**-0.5)
        near(n.imag, 0, 0.5**0.5)
        return
    u, n = u.float(), n.float()
    assert u.min() >= 0 and u.max() < 1
    near(u, 0.5, 12**-0.5)
    near(n, 0, 1)


def test_integers() -> None:
    x = torch.randint(-2, 3, (N,))
    assert x.unique().tolist() == [-2, -1, 0, 1, 2] and x.dtype is torch.int64
    assert torch.randint(3, (5,), dtype=torch.float32).dtype is torch.float32
    assert torch.randint(low=1, high=2, size=(2,)).tolist() == [1, 1]
    assert sorted(torch.randperm(50).tolist()) == list(range(50))
    for wrong in ((5, 5, (2,)), (0, (2,))):
        with pytest.raises(RuntimeError, match="less than"):
            torch.randint(*wrong)
    with pytest.raises(TypeError):
        torch.randint(1, 5, 2)


def test_like() -> None:
    x = torch.zeros(3, 2, dtype=torch.float64).t()
    for made in (torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 5), torch.randint_like(x, 1, 5)):
        assert made.dtype is x.dtype and made.stride() == x.stride()


def test_in_place_distributions() -> None:
    x = torch.empty(N)
    near(x.uniform_(-1, 3), 1, 4 / 12**0.5)
    near(x.normal_(2, 0.5), 2, 0.5)
    near(x.exponential_(2.0), 0.5, 0.5)
    near(x.log_normal_(0, 0.5).log_(), 0, 0.5)
    near(x.geometric_(0.25), 4, 12**0.5)
    near(x.bernoulli_(0.3), 0.3, 0.21**0.5)
    near(x.random_(10), 4.5, 8.25**0.5)
    near(x.random_(2, 4), 2.5, 0.5)
    assert abs(np.median(x.cauchy_(1.0, 2.0).numpy()) - 1) < 0.1
    assert torch.empty(100, dtype=torch.uint8).random_().max() > 100


@pytest.mark.parametrize(
    "call",
    [lambda x: x.uniform_(2, 1), lambda x: x.normal_(0, -1), lambda x: x.exponential_(0), lambda x: x.geometric_(1.0),
     lambda x: x.cauchy_(0, 0), lambda x: x.log_normal_(0, 0), lambda x: x.bernoulli_(1.5), lambda x: x.random_(0),
     lambda x: x.long().normal_(), lambda x: torch.normal(0.0, -x), lambda x: torch.poisson(-x),
     lambda x: torch.bernoulli(x + 1), lambda x: torch.multinomial(-x, 1), lambda x: torch.multinomial(x, 9),
     lambda x: torch.multinomial(x * 0, 1)],
)  # fmt: skip
def test_wrong_parameters(call: Any) -> None:
    with pytest.raises(RuntimeError):
        call(torch.ones(3))


def test_normal_with_tensors() -> None:
    mean = torch.full((N,), 3.0, requires_grad=True)
    x = torch.normal(mean, torch.tensor(0.5))
    near(x, 3, 0.5)
    x.sum().backward()
    assert mean.grad.abs().sum() == 0
    assert torch.normal(0.0, torch.ones(2, 3)).shape == (2, 3) and torch.normal(1.0, 2.0, (4,)).shape == (4,)


def test_poisson_binomial_multinomial() -> None:
    near(torch.poisson(torch.full((N,), 4.0)), 4, 2)
    near(torch.binomial(torch.full((N,), 10.0), torch.full((N,), 0.5)), 5, 2.5**0.5)
    weights = torch.tensor([0.0, 1.0, 3.0])
    drawn = torch.multinomial(weights, N, replacement=True)
    near(drawn, 1.75, 0.1875**0.5)
    assert sorted(torch.multinomial(weights, 2).tolist()) == [1, 2]
    assert torch.multinomial(torch.ones(4, 3), 2).shape == (4, 2)
    first = torch.stack([torch.multinomial(weights, 1) for _ in range(2000)]).float().mean()
    assert abs(first - 1.75) < 0.06


def test_draws_in_place_need_no_memory_and_cut_the_history() -> None:
    x = torch.empty(1 << 20)
    tracemalloc.start()
    x.normal_(1, 2)
    x.uniform_(-1, 1)
    x.exponential_()
    x.cauchy_()
    x.log_normal_()
    x.bernoulli_(0.3)
    x.geometric_(0.3)
    x.random_(10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 18
    leaf = torch.ones(3, requires_grad=True)
    y = leaf * 2
    y.normal_().sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.normal_()
    with torch.no_grad():
        leaf.normal_()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64])
def test_coins_fall_into_any_dtype(dtype: torch.dtype) -> None:
    chances = torch.full((9,), 0.5)
    torch.manual_seed(3)
    wanted = torch.bernoulli(chances)
    torch.manual_seed(3)
    out = torch.empty(9, dtype=dtype)
    assert torch.bernoulli(chances, out=out) is out and out.dtype is dtype
    assert out.float().tolist() == wanted.tolist()
    with pytest.raises(RuntimeError, match="support automatic differentiation"):
        torch.bernoulli(chances.requires_grad_(), out=out)
    with pytest.raises(TypeError, match="must be Tensor"):
        torch.bernoulli(chances, out=3)  # type: ignore[arg-type]
