"""Orthogonal matrices and normalised weights computed from the same free ones as PyTorch's, and their gradients."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (1, 1), (4, 1)]
MAPS = [None, "matrix_exp", "cayley", "householder"]


def orthogonal(t, shape, dtype, name, trivial):
    """Names of the state, and values: the weight and the free matrix's gradient, from the same free matrix and base."""
    rng = np.random.default_rng(0)

    def draw(size):
        made = rng.standard_normal(size)
        return (made + 1j * rng.standard_normal(size) if dtype == "complex128" else made).astype(dtype)

    module = t.nn.Module()
    module.weight = t.nn.Parameter(t.from_numpy(draw(shape)))
    t.nn.utils.parametrizations.orthogonal(module, "weight", name, use_trivialization=trivial)
    kept = module.parametrizations.weight
    start = [] if trivial else [module.weight.detach().numpy().copy(), kept.original.detach().numpy().copy()]
    with t.no_grad():
        kept.original.copy_(t.from_numpy(draw(shape) * 2))
        if trivial:
            kept[0].base.copy_(t.from_numpy(np.linalg.qr(draw(tuple(kept[0].base.shape)))[0]))
    weight = module.weight
    (weight.abs() ** 2).cumsum(-1).sum().add(
        t.view_as_real(weight).sum() if weight.is_complex() else weight.sum()
    ).backward()
    return list(module.state_dict()), [*start, weight.detach().numpy(), kept.original.grad.numpy()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_is_as_in_torch(shape, dtype, name, trivial):
    if name == "householder" and dtype == "complex128":
        pytest.skip("refused by both")
    (names, found), (others, expected) = (orthogonal(t, shape, dtype, name, trivial) for t in (rushlight, torch))
    assert names == others
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_what_completes_an_orthogonal_base_are_numbers_of_the_seed(shape, dtype):
    results = []
    for t in (rushlight, torch):
        t.manual_seed(3)
        module = t.nn.Module()
        module.weight = t.nn.Parameter(t.randn(shape, dtype=getattr(t, dtype)))
        t.nn.utils.parametrizations.orthogonal(module, "weight", "matrix_exp")
        results.append((module.parametrizations.weight[0].base.numpy(), t.rand(1).item()))
    (found, after), (expected, others) = results
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert after == others


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_spectral_norm_is_as_in_torch(times, training, dim):
    results = []
    for t in (rushlight, torch):
        layer = t.nn.utils.parametrizations.spectral_norm(t.nn.Linear(4, 3), n_power_iterations=times, dim=dim)
        rng = np.random.default_rng(0)
        state = {}
        for key, value in layer.state_dict().items():
            made = rng.standard_normal(tuple(value.shape)).astype("float32")
            state[key] = t.from_numpy(made / (np.linalg.norm(made) if key.endswith(("_u", "_v")) else 1))
        layer.load_state_dict(state)
        layer.train(training)
        out = [layer(t.ones(2, 4)) for _ in range(2)][-1]
        out.square().sum().backward()
        kept = layer.parametrizations.weight
        results.append([x.detach().numpy() for x in (out, kept.original.grad, kept[0]._u, kept[0]._v)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
