"""What an operator has no derivative by is refused at every level, rather than a derivative of 0."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch

F = torch.nn.functional
X, Y = torch.arange(6.0).reshape(3, 2).cos(), torch.tensor([0, 1, 1])
LOSSES: dict[str, Any] = {
    "nll_loss": lambda w: F.nll_loss(X, Y, weight=w),
    "cross_entropy": lambda w: F.cross_entropy(X, Y, weight=w),
    "linear_cross_entropy": lambda w: F.linear_cross_entropy(X, X[:2], Y, weight=w),
    "binary_cross_entropy": lambda w: F.binary_cross_entropy(X.sigmoid(), X.sigmoid(), weight=w),
}
NORMS: dict[str, Any] = {
    "batch_norm": lambda w: F.batch_norm(X, w, w + 1).sum(),
    "instance_norm": lambda w: F.instance_norm(X.mT[None], w, w + 1, use_input_stats=False).sum(),
}
WEIGHTS = torch.tensor([[1.9, 0.9], [1.0, 2.0]])


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("name", [*LOSSES, *NORMS])
def test_gradients_of_vmap_by_what_has_none_are_refused(name: str) -> None:
    f = torch.func.vmap((LOSSES | NORMS)[name])
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
        torch.func.grad(lambda w: f(w).sum())(WEIGHTS)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
        f(WEIGHTS.clone().requires_grad_())


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("name", LOSSES)
def test_tangents_by_what_has_none_are_refused(name: str) -> None:
    for f, x in [(LOSSES[name], WEIGHTS[0]), (torch.func.vmap(LOSSES[name]), WEIGHTS)]:
        f(x)
        with pytest.raises(NotImplementedError, match="no derivative by 'weight'"):
            torch.func.jvp(f, (x,), (x,))
