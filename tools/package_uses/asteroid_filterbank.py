"""Learned filterbanks of sounds, there and back"""

import same
import torch
from asteroid_filterbanks import STFTFB, Encoder, make_enc_dec, transforms
from asteroid_filterbanks.transforms import mag

x = same.data(2, 1, 800)
numbers = []
torch.manual_seed(0)
for kind in ("free", "analytic_free", "param_sinc"):
    encoder, decoder = make_enc_dec(kind, n_filters=32, kernel_size=16, stride=8)
    both = torch.nn.ModuleList([encoder, decoder])
    out = decoder(encoder(x))
    out.square().mean().backward()
    numbers += [out.abs().sum().item(), *(p.grad.abs().sum().item() for p in both.parameters() if p.grad is not None)]
spectrum = Encoder(STFTFB(n_filters=32, kernel_size=32, stride=8))(x)
numbers += [mag(spectrum).sum().item(), abs(transforms.to_numpy(spectrum)).sum()]
same.report(numbers)
