"""The margins of few labels among many classes: pairs are made for the labels that there are."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory

F = torch.nn.functional


def drawn(rows, classes, most):
    generator = np.random.default_rng(0)
    target = np.full((rows, classes), -1)
    for row in target:
        count = generator.integers(0, most + 1)
        row[:count] = generator.integers(0, classes, count)
    return torch.randn(rows, classes, dtype=torch.float64), torch.from_numpy(target)


def by_loops(x, target):
    x, loss = x.numpy(), np.zeros(len(x))
    for n, row in enumerate(target.numpy()):
        labels = row[: int(np.argmax(row < 0))] if (row < 0).any() else row
        others = np.setdiff1d(np.arange(x.shape[1]), labels)
        loss[n] = sum(np.maximum(0, 1 - (x[n, y] - x[n, others])).sum() for y in labels) / x.shape[1]
    return loss


@pytest.mark.parametrize("most", [0, 1, 3, 12])
def test_losses_are_those_of_the_definition(most):
    x, target = drawn(7, 12, most)
    assert np.allclose(F.multilabel_margin_loss(x, target, reduction="none").numpy(), by_loops(x, target))
    assert torch.autograd.gradcheck(lambda t: F.multilabel_margin_loss(t, target), x.requires_grad_())


def test_three_labels_among_a_thousand_classes_take_pairs_of_three():
    x, target = drawn(64, 1000, 3)
    x.requires_grad_()
    memory.reset_peak()
    before = memory.current()
    F.multilabel_margin_loss(x, target).backward()
    assert memory.peak() - before < 20 * x.nbytes  # all pairs of classes are 512 MB, thrice
