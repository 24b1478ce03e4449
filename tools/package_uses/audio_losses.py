"""Losses of sound in time and in spectra, and filters and resampling of waves, with gradients"""

import auraloss
import julius
import same
import torch

torch.set_default_dtype(torch.float64)
wave, target = (same.data(2, 1, 4096, seed=s).double() * 0.3 for s in range(2))
wave.requires_grad_()
stereo = same.data(2, 2, 4096, seed=3).double().requires_grad_()
numbers = []


def told(value: torch.Tensor, leaf: torch.Tensor = wave) -> None:
    gradient = torch.autograd.grad(value.sum(), leaf)[0]
    numbers.extend([value.sum().item(), gradient.abs().sum().item(), gradient.sum().item()])


for loss in (
    auraloss.time.ESRLoss(), auraloss.time.DCLoss(), auraloss.time.LogCoshLoss(), auraloss.time.SNRLoss(), auraloss.time.SISDRLoss(),
    auraloss.time.SDSDRLoss(), auraloss.freq.STFTLoss(w_log_mag=1.0, w_lin_mag=1.0), auraloss.freq.MultiResolutionSTFTLoss(
        fft_sizes=[256, 512], hop_sizes=[64, 128], win_lengths=[256, 512]),
):  # fmt: skip
    told(loss(wave, target))
for name in ("fd", "hp", "folded"):
    told(
        torch.nn.functional.mse_loss(
            *auraloss.perceptual.FIRFilter(filter_type=name if name != "folded" else "aw", fs=44100).double()(
                wave, target
            )
        )
    )
told(
    auraloss.freq.SumAndDifferenceSTFTLoss(fft_sizes=[256], hop_sizes=[64], win_lengths=[256])(
        stereo, same.data(2, 2, 4096, seed=4).double()
    ),
    stereo,
)
told(julius.resample_frac(wave, 3, 2).square())
told(julius.resample_frac(wave, 8, 5, zeros=8).square())
told(julius.lowpass_filter(wave, 0.1).square())
told(julius.highpass_filter(wave, 0.1, fft=True).square())
told(torch.stack([band.square().mean() for band in julius.split_bands(wave, 8000, n_bands=4)]))
told(julius.fft_conv1d(wave, same.data(3, 1, 64, seed=5).double(), stride=2).square())
filters = same.data(3, 1, 200, seed=6).double().requires_grad_()
told(julius.FFTConv1d(1, 3, 200).to(wave.dtype)(wave).square() * 0 + julius.fft_conv1d(wave, filters).square(), filters)
same.report(numbers)
