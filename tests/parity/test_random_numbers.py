"""Random numbers: a seed gives PyTorch's, from every function, layer and sampler that draws by its formulas."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# (t) -> tensors: drawn to the bit as PyTorch draws them.
EXACT: dict[str, Callable[[Any], list[Any]]] = {
    "rand": lambda t: [t.rand(7), t.rand(70_000), t.rand(7, dtype=t.float64), t.rand(3, dtype=t.complex64), t.rand(())],
    "rand of 16 bits": lambda t: [t.rand(700, dtype=t.bfloat16), t.rand(700, dtype=t.float16)],
    "uniform_ of 16 bits": lambda t: (
        [
            t.empty(7000, dtype=kind).uniform_(*bounds)
            for kind in (t.bfloat16, t.float16)
            for bounds in ((-0.378, 0.378), (0.1, 0.3), (1000, 1001))
        ]
        + [t.nn.Linear(7, 9, dtype=t.bfloat16).weight]
    ),
    "randint": lambda t: [
        t.randint(10, (7,)),
        t.randint(-5, 5, (3,), dtype=t.int8),
        t.randint(0, 2**40, (3,)),
        t.randint(-(2**62), 2**62, (3,)),
        t.randint(3, (4,), dtype=t.float32),
        t.randint_like(t.ones(3), 5),
    ],
    "randint of more integers than a dtype holds": lambda t: [
        t.randint(0, 2**12, (50,), dtype=t.float16),
        t.randint(0, 2**40, (5,), dtype=t.float32),
        t.randint(-(2**10) - 3, 2**10 + 1, (50,), dtype=t.bfloat16),
        t.randint_like(t.ones(50).half(), 2**12),
    ],
    "randint where words of 64 bits begin": lambda t: (
        [
            t.randint(low, low + span, (5,), dtype=kind)
            for low in (0, -7)
            for kind in (t.int64, t.float64)
            for span in (2**28 - 1, 2**28, 2**28 + 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1)
        ]
        + [t.randint(2**28, (3,), dtype=t.int32), t.randint(2**29, (3,), generator=t.Generator().manual_seed(3))]
    ),
    "randperm": lambda t: [t.randperm(n) for n in (0, 1, 2, 10, 50_000)],
    "uniform_": lambda t: [
        t.empty(40).uniform_(-0.1, 0.3),
        t.empty(5, 4).t().uniform_(),
        t.empty(40)[::2].uniform_(0, 2),
    ],
    "bernoulli": lambda t: [
        t.bernoulli(t.full((40,), 0.3)),
        t.bernoulli(t.full((40,), 0.3, dtype=t.float64)),
        t.empty(40).bernoulli_(t.rand(40)),
    ],
    "bernoulli of one number": lambda t: [
        t.empty(40).bernoulli_(0.3),
        t.bernoulli(t.ones(5), 0.2),
        t.empty(5, 8).t().bernoulli_(0.5),
    ],
    "random_": lambda t: [
        x
        for kind in (t.int64, t.int32, t.int16, t.uint8, t.bool, t.float32, t.float64, t.bfloat16, t.float16)
        for x in (t.empty(5, dtype=kind).random_(), t.empty(5, dtype=kind).random_(0, 2))
    ],
    "random_ from a number on": lambda t: [
        *(t.empty(5, dtype=kind).random_(low, None) for kind in (t.int64, t.int32, t.int8) for low in (-5, 0, 5)),
        *(t.empty(5, dtype=kind).random_(-(2**63), None) for kind in (t.int64, t.float64, t.bfloat16)),
    ],
    "multinomial": lambda t: [t.multinomial(t.tensor([0.1, 0.2, 0.7]), 6, replacement=True)],
    "multinomial without replacement": lambda t: [
        t.multinomial(t.tensor([0.1, 0.2, 0.3, 0.4]), 3),
        t.multinomial(t.rand(3, 5), 1),
        t.multinomial(t.rand(3, 5), 2),
        t.tensor(list(t.utils.data.WeightedRandomSampler([0.1, 0.5, 0.4], 2, replacement=False))),
    ],
    "multinomial of one": lambda t: [
        *(t.multinomial(t.rand(3, 5).to(kind), 1, replacement=True) for kind in (t.float32, t.float64, t.bfloat16)),
        t.multinomial(t.rand(5), 1, replacement=True, generator=t.Generator().manual_seed(3)),
        t.distributions.Categorical(t.rand(4, 3)).sample(),
        t.tensor(list(t.utils.data.WeightedRandomSampler([0.1, 0.5, 0.4], 1))),
    ],
    "dropout of channels": lambda t: [
        t.nn.functional.dropout1d(t.ones(2, 40, 3), 0.3),
        t.nn.functional.dropout2d(t.ones(2, 40, 1, 2), 0.7),
        t.nn.functional.dropout3d(t.ones(2, 40, 1, 1, 2)),
        t.native_dropout(t.ones(40), 0.3, True)[1],
    ],
    "fractional pools": lambda t: (
        [
            t.nn.functional.fractional_max_pool2d(t.rand(2, 3, 20, 30).to(kind), 3, output_size=(7, 9))
            for kind in (t.float32, t.float64)
        ]
        + [t.nn.functional.fractional_max_pool3d(t.rand(3, 9, 20, 30), 2, output_size=(4, 7, 9))]
    ),
    "geometric_": lambda t: [t.empty(40).geometric_(0.3)],
    "layers": lambda t: [
        *t.nn.Linear(7, 9).parameters(),
        *t.nn.Conv2d(3, 8, 3).parameters(),
        *t.nn.LSTM(5, 6, 2).parameters(),
        *t.nn.ConvTranspose2d(3, 8, 3).parameters(),
        *t.nn.MultiheadAttention(8, 2).parameters(),
        *t.nn.Transformer(8, 2, 1, 1, 16).parameters(),
        *t.nn.Bilinear(2, 3, 4).parameters(),
    ],
    "initial values": lambda t: [
        t.nn.init.xavier_uniform_(t.empty(12, 15)),
        t.nn.init.kaiming_uniform_(t.empty(12, 15)),
    ],
    "loaders": lambda t: [
        *(b for _ in range(2) for b in t.utils.data.DataLoader(t.arange(20), batch_size=3, shuffle=True)),
        *t.utils.data.DataLoader(t.arange(20), batch_size=3, shuffle=True, generator=t.Generator().manual_seed(5)),
    ],
    "splits": lambda t: [t.tensor(list(part.indices)) for part in t.utils.data.random_split(range(20), [5, 15])],
    "samplers": lambda t: [
        t.tensor(list(sampler))
        for sampler in (
            t.utils.data.RandomSampler(range(7)),
            t.utils.data.RandomSampler(range(7), num_samples=17),
            t.utils.data.RandomSampler(range(7), replacement=True, num_samples=70),
            t.utils.data.SubsetRandomSampler([3, 5, 8, 1]),
            t.utils.data.WeightedRandomSampler([0.1, 0.5, 0.4], 9),
            t.utils.data.distributed.DistributedSampler(range(20), 3, 1, seed=4),
        )
    ],
}
# Through logarithms and trigonometric functions, which differ in the last bit.
CLOSE: dict[str, Callable[[Any], list[Any]]] = {
    "randn": lambda t: [
        t.randn(3),
        t.randn(2),
        t.randn(()),
        t.randn(15),
        t.randn(16),
        t.randn(21),
        t.randn(100_003),
        t.randn(4, 8, dtype=t.float64),
        t.randn(20, dtype=t.complex64),
        t.randn(3, dtype=t.complex128),
        t.randn(5, dtype=t.bfloat16),
        t.randn_like(t.ones(4, 5)),
        t.randn_like(t.ones(4, 5).t()),
        t.randn_like(t.ones(40)[::2]),
        t.randn_like(t.ones(40, dtype=t.complex128)[::2]),
        t.randn_like(t.ones(4, 5, dtype=t.complex64).t()),
    ],
    "normal_": lambda t: [
        t.empty(40).normal_(1, 2),
        t.empty(5, 4).t().normal_(),
        t.empty(41)[::2].normal_(),
        t.empty(5, 8)[:, ::2].normal_(),
        t.empty(2, 3).normal_(),
        t.empty(10, dtype=t.complex64).normal_(),
    ],
    "normal": lambda t: [
        t.normal(t.zeros(4), t.ones(4)),
        t.normal(t.zeros(20), 2.0),
        t.normal(0.0, 1.0, (5,)),
        t.normal(1.0, t.ones(30)),
    ],
    "dropout": lambda t: [
        t.nn.functional.dropout(t.ones(5), 0.3),
        t.nn.functional.dropout(t.ones(100, 7, dtype=t.float64), 0.1, inplace=True),
        t.nn.functional.dropout(t.ones(313, dtype=t.bfloat16)),
        t.nn.functional.dropout(t.ones(40), 1.0),
        t.dropout(t.ones(40), 0.25, True),
    ],
    "dropout of all and of none": lambda t: [
        t.nn.functional.alpha_dropout(t.ones(7), 1.0, True),
        t.nn.functional.dropout2d(t.ones(2, 3, 2, 2), 1.0),
        t.nn.functional.feature_alpha_dropout(t.ones(2, 3, 2), 1.0, True),
        t.native_dropout(t.ones(3), 0.0, True)[0],
        t.nn.functional.dropout(t.ones(40_000), 0.1),
        t.nn.functional.dropout(t.ones(5, 5, device="meta"), 0.3).new_zeros(1, device="cpu"),
    ],
    "alpha dropout of what lies otherwise": lambda t: [
        t.nn.functional.alpha_dropout(t.ones(3, 4, 5).permute(2, 0, 1), 0.3, True),
        t.native_dropout(t.ones(3, 4, 5).permute(2, 0, 1), 0.3, True)[0],
    ],
    "dropout of what lies otherwise": lambda t: [
        t.nn.functional.dropout(x, 0.3)
        for x in (t.ones(40, 7).t(), t.ones(40, 7)[:, ::2], t.ones(3, 1).expand(3, 5), t.ones(2, 3, 4).permute(1, 2, 0))
    ],
    "dropout of what selu gives": lambda t: [
        t.nn.functional.feature_alpha_dropout(t.ones(2, 40, 3), 0.3, True),
        t.nn.functional.alpha_dropout(t.ones(40), 0.3, True),
    ],
    "others": lambda t: [t.empty(40).cauchy_(1, 2), t.empty(40).log_normal_(0.5, 0.7)],
    "exponential": lambda t: [
        t.empty(40).exponential_(2.0),
        t.empty(4, 5).t().exponential_(),
        t.distributions.Exponential(2.0).sample((21,)),
        t.nn.functional.gumbel_softmax(t.zeros(3, 4)),
    ],
    "initial values": lambda t: [
        *t.nn.Embedding(10, 6).parameters(),
        t.nn.init.xavier_normal_(t.empty(12, 15)),
        t.nn.init.kaiming_normal_(t.empty(12, 15)),
        t.nn.init.orthogonal_(t.empty(12, 15)),
        t.nn.init.trunc_normal_(t.empty(12, 15)),
        t.nn.init.sparse_(t.empty(12, 15), 0.3),
    ],
    "attention with dropout": lambda t: [
        t.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.3, **more)
        for q, k, v, more in (
            (*t.randn(3, 2, 4, 33, 8), {}),
            (*t.randn(3, 2, 4, 33, 8), {"is_causal": True}),
            (t.randn(2, 4, 9, 8), *t.randn(2, 2, 2, 7, 8), {"enable_gqa": True}),
            (*t.randn(3, 5, 8), {"attn_mask": t.ones(5, 5, dtype=t.bool).tril()}),
            (*t.randn(3, 1, 2, 600, 8), {"is_causal": True}),
        )
    ],
    "layers with dropout": lambda t: [
        t.nn.Transformer(16, 4, 2, 2, 32, batch_first=True)(t.randn(2, 7, 16), t.randn(2, 5, 16)),
        t.nn.MultiheadAttention(16, 4, dropout=0.3)(*t.randn(3, 7, 2, 16))[1],
        t.nn.LSTM(5, 6, 3, dropout=0.4, batch_first=True, bidirectional=True)(t.randn(4, 7, 5))[0],
        t.nn.GRU(5, 6, 3, dropout=0.4)(t.nn.utils.rnn.pack_sequence([t.randn(6, 5), t.randn(4, 5)]))[0].data,
    ],
    "rrelu": lambda t: [t.nn.functional.rrelu(t.randn(20), training=True)],
    "normal numbers of 16 bits": lambda t: [
        x
        for kind in (t.bfloat16, t.float16)
        for x in (
            *(t.randn(n, dtype=kind) for n in (3, 16, 20, 100)),
            *(t.empty(n, dtype=kind).normal_(0.3, 2.5) for n in (5, 40)),
            t.empty(10, 10, dtype=kind).t().normal_(0.3, 2.5),
            t.normal(t.zeros(50, dtype=kind), t.full((50,), 1.7, dtype=kind)),
            t.normal(0.3, 1.7, (50,), dtype=kind),
            t.nn.Embedding(5, 16, dtype=kind).weight,
        )
    ],
    "gamma": lambda t: [
        t._standard_gamma(t.tensor([0.01, 0.3, 1.0, 2.5, 30.0, 1e5]).repeat(20)),
        t._standard_gamma(t.full((4, 5), 0.7, dtype=t.float64).t()),
        t.randn(3),
        t._standard_gamma(t.full((3,), 2.0)),
        t.randn(2),
    ],
    "poisson": lambda t: [
        t.poisson(t.tensor([0.0, 0.5, 3.0, 9.99, 10.0, 12.0, 100.0, 1e6, 1e9]).repeat(20)),
        t.poisson(t.full((20,), 30.0, dtype=t.float64)),
        t.poisson(t.rand(4, 5).t() * 20),
    ],
    "binomial": lambda t: [
        t.binomial(
            t.tensor([0.0, 1.0, 5.0, 20.0, 100.0, 1e4, 1e7]).repeat(9),
            t.tensor([0.01, 0.2, 0.5, 0.7, 0.99, 0.0, 1.0, 0.35, 0.6]).repeat_interleave(7),
        )
    ],
    "distributions drawn until a number is accepted": lambda t: [
        d.sample((21,))
        for d in (
            t.distributions.Gamma(t.tensor([0.5, 3.0]), t.tensor(2.0)),
            t.distributions.Beta(t.tensor([0.5, 3.0]), t.tensor([2.0, 0.4])),
            t.distributions.Dirichlet(t.tensor([0.5, 3.0, 1.0])),
            t.distributions.Chi2(t.tensor(3.0)),
            t.distributions.StudentT(t.tensor([3.0, 5.0])),
            t.distributions.FisherSnedecor(t.tensor(3.0), t.tensor(4.0)),
            t.distributions.Poisson(t.tensor([3.0, 40.0])),
            t.distributions.Binomial(10, t.tensor([0.3, 0.6])),
            t.distributions.NegativeBinomial(t.tensor(5.0), t.tensor(0.4)),
            t.distributions.InverseGamma(t.tensor(3.0), t.tensor(1.0)),
            t.distributions.VonMises(t.tensor([0.0, 1.0]), t.tensor([4.0, 1e-7])),
        )
    ],
    "distributions": lambda t: [
        d.sample((21,))
        for d in (
            t.distributions.Normal(0.0, 1.0),
            t.distributions.Uniform(0.0, 2.0),
            t.distributions.Bernoulli(t.tensor(0.3)),
            t.distributions.Categorical(t.tensor([0.2, 0.3, 0.5])),
            t.distributions.Laplace(0.0, 1.0),
            t.distributions.Gumbel(0.0, 1.0),
            t.distributions.Cauchy(0.0, 1.0),
            t.distributions.MultivariateNormal(t.zeros(2), t.eye(2)),
            t.distributions.Geometric(0.3),
            t.distributions.HalfNormal(1.0),
            t.distributions.LogNormal(0.0, 1.0),
            t.distributions.OneHotCategorical(t.tensor([0.2, 0.8])),
        )
    ],
}


# Where MKL makes them for PyTorch, as it does on some processors, it draws others from the same seed.
BY_MKL = {"bernoulli of one number", "multinomial without replacement", "multinomial of one", "exponential", "dropout", "dropout of channels",
          "dropout of what lies otherwise", "dropout of all and of none", "alpha dropout of what lies otherwise", "dropout of what selu gives", "attention with dropout", "layers with dropout"}  # fmt: skip


def draws_by_mkl() -> bool:
    """Whether PyTorch's numbers of one probability are not its own uniform ones below that."""
    torch.manual_seed(0)
    found = torch.empty(64).bernoulli_(0.3)
    torch.manual_seed(0)
    return not torch.equal(found, (torch.rand(64, dtype=torch.float64) < 0.3).float())


def need_own_numbers(name: str) -> None:
    if name in BY_MKL and draws_by_mkl():
        pytest.skip("PyTorch draws these by MKL on this processor")


def drawn(t: Any, case: Callable[[Any], list[Any]], seed: int) -> list[np.ndarray[Any, Any]]:
    """The tensors of a case, and a number after them, which tells whether as many were drawn."""
    t.manual_seed(seed)
    tensors = [x.detach() for x in (*case(t), t.rand(1))]
    return [x.numpy() if x.is_complex() else x.to(t.float64).numpy() for x in tensors]


@pytest.mark.parametrize("seed", [0, 42, 2**40 + 5])
@pytest.mark.parametrize("name", EXACT)
def test_numbers_are_those_of_pytorch(name: str, seed: int) -> None:
    need_own_numbers(name)
    for ours, theirs in zip(*(drawn(t, EXACT[name], seed) for t in (rushlight, torch)), strict=True):
        assert ours.shape == theirs.shape and np.array_equal(ours, theirs)


@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("name", CLOSE)
def test_numbers_are_those_of_pytorch_but_for_the_last_bits(name: str, seed: int) -> None:
    need_own_numbers(name)
    for ours, theirs in zip(*(drawn(t, CLOSE[name], seed) for t in (rushlight, torch)), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("seed", [9, 2**64 - 3])
def test_states_go_from_one_library_to_the_other(seed: int) -> None:
    pair = [t.Generator().manual_seed(seed) for t in (rushlight, torch)]
    for draws in range(3):
        states = [g.get_state().numpy() for g in pair]
        assert np.array_equal(*states), f"after {draws} draws"
        for g, t in zip(pair, (rushlight, torch), strict=True):
            t.rand(5, generator=g)
    for t, g in zip((rushlight, torch), pair, strict=True):
        t.randn(3, generator=g)  # one number waits
    swapped = rushlight.Generator(), torch.Generator()
    swapped[0].set_state(rushlight.from_numpy(pair[1].get_state().numpy()))
    swapped[1].set_state(torch.from_numpy(pair[0].get_state().numpy()))
    for count in (1, 2, 700, 3):
        numbers = [t.randn(count, generator=g).numpy() for t, g in zip((rushlight, torch), swapped, strict=True)]
        np.testing.assert_allclose(*numbers, rtol=2e-5, atol=2e-6)
    assert swapped[0].initial_seed() == swapped[1].initial_seed() == seed


def test_a_transformer_with_dropout_trains_as_in_pytorch() -> None:
    if draws_by_mkl():
        pytest.skip("PyTorch draws these by MKL on this processor")
    losses = []
    for t in (rushlight, torch):
        t.manual_seed(0)
        layers = t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(16, 2, 32, 0.2, batch_first=True), 2)
        model = t.nn.Sequential(t.nn.Embedding(11, 16), layers, t.nn.Dropout(0.1), t.nn.Linear(16, 11))
        optimizer, found = t.optim.AdamW(model.parameters(), lr=0.01), []
        for _ in range(10):
            tokens = t.randint(11, (4, 9))
            loss = t.nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(*losses, rtol=1e-3)


def test_a_model_trains_as_in_pytorch() -> None:
    """From the seed alone: initial weights, order of samples, noise in the data."""
    losses = []
    for t in (rushlight, torch):
        t.manual_seed(0)
        model = t.nn.Sequential(t.nn.Linear(8, 32), t.nn.Tanh(), t.nn.Linear(32, 1))
        x = t.randn(64, 8)
        data = t.utils.data.TensorDataset(x, x.sum(1, keepdim=True) + 0.1 * t.randn(64, 1))
        optimizer, found = t.optim.SGD(model.parameters(), lr=0.05), []
        for _ in range(5):
            for inputs, targets in t.utils.data.DataLoader(data, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = t.nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(*losses, rtol=2e-5)


class Draws:
    """A dataset whose samples tell what a worker draws, by three generators."""

    def __init__(self, t: Any):
        self.t = t

    def __len__(self) -> int:
        return 5

    def __getitem__(self, i: int) -> tuple[int, ...]:
        info = self.t.utils.data.get_worker_info()
        return i, info.seed, int(self.t.randint(1000, ())), random.randrange(1000), int(np.random.randint(1000))


def workers_draw(t: Any, persistent: bool, own: bool) -> list[Any]:
    """What workers draw in three passes, and this process after each."""
    t.manual_seed(5)
    loader = t.utils.data.DataLoader(Draws(t), batch_size=None, shuffle=True, num_workers=2, persistent_workers=persistent,
                                     generator=t.Generator().manual_seed(3) if own else None, collate_fn=tuple,
                                     multiprocessing_context="fork")  # fmt: skip
    found: list[Any] = []
    for _ in range(3):
        found += [*loader, int(t.randint(1000, ()))]
    return found


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_draw_the_same_numbers_in_each_pass(persistent: bool, own: bool) -> None:
    assert workers_draw(rushlight, persistent, own) == workers_draw(torch, persistent, own)
