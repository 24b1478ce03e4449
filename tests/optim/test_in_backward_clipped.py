"""Loops that clip gradients as ever, of an optimizer that has clipped them inside backward."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.nn.utils import clip_grad_norm_, clip_grad_value_

nn = torch.nn


def trained(fused: bool, clip: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    """Norms, and parameters after some steps of a loop that clips."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer, norms = torch.optim.AdamW(model.parameters(), lr=0.1), []
    handle = torch.optim.in_backward(optimizer, **options) if fused else None
    for _ in range(4):
        optimizer.zero_grad()
        (model(torch.randn(5, 4)) * 3).square().sum().backward()
        norms.append(clip(model))
        optimizer.step()
    if handle is not None:
        assert handle.steps == 4
    return [None if n is None else n.item() for n in norms], [p.tolist() for p in model.parameters()]


@pytest.mark.parametrize(
    ("clip", "options"),
    [
        (lambda m: clip_grad_norm_(m.parameters(), 0.5), {"clip_grad_norm": 0.5}),
        (
            lambda m: clip_grad_norm_(m.parameters(), 0.5, float("inf")),
            {"clip_grad_norm": 0.5, "norm_type": float("inf")},
        ),
        (
            lambda m: clip_grad_norm_(m.parameters(), 0.5, error_if_nonfinite=True),
            {"clip_grad_norm": 0.5, "error_if_nonfinite": True},
        ),
        (lambda m: clip_grad_value_(m.parameters(), 0.01), {"clip_grad_value": 0.01}),
        (
            lambda m: (clip_grad_value_(m.parameters(), 0.1), clip_grad_norm_(m.parameters(), 0.5))[1],
            {"clip_grad_norm": 0.5, "clip_grad_value": 0.1},
        ),
    ],
    ids=["norm", "largest", "finite", "value", "both"],
)
def test_a_loop_that_clips_needs_no_change(clip: Any, options: dict[str, Any]) -> None:
    assert trained(True, clip, **options) == trained(False, clip)


@pytest.mark.parametrize(
    ("clip", "options"),
    [
        (lambda m: clip_grad_norm_(m.parameters(), 0.25), {"clip_grad_norm": 0.5}),
        (lambda m: clip_grad_norm_(m.parameters(), 0.5, 1.0), {"clip_grad_norm": 0.5}),
        (lambda m: clip_grad_norm_(m.parameters(), 0.5, error_if_nonfinite=True), {"clip_grad_norm": 0.5}),
        (lambda m: clip_grad_norm_(m[0].parameters(), 0.5), {"clip_grad_norm": 0.5}),
        (lambda m: clip_grad_norm_([*m.parameters(), nn.Parameter(torch.ones(1))], 0.5), {"clip_grad_norm": 0.5}),
        (lambda m: clip_grad_norm_(m.parameters(), 0.5), {"clip_grad_norm": 0.5, "clip_by": "parameter"}),
        (lambda m: clip_grad_norm_(m.parameters(), 0.5), {}),
        (lambda m: clip_grad_value_(m.parameters(), 0.5), {"clip_grad_value": 0.25}),
        (lambda m: clip_grad_value_(m.parameters(), 0.5), {"clip_grad_norm": 0.5}),
    ],
    ids=["limit", "order", "finite", "some", "more", "each", "not", "value", "norm"],
)
def test_another_clipping_than_was_made_is_refused(clip: Any, options: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="clipping the gradients of parameters that have been stepped"):
        trained(True, clip, **options)


def test_clipping_before_a_step_was_made_is_refused() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with torch.optim.in_backward(optimizer, accumulate=2, clip_grad_norm=0.5):
        weight.sum().backward()
        with pytest.raises(RuntimeError, match="clipping the gradients"):
            clip_grad_norm_([weight], 0.5)
        weight.sum().backward()
        assert clip_grad_norm_([weight], 0.5).item() == pytest.approx(2 * 3**0.5)
        optimizer.step()
        with pytest.raises(RuntimeError, match="clipping the gradients"):
            clip_grad_norm_([weight], 0.5)
