"""Names that begin with an underscore and that programs import all the same: what lies below them answers as PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight
from rushlight.distributions import Categorical, Dirichlet, Normal
from rushlight.distributions.kl import _kl_expfamily_expfamily
from rushlight.distributions.vectors.dirichlet import _Dirichlet_backward
from rushlight.masked import _ops
from rushlight.masked.maskedtensor import binary, core, reductions, unary

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = """
torch._addmm_activation(torch.ones(2, 2) * 0.3, torch.ones(2, 2), torch.ones(2, 2) * 0.2, beta=2, alpha=3)
torch._addmm_activation(torch.ones(2, 2) * 0.3, torch.ones(2, 2), torch.ones(2, 2) * 0.2, use_gelu=True)
torch._addmm_activation(-torch.ones(2), torch.ones(2, 2), -torch.ones(2, 2))
torch._int_mm(torch.arange(102).reshape(17, 6).to(torch.int8), torch.arange(12).reshape(6, 2).to(torch.int8))
torch._int_mm(torch.ones(2, 2), torch.ones(2, 2))
torch._int_mm(torch.full((2, 3), 200, dtype=torch.uint8), torch.full((3, 2), -100, dtype=torch.int8))
torch._int_mm(torch.full((2, 3), -100, dtype=torch.int8), torch.full((3, 2), 200, dtype=torch.uint8))
torch._grouped_mm(torch.ones(16, 8), torch.ones(3, 8, 16), torch.tensor([4, 4, 16], dtype=torch.int32))
torch._has_compatible_shallow_copy_type(torch.ones(2), torch.ones(3))
torch._has_compatible_shallow_copy_type(torch.ones(2), torch.ones(3).to_sparse())
torch._prims_common.suggest_memory_format(torch.ones(2, 3, 4, 5)) is torch.contiguous_format
torch._prims_common.suggest_memory_format(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)) is torch.channels_last
torch._prims_common.suggest_memory_format(torch.ones(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d)) is torch.channels_last_3d
torch._prims_common.suggest_memory_format(torch.ones(2, 3, 4, 5).mT) is torch.contiguous_format
torch.cpu._is_avx2_supported(), torch.cpu._is_avx512_supported(), torch.cpu._is_vnni_supported(), torch.cpu._is_amx_tile_supported()
[(d, getattr(torch, d).itemsize, getattr(torch, d).is_floating_point, getattr(torch, d).is_complex) for d in ("int4", "uint1", "bits16", "float4_e2m1fn_x2")]
torch.int4.is_signed, torch.uint4.is_signed
torch.promote_types(torch.uint4, torch.float32) is torch.float32
isinstance(torch.ops.aten.mm.default, torch._ops.OpOverload), isinstance(torch.ops.aten.mm, torch._ops.OpOverloadPacket)
str(torch.ops._c10d_functional.wait_tensor.default), str(torch.ops._c10d_functional.all_reduce.default)
torch._compute_linear_combination(torch.arange(6.0).reshape(3, 2), torch.arange(6.0).reshape(2, 3))
torch._debug_has_internal_overlap(torch.ones(2, 3))
torch._debug_has_internal_overlap(torch.ones(2, 3).t())
torch._debug_has_internal_overlap(torch.ones(4, 4)[:, ::2])
torch._debug_has_internal_overlap(torch.ones(1).expand(2))
torch._debug_has_internal_overlap(torch.ones(6).as_strided((2, 2), (1, 1)))
torch._standard_gamma_grad(torch.tensor([0.5, 2.0]), torch.tensor([0.3, 4.0]))
torch._dirichlet_grad(torch.tensor([0.1, 0.3, 0.99]), torch.tensor([0.2, 1.0, 20.0]), torch.tensor([1.0, 3.0, 22.0]))
torch._validate_sparse_coo_tensor_args(torch.tensor([[0, 1]]), torch.ones(2), (2,))
torch._validate_sparse_coo_tensor_args(torch.tensor([[0, 2]]), torch.ones(2), (2,))
torch._validate_sparse_csr_tensor_args(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
torch._validate_sparse_csc_tensor_args(torch.tensor([0, 2]), torch.tensor([0]), torch.ones(1), (1, 1))
torch._validate_sparse_compressed_tensor_args(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1), torch.sparse_csr)
""".strip().splitlines()


def answer(library: Any, program: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(program, {"torch": library})
        except RuntimeError:
            return RuntimeError
    return (str(found.dtype), found.tolist()) if isinstance(found, library.Tensor) else found


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_answer_is_pytorchs(program: str) -> None:
    here, there = (answer(library, program) for library in (rushlight, reference))
    if isinstance(there, tuple) and there[0] == "torch.float32":
        assert here[0] == there[0] and rushlight.allclose(
            rushlight.tensor(here[1]), rushlight.tensor(there[1]), rtol=1e-3
        )
    else:
        assert here == there


def test_the_gradient_of_a_sample_of_dirichlet() -> None:
    from torch.distributions.dirichlet import _Dirichlet_backward as theirs

    numbers = [0.2, 0.3, 0.5], [1.0, 2.0, 3.0], [1.0, 0.0, 0.5]
    found = _Dirichlet_backward(*(rushlight.tensor(x) for x in numbers))
    assert found.tolist() == pytest.approx(theirs(*(reference.tensor(x) for x in numbers)).tolist(), rel=1e-3)


def test_the_divergence_of_one_family() -> None:
    p, q = Normal(rushlight.tensor(0.0), 1.0), Normal(rushlight.tensor(1.0), 2.0)
    assert _kl_expfamily_expfamily(p, q).item() == pytest.approx(rushlight.distributions.kl_divergence(p, q).item())
    with pytest.raises(NotImplementedError):
        _kl_expfamily_expfamily(p, Categorical(rushlight.ones(2)))
    with pytest.raises(ValueError, match="`concentration` parameter must be at least one-dimensional"):
        Dirichlet(rushlight.tensor(1.0))


def test_operators_of_masked_tensors_have_their_names() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.masked.maskedtensor import binary as b
        from torch.masked.maskedtensor import reductions as r
        from torch.masked.maskedtensor import unary as u
    assert unary.UNARY_NAMES == u.UNARY_NAMES and set(unary.INPLACE_UNARY_NAMES) == set(u.INPLACE_UNARY_NAMES)
    assert binary.BINARY_NAMES == b.BINARY_NAMES and set(binary.INPLACE_BINARY_NAMES) == set(b.INPLACE_BINARY_NAMES)
    assert reductions.REDUCE_NAMES == r.REDUCE_NAMES
    assert [fn.__name__ for fn in unary.NATIVE_UNARY_FNS] == [fn.__name__ for fn in u.NATIVE_UNARY_FNS]


def test_masks_and_tensors_match() -> None:
    mask = rushlight.tensor([True, False])
    one, other = (rushlight.masked.masked_tensor(rushlight.ones(2), m) for m in (mask, ~mask))
    assert core._masks_match(one, one) and not core._masks_match(one, other) and core._masks_match(one, mask)
    assert core._tensors_match(rushlight.ones(2), rushlight.ones(2).double())
    assert not core._tensors_match(rushlight.ones(2), rushlight.zeros(2))
    assert core._tensors_match(rushlight.ones(2), rushlight.ones(2) + 1e-3, exact=False, rtol=0.1, atol=1.0)
    with pytest.raises(ValueError, match="MaskedTensor"):
        core._tensors_match(one, one)
    x = rushlight.tensor([1.0, 2.0])
    for op, value in (
        (rushlight.sum, 0.0),
        (rushlight.prod, 1.0),
        (rushlight.amax, -float("inf")),
        (rushlight.amin, float("inf")),
    ):
        assert _ops._combine_input_and_mask(op, x, mask).tolist() == [1.0, value]
    with pytest.raises(ValueError, match="expected masked operation"):
        _ops._combine_input_and_mask("sum", x, mask)
