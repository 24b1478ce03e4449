"""Structural similarity as a loss."""

import same
from pytorch_msssim import MS_SSIM, SSIM, ssim

a, b = same.data(2, 3, 176, 176).sigmoid().requires_grad_(), same.data(2, 3, 176, 176, seed=1).sigmoid()
x = 0.7 * a + 0.3 * b
found = [ssim(x, b, data_range=1.0).item(), SSIM(data_range=1.0, win_size=7)(x, b).item()]
loss = 1 - MS_SSIM(data_range=1.0)(x, b)
loss.backward()
same.report([*found, loss.item(), a.grad.abs().sum().item()])
