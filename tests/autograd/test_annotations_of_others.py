"""Functions of others whose annotations name what is not there when they run, as what is imported for type checkers alone.

Python 3.14 evaluates annotations when they are asked for; before, such files begin with `from __future__ import annotations`.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

import rushlight as torch

SOURCE = """
import rushlight as torch
from rushlight import nn
from rushlight.utils.data.datapipes.iter import IterableWrapper

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Missing, *, by: Missing = 2) -> Missing:
        return a * by

    @staticmethod
    def backward(ctx, g: Missing) -> Missing:
        return 2 * g

class Layer(nn.Module):
    def __init__(self, n: Missing, device: Missing = None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n, device=device))

    def forward(self, a: Missing, *, by: Missing = None) -> Missing:
        return self.weight * a

class Steps(torch.optim.SGD):
    def step(self, closure: Missing = None) -> Missing:
        return super().step(closure)

def same(value: Missing) -> Missing:
    return value

def hook(state: Missing, bucket: distributed.GradBucket) -> Missing:
    return bucket
"""


@pytest.fixture(scope="module")
def others() -> Any:
    scope: dict[str, Any] = {"__name__": "others"}
    later = sys.version_info >= (3, 14)
    exec(
        compile(
            SOURCE if later else f"from __future__ import annotations\n{SOURCE}", "others.py", "exec", dont_inherit=True
        ),
        scope,
    )
    return scope


def test_a_custom_function_called_by_keyword(others: Any) -> None:
    x = torch.ones(2).requires_grad_()
    others["Twice"].apply(a=x, by=2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_module_that_is_traced(others: Any) -> None:
    traced = torch.fx.symbolic_trace(others["Layer"](2))
    assert traced(torch.ones(2)).tolist() == [1, 1] and "Missing" in traced.code


def test_a_module_whose_parameters_are_not_drawn(others: Any) -> None:
    assert torch.nn.utils.skip_init(others["Layer"], 3).weight.shape == (3,)


def test_an_optimizer_that_steps_in_backward(others: Any) -> None:
    layer = others["Layer"](2)
    optimizer = others["Steps"](layer.parameters(), lr=0.5)
    with torch.optim.in_backward(optimizer):
        layer(torch.ones(2)).sum().backward()
    assert layer.weight.tolist() == [0.5, 0.5]


def test_a_function_of_a_datapipe(others: Any) -> None:
    source = torch.utils.data.datapipes.iter.IterableWrapper([1, 2])
    assert list(source.map(others["same"])) == [1, 2]


def test_a_hook_of_communication(others: Any) -> None:
    from rushlight.nn.parallel.distributed import check_hook

    with pytest.raises(ValueError, match="return annotation"):
        check_hook(others["hook"])


def test_an_operator_of_no_type_is_refused_by_name(others: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported type annotation Missing"):
        torch.library.infer_schema(others["same"], mutates_args=())
