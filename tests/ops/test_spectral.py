"""Short-time Fourier transforms and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

WINDOWS = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser", "nuttall"]


def signal(n: int = 40, batch: int = 2) -> Any:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((batch, n)))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_the_inverse_gives_the_signal(center: bool, normalized: bool, onesided: bool) -> None:
    x, window = signal(), torch.signal.windows.hamming(8, sym=False, dtype=torch.float64)
    settings: Any = {"n_fft": 8, "hop_length": 2, "window": window, "center": center, "normalized": normalized,
                     "onesided": onesided}  # fmt: skip
    found = torch.stft(x, return_complex=True, **settings)
    assert found.shape[1] == (5 if onesided else 8)
    np.testing.assert_allclose(torch.istft(found, length=40, **settings).numpy(), x.numpy(), atol=1e-12)


def test_one_frame_is_a_transform() -> None:
    x = signal(8, 1)[0]
    found = torch.stft(x, 8, center=False, return_complex=True, window=torch.ones(8, dtype=torch.float64))
    np.testing.assert_allclose(found.numpy()[:, 0], np.fft.rfft(x.numpy()))
    parts = torch.stft(x, 8, center=False, return_complex=False, window=torch.ones(8, dtype=torch.float64))
    assert parts.shape == (5, 1, 2)


def test_short_windows() -> None:
    x, window = signal(), torch.rand(4, dtype=torch.float64) + 0.1
    inside = torch.stft(x, 8, 1, 4, window, center=False, return_complex=True, align_to_window=True)
    assert inside.shape == (2, 5, 37)
    np.testing.assert_allclose(inside.numpy()[:, :, 2:-2], torch.stft(x, 8, 1, 4, window, center=False,
                                                                     return_complex=True).numpy())  # fmt: skip


def test_derivatives() -> None:
    x, window = signal(12, 1).requires_grad_(), torch.rand(4, dtype=torch.float64).add(0.5).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, w: torch.stft(a, 4, 2, window=w, return_complex=True), (x, window),
                                    check_forward_ad=True, fast_mode=True)  # fmt: skip
    z = torch.stft(x, 4, 2, window=window.detach(), return_complex=True).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda a, w: torch.istft(a, 4, 2, window=w), (z, window), check_forward_ad=True,
                                    fast_mode=True)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: torch.stft(x, 8), "requires the return_complex parameter"),
        (lambda x: torch.stft(x, 0, return_complex=True), "n_fft=0"),
        (lambda x: torch.stft(x, 8, hop_length=0, return_complex=True), "expected hop_length > 0"),
        (lambda x: torch.stft(x, 8, win_length=9, return_complex=True), "win_length <= n_fft"),
        (
            lambda x: torch.stft(x, 8, window=torch.ones(9), return_complex=True),
            "window tensor of size equal to win_length=8",
        ),
        (lambda x: torch.stft(x.long(), 8, return_complex=True), "floating point or complex"),
        (lambda x: torch.stft(x + 0j, 8, onesided=True, window=torch.ones(8)), "Cannot have onesided output"),
        (lambda x: torch.istft(x, 8), "requires a complex-valued input"),
        (lambda x: torch.istft(torch.ones(4, 3) + 0j, 8), "frequency dimension"),
        (lambda x: torch.istft(torch.ones(5, 3) + 0j, 8, window=torch.zeros(8)), "window overlap add min"),
    ],
)
def test_what_is_refused(call: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call(signal())


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    make = getattr(torch.signal.windows, name)
    for n in (0, 1, 2, 7, 8):
        whole = make(n, dtype=torch.float64)
        assert whole.shape == (n,)
        np.testing.assert_allclose(whole.numpy(), whole.numpy()[::-1], atol=1e-12)
        if n > 1 and name != "cosine":  # a period is the symmetric window one longer, without its end
            np.testing.assert_allclose(make(n, sym=False, dtype=torch.float64).numpy(), make(n + 1, dtype=torch.float64).numpy()[:-1],
                                       atol=1e-12)  # fmt: skip
    assert make(4, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="non-negative window length"):
        make(-1)
    with pytest.raises(ValueError, match="float32 or float64"):
        make(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="strided tensors only"):
        make(3, layout=torch.sparse_coo)


def test_arguments_of_windows() -> None:
    w = torch.signal.windows
    for call, error, words in (
        (lambda: w.gaussian(3, std=-1), ValueError, "Standard deviation"),
        (lambda: w.exponential(3, tau=-1), ValueError, "Tau must be positive"),
        (lambda: w.exponential(3, center=1), ValueError, "Center must be None"),
        (lambda: w.kaiser(3, beta=-1), ValueError, "beta must be non-negative"),
        (lambda: w.general_cosine(3, a=[]), ValueError, "cannot be empty"),
        (lambda: w.general_cosine(3, a=3), TypeError, "list/tuple"),
    ):
        with pytest.raises(error, match=words):
            call()
