"""What memory.estimate predicts against what a run takes: the peak of all arrays in two training steps.

    python benchmarks/estimate.py [--only mlp gpt ...]

Every row is a process's own allocator's count (memory.peak) beside the estimate made before the run.
"""

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import rushlight as torch
from rushlight import memory, models
from rushlight.memory.counting.account import human
from rushlight.models.language import GPT

sys.path.insert(0, str(Path(__file__).resolve().parent))

from recurrent_model import Reader

F = torch.nn.functional
LIMIT = 0.05  # of the measured peak
Case = tuple[Callable[[], Any], tuple[Any, ...], Callable[[Any], Any]]  # model, arguments, loss


def classes(shape: tuple[int, ...], count: int) -> tuple[tuple[Any, ...], Callable[[Any], Any]]:
    """Random images and the cross entropy with random classes."""
    y = torch.randint(0, count, shape[:1])
    return (torch.randn(*shape),), lambda out: F.cross_entropy(out, y)


def mlp() -> Case:
    nn = torch.nn
    build = lambda: nn.Sequential(  # noqa: E731
        nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10)
    )
    return build, *classes((512, 784), 10)


def convolutional(size: int, batch: int) -> Case:
    return lambda: models.resnet18(num_classes=100), *classes((batch, 3, size, size), 100)


def transformer() -> Case:
    return lambda: models.vit_b_16(), *classes((1, 3, 224, 224), 1000)


def small_transformer() -> Case:
    build = lambda: models.vision_transformer.VisionTransformer(32, 4, 4, 4, 128, 512, dropout=0.1, num_classes=10)  # noqa: E731
    return build, *classes((64, 3, 32, 32), 10)


def language() -> Case:
    text = torch.randint(0, 8192, (8, 257))
    return lambda: GPT(8192, 256, 6, 384, 6), (text[:, :-1], text[:, 1:]), lambda out: out[1]


def recurrent() -> Case:
    return Reader, *classes((16, 64, 128), 10)


CASES: dict[str, Callable[[], Case]] = {
    "mlp": mlp, "small_vit": small_transformer, "resnet18_64": lambda: convolutional(64, 8),
    "resnet18_224": lambda: convolutional(224, 4), "vit_b_16": transformer, "gpt": language, "lstm": recurrent,
}  # fmt: skip
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD, momentum": lambda params: torch.optim.SGD(params, lr=1e-3, momentum=0.9),
    "Adam": lambda params: torch.optim.Adam(params, lr=1e-4),
}


def measured(case: Case, make: Callable[[Any], Any], in_backward: bool) -> tuple[int, float, int]:
    """The estimate, the seconds it took, and the peak of two steps."""
    build, arguments, loss = case
    gc.collect()
    held = memory.current()
    model = build()
    optimizer = make(model.parameters())
    handle = torch.optim.in_backward(optimizer) if in_backward else None
    start = perf_counter()
    found = memory.estimate(model, arguments, optimizer, loss=loss).peak
    seconds = perf_counter() - start
    gc.collect()
    memory.reset_peak()
    for _ in range(2):
        optimizer.zero_grad()
        loss(model(*arguments)).backward()
        optimizer.step()
    if handle is not None:
        handle.remove()
    inputs = sum({id(x.untyped_storage()): x.untyped_storage().nbytes() for x in arguments}.values())
    return found, seconds, memory.peak() - held + inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    worst = 0.0
    print(f"{'model':<14}{'optimizer':<16}{'steps':<12}{'estimated':>11}{'measured':>11}{'apart':>8}{'took':>9}")
    for name in parser.parse_args().only:
        for optimizer, make in OPTIMIZERS.items():
            for in_backward in (False, True):
                found, seconds, peak = measured(CASES[name](), make, in_backward)
                worst = max(worst, abs(found / peak - 1))
                print(f"{name:<14}{optimizer:<16}{'in backward' if in_backward else 'plain':<12}{human(found):>11}"
                      f"{human(peak):>11}{found / peak - 1:>+8.1%}{seconds:>8.2f}s", flush=True)  # fmt: skip
    print(f"farthest apart: {worst:.1%}, allowed {LIMIT:.0%}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
