"""Forward mode through whole layers, against finite differences, and in every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwd
from rushlight import nn
from rushlight.basics.tree import tree_leaves
from rushlight.func import functional_call, jvp


def noise(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape))


LAYERS = {
    "transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True), (noise(2, 3, 8), noise(2, 3, 8))),
    "attention": (lambda: nn.MultiheadAttention(4, 2, batch_first=True), (noise(2, 3, 4),) * 3),
    "lstm": (lambda: nn.LSTM(4, 5, batch_first=True), (noise(2, 3, 4),)),
    "gru": (lambda: nn.GRUCell(4, 4), (noise(2, 4),)),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                          nn.Linear(8, 2)), (noise(3, 1, 6, 6),)),
    "embedding": (lambda: nn.Embedding(5, 3), (torch.tensor([1, 2]),)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_tangents_of_parameters(name: str) -> None:
    torch.manual_seed(0)
    make, args = LAYERS[name]
    module = make().double()
    values = {k: p.detach() for k, p in module.named_parameters()}
    tangents = {k: torch.randn_like(p) for k, p in values.items()}

    def run(parameters: Any) -> Any:
        found = functional_call(module, parameters, args)
        return torch.cat([t.reshape(-1) for t in tree_leaves(found) if isinstance(t, torch.Tensor)])

    _, slope = jvp(run, (values,), (tangents,))
    ends = [run({k: p + sign * 1e-6 * tangents[k] for k, p in values.items()}).numpy() for sign in (1, -1)]
    np.testing.assert_allclose(slope.numpy(), (ends[0] - ends[1]) / 2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_tangents_have_the_dtype_of_their_values(dtype: Any) -> None:
    with fwd.dual_level():
        x = fwd.make_dual(torch.rand(3, 3).to(dtype), torch.rand(3, 3).to(dtype))
        for y in (
            x.tanh(),
            x @ x,
            x.sum(0),
            x * 2.5,
            torch.cat([x, x]),
            x.clone().mul_(x),
            x[0],
            torch.nn.functional.linear(x, x, x[0]),
        ):
            assert fwd.unpack_dual(y).tangent.dtype == y.dtype == dtype
