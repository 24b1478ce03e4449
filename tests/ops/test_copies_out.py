"""`out=` of the functions that copy what their views show."""

import pytest

import rushlight as torch

X = torch.arange(12.0).reshape(3, 4)
CALLS = {
    "alias_copy": (), "detach_copy": (), "diagonal_copy": (1,), "unfold_copy": (1, 2, 2), "slice_copy": (0, 1, 3),
    "permute_copy": ((1, 0),), "select_copy": (0, 1), "as_strided_copy": ((2, 2), (1, 4)), "squeeze_copy": (),
    "expand_copy": ((2, 3, 4),), "t_copy": (), "transpose_copy": (0, 1), "unsqueeze_copy": (0,), "view_copy": ((4, 3),),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_out_gets_what_the_function_returns(name):
    fn = getattr(torch, name)
    want, out = fn(X, *CALLS[name]), torch.empty(0)
    assert fn(X, *CALLS[name], out=out) is out
    assert out.shape == want.shape
    assert torch.equal(out, want)


@pytest.mark.parametrize("name", CALLS)
def test_out_of_another_dtype_is_refused(name):
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype float, but got double"):
        getattr(torch, name)(X, *CALLS[name], out=torch.empty(0, dtype=torch.float64))


def test_out_of_several_copies():
    outs = torch.empty(0), torch.empty(0)
    torch.split_with_sizes_copy(X, (2, 1), out=outs)
    assert [o.tolist() for o in outs] == [X[:2].tolist(), X[2:].tolist()]


def test_out_of_complex_views():
    out = torch.empty(0, dtype=torch.complex64)
    torch.view_as_complex_copy(X.reshape(6, 2), out=out)
    assert torch.view_as_real_copy(out, out=torch.empty(0)).tolist() == X.reshape(6, 2).tolist()


def test_copies_are_contiguous():
    assert torch.alias_copy(X.T).stride() == torch.detach_copy(X.T).stride() == (3, 1)
