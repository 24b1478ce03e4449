"""Which names of PyTorch's packages stand for which modules of this one."""

__all__ = ["ALIASES", "ROOMS", "public_name", "real_name"]

# Modules that libraries alone import, by their names below torch: files in compat/rooms.
ROOMS = {
    "_functorch": "_functorch", "_guards": "_guards", "_higher_order_ops": "_higher_order_ops",
    "_inductor": "_inductor", "_jit_internal": "_jit_internal", "_logging": "_logging",
    "_prims_common": "_prims_common", "_subclasses": "_subclasses", "_tensor": "_tensor",
    "_tensor_str": "_tensor_str", "_utils": "_utils", "cpu.amp": "cpu_amp", "cuda.nvtx": "nvtx",
    "cuda.random": "cuda_random", "export": "export", "mps": "mps", "mtia": "mtia", "quasirandom": "quasirandom",
    "functional": "functional", "amp.autocast_mode": "autocast_mode", "amp.grad_scaler": "grad_scaler",
    "storage": "storage", "utils.cpp_extension": "cpp_extension", "utils.flop_counter": "flop_counter",
    "utils.module_tracker": "module_tracker", "utils.tensorboard": "tensorboard",
    "utils._foreach_utils": "_foreach_utils", "optim.adamw": "adamw", "xpu": "xpu",
}  # fmt: skip
# Those whose own names begin with an underscore: files in compat/rooms/private.
PRIVATE = ("_C._distributed_c10d", "_VF", "_compile", "_custom_ops", "_dispatch", "_library", "_prims", "_refs",
           "_utils_internal", "_vendor", "_lowrank", "_vmap_internals", "_weights_only_unpickler", "utils._device",
           "utils._dtype_abbrs", "utils._import_utils", "utils._config_module", "utils._helion", "utils._mode_utils",
           "utils._ordered_set", "utils._pallas", "utils._traceback", "utils._triton", "_linalg_utils",
           "_lobpcg")  # fmt: skip
# Longest prefix first.
ALIASES = {
    "torchvision.models": "rushlight.models",
    "torchvision": "rushlight.compat.torchvision",
    "functorch": "rushlight.compat.functorch",
    "torchviz": "rushlight.compat.torchviz",  # needs Graphviz, and PyTorch
    "torch.backends": "rushlight.compat.backends",  # rushlight.backends is what operators compute with
    "torch.utils.collect_env": "rushlight.compat.collect_env",
    "torch.utils.model_zoo": "rushlight.compat.model_zoo",
    "torch.utils.serialization": "rushlight.compat.serialization",
    "torch.ops": "rushlight.library.namespaces",  # rushlight.ops is what declares operators
    "torch._ops": "rushlight.library.operators",
    "torch.cuda.memory": "rushlight.memory.counting.cuda",
    "torch.utils.benchmark.utils.common": "rushlight.utils.benchmark.measurements",
    "torch.utils.benchmark.utils.compare": "rushlight.utils.benchmark.comparing",
    "torch.utils.benchmark.utils.timer": "rushlight.utils.benchmark.timing",
    "torch.utils.benchmark.utils": "rushlight.utils.benchmark",
    "torch.profiler.profiler": "rushlight.profiler.scheduled",
    "torch.signal.windows.windows": "rushlight.signal.windows",
    "torch.nn.modules.linear_cross_entropy_options": "rushlight.nn.modules.linear_cross_entropy",
    "torch.__config__": "rushlight.compat.config",
    "torch.__future__": "rushlight.nn.base.conversion",
    "torch.torch_version": "rushlight.compat.torch_version",
    "torch.version": "rushlight.compat.version",
    **{f"torch.{name}": f"rushlight.compat.rooms.{room}" for name, room in ROOMS.items()},
    **{f"torch.{name}": f"rushlight.compat.rooms.private.{name.rpartition('.')[2]}" for name in PRIVATE},
    "torch.ao.quantization": "rushlight.ao.quantization",
    "torch.quantization": "rushlight.ao.quantization",  # its older name
    "torch.nn.quantized": "rushlight.ao.nn.quantized",
    "torch.nn.quantizable": "rushlight.ao.nn.quantizable",
    "torch.nn.qat": "rushlight.ao.nn.qat",
    "torch": "rushlight",
}


def real_name(name: str) -> str | None:
    """The module that ``name`` resolves to, None for a name that is not ours.

    >>> real_name("torch.nn.functional"), real_name("torchvision.models.resnet"), real_name("torchaudio")
    ('rushlight.nn.functional', 'rushlight.models.resnet', None)
    """
    for alias, target in ALIASES.items():
        if name == alias or name.startswith(alias + "."):
            return target + name[len(alias) :]
    return None


def public_name(module: str) -> str:
    """The name under which a PyTorch user knows a module of this package.

    >>> public_name("rushlight.optim"), public_name("rushlight.models.resnet"), public_name("numpy")
    ('torch.optim', 'torchvision.models.resnet', 'numpy')
    """
    for alias, target in ALIASES.items():
        if module == target or module.startswith(target + "."):
            return alias + module[len(target) :]
    return module
