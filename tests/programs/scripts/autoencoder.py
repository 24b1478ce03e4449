"""A denoising autoencoder with transposed convolutions, unpooling and skips; its gradients and memory are looked at by the way."""

import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

log = logging.getLogger("autoencoder")


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, groups=1)
        self.norm = nn.InstanceNorm2d(outputs, affine=True)

    def forward(self, x):
        return F.max_pool2d(F.leaky_relu(self.norm(self.conv(x)), 0.1), 2, return_indices=True)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = Down(1, 6), Down(6, 10)
        self.middle = nn.Sequential(nn.Conv2d(10, 10, 3, padding=2, dilation=2), nn.ELU(), nn.Dropout2d(0.0))
        self.unpool = nn.MaxUnpool2d(2)
        self.up1 = nn.ConvTranspose2d(20, 6, 3, stride=2, padding=1, output_padding=1)
        self.up2 = nn.ConvTranspose2d(6, 4, kernel_size=2, stride=2)
        self.out = nn.Conv2d(5, 1, 1)

    def forward(self, x):
        a, _ = self.down1(x)
        b, where = self.down2(a)
        m = self.middle(b)
        up = F.relu(self.up1(torch.cat([m, b], 1)) + self.unpool(m, where)[:, :6])
        up = F.relu(self.up2(up))
        return torch.sigmoid(self.out(torch.cat([up, x], dim=1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--noise", type=float, default=0.3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--checkpoint", default="")
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    base = F.interpolate(torch.rand(64, 1, 4, 4), size=(16, 16), mode="bilinear", align_corners=True)
    data = TensorDataset(base)
    sampler = BatchSampler(RandomSampler(data), batch_size=16, drop_last=False)
    loader = DataLoader(data, batch_sampler=sampler)
    model = Autoencoder()
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, alpha=0.9, momentum=0.5)
    largest = {}
    for name, p in model.named_parameters():
        p.register_hook(
            lambda g, name=name: largest.__setitem__(name, max(largest.get(name, 0.0), g.abs().max().item()))
        )

    def epoch_loss():
        total = 0.0
        for (x,) in loader:
            noisy = (x + args.noise * torch.randn_like(x)).clamp(0, 1)
            if args.channels_last:
                noisy = noisy.contiguous(memory_format=torch.channels_last)
            with record_function("forward"):
                out = model(noisy)
                loss = F.l1_loss(out, x) + F.mse_loss(F.avg_pool2d(out, 4), F.avg_pool2d(x, 4))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        return total / len(data)

    for epoch in range(args.epochs):
        if args.profile and epoch == 0:
            with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
                value = epoch_loss()
            assert "forward" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=100)
        else:
            value = epoch_loss()
        print(f"epoch {epoch} loss {value:.6f}")
    assert set(largest) == {name for name, _ in model.named_parameters()}
    print(f"largest gradient as loss {sum(largest.values()):.5f}")
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    log.info("%d parameters", parameters)
    if args.checkpoint:
        torch.save(model.state_dict(), args.checkpoint)
        with torch.device("meta"):
            again = Autoencoder()
        again.load_state_dict(torch.load(args.checkpoint, mmap=True, weights_only=True), assign=True)
        with torch.inference_mode():
            assert torch.allclose(again(base), model(base))


if __name__ == "__main__":
    main()
