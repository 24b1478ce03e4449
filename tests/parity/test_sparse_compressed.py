"""Layouts CSR, CSC, BSR and BSC: parts, conversions, text and gradients are PyTorch's."""

from __future__ import annotations

import io
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

LAYOUTS = {"csr": (), "csc": (), "bsr": ((2, 3),), "bsc": ((2, 3),)}


def matrix(t: Any) -> Any:
    """A matrix whose first block of (2, 3) is zero, and some elements of the others."""
    x = t.arange(24.0).reshape(4, 6)
    x[:2, :3] = 0
    x[3, 4] = 0
    return x


def compressed(t: Any, layout: str, x: Any = None) -> Any:
    return getattr(matrix(t) if x is None else x, f"to_sparse_{layout}")(*LAYOUTS[layout])


def places(s: Any) -> list[Any]:
    names = ("ccol_indices", "row_indices") if str(s.layout).endswith("c") else ("crow_indices", "col_indices")
    return [getattr(s, name)() for name in names]


def alike(ours: Any, theirs: Any) -> None:
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_and_text(layout: str) -> None:
    ours, theirs = compressed(rushlight, layout), compressed(torch, layout)
    alike(ours, theirs)
    for name in ("is_sparse", "is_sparse_csr", "shape", "dtype", "layout", "requires_grad"):
        assert str(getattr(ours, name)) == str(getattr(theirs, name))
    for name in ("sparse_dim", "dense_dim", "_nnz", "dim", "numel"):
        assert getattr(ours, name)() == getattr(theirs, name)()
    for a, b in zip((*places(ours), ours.values()), (*places(theirs), theirs.values()), strict=True):
        assert a.tolist() == b.tolist() and str(a.dtype) == str(b.dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_forms(layout: str) -> None:
    ours, theirs = compressed(rushlight, layout), compressed(torch, layout)
    for form in (
        lambda s: s.to_dense(),
        lambda s: s.to_sparse(),
        lambda s: s.to_sparse().coalesce(),
        lambda s: s.t(),
        lambda s: s.transpose(-1, 0).to_dense(),
        lambda s: s.detach().clone(),
        lambda s: s * 2,
        lambda s: -s,
        lambda s: s + s,
        lambda s: s.abs(),
        lambda s: s.sum(),
        lambda s: s.double(),
    ):
        alike(form(ours), form(theirs))


@pytest.mark.parametrize("source", ["coo", "csr", "csc"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_other_layouts(layout: str, source: str) -> None:
    ours, theirs = (getattr(matrix(t), f"to_sparse_{source}")() for t in (rushlight, torch))
    alike(compressed(rushlight, layout, ours), compressed(torch, layout, theirs))
    kind = f"sparse_{layout}"
    blocks = LAYOUTS[layout][0] if LAYOUTS[layout] else None
    found = [s.to_sparse(layout=getattr(t, kind), blocksize=blocks) for t, s in ((rushlight, ours), (torch, theirs))]
    alike(*found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_made_of_parts(layout: str) -> None:
    made = []
    for t in (rushlight, torch):
        s = compressed(t, layout)
        parts = [p.tolist() for p in (*places(s), s.values())]
        made.append([getattr(t, f"sparse_{layout}_tensor")(*parts, dtype=t.float64),
                     getattr(t, f"sparse_{layout}_tensor")(*parts, (4, 6), requires_grad=True),
                     t.sparse_compressed_tensor(*parts, layout=getattr(t, f"sparse_{layout}"))])  # fmt: skip
    for ours, theirs in zip(*made, strict=True):
        alike(ours, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_what_goes_there_and_back(layout: str) -> None:
    found = []
    for t in (rushlight, torch):
        x = matrix(t).requires_grad_()
        (compressed(t, layout, x).to_dense() * t.arange(1.0, 25).reshape(4, 6)).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products(layout: str) -> None:
    s, x = compressed(rushlight, layout).requires_grad_(), matrix(rushlight)
    dense = rushlight.arange(12.0).reshape(6, 2).requires_grad_()
    (s @ dense).square().sum().backward()
    y, other = x.clone().requires_grad_(), dense.detach().clone().requires_grad_()
    (y @ other).square().sum().backward()
    assert rushlight.equal((s @ dense), y @ other) and rushlight.equal(dense.grad, other.grad)
    there = compressed(rushlight, layout, x).to_sparse_coo()
    mask = rushlight.zeros(4, 6).index_put(tuple(there._indices()), rushlight.ones(()))
    assert rushlight.equal(s.grad.to_dense(), y.grad * mask)
    if layout in ("csr", "csc"):
        alike(s.detach() @ dense.detach(), compressed(torch, layout) @ torch.arange(12.0).reshape(6, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_go_both_ways(layout: str) -> None:
    for writer, reader in ((rushlight, torch), (torch, rushlight), (rushlight, rushlight)):
        file = io.BytesIO()
        writer.save(compressed(writer, layout), file)
        file.seek(0)
        alike(reader.load(file), compressed(reader, layout))


REFUSED = {
    "rows of columns": lambda t: compressed(t, "csc").crow_indices(),
    "columns of rows": lambda t: compressed(t, "csr").ccol_indices(),
    "row of blocks": lambda t: compressed(t, "bsr").row_indices(),
    "indices": lambda t: compressed(t, "bsc").indices(),
    "blocks that do not fit": lambda t: matrix(t).to_sparse_bsr((3, 3)),
    "blocks of nothing": lambda t: matrix(t).to_sparse_bsr((0, 3)),
    "no blocks": lambda t: matrix(t).to_sparse(layout=t.sparse_bsr),
    "other blocks": lambda t: compressed(t, "bsr").to_sparse_bsr((1, 3)),
    "values that are no blocks": lambda t: t.sparse_bsr_tensor([0, 1], [0], t.ones(1)),
    "no layout": lambda t: t.sparse_compressed_tensor([0, 1], [0], t.ones(1)),
    "layout": lambda t: t.sparse_compressed_tensor([0, 1], [0], t.ones(1), layout=t.sparse_coo),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    for t in (torch, rushlight):
        with pytest.raises(RuntimeError):
            REFUSED[name](t)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_that_keep_one_term_or_all(reduce: str) -> None:
    def found(lib: Any) -> list[Any]:
        matrix = lib.tensor([[0, 1.0, 2], [0, 0, 0], [3, -1, 0]]).to_sparse_csr().requires_grad_()
        dense = (lib.arange(6.0).reshape(3, 2) - 2.5).requires_grad_()
        out = lib.sparse.mm(matrix, dense, reduce)
        out.sum().backward()
        return [out.tolist(), dense.grad.tolist(), matrix.grad.to_dense().tolist()]

    assert found(rushlight) == found(torch)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_places_of_int32_are_kept(layout: str) -> None:
    def run(t: Any) -> list[Any]:
        x = compressed(t, layout)
        starts, others = places(x)
        y = getattr(t, f"sparse_{layout}_tensor")(starts.int(), others.int(), x.values(), x.shape)
        found = [y, y * 2, y.clone(), y.t()] + ([y + y, y.to_sparse_csc()] if layout == "csr" else [])
        return [p.dtype for each in found for p in places(each)] + [y.to_dense(), y.to_sparse()._indices().dtype]

    alike(run(rushlight), run(torch))


def test_places_of_two_dtypes_are_refused_where_all_is_checked() -> None:
    for first, second in (("int32", "int64"), ("int16", "int16")):
        said = []
        for t in (rushlight, torch):
            starts, others = t.tensor([0, 1, 2], dtype=getattr(t, first)), t.tensor([1, 0], dtype=getattr(t, second))
            with pytest.raises(RuntimeError) as error:
                t.sparse_csr_tensor(starts, others, t.ones(2), (2, 2), check_invariants=True)
            said.append(str(error.value))
        assert said[0] == said[1]


def test_sums_that_keep_dimensions() -> None:
    for dim in (0, 1, -1, (0, 1)):
        for make in ("to_sparse", "to_sparse_csr"):
            ours, theirs = (getattr(matrix(t), make)().sum(dim, keepdim=True) for t in (rushlight, torch))
            assert str(ours.layout) == str(theirs.layout), (dim, make)
            assert ours.to_dense().tolist() == theirs.to_dense().tolist()
