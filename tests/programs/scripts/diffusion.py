"""Denoising diffusion of points on two rings: a noise schedule in buffers, time embeddings, an average of weights, DDIM samples."""

import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


class Schedule(nn.Module):
    def __init__(self, steps):
        super().__init__()
        t = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
        bar = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
        betas = torch.clip(1 - bar[1:] / bar[:-1], 0, 0.999)
        self.steps = steps
        self.register_buffer("bar", torch.cumprod(1.0 - betas, 0).float())
        self.register_buffer("snr", self.bar / (1 - self.bar), persistent=False)

    def noisy(self, x, t, noise):
        a = self.bar.gather(0, t).view(-1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise


class Embedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        freqs = torch.exp(torch.arange(self.dim // 2, device=t.device) * (-math.log(10000) / (self.dim // 2 - 1)))
        angles = t[:, None].float() * freqs[None]
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.GroupNorm(4, dim)
        self.first, self.time = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim)
        self.last = nn.Linear(dim, dim)
        nn.init.zeros_(self.last.weight)

    def forward(self, x, emb):
        scale, shift = self.time(F.silu(emb)).chunk(2, dim=1)
        h = self.norm(self.first(F.silu(x))) * (1 + scale) + shift
        return x + self.last(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, dim=32, classes=2):
        super().__init__()
        self.time = nn.Sequential(Embedding(dim), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Embedding(classes + 1, dim)
        self.inp, self.out = nn.Linear(2, dim), nn.Linear(dim, 2)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(2))

    def forward(self, x, t, y):
        emb = self.time(t) + self.label(y)
        x = self.inp(x)
        for block in self.blocks:
            x = block(x, emb)
        return self.out(x)


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


@torch.inference_mode()
def sample(model, schedule, y, guidance, steps):
    x = torch.randn(len(y), 2)
    times = torch.linspace(schedule.steps - 1, 0, steps).round().long().tolist()
    for now, after in zip(times, times[1:] + [-1]):
        t = torch.full((len(y),), now)
        with_label, without = model(torch.cat([x, x]), t.repeat(2), torch.cat([y, torch.full_like(y, 2)])).chunk(2)
        noise = torch.lerp(without, with_label, guidance)
        a = schedule.bar[now]
        b = schedule.bar[after] if after >= 0 else torch.ones(())
        clean = ((x - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-3, 3)
        x = b.sqrt() * clean + (1 - b).sqrt() * noise
    return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--timesteps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--min-snr", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    angle, label = torch.rand(256) * 2 * math.pi, torch.randint(0, 2, (256,))
    points = torch.stack((angle.cos(), angle.sin()), 1) * (1 + label[:, None]) + 0.05 * torch.randn(256, 2)
    loader = DataLoader(TensorDataset(points, label), batch_size=64, shuffle=True, drop_last=True)
    schedule, model = Schedule(args.timesteps), Denoiser()
    ema = EMA(model, 0.9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99), weight_decay=1e-4)
    total = args.epochs * len(loader)
    scheduler = LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 3) * 0.5 * (1 + math.cos(math.pi * i / total)))
    for epoch in range(args.epochs):
        running = torch.zeros(())
        for x, y in loader:
            t = torch.randint(0, args.timesteps, (x.size(0),))
            noise = torch.randn_like(x)
            y = torch.where(torch.rand(y.shape) < 0.1, torch.full_like(y, 2), y)
            out = model(schedule.noisy(x, t, noise), t, y)
            loss = F.mse_loss(out, noise, reduction="none").mean(1)
            if args.min_snr:
                snr = schedule.snr[t]
                loss = loss * (torch.clamp(snr, max=5.0) / snr.clamp(min=1e-4)).clamp(max=5.0)
            loss = loss.mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            ema.update(model)
            running += loss.detach()
        print(f"epoch {epoch} lr {scheduler.get_last_lr()[0]:.2e} loss {running.item() / len(loader):.6f}")
    wanted = torch.arange(64) % 2
    made = sample(ema.model, schedule, wanted, 1.5, 10)
    print(f"sample loss {(made.norm(dim=1) - 1 - wanted).abs().mean().item():.6f}")
    if args.save:
        torch.save({"ema": ema.model.state_dict(), "schedule": schedule.state_dict(), "args": vars(args)}, args.save)
        saved = torch.load(args.save, weights_only=True)
        assert "snr" not in saved["schedule"] and saved["args"]["seed"] == args.seed
        schedule.load_state_dict(saved["schedule"])


if __name__ == "__main__":
    main()
