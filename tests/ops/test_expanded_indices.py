"""Indices of whole rows, expanded over their elements as graph networks do: no array of them, and the same bits."""

import pytest

import rushlight as torch
from rushlight import memory

EDGES, NODES, WIDTH = 20_000, 500, 64


def drawn(dtype):
    torch.manual_seed(0)
    return (
        torch.randn(NODES, WIDTH, dtype=dtype),
        torch.randn(EDGES, WIDTH, dtype=dtype),
        torch.randint(0, NODES, (EDGES,)),
    )


FORMS = {
    "scatter_add": lambda x, source, index: torch.scatter_add(x, 0, index, source),
    "gather": lambda x, source, index: torch.gather(x, 0, index) * source,
    "scatter": lambda x, source, index: torch.scatter(x, 0, index, source),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", FORMS)
def test_expanded_and_written_out_indices_give_the_same_bits(name, dtype):
    x, source, index = drawn(dtype)
    found = []
    for each in (index[:, None].expand(-1, WIDTH), index[:, None].expand(-1, WIDTH).contiguous()):
        leaves = [t.clone().requires_grad_() for t in (x, source)]
        out = FORMS[name](*leaves, each)
        found.append([out.detach(), *torch.autograd.grad(out.square().sum(), leaves)])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["scatter_add", "gather"])
def test_expanded_indices_are_not_written_out(name):
    x, source, index = drawn(torch.float32)
    leaves = [x.requires_grad_(), source.requires_grad_()]
    memory.reset_peak()
    before = memory.current()
    out = FORMS[name](*leaves, index[:, None].expand(-1, WIDTH))
    out.backward(torch.ones(out.shape))
    allowed = {"scatter_add": 1, "gather": 5}[name]  # arrays of the source's size: indices of elements are two more
    assert memory.peak() - before < allowed * source.nbytes + 4 * x.nbytes


def test_shapes_of_more_dimensions_and_rows_that_are_cut():
    x, source = torch.randn(7, 3, 4), torch.randn(9, 3, 4)
    index = torch.randint(0, 7, (9, 1, 1)).expand(9, 3, 4)
    assert torch.equal(x.scatter_add(0, index, source), x.scatter_add(0, index.contiguous(), source))
    assert torch.equal(x.gather(0, index), x.gather(0, index.contiguous()))
    assert torch.equal(x.gather(0, index[:, :2]), x.gather(0, index[:, :2].contiguous()))
    assert torch.equal(x[:, 0].t().scatter_add(0, index[:2, 0, :1].expand(2, 7) % 4, source[:2, 0, :1].expand(2, 7)),
                       x[:, 0].t().contiguous().scatter_add(0, (index[:2, 0, :1].expand(2, 7) % 4).contiguous(), source[:2, 0, :1].expand(2, 7)))  # fmt: skip
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.gather(0, torch.full((2, 1, 1), 7).expand(2, 3, 4))
