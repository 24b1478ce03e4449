"""Fourier transforms at places that lie on no grid, back again, with gradients, and density compensation"""

import same
import torch
import torchkbnufft

x = torch.view_as_complex(same.data(1, 1, 16, 16, 2)).requires_grad_()
places = same.data(2, 40).clamp(-3, 3)
there, back = torchkbnufft.KbNufft(im_size=(16, 16)), torchkbnufft.KbNufftAdjoint(im_size=(16, 16))
y = there(x, places)
z = back(y, places)
z.abs().square().sum().backward()
weight = torchkbnufft.calc_density_compensation_function(places, (16, 16))
kernel = torchkbnufft.calc_toeplitz_kernel(places, (16, 16))
again = torchkbnufft.ToepNufft()(x.detach(), kernel)
same.report([v.abs().sum().item() for v in (y, z, x.grad, weight, again)])
