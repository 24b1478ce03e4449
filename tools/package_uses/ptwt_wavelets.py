"""Wavelet transforms in one and two dimensions, by sparse matrices and continuous ones, with gradients"""

import ptwt
import pywt
import same
import torch

x, wavelet = same.data(2, 64).requires_grad_(), pywt.Wavelet("db4")
parts = ptwt.wavedec(x, wavelet, level=3, mode="zero")
sum(part.square().sum() for part in parts).backward()
whole = ptwt.waverec(parts, wavelet)
flat = [t for level in ptwt.wavedec2(same.data(1, 32, 32), "haar", level=2)[1:] for t in level]
rows = ptwt.MatrixWavedec(pywt.Wavelet("db2"), level=2)(same.data(1, 32))
packet = ptwt.WaveletPacket(same.data(1, 32), pywt.Wavelet("db2"), maxlevel=2)
scales = ptwt.cwt(same.data(1, 64), torch.arange(1, 8), "mexh")[0]
shown = [*parts, whole, x.grad, *flat, *rows, *(packet[k] for k in packet.get_level(2)), torch.as_tensor(scales)]
same.report([t.abs().sum().item() for t in shown])
