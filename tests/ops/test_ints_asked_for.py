"""Where a function asks for an int, a number with a point is refused by the argument's name, and never cut to an int."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F

IMAGE = torch.arange(16.0).reshape(1, 4, 4)
SIGNAL = torch.arange(40.0)
SPECTRUM = torch.ones(5, 9, dtype=torch.complex64)

REFUSED = {
    "fft n": ("'n' must be int", lambda: torch.fft.fft(SIGNAL, n=1.5)),
    "fft dim": ("'dim' must be int", lambda: torch.fft.fft(SIGNAL, dim=-1.0)),
    "irfft n": ("'n' must be int", lambda: torch.fft.irfft(SIGNAL, 2.5)),
    "fftn s": ("'s' must be int", lambda: torch.fft.fftn(IMAGE, s=(1.5, 2))),
    "fftfreq n": ("'n' must be int", lambda: torch.fft.fftfreq(4.5)),
    "stft hop_length": ("'hop_length' must be int", lambda: torch.stft(SIGNAL, 8, 2.5, return_complex=True)),
    "istft hop_length": ("'hop_length' must be int", lambda: torch.istft(SPECTRUM, 8, 2.5, window=torch.ones(8))),
    "window M": ("'M' must be int", lambda: torch.signal.windows.cosine(4.5)),
    "linalg.vander": ("'N' must be int", lambda: torch.linalg.vander(SIGNAL, N=4.0)),
    "vander": ("'N' must be int", lambda: torch.vander(SIGNAL, 3.5)),
    "tril": ("'diagonal'.* must be int", lambda: torch.tril(IMAGE, 1.5)),
    "triu_": ("'diagonal' must be int", lambda: IMAGE.clone().triu_(1.5)),
    "diagonal": ("'offset' must be int", lambda: torch.linalg.diagonal(IMAGE, offset=1.0)),
    "tril_indices row": ("'row' must be int", lambda: torch.tril_indices(3.0, 3)),
    "triu_indices offset": ("'offset' must be int", lambda: torch.triu_indices(3, 3, 1.5)),
    "rot90": ("'k' must be int", lambda: torch.rot90(IMAGE, 1.5)),
    "as_strided": ("'storage_offset' must be int", lambda: torch.as_strided(IMAGE, (2,), (1,), 1.5)),
    "empty_strided": ("'stride' must be tuple of ints", lambda: torch.empty_strided((2, 2), (2.5, 1))),
    "empty_permuted": ("'physical_layout' must be tuple of ints", lambda: torch.empty_permuted((2, 2), (0.5, 1))),
    "broadcast_shapes": ("must be tuple of ints", lambda: torch.broadcast_shapes((2.5,), (1,))),
    "select_scatter": ("'index' must be int", lambda: torch.select_scatter(SIGNAL, torch.ones(()), 0, 1.5)),
    "repeat_interleave": ("must be int", lambda: torch.repeat_interleave(torch.ones(2), 2, output_size=4.0)),
    "random_": ("'to' must be int", lambda: torch.ones(2).random_(0, 2.5)),
    "cov": ("'correction' must be int", lambda: torch.cov(SIGNAL, correction=0.5)),
    "pad": ("'pad' must be tuple of ints", lambda: F.pad(IMAGE, (1.5, 1))),
    "pad circular": ("'pad' must be tuple of ints", lambda: F.pad(IMAGE, (1.0, 1), mode="circular")),
    "pad of an array": ("'pad' must be tuple of ints", lambda: F.pad(IMAGE, np.array([1, 1]))),
    "conv1d": ("'stride' must be tuple of ints", lambda: F.conv1d(IMAGE, torch.ones(1, 4, 2), stride=(1.5,))),
    "max_pool2d": ("'kernel_size' must be tuple of ints", lambda: F.max_pool2d(IMAGE, (2, 1.5))),
    "avg_pool2d stride": ("'stride' must be tuple of ints", lambda: F.avg_pool2d(IMAGE, 2, stride=(1, 1.5))),
    "avg_pool2d divisor": ("'divisor_override' must be int", lambda: F.avg_pool2d(IMAGE, 2, divisor_override=1.5)),
    "adaptive_avg_pool2d": ("'output_size' must be tuple of ints", lambda: F.adaptive_avg_pool2d(IMAGE, (2, 1.5))),
    "unfold": ("'padding' must be tuple of ints", lambda: F.unfold(IMAGE, 2, padding=(1, 1.5))),
    "fold": ("'output_size' must be tuple of ints", lambda: F.fold(torch.ones(1, 4, 9), (4.0, 4.0), 2)),
    "embedding": (
        "'padding_idx' must be int",
        lambda: F.embedding(torch.tensor([0]), torch.ones(3, 2), padding_idx=1.5),
    ),
    "nll_loss": ("must be int", lambda: F.nll_loss(torch.ones(2, 2), torch.tensor([0, 1]), ignore_index=1.5)),
    "ctc_loss": ("'blank' must be int", lambda: F.ctc_loss(torch.zeros(3, 1, 4), torch.tensor([[1]]), (3,), (1,), 1.5)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_with_a_point_is_refused(name):
    words, call = REFUSED[name]
    with pytest.raises(TypeError, match=words):
        call()


def test_what_stands_for_an_int_is_taken():
    n, t = np.int64(2), torch.tensor(2)
    assert torch.fft.fft(SIGNAL, n=n).shape == torch.fft.fft(SIGNAL, n=t).shape == (2,)
    assert torch.equal(torch.fft.fftfreq(t), torch.fft.fftfreq(2)) and torch.fft.rfftfreq(t).shape == (2,)
    assert torch.equal(torch.tril(IMAGE, n), torch.tril(IMAGE, t))
    assert F.pad(IMAGE, (n, t)).shape == (1, 4, 8)
    assert F.max_pool2d(IMAGE, n).shape == F.adaptive_avg_pool2d(IMAGE, (t, None))[:, :, ::2].shape == (1, 2, 2)
    assert torch.equal(torch.tril_indices(n, t, n), torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]))


def test_padding_with_none_is_refused_and_not_nan():
    with pytest.raises(TypeError, match="'value'"):
        torch.constant_pad_nd(IMAGE, (1, 1), None)
    assert F.pad(IMAGE, (1, 1), value=None)[0, 0, 0] == 0


def test_threads_are_counted_by_ints_of_numpy_and_not_by_truth():
    before = torch.get_num_threads()
    torch.set_num_threads(np.int64(before))
    assert torch.get_num_threads() == before and type(torch.get_num_threads()) is int
    with pytest.raises(RuntimeError, match="expects an int, but got bool"):
        torch.set_num_threads(True)
