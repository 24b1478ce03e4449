"""Names of PyTorch's pages that few ask for: what each does here, or why it is not there."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.absent.reasons import why
from rushlight.nn import functional as F

S = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0]), (3, 3))
D = torch.arange(12.0).view(3, 4)


@pytest.mark.parametrize("name", ["smm", "hspmm", "hsmm", "dsmm"])
def test_products_with_sparse_results(name: str) -> None:
    found = getattr(torch, name)(S, D)
    assert (found.to_dense() if found.is_sparse else found).tolist() == (S.to_dense() @ D).tolist()
    assert found.is_sparse == (name != "dsmm")
    if name == "hspmm":
        assert found._indices().tolist() == [[0, 1]] and tuple(found._values().shape) == (2, 4)  # as in PyTorch
    if name == "smm":
        assert found._nnz() == 8 and not found.is_coalesced()


@pytest.mark.parametrize("name", ["smm", "hspmm"])
def test_products_with_sparse_results_have_gradients(name: str) -> None:
    values, dense = torch.tensor([3.0, 4.0, 5.0], requires_grad=True), D.clone().requires_grad_()
    sparse = torch.sparse_coo_tensor(S._indices(), values, (3, 3))
    getattr(torch, name)(sparse, dense).to_dense().pow(2).sum().backward()
    got = values.grad.tolist(), dense.grad.tolist()
    values.grad = dense.grad = None
    (torch.sparse_coo_tensor(S._indices(), values, (3, 3)).to_dense() @ dense).pow(2).sum().backward()
    assert got == (values.grad.tolist(), dense.grad.tolist())


def test_sparse_sum_of_a_matrix_and_a_product() -> None:
    added = torch.smm(S, D)
    found = torch.sspaddmm(added, S, D, beta=2, alpha=3)
    assert found._nnz() == 16 and found.to_dense().tolist() == (5 * (S.to_dense() @ D)).tolist()
    assert torch.saddmm(added, S, D).to_dense().tolist() == (2 * (S.to_dense() @ D)).tolist()
    with pytest.raises(RuntimeError, match=r"sspaddmm\(\): argument 'input' must be a sparse matrix of shape \[3, 4\]"):
        torch.sspaddmm(D, S, D)
    with pytest.raises(RuntimeError, match="mat2 must have 3 rows"):
        torch.hspmm(S, torch.ones(4, 4))
    with pytest.raises(TypeError, match=r"smm\(\): argument 'mat1' must be a sparse COO matrix, not Tensor"):
        torch.smm(D, D)
    with pytest.raises(TypeError, match="not CSR matrix: to_sparse"):
        torch.hspmm(S.to_sparse_csr(), D)


@pytest.mark.parametrize("kind", ["LSTM", "LSTM projected", "GRU", "RNN", "RNN relu"])
def test_recurrent_layers_with_given_weights(kind: str) -> None:
    torch.manual_seed(0)
    name, _, how = kind.partition(" ")
    extra = {"projected": {"proj_size": 2}, "relu": {"nonlinearity": "relu"}, "": {}}[how]
    module = getattr(nn, name)(3, 4, 2, bidirectional=True, **extra)
    call = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN": torch.rnn_relu if how == "relu" else torch.rnn_tanh}[name]
    x, size = torch.randn(5, 2, 3), extra.get("proj_size", 4)
    state = torch.randn(4, 2, size)
    state = (state, torch.randn(4, 2, 4)) if name == "LSTM" else state
    before = torch.get_rng_state()
    found = call(x, state, module._flat_weights, True, 2, 0.0, True, True, False)
    assert torch.equal(torch.get_rng_state(), before), "numbers were drawn for weights that nobody sees"
    output, last = module(x, state)
    expected = (output, *last) if name == "LSTM" else (output, last)
    assert [y.tolist() for y in found] == [y.tolist() for y in expected]
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3])
    found = call(packed.data, packed.batch_sizes, state, module._flat_weights, True, 2, 0.0, True, True)
    assert found[0].tolist() == module(packed, state)[0].data.tolist()
    found[0].sum().backward()
    assert all(w.grad is not None for w in module._flat_weights)


def test_operators_under_functionals() -> None:
    torch.manual_seed(0)
    theta = torch.randn(2, 2, 3)
    assert torch.equal(
        torch.affine_grid_generator(theta, (2, 1, 4, 5), False), F.affine_grid(theta, (2, 1, 4, 5), False)
    )
    x, y, w = torch.randn(3, 4), torch.rand(3, 4), torch.rand(4)
    for number, reduction in enumerate(("none", "mean", "sum")):
        assert torch.equal(torch.binary_cross_entropy_with_logits(x, y, None, w, number),
                           F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction=reduction))  # fmt: skip
    image, kernel, bias = torch.randn(2, 4, 7, 7), torch.randn(6, 2, 3, 3), torch.randn(6)
    assert torch.equal(torch.convolution(image, kernel, bias, (2, 2), (1, 1), (1, 1), False, (0, 0), 2),
                       F.conv2d(image, kernel, bias, 2, 1, 1, 2))  # fmt: skip
    kernel = torch.randn(4, 3, 3, 3)
    assert torch.equal(torch.convolution(image, kernel, bias, (2, 2), (1, 1), (1, 1), True, (1, 1), 2),
                       F.conv_transpose2d(image, kernel, bias, 2, 1, 1, 2, 1))  # fmt: skip
    v = torch.arange(6.0).view(2, 3)
    assert torch.norm_except_dim(v, 2, 0).tolist() == v.norm(dim=1, keepdim=True).tolist()
    assert torch.norm_except_dim(v, 2, 1).tolist() == v.norm(dim=0, keepdim=True).tolist()
    assert torch.norm_except_dim(v).shape == (2, 1) and torch.norm_except_dim(v, 2, -1).item() == v.norm().item()
    with pytest.raises(ValueError, match="reduction must be 0"):
        torch.binary_cross_entropy_with_logits(x, y, None, None, 3)


def test_maxima_with_indices_whatever_is_said() -> None:
    x, samples = torch.randn(1, 2, 8, 8), torch.rand(1, 2, 2)
    out, where = F.fractional_max_pool2d_with_indices(x, 2, output_size=3, _random_samples=samples)
    assert torch.equal(out, F.fractional_max_pool2d(x, 2, output_size=3, _random_samples=samples))
    assert torch.equal(x.flatten(2).gather(2, where.flatten(2)).view_as(out), out)
    out, where = F.fractional_max_pool3d_with_indices(torch.randn(1, 1, 4, 4, 4), 2, output_size=2)
    assert out.shape == where.shape == (1, 1, 2, 2, 2)


def test_tensor_on_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    np.arange(6, dtype=np.float32).tofile(path)
    assert torch.from_file(path, size=6).tolist() == [0, 1, 2, 3, 4, 5]
    shared = torch.from_file(path, True, 4, dtype=torch.float32)
    shared[0] = 9.0
    assert np.fromfile(path, np.float32)[0] == 9.0
    assert torch.from_file(str(tmp_path / "new"), True, 3, dtype=torch.int64).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError):
        torch.from_file(path, size=7)


def test_warnings_that_come_always() -> None:
    def warned() -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(3):
                torch.nuclear_norm(torch.ones(2, 2))
        return len(caught)

    assert not torch.is_warn_always_enabled() and warned() == 1
    torch.set_warn_always(True)
    try:
        assert torch.is_warn_always_enabled() and warned() == 3
    finally:
        torch.set_warn_always(False)
    with pytest.raises(TypeError, match="expected a bool, got int"):
        torch.set_warn_always(1)


def test_arguments_of_factories() -> None:
    assert nn.factory_kwargs(None) == {} and nn.factory_kwargs({"device": "cpu"}) == {"device": "cpu"}
    assert nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": torch.float64}}) == {
        "device": "cpu",
        "dtype": torch.float64,
    }
    with pytest.raises(TypeError, match="'bias' is none of device"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="'dtype' is given directly and under"):
        nn.factory_kwargs({"dtype": torch.float32, "factory_kwargs": {"dtype": torch.float64}})


def test_small_ones() -> None:
    from rushlight.compat.rooms.autocast_mode import autocast_decorator
    from rushlight.compat.rooms.grad_scaler import OptState
    from rushlight.utils.dlpack import DLDeviceType
    from rushlight.utils.hooks import unserializable_hook

    product = autocast_decorator(torch.autocast("cpu", torch.bfloat16), torch.mm)
    assert product(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.bfloat16 and product.__name__ == "mm"
    assert [state.value for state in OptState] == [0, 1, 2] and DLDeviceType.kDLCPU == torch.ones(
        1
    ).__dlpack_device__()[0]
    assert torch.has_lapack and not torch.has_mkl and torch.thread_safe_generator() is None
    assert torch.random.thread_safe_generator is torch.thread_safe_generator and torch.fft.Tensor is torch.Tensor
    assert unserializable_hook(print) is print if hasattr(print, "__dict__") else unserializable_hook(lambda: 0)

    class Own:
        pass

    torch.utils.set_module(Own, "somewhere")
    assert Own.__module__ == "somewhere"


@pytest.mark.parametrize(
    "name", "torch.indices_copy torch.resize_as_sparse_ torch.bit torch.cpp torch.slice_inverse "
    "torch.autograd.NestedIOFunction torch.autograd.gradcheck.get_numerical_jacobian torch.autograd.profiler_legacy.profile "
    "torch.nn.attention.varlen.varlen_attn torch.utils.mobile_optimizer.optimize_for_mobile "
    "torch.ao.quantization.quantize_fx torch.sparse.semi_structured.to_sparse_semi_structured".split())  # fmt: skip
def test_what_is_not_there_says_why(name: str) -> None:
    assert why(*name.rpartition(".")[::2])
    if name.count(".") == 1:
        with pytest.raises(AttributeError, match=r"has no attribute '\w+': \w+"):
            getattr(torch, name.partition(".")[2])
