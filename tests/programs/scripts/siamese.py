"""A Siamese network that says whether two pictures show the same thing: two losses, by pairs and by triplets."""

from __future__ import print_function

import argparse
import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    """A picture, another one, and whether they are of one class; which one is asked for decides."""

    def __init__(self, prototypes, length, noise=0.4):
        self.prototypes, self.length, self.noise = prototypes, length, noise
        self.random = random.Random(0)

    def __len__(self):
        return self.length

    def draw(self, label):
        return self.prototypes[label] + self.noise * torch.randn(self.prototypes.shape[1:])

    def __getitem__(self, index):
        a = index % len(self.prototypes)
        other = self.random.choice([k for k in range(len(self.prototypes)) if k != a])
        b = a if index % 2 else other
        return self.draw(a), self.draw(b), self.draw(other), torch.tensor(float(a == b))


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1),
            nn.PReLU(),
            nn.Conv2d(8, 16, kernel_size=3, stride=2, padding=1),
            nn.PReLU(),
        )
        self.fc = nn.Sequential(nn.Linear(16 * 2 * 2 * 2, 32), nn.ReLU(inplace=True), nn.Linear(32, 1))
        self.sigmoid = nn.Sigmoid()
        self.cnn.apply(self.init_weights)
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        output = self.cnn(x)
        return output.view(output.size()[0], -1)

    def forward(self, a, b):
        x, y = self.forward_once(a), self.forward_once(b)
        return self.sigmoid(self.fc(torch.cat((x, y), 1))).squeeze(1), x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--margin", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    data = Pairs(torch.randn(5, 1, 8, 8), 160)
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=False, pin_memory=False, persistent_workers=False)
    model = SiameseNetwork().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr * 20)
    scheduler = ExponentialLR(optimizer, gamma=0.9)
    bce, triplet, cosine = nn.BCELoss(), nn.TripletMarginLoss(margin=args.margin), nn.CosineEmbeddingLoss(margin=0.2)
    best, best_state = float("inf"), None
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for a, b, other, same in loader:
            a, b, other, same = (t.to(device) for t in (a, b, other, same))
            optimizer.zero_grad()
            output, x, y = model(a, b)
            loss = bce(output, same) + 0.1 * cosine(x, y, 2 * same - 1)
            positive = same.bool()
            if positive.any():
                loss = loss + 0.1 * triplet(x[positive], y[positive], model.forward_once(other)[positive])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(same)
        scheduler.step()
        total /= len(data)
        print("epoch {} loss {:.6f} lr {:.4f}".format(epoch, total, scheduler.get_last_lr()[0]))
        if total < best:
            best, best_state = total, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    model.eval()
    with torch.no_grad():
        a, b, _, same = next(iter(loader))
        output, x, y = model(a.to(device), b.to(device))
        right = output.gt(0.5).float().eq(same).sum().item()
        print("test loss {:.6f} right {}/{}".format(F.binary_cross_entropy(output, same).item(), right, len(same)))
        print("distance of equal ones {:.3f}".format(F.pairwise_distance(x, y)[same.bool()].mean()))
    if args.save:
        torch.save(model.state_dict(), args.save)
        again = SiameseNetwork()
        assert str(again.load_state_dict(torch.load(args.save, weights_only=True))) == "<All keys matched successfully>"


if __name__ == "__main__":
    main()
