"""Small programs of one line that both libraries answer alike: values, shapes, dtypes, strides, and kinds of errors."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = """
torch.Tensor(data=[1])
torch.ones(2).int() + np.float16(1)
np.float16(2) * torch.ones(2).int()
torch.ones(2).int() ** np.float16(2)
torch.where(torch.tensor([True]), np.float64(1), np.int64(2))
torch.where(torch.tensor([True]), torch.ones(1).int(), np.float64(2))
torch.where(torch.tensor([True]), np.int32(1), np.int8(2))
torch.result_type(torch.ones(1).int(), np.float16(2))
torch.ones(2, 3, 1, 1).to(memory_format=torch.channels_last).stride()
torch.ones(2, 3, 1, 1).double().to(torch.float, memory_format=torch.channels_last).stride()
torch.nn.Conv2d(1, 4, 3).to(memory_format=torch.channels_last).weight.stride()
torch.ones(2, 3, 1, 1, 1).to(memory_format=torch.channels_last_3d).stride()
torch.ones(2, 3, 1, 1).to(memory_format=torch.channels_last).to(memory_format=torch.contiguous_format).stride()
torch.ones(2, 3, 1, 5).to(memory_format=torch.contiguous_format).stride()
torch.result_type(tensor=torch.ones(2), other=1)
torch.full((1,), -1.0, dtype=torch.uint8)
torch.full((1,), -1, dtype=torch.uint8)
torch.full((1,), 127.5, dtype=torch.int8)
torch.zeros(2, dtype=torch.uint8).fill_(-0.5)
torch.tensor([-0.5], dtype=torch.uint8)
torch.tensor([[-1], [0.5]], dtype=torch.uint8)
torch.tensor([1, -1.0], dtype=torch.uint8)
torch.bincount(torch.tensor([], dtype=torch.long), torch.tensor([]), minlength=3)
torch.median(torch.zeros(0, dtype=torch.bool))
torch.can_cast(float, torch.int)
torch.promote_types(int, torch.half)
torch.segment_reduce(torch.arange(6.0), "sum", offsets=torch.tensor([1, 2, 5]))
torch.index_select(torch.ones(2, 0), 1, torch.tensor([], dtype=torch.long))
torch.Tensor([None])
torch.Tensor({1})
torch.Tensor({1: 2})
torch.zeros(2).new_tensor(None)
torch.zeros(2).new_full(2, 7)
torch.tensor(np.array([1, 2], dtype=">f4"))
torch.frombuffer(5, dtype=torch.float)
torch.eye((3, 4))
torch.eye(3, 2)
torch.zeros(2**40, 2**40)
torch.arange(3, dtype=torch.bool)
torch.arange(-3, 2, dtype=torch.uint8)
torch.arange(250, 260, dtype=torch.uint8)
torch.arange(126, 130, dtype=torch.int8)
torch.arange(-0.9, 2.1, 2.0, dtype=torch.uint8)
torch.arange(1.7, 9.2, 1.9, dtype=torch.int8)
torch.arange(1.7, 9.2, 1.9, dtype=torch.int64)
torch.arange(5, 1, -1.5, dtype=torch.int32)
torch.arange(0.9, dtype=torch.int16)
torch.range(1, 5, 2.5, dtype=torch.int32)
torch.linalg.lstsq(torch.eye(3, dtype=torch.complex64), torch.ones(3, 1, dtype=torch.complex64), driver="gels")[3]
torch.linspace(0, 1, 3, dtype=torch.bool)
torch.tril_indices(3, 3, dtype=torch.float)
torch.zeros(3).random_(2**25)
torch.zeros(3).random_(2**40)
torch.zeros(3).random_(-2**40 - 3, 2**41)
torch.zeros(3).half().random_(4097)
torch.zeros(3).half().random_(2**40)
torch.zeros(3).double().random_(2**60)
torch.zeros(3, dtype=torch.cfloat).bernoulli_(0.5)
torch.zeros(3).bernoulli_(torch.ones(2))
torch.zeros(2, 3).bernoulli_(torch.ones(3))
torch.zeros(3).uniform_(math.nan, 1)
torch.zeros(3, dtype=torch.cfloat).uniform_(0, math.inf)
torch.multinomial(torch.ones(2, 3), 2)
torch.device("cpu", -2)
torch.device("cpu:1", 1)
torch.device("cuda:01")
torch.promote_types(torch.uint16, torch.int16)
torch.promote_types(torch.uint16, torch.float)
torch.promote_types(1, 2)
torch.zeros(2, dtype=torch.uint16) + torch.zeros(2, dtype=torch.int16)
torch.zeros(2, dtype=torch.uint64) == torch.zeros(2, dtype=torch.int64)
torch.long.to_complex()
torch.finfo(torch.float) == torch.finfo(torch.float)
torch.iinfo(torch.int) == torch.iinfo(torch.long)
torch.zeros(2, 3)[torch.zeros(0, dtype=torch.bool)]
torch.zeros(0, 3)[torch.zeros(0, dtype=torch.bool)]
torch.zeros(2, 3)[:, torch.zeros(0, dtype=torch.bool)]
torch.zeros(2, 3)[np.bool_(True)]
torch.zeros(2, 3)[{0}]
torch.zeros(2, 3)[1j]
torch.zeros(2).__setitem__(0, torch.tensor(1.0, device="meta"))
torch.zeros(2).__setitem__(..., torch.tensor(1.0, device="meta"))
torch.zeros(2).copy_(torch.tensor(1.0, device="meta"))
torch.tensor(torch.zeros(2, device="meta")).is_meta
torch.zeros(2).requires_grad_(1)
setattr(torch.zeros(2), "requires_grad", "yes")
torch.set_grad_enabled(1)
torch.is_anomaly_check_nan_enabled()
torch.zeros(2)._backward_hooks
torch.zeros(2, requires_grad=True)._post_accumulate_grad_hooks
torch.norm_except_dim(torch.tensor([0.0, 2.0]), 0)
torch.norm_except_dim(torch.ones(2, 3), 2, 1)
torch.sub(torch.ones(2), 3, 2)
torch.rsub(torch.ones(2), 3, 2)
torch.ones(2).add(1, 2)
torch.histogram(torch.ones(2)).hist
torch.take_along_dim(torch.arange(3), torch.tensor([-1]))
torch.take_along_dim(torch.arange(6).view(2, 3), torch.tensor([5, 0]))
torch.argmax(torch.tensor([True]))
torch.isin(torch.tensor([True]), torch.tensor([True]))
torch.cosine_similarity(torch.ones(2, 2, dtype=torch.cfloat), torch.ones(2, 2))
torch.cholesky_inverse(torch.zeros(2, 2))
torch.sym_sum(torch.ones(2), 1)
torch.adaptive_max_pool1d(torch.ones(1, 2, 4), 2)
torch.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(2))
torch.dist(torch.ones(2).long(), torch.ones(2).long())
torch.hash_tensor(torch.zeros(0))
torch.matrix_power(torch.ones(2, 3), "q")
torch.zeros(5).scatter(0, torch.tensor(2), 3.0)
torch.zeros(5).scatter_(0, torch.tensor(2), torch.tensor(3.0))
torch.nn.functional.dropout3d(torch.ones(2, 40))
torch.nn.functional.dropout3d(torch.ones(3))
torch.nn.functional.dropout2d(torch.ones(3))
torch.nn.functional.margin_ranking_loss(torch.arange(3), torch.ones(3).long(), torch.ones(3).long())
torch.nn.functional.margin_ranking_loss(torch.arange(3), torch.ones(3).long(), torch.ones(3).long(), 1, reduction="none")
torch.fft.fftfreq(3, device="meta").device
torch.fft.rfftfreq(4, pin_memory=False)
torch.fft.fftfreq(4, pin_memory=True)
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.arange(8.0).view(2, 4))
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(5, 2, 4))
torch.ones(2, 3).norm(True)
torch.ones(3).dist(torch.zeros(3), False)
torch.nn.functional.celu(torch.tensor([-1.0, 1.0]), torch.tensor(0.5))
torch.ones(1, 3).broadcast_to(2, 3)
torch.ones(2, 3).sum_to_size(size=(1, 3))
torch.ones(3).resize_(size=(2, 2)).shape
torch.ones(2, 3).contiguous(memory_format=torch.preserve_format)
torch.ones(2, 3).t().contiguous(memory_format=torch.preserve_format)
torch.linalg.lstsq(torch.eye(2), b=torch.ones(2, 1)).solution.squeeze(1)
torch.linalg.tensorsolve(torch.eye(2), other=torch.ones(2))
torch.linalg.tensorsolve(torch.eye(2), torch.ones(2), dims=(2,))
torch.linalg.tensorsolve(torch.eye(2), torch.ones(2), dims=0)
type(torch.eye(2).lu(get_infos=True)).__name__
torch.eye(2).to_sparse_bsr(1).values().shape
torch.flip(torch.ones(2), 0)
torch.flip(torch.ones(2, 2), 0, 1)
torch.flip(torch.arange(3), (0,))
torch.reshape(torch.ones(3), 3)
torch.reshape(torch.ones(6), 3, 2)
torch.reshape(torch.ones(6), [3, -1]).shape
torch.tile(torch.ones(3), 2)
torch.tile(torch.ones(3))
torch.tile(torch.ones(3), dims=(2,))
torch.permute(torch.ones(3), 0)
torch.permute(torch.ones(3, 2), dims=[1, 0]).shape
torch.ones(3).tile()
torch.ones(3).tile(dims=2)
torch.ones(3).view(size=3)
torch.ones(3).reshape(shape=3)
torch.ones(3).expand(size=3)
torch.ones(3).repeat(repeats=2)
torch.ones(3).permute(dims=0)
torch.ones(2, 3).flip(True)
torch.ones(2).roll((True,))
torch.zeros(True)
torch.zeros((True, 2))
torch.ones(2, True)
torch.ones((2, True))
torch.full((2, True), 1.0)
torch.ones(2).reshape(2, True)
torch.ones(2).view(True, 2)
torch.ones(1).expand(2, True)
torch.ones(1).repeat(2, True)
torch.ones(1, 2).permute(1, False)
torch.ones(1).new_zeros(2, True)
torch.eye(True)
torch.addcdiv(torch.ones(2), torch.ones(2), torch.ones(2), value=1j)
torch.addcdiv(torch.ones(2, dtype=torch.complex64), torch.ones(2), torch.ones(2), value=1j)
torch.ones(2).addcdiv_(torch.ones(2), torch.ones(2), value=1j)
torch.zeros(size=3)
torch.rand(size=3)
torch.randint(3, size=3)
torch.ones(1).new_zeros(size=3)
torch.as_strided(torch.ones(3), 3, 1)
torch.broadcast_to(torch.ones(3), 3)
torch.movedim(torch.ones(2, 3), (0,), 1)
torch.layer_norm(torch.ones(3), 3)
torch.nn.functional.layer_norm(torch.ones(3), 3)
torch.nn.functional.rms_norm(torch.ones(3), 3)
torch.ones(2, 3).resize(3, 3)
torch.ones(2, 3).resize(3, 2)
torch.ones(2, 3).resize_as(torch.ones(3))
torch.ones(3).bfloat16(torch.ones(3))
torch.ones(3).clone(memory_format=2)
torch.ones(3).is_contiguous(torch.contiguous_format)
torch.ones(3, pin_memory=True)
torch.tensor([1], pin_memory=True)
torch.rand(3, pin_memory=True)
torch.ones(3).new_zeros(2, pin_memory=True)
torch.zeros_like(torch.ones(3), pin_memory=True)
torch.hann_window(3, pin_memory=True)
torch.zeros(3, names=("a",))
torch.rand(3, names=None)
torch.polygamma(1.5, torch.ones(2))
torch.ones(2).polygamma(torch.tensor(1.0))
torch.ones(2).polygamma(torch.tensor(1))
torch.mvlgamma(torch.ones(2) * 3, 1.5)
torch.mvlgamma(torch.ones(2, dtype=torch.bool), 1)
torch.tensor(1.0).transpose(1, 2)
torch.tensor(1.0).swapaxes_(0, -1)
torch.ones(3).repeat_interleave(2, output_size=5)
torch.ones(3).repeat_interleave(torch.tensor([2]), output_size=6)
torch.repeat_interleave(torch.arange(3), output_size=4)
torch.nn.functional.gumbel_softmax(torch.ones(2, 2).long())
torch.linalg.multi_dot(torch.ones(2, 3))
torch.linalg.svdvals(torch.eye(2), driver="gesvd")
torch.linalg.lu(torch.ones(3), pivot=1)
torch.linalg.lu_factor(torch.tensor([[math.nan, 1.0], [2.0, 3.0]])).LU.isnan().tolist()
torch.linalg.lu_factor(torch.tensor([[[1.0, 2.0, 3.0], [4.0, math.nan, 0.0]], [[1.0, 0.0, 2.0], [2.0, 1.0, 3.0]]])).LU.isnan().tolist()
torch.fft.fft2(torch.ones(2, 2), norm=1)
torch.fft.fftn(torch.ones(2, 2), s={})
torch.cholesky_solve(torch.ones(2, 1), torch.eye(2).double())
torch.triangular_solve(torch.ones(2, 1), torch.eye(2).double())
torch.ones(2).sub_(True)
torch.nn.functional.threshold(torch.ones(2).byte(), 2, -1.0)
torch.nn.functional.hardtanh(torch.ones(2).byte())
torch.ones(4, 2).vsplit((1.5, 2))
torch.ones(4).tensor_split([True, 2])
torch.diff(torch.ones(3), torch.ones(3))
torch.zeros(2, device="meta").numpy()
np.asarray(torch.zeros(2, device="meta"))
torch.Generator("meta")
""".strip().splitlines()


def shown(value: Any) -> Any:
    """What is compared of a value: of a tensor all but its class."""
    if isinstance(value, (rushlight.Tensor, reference.Tensor)):
        flat = value.detach().double() if not value.is_complex() else value.detach()
        numbers = [round(x, 5) for x in flat.flatten().tolist()]
        return str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, numbers
    if isinstance(value, tuple):
        return tuple(shown(x) for x in value)
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def answer(library: Any, program: str) -> Any:
    """The value, or the kind of the error."""
    import math

    library.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(eval(program, {"torch": library, "np": np, "math": math}))
        except Exception as error:
            return "RuntimeError" if isinstance(error, NotImplementedError) else type(error).__name__


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_answer_is_pytorchs(program: str) -> None:
    assert answer(rushlight, program) == answer(reference, program)


def test_hooks_lie_where_old_programs_look_for_them() -> None:
    for library in (rushlight, reference):
        x = library.ones(2, requires_grad=True)
        y = x * 2
        first, second = x.register_hook(abs), y.register_hook(abs)
        assert list(x._backward_hooks) == [first.id]
        assert list(y._backward_hooks.values()) == [abs]
        second.remove()
        assert not y._backward_hooks
        x.register_post_accumulate_grad_hook(print)
        assert list(x._post_accumulate_grad_hooks.values()) == [print]


def test_words_of_the_answers() -> None:
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
        rushlight.promote_types(rushlight.uint16, rushlight.int16)
    with pytest.raises(IndexError, match=re.escape("shape of the mask [0] at index 0 does not match")):
        rushlight.zeros(2)[rushlight.zeros(0, dtype=rushlight.bool)]
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        rushlight.zeros(2)[0] = rushlight.tensor(1.0, device="meta")
