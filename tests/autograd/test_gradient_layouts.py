"""Which layout the gradient of a parameter has, and when `.grad` is another tensor."""

import itertools

import pytest

import rushlight as torch


def dense(order: tuple[int, ...]) -> torch.Tensor:
    """A leaf that fills its memory, its dimensions in some order."""
    back = [order.index(i) for i in range(3)]
    return torch.ones(*(2 + order[i] for i in range(3))).permute(*back).requires_grad_()


def backward(leaf: torch.Tensor, **options) -> None:
    (leaf * torch.arange(float(leaf.numel())).reshape(leaf.shape)).sum().backward(**options)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_dense_leaf_gives_its_strides(order: tuple[int, ...], create_graph: bool) -> None:
    leaf = dense(order)
    backward(leaf, create_graph=create_graph)
    assert leaf.grad.stride() == leaf.stride()
    assert leaf.grad.tolist() == torch.arange(24.0).reshape(leaf.shape).tolist()
    leaf.grad = None


@pytest.mark.parametrize(
    "leaf",
    [
        lambda: torch.ones(4, 6)[:, ::2],
        lambda: torch.ones(6, 4)[::2].t(),
        lambda: torch.ones(3, 1).expand(3, 4),
        lambda: torch.ones(8)[1::3],
    ],
)
def test_one_with_gaps_or_overlap_gives_rows(leaf) -> None:
    leaf = leaf().requires_grad_()
    backward(leaf)
    assert leaf.grad.is_contiguous()


def test_accumulation_keeps_tensor_memory_and_strides() -> None:
    leaf = dense((0, 1, 2))
    leaf.grad = torch.zeros(4, 3, 2).permute(2, 1, 0)
    grad, memory, strides = leaf.grad, leaf.grad.data_ptr(), leaf.grad.stride()
    assert strides != leaf.stride()
    for _ in range(2):
        backward(leaf)
    assert leaf.grad is grad and grad.data_ptr() == memory and grad.stride() == strides
    assert grad.sum() == 2 * sum(range(24))


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_create_graph_replaces_it() -> None:
    leaf = dense((0, 1, 2))
    (leaf**2).sum().backward(create_graph=True)
    first = leaf.grad
    (leaf**2).sum().backward(create_graph=True)
    assert leaf.grad is not first and leaf.grad.requires_grad and leaf.grad.stride() == first.stride()
    assert first.tolist() == torch.full((2, 3, 4), 2.0).tolist()
    leaf.grad = None


def test_zeroing_keeps_the_layout_and_none_starts_anew() -> None:
    layer = torch.nn.Linear(3, 2)
    layer.weight.grad = torch.zeros(3, 2).t()
    layer.zero_grad(set_to_none=False)
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.weight.grad.stride() == (1, 2)
    torch.optim.SGD(layer.parameters()).zero_grad()
    assert layer.weight.grad is None
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.weight.grad.stride() == layer.weight.stride() == (3, 1)
    for parameter in layer.parameters():
        parameter.grad = None


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_gradients_of_a_recorded_backward_share_no_memory() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    given = torch.ones(2)
    (a + b).backward(given, create_graph=True)
    with torch.no_grad():
        a.grad.mul_(3)
    assert b.grad.tolist() == given.tolist() == [1, 1]
    x = torch.zeros(2, requires_grad=True)
    x.exp().sum().backward(create_graph=True)
    slope = x.grad.sum()
    with torch.no_grad():
        x.grad.zero_()
    slope.backward()
    assert x.grad.tolist() == [1, 1]


def test_gradients_that_repeat_a_part_of_memory_are_not_added_to_in_place() -> None:
    """One of four elements, repeated four times, has as many bytes as all of them."""
    x = torch.arange(4.0, requires_grad=True)
    a = x * 1
    first = (a * torch.tensor([1.0, 10, 100, 1000])).sum()
    padded = torch.cat([a.sum(0, keepdim=True), torch.ones(3)])
    (first + (padded * torch.tensor([2.0, 3, 4, 5])).sum()).backward()
    assert x.grad.tolist() == [3, 12, 102, 1002]
