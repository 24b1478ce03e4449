"""Names below the public ones that suites of tests written for PyTorch begin with."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from tests.processes import printed_as_torch

import rushlight as torch
from rushlight import _C
from rushlight.autograd.function import _nested_map
from rushlight.autograd.gradcheck import _get_numerical_jacobian, _iter_tensors
from rushlight.compat.rooms import _prims_common as prims
from rushlight.compat.rooms.private import _refs
from rushlight.overrides import BaseTorchFunctionMode
from rushlight.utils._python_dispatch import TorchDispatchMode

PROGRAM = """
import torch, torch._prims, torch.backends.python_native, torch.jit.frontend, torch.jit.quantized, torch.jit._logging
from torch._C import ScriptDict, ScriptList, TensorType
from torch._C._profiler import gather_traceback, symbolize_tracebacks
from torch._export.wrappers import mark_subclass_constructor_exportable_experimental
from torch._inductor.utils import GPU_TYPES
from torch._logging.scribe import open_source_signpost
from torch._prims.context import TorchRefsMode
from torch._prims_common.wrappers import _maybe_remove_out_wrapper
from torch._refs.nn import functional
from torch._utils import _is_privateuse1_backend_available
from torch._utils_internal import get_file_path, get_file_path_2, get_writable_path
from torch._vendor.packaging import version
from torch.testing._utils import wrapper_set_seed
assert torch.ao.nn.quantized.modules.__all__ == ["FXFloatFunctional", "FloatFunctional", "MaxPool2d"] and not torch.ao.nn.quantizable.modules.__all__
assert torch.ao.nn.quantized.MaxPool2d is torch.nn.MaxPool2d and "cuda" in GPU_TYPES and torch._C.has_lapack
assert torch._C._get_cpu_capability() == torch.backends.cpu.get_cpu_capability()
assert torch.cpu._is_avx2_supported() in (True, False) and not _is_privateuse1_backend_available()
assert get_file_path_2("a", "b") == "a/b" and get_file_path("c").endswith("/c") and get_writable_path("/") in ("/", get_writable_path("/"))
assert version.parse("1.9") < version.parse("1.10") and functional.relu is torch.nn.functional.relu
assert torch._disable_dynamo(len) is len and mark_subclass_constructor_exportable_experimental(len) is len
(frames,) = symbolize_tracebacks([gather_traceback()])
assert frames[0]["name"] == "<module>" and isinstance(frames[0]["line"], int)
state = torch.get_rng_state()
assert wrapper_set_seed(torch.rand, 2).equal(wrapper_set_seed(torch.rand, 2)) and torch.get_rng_state().equal(state)
with TorchRefsMode():
    assert torch.ones(2).sum() == 2
kernel = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")
for refused in (lambda: kernel(torch.ones(1)), lambda: torch._scaled_mm_v2(1)):
    try:
        refused()
    except NotImplementedError:
        continue
    raise AssertionError
torch.backends.disable_global_flags()
try:
    torch.backends.cudnn.enabled = False
except RuntimeError as error:
    assert "context manager flags()" in str(error)
else:
    raise AssertionError
with torch.backends.cudnn.flags(enabled=False):
    assert not torch.backends.cudnn.enabled
assert torch.backends.cudnn.enabled and torch.backends.flags_frozen()
"""


def test_they_are_imported_as_torch() -> None:
    printed_as_torch(PROGRAM)


def test_modes_are_pushed_and_popped() -> None:
    asked, dispatched = BaseTorchFunctionMode(), TorchDispatchMode()
    _C._push_on_torch_function_stack(asked)
    assert _C._len_torch_function_stack() == 1 and _C._pop_torch_function_stack() is asked
    _C._push_on_torch_dispatch_stack(dispatched)
    assert _C._get_dispatch_stack_at(0) is dispatched and _C._pop_torch_dispatch_stack() is dispatched
    assert _C._len_torch_function_stack() == _C._len_torch_dispatch_stack() == 0
    for pop in (_C._pop_torch_function_stack, _C._pop_torch_dispatch_stack):
        with pytest.raises(RuntimeError, match="this thread is in no"):
            pop()


def test_who_is_asked_is_a_state() -> None:
    state = _C._TorchFunctionState
    assert _C._get_torch_function_state() is state.ENABLED and _C._is_torch_function_enabled()
    with _C.DisableTorchFunctionSubclass():
        assert _C._get_torch_function_state() is state.SUBCLASSES_DISABLED and not _C._is_torch_function_enabled()
        with _C._EnableTorchFunction():
            assert _C._is_torch_function_enabled()
    _C._set_torch_function_state(state.ALL_DISABLED)
    assert _C._is_torch_function_all_disabled()
    _C._set_torch_function_state(state.ENABLED)


class Two(NamedTuple):
    """Two values."""

    a: object
    b: object


def test_nested_values() -> None:
    double = _nested_map(lambda x: isinstance(x, int), lambda x: 2 * x, "ints")
    assert double([1, (2, None), {"a": 3}, Two(4, 5)]) == [2, (4, None), {"a": 6}, Two(8, 10)]
    with pytest.raises(ValueError, match=r"of type str: expected ints"):
        double("no")
    x, y = torch.ones(1), torch.ones(1, requires_grad=True)
    assert list(_iter_tensors([x, (y, 3)])) == [x, y] and list(_iter_tensors([x, (y,)], only_requiring_grad=True)) == [
        y
    ]


def test_jacobians_by_differences() -> None:
    x, y = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([3 + 1j], dtype=torch.complex128)
    (of_x,), (of_y,) = _get_numerical_jacobian(lambda x, y: x.sum() * y * y, (x, y), eps=1e-6)
    assert torch.allclose(of_x, (y * y).expand(2, 1)) and x.tolist() == [1, 2]
    assert of_y.shape == (1, 1) and abs(of_y.item()) < 1e-6  # holomorphic: both axes cancel, as PyTorch has it
    ((of_target,),) = _get_numerical_jacobian(lambda x, y: x.prod(), (x, y), target=x, eps=1e-6)
    assert torch.allclose(of_target, torch.tensor([[2.0], [1.0]], dtype=torch.float64))


def test_dtypes_of_results() -> None:
    kind, small = prims.ELEMENTWISE_TYPE_PROMOTION_KIND, torch.ones(2, dtype=torch.bfloat16)
    whole = torch.ones((), dtype=torch.int32)

    def found(*args: object, how: str = "DEFAULT") -> tuple[object, object]:
        return prims.elementwise_dtypes(*args, type_promotion_kind=kind[how])

    assert found(small, 1.0) == (torch.float32, torch.bfloat16) and found(small, how="NO_OPMATH")[0] is torch.bfloat16
    assert found(whole, 1.5) == (torch.float32, torch.float32) and found(small, 1j)[1] is torch.complex64
    assert (
        found(whole, torch.ones(1, dtype=torch.int8)) == (torch.int8, torch.int8)
        and found(True, 2) == (torch.int64,) * 2
    )
    assert found(whole, how="INT_TO_FLOAT")[1] is torch.float32 and found(small, how="ALWAYS_BOOL")[1] is torch.bool
    assert found(torch.ones(1, dtype=torch.complex64), how="COMPLEX_TO_FLOAT") == (torch.complex64, torch.float32)
    assert found(torch.ones(1) > 0, how="BOOL_TO_LONG") == (torch.int64, torch.int64)


def test_questions_about_dtypes_and_shapes() -> None:
    assert [prims.dtype_to_type(d) for d in (torch.bool, torch.uint8, torch.float16, torch.complex64)] == [
        bool,
        int,
        float,
        complex,
    ]
    assert (
        prims.type_to_dtype(complex) is torch.complex64
        and prims.corresponding_real_dtype(torch.complex128) is torch.float64
    )
    assert (
        prims.is_integer_dtype(torch.int8)
        and not prims.is_integer_dtype(torch.bool)
        and prims.is_float_dtype(torch.bfloat16)
    )
    assert prims.is_expandable_to((1, 3), (2, 4, 3)) and not prims.is_expandable_to((2,), (3,))
    assert (
        prims.compute_required_storage_length((2, 3), (3, 1), 5) == 11
        and prims.compute_required_storage_length((0, 3), (3, 1), 5) == 0
    )
    assert prims.canonicalize_dims(3, [-1, 0]) == (2, 0) and prims.canonicalize_dims(3, -1) == 2


def test_functions_written_in_python_are_the_operators() -> None:
    assert _refs.add is torch.add and _refs.linalg.svd is torch.linalg.svd and _refs.special.i0e is torch.special.i0e
    assert _refs.fft.fft is torch.fft.fft and _refs._conversions.double(torch.ones(1)).dtype is torch.float64
    assert _refs.T(torch.ones(2, 3)).shape == (3, 2)
    torch.manual_seed(1)
    drawn = _refs.exponential(torch.ones(2), 3.0)
    torch.manual_seed(1)
    assert drawn.equal(torch.ones(2).exponential_(3.0))
    with pytest.raises(AttributeError, match=r"torch\._refs\.linalg' has no attribute 'nonesuch"):
        _refs.linalg.nonesuch


def test_products_of_scaled_matrices() -> None:
    a, b = (torch.randn(4, 8).to(torch.float8_e4m3fn) for _ in range(2))
    rows, columns = torch.rand(4, 1), torch.rand(1, 4)
    found = torch._scaled_mm(a, b.t(), rows, columns, bias=torch.ones(4), out_dtype=torch.float32)
    assert torch.allclose(found, (a.float() @ b.float().t()) * rows * columns + 1)
    assert torch._scaled_mm(a, b.t(), rows[0, 0], rows[1, 0]).dtype is torch.float8_e4m3fn
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a, b.t(), rows, rows)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch._scaled_mm(a, b, rows, rows)
    with pytest.raises(RuntimeError, match="mat1 must be a matrix"):
        torch._scaled_mm(a[0], b, rows, rows)
