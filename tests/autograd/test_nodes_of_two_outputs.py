"""var_mean, std_mean and aminmax: one node with two outputs, and gradients of either alone or both."""

import pytest

import rushlight as torch
from rushlight.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

CALLS = {
    "VarMean": (torch.var_mean, lambda x, **k: (x.var(**k), x.mean(**k))),
    "StdMean": (torch.std_mean, lambda x, **k: (x.std(**k), x.mean(**k))),
    "Aminmax": (torch.aminmax, lambda x, **k: (x.amin(**k), x.amax(**k))),
}


def values():
    return torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 3.5]], dtype=torch.float64)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("arguments", [{}, {"dim": 1}, {"dim": 0, "keepdim": True}])
def test_one_node_with_two_outputs(name, arguments):
    both, apart = CALLS[name]
    x = values().requires_grad_()
    first, second = both(x, **arguments)
    assert first.grad_fn is second.grad_fn
    assert first.grad_fn.name() == f"{name}Backward0"
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert first.grad_fn._saved_self is x
    for wanted in ((1, 0), (0, 1), (2, 3)):
        total = sum(w * t.sum() for w, t in zip(wanted, both(x, **arguments), strict=True) if w)
        expected = sum(w * t.sum() for w, t in zip(wanted, apart(x, **arguments), strict=True) if w)
        (g,), (h,) = torch.autograd.grad(total, x), torch.autograd.grad(expected, x)
        assert torch.allclose(g, h)


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives_tangents_and_samples(name):
    both, apart = CALLS[name]
    x = values().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tuple(both(x, dim=1)), (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: tuple(both(x, dim=1)), (x,))
    for arguments in ({}, {"dim": 0}):
        for in_dims in (0, 1):
            found = torch.func.vmap(lambda x: tuple(both(x, **arguments)), in_dims=in_dims)(values())  # noqa: B023
            wanted = torch.func.vmap(lambda x: apart(x, **arguments), in_dims=in_dims)(values())  # noqa: B023
            assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_samples_without_dimensions():
    x = torch.tensor([1.0, 2.0])
    assert [t.tolist() for t in torch.func.vmap(lambda x: tuple(torch.aminmax(x)))(x)] == [[1, 2], [1, 2]]
    found = torch.func.vmap(lambda x: torch.var_mean(x, correction=0))(x)
    assert [t.tolist() for t in found] == [[0, 0], [1, 2]]


def test_halves_and_complex_numbers():
    x = (values() * (1 + 1j)).requires_grad_()
    spread, mean = torch.var_mean(x, 1)
    assert (spread.dtype, mean.dtype) == (torch.float64, torch.complex128)
    assert torch.autograd.gradcheck(lambda x: torch.var_mean(x, 1), (x,))
    half = values().half().requires_grad_()
    for t in torch.std_mean(half, 1):
        assert t.dtype is torch.float16
    torch.std_mean(half)[0].backward()
    assert torch.allclose(half.grad.double(), torch.func.grad(lambda x: x.std())(values()), atol=1e-3)


@pytest.mark.parametrize(
    ("operator", "function"),
    [(torch.ops.aten.var_mean.correction, torch.var_mean), (torch.ops.aten.std_mean.correction, torch.std_mean),
     (torch.ops.aten.max_pool2d_with_indices.default, lambda x: (torch.nn.functional.max_pool2d(x[None, None], 2), x))],
)  # fmt: skip
def test_policies_of_checkpoints_know_them(operator, function):
    seen = []

    def policy(context, op, *args, **kwargs):
        seen.append(op is operator)
        return CheckpointPolicy.MUST_SAVE if op is operator else CheckpointPolicy.PREFER_RECOMPUTE

    x = values().requires_grad_()
    out = checkpoint(lambda x: function(x * 2)[0].sum().sin(), x, use_reentrant=False,
                     context_fn=lambda: create_selective_checkpoint_contexts(policy))  # fmt: skip
    assert seen.count(True) == 1
    (g,), (h,) = torch.autograd.grad(out, x), torch.autograd.grad(function(x * 2)[0].sum().sin(), x)
    assert torch.equal(g, h)
