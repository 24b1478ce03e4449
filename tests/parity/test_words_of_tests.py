"""Phrases of errors and warnings that PyTorch's own tests look for, in ours where they are in PyTorch's."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

# A program, and a phrase of what it raises or warns of.
PROGRAMS = r"""
t.ones(2, requires_grad=1) @@ argument 'requires_grad' must be bool, not int
t.zeros_like(t.ones(2), requires_grad="yes") @@ argument 'requires_grad' must be bool, not str
t.Tensor([1, 2], requires_grad=True) @@ new\(\) received an invalid combination of arguments - got \(list, requires_grad=bool\)
t.FloatTensor(2, dtype=t.float) @@ new\(\) received an invalid combination of arguments - got \(int, dtype=
t.ones(2).new([1], dtype=t.int) @@ new\(\) received an invalid combination of arguments - got \(list, dtype=
t.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(20, "f4"), (3,), (6,))) @@ strides not a multiple of the element byte size
t.from_numpy(np.zeros(3, [("a", "f4"), ("b", "i2")])["a"]) @@ strides not a multiple of the element byte size
F.pixel_shuffle(t.ones(3, 2, 2), 2) @@ divisible by the square of upscale_factor
F.pixel_unshuffle(t.ones(1, 3, 3), 2) @@ expects height to be divisible by downscale_factor
F.channel_shuffle(t.ones(1, 3, 2, 2), 2) @@ Number of channels must be divisible by groups
F.pad(t.ones(1, 1, 2), (5, 5), mode="circular") @@ Padding value causes wrapping around more than once
F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 3), align_corners=False) @@ size 2 in last dimension
F.grid_sample(t.ones(2, 1, 2, 2), t.ones(1, 2, 2, 2), align_corners=False) @@ grid and input to have same batch size
F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 2), mode="x") @@ to be 'bilinear', 'nearest' or 'bicubic', but got: 'x'
F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 2), padding_mode="x") @@ to be 'zeros', 'border', or 'reflection', but got: 'x'
F.affine_grid(t.ones(1, 2, 2), (1, 1, 2, 2), False) @@ Expected a batch of 2D affine matrices of shape Nx2x3
F.affine_grid(t.ones(1, 2, 3).int(), (1, 1, 2, 2), False) @@ Expected theta to have floating point type
F.interpolate(t.ones(1, 1, 2)) @@ either size or scale_factor should be defined
F.interpolate(t.ones(1, 1, 2), size=(2, 2)) @@ Input and output must have the same number of spatial dimensions
F.interpolate(t.ones(1, 1, 2, 2), size=2, mode="linear") @@ Got 4D input, but linear mode needs 3D input
F.interpolate(t.ones(1, 1, 2), size=2, mode="x") @@ Input Error: Only 3D, 4D and 5D input Tensors supported
F.interpolate(t.ones(1, 1, 2, 2), size=2, mode="lanczos") @@ Lanczos mode requires antialias=True
t.nn.RNN(2, 3)(t.ones(5, 2), t.ones(1, 2, 3)) @@ hx should also be 2-D but got 3-D tensor
t.nn.Linear(2, 2, device="meta").load_state_dict(t.nn.Linear(2, 2).state_dict()) @@ which is a no-op
t.nn.LazyLinear(2).share_memory() @@ Can't share memory on an uninitialized parameter
t.nn.utils.rnn.PackedSequence(t.ones(2), None) @@ Expected data to be a list or tuple of length 2
t.nn.utils.rnn.pad_sequence("abc") @@ expected Tensor as element 0
t.nn.utils.prune.l1_unstructured(t.nn.Linear(2, 2), "weight", amount=-1) @@ should either be a float in the range \[0, 1\]
t.ones(2).expand(-1, 2) @@ The expanded size of the tensor \(-1\) isn't allowed
t.ones(2).index_add(0, t.tensor([0, 1]), t.ones(3)) @@ Number of indices \(2\) should be equal to source.size\(dim\): \(3\)
t.ones(2).index_copy(0, t.tensor([0]), t.ones(1).double()) @@ same dtype, but got \(self\) Float and \(source\) Double
t.ones(2).index_copy(0, t.tensor([0.0]), t.ones(1)) @@ Expected a long tensor for index, but got Float
t.ones(2).index_fill(0, t.tensor([0]), t.ones(2)) @@ index_fill_ only supports a 0-dimensional value tensor
t.ones(2).scatter_reduce(0, t.tensor([0]), t.ones(1), "x") @@ sum, prod, mean, amax or amin, got x
t.ones(2).__setitem__(0, "a") @@ can't assign a str to a torch.FloatTensor
t.ones(2).__setitem__(0, 1j) @@ value cannot be converted to type float without overflow
t.linalg.norm(t.ones(2), "fro") @@ linalg.matrix_norm: The input tensor A must have at least 2 dimensions
t.linalg.tensorinv(t.eye(2), 0) @@ Expected a strictly positive integer for 'ind', but got 0
t.linalg.lstsq(t.ones(2), t.ones(2)) @@ input must have at least 2 dimensions
t.linalg.svd(t.eye(2), driver="gesvd") @@ torch.linalg.svd: keyword argument `driver=` is only supported on CUDA
t.linalg.norm(t.tensor(2.0), 2) @@ If dim is not specified but ord is, the input must be 1D or 2D. Got 0D
t.linalg.norm(t.ones(2, 3), None, ()) @@ it must be of length 1 or 2
t.linalg.norm(t.ones(2, 3, 4), None, (0, 1, 2)) @@ it must be of length 1 or 2
t.linalg.norm(t.ones(2, 2).int(), dtype=t.float) @@ Expected a floating point or complex tensor as input. Got Int
t.linalg.matrix_norm(t.ones(2, 2), dtype=t.half) @@ convertible without narrowing to the specified dtype \(Half\)
t.linalg.matrix_norm(t.ones(2, 2).cfloat(), dtype=t.float) @@ dtype should be complex for complex inputs, but got Float
t.norm(t.ones(2, 3, 4), "nuc") @@ dim must be a 2-tuple
t.norm(t.ones(2, 3, 4), "fro", dim=(0, 1, 2)) @@ dim must be a 2-tuple. Got 0 1 2
t.linalg.pinv(t.ones(3)) @@ expected a tensor with 2 or more dimensions
t.linalg.pinv(t.eye(3), rtol=t.tensor(0.1j)) @@ rtol tensor of complex type is not supported. Got ComplexFloat
t.linalg.matrix_rank(t.eye(3), t.tensor(2j)) @@ tensor of complex type is not supported. Got ComplexFloat
t.linalg.matrix_rank(t.eye(3), out=t.empty((), dtype=t.bool)) @@ Expected result to be safely castable from Long dtype
t.linalg.eig(t.eye(3), out=(t.empty(3), t.empty(3, 3).cfloat())) @@ but got eigenvalues with dtype Float
t.linalg.eig(t.eye(3), out=(t.empty(3).cfloat(), t.empty(3, 3))) @@ but got eigenvectors with dtype Float
t.linalg.solve(t.eye(3), t.tensor(1.0)) @@ The input tensor B must have at least 2 dimensions
t.linalg.lu_solve(t.eye(3), t.tensor([1, 2, 3]).int(), t.ones(3)) @@ The input tensor B must have at least 2 dimensions
t.cholesky_solve(t.ones(4, 1), t.eye(3)) @@ Incompatible matrix sizes for cholesky_solve: each A matrix is 3 by 3 but each b matrix is 4 by 1
t.triangular_solve(t.ones(4, 1), t.eye(3)) @@ Incompatible matrix sizes for triangular_solve: each A matrix is 3 by 3
t.triangular_solve(t.ones(3, 1), t.eye(3).double()) @@ found b of type Float and A of type Double instead
t.linalg.householder_product(t.ones(4), t.ones(4)) @@ input must have at least 2 dimensions
t.linalg.householder_product(t.ones(4, 3), t.ones(3).double()) @@ tau dtype Double does not match input dtype Float
t.linalg.householder_product(t.ones(2, 4, 3), t.ones(3)) @@ but got tau.ndim equal to 1 and input.ndim is equal to 3
t.linalg.householder_product(t.ones(2, 4, 3), t.ones(1, 3)) @@ to be equal to input.shape\[:-2\], but got \[1\]
t.linalg.vander(t.ones(3).half()) @@ supports floating point, complex, and integer tensors, but got Half
t.linalg.multi_dot([t.ones(2, 2), t.ones(2, 2).double()]) @@ all tensors must have be the same dtype
t.renorm(t.ones(2, 3), 2j, 0, 1) @@ renorm: p must be real-valued
t.chain_matmul() @@ chain_matmul\(\): Expected one or more matrices
t.sort(t.tensor([1j])) @@ Sort does not support complex dtypes on CPU
t.topk(t.tensor([1j]), 1) @@ topk does not support complex dtypes on CPU
t.topk(t.ones(3, 3), 2, True) @@ must be int, not bool
t.argmax(t.tensor([1j])) @@ argmax\(\): does not support complex input
t.isin(t.tensor([1j]), t.tensor([1j])) @@ Unsupported input type encountered for isin\(\): ComplexFloat
t.unique(t.zeros(0, 0), dim=0) @@ Number of zero sized dimensions is more than one, so unique cannot be applied
t.searchsorted(t.ones(2, 3), t.tensor(1.0)) @@ but we got boundaries tensor dim\(2\) and input value's dim\(0\) numel\(1\)
t.searchsorted(t.tensor([False, True]), t.tensor([True])) @@ not implemented for 'Bool'
t.gradient(t.ones(3), spacing=t.tensor([0.0, 1, 3])) @@ received an invalid combination of arguments
t.unravel_index(t.tensor([1]), (2.0, 3)) @@ sequence to only contain ints, but got <class 'float'>
t.trapezoid(t.tensor(1.0)) @@ Dimension specified as -1 but tensor has no dimensions
t.tensor(1.0).size(0) @@ Dimension specified as 0 but tensor has no dimensions
t.fft.fftshift(t.ones(2, 3), dim=2) @@ Dimension out of range
t.arange(1e300) @@ invalid size, possible overflow
t.arange(5j) @@ value cannot be converted to type double without overflow
t.range(3, 0) @@ upper bound and lower bound inconsistent with step sign
t.range(0, float("inf")) @@ unsupported range: 0 -> inf
t.full((2,), t.tensor([3, 4])) @@ argument 'fill_value' \(position 2\) must be Number, not Tensor
t.normal(t.zeros(2), t.ones(3)) @@ The size of tensor a \(2\) must match the size of tensor b \(3\)
t.randint(0, 2**40, (3,), dtype=t.float) @@ to - 1 is out of bounds \[-
t.randint(0, 2**17, (3,), dtype=t.half) @@ to - 1 is out of bounds for c10::Half
t.masked_select(t.ones(2, 3), t.tensor([True, False])) @@ The size of tensor a \(3\)|The size of tensor a \(2\)
t.index_copy(t.zeros(2, 3), 0, t.tensor([1, 0]), t.ones(3)) @@ Source dimensionality \(1\), destination dimensionality \(2\)
t.index_fill(t.zeros(2), 0, t.tensor([1]), 2j) @@ Converting complex Scalar to non-complex type is not supported
t.index_reduce(t.zeros(2, 3), 0, t.tensor([1]), t.ones(1, 3), "sum") @@ Expected reduce to be one of prod, mean, amax or amin but got sum
t.scatter_reduce(t.zeros(2) > 0, 0, t.tensor([0]), t.ones(1) > 0, "mean") @@ "scatter_gather_tensor_cpu_reduce_mean" not implemented for 'Bool'
t.relu(t.tensor([True])) @@ Boolean inputs not supported for relu
t.clamp(t.tensor([1j]), 0, 1) @@ clamp is not supported for complex types
t.sign(t.tensor([1j])) @@ torch.sign is not intended to support complex numbers. Please use torch.sgn instead
F.celu(t.ones(2), 0) @@ alpha cannot be 0 for CELU
t.ones(3).expand(2, 3).scatter_(0, t.tensor([[0]]), 1.0) @@ more than one element of the written-to tensor refers to a single memory location
t.segment_reduce(t.arange(6.0), "sum", indices=t.tensor([0])) @@ indices based reduction is not supported yet
t.segment_reduce(t.arange(6.0), "x", lengths=t.tensor([6])) @@ reduce argument must be either sum, prod, mean, amax or amin
t.ones(4, 2).t().view(t.cfloat) @@ must be 1 to view Float as ComplexFloat
t.fft.irfftn(t.ones(2), s=()) @@ irfftn must transform at least one axis
t.bernoulli(t.tensor([2.0])) @@ Expected p_in >= 0 && p_in <= 1 to be true
t.from_numpy(np.array(["a"])) @@ can't convert np.ndarray of type numpy.str_
t.from_numpy(np.broadcast_to(np.ones(1), (2,))) @@ The given NumPy array is not writable
t.distributions.Binomial(-1, t.ones(2), validate_args=True) @@ Expected parameter total_count
t.utils.data.random_split([1, 2], [0.5, 1.5]) @@ TypeError
t.polar(t.tensor([1]), t.tensor([2])) @@ Expected both inputs to be Half, Float or Double tensors but got Long and Long
t.histogram(t.tensor(1.0), t.tensor(1.0).double()) @@ input tensor and bins tensors should have the same dtype
t.histogram(t.tensor(1.0), 1, weight=t.tensor(1.0).double()) @@ input tensor and weight tensor should have the same dtype
t.histogram(t.tensor(1.0), 1, out=(t.ones(1).double(), t.ones(2))) @@ input tensor and hist tensor should have the same dtype
t.histogram(t.tensor(1.0), 1, out=(t.ones(1), t.ones(2).double())) @@ input tensor and bin_edges tensor should have the same dtype
t.histogram(t.ones(0), t.ones(0)) @@ bins tensor should have at least 1 element
t.histogram(t.ones(2, 2), t.ones(2, 2)) @@ bins tensor should have one dimension
t.histogram(t.ones(2, 2), 1, weight=t.ones(1)) @@ same shape as the input tensor excluding its innermost dimension
t.histogram(t.tensor(1.0), t.tensor(1.0), range=(0, 1)) @@ received an invalid combination of arguments
t.searchsorted(t.ones(2), t.ones(2), out=t.ones(2)) @@ output tensor's dtype is wrong
t.searchsorted(t.ones(2), "a") @@ received an invalid combination of arguments
t.masked_select(t.ones(2), t.ones(2) > 0, out=t.ones(2).double()) @@ self and result must have the same scalar type
t.multinomial(t.ones(2), 1, out=t.ones(1)) @@ expects Long tensor out
t.linalg.multi_dot([t.ones(2), t.ones(2).double()]) @@ multi_dot\(\): all tensors must have be the same dtype
t.linalg.multi_dot([t.ones(2), t.ones(2)], out=t.ones(()).double()) @@ multi_dot\(\): expected out tensor to have dtype
t.tensordot(t.ones(2), t.ones(2), dims="a") @@ tensordot expects dims to be int or
t.einsum(". ..", []) @@ einsum\(\):.*at least one operand
t.einsum("a,1", t.ones(2), t.ones(2)) @@ einsum\(\):.*invalid subscript given at index 2
t.einsum("a->1", t.ones(2)) @@ einsum\(\):.*invalid subscript given at index 3
t.einsum("a->... .", t.ones(2)) @@ found '.' for output but an ellipsis \(\.\.\.\) was already found
t.einsum("a->..", t.ones(2)) @@ found '.' for output that is not part of any ellipsis \(\.\.\.\)
t.einsum("ai...", t.ones(2)) @@ subscripts in the equation \(2\) is more than the number of dimensions \(1\) for operand 0
t.addr(t.ones(2, 2).int(), t.ones(2).int(), t.ones(2).int(), beta=2.0) @@ argument beta must not be a floating point number
t.addr(t.ones(2, 2), t.ones(2), t.ones(2), alpha=True) @@ Boolean alpha only supported for Boolean results
t.ones(2).__setattr__("grad", t.ones(2).double()) @@ to a tensor with grad_dtype '
t.ones(2, device="meta").numpy() @@ can't convert meta device type tensor to numpy
t.trapezoid(t.ones(2, 3), dim=2) @@ Dimension out of range
t.gradient(t.ones(3, 3), spacing=[t.ones(2, 2), t.ones(2, 2)]) @@ expected each element of spacing to have one dimension
t.gradient(t.ones(3), spacing=[t.ones(3, device="meta")]) @@ torch.gradient expected each tensor to be on the same device
t.diff(t.ones(2, 3), prepend=t.ones(3, 3)) @@ input.size\(0\) = 2, but got tensor.size\(0\) = 3
t.linalg.matrix_power(t.ones(2), 2) @@ must have at least 2 dimensions
t.rot90(t.ones(2, 2), 1, [0, 2]) @@ Dimension out of range
t.repeat_interleave(t.tensor([1, 2]), output_size=2) @@ allocated size does not match required size
t.tensor_split(t.ones(3), t.ones(2)) @@ to have dtype of long, but got Float
(lambda x: t.stack([x[0], x[1]], out=x))(t.ones(2, 2)) @@ unsupported operation: some elements of the input tensor
t.atleast_1d([1, 2]) @@ TypeError: .*expected Tensor
t.ones(2)[::0] @@ slice step cannot be zero
t.tensor(1)[:] @@ slice\(\) cannot be applied to a 0-dim tensor
t.zeros(2, -1) @@ Dimension size must be non-negative
t.utils.data.DataLoader([1], num_workers=1, prefetch_factor=-1) @@ prefetch_factor option should be non-negative
t.optim.SGD(t.ones(1), lr=0.1) @@ should be an iterable of Tensors or dicts, but got torch.FloatTensor
t.ones(2).to_sparse().__dlpack__() @@ Can't export tensors with layout other than torch.strided
t.ones(2).__dlpack__(stream=t) @@ stream must be ``int`` or ``none``
(lambda c: (t.from_dlpack(c), t.from_dlpack(c)))(t.ones(2).__dlpack__()) @@ from_dlpack received an invalid capsule
t.view_as_complex(t.ones(2, 2).int()) @@ but got a tensor of scalar type: Int
"""


for library in ("torch", "rushlight"):
    importlib.import_module(f"{library}.nn.utils.prune")


def told(t: Any, program: str) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(program, {"t": t, "F": t.nn.functional, "np": np})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "".join(f"{w.category.__name__}: {w.message}" for w in caught)


@pytest.mark.parametrize("line", PROGRAMS.strip().splitlines())
def test_the_phrase_is_there(line: str) -> None:
    program, phrase = line.split(" @@ ")
    ours, theirs = told(rushlight, program), told(reference, program)
    assert re.search(phrase, theirs), theirs
    assert re.search(phrase, ours), ours
    assert ours.split(":")[0] == theirs.split(":")[0]
