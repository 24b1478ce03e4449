"""Peak memory and time of training ViT-L/16, ResNet-152 and GPT-2 (124 M) in several ways, each in a process of its own.

    python benchmarks/memory.py [--only vit resnet gpt2] [--steps 3] [--batch 42]

Peaks are of resident memory (VmHWM) above that of the process after its imports; seconds are of the last step. PyTorch is
measured in the same run where it is installed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twin import load

MODELS = Path(__file__).resolve().parent.parent / "src" / "rushlight" / "models"
WAYS = {
    "vit": {
        "PyTorch": ("torch", "plain"),
        "PyTorch, foreach=True": ("torch", "foreach"),
        "PyTorch, an optimizer for each parameter, in hooks": ("torch", "hooks"),
        "rushlight": ("rushlight", "plain"),
        "rushlight, optim.in_backward": ("rushlight", "fused"),
        "rushlight, budget of 2 GiB": ("rushlight", "budget:2 GiB"),
        "rushlight, budget of 2 GiB, in backward": ("rushlight", "budget+fused:2 GiB"),
    },
    "gpt2": {
        "PyTorch": ("torch", "plain"),
        "PyTorch, an optimizer for each parameter, in hooks": ("torch", "hooks"),
        "rushlight": ("rushlight", "plain"),
        "rushlight, optim.in_backward": ("rushlight", "fused"),
        "rushlight, optim.in_backward, all logits": ("rushlight", "fused:logits"),
        "rushlight, budget of 10 GB, in backward": ("rushlight", "budget+fused:10 GB"),
        "rushlight, budget of 2.6 GB, in backward": ("rushlight", "budget+fused:2.6 GB"),
    },
    "resnet": {
        "rushlight": ("rushlight", "plain"),
        "rushlight, stores.disk()": ("rushlight", "disk"),
        "rushlight, budget of 1.57 GB": ("rushlight", "budget:1.57 GB"),
    },
}


def resident(name: str) -> int:
    """Bytes of resident memory: VmRSS now, VmHWM at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not say what memory a process takes")


def model_of(torch: Any, net: str) -> Any:
    """The model, from one source for both libraries."""
    if net == "gpt2":
        return load(MODELS / "language.py", torch).GPT(50257, 1024, 12, 768, 12)
    if net == "vit":
        module = load(MODELS / "vision_transformer.py", torch)
        return module.VisionTransformer(
            image_size=224, patch_size=16, num_layers=24, num_heads=16, hidden_dim=1024, mlp_dim=4096
        )
    module = load(MODELS / "resnet.py", torch)
    return module.ResNet(module.Bottleneck, (3, 8, 36, 3))


def train(library: str, way: str, net: str, batch: int, steps: int) -> dict[str, Any]:
    """Train, and say what it took."""
    torch = importlib.import_module(library)
    _ = torch.nn, torch.optim
    base = resident("VmRSS")
    torch.manual_seed(0)
    way, _, limit = way.partition(":")
    model = model_of(torch, net)
    if limit == "logits":
        importlib.import_module("rushlight.ops.linear.unmade_products").limits.nbytes = 1 << 62
    if net != "resnet":
        adam = torch.optim.AdamW if net == "gpt2" else torch.optim.Adam
        optimizer = adam(model.parameters(), lr=1e-4, foreach=True if way == "foreach" else None)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = losses_of(torch, net, model, batch)
    if way == "hooks":
        own = {p: adam([p], lr=1e-4, foreach=False) for p in model.parameters()}

        def hook(p: Any) -> None:
            own[p].step()
            own[p].zero_grad()

        for p in model.parameters():
            p.register_post_accumulate_grad_hook(hook)
    losses, seconds = [], []

    def loop() -> None:
        for _ in range(steps):
            start = time.perf_counter()
            loss = loss_of()
            loss.backward()
            if way != "hooks":
                optimizer.step()
                optimizer.zero_grad()
            losses.append(float(loss.detach()))
            seconds.append(time.perf_counter() - start)

    with context(torch, way, limit, optimizer):
        loop()
        peak = importlib.import_module("rushlight.memory").peak() if library == "rushlight" else 0
        found = resident("VmHWM") - base
    return {"resident": found, "arrays": peak, "seconds": seconds[-1], "losses": losses}


def losses_of(torch: Any, net: str, model: Any, batch: int) -> Callable[[], Any]:
    """What computes the loss of a step: of random images, or of so many rows of 1,024 random tokens."""
    cross_entropy = torch.nn.functional.cross_entropy
    if net != "gpt2":
        images, labels = torch.rand(batch, 3, 224, 224), torch.arange(batch)
        return lambda: cross_entropy(model(images), labels)
    text = torch.randint(0, 50257, (batch, 1025))
    return lambda: cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def context(torch: Any, way: str, limit: str, optimizer: Any) -> Any:
    """What the loop runs within."""
    from contextlib import nullcontext

    if way == "fused":
        return torch.optim.in_backward(optimizer)
    if way == "disk":
        from rushlight import stores

        return stores.disk()
    if way.startswith("budget"):
        from rushlight import memory

        return memory.budget(limit, optimizer=optimizer if way.endswith("fused") else None)
    return nullcontext()


def measured(net: str, library: str, way: str, batch: int, steps: int) -> dict[str, Any] | None:
    """`train` in a process of its own; None where it cannot run."""
    command = [sys.executable, __file__, "--worker", json.dumps([library, way, net, batch, steps])]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONWARNINGS": "ignore", **os.environ})
    if done.returncode:
        print(f"{net}, {library}, {way}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=sorted(WAYS), default=sorted(WAYS, reverse=True))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=42, help="images of a step of ResNet-152")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(train(*json.loads(options.worker))))
        return
    for net in options.only:
        batch = {"vit": 1, "gpt2": 4}.get(net, options.batch)
        name = {"vit": "ViT-L/16, batch 1, Adam", "gpt2": "GPT-2 (124 M), 4 x 1,024 tokens, AdamW"}.get(
            net, f"ResNet-152, batch {batch}, SGD with momentum"
        )
        print(f"\n| {name} | peak, resident | peak of arrays | seconds a step | losses |\n|---|---|---|---|---|")
        for title, (library, way) in WAYS[net].items():
            found = measured(net, library, way, batch, options.steps)
            if found is not None:
                arrays = f"{found['arrays'] / 1e9:.2f} GB" if found["arrays"] else ""
                losses = ", ".join(f"{x:.6f}" for x in found["losses"])
                print(f"| {title} | {found['resident'] / 1e9:.2f} GB | {arrays} | {found['seconds']:.1f} | {losses} |",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
