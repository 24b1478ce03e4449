"""Tensors of one number, and NumPy's numbers, in the place of Python's."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F

VECTOR, SQUARE = torch.arange(6.0), torch.arange(9.0).reshape(3, 3)

SAME = {
    "chunk": lambda n: torch.cat([x[:1] for x in torch.chunk(VECTOR, n(2))]),
    "fft2": lambda n: torch.fft.fft2(SQUARE, dim=n(0)).real,
    "fftn": lambda n: torch.fft.fftn(SQUARE, dim=n(-1)).real,
    "fftn of a size": lambda n: torch.fft.fftn(SQUARE, s=n(2)).real,
    "irfftn": lambda n: torch.fft.irfftn(SQUARE, s=n(4)),
    "fftshift": lambda n: torch.fft.fftshift(SQUARE, n(1)),
    "ifftshift": lambda n: torch.fft.ifftshift(SQUARE, n(1)),
    "histc": lambda n: torch.histc(VECTOR, n(3)),
    "cosine_similarity": lambda n: F.cosine_similarity(SQUARE[0], SQUARE[1], dim=0, eps=n(0.5)),
    "pairwise_distance": lambda n: F.pairwise_distance(SQUARE[0], SQUARE[1], eps=n(0.5)),
    "embedding": lambda n: F.embedding(torch.tensor([0, 2]), SQUARE.clone(), padding_idx=n(1), max_norm=n(1.5)),
    "embedding_bag": lambda n: F.embedding_bag(
        torch.tensor([[0, 2]]), SQUARE.clone(), max_norm=n(1.5), padding_idx=n(2)
    ),
    "normal": lambda n: torch.normal(n(1.5), n(0.5), (2, 3), generator=torch.Generator().manual_seed(1)),
    "normal of one": lambda n: torch.normal(0.0, n(0.5), (4,), generator=torch.Generator().manual_seed(1)),
}


def double(x):
    return torch.tensor(x, dtype=torch.float64 if isinstance(x, float) else torch.int32)


@pytest.mark.parametrize("kind", [torch.tensor, double, lambda x: np.asarray(x)[()]])
@pytest.mark.parametrize("name", SAME)
def test_a_tensor_or_a_number_of_numpy_is_the_number(name, kind):
    want, found = SAME[name](lambda x: x), SAME[name](kind)
    assert found.dtype == want.dtype and torch.equal(found, want)


def test_dropout_takes_a_tensor_as_its_probability():
    images = torch.ones(4, 8, 2)
    torch.manual_seed(0)
    want = F.feature_alpha_dropout(images, 0.5, True)
    torch.manual_seed(0)
    assert torch.equal(F.feature_alpha_dropout(images, torch.tensor(0.5), True), want)


def test_an_int_of_numpy_is_a_number_of_bins():
    assert torch.histogram(VECTOR, np.int64(3)).hist.tolist() == [2, 2, 2]


def test_normal_of_several_means_takes_no_size():
    with pytest.raises(TypeError, match="'mean' must be float"):
        torch.normal(VECTOR, 1.0, (2, 3))
