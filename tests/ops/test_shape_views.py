"""Views: their values against NumPy's, the memory they share, their gradients, and what they refuse."""

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

RNG = np.random.default_rng(0)
A = RNG.standard_normal((2, 3, 4))

# name: (on a tensor, on an array)
VIEWS = {
    "view": (lambda t: t.view(6, 4), lambda a: a.reshape(6, 4)),
    "view -1": (lambda t: t.view(2, -1), lambda a: a.reshape(2, 12)),
    "view list": (lambda t: t.view([4, 6]), lambda a: a.reshape(4, 6)),
    "view size": (lambda t: t.view(size=(24,)), lambda a: a.reshape(24)),
    "view_as": (lambda t: t.view_as(torch.zeros(3, 8)), lambda a: a.reshape(3, 8)),
    "reshape": (lambda t: t.reshape(3, 8), lambda a: a.reshape(3, 8)),
    "reshape keyword": (lambda t: torch.reshape(t, shape=(3, -1)), lambda a: a.reshape(3, 8)),
    "flatten": (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
    "ravel": (lambda t: t.ravel(), lambda a: a.reshape(-1)),
    "unflatten": (lambda t: t.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "transpose": (lambda t: t.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    "swapaxes": (lambda t: t.swapaxes(axis0=0, axis1=1), lambda a: a.swapaxes(0, 1)),
    "permute": (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute dims": (lambda t: torch.permute(t, dims=(-1, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "movedim": (lambda t: t.movedim((0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0))),
    "mT": (lambda t: t.mT, lambda a: a.swapaxes(1, 2)),
    "unsqueeze": (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda t: t[:1].squeeze(0), lambda a: a[0]),
    "squeeze dims": (lambda t: t[:1, :1].squeeze((0, 1)), lambda a: a[0, 0]),
    "expand": (lambda t: t.expand(2, 2, -1, 4), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    "expand_as": (lambda t: t[:, :1].expand_as(torch.zeros(2, 3, 4)), lambda a: np.broadcast_to(a[:, :1], (2, 3, 4))),
    "broadcast_to": (lambda t: torch.broadcast_to(t, (5, 2, 3, 4)), lambda a: np.broadcast_to(a, (5, 2, 3, 4))),
    "select": (lambda t: t.select(1, -1), lambda a: a[:, -1]),
    "narrow": (lambda t: t.narrow(2, 1, 2), lambda a: a[:, :, 1:3]),
    "diagonal": (lambda t: t.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    "diagonal below": (lambda t: t.diagonal(-1, 2, 1), lambda a: a.diagonal(-1, 2, 1)),
    "unfold": (lambda t: t.unfold(2, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2)),
    "unfold apart": (lambda t: t.unfold(2, 2, 2), lambda a: a.reshape(2, 3, 2, 2)),
    "as_strided": (lambda t: t.as_strided((2, 2), (1, 5), 3), lambda a: a.reshape(-1)[[[3, 8], [4, 9]]]),
    "T": (lambda t: t[0].T, lambda a: a[0].T),
    "t": (lambda t: t[0].t(), lambda a: a[0].T),
    "int": (lambda t: t[1], lambda a: a[1]),
    "slices": (lambda t: t[:, 1:, ::2], lambda a: a[:, 1:, ::2]),
    "mixed": (lambda t: t[-1, ..., None, 1:3], lambda a: a[-1, ..., None, 1:3]),
    "element": (lambda t: t[1, 2, 3], lambda a: np.asarray(a[1, 2, 3])),
    "tensor as int": (lambda t: t[torch.tensor(1)], lambda a: a[1]),
    "everything": (lambda t: t[...], lambda a: a),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_numpys_values_and_shares_memory(name):
    ours, theirs = VIEWS[name]
    t = torch.from_numpy(A.copy())
    v = ours(t)
    np.testing.assert_array_equal(v.numpy(), theirs(A))
    assert v._is_view() and v._base is t and v._version == 0
    t.mul_(2)
    np.testing.assert_array_equal(v.numpy(), theirs(2 * A))
    assert v._version == 1


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_of_views(name):
    check_gradients(VIEWS[name][0], A)


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_is_saved_for_a_view(name):
    kept = []
    t = torch.from_numpy(A.copy()).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        VIEWS[name][0](t)
    assert not kept


@pytest.mark.parametrize("name", [n for n in VIEWS if "expand" not in n and "broadcast" not in n and n != "unfold"])
def test_a_change_through_a_view_reaches_the_base_and_its_gradient(name):
    t = torch.from_numpy(A.copy()).requires_grad_()
    base = t * 1
    VIEWS[name][0](base).mul_(3)
    base.sum().backward()
    touched = torch.zeros(2, 3, 4)
    VIEWS[name][0](touched).fill_(1)
    np.testing.assert_array_equal(t.grad.numpy(), 1 + 2 * touched.numpy())


def test_views_without_grad_are_views_too():
    t = torch.zeros(2, 3, requires_grad=True)
    base = t * 1
    with torch.no_grad():
        v = base[0]
    assert v._base is base and v.grad_fn is None
    with pytest.raises(RuntimeError, match="no_grad"):
        v.add_(1)


def test_the_pieces_of_a_split_may_not_be_changed():
    t = torch.zeros(4, requires_grad=True) * 1
    for pieces in (t.split(2), t.chunk(2), t.unbind(), tuple(t), t.split([1, 3])):
        with pytest.raises(RuntimeError, match="returns multiple views"):
            pieces[0].add_(1)


@pytest.mark.parametrize("name", ["tensor_split", "hsplit", "vsplit", "dsplit"])
def test_the_parts_of_a_tensor_split_may_be_changed(name):
    t = torch.ones(2, 2, 2, requires_grad=True) * 1
    parts = getattr(t, name)(2)
    parts[0].mul_(3)
    assert t.sum() == 16 and parts[1].sum() == 4


def test_splitting_is_one_node():
    t = torch.zeros(6, 2, requires_grad=True)
    parts = t.split([1, 2, 3])
    assert [tuple(p.shape) for p in parts] == [(1, 2), (2, 2), (3, 2)]
    assert len({id(p.grad_fn) for p in parts}) == 1 and [p.output_nr for p in parts] == [0, 1, 2]
    (parts[0].sum() + 3 * parts[2].sum()).backward()
    np.testing.assert_array_equal(t.grad.numpy()[:, 0], [1, 0, 0, 3, 3, 3])


@pytest.mark.parametrize("fn", [
    lambda t: t.split(2, 1), lambda t: t.chunk(3, 2), lambda t: t.unbind(1), lambda t: t.tensor_split((1, 2), 2),
    lambda t: t.tensor_split(3, 2), lambda t: t.split([4], 2), lambda t: t.hsplit([1]), lambda t: t.dsplit(2),
])  # fmt: skip
def test_gradients_of_splits(fn):
    check_gradients(fn, A)


def test_view_refuses_what_would_be_a_copy():
    t = torch.zeros(3, 4).t()
    with pytest.raises(RuntimeError, match="view size"):
        t.view(12)
    assert t.reshape(12).shape == (12,) and not t.reshape(12)._is_view()
    assert torch.zeros(0, 3).t().view(0).shape == (0,)
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        torch.zeros(6).view(4)
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch.zeros(0, 3).view(-1, 0)
    with pytest.raises(RuntimeError, match="only one dimension"):
        torch.zeros(6).view(-1, -1)
    with pytest.raises(RuntimeError, match="invalid shape dimension"):
        torch.zeros(6).reshape(-2, 3)


@pytest.mark.parametrize("fn, error", [
    (lambda t: t.transpose(0, 5), IndexError), (lambda t: t.permute(0, 1), RuntimeError),
    (lambda t: t.permute(0, 0, 1), RuntimeError), (lambda t: t.unsqueeze(4), IndexError),
    (lambda t: t.squeeze(3), IndexError), (lambda t: t.expand(3, 3, 4), RuntimeError),
    (lambda t: t.expand(3), RuntimeError), (lambda t: t.select(0, 2), IndexError),
    (lambda t: t.narrow(0, 1, 2), RuntimeError), (lambda t: t.t(), RuntimeError),
    (lambda t: t.diagonal(0, 1, 1), RuntimeError), (lambda t: t.unfold(0, 3, 1), RuntimeError),
    (lambda t: t.as_strided((9, 9), (9, 1)), RuntimeError), (lambda t: t.as_strided((1,), (1, 1)), RuntimeError),
    (lambda t: t.split(0), RuntimeError), (lambda t: t.split([1]), RuntimeError), (lambda t: t.chunk(0), RuntimeError),
    (lambda t: t.unflatten(0, (3,)), RuntimeError), (lambda t: t.movedim((0, 1), (0,)), RuntimeError),
    (lambda t: t.flatten(2, 1), RuntimeError), (lambda t: t[0, 0, 0].unbind(), IndexError),
    (lambda t: t.view(foo=1), TypeError), (lambda t: t.H, RuntimeError), (lambda t: t[0, 0].mT, RuntimeError),
])  # fmt: skip
def test_refusals(fn, error):
    with pytest.raises(error):
        fn(torch.from_numpy(A.copy()))


def test_views_in_place():
    t = torch.from_numpy(A.copy()).requires_grad_()
    base = t * 1
    row = base[0]
    base.transpose_(0, 2)
    assert base.shape == (4, 3, 2) and base._version == 1
    row.mul_(2)  # a view from before the change of shape still is one
    base.unsqueeze_(0).squeeze_(0).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.stack([np.full((3, 4), 2.0), np.ones((3, 4))]))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        t.t_() if t.dim() == 2 else t.transpose_(0, 1)
    m = torch.arange(6.0).reshape(2, 3)
    assert m.t_() is m and m.shape == (3, 2) and m.swapdims_(0, 1).swapaxes_(0, 1).shape == (3, 2)
    assert m.as_strided_((2,), (1,), 1).tolist() == [1.0, 2.0]


def test_another_dtype_on_the_same_bytes():
    t = torch.tensor([[1.0, 2.0]], dtype=torch.float32)
    assert t.view(torch.int32).tolist() == [[0x3F800000, 0x40000000]]
    assert t.view(torch.uint8).shape == (1, 8) and t.view(dtype=torch.float64).shape == (1, 1)
    t.view(torch.int32).zero_()
    assert t.tolist() == [[0.0, 0.0]] and t._version == 1
    with pytest.raises(RuntimeError, match="divisible"):
        torch.zeros(3).view(torch.float64)
    with pytest.raises(RuntimeError, match="stride"):
        torch.zeros(4, 2).t().view(torch.float64)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_bits_read_as_a_dtype_are_outside_the_graph(dtype):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for of in (x, x * 1):
        v = of.view(getattr(torch, dtype))
        assert not v.requires_grad and v.is_leaf and v.grad_fn is None and v._base is None
        v.zero_()
        assert of.tolist() == [0.0, 0.0] and of._version == v._version == 1


@pytest.mark.parametrize("split", [lambda y: y.tensor_split(2), lambda y: torch.vsplit(y, 2), lambda y: y.tensor_split((2,)),
                                   lambda y: y.view(4, 1)[:].tensor_split(2)])  # fmt: skip
def test_parts_of_tensor_split_may_be_changed_in_place(split):
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]], requires_grad=True)
    y = x * 1
    first, second = split(y)
    first.mul_(3)
    second[0] = first[1] * 2
    (y.sum() + (second * 10).sum()).backward()
    assert x.grad.tolist() == [[3.0], [3.0 + 11 * 2 * 3], [0.0], [11.0]]
    for pieces in (y.split(2), first.chunk(2)[0].tensor_split(1)):
        with pytest.raises(RuntimeError, match="multiple views"):
            pieces[0].mul_(2)


def test_a_loop_over_slices_adds_regions_alone():
    t = torch.ones(50, 1000, requires_grad=True)
    base = t * 1
    total = sum((base[i] * i).sum() for i in range(50))
    total.backward()
    np.testing.assert_array_equal(t.grad.numpy()[:, 0], np.arange(50.0))


def test_views_of_tensors_made_in_inference_mode():
    with torch.inference_mode():
        t = torch.ones(2, 3)
    assert t[0].is_inference() and t.view(6).is_inference()
    normal = torch.ones(2)
    with torch.inference_mode():
        assert not normal[0].is_inference()
        normal.view(2).add_(1)
    assert normal._version == 1


def test_broadcasting():
    assert torch.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    a, b = torch.broadcast_tensors(torch.zeros(2, 1), torch.zeros(3))
    assert a.shape == b.shape == (2, 3)
    with pytest.raises(RuntimeError, match="cannot be broadcast"):
        torch.broadcast_shapes((2,), (3,))
    assert torch.ones(2, 3).sum_to_size(1, 3).tolist() == [[2.0, 2.0, 2.0]]
    with pytest.raises(RuntimeError, match="not expandable"):
        torch.ones(2, 3).sum_to_size(2)


def test_copies_of_views_share_nothing():
    t = torch.arange(6.0).reshape(2, 3)
    for copy in (torch.view_copy(t, (3, 2)), torch.permute_copy(t, (1, 0)), torch.expand_copy(t, (2, 2, 3)),
                 torch.unbind_copy(t)[0], torch.narrow_copy(t, 1, 0, 2), torch.diagonal_copy(t), torch.t_copy(t)):  # fmt: skip
        assert not copy._is_view() and copy.is_contiguous()
        copy.zero_()
    assert t.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_deep_chains_of_views_are_freed_without_recursion():
    t = torch.zeros(4, requires_grad=True) * 1
    v = t
    for _ in range(20000):
        v = v[:]
    v.add_(1)
    assert v.requires_grad
    del v, t


def test_views_by_strides_of_memory_in_any_order():
    cube = np.arange(24.0).reshape(2, 3, 4)
    dense = torch.from_numpy(cube.transpose(1, 0, 2).copy().transpose(2, 1, 0))  # owns permuted memory without gaps
    gaps = torch.from_numpy(
        np.lib.stride_tricks.as_strided(cube, (2, 2, 2), (96, 64, 16))
    )  # of unknown owner, with gaps
    for t in (dense, gaps, gaps.detach().to(torch.float64)):
        np.testing.assert_array_equal(t.diagonal(1, 0, 1).numpy(), t.numpy().diagonal(1, 0, 1))
        np.testing.assert_array_equal(t.diagonal(-1, 0, 1).numpy(), t.numpy().diagonal(-1, 0, 1))
        np.testing.assert_array_equal(t.unfold(0, 2, 1)[0].numpy(), np.moveaxis(t.numpy()[:2], 0, -1))
    gaps.diagonal(-1, 0, 1).zero_()
    assert gaps[1, 0].tolist() == [0.0, 0.0]


def test_in_place_on_a_view_of_memory_with_gaps():
    x = torch.ones(4, 6, requires_grad=True)
    whole = torch.from_numpy(np.arange(24.0).reshape(4, 6)[:, ::2])
    whole.as_strided((2, 2), (6, 2), 2).mul_(x[:2, :2].double() * 3)
    whole.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[:2, :2], [[6, 12], [24, 30]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 8, 16])
def test_changes_of_strided_memory_reach_their_elements(dtype, step):
    """NumPy 2.4's negative writes elsewhere where the strides of its output are 16 or 64 bytes."""
    for name, want in (("neg_", lambda a: -a), ("sigmoid_", lambda a: 1 / (1 + np.exp(-a))), ("exp_", np.exp)):
        whole = np.linspace(-1, 1, 9 * step + 1).astype(dtype)
        t = torch.from_numpy(whole.copy())
        getattr(t[1::step], name)()
        after = whole.copy()
        after[1::step] = want(whole[1::step])
        np.testing.assert_allclose(t.numpy(), after, rtol=1e-6)


LAYOUTS = {  # NumPy's results would lie in the order of their operands, or with what an index gives in front
    "cat": lambda t: torch.cat([t, t], 1),
    "cat of different layouts": lambda t: torch.cat([t, t.contiguous()]),
    "cat of a number's dtype": lambda t: torch.cat([t, t.int()], -1),
    "stack": lambda t: torch.stack([t, t], 2),
    "stack in front": lambda t: torch.stack([t, t]),
    "a mask": lambda t: t.contiguous()[:, torch.tensor([True, False, True])],
    "several indices": lambda t: t.contiguous()[:, [0, 1], [0, 0]],
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_results_that_are_put_together_may_be_viewed(name, grad):
    t = torch.arange(24.0).view(4, 3, 2).requires_grad_(grad).transpose(0, 2)
    result = LAYOUTS[name](t)
    assert result.is_contiguous()
    np.testing.assert_array_equal(result.detach().view(-1), LAYOUTS[name](t.detach().contiguous()).flatten())


def test_images_with_channels_last_stay_so_when_joined():
    images = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert torch.cat([images, images], 1).is_contiguous(memory_format=torch.channels_last)
    assert torch.cat([images, images.contiguous()], 1).is_contiguous()


def test_all_of_a_tensor_is_set_as_the_tensor_itself():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    y[...] = x * 3
    assert y.grad_fn.name() != "torch::autograd::CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        x[...] = 1.0


def test_integers_that_were_copied_from_what_requires_grad_have_no_history():
    n = torch.zeros(2, dtype=torch.int64)
    n.copy_(torch.ones(2, requires_grad=True) * 2)
    assert n.tolist() == [2, 2] and n.grad_fn is None and not n.requires_grad


def test_the_bits_of_a_last_dimension_of_one_element_are_seen_whatever_its_stride():
    x = torch.complex(torch.arange(3.0), torch.arange(3.0) + 10)
    pairs = [[0, 10], [1, 11], [2, 12]]
    assert x[..., None].view(torch.float32).tolist() == pairs
    assert x.unflatten(0, (3, 1)).narrow(1, 0, 1).view(torch.float32).tolist() == pairs
