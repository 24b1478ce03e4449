"""When samplers draw their numbers."""

import pytest

import rushlight as torch
from rushlight.utils import data


@pytest.mark.parametrize("replacement", [True, False])
def test_a_weighted_sampler_draws_everything_when_the_first_index_is_asked_for(replacement):
    generator = torch.Generator().manual_seed(0)
    start = generator.get_state()
    indices = iter(data.WeightedRandomSampler([1.0, 2.0, 3.0, 4.0], 4, replacement, generator))
    assert torch.equal(generator.get_state(), start)
    next(indices)
    drawn = generator.get_state()
    assert not torch.equal(drawn, start)
    list(indices)
    assert torch.equal(generator.get_state(), drawn)


def test_the_iterator_asked_first_draws_first():
    def first_of(make):
        sampler = data.WeightedRandomSampler([1.0] * 1000, 20, generator=torch.Generator().manual_seed(0))
        return make(sampler)

    def other_way(sampler):
        one, other = iter(sampler), iter(sampler)
        next_of_other = [next(other)]
        return next_of_other + list(other), list(one)

    expected = first_of(lambda sampler: (list(sampler), list(sampler)))
    assert first_of(other_way) == expected
