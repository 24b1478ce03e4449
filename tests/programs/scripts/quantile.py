"""Quantile regression with intervals, an own loss with a custom Function, weighted sampling, and early stopping."""

import argparse
import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset, WeightedRandomSampler


class Pinball(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prediction, target, quantiles):
        error = target - prediction
        ctx.save_for_backward(error, quantiles)
        return torch.maximum(quantiles * error, (quantiles - 1) * error).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        error, quantiles = ctx.saved_tensors
        slope = torch.where(error > 0, -quantiles, 1 - quantiles)
        return grad * slope / error.numel(), None, None


class QuantileNet(nn.Module):
    """Quantiles that cannot cross: the lowest, and what is added to it."""

    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.as_tensor(quantiles))
        self.body = nn.Sequential(
            nn.Linear(1, 32), nn.Softplus(beta=2), nn.utils.parametrizations.weight_norm(nn.Linear(32, 32)), nn.SELU()
        )
        self.head = nn.Linear(32, len(quantiles))

    def forward(self, x):
        out = self.head(self.body(x))
        return torch.cat([out[..., :1], out[..., :1] + nn.functional.softplus(out[..., 1:]).cumsum(-1)], -1)


class EarlyStopping:
    def __init__(self, patience, path):
        self.patience, self.path, self.best, self.waited = patience, path, float("inf"), 0

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.waited = value, 0
            torch.save(model.state_dict(), self.path)
        else:
            self.waited += 1
        return self.waited >= self.patience


def make(n):
    x = torch.rand(n, 1) * 4 - 2
    return TensorDataset(x, torch.sin(2 * x) + (0.1 + 0.2 * x.abs()) * torch.randn(n, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quantiles", type=float, nargs="+", default=[0.1, 0.5, 0.9])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data, valid = ConcatDataset([make(150), make(106)]), make(64)
    weights = torch.tensor([1.0 + abs(x.item()) for x, _ in data])
    loader = DataLoader(data, batch_size=32, sampler=WeightedRandomSampler(weights, len(data), replacement=True))
    model = QuantileNet(args.quantiles)
    optimizer = torch.optim.Adamax(
        [{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": 5e-2}], lr=1e-2
    )
    history = []
    with tempfile.TemporaryDirectory() as folder:
        stop = EarlyStopping(args.patience, os.path.join(folder, "best.pt"))
        for epoch in range(args.epochs):
            model.train()
            total = 0.0
            for x, y in loader:
                loss = Pinball.apply(model(x), y, model.quantiles)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach())
            model.eval()
            with torch.inference_mode():
                x, y = valid.tensors
                val = Pinball.apply(model(x), y, model.quantiles).item()
            history.append({"train": total / len(loader), "valid": val})
            print(f"epoch {epoch} loss {history[-1]['train']:.6f} valid loss {val:.6f}")
            if stop(val, model):
                break
        model.load_state_dict(torch.load(stop.path, weights_only=True))
    with torch.no_grad():
        low, middle, high = model(x).unbind(-1)
        inside = ((y[:, 0] >= low) & (y[:, 0] <= high)).float().mean()
        print(f"inside {inside:.3f} best loss {torch.quantile((y[:, 0] - middle).abs(), 0.5).item():.6f}")
        assert bool((high >= middle).all() and (middle >= low).all())
    if args.log:
        with open(args.log, "w") as f:
            json.dump(history, f)


if __name__ == "__main__":
    main()
