"""``torch._C``: those of its names that Python code uses by themselves."""

from __future__ import annotations

import contextlib
import enum
import importlib
from typing import Any

from rushlight import absent
from rushlight._C import _build, _known
from rushlight._C import _functorch as _functorch
from rushlight._C import _nn as _nn
from rushlight._C._bits import *
from rushlight._C._runs import _current_autograd_node as _current_autograd_node
from rushlight._C._runs import _current_graph_task_execution_order as _current_graph_task_execution_order
from rushlight._C._runs import _current_graph_task_id as _current_graph_task_id
from rushlight._C._runs import _will_engine_execute_node as _will_engine_execute_node
from rushlight._C._stacks import *
from rushlight._C._storages import *
from rushlight.basics.devices import CPU, device
from rushlight.basics.dtypes import dtype as dtype
from rushlight.basics.size import Size as Size
from rushlight.basics.state import modes
from rushlight.dispatch.formats import memory_format as memory_format
from rushlight.futures import Future as Future
from rushlight.generator import Generator as Generator
from rushlight.ops.linear.decompositions import _LinAlgError
from rushlight.ops.python.unread import DisableTorchDispatch, _disabled_torch_dispatch_impl
from rushlight.overrides.protocol import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
)
from rushlight.tensor import Tensor
from rushlight.tensor import layout as layout

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet",
           "_LinAlgError", "_disabled_torch_dispatch_impl", "_disabled_torch_function_impl"]  # fmt: skip


globals().update(
    {_name: _value for _name, _value in vars(_build).items() if _name.lstrip("_").startswith(_build.LEADS)}
)


class DispatchKey(enum.Enum):
    """Who may take a call of an operator.  Here a call goes one way; the keys name what `torch.library` registers for."""

    Undefined = enum.auto()
    CPU = enum.auto()
    CUDA = enum.auto()
    XPU = enum.auto()
    MPS = enum.auto()
    Meta = enum.auto()
    Sparse = enum.auto()
    SparseCPU = enum.auto()
    SparseMeta = enum.auto()
    SparseCsrCPU = enum.auto()
    SparseCsrMeta = enum.auto()
    BackendSelect = enum.auto()
    Python = enum.auto()
    Functionalize = enum.auto()
    Conjugate = enum.auto()
    Negative = enum.auto()
    ZeroTensor = enum.auto()
    ADInplaceOrView = enum.auto()
    Autograd = enum.auto()
    AutogradCPU = enum.auto()
    AutogradCUDA = enum.auto()
    AutogradXPU = enum.auto()
    AutogradMPS = enum.auto()
    AutogradMeta = enum.auto()
    AutocastCPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastXPU = enum.auto()
    AutocastMPS = enum.auto()
    FuncTorchBatched = enum.auto()
    FuncTorchGradWrapper = enum.auto()
    PreDispatch = enum.auto()
    PythonDispatcher = enum.auto()
    PythonTLSSnapshot = enum.auto()
    CompositeImplicitAutograd = enum.auto()
    CompositeExplicitAutograd = enum.auto()
    CompositeExplicitAutogradNonFunctional = enum.auto()


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, *keys: DispatchKey):
        self.keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self.keys & other.keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self.keys - other.keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self.keys == other.keys

    def __hash__(self) -> int:
        return hash(self.keys)

    def highestPriorityTypeId(self) -> DispatchKey:
        """The key that takes calls first; Undefined where there is none."""
        return max(self.keys, key=lambda key: key.value, default=DispatchKey.Undefined)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is in it."""
        return key in self.keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with one key more."""
        return DispatchKeySet(*self.keys, key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without a key."""
        return DispatchKeySet(*(self.keys - {key}))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in DispatchKey if key in self.keys)})"


def _ExcludeDispatchKeyGuard(keys: DispatchKeySet) -> contextlib.AbstractContextManager[None]:
    """Keys that take no calls inside.  Those of autograd are passed by in operators that take functions; others take none anyhow."""
    if keys.has(DispatchKey.AutogradCPU) or keys.has(DispatchKey.Autograd):
        return importlib.import_module("rushlight._C._higher_order").BelowAutograd()  # type: ignore[no-any-return]
    return contextlib.nullcontext()


def _AutoDispatchBelowAutograd() -> contextlib.AbstractContextManager[None]:
    """A context in which operators that take functions go past what differentiates them."""
    return importlib.import_module("rushlight._C._higher_order").BelowAutograd()  # type: ignore[no-any-return]


def _dispatch_tls_is_dispatch_key_included(key: DispatchKey) -> bool:
    """Whether a key takes calls that it would not take by its operands: none does."""
    return False


def _dispatch_tls_set_dispatch_key_included(key: DispatchKey, included: bool) -> None:
    """Accepted: a call goes one way."""


def _only_lift_cpu_tensors() -> bool:
    """Whether constants are lifted from the CPU alone: there is no other device."""
    return False


def _set_only_lift_cpu_tensors(value: bool) -> None:
    """Accepted, without effect."""


_DisableTorchDispatch = DisableTorchDispatch
_IncludeDispatchKeyGuard = _ForceDispatchKeyGuard = contextlib.nullcontext
_EnablePythonDispatcher = _DisablePythonDispatcher = contextlib.nullcontext


def _log_api_usage_once(event: str) -> None:
    """Nobody is told of what is used."""


def _get_tracing_state() -> None:
    """What is tracing for TorchScript: nothing."""


def _is_tracing() -> bool:
    """Whether TorchScript is tracing: no."""
    return False


def _is_torch_function_mode_enabled() -> bool:
    """Whether this thread is in a TorchFunctionMode."""
    from rushlight.overrides.protocol import here

    return bool(here.asks and here.modes)


def _len_torch_function_stack() -> int:
    """How many modes this thread is in."""
    from rushlight.overrides.protocol import here

    return len(here.modes)


def _get_function_stack_at(level: int) -> object:
    """The mode that this thread entered at a place, counted from the outermost one.  Raises IndexError where there is none."""
    from rushlight.overrides.protocol import here

    return here.modes[level]


def _are_functorch_transforms_active() -> bool:
    """Whether a transformation of `torch.func` is running."""
    return bool(modes.levels)


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that take no calls: none."""
    return DispatchKeySet()


def _get_accelerator() -> device:
    """The device that computes: the CPU."""
    return CPU


def _get_default_device() -> str:
    """The device of new tensors."""
    return str(modes.default_device or CPU)


def _get_privateuse1_backend_name() -> str:
    """The name of a device that a package has brought: none has."""
    return "privateuseone"


def _mps_is_available() -> bool:
    """Whether there is a GPU of Apple's: tests replace this to say there is none."""
    return False


absent.names(
    globals(), "TorchScript compiles, and here is nothing to compile to",
    "Block CompilationUnit Graph Node ScriptDict ScriptFunction ScriptList ScriptMethod ScriptModule ScriptObject TensorType Value",
    "_create_function_from_graph _jit_get_schemas_for_operator _jit_pass_canonicalize _jit_pass_constant_propagation "
    "_jit_pass_dce _jit_pass_lint _jit_pass_propagate_shapes_on_graph _jit_erase_non_input_shape_information",
)  # fmt: skip


_VariableFunctionsClass = _known.VariableFunctions
_VariableFunctions = _VariableFunctionsClass()
_special, _linalg, _fft = _known.Space("special"), _known.Space("linalg"), _known.Space("fft")
_known.name_methods()
TensorBase = _TensorBase = Tensor
_TensorMeta = type(Tensor)


def __getattr__(name: str) -> Any:
    """What takes longer to import than to name."""
    if name in ("PyTorchFileReader", "PyTorchFileWriter"):
        return getattr(importlib.import_module("rushlight.serialization.records"), name)
    if name == "parse_schema":
        return importlib.import_module("rushlight.library.schema").parsed
    if name == "_cpu":
        return importlib.import_module("rushlight.cpu")
    if name == "Tag":
        return importlib.import_module("rushlight.library.tags").Tag
    if name in ("_get_autograd_fallback_mode", "_set_autograd_fallback_mode"):
        return getattr(importlib.import_module("rushlight.library.fallback"), name)
    if name in ("_dispatch_has_kernel", "_dispatch_has_kernel_for_dispatch_key", "_dispatch_keys"):
        return getattr(importlib.import_module("rushlight._C._kernels"), name)
    if name in ("_is_multithreading_enabled", "_is_view_replay_enabled"):
        return getattr(importlib.import_module("rushlight.autograd.grad_mode"), name.removeprefix("_"))
    if name == "_is_fwd_grad_enabled":
        return importlib.import_module("rushlight.autograd.forward_ad").is_fwd_grad_enabled
    if name == "_WeakTensorRef":
        return importlib.import_module("rushlight._C._weak").WeakTensorRef
    if name in ("_autograd", "_functions", "_profiler"):
        return importlib.import_module(f"rushlight._C.{name}")
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")
