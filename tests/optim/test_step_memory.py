"""A step takes no memory of the size of what it steps, whatever the optimizer and the way of stepping."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rushlight as torch
from rushlight import memory

pytestmark = pytest.mark.skipif(not memory.is_counted(), reason="memory is counted where native kernels are")
ELEMENTWISE = ("SGD", "Adam", "AdamW", "Adam8bit", "Lion8bit", "SGD8bit", "Lion", "Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop",
               "Rprop")  # fmt: skip
WAYS: list[dict[str, Any]] = [
    {}, {"foreach": True}, {"foreach": False}, {"fused": True}, {"maximize": True}, {"weight_decay": 0.1},
    {"amsgrad": True}, {"centered": True, "momentum": 0.9}, {"nesterov": True, "momentum": 0.9},
]  # fmt: skip
SIZE = 1200  # of square parameters: 5.8 MB each
BLOCKS = 13 << 18  # bytes: thirteen blocks of 65,536 float32 numbers, however large a parameter is


def taken(optimizer: Any, params: list[Any]) -> int:
    """Bytes that the second step needs for a while."""
    for p in params:
        p.grad = torch.randn(*p.shape, dtype=p.dtype)
    optimizer.step()
    memory.reset_peak()
    before = memory.current()
    optimizer.step()
    return int(memory.peak() - before)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_formulas_work_in_blocks(name: str, dtype: str) -> None:
    make = getattr(torch.optim, name)
    for way in WAYS:
        if "amsgrad" in way and name.endswith("8bit"):
            continue  # which refuse it
        if all(option in inspect.signature(make).parameters for option in way):
            params = [torch.nn.Parameter(torch.randn(SIZE, SIZE, dtype=getattr(torch, dtype))) for _ in range(2)]
            assert taken(make(params, **way), params) <= BLOCKS, way


def test_muon_needs_two_products_of_one_matrix() -> None:
    params = [torch.nn.Parameter(torch.randn(SIZE, SIZE)) for _ in range(2)]
    assert taken(torch.optim.Muon(params), params) <= 3 * params[0].nbytes + BLOCKS
