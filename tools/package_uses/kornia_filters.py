"""Filters, geometry and a loss, differentiated."""

import kornia
import same
import torch

x = same.data(2, 3, 16, 16).requires_grad_()
blurred = kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5))
edges = kornia.filters.sobel(blurred)
turned = kornia.geometry.transform.rotate(edges, torch.tensor([30.0, 60.0]))
gray = kornia.color.rgb_to_grayscale(turned)
loss = kornia.losses.ssim_loss(gray, gray.flip(-1), 5)
loss.backward()
warped = kornia.geometry.transform.warp_perspective(x, torch.eye(3)[None].repeat(2, 1, 1) + 0.01, (16, 16))
same.report([loss.item(), x.grad.abs().sum().item(), warped.abs().mean().item()])
