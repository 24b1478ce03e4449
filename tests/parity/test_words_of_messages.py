"""What programs look for in messages is in ours: PyTorch's words, with what was got behind them and the operator before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CASES: dict[str, Callable[[Any], Any]] = {
    "mm": lambda t: t.mm(t.ones(2, 3), t.ones(2, 3)),
    "matmul": lambda t: t.ones(2, 3) @ t.ones(2, 3),
    "matmul of a batch": lambda t: t.ones(2, 3, 4) @ t.ones(3, 4),
    "matmul of a vector": lambda t: t.ones(3) @ t.ones(4, 2),
    "matmul of batches": lambda t: t.ones(2, 3, 4) @ t.ones(2, 3, 4),
    "bmm": lambda t: t.bmm(t.ones(2, 3, 4), t.ones(3, 4, 5)),
    "linear": lambda t: t.nn.Linear(3, 2)(t.ones(2, 5, 4)),
    "linear of a vector": lambda t: t.nn.Linear(3, 2)(t.ones(4)),
    "convolution": lambda t: t.nn.Conv2d(3, 8, 3)(t.ones(2, 4, 8, 8)),
    "transposed convolution": lambda t: t.nn.ConvTranspose2d(3, 2, 2)(t.ones(1, 4, 5, 5)),
    "convolution of dimensions": lambda t: t.nn.functional.conv1d(t.ones(2, 2, 2, 2), t.ones(2, 2, 2)),
    "convolution of a small image": lambda t: t.nn.Conv2d(3, 2, 7)(t.ones(1, 3, 5, 5)),
    "pooling of a small image": lambda t: t.nn.functional.max_pool2d(t.ones(1, 2, 2, 2), 5),
    "dropout": lambda t: t.nn.functional.dropout(t.ones(2), 2.0),
    "batch norm": lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    "instance norm": lambda t: t.nn.functional.instance_norm(t.ones(1, 3, 1)),
    "topk": lambda t: t.ones(2).topk(5),
    "kthvalue": lambda t: t.ones(2).kthvalue(5),
    "pad": lambda t: t.nn.functional.pad(t.ones(2, 2), (1,)),
    "negative size": lambda t: t.empty(2, -3),
    "broadcast": lambda t: t.ones(3) + t.ones(2),
    "view": lambda t: t.ones(2, 3).t().view(6),
    "backward of no scalar": lambda t: (t.ones(2, requires_grad=True) * 2).backward(),
    "overlapping memory": lambda t: t.ones(1).expand(3).add_(1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_has_the_words_that_programs_look_for(name: str) -> None:
    with pytest.raises(Exception) as there:
        CASES[name](reference)
    with pytest.raises(type(there.value)) as here:
        CASES[name](rushlight)
    assert str(there.value).rstrip(".") in str(here.value)
