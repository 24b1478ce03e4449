"""What is decided in the first run of a checkpointed function, and holds in the second."""

import contextlib
import functools

import pytest

import rushlight as torch
from rushlight.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)


def setting(value):
    return contextlib.nullcontext() if value is None else set_checkpoint_early_stop(value)


@pytest.mark.parametrize("first", [None, True, False])
@pytest.mark.parametrize("second", [None, True, False])
@pytest.mark.parametrize("said", [True, False])
def test_early_stop_is_what_it_was_in_the_first_run(first, second, said):
    ends = []

    def f(x):
        found = x.exp().sin()
        ends.append(1)
        return found

    x = torch.ones(2, requires_grad=True)
    with setting(first):
        out = checkpoint(f, x, use_reentrant=False, early_stop=said)
    with setting(second):
        out.sum().backward()
    early = said if first is None else first
    assert len(ends) == (1 if early else 2)


@pytest.mark.parametrize("times", [1, 2])
def test_a_policy_is_asked_once_for_each_call(times):
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append(ctx.is_recompute)
        return CheckpointPolicy.MUST_SAVE if len(asked) % 2 else CheckpointPolicy.PREFER_RECOMPUTE

    x = torch.rand(3, 3, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    out = checkpoint(lambda x: x.mm(x).sin().mm(x).exp(), x, use_reentrant=False, context_fn=contexts)
    found = [torch.autograd.grad(out.sum(), x, retain_graph=True)[0] for _ in range(times)]
    assert asked == [False] * 4
    expected = torch.autograd.grad(x.mm(x).sin().mm(x).exp().sum(), x)[0]
    for g in found:
        torch.testing.assert_close(g, expected)
