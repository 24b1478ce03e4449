"""Errors of operators are of PyTorch's classes, and speak of what the user gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

X = torch.arange(6.0).reshape(2, 3)
ONE, TWO = torch.tensor([0]), torch.tensor([0, 1])
BOOLS = torch.ones(2, 2, dtype=torch.bool)
N = np.ones((2, 2), np.float32)

CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "bytes padded by a number below 0": (lambda: F.pad(torch.zeros(2, dtype=torch.uint8), (1, 1), value=-1), RuntimeError,
                                         "constant_pad_nd: value cannot be converted to type uint8 without overflow"),
    "native_dropout of no probability": (lambda: torch.native_dropout(X, 1.5, True), RuntimeError, "between 0 and 1, but got 1.5"),
    "renorm to NaN": (lambda: torch.renorm(X, 2, 0, float("nan")), RuntimeError, "expected maxnorm to be >= 0 but got nan"),
    "renorm of order NaN": (lambda: torch.renorm(X, float("nan"), 0, 1.0), RuntimeError, "non-positive-norm not supported"),
    "covariance with a weight of NaN": (lambda: torch.cov(X, aweights=torch.tensor([1, 2, float("nan")])), RuntimeError,
                                        "aweights cannot be negative"),
    "mean of windows of complex numbers": (lambda: F.avg_pool1d(X.cfloat(), 2), NotImplementedError, "avg_pool1d: not implemented for torch.complex64"),
    "mean of windows divided by True": (lambda: F.avg_pool2d(X[None], 2, divisor_override=True), TypeError,
                                        "'divisor_override' must be int, not bool"),
    "lu_unpack of too few pivots": (lambda: torch.lu_unpack(torch.eye(2), torch.tensor([1]).int()), RuntimeError,
                                    r"LU_pivots of shape \[1\] are not those of LU_data of shape \[2, 2\]"),
    "cat of nothing": (lambda: torch.cat([]), ValueError, r"cat\(\): expected a non-empty list of Tensors"),
    "stack of nothing": (lambda: torch.stack([]), RuntimeError, r"stack expects a non-empty TensorList"),
    "cat with an array": (lambda: torch.cat([torch.ones(2), np.ones(2)]), TypeError, "Tensor as element 1 .*ndarray"),
    "cat with an array first": (lambda: torch.cat([np.ones(2), torch.ones(2)]), TypeError, "Tensor as element 0"),
    "stack with an array": (lambda: torch.stack([torch.ones(2), np.ones(2)]), TypeError, "Tensor as element 1"),
    "vstack with an array": (lambda: torch.vstack([torch.ones(2), np.ones(2)]), TypeError, "Tensor as element 1"),
    "Linear of an array": (lambda: nn.Linear(2, 2)(N), TypeError,
                           r"linear\(\): argument 'input' \(position 1\) must be Tensor, not numpy.ndarray"),
    "Linear of a list": (lambda: nn.Linear(2, 2)([1.0]), TypeError, "must be Tensor, not list$"),
    "linear by an array": (lambda: F.linear(torch.ones(2, 2), N), TypeError,
                           r"argument 'weight' \(position 2\) must be Tensor, not numpy.ndarray"),
    "linear plus an array": (lambda: F.linear(torch.ones(2, 2), torch.ones(2, 2), N[0]), TypeError,
                             r"argument 'bias' \(position 3\) must be Tensor, not numpy.ndarray"),
    "index_add_ of more": (lambda: torch.zeros(5, 3).index_add_(0, TWO, torch.ones(3, 3)), RuntimeError, r"\[3, 3\]"),
    "index_add of more": (lambda: torch.zeros(5).index_add(0, ONE, torch.ones(3)), RuntimeError, r"\[3\]"),
    "index_add_ of wider": (lambda: torch.zeros(5, 3).index_add_(0, TWO, torch.ones(2, 4)), RuntimeError, r"\[2, 4\]"),
    "index_reduce_ of more": (lambda: torch.zeros(5, 3).index_reduce_(0, TWO, torch.ones(3, 3), "prod"), RuntimeError,
                              r"\[3, 3\]"),
    "index_copy_ of more": (lambda: torch.zeros(5, 3).index_copy_(0, TWO, torch.ones(3, 3)), IndexError, r"\[3, 3\]"),
    "index_copy_ of wider": (lambda: torch.zeros(5, 3).index_copy_(0, TWO, torch.ones(2, 4)), RuntimeError,
                             r"\[2, 4\]"),
    "index_copy_ of a vector": (lambda: torch.zeros(5, 3).index_copy_(0, TWO, torch.ones(2)), IndexError, r"\[2\]"),
    "index_fill_ at floats": (lambda: torch.zeros(5).index_fill_(0, ONE.float(), 1.0), IndexError, "got Float"),
    "word as index": (lambda: X["a"], TypeError, "indices are ints, slices.*got 'a'"),
    "bytes as index": (lambda: X[b"a"], TypeError, "got b'a'"),
    "word in an index": (lambda: X[0, "a"], TypeError, "got 'a'"),
    "words as index": (lambda: X[["a"]], TypeError, r"got \['a'\]"),
    "word as index of a change": (lambda: X.clone().__setitem__("a", 1), TypeError, "got 'a'"),
    "bincount of floats": (lambda: torch.bincount(torch.ones(3)), NotImplementedError, r"torch.float32.*\.long\(\)"),
    "bincount of bools": (lambda: torch.bincount(torch.ones(3).bool()), NotImplementedError, "torch.bool"),
    "bincount of negatives": (lambda: torch.bincount(torch.tensor([-1])), RuntimeError, "non-negative.*got a negative one, -1"),
    "bincount of rows": (lambda: torch.bincount(torch.ones(1, 2).long()), RuntimeError, "got 2-d torch.int64"),
    "linspace without steps": (lambda: torch.linspace(0, 1), TypeError, r"\(int, int\): the argument 'steps' is missing"),
    "trace of bools": (lambda: BOOLS.trace(), NotImplementedError, r"torch.bool.*\.long\(\)"),
    "sums of products of bools": (lambda: torch.einsum("ij,jk->ik", BOOLS, BOOLS), NotImplementedError,
                                  r"torch.bool.*\.long\(\)"),
    "between bools": (lambda: torch.lerp(BOOLS, BOOLS, 0.5), NotImplementedError, "torch.bool"),
    "between integers": (lambda: torch.lerp(ONE, ONE, 0.5), NotImplementedError, "torch.int64"),
    "between integers in place": (lambda: ONE.clone().lerp_(ONE, 1), NotImplementedError, "torch.int64"),
    "word in": (lambda: "a" in X, RuntimeError, "only supports Tensor or scalar, but you passed in a <class 'str'>"),
    "None in": (lambda: None in X, RuntimeError, "NoneType"),
    "list in": (lambda: [1.0] in X, RuntimeError, "list"),
    "array in": (lambda: np.ones(2) in X, RuntimeError, "ndarray"),
    "tensor in that does not broadcast": (lambda: torch.ones(7) in X, RuntimeError, r"\[7\] does not broadcast"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_classes_and_messages(name: str) -> None:
    call, kind, message = CASES[name]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert type(caught.value) is kind


def test_what_a_tensor_contains() -> None:
    assert 1 in X and 2.0 in X and np.float32(3) in X and np.int64(4) in X and torch.tensor(5.0) in X and True in X
    assert 7 not in X and 1j not in X
    assert torch.tensor([0.0, 9.0, 9.0]) in X


def test_arrays_alone_are_taken_by_formulas() -> None:
    assert F.linear(N, N).tolist() == [[2, 2], [2, 2]]
    assert torch.cat([N, N]).shape == (4, 2)


@pytest.mark.parametrize(("call", "said"), [
    (lambda t: torch.inner(1.0, t), r"inner\(\): argument 'input' \(position 1\) must be Tensor, not float"),
    (lambda t: torch.inner([1.0], t), r"inner\(\): argument 'input' \(position 1\) must be Tensor, not list"),
    (lambda t: torch.cdist(t, 1.0), r"cdist\(\): argument 'x2' \(position 2\) must be Tensor, not float"),
    (lambda t: torch.kron(t, other=2), r"kron\(\): argument 'other' \(position 2\) must be Tensor, not int"),
    (lambda t: torch.squeeze(1.0), r"squeeze\(\): argument 'input' \(position 1\) must be Tensor, not float"),
    (lambda t: torch.broadcast_tensors(t, 1.0), r"broadcast_tensors\(\): argument 'element 1' \(position 2\) must be Tensor, not"),
    (lambda t: t.take(0.75), r"take\(\): argument 'index' \(position 2\) must be Tensor, not float"),
    (lambda t: torch.diff(None), r"diff\(\): argument 'input' \(position 1\) must be Tensor, not NoneType"),
    (lambda t: torch.can_cast(t, torch.int8), r"can_cast\(\): argument 'from_' \(position 1\) must be torch.dtype, not Tensor"),
])  # fmt: skip
def test_an_operand_of_a_composed_function_that_is_no_tensor_is_named(call, said):
    with pytest.raises(TypeError, match=said):
        call(torch.ones(2, 2))


def test_an_error_of_the_users_own_in_a_hook_stays_what_it_is():
    with (
        pytest.raises(AttributeError, match="nothing"),
        torch.autograd.graph.saved_tensors_hooks(lambda t: t.nothing, lambda t: t),
    ):
        torch.inner(torch.ones(2, requires_grad=True), torch.ones(2))


@pytest.mark.parametrize(
    ("run", "section"),
    [
        (lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([[0], [1]])), "targets-of-cross-entropy"),
        (lambda: F.nll_loss(torch.ones(2, 3), torch.tensor([0, 3])), "targets-of-cross-entropy"),
        (lambda: torch.cat([torch.ones(2, 3), torch.ones(2)]), "sizes-to-join"),
        (lambda: float(torch.ones(2)), "more-than-one-value"),
    ],
)
def test_what_beginners_meet_leads_to_its_section(run: Callable[[], Any], section: str) -> None:
    with pytest.raises((RuntimeError, ValueError, IndexError)) as error:
        run()
    assert error.value.__notes__ == [f"[rushlight explain {section}]"]


def test_dims_of_another_number_are_told_of_strided_tensors() -> None:
    with pytest.raises(RuntimeError, match=r"^permute\(\): .* expected 2 dims, one for each dimension, got 1$"):
        torch.ones(2, 3).permute(0)
