"""Bags of embeddings: their rows are added some at a time, with the bits of all at once; maxima of bags."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import kernels, memory
from rushlight.kernels import dispatch
from rushlight.storage import dependents

F = torch.nn.functional
ROWS, WIDTH = 3000, 64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["sum", "mean", "weighted"])
def test_parts_have_the_bits_of_the_whole(mode, dtype, monkeypatch):
    torch.manual_seed(0)
    table, index = torch.randn(ROWS, WIDTH, dtype=dtype), torch.randint(0, ROWS, (500, 20))
    weights = torch.rand(500, 20, dtype=dtype) if mode == "weighted" else None
    found = []
    for part in (1 << 10, 1 << 30):
        monkeypatch.setattr(dispatch, "PART", part)
        leaf = table.clone().requires_grad_()
        out = F.embedding_bag(index, leaf, mode="mean" if mode == "mean" else "sum", per_sample_weights=weights)
        found.append((out.detach(), *torch.autograd.grad(out, leaf, torch.ones(out.shape, dtype=dtype))))
    assert all(map(torch.equal, *found))


def test_no_array_of_all_rows_is_made():
    table, index = torch.randn(ROWS, WIDTH, requires_grad=True), torch.randint(0, ROWS, (2000, 40))
    memory.reset_peak()
    before = memory.current()
    out = F.embedding_bag(index, table, mode="sum")
    out.sum().backward()
    assert memory.peak() - before < table.nbytes + 3 * index.nbytes + 1_000_000  # all rows are 20 MB


def test_a_step_of_sgd_makes_no_array_of_a_sparse_gradient_s_rows():
    table, index = torch.nn.Parameter(torch.randn(ROWS, WIDTH)), torch.randint(0, ROWS, (50_000,))
    optimizer = torch.optim.SGD([table], 0.1)
    F.embedding(index, table, sparse=True).sum().backward()
    expected = table.detach().numpy().copy()
    kernels.index_add_rows(expected, index.numpy(), table.grad._values().numpy() * expected.dtype.type(-0.1))
    memory.reset_peak()
    before = memory.current()
    optimizer.step()
    assert memory.peak() - before < 1_000_000  # the rows are 12.8 MB
    assert torch.equal(table.detach(), torch.from_numpy(expected))


def test_it_makes_none_either_while_a_graph_depends_on_other_memory():
    x = torch.randn(512, 512, requires_grad=True)
    kept = F.dropout(F.gelu(x * 2)) @ torch.randn(512, 512)
    assert dependents  # it makes values again in backward
    test_a_step_of_sgd_makes_no_array_of_a_sparse_gradient_s_rows()
    kept.sum().backward()


def test_what_a_graph_makes_again_from_a_table_is_made_before_a_step_changes_its_rows():
    table, index = torch.nn.Parameter(torch.randn(1024, 512)), torch.randint(0, 1024, (2000,))
    F.embedding(index, table, sparse=True).sum().backward()
    wide = torch.randn(512, 512, requires_grad=True)
    with torch.no_grad():
        before = table.clone()
    product = F.gelu(table.detach()) @ wide
    (expected,) = torch.autograd.grad((F.gelu(before) @ wide).sum(), wide)
    torch.optim.SGD([table], 0.1).step()
    (found,) = torch.autograd.grad(product.sum(), wide)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("shape", [(50, 7, 200, 30), (9, 3, 500, 4), (40, 64, 3000, 700), (5, 2, 0, 3)], ids=str)
def test_maxima_are_pytorchs(shape):
    """Bags of many sizes, empty ones and equal numbers among them; a NaN counts where it is the first of its bag."""
    oracle, (rows, width, count, bags) = pytest.importorskip("torch"), shape
    draw = np.random.default_rng(3)
    table = draw.integers(-5, 5, (rows, width)).astype("f4")
    table[draw.integers(0, rows, 5), draw.integers(0, width, 5)] = np.nan
    table[0] = -np.inf
    index, starts = draw.integers(0, rows, count), np.sort(draw.integers(0, count + 1, bags))
    starts[0] = 0
    found = []
    for library in (oracle, torch):
        leaf = library.from_numpy(table.copy()).requires_grad_()
        out = library.nn.functional.embedding_bag(
            library.from_numpy(index), leaf, library.from_numpy(starts), mode="max"
        )
        g = library.from_numpy(np.arange(bags * width, dtype="f4").reshape(bags, width))
        found.append((out.detach().numpy(), library.autograd.grad(out, leaf, g)[0].numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
