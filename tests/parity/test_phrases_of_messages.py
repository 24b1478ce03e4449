"""Programs of one line that are refused, each with the phrase that scripts and tests look for in PyTorch's message: it is in ours."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

REFUSED = r"""
torch.ones(4, 4)[:, 1:3].view(torch.float64)  @@ self.storage_offset() must be divisible by 2
torch.ones(4, 5)[:, :4].view(torch.float64)  @@ self.stride(0) must be divisible by 2
torch.ones(3).index_add(0, torch.tensor([0.0]), torch.ones(1))  @@ Expected dtype int32/int64 for index
torch.ones(3, 3).index_add(0, torch.tensor([0]), torch.ones(1, 2))  @@ source tensor shape must match self
torch.ones(3).index_add(0, torch.tensor([5]), torch.ones(1))  @@ index out of range in self
torch.ones(3, 3).index_copy(0, torch.tensor([0]), torch.ones(1, 2))  @@ Source/destination tensor must have same slice shapes
torch.ones(3).index_fill(0, torch.tensor([0.0]), 1)  @@ Expected dtype int64 for index
torch.ones(3).index_fill(0, torch.tensor([[0]]), 1)  @@ a vector
torch.ones(3).index_select(0, torch.tensor([3]))  @@ index out of range in self
torch.tensor(3.0).index_select(0, torch.tensor([0, 0]))  @@ Index to scalar can have only 1 value, got 2 value
torch.ones(3).put_(torch.tensor([0]), torch.ones(2))  @@ Expected source and index to have the same number of elements
torch.ones(3).scatter_reduce(0, torch.tensor([0]), torch.ones(1), "foo")  @@ reduce argument must be either
torch.take_along_dim(torch.ones(2, 3), torch.tensor([[0.0]]), 1)  @@ dtype of indices should be Long but got Float
torch.floor(torch.tensor([1j]))  @@ floor is not supported for complex inputs
torch.ceil(torch.tensor([1j]))  @@ ceil is not supported for complex inputs
torch.trunc(torch.tensor([1j]))  @@ trunc is not supported for complex inputs
torch.signbit(torch.tensor([1j]))  @@ signbit is not implemented for complex tensors
torch.isposinf(torch.tensor([1j]))  @@ isposinf does not support complex inputs
torch.isneginf(torch.tensor([1j]))  @@ isneginf does not support complex inputs
torch.heaviside(torch.tensor([1j]), torch.tensor([1j]))  @@ heaviside is not yet implemented for complex tensors
torch.deg2rad(torch.tensor([1j]))  @@ deg2rad is not supported for complex tensors
torch.rad2deg(torch.tensor([1j]))  @@ rad2deg is not supported for complex tensors
torch.frexp(torch.tensor([8]))  @@ torch.frexp() only supports floating-point dtypes
torch.addcdiv(torch.tensor([1]), torch.tensor([1]), torch.tensor([1]))  @@ Integer division with addcdiv is no longer supported
torch.logcumsumexp(torch.tensor([1]), 0)  @@ "logcumsumexp_out_cpu" not implemented for 'Long'
torch.nansum(torch.tensor([1j]))  @@ nansum on CPU does not support complex inputs
torch.gradient(torch.ones(3, dtype=torch.uint8))  @@ torch.gradient does not support uint8 input
torch.diff(torch.ones(2, 3), prepend=torch.ones(3))  @@ diff expects prepend or append to be the same dimension as input
torch.diff(torch.ones(2, 3), prepend=torch.ones(3, 1))  @@ diff expects the shape of tensor to prepend or append to match that of input
torch.norm(torch.ones(2, 2), "nuc", dim=0)  @@ dim must be a 2-tuple
torch.unique(torch.tensor(3), dim=0)  @@ Dimension specified as 0 but tensor has no dimensions
torch.histogram(torch.tensor([1.0, 2.0]), torch.tensor([0.0]))  @@ bins must be > 0
torch.histogram(torch.tensor([1.0, 2.0]), torch.tensor([[0.0, 1.0]]))  @@ bins tensor should have one dimension
torch.histogram(torch.tensor([1.0, 2.0]), 2, range=(4.0, 0.0))  @@ min should not exceed max
torch.histogram(torch.ones(2), torch.tensor([0.0, 1.0]), weight=torch.ones(3))  @@ if weight tensor is provided it should have the same shape as the input tensor
torch.result_type(torch.tensor([1]), "a")  @@ result_type()
torch.ones(3).topk(2.5)  @@
torch.ones([1] * 65).sum(0)  @@ only tensors with up to 64 dims are supported
torch.linalg.lstsq(torch.eye(2), torch.tensor(1.0))  @@ other must have at least 1 dimension
torch.linalg.norm(torch.ones(2, 2), "x")  @@ linalg.matrix_norm: Order x not supported
torch.linalg.norm(torch.ones(2, 2), "nuc", dim=0)  @@ dim must be a 2-tuple
torch.linalg.norm(torch.ones(2, 2, 2), 2, dim=(0, 1, 2))  @@ If dim is specified, it must be of length 1 or 2
torch.linalg.householder_product(torch.ones(3, 2), torch.ones(3))  @@ input.shape[-1] must be greater than or equal to tau.shape[-1]
torch.linalg.multi_dot([torch.ones(2, 2), torch.tensor(1.0)])  @@ the last tensor must be 1D or 2D
torch.linalg.multi_dot([torch.tensor(1.0), torch.ones(2, 2)])  @@ the first tensor must be 1D or 2D
torch.addr(torch.tensor([[1]]), torch.tensor([1]), torch.tensor([1]), beta=1.5)  @@ For integral input tensors, argument beta must not be a floating point number
torch.einsum("i.", torch.ones(2))  @@ found '.' for operand 0 that is not part of any ellipsis
torch.einsum("......", torch.ones(2))  @@ found '.' for operand 0 for which an ellipsis was already found
torch.einsum("i->.", torch.ones(2))  @@ found '.' for output that is not part of any ellipsis
torch.einsum("ii", torch.ones(2, 3))  @@ subscript i is repeated for operand 0 but the sizes don't match, 3 != 2
torch.einsum(torch.ones(2), [52])  @@ not within the valid range [0, 52)
torch.segment_reduce(torch.ones(3), "sum")  @@ Either lengths or offsets must be defined
torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([4, -1]))  @@ lengths contains negative value
torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([3]), axis=1)  @@ Dimension out of range
torch._foreach_add([torch.ones(2)], [torch.ones(2)] * 2)  @@ Tensor lists must have the same number of tensors, got 1 and 2
torch._foreach_add([torch.ones(2)], [1.0, 2.0])  @@ Tensor list must have same number of elements as scalar list
torch._foreach_add([torch.ones(2)], torch.ones(2))  @@ scalar tensor expected to be 0 dim but it has 1 dimensions
torch._foreach_addcmul([torch.ones(1)], [torch.ones(1)], [torch.ones(1)], torch.ones(2))  @@ Expected length of scalars to match input of length 1 but got 2 instead
torch._foreach_addcmul([torch.ones(1)], [torch.ones(1)], [torch.ones(1)], torch.ones(1, 1))  @@ Expected packed scalar Tensor to be of dimension 1. Got 2 instead
torch.iinfo(torch.float)  @@ torch.iinfo() requires an integer input type. Use torch.finfo
torch.iinfo(torch.bool)  @@ torch.bool is not supported by torch.iinfo
torch.finfo("float32")  @@ finfo(): argument 'type' (position 1) must be torch.dtype, not str
torch.testing.make_tensor(3, dtype="a", device="cpu")  @@ the requested dtype 'a' is not supported
torch.sparse_coo_tensor(torch.tensor([[0, -1]]), torch.ones(2))  @@ found negative index -1 for dim 0
torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(3), (2,))  @@ indices and values must have same nnz, but got nnz from indices: 2, nnz from values: 3
torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 3), (2, 4))  @@ values has incorrect size, expected [2, 4], got [2, 3]
torch.sparse_coo_tensor(torch.tensor([[1, 0]]), torch.ones(2), (2,), is_coalesced=True, check_invariants=True)  @@ cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor
torch.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2], (2, 2), check_invariants=True)  @@ crow_indices[..., -1] == nnz
torch.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2], (2, 2), check_invariants=True)  @@ crow_indices[..., 0] == 0
torch.sparse_csr_tensor([0, 1, 2], [0, 3], [1.0, 2], (2, 2), check_invariants=True)  @@ 0 <= col_indices < ncols
torch.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2], (2, 2), check_invariants=True)  @@ sorted and distinct along the last dimension
torch.sparse_csr_tensor([0, 0, 2], [0, 0], [1.0, 2], (2, 2), check_invariants=True)  @@ sorted and distinct along the last dimension
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2], (3, 2), check_invariants=True)  @@ crow_indices.shape[-1] must be equal to the number of rows + 1 (=4), but got 3
torch.sparse_csc_tensor([0, 2, 2], [1, 0], [1.0, 2], (2, 2), check_invariants=True)  @@ sorted and distinct along the last dimension
torch.ones(2, 2).to_sparse(3)  @@ sparse_dim argument must be in [0,2] range, but 3 is given
torch.ones(2, 3).to_sparse(0)  @@ sparse_dim argument must be in >0 when self.dim()>0
torch.eye(2).to_sparse().to_sparse(1)  @@ conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported
torch.sparse.sum(torch.eye(3).to_sparse(), 5)  @@ Dimension out of range
torch.sparse.sum(torch.eye(3).to_sparse(), [0, 0])  @@ dim 0 appears multiple times in the list of dims
torch.eye(3).to_sparse().transpose(0, 5)  @@ Dimension out of range
torch.eye(3).to_sparse().index_select(0, torch.tensor([0.0]))  @@ index_select() argument index must be 1-D strided (non-sparse) long-tensor
torch.eye(3).to_sparse().numpy()  @@ can't convert Sparse layout tensor to numpy
bool(torch.eye(3).to_sparse())  @@ Boolean value of Tensor with more than one value is ambiguous
torch.eye(3).to_sparse().div(torch.eye(3).to_sparse())  @@ Sparse division requires a scalar or zero-dim dense tensor divisor
torch.eye(3).to_sparse().pow(0)  @@ cannot raise to zeroth power on sparse tensor
torch.eye(3).to_sparse().sparse_resize_((2, 2), 2, 0)  @@ shrinking the size of sparse dimensions (from [3, 3] to [2, 2]) on a non-empty sparse tensor
torch.eye(3).to_sparse().sparse_resize_((3, 3, 2), 2, 1)  @@ changing the number of dense dimensions (from 0 to 1) on a non-empty sparse tensor
torch.eye(3).to_sparse().sparse_resize_((3, 3), 1, 1)  @@ changing the number of sparse dimensions (from 2 to 1) on a non-empty sparse tensor
torch.eye(3).to_sparse().copy_(torch.ones(3, 3))  @@ copy_() between dense and sparse Tensors is not implemented
torch.eye(2).to_sparse_csr().is_contiguous()  @@ Sparse CSR tensors do not have is_contiguous
torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([0, 1]), (2, 2))  @@ Number of diagonals (1) does not match the number of offsets (2)
torch.sparse.spdiags(torch.ones(2, 2), torch.tensor([0, 0]), (2, 2))  @@ Offset tensor contains duplicate values
torch.sparse.spdiags(torch.ones(2), torch.tensor([0]), (2, 2, 2))  @@ Output shape must be 2d
torch.sparse.spdiags(torch.ones(2), torch.tensor([0.0]), (2, 2))  @@ Offset Tensor must have dtype Long
torch.sparse.spdiags(torch.ones(2, 2, 2), torch.tensor([0]), (2, 2))  @@ Diagonals must be vector or matrix
torch.sparse.spdiags(torch.ones(2), torch.tensor([0]), (2, 2), torch.strided)  @@ Only output layouts (Sparse, SparseCsc, SparseCsr) are supported
torch.fft.rfft(torch.tensor([1j]))  @@ rfft expects a real input tensor, but got ComplexFloat
torch.fft.rfftn(torch.tensor([1j]))  @@ rfftn expects a real-valued input tensor, but got ComplexFloat
torch.fft.ihfft(torch.tensor([1j]))  @@ ihfft expects a real input tensor, but got ComplexFloat
torch.fft.fft(torch.ones(4).bfloat16())  @@ Unsupported dtype BFloat16
torch.hann_window(3, layout=torch.sparse_coo)  @@ hann_window is not implemented for sparse types
torch.use_deterministic_algorithms(1)  @@ argument 'mode' (position 1) must be bool, not int
setattr(torch.utils.deterministic, "fill_uninitialized_memory", 3)  @@ expected a bool, but got
torch.distributions.Multinomial(2.5, torch.ones(2))  @@ inhomogeneous total_count is not supported
torch.distributions.TransformedDistribution(torch.distributions.Normal(0.0, 1.0), 3)  @@ transforms must be a Transform or list
torch.distributions.ReshapeTransform((2, 3), (5,))  @@ in_shape, out_shape have different numbers of elements
torch.empty(2, dtype=torch.int8).random_(-200, 10)  @@ from is out of bounds for signed char
torch.empty(2, dtype=torch.uint8).random_(0, 257)  @@ to - 1 is out of bounds for unsigned char
torch.empty(2, dtype=torch.bool).random_(0, 3)  @@ to - 1 is out of bounds for bool
torch.empty(2).half().random_(-100000, 100000)  @@ from is out of bounds for
torch.randint(-1, 10, (2,), dtype=torch.uint8)  @@ from is out of bounds for unsigned char
torch.randint(0, 3, (2,), dtype=torch.bool)  @@ to - 1 is out of bounds for bool
torch.empty(2).bernoulli_(2)  @@ bernoulli_ expects p to be in [0, 1], but got p=2
torch.multinomial(torch.tensor([1, 1]), 1)  @@ multinomial only supports floating-point dtypes for input, got: Long
torch.allclose(torch.ones(2), torch.ones(2).double())  @@ Float did not match Double
torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).size(1)  @@ Given dimension 1 is irregular and does not have a size
torch.nested.nested_tensor([torch.ones(2), torch.ones(3, 3)])  @@ All Tensors given to nested_tensor must have the same dimension
torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to_padded_tensor(1.0, (2, 2))  @@ Value in output_size is less than NestedTensor padded size
torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)]).transpose(0, 1)  @@ Nested tensor dimension 0 cannot be transposed
torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)]).unbind(1)  @@ NestedTensor can only be unbound along dimension 0
torch.nested.nested_tensor_from_jagged(torch.ones(5, 2))  @@ At least one of offsets or lengths is required
""".strip().splitlines()


def raised(library: Any, program: str) -> BaseException:
    with warnings.catch_warnings(), pytest.raises(Exception) as error:
        warnings.simplefilter("ignore")
        eval(program, {"torch": library})
    return error.value


@pytest.mark.parametrize("line", REFUSED)
def test_a_refusal_has_pytorchs_kind_and_the_phrase(line: str) -> None:
    program, phrase = (part.strip() for part in line.split("@@"))
    there, here = (raised(library, program) for library in (reference, rushlight))
    assert type(here).__name__ == type(there).__name__
    assert re.search(re.escape(phrase), str(there), re.IGNORECASE)
    assert re.search(re.escape(phrase), str(here), re.IGNORECASE)


def test_a_transpose_of_a_tensor_without_dimensions_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        assert rushlight.tensor(1.0).T.item() == 1.0


def test_a_singular_matrix_has_a_factor_in_the_older_function() -> None:
    for t in (reference, rushlight):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            LU, pivots = t.lu(t.zeros(2, 2))
        assert not LU.any()
        assert pivots.tolist() == [1, 2]


def test_shapes_are_close_where_there_are_no_values() -> None:
    a, b = (rushlight.ones(n, device="meta") for n in (2, 3))
    rushlight.testing.assert_close(a, a)
    with pytest.raises(AssertionError, match="shape"):
        rushlight.testing.assert_close(a, b)


def test_a_storage_of_bytes_needs_no_order_of_them() -> None:
    from rushlight.compat.rooms.storage import ByteStorage

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ByteStorage.from_buffer(b"abc").tolist() == [97, 98, 99]


def test_nested_tensors_are_joined_and_filled_by_their_components() -> None:
    def found(t: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nt = t.nested.nested_tensor([t.arange(2.0), t.ones(3).double()])
            made = [nt, t.cat([nt, nt]), t.zeros_like(nt), t.ones_like(nt)]
            return [[(str(x.dtype), x.tolist()) for x in n.unbind()] for n in made]

    assert found(rushlight) == found(reference)
