"""The kernels against PyTorch's, alternating in one run; prints medians and their ratio (ours / theirs).

    python benchmarks/kernels.py                 # everything, about half a minute
    python benchmarks/kernels.py softmax adam    # what contains these words
    python benchmarks/kernels.py --threads 1 --repeat 50

Needs torch.  Both sides get the same number of threads and the same arrays.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.backends import blas

blas.prepare()

import numpy as np
import torch

from rushlight import kernels as K

F = torch.nn.functional
ATEN = torch.ops.aten
SGD = {
    "weight_decay": 0.0,
    "momentum": 0.9,
    "lr": 1e-3,
    "dampening": 0.0,
    "nesterov": False,
    "maximize": False,
    "is_first_step": False,
}
COUNT = torch.tensor(3.0)  # steps taken
Call = Callable[[], Any]
Case = tuple[str, Call, Call]
rng = np.random.default_rng(0)


def array(*shape: int) -> Any:
    return rng.standard_normal(shape).astype("f4")


def elementwise() -> Iterator[Case]:
    for shape in ((16, 512), (2048, 1536)):
        x, g = array(*shape), array(*shape)
        a, b = torch.from_numpy(x), torch.from_numpy(g)
        for name in ("exp", "tanh", "erf", "sigmoid", "log"):
            yield (
                f"{name} {shape}",
                lambda x=x, name=name: getattr(K, name)(x),
                lambda a=a, name=name: getattr(torch, name)(a),
            )
        for name in ("gelu", "silu", "softplus"):
            yield (
                f"{name} {shape}",
                lambda x=x, name=name: getattr(K, name)(x),
                lambda a=a, name=name: getattr(F, name)(a),
            )
        yield f"gelu tanh {shape}", lambda x=x: K.gelu(x, 1), lambda a=a: F.gelu(a, approximate="tanh")
        yield (
            f"gelu backward {shape}",
            lambda g=g, x=x: K.gelu_backward(g, x),
            lambda a=a, b=b: ATEN.gelu_backward(b, a),
        )
        yield (
            f"relu backward {shape}",
            lambda g=g, x=x: K.relu_backward(g, x),
            lambda a=a, b=b: ATEN.threshold_backward(b, a, 0),
        )


def rows() -> Iterator[Case]:
    for shape, axis in (((64, 128), 1), ((2048, 1536), 1), ((8, 1000, 512), 1)):
        x, g = array(*shape), array(*shape)
        a, b = torch.from_numpy(x), torch.from_numpy(g)
        y = K.softmax(x, axis)
        c = torch.from_numpy(y)
        label = f"{shape} axis {axis}"
        yield f"softmax {label}", lambda x=x, d=axis: K.softmax(x, d), lambda a=a, d=axis: a.softmax(d)
        yield f"log_softmax {label}", lambda x=x, d=axis: K.log_softmax(x, d), lambda a=a, d=axis: a.log_softmax(d)
        yield (
            f"softmax backward {label}",
            lambda g=g, y=y, d=axis: K.softmax_backward(g, y, d),
            lambda b=b, c=c, d=axis: torch._softmax_backward_data(b, c, d, torch.float32),
        )
    x, target = array(2048, 5000), rng.integers(0, 5000, 2048)
    leaf, t = torch.from_numpy(x), torch.from_numpy(target)
    yield (
        "cross_entropy (2048, 5000)",
        lambda: K.cross_entropy(x, target),
        lambda: F.cross_entropy(leaf, t, reduction="none"),
    )


def norms() -> Iterator[Case]:
    for shape in ((32, 64), (2048, 384)):
        x, g, w = array(*shape), array(*shape), array(shape[1])
        a, b, c = (torch.from_numpy(v) for v in (x, g, w))
        _, m, r = K.layer_norm(x, w, w, 1e-5)
        mean, rstd = torch.from_numpy(m)[:, None], torch.from_numpy(r)[:, None]
        yield (
            f"layer_norm {shape}",
            lambda x=x, w=w: K.layer_norm(x, w, w, 1e-5),
            lambda a=a, c=c, n=shape[1]: F.layer_norm(a, (n,), c, c),
        )
        yield (
            f"layer_norm backward {shape}",
            lambda g=g, x=x, m=m, r=r, w=w: K.layer_norm_backward(g, x, m, r, w),
            lambda a=a, b=b, c=c, m=mean, r=rstd, n=shape[1]: torch.ops.aten.native_layer_norm_backward(
                b, a, [n], m, r, c, c, [True] * 3
            ),
        )
    x, g, w = array(8, 64, 56, 56), array(8, 64, 56, 56), array(64)
    a, b, c = (torch.from_numpy(v) for v in (x, g, w))
    _, m, r = K.batch_norm_train(x, w, w, 1e-5)
    yield (
        "batch_norm (8, 64, 56, 56)",
        lambda: K.batch_norm_train(x, w, w, 1e-5),
        lambda: F.batch_norm(a, None, None, c, c, True),
    )
    yield (
        "batch_norm backward",
        lambda: K.batch_norm_backward(g, x, m, r, w),
        lambda: torch.ops.aten.native_batch_norm_backward(
            b, a, c, None, None, torch.from_numpy(m), torch.from_numpy(r), True, 1e-5, [True] * 3
        ),
    )
    yield "group_norm (8, 64, 56, 56)", lambda: K.group_norm(x, 8, w, w, 1e-5), lambda: F.group_norm(a, 8, c, c)


def attention() -> Iterator[Case]:
    for shape, causal in (((8, 6, 256, 64), True), ((2, 12, 197, 64), False), ((1, 8, 1024, 64), False)):
        q, k, v = (array(*shape) for _ in "qkv")
        a, b, c = (torch.from_numpy(x) for x in (q, k, v))
        leaves = [x.clone().requires_grad_() for x in (a, b, c)]
        label = f"{shape}{' causal' if causal else ''}"
        yield (
            f"sdpa {label}",
            lambda q=q, k=k, v=v, o=causal: K.sdpa(q, k, v, None, o),
            lambda a=a, b=b, c=c, o=causal: F.scaled_dot_product_attention(a, b, c, is_causal=o),
        )

        def ours(q: Any = q, k: Any = k, v: Any = v, o: bool = causal) -> None:
            y, lse = K.sdpa(q, k, v, None, o)
            K.sdpa_backward(y, q, k, v, lse, None, o)

        def theirs(leaves: Any = leaves, o: bool = causal) -> None:
            y = F.scaled_dot_product_attention(*leaves, is_causal=o)
            torch.autograd.grad(y, leaves, y.detach())

        yield f"sdpa both ways {label}", ours, theirs


def steps() -> Iterator[Case]:
    for n in (10_000, 8_000_000):
        p = [array(n) for _ in range(4)]
        p[3] = np.abs(p[3])
        t = [[torch.from_numpy(a.copy())] for a in p]
        yield (
            f"adam {n}",
            lambda p=p: K.adam(*p, None, 3, 1e-3, 0.9, 0.999, 1e-8),
            lambda t=t: torch._fused_adam_(
                *t,
                [],
                [COUNT],
                lr=1e-3,
                beta1=0.9,
                beta2=0.999,
                weight_decay=0.0,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            ),
        )
        yield (
            f"sgd momentum {n}",
            lambda p=p: K.sgd(p[0], p[1], p[2], 1e-3, 0.9),
            lambda t=t: torch._fused_sgd_(*t[:3], **SGD),
        )


def others() -> Iterator[Case]:
    g, idx = array(8192, 384), rng.integers(0, 5000, 8192)
    b, i = torch.from_numpy(g), torch.from_numpy(idx)
    yield (
        "embedding backward (8192, 384)",
        lambda: K.embedding_backward(g, idx, 5000),
        lambda: torch.ops.aten.embedding_dense_backward(b, i, 5000, -1, False),
    )
    x = array(2048, 1536)
    a, seed = torch.from_numpy(x), np.random.default_rng(0)
    yield "dropout (2048, 1536)", lambda: K.dropout(x, 0.1, seed), lambda: torch.native_dropout(a, 0.1, True)


def measure(ours: Call, theirs: Call, repeat: int) -> tuple[float, float]:
    """Median seconds of each, alternating; short calls are repeated within a measurement."""
    start = time.perf_counter()
    ours()
    theirs()
    inner = max(1, min(200, int(0.002 / (time.perf_counter() - start))))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for call, kept in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            for _ in range(inner):
                call()
            kept.append((time.perf_counter() - start) / inner)
    return statistics.median(times[0]), statistics.median(times[1])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="only cases that contain one of these")
    parser.add_argument("--threads", type=int, default=K.get_num_threads())
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    K.set_num_threads(options.threads)
    blas.set_num_threads(options.threads)
    torch.set_num_threads(options.threads)
    found = {}
    for family in (elementwise, rows, norms, attention, steps, others):
        for name, ours, theirs in family():
            if options.words and not any(word in name for word in options.words):
                continue
            a, b = measure(ours, theirs, options.repeat)
            found[name] = {"ours_ms": a * 1e3, "torch_ms": b * 1e3, "ratio": a / b}
            if not options.json:
                print(f"{name:44} {a * 1e3:9.4f} ms  torch {b * 1e3:9.4f} ms  ratio {a / b:5.2f}", flush=True)
    if options.json:
        print(json.dumps({"threads": options.threads, "native": K.native_status()["state"], "cases": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
