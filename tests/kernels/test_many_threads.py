"""A convolution has the same bits on any number of threads, however these share the work."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.kernels.native import loader

F = torch.nn.functional

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
# batch, channels, outputs, sizes, kernel, stride, groups
SHAPES = [
    (4, 64, 64, (14, 14), 3, 1, 1),  # by points: one strip of tiles, and some
    (3, 160, 72, (12, 12), 3, 1, 1),  # more channels than are summed up at once
    (4, 256, 256, (14, 14), 3, 1, 1),  # more outputs than are made at once
    (8, 48, 40, (28, 28), 3, 1, 2),
    (2, 32, 32, (40, 40), 3, 1, 1),
    (4, 64, 128, (28, 28), 1, 1, 1),  # gradients by weights in few parts
    (4, 256, 256, (7, 7), 1, 1, 1),  # gradients by inputs in few blocks
    (1, 32, 64, (4096,), 3, 1, 1),  # directly: slabs of one row, of rows, of slices
    (1, 8, 16, (64, 64), 5, 1, 1),
    (2, 8, 16, (16, 32, 32), 3, 1, 1),
    (2, 24, 40, (9, 9), 3, 2, 1),
    (2, 3, 16, (32, 32), 7, 2, 1),
    (2, 32, 32, (16, 16), 3, 1, 32),
]


def results(shape: tuple[Any, ...]) -> list[Any]:
    batch, channels, outputs, sizes, kernel, stride, groups = shape
    torch.manual_seed(0)
    x = torch.randn(batch, channels, *sizes, requires_grad=True)
    w = torch.randn(outputs, channels // groups, *[kernel] * len(sizes), requires_grad=True)
    y = CONVOLUTIONS[len(sizes)](x, w, stride=stride, padding=kernel // 2, groups=groups)
    return [y.detach(), *torch.autograd.grad(y, (x, w), torch.randn_like(y))]


@pytest.mark.skipif(not loader.tables(), reason="no native kernels here")  # BLAS cuts sums by threads
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convolutions(shape: tuple[Any, ...]) -> None:
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 7, 16, 40):
            torch.set_num_threads(threads)
            found.append(results(shape))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))
