"""Which results have memory of their own, and which saved tensors an in-place change of a result leaves alone."""

import pytest

import rushlight as torch

F = torch.nn.functional


@pytest.mark.parametrize(
    "rearranged",
    [
        lambda x: F.pixel_shuffle(x, 1),
        lambda x: F.pixel_unshuffle(x, 1),
        lambda x: F.pixel_unshuffle(x, 2),
        lambda x: F.channel_shuffle(x, 1),
        lambda x: F.channel_shuffle(x, 2),
        lambda x: x.transpose(1, 2).ravel(),
        lambda x: x[..., 0].ravel(),
    ],
)
def test_rearrangements_have_memory_of_their_own(rearranged) -> None:
    x = torch.arange(16.0).reshape(1, 4, 2, 2)
    y = rearranged(x)
    assert y.is_contiguous()
    y.fill_(-1)
    assert x.flatten().tolist() == list(range(16))
    z = torch.ones(1, 4, 2, 2, requires_grad=True)
    rearranged(z).mul_(2).sum().backward()
    assert z.grad.abs().sum().item() == 2 * y.numel()


def test_ravel_of_what_is_contiguous_is_a_view() -> None:
    x = torch.zeros(2, 3)
    x.ravel().fill_(1)
    assert x.sum().item() == 6


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: a / b, ([0.5, 0.25], [-0.25, -0.125])),
        (lambda a, b: F.normalize(torch.stack([a, b]), dim=0)[0], None),
        (lambda a, b: torch.erfinv(a / 4) + 0 * b, None),
    ],
)
def test_a_quotient_may_be_changed_in_place(function, expected) -> None:
    grads = []
    for change in (lambda y: y * 1, lambda y: y.mul_(1)):
        a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([2.0, 4.0], requires_grad=True)
        change(function(a, b)).sum().backward()
        grads.append((a.grad.tolist(), b.grad.tolist()))
    assert grads[0] == grads[1]
    assert expected is None or grads[0] == expected
