"""Parametrizations on top of each other, what right_inverse may return, and the ready-made ones."""

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import utils
from rushlight.nn.utils import parametrizations, parametrize


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x

    def right_inverse(self, x: Any) -> Any:
        return x / 2


class Shifted(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + 1


class Returning(Shifted):
    """One whose right_inverse is the function given."""

    def __init__(self, inverse: Any) -> None:
        super().__init__()
        self.inverse = inverse

    def right_inverse(self, x: Any) -> Any:
        return self.inverse(x)


def layer_of(value: float, *chain: Any, unsafe: bool = False) -> Any:
    layer = nn.Linear(2, 1, bias=False)
    nn.init.constant_(layer.weight, value)
    for made in chain:
        parametrize.register_parametrization(layer, "weight", made, unsafe=unsafe)
    return layer


def test_a_second_parametrization_computes_from_the_result_of_the_first() -> None:
    layer = layer_of(8.0, Doubled(), Doubled())
    assert layer.weight.tolist() == [[16.0, 16.0]]
    layer.weight = torch.full((1, 2), 3.0)
    assert layer.weight.tolist() == [[3.0, 3.0]]


def test_the_first_needs_no_right_inverse_for_a_second() -> None:
    assert layer_of(8.0, Shifted(), Doubled()).weight.tolist() == [[18.0, 18.0]]


MISFITS = {
    "dtype": (lambda x: x.double(), "must have the same dtype"),
    "shape": (lambda x: x[0], "must have the same shape"),
    "kind": (lambda x: (x, x), "right_inverse must return a tensor"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_second_whose_right_inverse_does_not_fit_is_refused(misfit: str) -> None:
    inverse, message = MISFITS[misfit]
    with pytest.raises(ValueError, match=message):
        layer_of(8.0, Doubled(), Returning(inverse))


def test_a_refused_registration_leaves_the_parameter_as_it_was() -> None:
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.detach().clone()
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", Returning(lambda x: x[0]))
    assert torch.equal(layer.weight, before) and not parametrize.is_parametrized(layer)


@pytest.mark.parametrize("unsafe", [False, True])
def test_a_right_inverse_never_changes_the_dtype(unsafe: bool) -> None:
    with pytest.raises(ValueError, match="may not change the dtype"):
        layer_of(8.0, Returning(lambda x: x.double()), unsafe=unsafe)
    layer = layer_of(8.0, Returning(lambda x: x - 1), unsafe=unsafe)
    layer.parametrizations.weight[0].inverse = lambda x: x.double()
    with pytest.raises(ValueError, match=r"has dtype torch\.float64 while `original` has dtype torch\.float32"):
        layer.weight = torch.ones(1, 2)


def test_an_assigned_value_must_be_inverted_to_as_many_tensors() -> None:
    class Sum(nn.Module):
        count = 2

        def forward(self, x: Any, y: Any) -> Any:
            return x + y

        def right_inverse(self, z: Any) -> Any:
            return (z, torch.zeros_like(z))[: self.count]

    layer = layer_of(8.0, Sum())
    layer.parametrizations.weight[0].count = 1
    with pytest.raises(ValueError, match="must return a sequence of tensors of length 2"):
        layer.weight = torch.ones(1, 2)


def test_spectral_norm_iterates_u_first() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(4, 3))
    kept = layer.parametrizations.weight
    weight = kept.original.detach().numpy()
    _, v = (b.numpy().copy() for b in (kept[0]._u, kept[0]._v))
    with torch.no_grad():
        v[:] = np.array([1.0, 0.0, 0.0, 0.0])
        kept[0]._v.copy_(torch.from_numpy(v))
    computed = layer.weight
    u = weight @ v
    u /= np.linalg.norm(u)
    w = weight.T @ u
    w /= np.linalg.norm(w)
    np.testing.assert_allclose(kept[0]._u.numpy(), u, rtol=1e-5)
    np.testing.assert_allclose(kept[0]._v.numpy(), w, rtol=1e-5)
    np.testing.assert_allclose(computed.detach().numpy(), weight / (u @ weight @ w), rtol=1e-5)


def test_a_state_of_the_older_weight_norm_is_loaded() -> None:
    old = nn.Sequential(utils.weight_norm(nn.Linear(2, 3)))
    new = nn.Sequential(parametrizations.weight_norm(nn.Linear(2, 3)))
    new.load_state_dict(old.state_dict())
    assert torch.equal(new[0].weight, old[0].weight)
    assert list(new.state_dict()) == [
        "0.bias", "0.parametrizations.weight.original0", "0.parametrizations.weight.original1",
    ]  # fmt: skip


SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 3), (1, 1), (4, 1)]
MAPS = ["matrix_exp", "cayley", "householder"]


def matrix_of(shape: Any, dtype: Any = None) -> Any:
    module = nn.Module()
    torch.manual_seed(0)
    module.weight = nn.Parameter(torch.randn(shape, dtype=dtype or torch.float64))
    return module


def is_orthogonal(q: Any) -> bool:
    q = q.detach()
    gram = q.mH @ q if q.shape[-2] >= q.shape[-1] else q @ q.mH
    return bool(torch.allclose(gram, torch.eye(gram.shape[-1], dtype=gram.dtype).expand_as(gram)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("trivial", [True, False])
def test_the_matrix_is_orthogonal_wherever_it_moves(shape: Any, name: str, trivial: bool) -> None:
    module = parametrizations.orthogonal(matrix_of(shape), "weight", name, use_trivialization=trivial)
    assert is_orthogonal(module.weight)
    free = module.parametrizations.weight.original
    module.weight.square().cumsum(-1).sum().backward()
    step = torch.randn_like(free)
    step.diagonal(dim1=-2, dim2=-1).zero_()
    with torch.no_grad():
        free += step
    assert is_orthogonal(module.weight) and hasattr(module.parametrizations.weight[0], "base") is trivial


@pytest.mark.parametrize("name", ["matrix_exp", "cayley"])
def test_a_complex_matrix_is_unitary(name: str) -> None:
    module = parametrizations.orthogonal(matrix_of((4, 3), torch.complex128), "weight", name)
    free = module.parametrizations.weight.original
    with torch.no_grad():
        free.copy_(torch.randn(4, 3, dtype=torch.complex128))
    assert is_orthogonal(module.weight)


def test_matrices_that_are_not_square_are_mapped_by_reflections() -> None:
    maps = {shape: parametrizations.orthogonal(matrix_of(shape)).parametrizations.weight[0].orthogonal_map
            for shape in [(3, 3), (5, 3), (3, 5)]}  # fmt: skip
    assert maps == {(3, 3): "matrix_exp", (5, 3): "householder", (3, 5): "householder"}


@pytest.mark.parametrize("shape", SHAPES)
def test_reflections_can_be_assigned_without_a_base(shape: Any) -> None:
    module = parametrizations.orthogonal(matrix_of(shape), "weight", "householder", use_trivialization=False)
    value = torch.linalg.qr(torch.randn(*shape[:-2], 5, 5, dtype=torch.float64))[0]
    value = torch.linalg.qr(value[..., : max(shape[-2:]), : min(shape[-2:])])[0]
    value = value if shape[-2] >= shape[-1] else value.mT
    module.weight = value
    torch.testing.assert_close(module.weight.detach(), value)


def test_what_an_orthogonal_matrix_cannot_be_is_refused() -> None:
    fixed = parametrizations.orthogonal(matrix_of((3, 3)), "weight", use_trivialization=False)
    with pytest.raises(NotImplementedError, match="use_trivialization=False"):
        fixed.weight = torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"matrices of shape torch\.Size\(\[3, 3\]\)"):
        parametrizations.orthogonal(matrix_of((3, 3))).weight = torch.eye(2, dtype=torch.float64)
    with pytest.raises(ValueError, match="does not support complex tensors"):
        parametrizations.orthogonal(matrix_of((3, 3), torch.complex128), "weight", "householder")
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(matrix_of((3, 3)), "weight", "other")
