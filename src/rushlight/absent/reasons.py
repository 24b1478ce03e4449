"""Why names of PyTorch are not here: by the module, and for some modules by the name.

A name that is looked up in vain says its reason; so `hasattr` and `try` find it missing, which it is.
"""

from __future__ import annotations

import re

__all__ = ["PIPES", "SCRIPT", "TYPES", "why"]

_COMPILER = "nothing is compiled here, so programs are neither captured nor lowered"
SCRIPT = "TorchScript compiles, and here is nothing to compile to: torch.jit.script returns what it is given"
_QUANTIZED = "rushlight has no quantized tensors: float16 and bfloat16 halve the bytes of float32, and rushlight.stores compresses"
_PROCESSES = "of what is distributed there are collectives, DistributedDataParallel and fsdp.fully_shard"
_DEVICE = "there is no such device: rushlight computes on the CPU"
_ONNX = "rushlight exports no ONNX: load the state_dict in PyTorch and export it there"
PIPES = "of datapipes those of data frames are not here: torch.utils.data.datapipes has the others, iter and map"
_MASKED = "torch.masked has masked tensors with strided data, and functions that take a mask"
_PACKAGES = "packages of code and tensors in one file are not here: keep the code in modules and save its state_dict"
_CODE = "code compiled against PyTorch's C++ interface cannot run on rushlight's tensors"
_INNER = "it serves PyTorch's own tests or tools, and means nothing without its C++ parts"
_OWN = "names that begin with an underscore are PyTorch's own, which may change from one of its versions to the next"
_FUNCTIONAL = "of the functions beneath optimizers there is one each, torch.optim.adam.adam say: those beneath them are PyTorch's own"
_SPARSE = "sparse tensors are of two parts here, which are copied by indices().clone() and values().clone()"
_LEGACY = "it is of an interface that PyTorch itself has given up"
_MODELS = "without torchvision its models alone are here: `rushlight install-as-torch` and `pip install torchvision` bring the rest, and no PyTorch"
_TRACES = "torch.fx has symbolic_trace, Graph, GraphModule, Interpreter and passes that cut, draw and rewrite; those for compilers are not here"

# Modules, with all that lies below them; the longest that fits counts.
MODULES = {
    "torch.autograd.profiler_legacy": f"{_LEGACY}: torch.profiler.profile is here",
    "torch.nn.attention.varlen": _DEVICE, "torch.sparse.semi_structured": _DEVICE,
    "torch.utils.collect_env": f"{_INNER}: get_pretty_env_info() and `rushlight doctor` say what this machine has",
    "torch.utils.show_pickle": f"{_INNER}: torch.load(weights_only=True) runs nothing that is in a file",
    "torch.accelerator": _DEVICE, "torch.ao": _QUANTIZED, "torch.backends": _DEVICE, "torch.compiler": _COMPILER,
    "torch.cpu": _DEVICE, "torch.cuda": _DEVICE, "torch.distributed": _PROCESSES, "torch.export": _COMPILER,
    "torch.fx": _TRACES, "torch.fx.experimental": _COMPILER, "torch.jit": SCRIPT, "torch.masked": _MASKED,
    "torch.mps": _DEVICE, "torch.mtia": _DEVICE, "torch.multiprocessing": _PROCESSES, "torch.nativert": _COMPILER,
    "torch.nn.attention.experimental": _COMPILER, "torch.nn.backends": _INNER, "torch.nn.cpp": _CODE,
    "torch.nn.intrinsic": _QUANTIZED, "torch.nn.parallel": _PROCESSES, "torch.numa": _PROCESSES, "torch.onnx": _ONNX,
    "torch.package": _PACKAGES, "torch.quantization": _QUANTIZED, "torch.testing": _INNER,
    "torch.utils.backcompat": _INNER, "torch.utils.backend_registration": _DEVICE, "torch.utils.benchmark": _INNER,
    "torch.utils.bundled_inputs": SCRIPT, "torch.utils.cpp_backtrace": _CODE, "torch.utils.cpp_extension": _CODE,
    "torch.utils.data": PIPES, "torch.utils.debug_log": _INNER, "torch.utils.file_baton": _CODE,
    "torch.utils.hipify": _CODE, "torch.utils.jit": SCRIPT, "torch.utils.mkldnn": _DEVICE,
    "torch.utils.mobile_optimizer": SCRIPT, "torch.utils.model_dump": SCRIPT,
    "torch.utils.throughput_benchmark": _INNER, "torch.utils.viz": _DEVICE, "torch.xpu": _DEVICE,
    "torchvision": _MODELS,
}  # fmt: skip

# Names of a module, as patterns.
TYPES = ("Any Await Bool Class Complex DeviceObj Dict Enum Float Future Inferred Int Interface List None Number Optional PyObject "
          "RRef StreamObj String SymBool SymInt Tensor Tuple Union")  # fmt: skip
NAMES = {
    "torch": ((rf"({'|'.join(TYPES.split())})?Type", SCRIPT),
    (r"(Lite)?Script\w+|Graph\w*|Code|Block|Node|Use|Value|Argument\w*|Alias\w*|Call\w*|Capsule|CompilationUnit|Complete\w+|Concrete\w+|"
    r"DeepCopyMemoTable|\w+StorageContext|ErrorReport|Execution\w+|FileCheck|FunctionSchema|Gradient|IODescriptor|JITException|"
    r"LockingLogger|NoopLogger|OperatorInfo|StaticModule|TracingState|BufferDict|ModuleDict|ParameterDict|AggregationType|AVG|SUM|"
    r"Benchmark\w+|ThroughputBenchmark|FatalError|import_ir_module\w*|parse_(ir|schema|type_comment)|merge_type_from_type_comment|"
    r"unify_type_list|fork|wait|\w*ir_module\w*|get_num_\w+|set_num_\w+|\w*[lL]ogger|init_num_threads|autocast_(in|de)crement_nesting",
    SCRIPT), (r"\w*quantize\w*|q_\w+|fbgemm_\w+|\w*_quant\w*|q(u?int)\w+|choose_qparams_\w+|int_repr|dequantize|"
    r"quint\w+|qint\w+|q\w+_scale\w*|fake_quant\w*", _QUANTIZED),
    (r"(cudnn|miopen|mkldnn|mps|vulkan|xpu)_\w+|is_vulkan_available|batch_norm_(backward|elemt|gather|stats|update)\w*|\w*cudnn\w*",
    _DEVICE), (r"\w+Storage|storage_\w+",
    "storages know bytes: Tensor.untyped_storage() and Tensor.storage() give them"),
    (r"(c?col|crow|row)?_?indices_copy|values_copy|resize_as_sparse_", _SPARSE), (r"bit", _QUANTIZED), (r"cpp",
    _CODE), (r"get_autocast_(ipu|xla)_dtype", _DEVICE), (r"slice_inverse", _COMPILER),
    (r"sym_\w+|export|vmap_\w+|compiler|DispatchKey\w*|DisableTorchFunction\w*|ExcludeDispatchKeyGuard|"
    r"is_autocast_\w+|set_autocast_\w+|autocast\w*", _COMPILER),), "torch.autograd": ((r"NestedIOFunction",
    _LEGACY),), "torch.autograd.function": ((r"NestedIOFunction", _LEGACY),),
    "torch.autograd.gradcheck": ((r"get_(numerical|analytical)_jacobian\w*",
    f"{_LEGACY}: torch.autograd.gradcheck compares Jacobians"),),
    "torch.autograd.graph": ((r"region_activation_memory_budget",
    f"{_COMPILER}: rushlight.memory.budget keeps a whole step under bytes"),),
    "torch.testing._internal": ((r"common_methods_invocations|opinfo|common_nn|common_modules|common_optimizers",
    "the databases of PyTorch's " "operators and modules are its own: rushlight's records have samples"),),
    "torch.autograd.variable": ((r"VariableMeta", _LEGACY),), "torch.nn.utils.spectral_norm": ((r"SpectralNorm\w+",
    f"{_LEGACY}: torch.nn.utils.parametrizations.spectral_norm is here"),),
    "torch.return_types": ((r"all_return_types|pytree_register_structseq", _COMPILER),),
    "torch.utils.hooks": ((r"BackwardHook|warn_if_has_hooks",
    f"{_INNER}: Module.register_full_backward_hook is here"),), "torch.optim": ((r"swap_in\w+", _FUNCTIONAL),),
    "torch.nn.functional": ((r"assert_int_or_pair", SCRIPT),),
    "torch.serialization": ((r"StorageType|mkdtemp|get_source_lines_and_file|storage_to_tensor_type|validate_hpu_device",
    _INNER),), "torch.autograd.profiler": ((r"\w+", _INNER),), "torch.autograd.profiler_util": ((r"\w+", _INNER),),
    "torch.profiler.profiler": ((r"ExecutionTraceObserver", _INNER), (r"supported_activities",
    "torch.profiler has it")), "torch.overrides": ((r"redispatch_function", _COMPILER),),
    "torch.library": ((r"get_kernel", _COMPILER),), "torch.func": ((r"functionalize|rearrange",
    _COMPILER),),
}  # fmt: skip
for _kind in ("adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd sparse_adam").split():
    NAMES[f"torch.optim.{_kind}"] = ((r"\w+", _FUNCTIONAL),)


def why(module: str, name: str = "") -> str | None:
    """Why a module of PyTorch, or a name in it, is not here; None where nobody has said.

    >>> why("torch.ao.quantization", "quantize_fx")[:34]
    'rushlight has no quantized tensors'
    """
    for pattern, reason in NAMES.get(module, ()):
        if re.fullmatch(pattern, name):
            return reason
    fits = [m for m in MODULES if f"{module}.{name}".startswith(f"{m}.") or module == m]
    if fits:
        return MODULES[max(fits, key=len)]
    return (
        _OWN if any(part.startswith("_") and not part.startswith("__") for part in (*module.split("."), name)) else None
    )
