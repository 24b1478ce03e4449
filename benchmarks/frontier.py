"""What memory.frontier predicts against what steps take: peak bytes and seconds of every point, for six models.

    python benchmarks/frontier.py [--only gpt vit resnet unet lstm moe] [--inexact]

Seconds are predicted from one plain step that is measured; every row is beside the same steps really taken, each in a
process of its own.  A machine that others use at the same time says nothing about seconds.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rushlight as torch
from rushlight import memory, models
from rushlight.memory.counting.account import human
from rushlight.models.language import GPT

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recurrent_model import Reader

nn, F = torch.nn, torch.nn.functional
PEAK, SECONDS = 0.05, 0.15  # how far apart they may be
Case = tuple[Any, Any, Any, Any]  # model, sample, optimizer, loss


def classes(model: Any, shape: tuple[int, ...], count: int, optimizer: Any) -> Case:
    """A classifier on random inputs."""
    y = torch.randint(0, count, shape[:1])
    return model, (torch.randn(*shape),), optimizer(model.parameters()), lambda out: F.cross_entropy(out, y)


def gpt() -> Case:
    text, model = torch.randint(0, 8192, (4, 257)), GPT(8192, 256, 6, 384, 6)
    return (
        model,
        (text[:, :-1].clone(), text[:, 1:].clone()),
        torch.optim.AdamW(model.parameters()),
        lambda out: out[1],
    )


def vit() -> Case:
    model = models.vision_transformer.VisionTransformer(64, 8, 6, 6, 384, 1536, num_classes=10)
    return classes(model, (16, 3, 64, 64), 10, torch.optim.Adam)


def resnet() -> Case:
    return classes(
        models.resnet18(num_classes=100),
        (8, 3, 128, 128),
        100,
        lambda params: torch.optim.SGD(params, lr=1e-3, momentum=0.9),
    )


class Double(nn.Module):
    """Two convolutions with norms."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())  # fmt: skip

    def forward(self, x: Any) -> Any:
        return self.net(x)


class UNet(nn.Module):
    """Three levels down and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([Double(3, 16), Double(16, 32), Double(32, 64)])
        self.up = nn.ModuleList([Double(96, 32), Double(48, 16)])
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x: Any) -> Any:
        kept = []
        for block in self.down:
            x = block(x if not kept else F.max_pool2d(x, 2))
            kept.append(x)
        for block, skip in zip(self.up, reversed(kept[:-1])):
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), skip], 1))
        return self.last(x)


def unet() -> Case:
    model, y = UNet(), torch.randint(0, 2, (4, 128, 128))
    return (
        model,
        (torch.randn(4, 3, 128, 128),),
        torch.optim.Adam(model.parameters()),
        lambda out: F.cross_entropy(out, y),
    )


def lstm() -> Case:
    return classes(Reader(), (16, 64, 128), 10, torch.optim.Adam)


class Experts(nn.Module):
    """Each row goes to one of several networks, weighted by a gate that is learned: all of them for all rows, masked."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
                                      for _ in range(count)])  # fmt: skip

    def forward(self, x: Any) -> Any:
        weights = self.gate(x).softmax(-1)
        return x + sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


def moe() -> Case:
    model = nn.Sequential(Experts(256, 4), Experts(256, 4), Experts(256, 4), nn.Linear(256, 10))
    return classes(model, (1024, 256), 10, torch.optim.Adam)


CASES: dict[str, Callable[[], Case]] = {
    "gpt": gpt,
    "vit": vit,
    "resnet": resnet,
    "unet": unet,
    "lstm": lstm,
    "moe": moe,
}


def compare(name: str, exact: bool) -> tuple[float, float]:
    """Print a model's points; how far peaks and seconds are apart at most."""
    torch.manual_seed(0)
    model, sample, optimizer, loss = CASES[name]()
    found = memory.frontier(model, sample, optimizer, loss=loss, measure=True, exact=exact)
    worst = [0.0, 0.0]
    print(f"\n{name}: {found.machine}")
    print(f"{'':<58}{'predicted':>11}{'measured':>11}{'apart':>8}{'predicted':>11}{'measured':>11}{'apart':>8}")
    for point in found.points:
        peak, seconds = point.predicted
        apart = peak / point.peak - 1, seconds / point.seconds - 1
        worst = [max(a, abs(b)) for a, b in zip(worst, apart)]
        print(f"{point.name:<58}{human(peak):>11}{human(point.peak):>11}{apart[0]:>+8.1%}{seconds:>10.3f}s"
              f"{point.seconds:>10.3f}s{apart[1]:>+8.1%}", flush=True)  # fmt: skip
    for way, why in found.failed.items():
        print(f"{way:<58}{why}")
    return worst[0], worst[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--inexact", action="store_true", help="also ways that give somewhat different gradients")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    pairs = [compare(name, not options.inexact) for name in options.only]
    peak, seconds = (max(column) for column in zip(*pairs))
    print(f"\nfarthest apart: peaks {peak:.1%} (allowed {PEAK:.0%}), seconds {seconds:.1%} (allowed {SECONDS:.0%}); "
          f"{load:.1f} processes wanted a core when this began")  # fmt: skip
    return int(peak > PEAK or seconds > SECONDS)


if __name__ == "__main__":
    sys.exit(main())
