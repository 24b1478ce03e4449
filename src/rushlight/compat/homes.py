"""Classes that PyTorch knows by another module than the one that they are written in: where they are known."""

__all__ = ["HOMES"]

# By PyTorch's module: modules of this package, and the classes in them.
_CLASSES = {
    "torch": {
        "compat.placeholders": "SymBool SymFloat SymInt",
        "compat.streams": "Event Stream",
        "cuda.streams": "AcceleratorError OutOfMemoryError",
        "dispatch.formats": "memory_format",
        "jit": "ScriptModule",
        "serialization.records": "PyTorchFileReader PyTorchFileWriter",
    },
    "torch.amp.autocast_mode": {"amp": "autocast"},
    "torch.amp.grad_scaler": {"amp.scaler": "GradScaler"},
    "torch.autograd.grad_mode": {"engine.modes": "enable_grad inference_mode no_grad set_grad_enabled"},
    "torch.autograd.graph": {"autograd.run": "GradientEdge", "engine.node": "Node"},
    "torch.autograd.profiler": {
        "autograd.profiler.marks": "record_function",
        "autograd.profiler.ranges": "emit_itt emit_nvtx",
        "autograd.profiler.session": "profile",
    },
    "torch.distributed.distributed_c10d": {
        "basics.groups": "ProcessGroup",
        "distributed.collectives": "ReduceOp",
        "distributed.debug": "DebugLevel",
        "distributed.group": "Backend",
        "distributed.messages": "P2POp",
        "distributed.stores": "PrefixStore Store",
        "distributed.work": "Work",
    },
    "torch.distributions.transforms": {
        "distributions.joined_transforms": "CatTransform StackTransform",
        "distributions.transform": "Transform",
    },
    "torch.nn.modules.activation": {"nn.modules.attention": "MultiheadAttention"},
    "torch.nn.modules.container": {"nn.parameter_container": "ParameterDict ParameterList"},
    "torch.nn.modules.conv": {
        "nn.modules.lazy_conv": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"
    },
    "torch.nn.modules.loss": {"nn.modules.linear_cross_entropy": "LinearCrossEntropyLoss"},
    "torch.nn.modules.rnn": {"nn.modules.rnn_cells": "GRUCell LSTMCell RNNCell RNNCellBase"},
    "torch.optim": {"optim.adafactor": "Adafactor", "optim.muon": "Muon"},
    "torch.optim.adamw": {"optim.adam": "AdamW"},
    "torch.optim.lr_scheduler": {
        "optim.lr_scheduler.base": "LRScheduler",
        "optim.lr_scheduler.compose": "ChainedScheduler SequentialLR",
        "optim.lr_scheduler.cosine": "CosineAnnealingLR CosineAnnealingWarmRestarts",
        "optim.lr_scheduler.cyclic": "CyclicLR",
        "optim.lr_scheduler.functions": "LambdaLR MultiplicativeLR",
        "optim.lr_scheduler.one_cycle": "OneCycleLR",
        "optim.lr_scheduler.plateau": "ReduceLROnPlateau",
        "optim.lr_scheduler.powers": "ConstantLR ExponentialLR LinearLR MultiStepLR PolynomialLR StepLR",
    },
    "torch.overrides": {"overrides.modes": "BaseTorchFunctionMode TorchFunctionMode"},
    "torch.serialization": {
        "serialization.names": "safe_globals",
        "serialization.options": "LoadEndianness set_default_mmap_options skip_data",
    },
    "torch.storage": {"ops.create.typed_storage": "TypedStorage", "storage": "UntypedStorage"},
    "torch.utils.checkpoint": {
        "checkpoint.devices": "DefaultDeviceType",
        "checkpoint.differences": "CheckpointError",
        "checkpoint.reentrant": "CheckpointFunction",
        "checkpoint.selective": "CheckpointPolicy SelectiveCheckpointContext",
    },
    "torch.utils.hooks": {"basics.handles": "RemovableHandle"},
}
HOMES = {
    (f"rushlight.{module}", name): home
    for home, modules in _CLASSES.items()
    for module, names in modules.items()
    for name in names.split()
}
HOMES["rushlight", "Generator"] = "torch._C"
