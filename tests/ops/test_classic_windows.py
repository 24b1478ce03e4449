"""The windows at the top of torch, against their formulas."""

import math

import numpy as np
import pytest

import rushlight as torch

FORMULAS = {
    "hann_window": lambda n, N: math.sin(math.pi * n / N) ** 2,
    "hamming_window": lambda n, N: 0.54 - 0.46 * math.cos(2 * math.pi * n / N),
    "blackman_window": lambda n, N: 0.42 - 0.5 * math.cos(2 * math.pi * n / N) + 0.08 * math.cos(4 * math.pi * n / N),
    "bartlett_window": lambda n, N: 1 - abs(2 * n / N - 1),
    "kaiser_window": lambda n, N: float(np.i0(12 * math.sqrt(1 - (2 * n / N - 1) ** 2)) / np.i0(12.0)),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("periodic", [True, False])
def test_values_are_those_of_the_formula(name: str, dtype: torch.dtype, periodic: bool) -> None:
    for length in (2, 7, 8):
        window = getattr(torch, name)(length, periodic, dtype=dtype)
        wanted = [FORMULAS[name](n, length if periodic else length - 1) for n in range(length)]
        assert window.dtype is dtype and window.shape == (length,)
        np.testing.assert_allclose(window.double().numpy(), wanted, atol=4 * torch.finfo(dtype).eps, rtol=0)
    assert getattr(torch, name)(0, periodic).shape == (0,) and getattr(torch, name)(1, periodic).tolist() == [1.0]


def test_parameters_of_the_windows() -> None:
    assert torch.hamming_window(3, False, 0.5, 0.2).tolist() == pytest.approx([0.3, 0.7, 0.3])
    assert torch.kaiser_window(4, beta=0.0).tolist() == [1.0] * 4
    assert torch.equal(torch.kaiser_window(5, True, -5.0), torch.kaiser_window(5, True, 5.0))
    assert torch.hann_window(3, requires_grad=True, device="cpu", pin_memory=False).requires_grad
    assert torch.hann_window(torch.tensor(3)).shape == (3,) and torch.hann_window(window_length=np.int64(2)).shape == (
        2,
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_what_is_no_window_is_refused(name: str) -> None:
    window = getattr(torch, name)
    with pytest.raises(RuntimeError, match=f"{name} requires non-negative window_length, got window_length=-1"):
        window(-1)
    with pytest.raises(RuntimeError, match="expects floating point dtypes"):
        window(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="strided"):
        window(3, layout=torch.sparse_coo)
    for wrong in (3.5, True, "3"):
        with pytest.raises(TypeError, match="'window_length'"):
            window(wrong)
    with pytest.raises(TypeError, match="'periodic'"):
        window(3, 5.0)
