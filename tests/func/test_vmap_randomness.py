"""Random numbers inside vmap that are the same for every sample, whatever draws them and in whatever chunks."""

import pytest

import rushlight as torch
from rushlight import func
from rushlight.nn import functional as F

DRAWS = {
    "randn": lambda g: torch.randn(3, generator=g),
    "randint": lambda g: torch.randint(1000, (3,), generator=g),
    "randperm": lambda g: torch.randperm(50, generator=g),
    "uniform_": lambda g: torch.empty(3).uniform_(generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((64,), 0.5), generator=g),
    "bernoulli of a number": lambda g: torch.bernoulli(torch.zeros(64), 0.5, generator=g),
    "bernoulli_": lambda g: torch.empty(64).bernoulli_(torch.full((64,), 0.5), generator=g),
    "bernoulli_ of a number": lambda g: torch.empty(64).bernoulli_(0.5, generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(64), 32, generator=g),
    "normal": lambda g: torch.normal(torch.zeros(3), 1.0, generator=g),
}


def seeded():
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
@pytest.mark.parametrize("own", [True, False])
def test_every_sample_gets_what_one_call_outside_draws(name, chunk_size, own):
    torch.manual_seed(3)
    expected = DRAWS[name](seeded() if own else None)
    torch.manual_seed(3)
    generator = seeded() if own else None
    found = func.vmap(lambda x: DRAWS[name](generator) + 0 * x, randomness="same", chunk_size=chunk_size)(
        torch.zeros(5, 1)
    )
    assert all(torch.equal(row, expected + 0.0) for row in found)


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_a_tensor_of_all_samples_is_filled_as_one_outside(chunk_size):
    chances = torch.full((64,), 0.5)
    expected = torch.zeros(64).bernoulli_(chances, generator=seeded())
    generator = seeded()
    found = func.vmap(lambda x: x.bernoulli_(chances, generator=generator), randomness="same", chunk_size=chunk_size)(
        torch.zeros(5, 64)
    )
    assert all(torch.equal(row, expected) for row in found)


def test_dropout_too():
    found = func.vmap(lambda x: F.dropout(torch.ones(64)) + x, randomness="same", chunk_size=2)(torch.zeros(5))
    assert (found == found[0]).all() and 0 < (found == 0).sum() < found.numel()


def test_afterwards_the_generator_is_where_one_call_leaves_it():
    def after(chunk_size):
        torch.manual_seed(0)
        func.vmap(lambda x: x + torch.randn(2), randomness="same", chunk_size=chunk_size)(torch.zeros(5, 2))
        return torch.randn(1)

    assert after(None) == after(2) == after(1)


def test_chunks_inside_chunks():
    def nested(inner, outer):
        each = func.vmap(lambda x: x + torch.randn(8), randomness=inner, chunk_size=1)
        return func.vmap(each, randomness=outer, chunk_size=1)(torch.zeros(3, 2, 8))

    both = nested("same", "same")
    assert (both == both[0, 0]).all()
    outer = nested("different", "same")
    assert (outer == outer[0]).all() and not (outer[0, 0] == outer[0, 1]).any()
    inner = nested("same", "different")
    assert (inner[:, 0] == inner[:, 1]).all() and not (inner[0] == inner[1]).any()


def test_different_ones_differ_between_chunks():
    found = func.vmap(lambda x: x + torch.randn(8), randomness="different", chunk_size=2)(torch.zeros(5, 8))
    assert found.unique().numel() == 40
