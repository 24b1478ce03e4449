"""complex32: what moves its elements or is computed in complex64 and rounded works, all else is refused by name."""

import io
import pickle

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
from rushlight import stores
from rushlight.basics import dtypes
from rushlight.dispatch.declare import OPS

VALUES = [1 + 2j, 3 - 4j, 0j, 0.5j]


def chalf(values=VALUES):
    return torch.tensor(values, dtype=torch.complex32)


def test_the_dtype():
    assert torch.chalf is torch.complex32
    assert torch.complex32.is_complex
    assert not torch.complex32.is_floating_point
    assert torch.complex32.itemsize == 4
    assert torch.complex32.to_real() is torch.float16
    assert torch.float16.to_complex() is torch.complex32
    assert torch.bfloat16.to_complex() is torch.complex64
    assert torch.finfo(torch.complex32).dtype == "float16"
    assert chalf().type() == "torch.ComplexHalfTensor"
    assert chalf().is_complex()
    assert repr(chalf([1 + 2j, 0.5])) == "tensor([1.0000+2.j, 0.5000+0.j], dtype=torch.complex32)"


@pytest.mark.parametrize(
    ("other", "expected"),
    [("float16", "complex32"), ("bfloat16", "complex64"), ("float32", "complex64"), ("float64", "complex128"),
     ("complex64", "complex64"), ("complex128", "complex128"), ("int64", "complex32"), ("bool", "complex32")],
)  # fmt: skip
def test_it_meets_other_dtypes(other, expected):
    other, expected = getattr(torch, other), getattr(torch, expected)
    assert torch.promote_types(torch.complex32, other) is expected
    assert torch.promote_types(other, torch.complex32) is expected
    assert (chalf() + torch.ones(4, dtype=other)).dtype is expected


def test_imaginary_numbers_make_halves_complex32():
    half = torch.tensor([1.0, 2.0], dtype=torch.float16)
    assert (half * 1j).dtype is torch.complex32
    assert (half * 1j).tolist() == [1j, 2j]
    assert (half.bfloat16() * 1j).dtype is torch.complex64


REFUSED = [
    "exp",
    "sin",
    "sqrt",
    "square",
    "sigmoid",
    "tanh",
    "angle",
    "reciprocal",
    "sum",
    "mean",
    "prod",
    "logical_not",
]


@pytest.mark.parametrize("name", REFUSED)
def test_operators_without_a_rule_for_it_are_refused(name):
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'ComplexHalf': .*cfloat"):
        getattr(torch, name)(chalf())


def test_refused_in_place_inside_vmap_and_with_out():
    x = chalf()
    for call in (lambda: x.exp_(), lambda: torch.exp(x, out=chalf()), lambda: torch.func.vmap(torch.exp)(x), lambda: x / x,
                 lambda: x @ x, lambda: x**2, lambda: torch.linalg.inv(x.reshape(2, 2)), lambda: torch.cov(x)):  # fmt: skip
        with pytest.raises((NotImplementedError, RuntimeError), match=r"ComplexHalf|complex32"):
            call()
    assert x.tolist() == VALUES


def test_an_operator_without_a_declaration_is_refused_before_its_forward_runs():
    allowed = {op.name for op in OPS.values() if op.complex_half}
    assert {"exp", "sum", "mm", "div", "softmax", "gelu", "layer_norm"} & allowed == set()
    assert all(OPS[name].complex_half in ("moves", "widens") for name in allowed)


def test_results_are_rounded_once():
    a, b = chalf([1.001 + 2.003j]), chalf([3.007 - 1.002j])
    assert ((a * b).cfloat() == (a.cfloat() * b.cfloat()).chalf().cfloat()).all()
    tiny = chalf([6e-8 + 0j])
    assert (tiny * 1e5).item() == complex((tiny.cfloat() * 1e5).chalf().item())  # 1e5 itself is beyond float16


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_conversions():
    x = chalf([1.5 - 2j, 300])
    assert x.chalf() is x
    assert x.cfloat().tolist() == x.cdouble().tolist() == [1.5 - 2j, 300 + 0j]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert x.to(dtype).tolist() == [1.5, 300.0]
        assert torch.tensor([1.5, 300.0], dtype=dtype).chalf().tolist() == [1.5 + 0j, 300 + 0j]
    assert x.long().tolist() == [1, 300]
    assert x.bool().tolist() == [True, True]
    assert torch.tensor([70000.0]).chalf().isinf().item()
    with pytest.raises(TypeError, match=r"ComplexHalf: NumPy has no such dtype\. Use tensor\.cfloat"):
        x.numpy()
    with pytest.raises(TypeError, match="ComplexHalf"):
        np.asarray(x)
    with pytest.raises(BufferError, match="complex32"):
        x.__dlpack__()


def test_parts_and_conjugates_are_views_of_it():
    x = chalf()
    x.real.fill_(2)
    x.imag[0] = -1
    torch.view_as_real(x)[1, 1] = 5
    assert x.tolist() == [2 - 1j, 2 + 5j, 2 + 0j, 2 + 0.5j]
    y = x.conj()
    assert y.is_conj()
    y[0] = 1j
    assert x[0].item() == -1j
    assert y.imag.dtype is torch.float16
    assert torch.view_as_complex(torch.view_as_real(x)).data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    "function",
    [lambda x: x * x.conj() + 2j * x, lambda x: x.abs(), lambda x: x.real * x, lambda x: -x.imag, lambda x: x[1:] * x[0],
     lambda x: torch.cat([x, x * 2]), lambda x: x.T.reshape(2, 2).tril(), lambda x: x * x.real.float(),
     lambda x: torch.stack([x, 1 - x]), lambda x: x.index_select(0, torch.tensor([0, 0, 1])), lambda x: x.expand(3, 4),
     lambda x: torch.where(x == 0, x, 3 * x), lambda x: x.cfloat().exp(), lambda x: x.unfold(0, 3, 1),
     lambda x: torch.complex(x.real, x.abs()), lambda x: x.masked_fill(x == 0, 1j), lambda x: x.clone().mul_(x)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*T.* on tensors of dimension other than 2:UserWarning")
def test_gradients_are_those_of_complex64_rounded(function):
    def gradient(x, create_graph):
        y = function(x)
        ones = torch.full_like(y, 0.5 - 0.25j if y.is_complex() else 0.5)
        return torch.autograd.grad(y, x, ones, create_graph=create_graph)[0]

    narrow, wide = chalf().requires_grad_(), chalf().cfloat().requires_grad_()
    expected = gradient(wide, False)
    for create_graph in (False, True):
        g = gradient(narrow, create_graph)
        assert g.dtype is torch.complex32
        torch.testing.assert_close(g.detach().cfloat(), expected, rtol=3e-3, atol=3e-3)


def test_gradients_accumulate_in_leaves():
    x = chalf().requires_grad_()
    for _ in range(2):
        torch.view_as_real(x * 2j).sum().backward()
    assert x.grad.dtype is torch.complex32
    assert x.grad.tolist() == [4 - 4j] * 4


def test_forward_mode_and_vmap():
    x, t = chalf(), chalf([1, 1j, 1, 2])
    assert torch.func.jvp(lambda x: x * x, (x,), (t,))[1].tolist() == (2 * x * t).tolist()
    rows = x.reshape(2, 2)
    assert torch.func.vmap(lambda row: row * row[0])(rows).tolist() == (rows * rows[:, :1]).tolist()


def test_optimizers_step_it_as_pairs_of_real_numbers():
    x = chalf().requires_grad_()
    pairs = torch.view_as_real(chalf()).clone().requires_grad_()
    for p in (x, pairs):
        optimizer = torch.optim.Adam([p], lr=0.1)
        for _ in range(3):
            p.grad = torch.view_as_complex(torch.ones(4, 2).half()) if p.is_complex() else torch.ones(4, 2).half()
            optimizer.step()
    assert torch.view_as_real(x.detach()).tolist() == pairs.tolist()


def test_it_is_saved_loaded_pickled_and_stored():
    x, file = chalf(), io.BytesIO()
    torch.save({"x": x, "conj": x.conj()}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["x"].dtype is torch.complex32
    assert found["x"].tolist() == VALUES
    assert found["conj"].tolist() == x.conj().tolist()
    assert pickle.loads(pickle.dumps(x)).tolist() == VALUES


@pytest.mark.parametrize(
    "store", [lambda: stores.compress("lossless"), lambda: stores.compress("int8"), stores.disk, stores.recompute]
)
def test_it_goes_through_stores(store):
    x = chalf([1 + 2j]).repeat(1 << 16).requires_grad_()
    with store():
        y = x * x * 2
        z = y * y
    z.backward(torch.ones_like(z))
    assert abs(x.grad[0].item() - (-176 + 32j)) < 1  # int8 stores round


def test_arrays_of_it_become_tensors():
    array = np.array([1 + 2j]).astype(ml_dtypes.complex32)
    assert dtypes.of(array.dtype) is torch.complex32
    assert torch.from_numpy(array).tolist() == [1 + 2j]


def test_random_numbers():
    torch.manual_seed(0)
    for x in (torch.randn(4000, dtype=torch.chalf), chalf([0]).repeat(4000).normal_()):
        assert abs(x.cfloat().abs().square().mean().item() - 1) < 0.1
    uniform = torch.rand(1000, dtype=torch.chalf)
    assert ((uniform.real >= 0) & (uniform.imag < 1)).all()
    assert uniform.imag.float().std().item() > 0.2
