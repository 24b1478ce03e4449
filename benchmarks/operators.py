"""Single operators against PyTorch on a million elements, forward without gradients and forward with backward.

    python benchmarks/operators.py                    # all of them on one thread, about five minutes
    python benchmarks/operators.py --only sum cumsum  # those whose expression contains one of these words
    python benchmarks/operators.py --above 1.5        # print only what takes more than 1.5 times PyTorch's time

Needs torch.  Each is an expression that both libraries evaluate on equal arrays: x, y (1000, 1000), p of the same shape
and positive, v (1000,), m (1000, 1000) bool, i (1000, 1000) and j (1000,) indices, c (8, 32, 64, 64) images, h (16, 256,
256), s (5, 7); T is the library, F its nn.functional.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rushlight  # before torch: it chooses the BLAS core type

import numpy as np
import torch

from pairs import same_threads

N = 1000
EVERY = [
    *(f"T.{f}(p)" for f in ("relu sigmoid tanh exp log sqrt rsqrt abs neg sin cos erf reciprocal floor round sign square expm1 "
                            "log1p clone").split()),
    *(f"F.{f}(x)" for f in ("gelu silu softplus elu leaky_relu hardswish mish selu hardtanh logsigmoid celu glu").split()),
    "x + y", "x * y", "x / p", "x - y", "x ** 2", "x ** 3", "p ** 0.5", "p ** y", "x + 1.5", "x * 1.5", "x + v", "x + v[:, None]",
    "x * v", "x * v[:, None]", "T.maximum(x, y)", "T.where(m, x, y)", "x.clamp(-1, 1)", "T.lerp(x, y, 0.3)", "T.addcmul(x, x, y)",
    "x.masked_fill(m, 0.0)", "T.hypot(x, y)", "T.atan2(x, y)", "F.prelu(x, v[:1])",
    *(f"x.{f}({d})" for f in "sum mean amax amin prod std var norm".split() for d in ("", "dim=0", "dim=1")),
    *(f.replace("D", d) for d in "01" for f in (
        "x.logsumexp(D)", "x.max(D)[0]", "x.cumsum(D)", "x.cumprod(D)", "x.cummax(D)[0]", "x.softmax(D)", "x.log_softmax(D)",
        "x.sort(D)[0]", "x.topk(10, D)[0]", "x.flip(D)", "x.roll(3, D)", "T.cat([x, y], D)", "T.stack([x, y], D)",
        "x.index_select(D, j)", "x.gather(D, i)", "x.scatter_add(D, i, y)", "x.index_add(D, j, y)", "x.diff(dim=D)",
        "F.normalize(x, dim=D)", "x.median(D)[0]", "x.logcumsumexp(D)")),
    "x.t().contiguous()", "h.permute(2, 0, 1).contiguous()", "x + y.t()", "x.t().sum(0)", "x[::2, ::2] * 2", "x.repeat(2, 2)",
    "x.repeat_interleave(2, 0)", "v.expand(1000, 1000).contiguous()", "x.tril()", "x[j]", "x[j, j]", "x[m]", "F.pad(x, (1, 1, 1, 1))",
    "x.trace()", "F.unfold(c, 3)", "x @ y", "x @ v", "h @ h.transpose(1, 2)", "T.einsum('ij,kj->ik', x, y)", "T.outer(v, v)",
    "T.cdist(x[:300], x[300:600])", "T.addmm(v, x, y)", "F.layer_norm(x, (1000,), v, v)", "F.group_norm(c, 8)",
    "F.batch_norm(c, None, None, training=True)", "F.instance_norm(c)", "F.max_pool2d(c, 2)", "F.avg_pool2d(c, 2)",
    "F.adaptive_avg_pool2d(c, 7)", "F.interpolate(c, scale_factor=2)", "F.interpolate(c, scale_factor=2, mode='bilinear')",
    "F.pixel_shuffle(c, 2)", "F.dropout(x, 0.5)", "F.cross_entropy(x, j)", "F.mse_loss(x, y)", "F.l1_loss(x, y)",
    "F.smooth_l1_loss(x, y)", "F.binary_cross_entropy_with_logits(x, m.float())", "F.cosine_similarity(x, y)",
    "F.grid_sample(c, c[:, :2].permute(0, 2, 3, 1), align_corners=False)", "F.scaled_dot_product_attention(h, h, h)",
    "F.conv2d(c, T.ones(32, 32, 3, 3), padding=1)", "F.conv2d(c, T.ones(32, 1, 3, 3), padding=1, groups=32)",
    "F.conv_transpose2d(c, T.ones(32, 32, 2, 2), stride=2)", "s + s", "s * s", "s.exp()", "s.sum()", "s.softmax(1)", "s @ s.t()",
]  # fmt: skip
WITHOUT_GRADIENT = [
    "x == y", "x < 0.0", "m & m", "m.sum()", "m.any(1)", "m.nonzero()", "x.isnan()", "i + i", "i.sum()", "i % 7", "i.float()", "x.double()",
    "x.bfloat16()", "x.half()", "i.unique()", "i.view(-1).bincount()", "x.argmax(0)", "x.argmax(1)", "T.randn(1000, 1000)",
    "T.rand(1000, 1000)", "T.randint(0, 9, (1000, 1000))", "T.randperm(100000)", "T.zeros(1000, 1000)", "T.arange(1000000)",
    "F.one_hot(j, 1000)", "x.sum().item()", "v.tolist()", "x.clone().copy_(y)", "x.clone().add_(y)", "T.linalg.inv(x[:300, :300])",
    "T.linalg.solve(x[:300, :300], y[:300])", "T.linalg.qr(x[:300, :300])[1]", "T.linalg.eigvalsh(x[:200, :200])", "T.fft.fft(x)",
]  # fmt: skip


def arrays() -> dict[str, Any]:
    """The operands by name, in NumPy."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32)

    x = normal(N, N)
    return {"x": x, "y": normal(N, N), "p": abs(normal(N, N)) + 0.1, "v": normal(N), "m": x > 0, "i": rng.integers(0, N, (N, N)),
            "j": rng.integers(0, N, N), "c": normal(8, 32, 64, 64), "h": normal(16, 256, 256), "s": normal(5, 7)}  # fmt: skip


def forward(library: Any, expression: str, names: dict[str, Any]) -> Callable[[], Any]:
    """The expression without gradients."""
    run = eval(f"lambda: {expression}", {"T": library, "F": library.nn.functional, **names})  # of this file

    def call() -> Any:
        with library.no_grad():
            return run()

    return call


def backward(library: Any, expression: str, names: dict[str, Any]) -> Callable[[], Any]:
    """The expression and the gradients of all that it is made of."""
    used = compile(expression, "", "eval").co_names
    leaves = {k: v.detach().clone().requires_grad_() for k, v in names.items() if k in used and v.is_floating_point()}
    run = eval(f"lambda: {expression}", {"T": library, "F": library.nn.functional, **names, **leaves})
    ones = library.ones_like(run().detach())
    return lambda: library.autograd.grad(run(), list(leaves.values()), ones)


def seconds(call: Callable[[], Any], least: float = 0.005, repeats: int = 5) -> float:
    """The best seconds per call, of runs that take `least` at least."""
    call()
    start = time.perf_counter()
    call()
    number = max(1, int(least / max(time.perf_counter() - start, 1e-7)))
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            call()
        best = min(best, (time.perf_counter() - start) / number)
    return best


def main() -> None:
    """Measure each operator in both libraries, one after the other; print the ratios, worst first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="expressions that contain one of these")
    parser.add_argument("--above", type=float, default=0.0, help="print ratios over this alone")
    parser.add_argument("--threads", type=int, default=1, help="for both libraries (default: one)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the seconds there")
    options = parser.parse_args()
    same_threads(options.threads)
    ours, theirs = ({k: make(v) for k, v in arrays().items()} for make in (rushlight.from_numpy, torch.from_numpy))
    cases = [(e, kind) for e in EVERY + WITHOUT_GRADIENT for kind in (forward, backward)
             if (kind is forward or e in EVERY) and any(word in e for word in options.only)]  # fmt: skip
    found = []
    for number, (expression, kind) in enumerate(cases):
        if sys.stderr.isatty():
            print(f"\r\033[K{number} of {len(cases)}  {expression}", end="", file=sys.stderr, flush=True)
        mine, other = kind(rushlight, expression, ours), kind(torch, expression, theirs)
        found.append((expression, kind.__name__, seconds(mine), seconds(other)))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    for expression, kind, a, b in sorted(found, key=lambda row: -row[2] / row[3]):
        if a / b >= options.above:
            print(f"{a / b:6.2f}  {expression:58} {kind:8} {a * 1e6:10.1f} us {b * 1e6:10.1f} us of PyTorch")
    mean = math.exp(sum(math.log(a / b) for *_, a, b in found) / max(len(found), 1))
    print(f"{len(found)} comparisons, geometric mean {mean:.2f}, {sum(a > b for *_, a, b in found)} over 1")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
