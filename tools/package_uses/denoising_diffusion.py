"""A small diffusion model: losses at given times with given noise, gradients and steps of DDIM"""

import same
import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet

net = Unet(dim=8, dim_mults=(1, 2), channels=3, flash_attn=False, attn_heads=2, attn_dim_head=8)
diffusion = GaussianDiffusion(net, image_size=16, timesteps=20, sampling_timesteps=4)
same.weights(diffusion)
x, noise, t = torch.sigmoid(same.data(2, 3, 16, 16)), same.data(2, 3, 16, 16, seed=1), torch.tensor([3, 15])
numbers = same.train(diffusion, lambda m: m.p_losses(m.normalize(x), t, noise=noise), 3, 0.01)
numbers += [p.grad.abs().sum().item() for p in diffusion.parameters() if p.grad is not None]
with torch.no_grad():
    mean, _, log_variance, start = diffusion.p_mean_variance(x, torch.tensor([5, 5]))
    numbers += [mean.sum().item(), log_variance.sum().item(), start.abs().sum().item()]
torch.manual_seed(0)
numbers.append(diffusion.sample(batch_size=1).sum().item())
same.report(numbers)
