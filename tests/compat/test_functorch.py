"""``functorch.experimental``: chunks of samples, branches and maps under the names that programs import."""

import importlib

import pytest

import rushlight as torch
from rushlight.compat import aliases, functorch
from rushlight.compat.functorch import experimental


@pytest.mark.parametrize("chunks", [1, 2, 4, 9])
def test_samples_in_chunks_are_those_of_vmap(chunks: int) -> None:
    x, y = torch.rand(3, 7), torch.rand(3)
    f = lambda x, y: (x * y).sum()
    expected = torch.vmap(f, (1, None))(x, y)
    assert torch.allclose(experimental.chunk_vmap(f, (1, None), chunks=chunks)(x, y), expected)
    assert torch.allclose(
        experimental.chunk_vmap(lambda d: f(d["x"], y), ({"x": 1},), chunks=chunks)({"x": x}), expected
    )


def test_names_are_those_of_torch() -> None:
    flow = importlib.import_module(str(aliases.real_name("functorch.experimental.control_flow")))
    assert flow.cond is torch.cond and flow.map(torch.neg, torch.ones(2)).tolist() == [-1, -1]
    assert functorch.functionalize is torch.func.functionalize is experimental.functionalize
