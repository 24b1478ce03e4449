"""Operators that call kernels, forward and backward, on tensors in every layout, held against PyTorch where it is installed,
else against the package's own results for tensors without gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tools.sweep_layouts import DTYPES, OTHER_NUMBERS, place

import rushlight
from rushlight import kernels
from rushlight.tensor import wrap

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


@dataclass
class Operator:
    """A call `run(F, *tensors)`, F being nn.functional of either library; all tensors of floats require gradients."""

    name: str
    shapes: tuple[Any, ...]
    run: Callable[..., Any]
    ints: dict[int, int] | None = None  # arguments that are indices, below a bound
    loose: float = 1.0
    wide: bool = False  # whether what is right for 16 bits is computed in float32


def cases() -> list[Operator]:
    return [*_elementwise(), *_products(), *_norms(), *_windows(), *_attention(), *_losses()]


def _elementwise() -> Iterator[Operator]:
    for shape in ((), (0,), (7,), (3, 31), (2, 3, 5), (65, 257)):
        for name in ("gelu", "silu", "softplus", "relu", "sigmoid", "tanh", "elu", "logsigmoid", "mish"):
            yield Operator(f"F.{name} {shape}", (shape,), lambda F, x, n=name: getattr(F, n)(x))
        for name in ("exp", "erf", "sqrt", "neg", "reciprocal", "sin", "expm1"):
            yield Operator(f"{name} {shape}", (shape,), lambda F, x, n=name: getattr(x * x + 0.5, n)())
        yield Operator(f"add, multiply, divide {shape}", (shape, shape), lambda F, x, y: (x + y) * x / (y * y + 1))
        if shape:
            for name, loose in (("softmax", 1.0), ("log_softmax", 4.0)):  # gradients of equal logarithms cancel
                yield Operator(f"F.{name} {shape}", (shape,), lambda F, x, n=name: getattr(F, n)(x, 0), loose=loose)
                last = f"F.{name} of the last {shape}"
                yield Operator(last, (shape,), lambda F, x, n=name: getattr(F, n)(x, -1), loose=loose)


def _products() -> Iterator[Operator]:
    for rows, k, n in ((0, 3, 2), (1, 1, 1), (7, 33, 5), (301, 7, 311)):
        yield Operator(f"F.linear {(rows, k, n)}", ((rows, k), (n, k), (n,)), lambda F, x, w, b: F.linear(x, w, b))
        yield Operator(
            f"F.linear with a bias of one {(rows, k, n)}",
            ((rows, k), (n, k), (1,)),
            lambda F, x, w, b: F.linear(x, w, b),
            loose=4,
        )
        yield Operator(f"matmul {(rows, k, n)}", ((2, rows, k), (2, k, n)), lambda F, x, y: x @ y)


def _norms() -> Iterator[Operator]:
    for r, c in ((0, 3), (1, 1), (7, 33), (65, 257)):
        yield Operator(
            f"F.layer_norm {(r, c)}", ((r, c), (c,), (c,)), lambda F, x, w, b: F.layer_norm(x, w.shape, w, b), loose=8
        )
        yield Operator(f"F.rms_norm {(r, c)}", ((r, c), (c,)), lambda F, x, w: F.rms_norm(x, w.shape, w, 1e-5), loose=8)
    for shape, groups in (((2, 6, 5), 3), ((3, 6, 4, 7), 2), ((5, 65, 3), 5)):
        c = shape[1]
        yield Operator(
            f"F.group_norm {shape}", (shape, (c,), (c,)), lambda F, x, w, b, g=groups: F.group_norm(x, g, w, b), loose=8
        )
        yield Operator(
            f"F.batch_norm {shape}",
            (shape, (c,), (c,)),
            lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True),
            loose=8,
        )
        yield Operator(
            f"F.instance_norm {shape}",
            (shape, (c,), (c,)),
            lambda F, x, w, b: F.instance_norm(x, None, None, w, b),
            loose=8,
            wide=True,  # of three equal gradients only rounding is left, which is 0.4 in PyTorch's 16 bits
        )


def _windows() -> Iterator[Operator]:
    yield Operator("F.conv1d", ((2, 3, 9), (4, 3, 3), (4,)), lambda F, x, w, b: F.conv1d(x, w, b, padding=1))
    for groups, stride, padding, dilation in ((1, 1, 0, 1), (2, 2, 1, 1), (4, 1, 2, 2), (1, 3, 1, 2)):
        more = (stride, padding, dilation, groups)
        yield Operator(f"F.conv2d {more}", ((2, 4, 9, 7), (8, 4 // groups, 3, 2), (8,)),
                       lambda F, x, w, b, m=more: F.conv2d(x, w, b, m[0], m[1], m[2], m[3]), loose=2)  # fmt: skip
        yield Operator(f"F.conv_transpose2d {more}", ((2, 4, 5, 7), (4, 6 // groups if 6 % groups == 0 else 2, 3, 2)),
                       lambda F, x, w, m=more: F.conv_transpose2d(x, w, None, m[0], 0, 0, m[3], m[2]), loose=2)  # fmt: skip
    yield Operator(
        "F.conv3d", ((1, 2, 5, 6, 4), (3, 2, 2, 3, 1)), lambda F, x, w: F.conv3d(x, w, None, (1, 2, 1), (0, 1, 0))
    )
    yield Operator("F.max_pool2d", ((2, 3, 9, 7),), lambda F, x: F.max_pool2d(x, 3, 2, 1))
    yield Operator("F.max_pool2d, ceil", ((2, 3, 9, 8),), lambda F, x: F.max_pool2d(x, 3, 2, 0, 1, True))
    yield Operator("F.avg_pool2d", ((2, 3, 9, 7),), lambda F, x: F.avg_pool2d(x, (3, 2), 2, 1))
    yield Operator("F.adaptive_avg_pool2d", ((2, 3, 9, 7),), lambda F, x: F.adaptive_avg_pool2d(x, (4, 3)))
    yield Operator("F.unfold", ((2, 3, 9, 7),), lambda F, x: F.unfold(x, (3, 2), padding=1))
    yield Operator("F.fold", ((2, 12, 20),), lambda F, x: F.fold(x, (5, 6), (2, 2)))


def _attention() -> Iterator[Operator]:
    for b, h, n, s, e in ((1, 1, 1, 1, 1), (4, 3, 5, 5, 7), (2, 2, 65, 33, 8)):
        shapes = ((b, h, n, e), (b, h, s, e), (b, h, s, e))
        yield Operator(
            f"attention {shapes}", shapes, lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v), loose=2
        )
        for mask in ((n, s), (n, 1), (1, 1), (1, h, n, s), (b, 1, n, s), (b, h, n, s)):
            yield Operator(f"attention {shapes} with mask {mask}", (*shapes, mask),
                           lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), loose=4)  # fmt: skip
            yield Operator(f"attention {shapes} with bool mask {mask}", (*shapes, mask),
                           lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m.detach() > -1), loose=4)  # fmt: skip


def _losses() -> Iterator[Operator]:
    for r, c in ((1, 1), (7, 33), (65, 7)):
        yield Operator(
            f"F.cross_entropy {(r, c)}",
            ((r, c), (r,)),
            lambda F, x, t: F.cross_entropy(x, t, reduction="sum"),
            {1: c},
            2,
        )
        yield Operator(f"F.cross_entropy, smoothed {(r, c)}", ((r, c), (r,)),
                       lambda F, x, t: F.cross_entropy(x, t, label_smoothing=0.1), {1: c}, 2)  # fmt: skip
        yield Operator(f"F.embedding {(r, c)}", ((9, c), (r, 2)), lambda F, w, i: F.embedding(i, w), {1: 9})
        yield Operator(f"index_add {(r, c)}", ((9, c), (r,), (r, c)), lambda F, x, i, y: x.index_add(0, i, y), {1: 9})
        yield Operator(f"gather and scatter_add {(r, c)}", ((9, c), (r, c)), lambda F, x, i: x.gather(0, i) * 2, {1: 9})
    yield Operator("F.embedding without columns", ((9, 0), (3,)), lambda F, w, i: F.embedding(i, w), {1: 9})


def run(sweep: Any, case: Operator, dtype: str) -> None:
    """An operator in all layouts of its arguments and of its result's gradient."""
    rng = np.random.default_rng([sweep.seed, len(case.name)])
    ints = case.ints or {}
    arrays = [
        rng.integers(0, ints[i], s) if i in ints else np.asarray(rng.standard_normal(s), DTYPES[dtype])
        for i, s in enumerate(case.shapes)
    ]
    sweep.counts["cases"] += 1
    g: Any = None
    kept: dict[Any, Any] = {}
    count = len(arrays) + 1
    for layout in sweep.layouts:
        if layout == "flipped":
            continue  # tensors have none
        for chosen in [[i] for i in range(count)] + [list(range(count))]:
            names = [
                layout if i in chosen and (layout not in OTHER_NUMBERS or i not in ints) else "contiguous"
                for i in range(count)
            ]
            if g is None:
                g = np.asarray(rng.standard_normal(_forward(case, rushlight, arrays).shape), DTYPES[dtype])
            _try(sweep, case, dtype, names, [*arrays, g], kept)
            if sweep.failures and case.name in sweep.failures[-1]:
                return


def _try(sweep: Any, case: Operator, dtype: str, names: list[str], arrays: list[Any], kept: dict[Any, Any]) -> None:
    from tools.sweep_kernels import TOLERANCE, differ, written

    key = tuple(n if n in OTHER_NUMBERS else "" for n in names)
    if key not in kept:
        seen = [place(a, n, "nan").array.copy() for a, n in zip(arrays, names, strict=True)]
        kept[key] = _right(case, seen)
    for fill in sweep.fills:
        for threads in sweep.threads:
            kernels.set_num_threads(threads)
            placed = [place(a, n, fill) for a, n in zip(arrays, names, strict=True)]
            try:
                found = _both(case, rushlight, [p.array for p in placed])
                said = differ(found, kept[key], TOLERANCE[dtype] * case.loose) or written(placed, ())
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            for name in ("evaluations", dtype, f"{threads} threads"):
                sweep.counts[name] += 1
            sweep.counts["results against PyTorch"] += len(kept[key]) if torch else 0
            if said:
                call = f"replay({case.name!r}, {dtype!r}, {names!r}, {fill!r}, {threads}, {sweep.seed})"
                sweep.failures.append(f"# {said}\nfrom tools.sweep_operators import replay\nprint({call})")
                return


def replay(name: str, dtype: str, layouts: list[str], fill: str, threads: int, seed: int) -> str:
    """Run one operator in one layout once more; what is wrong, or ""."""
    from tools.sweep_kernels import Sweep

    sweep = Sweep((threads,), (fill,), ("contiguous",), seed)
    case = next(c for c in cases() if c.name == name)
    rng, ints = np.random.default_rng([seed, len(name)]), case.ints or {}
    arrays = [
        rng.integers(0, ints[i], s) if i in ints else np.asarray(rng.standard_normal(s), DTYPES[dtype])
        for i, s in enumerate(case.shapes)
    ]
    g = np.asarray(rng.standard_normal(_forward(case, rushlight, arrays).shape), DTYPES[dtype])
    _try(sweep, case, dtype, layouts, [*arrays, g], {})
    return "\n".join(sweep.failures)


def _tensor(library: Any, array: Any) -> Any:
    if library is rushlight:
        return wrap(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(array)


def _forward(case: Operator, library: Any, arrays: list[Any]) -> Any:
    return case.run(library.nn.functional, *(_tensor(library, a) for a in arrays))


def _both(case: Operator, library: Any, arrays: list[Any]) -> list[Any]:
    """The result and the gradients of all floats, as arrays."""
    *inputs, g = (_tensor(library, a) for a in arrays)
    asked = [t.requires_grad_() for t in inputs if t.dtype.is_floating_point]
    out = case.run(library.nn.functional, *inputs)
    grads = library.autograd.grad(out, asked, g, allow_unused=True)
    return [_numbers(t) for t in (out.detach(), *grads) if t is not None]


def _right(case: Operator, arrays: list[Any]) -> list[Any]:
    """The result and the gradients that are held against rushlight's, in the dtype of the arrays."""
    narrow = arrays[-1].dtype
    if not case.wide or narrow.itemsize > 2:
        return _both(case, torch or rushlight, arrays)
    return [a.astype(narrow) for a in _both(case, torch or rushlight, [a.astype(np.float32) for a in arrays])]


def _numbers(t: Any) -> Any:
    if isinstance(t, rushlight.Tensor):
        return t._array
    return t.float().numpy().astype(DTYPES["bfloat16"]) if t.dtype == torch.bfloat16 else t.numpy()
