"""Bytes kept from forward to backward, against PyTorch, on models of equal weights.

    python benchmarks/saved_bytes.py [--only resnet18 vit_b_16 gpt lstm]

Needs torch in the environment.  Counted is every block that a node of the graph holds, once, without parameters: in
PyTorch as saved-tensor hooks see them, here as the nodes hold them.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import rushlight  # before torch: it chooses the BLAS core type
from rushlight.memory.counting.account import human
from rushlight.memory.counting.holders import saved_arrays
from rushlight.storage import root_of

import torch

from twin import load

MODELS = Path(__file__).resolve().parent.parent / "src" / "rushlight" / "models"
Build = Callable[[ModuleType], tuple[Any, Callable[[Any], Any]]]


def classifier(lib: ModuleType, model: Any, size: int, batch: int) -> tuple[Any, Callable[[Any], Any]]:
    """A model of images and its loss on one batch."""
    rng = np.random.default_rng(0)
    x = lib.from_numpy(rng.standard_normal((batch, 3, size, size), dtype=np.float32))
    y = lib.from_numpy(rng.integers(0, 100, batch))
    return model, lambda model: lib.nn.functional.cross_entropy(model(x), y)


def resnet18(lib: ModuleType) -> tuple[Any, Callable[[Any], Any]]:
    """ResNet-18, images of 224 x 224, batch 4."""
    module = load(MODELS / "resnet.py", lib)
    return classifier(lib, module.ResNet(module.BasicBlock, (2, 2, 2, 2), num_classes=100), 224, 4)


def resnet18_frozen(lib: ModuleType) -> tuple[Any, Callable[[Any], Any]]:
    """The same in eval mode, all but the first and the last layer frozen."""
    model, loss = resnet18(lib)
    model.eval()
    for name, p in model.named_parameters():
        p.requires_grad_(name.startswith(("conv1", "fc")))
    return model, loss


def vit_b_16(lib: ModuleType) -> tuple[Any, Callable[[Any], Any]]:
    """ViT-B/16, images of 224 x 224, batch 1."""
    module = load(MODELS / "vision_transformer.py", lib)
    model = module.VisionTransformer(224, 16, 12, 12, 768, 3072, dropout=0.1, num_classes=100)
    return classifier(lib, model, 224, 1)


def gpt(lib: ModuleType) -> tuple[Any, Callable[[Any], Any]]:
    """A 6-layer GPT, d 384, 256 tokens, batch 8."""
    model = load(MODELS / "language.py", lib).GPT(vocabulary=8192, length=256, layers=6, width=384, heads=6)
    text = lib.from_numpy(np.random.default_rng(0).integers(0, 8192, (8, 257)))
    return model, lambda model: model(text[:, :-1], text[:, 1:])[1]


def lstm(lib: ModuleType) -> tuple[Any, Callable[[Any], Any]]:
    """A 2-layer LSTM of width 256 over 64 steps, batch 16."""
    x = lib.from_numpy(np.random.default_rng(0).standard_normal((16, 64, 128), dtype=np.float32))
    y = lib.from_numpy(np.random.default_rng(0).integers(0, 10, 16))
    model = load(Path(__file__).resolve().parent / "recurrent_model.py", lib).Reader()
    return model, lambda model: lib.nn.functional.cross_entropy(model(x), y)


CASES: dict[str, Build] = {
    "resnet18": resnet18, "resnet18_frozen": resnet18_frozen, "vit_b_16": vit_b_16, "gpt": gpt, "lstm": lstm,
}  # fmt: skip


def nodes(root: Any) -> Iterator[Any]:
    """All nodes of the graph behind one."""
    seen, stack = {id(root)}, [root]
    while stack:
        node = stack.pop()
        yield node
        for edge in node.edges:
            below = getattr(edge, "node", None)
            if below is not None and id(below) not in seen:
                seen.add(id(below))
                stack.append(below)


def ours(build: Build) -> int:
    """What the nodes of the graph hold."""
    model, loss = build(rushlight)
    kept = {id(root_of(t._array)) for t in (*model.parameters(), *model.buffers())}
    value = loss(model)
    roots = {id(root_of(a)): root_of(a) for node in nodes(value.grad_fn) for a in saved_arrays(node)}
    return sum(a.nbytes for key, a in roots.items() if key not in kept)


def theirs(build: Build) -> int:
    """What hooks see."""
    model, loss = build(torch)
    kept = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    found: dict[int, Any] = {}

    def pack(t: Any) -> Any:
        found[t.untyped_storage().data_ptr()] = t.untyped_storage()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        value = loss(model)
    total = sum(s.nbytes() for key, s in found.items() if key not in kept)
    del value
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    more = False
    print(f"{'model':<60}{'rushlight':>11}{'PyTorch':>11}{'ratio':>8}")
    for name in parser.parse_args().only:
        a, b = ours(CASES[name]), theirs(CASES[name])
        more = more or a > b
        print(f"{(CASES[name].__doc__ or name).rstrip('.'):<60}{human(a):>11}{human(b):>11}{a / b:>8.2f}", flush=True)
    return int(more)


if __name__ == "__main__":
    sys.exit(main())
