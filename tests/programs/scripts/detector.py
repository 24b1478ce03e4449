"""Boxes in pictures: anchors on a grid, matching, a focal loss and a loss of overlaps, warped pictures, suppression, and a measure."""

import argparse
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Target(NamedTuple):
    boxes: torch.Tensor
    labels: torch.Tensor


@dataclass
class Meter:
    values: dict = field(default_factory=lambda: defaultdict(list))

    def add(self, **parts):
        for name, value in parts.items():
            self.values[name].append(float(value))

    def __str__(self):
        return " ".join(f"{name} loss {sum(v) / len(v):.5f}" for name, v in self.values.items())


class Shapes(Dataset):
    """Bright and dark rectangles."""

    def __init__(self, count, size=32):
        self.pictures, self.targets = [], []
        for _ in range(count):
            picture, boxes = 0.1 * torch.randn(1, size, size), []
            labels = torch.randint(0, 2, (2,))
            for k in range(2):
                x, y, w, h = (torch.randint(lo, hi, ()).item() for lo, hi in ((0, 16), (0, 16), (6, 14), (6, 14)))
                picture[:, y : y + h, x : x + w] += 1.0 if labels[k] else -1.0
                boxes.append([x, y, x + w, y + h])
            self.pictures.append(picture)
            self.targets.append(Target(torch.tensor(boxes, dtype=torch.float32), labels))

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return self.pictures[i], self.targets[i]


def overlap(a, b):
    """(N, 4), (M, 4) -> (N, M)"""
    area = [(x[:, 2:] - x[:, :2]).clamp(min=0).prod(1) for x in (a, b)]
    inter = (torch.min(a[:, None, 2:], b[:, 2:]) - torch.max(a[:, None, :2], b[:, :2])).clamp(min=0).prod(2)
    return inter / (area[0][:, None] + area[1] - inter + 1e-9)


def giou_loss(a, b):
    low, high = torch.min(a[:, :2], b[:, :2]), torch.max(a[:, 2:], b[:, 2:])
    iou = overlap(a, b).diagonal()
    hull = (high - low).prod(1)
    both = [(x[:, 2:] - x[:, :2]).prod(1) for x in (a, b)]
    union = (both[0] + both[1]) / (1 + iou)
    return (1 - iou + (hull - union) / hull).sum()


def focal(logits, target, alpha=0.25, gamma=2.0):
    p = logits.sigmoid()
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p_t = p * target + (1 - p) * (1 - target)
    return ((alpha * target + (1 - alpha) * (1 - target)) * ce * (1 - p_t) ** gamma).sum()


class Detector(nn.Module):
    def __init__(self, classes=2, stride=4, sizes=(8.0, 14.0)):
        super().__init__()
        self.stride, self.sizes, self.classes = stride, sizes, classes
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.LeakyReLU(0.1), nn.Conv2d(8, 16, 3, 2, 1), nn.Mish(),
                                  nn.Upsample(scale_factor=1.0), nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=4), nn.PReLU(16))  # fmt: skip
        self.heads = nn.ModuleDict(
            {"cls": nn.Conv2d(16, classes * len(sizes), 1), "box": nn.Conv2d(16, 4 * len(sizes), 1)}
        )
        nn.init.constant_(self.heads["cls"].bias, -2.0)

    def anchors(self, height, width):
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        centres = (torch.stack([x, y, x, y], -1).float() + 0.5) * self.stride
        half = torch.tensor([[-s / 2, -s / 2, s / 2, s / 2] for s in self.sizes])
        return (centres[:, :, None] + half).reshape(-1, 4)

    def forward(self, x):
        f = self.body(x)
        n, _, h, w = f.shape
        cls, box = (head(f).permute(0, 2, 3, 1).reshape(n, h * w * len(self.sizes), -1) for head in self.heads.values())
        return cls, box, self.anchors(h, w)

    @staticmethod
    def decode(box, anchors):
        size = anchors[..., 2:] - anchors[..., :2]
        centre = (anchors[..., :2] + anchors[..., 2:]) / 2 + box[..., :2] * size
        half = 0.5 * size * box[..., 2:].clamp(max=2.0).exp()
        return torch.cat([centre - half, centre + half], -1)


def matched(anchors, target):
    """For each anchor which box it is to find, -1 for none; each box has its best one."""
    table = overlap(anchors, target.boxes)
    best, which = table.max(1)
    which = which.masked_fill(best < 0.4, -1)
    which[table.argmax(0)] = torch.arange(len(target.boxes))
    return which


def losses(model, pictures, targets):
    cls, box, anchors = model(pictures)
    wanted = torch.zeros_like(cls)
    total, found = cls.new_zeros(()), 0
    for i, target in enumerate(targets):
        which = matched(anchors, target)
        there = torch.nonzero(which >= 0).squeeze(1)
        wanted[i, there, target.labels[which[there]]] = 1.0
        total = total + giou_loss(model.decode(box[i, there], anchors[there]), target.boxes[which[there]])
        found += there.numel()
    return focal(cls, wanted) / found, total / found


def suppress(boxes, scores, threshold=0.5):
    kept, order = [], scores.sort(descending=True, stable=True).indices
    while order.numel():
        kept.append(order[0].item())
        order = order[1:][overlap(boxes[order[:1]], boxes[order[1:]])[0] <= threshold]
    return torch.tensor(kept, dtype=torch.long)


def warp(pictures, targets):
    """A shift by whole pixels and a mirror image, by a grid."""
    n, _, h, w = pictures.shape
    theta = torch.eye(2, 3).repeat(n, 1, 1)
    theta[:, 0, 0] = -1.0
    moved = F.grid_sample(
        pictures,
        F.affine_grid(theta, list(pictures.shape), align_corners=False),
        align_corners=False,
        padding_mode="border",
    )
    flipped = [
        t._replace(boxes=torch.stack([w - t.boxes[:, 2], t.boxes[:, 1], w - t.boxes[:, 0], t.boxes[:, 3]], 1))
        for t in targets
    ]
    return moved, flipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights")
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    loader = DataLoader(
        Shapes(24), batch_size=6, collate_fn=lambda items: (torch.stack([p for p, _ in items]), [t for _, t in items])
    )
    model = Detector()
    optimizer = torch.optim.SGD([{"params": [p for n, p in model.named_parameters() if n.endswith("weight")], "weight_decay": 1e-3},
                                 {"params": [p for n, p in model.named_parameters() if not n.endswith("weight")]}],
                                lr=0.02, momentum=0.9, nesterov=True)  # fmt: skip
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], 0.3)
    for epoch in range(args.epochs):
        meter = Meter()
        for k, (pictures, targets) in enumerate(loader):
            if k % 2:
                pictures, targets = warp(pictures, targets)
            cls, box = losses(model, pictures, targets)
            optimizer.zero_grad()
            (cls + 2 * box).backward()
            optimizer.step()
            meter.add(cls=cls, box=box)
        scheduler.step()
        print(f"epoch {epoch} {meter}")
    model.eval()
    with torch.no_grad():
        pictures, targets = next(iter(loader))
        cls, box, anchors = model(pictures)
        boxes = model.decode(box, anchors)
        scores, labels = cls.sigmoid().max(-1)
        best = []
        for i, target in enumerate(targets):
            top = scores[i].topk(20).indices
            kept = top[suppress(boxes[i, top], scores[i, top])]
            best.append(overlap(target.boxes, boxes[i, kept]).amax(1))
        print(f"missed loss {1 - torch.cat(best).mean().item():.5f} of {labels.unique().numel()} kinds")
    if args.weights:
        torch.save(model.state_dict(), args.weights)
        model.load_state_dict({k: v.clone() for k, v in torch.load(args.weights, weights_only=True).items()})


if __name__ == "__main__":
    main()
