"""Contrastive learning: two views of each example are drawn together, then a linear probe tells what was learnt."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Dataset, default_collate


class TwoViews(Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def augment(self, x):
        x = x + 0.2 * torch.randn_like(x)
        if torch.rand(()).item() < 0.5:
            x = x.flip(-1)
        return torch.roll(x, int(torch.randint(0, 3, ())), dims=-1)

    def __getitem__(self, i):
        return {"views": (self.augment(self.data[i]), self.augment(self.data[i])), "index": i}


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2, padding_mode="circular"), nn.GroupNorm(2, 8), nn.SiLU(),
                                 nn.Conv1d(8, 16, 3, stride=2), nn.Mish(), nn.AdaptiveAvgPool1d(4), nn.Flatten())  # fmt: skip
        self.head = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, x):
        h = self.net(x)
        return h, F.normalize(self.head(h), dim=-1)


def nt_xent(a, b, temperature):
    """Each view is to find its partner among all others."""
    z = torch.cat([a, b])
    similarity = z @ z.T / temperature
    similarity.masked_fill_(torch.eye(len(z), dtype=torch.bool, device=z.device), -math.inf)
    partner = torch.arange(len(z), device=z.device).roll(len(a))
    return F.cross_entropy(similarity, partner)


@torch.no_grad()
def momentum_update(online, target, m):
    for p, q in zip(online.parameters(), target.parameters(), strict=True):
        q.lerp_(p, 1 - m)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_default_dtype(torch.float32)
    labels = torch.arange(128) % 4
    t = torch.linspace(0, 2 * math.pi, 24)
    data = torch.sin((labels[:, None] + 1) * t + torch.rand(128, 1))[:, None] + 0.1 * torch.randn(128, 1, 24)
    loader = DataLoader(
        TwoViews(data), batch_size=32, shuffle=True, drop_last=True, collate_fn=lambda items: default_collate(items)
    )
    encoder, target = Encoder(), Encoder()
    target.load_state_dict(encoder.state_dict())
    target.requires_grad_(False)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
    schedule = OneCycleLR(optimizer, max_lr=0.2, total_steps=args.epochs * len(loader))
    for epoch in range(args.epochs):
        total = 0.0
        for batch in loader:
            (a, b), index = batch["views"], batch["index"]
            assert index.dtype == torch.int64
            _, z1 = encoder(a)
            _, z2 = encoder(b)
            with torch.no_grad():
                _, momentum = target(b)
            loss = nt_xent(z1, z2, args.temperature) + (2 - 2 * (z1 * momentum).sum(-1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            momentum_update(encoder, target, 0.9)
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.6f} lr {schedule.get_last_lr()[0]:.4f}")
    encoder.eval()
    with torch.no_grad():
        features = encoder(data)[0]
    probe = nn.LazyLinear(4)
    probe(features)
    nn.init.zeros_(probe.weight)
    nn.init.zeros_(probe.bias)
    optimizer = torch.optim.LBFGS(probe.parameters(), max_iter=8, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(probe(features[:96]), labels[:96]) + 1e-3 * probe.weight.square().sum()
        loss.backward()
        return loss

    print(f"probe loss {optimizer.step(closure).item():.6f}")
    print(f"probe loss {closure().item():.6f} right {(probe(features[96:]).argmax(1) == labels[96:]).sum().item()}/32")
    if args.save:
        torch.save({"encoder": encoder.state_dict(), "probe": probe.state_dict(), "args": vars(args)}, args.save)


if __name__ == "__main__":
    main()
