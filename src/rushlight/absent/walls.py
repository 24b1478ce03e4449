"""Modules of PyTorch of which nothing is here but names: libraries import them and seldom use them.

A module stands in a table with the names that it shall have: classes have no instances, functions raise, both with the
reason.  It is made when it is first asked for, as an attribute or by an import, and is found in `sys.modules` from then on.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from rushlight import absent

__all__ = ["WALLS", "Wall", "below", "imported", "lacking", "room"]


@dataclass(frozen=True)
class Wall:
    """What a module without contents has.

    why: the reason, for messages; classes, functions: names, with blanks between; values: what can be given as it is.
    """

    why: str
    classes: str = ""
    functions: str = ""
    values: dict[str, Any] = field(default_factory=dict)


_ONE = "of what is distributed there are collectives, DistributedDataParallel and fsdp.fully_shard"
_SHARDS = f"{_ONE}, which deals parameters to processes"
_FILES = "torch.distributed.checkpoint has save and load, of folders, and state_dict"
_CALLS = "rushlight calls no other processes"
_PLANS = "DefaultLoadPlanner DefaultSavePlanner"
_TRACES = (
    "torch.fx has passes that cut, draw, rewrite and join steps; those for compilers and of their types are not here"
)
_QUANTIZED = "rushlight has no quantized tensors: float16 and bfloat16 halve the bytes of float32"
_SCRIPT = "TorchScript compiles, and here is nothing to compile to"
_PROFILES = "profiles are of operators and their memory, not of how an engine in C++ ran them"
_FRAMES = "of datapipes those of data frames are not here"
_GPU = "there is no GPU: rushlight computes on the CPU"
_COMPILED = "nothing is compiled here"
_CAPTURED = "nothing is captured here: programs run as they are"


def _jiterated(code_string: str, num_outputs: int = 1, **kwargs: object) -> object:
    """A function of a piece of CUDA: it can be made, and raises when it is called."""
    return absent.refusing("torch.cuda.jiterator", "a function of CUDA", _GPU)


WALLS = {
    "cuda.comm": Wall(_GPU, "", "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter"),
    "cuda.gds": Wall(_GPU, "GdsFile", "gds_deregister_buffer gds_register_buffer"),
    "cuda.graphs": Wall(
        _GPU,
        "CUDAGraph graph",
        "graph_pool_handle make_graphed_callables",
        {"is_current_stream_capturing": lambda: False},
    ),
    "cuda.green_contexts": Wall(_GPU, "GreenContext"),
    "cuda.jiterator": Wall(_GPU, "", "", {"_create_jit_fn": _jiterated, "_create_multi_output_jit_fn": _jiterated}),
    "cuda.nccl": Wall(
        _GPU,
        "",
        "all_gather all_reduce broadcast init_rank reduce reduce_scatter unique_id version",
        {"is_available": lambda tensors: False, "SUM": 0},
    ),
    "cuda.sparse": Wall(
        _GPU, " ".join(f"{kind}Tensor" for kind in "BFloat16 Byte Char Double Float Half Int Long Short".split())
    ),
    "cuda.tunable": Wall(
        _GPU,
        "",
        "enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results read_file "
        "is_enabled record_untuned_enable set_filename set_max_tuning_duration set_max_tuning_iterations tune_gemm_in_file "
        "tuning_enable tuning_is_enabled",
    ),
    "_dynamo.test_case": Wall(_COMPILED, "TestCase", "run_tests"),
    "_export": Wall(_CAPTURED),
    "_export.wrappers": Wall(
        _CAPTURED,
        "ExportTracepoint",
        "",
        {
            "mark_subclass_constructor_exportable_experimental": lambda constructor: constructor,
            "allow_in_pre_dispatch_graph": lambda function: function,
        },
    ),
    "_dynamo.testing": Wall(
        _COMPILED, "CompileCounter CompileCounterWithBackend EagerAndRecordGraphs", "normalize_gm rand_strided same"
    ),
    "distributed._tensor.experimental": Wall(_SHARDS, "", "context_parallel implicit_replication local_map"),
    "distributed.algorithms.ddp_comm_hooks.ddp_zero_hook": Wall(
        _ONE, "", "hook_with_zero_step hook_with_zero_step_interleaved"
    ),
    "distributed.autograd": Wall(_CALLS, "DistAutogradContext context", "backward get_gradients"),
    "distributed.checkpoint._consolidate_hf_safetensors": Wall(_FILES, "", "consolidate_safetensors_files"),
    "distributed.checkpoint.default_planner": Wall(_FILES, _PLANS),
    "distributed.checkpoint.hf_storage": Wall(_FILES, "HuggingFaceStorageReader HuggingFaceStorageWriter"),
    "distributed.checkpoint.metadata": Wall(
        _FILES,
        "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta TensorProperties "
        "TensorStorageMetadata",
    ),
    "distributed.checkpoint.planner": Wall(
        _FILES, "LoadItemType LoadPlan LoadPlanner ReadItem SavePlan SavePlanner WriteItem WriteItemType"
    ),
    "distributed.checkpoint.storage": Wall(_FILES, "StorageReader StorageWriter WriteResult"),
    "distributed.checkpoint.utils": Wall(_FILES, "CheckpointException"),
    "distributed.checkpoint.optimizer": Wall(_FILES, "", "load_sharded_optimizer_state_dict"),
    "distributed.checkpoint.state_dict_loader": Wall(_FILES, "", "_load_state_dict load_state_dict"),
    "distributed.fsdp.sharded_grad_scaler": Wall(_SHARDS, "ShardedGradScaler"),
    "distributed.launcher": Wall(_ONE, "LaunchConfig", "elastic_launch launch_agent"),
    "distributed.launcher.api": Wall(_ONE, "LaunchConfig", "elastic_launch launch_agent"),
    "distributed.pipelining": Wall(
        _ONE,
        "Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B ScheduleLoopedBFS SplitPoint",
        "build_stage pipe_split pipeline",
    ),
    "distributed.rpc": Wall(
        _CALLS,
        "BackendType PyRRef RRef RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo",
        "_get_debug_info _rref_context_get_debug_info get_worker_info init_rpc remote rpc_async rpc_sync shutdown",
    ),
    "distributed.rpc.api": Wall(
        _CALLS,
        "",
        "_all_gather _delete_all_user_and_unforked_owner_rrefs _use_rpc_pickler _wait_all get_worker_info remote rpc_async rpc_sync shutdown",
    ),
    "distributed._local_tensor": Wall(
        _SHARDS,
        "LocalIntNode LocalTensor LocalTensorMode",
        "local_tensor_mode",
        {
            "maybe_disable_local_tensor_mode": contextlib.nullcontext,
            "maybe_run_for_local_tensor": lambda function: function,
        },
    ),
    "distributed._mesh_layout": Wall(_SHARDS, "_MeshLayout"),
    "distributed._shard": Wall(_SHARDS, "", "_shard_tensor load_with_process_group shard_module shard_parameter"),
    "distributed._shard.sharded_tensor": Wall(
        _SHARDS, "Shard ShardedTensor ShardedTensorMetadata TensorProperties", "init_from_local_shards"
    ),
    "distributed._shard.sharding_spec": Wall(
        _SHARDS, "ChunkShardingSpec EnumerableShardingSpec ShardMetadata ShardingSpec"
    ),
    "distributed._sharded_tensor": Wall(_SHARDS, "ShardedTensor"),
    "distributed._state_dict_utils": Wall(
        _FILES, "", "_create_cpu_state_dict _gather_state_dict _offload_state_dict_to_cpu"
    ),
    "distributed.checkpoint._extension": Wall(_FILES, "Extension ExtensionRegistry StreamTransformExtension ZStandard"),
    "distributed.fsdp._fully_shard": Wall(_SHARDS),
    "distributed.fsdp._fully_shard._fsdp_param_group": Wall(_SHARDS, "FSDPParamGroup RegisterPostBackwardFunction"),
    "distributed.fsdp._init_utils": Wall(_SHARDS, "", "", {"NO_RESHARD_AFTER_FORWARD_STRATEGIES": frozenset()}),
    "distributed.tensor._collective_utils": Wall(
        _SHARDS, "", "mesh_broadcast mesh_scatter redistribute_cost unpad_tensor"
    ),
    "distributed.tensor._dtensor_spec": Wall(_SHARDS, "DTensorSpec ShardOrderEntry TensorMeta"),
    "distributed.tensor._ops": Wall(_SHARDS),
    "distributed.tensor._ops.utils": Wall(_SHARDS, "", "register_op_strategy"),
    "distributed.tensor._random": Wall(_SHARDS, "OffsetBasedRNGTracker", "is_rng_supported_mesh manual_seed"),
    "distributed.tensor._redistribute": Wall(_SHARDS, "", "redistribute_local_tensor"),
    "distributed.tensor._sharding_prop": Wall(_SHARDS, "ShardingPropagator"),
    "distributed.tensor.debug": Wall(_SHARDS, "CommDebugMode", "_clear_sharding_prop_cache visualize_sharding"),
    "distributed.tensor._utils": Wall(_SHARDS, "", "compute_local_shape_and_global_offset"),
    "distributed.tensor.experimental": Wall(
        _SHARDS, "", "context_parallel implicit_replication local_map register_sharding"
    ),
    "distributed.tensor.experimental._attention": Wall(
        _SHARDS, "", "context_parallel context_parallel_unshard set_rotate_method"
    ),
    "distributed.tensor.parallel": Wall(
        _SHARDS,
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput "
        "RowwiseParallel SequenceParallel",
        "loss_parallel parallelize_module",
    ),
    "ao.nn.intrinsic": Wall(
        _QUANTIZED,
        "_FusedModule ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d "
        "ConvReLU3d LinearBn1d LinearReLU BNReLU2d BNReLU3d",
    ),
    "ao.nn.intrinsic.quantized": Wall(_QUANTIZED, "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU"),
    "ao.nn.intrinsic.quantized.dynamic": Wall(_QUANTIZED, "LinearReLU"),
    "ao.nn.quantized.dynamic": Wall(_QUANTIZED, "Conv1d Conv2d Conv3d GRU GRUCell LSTM LSTMCell Linear RNNCell"),
    "ao.quantization.quantization_mappings": Wall(
        _QUANTIZED,
        "",
        "get_default_dynamic_quant_module_mappings get_default_qat_module_mappings get_default_qconfig_propagation_list "
        "get_default_static_quant_module_mappings",
    ),
    "jit.mobile": Wall(_SCRIPT, "LiteScriptModule", "_load_for_lite_interpreter"),
    "fx.experimental.accelerator_partitioner": Wall(_TRACES, "Partitioner"),
    "fx.experimental.const_fold": Wall(
        _TRACES, "FoldedGraphModule", "get_unique_attr_name_in_module split_const_subgraphs"
    ),
    "fx.experimental.graph_gradual_typechecker": Wall(_TRACES, "GraphTypeChecker Refine", "broadcast_types"),
    "fx.experimental.merge_matmul": Wall(_TRACES, "", "merge_matmul"),
    "fx.experimental.meta_tracer": Wall(_TRACES, "MetaTracer", "symbolic_trace"),
    "fx.experimental.partitioner_utils": Wall(
        _TRACES,
        "Device NodeLatency Partition PartitionLatency PartitionMode PartitionerConfig",
        "get_latency_of_one_partition get_latency_of_partitioned_graph get_partition_to_latency_mapping",
    ),
    "fx.experimental.schema_type_annotation": Wall(_TRACES, "AnnotateTypesWithSchema"),
    "fx.experimental.unify_refinements": Wall(_TRACES, "", "infer_symbolic_types unify_eq"),
    "fx.passes.annotate_getitem_nodes": Wall(_TRACES, "", "annotate_getitem_nodes"),
    "fx.passes.graph_manipulation": Wall(
        _TRACES, "", "get_size_of_all_nodes get_size_of_node get_tensor_meta replace_target_nodes_with"
    ),
    "fx.passes.param_fetch": Wall(_TRACES, "", "extract_attrs_for_lowering lift_lowering_attrs_to_nodes"),
    "fx.passes.utils.matcher_with_name_node_map_utils": Wall(_TRACES, "SubgraphMatcherWithNameNodeMap"),
    "fx.passes.utils.source_matcher_utils": Wall(
        _TRACES, "SourcePartition", "check_subgraphs_connected get_source_partitions"
    ),
    "package": Wall(
        "packages of code and tensors in one file are not here: keep the code in modules and save its state_dict",
        "Directory EmptyMatchError Importer ObjMismatchError ObjNotFoundError OrderedImporter PackageExporter PackageImporter "
        "PackagingError",
        "is_from_package",
        {"sys_importer": None},
    ),
    "autograd.profiler_legacy": Wall(f"{_PROFILES}: torch.profiler.profile is here", "profile"),
    "profiler._pattern_matcher": Wall(
        _PROFILES,
        "Conv2dBiasFollowedByBatchNorm2dPattern ExtraCUDACopyPattern ForLoopIndexingPattern FP32MatMulPattern GradNotSetToNonePattern "
        "MatMulDimInFP16Pattern MatMulLengthOneDimPattern NamePattern OptimizerSingleTensorPattern Pattern SynchronizedDataLoaderPattern",
        "report_all_anti_patterns",
    ),
    "profiler._memory_profiler": Wall(
        _PROFILES, "Action Category DataFlowGraph DeviceKey Key MemoryProfile OpTree SchemaMatcher SizeMap TensorKey"
    ),
    "profiler._utils": Wall(
        _PROFILES,
        "BasicEvaluation EventKey EventMetrics Interval",
        "compute_self_time index_of_first_match source_code_location traverse_bfs traverse_dfs",
    ),
    "utils.data.datapipes.dataframe": Wall(
        _FRAMES, "CaptureDataFrame DFIterDataPipe DataFramesAsTuplesPipe", "dataframe_wrapper"
    ),
    "utils.data.datapipes.dataframe.dataframes": Wall(
        _FRAMES,
        "Capture CaptureA CaptureAdd CaptureDataFrame CaptureDataFrameWithDataPipeOps CaptureF "
        "CaptureMul CaptureSub CaptureVariable DataFrameTracer",
    ),
    "nn.parallel._functions": Wall(_GPU, "Broadcast Gather ReduceAddCoalesced Scatter"),
    "jit._logging": Wall(_SCRIPT, "", "add_stat_value get_logger set_logger"),
    "jit.frontend": Wall(
        _SCRIPT,
        "FrontendError FrontendTypeError NotSupportedError UnsupportedNodeError",
        "get_jit_class_def get_jit_def",
    ),
    "jit.quantized": Wall(
        _SCRIPT, "QuantizedGRU QuantizedGRUCell QuantizedLSTM QuantizedLSTMCell QuantizedLinear QuantizedRNNCell"
    ),
    "sparse._triton_ops_meta": Wall(_GPU, "", "get_meta minimize update"),
}

# Those below modules of `rushlight.compat.rooms`.
_ROOMS = {
    "_functorch.aot_autograd": Wall(f"{_COMPILED}, so programs are neither captured nor lowered", "",
    "aot_export_joint_simple aot_export_module aot_function aot_module aot_module_simplified"),
    "_functorch.autograd_function": Wall("functions of autograd are no operators here: torch.autograd.Function takes transformations as it is",
    "CustomFunctionHigherOrderOperator", "custom_function_call vmapify_autograd_function"),
    "_functorch.pyfunctorch": Wall("levels of torch.func are no wrappers of tensors here: use torch.func's functions",
    "FuncTorchInterpreter GradInterpreter JvpInterpreter VmapInterpreter",
    "dispatch_functorch retrieve_all_functorch_interpreters "
    "retrieve_current_functorch_interpreter temporarily_clear_interpreter_stack temporarily_pop_interpreter_stack"),
    "_higher_order_ops.schema": Wall(_CAPTURED, "HopArgumentInfo HopSchema HopSchemaGenerator"),
    "_inductor.async_compile": Wall(_COMPILED, "AsyncCompile", "shutdown_compile_workers"),
    "_inductor.codegen": Wall(_COMPILED), "_inductor.codegen.common": Wall(_COMPILED, "",
    "get_custom_backend_config_for_device get_custom_backend_pass_for_device get_scheduling_for_device "
    "get_wrapper_codegen_for_device init_backend_registration register_backend_for_device"),
    "_inductor.codegen.wrapper": Wall(_COMPILED, "PythonWrapperCodegen"), "_inductor.compile_fx": Wall(_COMPILED, "",
    "compile_fx compile_fx_inner shape_env_from_inputs"), "_inductor.custom_graph_pass": Wall(_COMPILED,
    "CustomGraphModulePass CustomGraphPass"), "_inductor.graph": Wall(_COMPILED, "GraphLowering"),
    "_subclasses.functional_tensor": Wall("nothing is captured here: torch.func.functionalize runs a function without changes of its arguments",
    "BaseFunctionalizeAPI CppFunctionalizeAPI FunctionalTensor FunctionalTensorMode PythonFunctionalizeAPI",
    "dispatch_functionalize disable_functional_mode"),
    "_subclasses.schema_check_mode": Wall("torch.library.opcheck checks the declaration of an operator",
    "SchemaCheckMode"),
}  # fmt: skip
WALLS |= {f"compat.rooms.{name}": wall for name, wall in _ROOMS.items()}

# Modules of the package that lack names which theirs in PyTorch have.
PARTLY = {
    "distributed.checkpoint": Wall(
        _FILES, f"{_PLANS} HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan LoadPlanner Metadata ReadItem SavePlan "
        "SavePlanner WriteItem", "load_sharded_optimizer_state_dict load_state_dict save_state_dict"),
    "distributed.checkpoint.format_utils": Wall(_FILES, "_EmptyStateDictLoadPlanner", "_load_state_dict"),
    "distributed._composable": Wall(_SHARDS, "", "checkpoint replicate"),
    "distributed.fsdp": Wall(_SHARDS, "OptimStateKeyType"),
    "fx.experimental.normalize": Wall(_TRACES, "NormalizeOperators"),
    "fx.operator_schemas": Wall(_SCRIPT, "", "_torchscript_schema_to_signature _torchscript_type_to_python_type"),
    "distributed.fsdp.wrap": Wall(_SHARDS, "_ConfigAutoWrap", "_or_policy enable_wrap wrap"),
    "distributed.tensor.placement_types": Wall(_SHARDS, "_StridedShard"),
}  # fmt: skip


def _not_called(function: Callable[..., Any]) -> object:
    """A decorator of functions that need other processes: what it returns raises."""
    return absent.refusing("torch.distributed.rpc", getattr(function, "__name__", "call"), _CALLS)


WALLS["distributed.rpc.api"].values["_require_initialized"] = _not_called
for _name in ("distributed.autograd", "distributed.rpc"):
    WALLS[_name].values["is_available"] = lambda: False
_classes: dict[tuple[str, str], type] = {}  # by reason and name: a class that several modules have is one


def below(parent: str) -> list[str]:
    """The names of the modules of the table that lie right below a module of this package."""
    lead = parent.removeprefix("rushlight").lstrip(".")
    lead = f"{lead}." if lead else ""
    return [name[len(lead) :] for name in WALLS if name.startswith(lead) and "." not in name[len(lead) :]]


def room(name: str) -> ModuleType | None:
    """The module ``rushlight.NAME`` of the table, None where it has none.

    name: with the leading ``rushlight.``.
    """
    wall = WALLS.get(name.removeprefix("rushlight."))
    if wall is None or not name.startswith("rushlight."):
        return None
    return sys.modules.get(name) or _made(name, wall)


def imported(name: str) -> ModuleType:
    """A module of the table or of the package."""
    return room(name) or importlib.import_module(name)


def _public(name: str) -> str:
    """PyTorch's name of a module."""
    return name.replace("rushlight.compat.rooms", "torch", 1).replace("rushlight", "torch", 1)


def _names(name: str, wall: Wall) -> dict[str, Any]:
    """The names of a module of the table, with what they are."""
    public = _public(name)
    found: dict[str, Any] = {}
    for given in wall.classes.split():
        if (wall.why, given) not in _classes:
            _classes.update(
                {(wall.why, given): kind for given, kind in absent.classes(public, wall.why, given).items()}
            )
        found[given] = _classes[wall.why, given]
    return {**found, **absent.functions(public, wall.why, wall.functions), **wall.values}


def lacking(name: str, *below: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has not all names of PyTorch's: see `missing`.  below: modules that are imported when they are asked for."""
    return lambda given: importlib.import_module(f"{name}.{given}") if given in below else missing(name, given)


def missing(name: str, given: str) -> Any:
    """What a module of the package has in place of a name that it lacks, or the module of the table of that name below it.

    name: with the leading ``rushlight.``, or ``torch.`` where that was asked for.  Raises AttributeError for a name that PyTorch's
    has not either.
    """
    within = name.partition(".")[2]
    wall = PARTLY.get(within)
    found = _names(f"rushlight.{within}", wall).get(given) if wall is not None else None
    found = room(f"rushlight.{within}.{given}") if found is None else found
    if found is None:
        raise AttributeError(f"module {f'torch.{within}'!r} has no attribute {given!r}")
    return found


def _made(name: str, wall: Wall) -> ModuleType:
    module = ModuleType(name, f"Not here: {wall.why}.  Its names can be imported; using them raises.")
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    public = _public(name)
    vars(module).update(_names(name, wall))
    vars(module)["__all__"] = [given for given in vars(module) if not given.startswith("__")]

    def inner(given: str) -> Any:
        found = room(f"{name}.{given}")
        if found is None:
            raise AttributeError(f"module {public!r} has no attribute {given!r}")
        return found

    vars(module)["__getattr__"] = inner
    sys.modules[name] = module
    return module
