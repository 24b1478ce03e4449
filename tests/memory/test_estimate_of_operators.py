"""Estimates of single operators, whose kernels copy what does not lie side by side and work in blocks, against what they take."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory

nn, F = torch.nn, torch.nn.functional

OPERATORS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "cdist": (((600, 32), (700, 32)), torch.cdist),
    "cdist of long rows": (((500, 300), (600, 300)), torch.cdist),
    "cdist by differences": (((600, 32), (700, 32)), lambda a, b: torch.cdist(a, b, p=1.0)),
    "cdist of cubes": (((600, 32), (700, 32)), lambda a, b: torch.cdist(a, b, p=3.0)),
    "cumsum of channels": (((8, 32, 64, 64),), lambda a: a.cumsum(1)),
    "pdist": (((800, 32),), F.pdist),
    "logcumsumexp": (((600, 700),), lambda a: torch.logcumsumexp(a, 1)),
    "logcumsumexp of many lines": (((200_000, 2),), lambda a: torch.logcumsumexp(a, 1)),
    "det": (((500, 500),), torch.linalg.det),
    "det of a batch": (((2000, 16, 16),), torch.linalg.det),
    "local_response_norm": (((4, 32, 64, 64),), lambda a: F.local_response_norm(a, 5)),
    "local_response_norm of small images": (((2, 16, 30, 30),), lambda a: F.local_response_norm(a, 3)),
    "instance_norm": (((4, 32, 64, 64),), F.instance_norm),
    "group_norm": (((4, 32, 50, 50), (32,), (32,)), lambda a, w, b: F.group_norm(a, 8, w, b)),
    "grid_sample": (((4, 16, 64, 64), (4, 64, 64, 2)), lambda a, at: F.grid_sample(a, at, align_corners=False)),
    "glu": (((600, 800),), F.glu),
    "sort": (((600, 700),), lambda a: a.sort(1)[0]),
    "reflections": (((4, 32, 64, 64),), lambda a: F.pad(a, (3, 3, 3, 3), mode="reflect")),
    "cummax": (((600, 700),), lambda a: a.cummax(1)[0]),
    "gather": (((600, 700),), lambda a: a.gather(1, torch.randint(0, 700, (600, 700)))),
    "index_select": (((600, 700),), lambda a: a.index_select(0, torch.randint(0, 600, (500,)))),
    "unfold": (((4, 16, 40, 40),), lambda a: F.unfold(a, 3)),
    "interpolate": (((4, 16, 40, 40),), lambda a: F.interpolate(a, scale_factor=2, mode="bicubic")),
    "interpolate, channels innermost": (
        ((4, 40, 40, 16),),
        lambda a: F.interpolate(a.permute(0, 3, 1, 2), scale_factor=2, mode="bilinear"),
    ),
    "linear": (((700, 300), (500, 300)), F.linear),
    "linear of sequences": (((20, 35, 300), (500, 300), (500,)), F.linear),
    "batch_norm": (((4, 32, 64, 64),), lambda a: F.batch_norm(a, None, None, training=True)),
    "dropout": (((600, 700),), F.dropout),
    "max_pool2d": (((4, 16, 60, 60),), lambda a: F.max_pool2d(a, 2)),
    "index": (((600, 700),), lambda a: a[torch.randint(0, 600, (500,))]),
    "inv": (((300, 300),), lambda A: torch.linalg.inv(A + 20 * torch.eye(300))),
    "einsum": (((64, 100, 64), (64, 64, 100)), lambda a, b: torch.einsum("bij,bjk->bik", a, b)),
}


class Called(nn.Module):
    def __init__(
        self, fn: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], frozen: int = 0, dtype: Any = torch.float32
    ):
        super().__init__()
        self.fn = fn
        self.given = nn.ParameterList([nn.Parameter(torch.rand(*shape).to(dtype)) for shape in shapes])
        for p in list(self.given)[len(shapes) - frozen :]:
            p.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.fn(*self.given)


def compared(model: Any, loss: Callable[[Any], Any]) -> tuple[int, int]:
    """The peak as it is foretold, and as it is measured the second time."""
    x = torch.zeros(1)
    foretold = memory.estimate(model, x, loss=loss).peak
    held = sum(p.nbytes for p in model.parameters()) - memory.current()
    for _ in range(2):
        model.zero_grad()
        gc.collect()
        memory.reset_peak()
        loss(model(x)).backward()
    return foretold, memory.peak() + held


@native
@pytest.mark.parametrize("loss", [lambda y: y.sum(), lambda y: (y * y).sum()], ids=["spread", "dense"])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_peak_of_an_operator(name: str, loss: Callable[[Any], Any]) -> None:
    shapes, fn = OPERATORS[name]
    torch.manual_seed(0)
    gc.collect()
    foretold, measured = compared(Called(fn, shapes), loss)
    assert abs(foretold / measured - 1) < 0.03


@native
def test_distances_from_rows_that_are_frozen() -> None:
    torch.manual_seed(0)
    model = Called(torch.cdist, ((600, 32), (700, 32)), frozen=1)
    foretold, measured = compared(model, lambda y: y.sum())
    assert abs(foretold / measured - 1) < 0.03
    one = model.given[0].grad
    model.given[1].requires_grad_()
    model.zero_grad()
    model(None).sum().backward()
    assert torch.equal(model.given[0].grad, one)


LABELS = torch.arange(1500) % 1000
OF_16_BITS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    **{name: OPERATORS[name] for name in ("linear", "linear of sequences", "logcumsumexp", "reflections", "dropout")},
    **{name: OPERATORS[name] for name in ("batch_norm", "grid_sample", "einsum", "gather", "sort")},
    "matmul": (((700, 300), (300, 500)), torch.matmul),
    "maximum": (((1000, 700), (1000, 700)), torch.maximum),
    "conv2d": (((4, 32, 50, 50), (48, 32, 3, 3)), F.conv2d),
    "conv2d by channel": (((4, 32, 60, 60), (32, 1, 3, 3)), lambda a, w: F.conv2d(a, w, groups=32)),
    "conv2d with strides": (((4, 32, 60, 60), (48, 32, 3, 3)), lambda a, w: F.conv2d(a, w, stride=2)),
    "conv_transpose2d": (((4, 32, 40, 40), (32, 16, 2, 2)), lambda a, w: F.conv_transpose2d(a, w, stride=2)),
    "relu": (((1000, 700),), F.relu),
    "leaky_relu": (((1000, 700),), F.leaky_relu),
    "mish": (((1000, 700),), F.mish),
    "logsigmoid": (((1000, 700),), F.logsigmoid),
    "with logits": (((1000, 700),), lambda a: F.binary_cross_entropy_with_logits(a, a.detach())),
    "norm of order 3": (((1000, 700),), lambda a: a.norm(3)),
    "infinite norm": (((1000, 700),), lambda a: a.norm(math.inf)),
    "cdist": OPERATORS["cdist"],
    "cdist of cubes": OPERATORS["cdist of cubes"],
    "bilinear": (((512, 64), (512, 32), (64, 64, 32)), F.bilinear),
    "elu": (((1000, 700),), F.elu),
    "repeat": (((1000, 700),), lambda a: a.repeat(2, 1)),
    "kl_div": (((1000, 700),), lambda a: F.kl_div(a, a.detach(), reduction="sum")),
    "threshold": (((1000, 700),), lambda a: F.threshold(a, 0.3, 0.1)),
    "local_response_norm": (((8, 32, 64, 64),), lambda a: F.local_response_norm(a, 5)),
    "of probabilities": (((1000, 700),), lambda a: F.binary_cross_entropy(a, a.detach())),
    "sort of short rows": (((200_000, 4),), lambda a: a.sort(1)[0]),
    "pow": (((1000, 700), (1000, 700)), torch.pow),
    "trapezoid": (((1000, 700),), torch.trapezoid),
    "soft margins": (((1000, 700),), lambda a: F.soft_margin_loss(a, a.detach())),
    "linear_cross_entropy": (((1500, 128), (1000, 128)), lambda a, w: F.linear_cross_entropy(a, w, LABELS)),
}


@native
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", OF_16_BITS)
def test_the_peak_of_an_operator_on_16_bits(name: str, dtype: Any) -> None:
    shapes, fn = OF_16_BITS[name]
    torch.manual_seed(0)
    gc.collect()
    foretold, measured = compared(Called(fn, shapes, dtype=dtype), lambda y: (y * y).sum())
    assert abs(foretold / measured - 1) < 0.03


@native
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    ("name", "times"),
    [("relu", 4), ("leaky_relu", 4), ("dropout", 4), ("mish", 6), ("logsigmoid", 6), ("with logits", 6), ("maximum", 6),
     ("grid_sample", 5), ("reflections", 5), ("logcumsumexp", 8), ("norm of order 3", 2), ("infinite norm", 2), ("threshold", 4),
     ("local_response_norm", 3), ("of probabilities", 3), ("soft margins", 3), ("trapezoid", 3),
     ("sort", 7), ("pow", 5)],
)  # fmt: skip
def test_16_bits_are_not_copied_whole(name: str, times: int, dtype: Any) -> None:
    shapes, fn = OF_16_BITS[name]
    larger = tuple((4 * shape[0], *shape[1:]) for shape in shapes)
    model = Called(fn, larger, dtype=dtype)
    y = fn(*model.given)
    grad = torch.ones_like(y)
    del y
    gc.collect()
    memory.reset_peak()
    before = memory.current()
    fn(*model.given).backward(grad)
    assert memory.peak() - before < times * model.given[0].nbytes


WRITES: dict[str, Callable[[Any, Any], Any]] = {  # how wider numbers become 16 bits
    "to": lambda x, y: x.to(y.dtype),
    "to, turned": lambda x, y: x.t().to(y.dtype),
    "copy_": lambda x, y: y.copy_(x),
    "a slice": lambda x, y: y.__setitem__(slice(None), x),
    "a slice that is turned": lambda x, y: y.__setitem__(slice(None), x.t()),
    "in place": lambda x, y: y.mul_(x),
}


@native
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_wider_numbers_become_16_bits_a_part_at_a_time(name: str, dtype: Any) -> None:
    x, y = torch.ones(1400, 1400, dtype=dtype), torch.ones(1400, 1400, dtype=torch.bfloat16)
    made = {
        "to": y.nbytes,
        "to, turned": y.nbytes,
        "in place": y.nbytes + 2 * x.nbytes,
    }  # operands in one dtype, their product
    gc.collect()
    memory.reset_peak()
    before = memory.current()
    WRITES[name](x, y)
    assert memory.peak() - before <= made.get(name, 0) + (1 << 21)
