"""Matrix factorization of ratings: embeddings with sparse gradients, stepped by SparseAdam, SGD or Adagrad; resumed on request."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Factors(nn.Module):
    def __init__(self, users, items, dim, sparse=True):
        super().__init__()
        self.users = nn.Embedding(users, dim, sparse=sparse)
        self.items = nn.Embedding(items, dim, sparse=sparse)
        self.user_bias = nn.Embedding(users, 1, sparse=sparse)
        self.item_bias = nn.Embedding(items, 1, sparse=sparse)
        self.tags = nn.EmbeddingBag(6, dim, mode="sum", sparse=sparse)
        for table in (self.users, self.items, self.tags):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user, item):
        tags = torch.stack([item % 6, item // 2 % 6], 1)
        product = (self.users(user) * (self.items(item) + self.tags(tags))).sum(1, keepdim=True)
        return (product + self.user_bias(user) + self.item_bias(item)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dim", type=int, default=4)
    parser.add_argument("--optimizer", choices=["SparseAdam", "SGD", "Adagrad"], default="SparseAdam")
    parser.add_argument("--lr", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", default="")
    parser.add_argument("--resume", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    users, items, count = 40, 30, 400
    u, i = torch.randint(0, users, (count,)), torch.randint(0, items, (count,))
    true_u, true_i = torch.randn(users, 2), torch.randn(items, 2)
    rating = (true_u[u] * true_i[i]).sum(1) + 0.1 * torch.randn(count)
    loader = DataLoader(TensorDataset(u[:320], i[:320], rating[:320]), batch_size=64, shuffle=True)
    model = Factors(users, items, args.dim)
    lr = args.lr or {"SparseAdam": 0.05, "SGD": 2.0, "Adagrad": 0.3}[args.optimizer]
    optimizer = getattr(torch.optim, args.optimizer)(list(model.parameters()), lr=lr)
    start = 0
    if args.resume:
        kept = torch.load(args.resume, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        start = kept["epoch"]
    for epoch in range(start, args.epochs):
        total = 0.0
        for user, item, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(user, item), target)
            loss.backward()
            gradient = model.users.weight.grad
            assert gradient.is_sparse and gradient.coalesce().indices().shape[1] == user.unique().numel()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.6f}")
        if args.save:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, args.save
            )
    with torch.no_grad():
        print(f"test loss {nn.functional.mse_loss(model(u[320:], i[320:]), rating[320:]).item():.6f}")


if __name__ == "__main__":
    main()
