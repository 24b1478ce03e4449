"""Saved tensors: hooks, stores, recomputation, the optimizer in backward."""

import os
import tempfile
from typing import Any

from workloads.registry import Step, classifying, equal, normal, training, workload


def deep(torch: Any, width: int = 512, layers: int = 8) -> Any:
    nn = torch.nn
    return equal(
        nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width)) for _ in range(layers)])
    )


def hooked(torch: Any, hooks: Any) -> Step:
    """Training of the deep model while `hooks()`, a context, is there."""
    model, x = deep(torch), normal(torch, 512, 512)

    def loss() -> Any:
        with hooks():
            return model(x).square().mean()

    return training(torch, model, loss)


@workload()
def checkpoint(torch: Any) -> Step:
    """Checkpointing of 8 blocks, width 512, 512 rows"""
    from importlib import import_module

    again = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    model, x = deep(torch), normal(torch, 512, 512)

    def loss() -> Any:
        h = x
        for block in model:
            h = again(block, h, use_reentrant=False)
        return h.square().mean()

    return training(torch, model, loss)


@workload()
def hooks_that_do_nothing(torch: Any) -> Step:
    """Saved-tensor hooks that return what they get, 8 blocks of width 64, 32 rows"""
    model, x = deep(torch, 64), normal(torch, 32, 64)

    def loss() -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return model(x).square().mean()

    return training(torch, model, loss)


@workload()
def hooks_to_disk(torch: Any) -> Step:
    """Saved-tensor hooks that write each to a file, 8 blocks of width 512, 512 rows"""
    folder = tempfile.TemporaryDirectory()
    count = iter(range(10**9))

    def pack(t: Any) -> str:
        name = os.path.join(folder.name, str(next(count)))
        torch.save(t, name)
        return name

    def unpack(name: str) -> Any:
        found = torch.load(name)
        os.remove(name)
        return found

    return hooked(torch, lambda: torch.autograd.graph.saved_tensors_hooks(pack, unpack))


@workload()
def save_on_cpu(torch: Any) -> Step:
    """autograd.graph.save_on_cpu, 8 blocks of width 512, 512 rows"""
    return hooked(torch, torch.autograd.graph.save_on_cpu)


@workload()
def optimizer_in_backward(torch: Any) -> Step:
    """Adam in backward by hooks of each parameter, 8 blocks of width 512, 512 rows"""
    model, x = deep(torch), normal(torch, 512, 512)
    of = {p: torch.optim.Adam([p], lr=1e-4) for p in model.parameters()}

    def hook(p: Any) -> None:
        of[p].step()
        of[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)

    def step() -> Any:
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return step


@workload()
def gradient_hooks(torch: Any) -> Step:
    """Hooks on modules and gradients of a small convolutional net, 8 x 32 px"""
    nn, seen = torch.nn, []
    model = nn.Sequential(*[nn.Sequential(nn.Conv2d(i, 16, 3, padding=1), nn.ReLU()) for i in (3, 16, 16)],
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))  # fmt: skip
    for module in model:
        module.register_forward_hook(lambda module, given, out: seen.append(1) and None)
        module.register_full_backward_hook(lambda module, inside, out: seen.append(1) and None)
    for p in model.parameters():
        p.register_hook(lambda g: g * 1.0)
    return classifying(torch, model, normal(torch, 8, 3, 32, 32), 10)


def stored(torch: Any, name: str, *how: str) -> Step:
    """With a store of rushlight's; with PyTorch, plain."""
    if torch.__name__ == "rushlight":
        return hooked(torch, lambda: getattr(torch.stores, name)(*how))
    from contextlib import nullcontext

    return hooked(torch, nullcontext)


@workload()
def store_disk(torch: Any) -> Step:
    """stores.disk() beside PyTorch's plain step, 8 blocks of width 512, 512 rows"""
    return stored(torch, "disk")


@workload()
def store_compressed(torch: Any) -> Step:
    """stores.compress("lossless") beside PyTorch's plain step, 8 blocks of width 512, 512 rows"""
    return stored(torch, "compress", "lossless")
