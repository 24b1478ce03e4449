"""What operators would take on many threads, told on any machine.

    python benchmarks/imagined_threads.py [--threads 16] [--only WORD ...]

Kernels run with `imagined_pool.cpp` in place of their pool: one thread does all pieces in turn, and each is put down to the
imagined thread that would be free first.  A row says what the operator takes on one thread, how much of it is outside of
kernels (Python, NumPy, BLAS), what the busiest thread does, in how many jobs and pieces, and what remains of one thread's
time on so many, where 1/threads is the best.  Not told: caches and memory that threads share, and what waking them takes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "rushlight"
INSIDE = "RUSHLIGHT_IMAGINED"  # in the environment of the process whose pool is replaced
HEAD = f"{'us':44} {'one':>8} {'outside':>8} {'busiest':>8} {'jobs':>5} {'pieces':>6} {'of one':>7}"

Case = Callable[[], Any]

# channels, outputs, kernel, stride, size: of the layers of a ResNet-50 on pictures of 112 px
CONVOLUTIONS = (
    *((3, 64, 7, 2, 112), (64, 64, 1, 1, 28), (64, 64, 3, 1, 28), (64, 256, 1, 1, 28), (256, 128, 1, 1, 28)),
    *((128, 128, 3, 2, 28), (128, 512, 1, 1, 14), (128, 128, 3, 1, 14), (512, 256, 1, 1, 14), (256, 256, 3, 2, 14)),
    *((256, 1024, 1, 1, 7), (256, 256, 3, 1, 7), (1024, 512, 1, 1, 7), (512, 512, 3, 1, 4), (512, 2048, 1, 1, 4)),
)


def convolutions(torch: Any) -> dict[str, Case]:
    """Each layer, on four pictures, and its gradients."""
    found: dict[str, Case] = {}
    for channels, outputs, kernel, stride, size in CONVOLUTIONS:
        x = torch.randn(4, channels, size, size, requires_grad=True)
        w = torch.randn(outputs, channels, kernel, kernel, requires_grad=True)
        name = f"convolution {channels}-{outputs} {kernel}x{kernel}/{stride} {size} px"
        found |= with_gradients(
            torch, name, lambda x=x, w=w, s=stride, k=kernel: torch.conv2d(x, w, stride=s, padding=k // 2), x, w
        )
    return found


def with_gradients(torch: Any, name: str, call: Case, *of: Any) -> dict[str, Case]:
    """A call that records nothing, and its backward."""
    y = call()
    g = torch.ones_like(y)

    def forward() -> Any:
        with torch.no_grad():
            return call()

    return {name: forward, f"{name}, backward": lambda: torch.autograd.grad(y, of, g, retain_graph=True)}


def operators(torch: Any) -> dict[str, Case]:
    """Of other families: rows, channels, attention, copies, recurrent layers, optimizers."""
    F, nn = torch.nn.functional, torch.nn
    rows, image = torch.randn(394, 768), torch.randn(4, 64, 56, 56)
    q = torch.randn(2, 12, 197, 64, requires_grad=True)
    volume, taps = torch.randn(2, 8, 16, 32, 32, requires_grad=True), torch.randn(16, 8, 3, 3, 3, requires_grad=True)
    lstm, steps = nn.LSTM(256, 256), torch.randn(64, 16, 256)
    parameters = [torch.randn(512, 512, requires_grad=True) for _ in range(20)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    return {
        "layer_norm 394 x 768": lambda: F.layer_norm(rows, (768,)),
        "softmax 394 x 768": lambda: torch.softmax(rows, -1),
        "gelu 394 x 768": lambda: F.gelu(rows),
        "add 394 x 768": lambda: rows + rows,
        "cat 3 x 394 x 768": lambda: torch.cat([rows, rows, rows], 1),
        "sum of columns 394 x 768": lambda: rows.sum(0),
        "sort 394 x 768": lambda: torch.sort(rows, 1),
        "dropout 394 x 768": lambda: F.dropout(rows),
        "batch_norm 4 x 64 x 56 x 56": lambda: F.batch_norm(image, None, None, training=True),
        "max_pool2d 4 x 64 x 56 x 56": lambda: F.max_pool2d(image, 3, 2, 1),
        "interpolate 4 x 64 x 56 x 56": lambda: F.interpolate(image, scale_factor=2, mode="bilinear"),
        **with_gradients(torch, "attention 2 x 12 x 197 x 64", lambda: F.scaled_dot_product_attention(q, q, q), q),
        **with_gradients(torch, "conv3d 2 x 8 x 16 x 32 x 32", lambda: F.conv3d(volume, taps, padding=1), volume, taps),
        "LSTM 64 x 16 x 256, with backward": lambda: lstm(steps)[0].sum().backward(),
        "Adam, 20 of 512 x 512": torch.optim.Adam(parameters, 1e-9).step,
        "clip_grad_norm_, 20 of 512 x 512": lambda: nn.utils.clip_grad_norm_(parameters, 1.0),
    }  # fmt: skip


def measured(tell: Any, call: Case) -> tuple[float, list[float]]:
    """Microseconds of the fastest of some calls, and what the pool told of it."""
    told, best = (ctypes.c_double * 4)(), (float("inf"), [0.0] * 4)
    for _ in range(7):
        tell(told)
        start = time.perf_counter()
        call()
        took = (time.perf_counter() - start) * 1e6
        tell(told)
        best = min(best, (took, list(told)))
    return best


def show(threads: int, only: list[str]) -> None:
    """The table, in the process whose pool is replaced."""
    import rushlight as torch
    from rushlight.backends import blas
    from rushlight.kernels.native import loader

    tell = ctypes.CDLL(str(loader.library())).rl_told
    torch.manual_seed(0)
    cases = operators(torch) | convolutions(torch)
    torch.set_num_threads(threads)
    blas.set_num_threads(1)  # whose threads are real
    print(f"{threads} imagined threads\n\n{HEAD}")
    for name, call in cases.items():
        if only and not any(word in name for word in only):
            continue
        one, (work, span, jobs, pieces) = measured(tell, call)
        outside = one - work
        print(
            f"{name:44} {one:8.0f} {outside:8.0f} {span:8.0f} {jobs:5.0f} {pieces:6.0f} {(outside + span) / one:7.2f}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--threads", type=int, default=16, help="imagined ones (default: 16)")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="operators in whose names one of these is"
    )
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        show(options.threads, options.only)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "rushlight"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "compiled"))
        shutil.copy(HERE / "imagined_pool.cpp", copy / "kernels" / "native" / "pool.cpp")
        environment = os.environ | {"PYTHONPATH": folder, INSIDE: "1"}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
