"""Graphs of programs, as PyTorch traces and writes them."""

import operator

import pytest

import rushlight

torch = pytest.importorskip("torch.fx")


def steps(x):
    a, b = x.split(2)
    return {"a": a.relu()[0, ..., None], "b": [b.t() @ b, x.size(0)]}


def keywords(x, *, by: int = 3):
    y = (x * by).reshape(-1, x.shape[0])
    return -y, ~y.bool(), y // 2 % 3, abs(y), 1 - y


def inplace(x, out=None):
    x += 2
    return x.unsqueeze(0).expand(2, -1)


def unused(x):
    x.exp().log()
    return x if operator.not_(False) else None


@pytest.mark.parametrize("program", [steps, keywords, inplace, unused])
def test_the_same_steps_and_code(program) -> None:
    ours, theirs = rushlight.fx.symbolic_trace(program), torch.symbolic_trace(program)
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code.strip() == theirs.code.strip()
