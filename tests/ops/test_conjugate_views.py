"""Conjugates, and imaginary parts of conjugates, are views: they take no memory and write through."""

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import signs
from rushlight.autograd import forward_ad, grad, gradcheck, gradgradcheck

VALUES = [[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]]


def numbers(**options):
    return torch.tensor(VALUES, dtype=torch.complex128, **options)


def array(t):
    return t.detach().resolve_conj().resolve_neg().numpy()


def loss(t):
    return (t.abs() ** 2).sum() + t.real.sum() * 3 if t.is_complex() else (t * t * t).sum()


VIEWS = {
    "conj": (lambda x: x.conj(), np.conj),
    "mH": (lambda x: x.mH, lambda a: a.conj().T),
    "H": (lambda x: x.H, lambda a: a.conj().T),
    "adjoint": (lambda x: x.adjoint(), lambda a: a.conj().T),
    "neg": (torch._neg_view, np.negative),
    "both": (lambda x: torch._neg_view(x).conj(), lambda a: -a.conj()),
    "twice": (lambda x: x.conj().conj(), lambda a: a),
    "imag": (lambda x: x.conj().imag, lambda a: -a.imag),
    "real": (lambda x: x.conj().real, lambda a: a.real),
    "imag of negative conjugate": (lambda x: torch._neg_view(x).conj().imag, lambda a: a.imag),
    "row": (lambda x: x.conj()[0], lambda a: a.conj()[0]),
    "flat": (lambda x: x.conj().view(4), lambda a: a.conj().reshape(4)),
    "transpose": (lambda x: x.conj().T[1:], lambda a: a.conj().T[1:]),
    "diagonal": (lambda x: x.mH.diagonal(), lambda a: a.conj().diagonal()),
    "strided": (lambda x: x.conj().as_strided((2,), (2,), 1), lambda a: a.conj()[:, 1]),
    "strided imag": (lambda x: x.conj().imag.as_strided((2,), (4,), 1), lambda a: -a.imag[:, 0]),
    "unbound": (lambda x: x.conj().unbind()[1], lambda a: a.conj()[1]),
}
each_view = pytest.mark.parametrize(("view", "of_array"), VIEWS.values(), ids=VIEWS)


@each_view
def test_shows_what_numpy_computes_and_shares_memory(view, of_array):
    x = numbers()
    y = view(x)
    assert y._base is x and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    np.testing.assert_array_equal(array(y), of_array(np.array(VALUES)))
    x.mul_(1 + 1j)
    np.testing.assert_array_equal(array(y), of_array(array(x)))


@each_view
def test_writes_go_through(view, of_array):
    for change in (lambda t: t.mul_(3), lambda t: t.exp_(), lambda t: t.fill_(2), lambda t: t.__setitem__(0, 5),
                   lambda t: t.copy_(t.detach() * 2 + 1), lambda t: t.zero_()):  # fmt: skip
        x, expected = numbers(), torch.tensor(of_array(np.array(VALUES)).copy())
        y = view(x)
        change(y)
        change(expected)
        np.testing.assert_allclose(array(y), array(expected))
        np.testing.assert_allclose(of_array(array(x)), array(expected))
        assert x._version == y._version >= 1


@each_view
def test_takes_no_memory(view, of_array, monkeypatch):
    x = numbers()
    monkeypatch.setattr(signs, "turned", None)  # nothing is computed
    y = view(x)
    assert y.shape and y.dtype and y.ndim and y.nbytes and y.numel() and y.dim() and y.stride() is not None
    assert y.data_ptr() and y.storage_offset() >= 0 and y.is_complex() in (True, False) and len(y)
    y.is_contiguous(), y.is_floating_point(), y.requires_grad, y.is_leaf, y.detach(), y.data, y[0], y.reshape(-1)


@each_view
def test_gradients_and_changes_in_place_under_autograd(view, of_array):
    def changed(x):
        y = x * (1 + 1j)
        v = view(y)
        v.mul_(torch.linspace(1, 2, v.numel(), dtype=v.dtype).reshape(v.shape) * factor)
        return y

    def through(x):
        return view(x * x)

    x = numbers(requires_grad=True)
    factor = 1 + 1j if view(numbers()).is_complex() else 3
    assert gradcheck(through, (x,), check_forward_ad=True)
    assert gradgradcheck(through, (x,))
    if view is VIEWS["unbound"][0]:  # one of several views
        return
    assert gradcheck(lambda x: changed(x).sin(), (x,))
    assert gradcheck(lambda x: view(changed(x)) * 2, (x,))


@each_view
def test_tangents_follow_changes_in_place(view, of_array):
    with forward_ad.dual_level():
        y = forward_ad.make_dual(numbers(), torch.ones(2, 2, dtype=torch.complex128) * 1j) * 1
        v = view(y)
        v.mul_(2)
        value, tangent = forward_ad.unpack_dual(y)
        np.testing.assert_allclose(array(forward_ad.unpack_dual(v).tangent), of_array(array(tangent)))
        np.testing.assert_allclose(array(v), of_array(array(value)))


def test_vmap_takes_gives_and_changes_conjugates():
    rows = numbers()
    np.testing.assert_array_equal(array(torch.func.vmap(lambda r: r.conj())(rows)), np.conj(VALUES))
    assert torch.func.vmap(lambda r: r.conj())(rows).is_conj()
    np.testing.assert_array_equal(array(torch.func.vmap(lambda r: r.imag * 2)(rows.conj())), -2 * rows.imag.numpy())

    def changed(r):
        r = r * 1
        r.conj().mul_(1j)
        return r

    np.testing.assert_array_equal(array(torch.func.vmap(changed)(rows)), np.array(VALUES) * -1j)


def test_bits_answer_truly():
    x = numbers()
    assert not x.is_conj() and x.conj().is_conj() and torch.is_conj(x.mH) and not x.conj().conj().is_conj()
    assert x.conj().imag.is_neg() and not x.conj().real.is_neg() and not x.imag.is_neg()
    assert not x.conj().resolve_conj().is_conj() and not x.conj().imag.resolve_neg().is_neg()
    assert x.resolve_conj() is x and x.resolve_neg() is x
    real = torch.ones(2)
    assert real.conj() is real and torch.conj(real) is real and not real.is_conj()
    assert not (x.conj() + 1).is_conj() and not x.conj().clone().is_conj() and not torch.zeros_like(x.conj()).is_conj()
    assert x.conj().contiguous().is_conj() and not x.mH.contiguous().is_conj()
    assert x.conj().to(torch.complex128).is_conj() and not x.conj().to(torch.complex64).is_conj()


def test_names_of_nodes():
    x = numbers(requires_grad=True)
    assert x.conj().grad_fn.name() == "ConjBackward0" and torch._neg_view(x).grad_fn.name() == "NegViewBackward0"
    assert x.conj().resolve_conj().grad_fn.name() == "CloneBackward0"


def test_a_number_is_its_own_transpose():
    x = torch.tensor(1 + 2j)
    for name, read in (("mH", lambda: x.mH), ("H", lambda: x.H), ("adjoint", x.adjoint)):
        with pytest.warns(UserWarning, match=rf"{name}\b.*without dimensions"):
            assert read().item() == 1 - 2j
    with pytest.warns(UserWarning, match="mT"):
        assert x.mT is x
    with pytest.raises(RuntimeError, match="matrices"):
        torch.ones(3).adjoint()


def test_conj_physical_computes():
    x = numbers()
    y = x.conj_physical()
    assert not y.is_conj() and y._base is None
    x.conj().conj_physical_()
    np.testing.assert_array_equal(array(x), np.conj(VALUES))


def test_class_is_that_of_any_tensor():
    x = numbers().conj()
    assert x.__class__ is torch.Tensor and isinstance(x, torch.Tensor) and type(x).__name__ == "Tensor"
    p = torch.nn.Parameter(x)
    assert isinstance(p, torch.nn.Parameter) and p.__class__ is torch.nn.Parameter and p.is_conj() and p.is_leaf
    assert repr(p).startswith("Parameter containing:")
    loss(p).backward()
    assert p.grad is not None and not p.grad.is_conj()


def test_prints_what_it_shows():
    assert repr(torch.tensor([1 + 2j]).conj()) == repr(torch.tensor([1 - 2j]))
    assert "ConjBackward0" in repr(numbers(requires_grad=True).conj())


@pytest.mark.parametrize("view", [lambda x: x.conj(), lambda x: x.conj().imag])
def test_numpy_is_refused_unless_forced(view):
    x = view(numbers())
    word = "conj" if x.is_conj() else "neg"
    for call in (x.numpy, lambda: np.asarray(x), x.__array__):
        with pytest.raises(
            RuntimeError, match=rf"Can't call numpy\(\) on Tensor that has .* bit set. Use tensor.resolve_{word}"
        ):
            call()
    found = x.numpy(force=True)
    found[...] = 0  # a copy, to be written to
    np.testing.assert_array_equal(array(x), view(numbers()).numpy(force=True))
    with pytest.raises(BufferError, match="bit set"):
        x.__dlpack__()


def test_views_of_other_dtypes_are_refused():
    x = numbers()
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        torch.view_as_real(x.conj())
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        x.conj().view(torch.float64)
    with pytest.raises(RuntimeError, match="negative bit set"):
        x.conj().imag.view(torch.int64)
    with pytest.raises(RuntimeError, match="complex"):
        torch._conj(torch.ones(2))
    with pytest.raises(RuntimeError, match="bool"):
        torch._neg_view(torch.tensor([True]))
    assert torch.view_as_real(torch._neg_view(x)).is_neg()


def test_a_stray_write_to_what_is_shown_raises():
    x = numbers().conj()
    with pytest.raises(ValueError, match="read-only"):
        x._array[0] = 1
    with pytest.raises(RuntimeError, match="bit"):
        x._array = np.ones(2)


@pytest.mark.parametrize("view", [lambda x: x.conj(), lambda x: x.conj().imag, lambda x: x.mH])
def test_files_and_pickles_keep_the_bits(view):
    x = numbers()
    for again in (pickle.loads(pickle.dumps(view(x))), copy.copy(view(x)), saved(view(x))):
        assert (again.is_conj(), again.is_neg()) == (view(x).is_conj(), view(x).is_neg())
        np.testing.assert_array_equal(array(again), array(view(x)))
    deep = copy.deepcopy(view(x))
    assert not deep.is_conj() and not deep.is_neg()
    np.testing.assert_array_equal(array(deep), array(view(x)))


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer)


def test_files_keep_shared_memory():
    x = numbers()
    a, b = saved([x, x.conj()])
    b.mul_(1j)
    np.testing.assert_array_equal(array(a), np.array(VALUES) * -1j)


def test_saved_conjugates_are_checked_for_changes():
    x = numbers(requires_grad=True) * 1
    y = x.conj()
    z = y * y
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.abs().sum().backward()


def test_leaves_and_no_grad_are_treated_as_with_any_view():
    x = numbers(requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x.conj().mul_(2)
    with torch.no_grad():
        x.conj().mul_(2j)
        v = (x * 1).conj()
    np.testing.assert_array_equal(array(x), np.array(VALUES) * -2j)
    assert not v.requires_grad
    with torch.inference_mode():
        y = numbers()
        y.conj().mul_(1j)
    np.testing.assert_array_equal(array(y), np.array(VALUES) * -1j)


def test_a_conjugate_as_gradient():
    x = numbers(requires_grad=True)
    (x * 2).backward(numbers().conj())
    x.grad.mul_(2)
    np.testing.assert_array_equal(array(x.grad), 4 * np.conj(VALUES))
    x.grad = given = numbers().conj()
    x.register_hook(lambda g: g.conj())
    (x * 2).backward(numbers())
    assert x.grad is given and given.is_conj()
    np.testing.assert_array_equal(array(x.grad), 3 * np.conj(VALUES))


def test_data_set_and_resize_keep_or_take_bits_as_in_pytorch():
    x = numbers()
    x.data = numbers().conj()
    assert x.is_conj()
    x.data = numbers()
    assert not x.is_conj()
    x.set_(numbers().conj())  # the memory alone
    assert not x.is_conj()
    np.testing.assert_array_equal(array(x), np.array(VALUES))
    y = numbers().conj()
    y.resize_(3)
    assert y.is_conj()
    np.testing.assert_array_equal(array(y), np.conj(VALUES).reshape(-1)[:3])
    y.set_(numbers())
    np.testing.assert_array_equal(array(y), np.conj(VALUES))
    z = numbers().conj()
    z.t_()
    assert z.is_conj()
    np.testing.assert_array_equal(array(z), np.conj(VALUES).T)


def test_out_writes_through_and_may_resize():
    x = numbers()
    y = x.conj()
    assert torch.mul(numbers(), 2, out=y) is y
    np.testing.assert_array_equal(array(x), 2 * np.conj(VALUES))
    y = x.detach().clone().conj().detach()  # the only one on its memory, which may grow
    with pytest.warns(UserWarning, match="resized"):
        torch.cat([numbers(), numbers()], out=y)
    assert y.is_conj()
    np.testing.assert_array_equal(array(y), np.array(VALUES * 2))


def test_custom_functions_get_the_view_itself():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert x.is_conj()
            return g * 2 * x.conj()

    x = numbers(requires_grad=True)
    assert gradcheck(lambda x: Double.apply(x.conj()), (x,))


def test_hooks_see_the_bit_and_stores_keep_what_is_shown(tmp_path):
    seen = []
    x = numbers(requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.is_conj()) or t, lambda t: t):
        y = x.conj() * numbers()
    assert seen == [True, False] or not any(seen)
    expected = grad(loss((x * x) * (x * 1).conj()), x)[0]
    contexts = [torch.autograd.graph.save_on_cpu(), torch.autograd.graph.allow_mutation_on_saved_tensors(),
                torch.stores.disk(tmp_path, min_bytes=1), torch.stores.cpu(min_bytes=1),
                torch.stores.compress("lossless", min_bytes=1), torch.stores.recompute(min_bytes=1)]  # fmt: skip
    for context in contexts:
        with context:
            a = x * 1
            z = loss((a * a) * a.conj())  # saves one memory as it is and as its conjugate
            np.testing.assert_allclose(array(grad(z, x)[0]), array(expected), err_msg=repr(context))
    assert y is not None


def test_optimizers_refuse_parameters_with_bits():
    with pytest.raises(ValueError, match="conjugate or negative bit"):
        torch.optim.SGD([torch.nn.Parameter(numbers().conj())], lr=1.0)
    p = torch.nn.Parameter(torch.ones(4))
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer = kind([p], lr=1.0)
        p.data = torch._neg_view(torch.ones(4))
        p.grad = torch.ones(4)
        with pytest.raises((ValueError, RuntimeError), match=r"read-only|writable memory"):
            optimizer.step()
        p.data = torch.ones(4)


def test_neg_views_of_reals_take_the_fast_paths_of_views():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch._neg_view(x * 2)
    for view in (lambda t: t[0], lambda t: t.expand(2, 2), lambda t: t.unfold(0, 2, 1), lambda t: t.view(2, 1),
                 lambda t: t[None], lambda t: t.split(1)[0], lambda t: t.mT if t.ndim > 1 else t[:], lambda t: t.squeeze(), lambda t: t.chunk(2)[1]):  # fmt: skip
        v = view(y)
        assert v.is_neg() and v._base is y._base
        np.testing.assert_array_equal(array(v), array(view(torch.tensor([-2.0, -4.0]))))
    (y * y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [-24.0, -96.0])


def test_expanded_conjugates_repeat_nothing():
    x = torch.tensor([1 + 2j]).expand(1000, 1000).conj()
    shown = x._array
    assert shown.strides == (0, 0) and shown[5, 7] == 1 - 2j


@pytest.mark.parametrize("split", [
    lambda x: x.unsafe_chunk(2), lambda x: x.unsafe_split(2), lambda x: x.unsafe_split_with_sizes([2, 2]),
])  # fmt: skip
@pytest.mark.parametrize("view", [lambda x: x.conj(), lambda x: x.conj().imag])
def test_unsafe_pieces_of_what_is_seen_through_a_bit_are_copies(split, view):
    x = torch.tensor([1 + 2j, 3 - 1j, 2j, 4 + 4j])
    pieces = split(view(x))
    want = view(x)[:2].tolist()
    assert pieces[0].tolist() == want
    assert not any(piece.is_conj() or piece.is_neg() for piece in pieces)
    pieces[0].zero_()
    assert view(x)[:2].tolist() == want


@pytest.mark.parametrize("view", [lambda x: x.conj().imag, lambda x: x.conj(), lambda x: x.mT.conj()])
def test_the_diagonal_of_what_is_seen_through_a_bit_is_filled_where_it_lies(view):
    x = torch.tensor([[1 + 2j, 3 - 1j, 2j], [4 + 4j, 5 - 3j, 6 + 1j]])
    want = view(x.clone()).resolve_conj().resolve_neg().clone().fill_diagonal_(7)
    view(x).fill_diagonal_(7)
    assert view(x).tolist() == want.tolist()


def test_rows_of_a_table_seen_through_a_bit_are_scaled_where_they_lie():
    weight = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    shown = torch._neg_view(weight)
    torch.nn.functional.embedding(torch.tensor([0, 1]), shown, max_norm=1.0)
    torch.testing.assert_close(weight, torch.tensor([[0.6, 0.8], [0.3, 0.4]]))


def test_what_is_seen_through_other_bits_is_compared():
    x = torch.tensor([1 + 2j, 3 - 1j])
    torch.testing.assert_close(torch._neg_view(x).conj(), (-x).conj())
