"""Inside vmap a sample has the strides with which it lies in memory, and views follow them."""

import re

import pytest

import rushlight as torch
from rushlight.func import vmap


def numbers():
    return torch.arange(24.0).reshape(2, 3, 4)


def seen(f, x, in_dims=0):
    """What `f` gives of one sample, whatever it is."""
    found = []

    def kept(a):
        found.append(f(a))
        return a

    vmap(kept, in_dims)(x)
    return found[0]


LAYOUTS = {
    "in front": (lambda x: x, 0),
    "in the middle": (lambda x: x, 1),
    "last": (lambda x: x, 2),
    "transposed": (lambda x: x.transpose(1, 2), 0),
    "expanded": (lambda x: x[0, 0].expand(2, 3, 4), 0),
    "stepped": (lambda x: x[:, :, ::2], 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_contiguity_and_offset_are_those_of_the_first_sample(layout):
    make, dim = LAYOUTS[layout]
    x = make(numbers())
    one = x.select(dim, 0)
    for f in (
        torch.Tensor.stride,
        torch.Tensor.is_contiguous,
        torch.Tensor.storage_offset,
        lambda a: a[1].storage_offset(),
    ):
        assert seen(f, x, dim) == f(one)


VIEWS = {
    "view": lambda a: a.view(-1),
    "view of two": lambda a: a.view(2, -1),
    "view_as": lambda a: a.view_as(torch.zeros(a.numel())),
    "unflatten": lambda a: a.unflatten(-1, (2, -1)),
    "view_as_complex": lambda a: torch.view_as_complex(a),
    "view of a wider dtype": lambda a: a.view(torch.float64),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_refused_as_outside(layout, name):
    make, dim = LAYOUTS[layout]
    x = make(numbers())
    try:
        expected = torch.stack([VIEWS[name](one) for one in x.unbind(dim)])
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=re.escape(str(error)[:30])):
            vmap(VIEWS[name], dim)(x)
    else:
        assert torch.equal(vmap(VIEWS[name], dim)(x), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_contiguous_is_the_tensor_itself_where_nothing_changes(layout):
    make, dim = LAYOUTS[layout]
    x = make(numbers())
    assert seen(lambda a: a.contiguous() is a, x, dim) == x.select(dim, 0).is_contiguous()
    assert seen(lambda a: a.contiguous().is_contiguous(), x, dim)
    assert torch.equal(vmap(lambda a: a.contiguous().view(-1), dim)(x), x.movedim(dim, 0).flatten(1))


def test_clone_keeps_the_order_or_takes_the_one_asked_for():
    x = numbers()
    assert seen(lambda a: a.t().clone().stride(), x) == (1, 4)
    assert seen(lambda a: a.t().clone(memory_format=torch.contiguous_format).stride(), x) == (3, 1)
    images = torch.randn(2, 2, 3, 4, 5)
    last = images[0].clone(memory_format=torch.channels_last)
    assert seen(lambda a: a.clone(memory_format=torch.channels_last).stride(), images) == last.stride()
    assert torch.equal(vmap(lambda a: a.clone(memory_format=torch.channels_last))(images), images)


@pytest.mark.parametrize("stride", [(1, 2), (10, 3), (0, 1)])
def test_new_memory_has_the_strides_asked_for(stride):
    x = numbers()
    assert seen(lambda a: a.new_empty_strided((2, 3), stride).stride(), x) == stride
    if 0 in stride:
        return  # several elements are one place: nothing can be written to it

    def filled(a):
        made = a.new_empty_strided((2, 3), stride)
        made.fill_(1.0)
        return made * a.sum()

    assert torch.equal(vmap(filled)(x), x.sum((1, 2))[:, None, None].expand(2, 2, 3))


def test_new_tensors_like_a_sample_keep_its_order():
    for make in (torch.zeros_like, torch.empty_like, torch.ones_like):
        assert seen(lambda a, make=make: make(a.t()).stride(), numbers()) == (1, 4)


def by_strides(a):
    return a.t().as_strided((2, 2), (1, 2))


def test_as_strided_reads_where_a_sample_lies():
    x = numbers()
    expected = torch.stack([by_strides(one) for one in x])
    assert torch.equal(vmap(by_strides)(x), expected)
    assert torch.equal(
        vmap(by_strides)(x.transpose(0, 1)[::2]), torch.stack([by_strides(one) for one in x.transpose(0, 1)[::2]])
    )


def test_gradients_through_as_strided_are_those_of_a_loop():
    x = numbers().double()
    expected = torch.stack([torch.func.grad(lambda a: by_strides(a).square().sum())(one) for one in x])
    torch.testing.assert_close(vmap(torch.func.grad(lambda a: by_strides(a).square().sum()))(x), expected)
    torch.testing.assert_close(torch.func.grad(lambda a: vmap(by_strides)(a).square().sum())(x), expected)
    torch.testing.assert_close(torch.func.jvp(vmap(by_strides), (x,), (x,))[1], vmap(by_strides)(x))


@pytest.mark.parametrize(("stride", "offset"), [((12,), None), ((1,), 1)])
def test_as_strided_does_not_reach_other_samples(stride, offset):
    with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
        vmap(lambda a: a[1].as_strided((2,), stride, offset))(numbers())


def test_reshape_of_what_is_no_view_is_a_copy_that_may_be_changed():
    x = numbers()
    before = x.clone()
    found = vmap(lambda a: a.t().reshape(-1).add_(1))(x)
    assert torch.equal(found, before.mT.flatten(1) + 1) and torch.equal(x, before)
