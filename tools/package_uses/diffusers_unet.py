"""Noise prediction with a small UNet, saved and loaded, and a few steps of DDIM."""

import tempfile

import same
import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

model = same.weights(
    UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
)
noise, images, times = same.data(4, 1, 8, 8, seed=1), same.data(4, 1, 8, 8), torch.tensor([1, 10, 100, 900])
noisy = DDPMScheduler(num_train_timesteps=1000).add_noise(images, noise, times)
losses = same.train(model, lambda m: torch.nn.functional.mse_loss(m(noisy, times).sample, noise), lr=0.01)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    model = UNet2DModel.from_pretrained(folder).eval()
scheduler = DDIMScheduler(num_train_timesteps=1000)
scheduler.set_timesteps(3)
x = noise
with torch.no_grad():
    for t in scheduler.timesteps:
        x = scheduler.step(model(x, t).sample, t, x).prev_sample
same.report([*losses, x.abs().mean().item()])
