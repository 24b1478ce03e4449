"""Vandermonde matrices."""

import numpy as np
import pytest

import rushlight as torch


@pytest.mark.parametrize("n", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("values", [[1, 2, 3], [0.5, -1.5, 0.0], [1j, 2 + 1j], []])
def test_powers_are_those_of_numpy(n: int | None, increasing: bool, values: list[complex]) -> None:
    x = torch.tensor(values)
    wanted = np.vander(x.numpy(), n, increasing)
    made = torch.vander(x, n, increasing)
    assert made.dtype is x.dtype
    np.testing.assert_allclose(made.numpy(), wanted)


def test_gradients_of_powers() -> None:
    x = torch.tensor([0.5, -2.0, 0.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.vander(x, 4), (x,))
    assert torch.vander(torch.tensor([True, False])).tolist() == [[1, 1], [0, 1]]


def test_what_is_no_vector_is_refused() -> None:
    with pytest.raises(RuntimeError, match="one-dimensional"):
        torch.vander(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.vander(torch.ones(2), -1)
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        torch.vander([1, 2])
