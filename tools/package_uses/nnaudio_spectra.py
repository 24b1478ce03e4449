"""Spectrograms with trained kernels: STFT, mel, MFCC, CQT and their inverses"""

import same
from nnAudio import features

x = same.data(2, 8000)
numbers = []
for layer in (features.STFT(n_fft=256, hop_length=64, trainable=True, verbose=False), features.MelSpectrogram(sr=8000, n_fft=256, n_mels=20, hop_length=64, trainable_mel=True, trainable_STFT=True, verbose=False),
              features.MFCC(sr=8000, n_mfcc=8, n_fft=256, n_mels=20, hop_length=64, verbose=False), features.CQT1992v2(sr=8000, fmin=220, n_bins=24, verbose=False, trainable=True), features.CQT2010v2(sr=8000, fmin=220, n_bins=24, verbose=False),
              features.Gammatonegram(sr=8000, n_fft=256, n_bins=16, hop_length=64, verbose=False)):  # fmt: skip
    given = x.clone().requires_grad_()
    out = layer(given)
    out.square().mean().backward()
    numbers += [
        out.abs().sum().item(),
        given.grad.abs().sum().item(),
        *(p.grad.abs().sum().item() for p in layer.parameters() if p.grad is not None),
    ]
stft = features.STFT(n_fft=256, hop_length=64, iSTFT=True, output_format="Complex", verbose=False)
numbers.append((stft.inverse(stft(x), length=8000) - x).abs().max().item())
same.report(numbers)
