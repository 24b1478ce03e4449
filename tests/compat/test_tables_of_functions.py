"""Functions by the names that tables of PyTorch's tests have for them, and modules at the head of its test files."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.processes import printed_as_torch

import rushlight as torch
from rushlight import _C
from rushlight._C._functorch import reshape_dim_into, reshape_dim_outof
from rushlight.autograd.profiler import KinetoStepTracker
from rushlight.compat.rooms._utils import get_tensor_metadata, try_import
from rushlight.compat.rooms.private._utils_internal import deprecated
from rushlight.fx.passes.utils import HolderModule

HEADS = """
import torch._inductor.async_compile, torch._inductor.exc
from torch._C._profiler import _ExperimentalConfig, _ExtraFields_PyCall
from torch._inductor.codecache import CppCodeCache
from torch._inductor.codegen.common import register_backend_for_device
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.compile_fx import shape_env_from_inputs
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import is_big_gpu, run_and_get_code
from torch._C._distributed_c10d import AllreduceOptions, BuiltinCommHookType, _SymmetricMemory, _create_work_from_future
from torch.autograd.profiler_legacy import profile
from torch.distributed.distributed_c10d import _CollOp, _TORCHCOMM_AVAILABLE, _store_based_barrier
from torch.profiler import DeviceType, ExecutionTraceObserver, _utils
from torch.profiler._memory_profiler import DataFlowGraph
from torch.profiler._pattern_matcher import Pattern, report_all_anti_patterns
from torch.utils._config_module import ConfigModule
from torch.utils._helion import has_helion
from torch.utils._pallas import has_tpu_pallas
from torch.utils.data.backward_compatibility import worker_init_fn
from torch.utils.data.datapipes._hook_iterator import _SnapshotState
from torch.utils.data.datapipes.dataframe import CaptureDataFrame, dataframe_wrapper
try:
    CppCodeCache.load("")
except torch._inductor.exc.InvalidCxxCompiler:
    pass
assert not has_helion() and not has_tpu_pallas() and not is_big_gpu() and not isinstance(1, CaptureDataFrame)
assert AllreduceOptions().reduceOp == torch.distributed.ReduceOp.SUM and not _TORCHCOMM_AVAILABLE
torch.distributed.Backend.register_backend("threaded", len)
assert torch.distributed.Backend.THREADED == "threaded"
assert torch.utils.data.IterDataPipe._snapshot_state is _SnapshotState.NotStarted
"""
SUITES = """
import torch, torch.testing._internal
torch.testing._internal.__path__.insert(0, {path!r})
from torch.testing._internal.generated.annotated_fn_args import annotated_args
from torch.testing._internal import common_distributed, common_methods_invocations, inductor_utils, triton_utils
assert torch.add in annotated_args and torch.Tensor.add in annotated_args and torch.special.erf in annotated_args
with torch.testing._internal.common_utils.freeze_rng_state():
    torch.rand(1)
assert not inductor_utils.HAS_CPU and issubclass(common_distributed.MultiProcessTestCase, torch.testing._internal.common_utils.TestCase)
"""


def test_heads_of_test_files_are_imported() -> None:
    printed_as_torch(HEADS)


def test_the_tables_of_pytorchs_wheel_are_imported_beside_this_library() -> None:
    theirs = find_spec("torch")
    if theirs is None or theirs.origin is None or find_spec("expecttest") is None:
        pytest.skip("needs PyTorch")
    printed_as_torch(SUITES.format(path=str(Path(theirs.origin).parent / "testing" / "_internal")))


def test_functions_are_found_by_their_inner_names() -> None:
    assert _C._special.special_erf is torch.special.erf and _C._fft.fft_fft is torch.fft.fft
    assert _C._linalg.linalg_inv is torch.linalg.inv and _C._VariableFunctions.hann_window is torch.hann_window
    assert _C._VariableFunctions._is_all_true(torch.ones(2) > 0).item()


def test_functions_for_other_devices_refuse_by_name() -> None:
    with pytest.raises(NotImplementedError, match=r"_VariableFunctions.cudnn_convolution: it is for other devices"):
        _C._VariableFunctions.cudnn_convolution(torch.ones(1))
    with pytest.raises(NotImplementedError, match=r"torch.Tensor.q_scale"):
        torch.Tensor.q_scale(torch.ones(1))
    assert not hasattr(torch.ones(1), "q_scale") and not hasattr(_C._VariableFunctions, "nonesuch")
    assert torch.Tensor._neg_view(torch.ones(1)).item() == -1 == torch.ones(1)._neg_view().item()


def test_functions_of_numbers_are_not_listed_as_overridable() -> None:
    ignored = torch.overrides.get_ignored_functions()
    for function in (torch.arange, torch.normal, torch.result_type, torch.Tensor.__iter__):
        assert function in ignored and function not in torch.overrides.get_testing_overrides()


def test_dimensions_are_joined_and_parted() -> None:
    x = torch.arange(210).view(2, 3, 5, 7)
    assert reshape_dim_into(0, 0, x).equal(x.reshape(6, 5, 7))
    assert reshape_dim_into(-1, -1, x).equal(x.movedim(3, 2).reshape(2, 3, 35))
    assert reshape_dim_into(3, 0, x).equal(x.movedim(3, 0).reshape(14, 3, 5))
    assert reshape_dim_outof(1, 1, x).shape == (2, 1, 3, 5, 7)
    with pytest.raises(RuntimeError, match="is not parted"):
        reshape_dim_outof(0, 3, x)


def test_a_deprecated_function_has_a_name_that_warns() -> None:
    def _twice(x: int) -> int:
        return 2 * x

    assert deprecated()(_twice) is _twice
    with pytest.warns(UserWarning, match="twice is DEPRECATED, please consider using an alternative"):
        assert sys.modules[__name__].twice(3) == 6  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="symbol already exists"):
        deprecated()(_twice)
    with pytest.raises(ValueError, match="must decorate a function whose name starts with a single leading underscore"):
        deprecated()(printed_as_torch)


def test_small_ones() -> None:
    assert try_import("nonesuch") is None and try_import("json") is sys.modules["json"]
    assert get_tensor_metadata(torch.ones(1)) == {} and get_tensor_metadata(torch.ones(1) * 1j) == {}
    assert get_tensor_metadata((torch.ones(1) * 1j).conj()) == {"conj": True}
    assert [name for name, _ in HolderModule({"a": torch.nn.ReLU()}).named_children()] == ["a"]
    former = KinetoStepTracker.current_step()
    KinetoStepTracker.init_step_count("a")
    KinetoStepTracker.init_step_count("b")
    assert KinetoStepTracker.increment_step("a") == former + 1 == KinetoStepTracker.increment_step("b")
    assert KinetoStepTracker.erase_step_count("a") and not KinetoStepTracker.erase_step_count("a")
