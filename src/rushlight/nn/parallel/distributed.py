"""DistributedDataParallel."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rushlight.basics import groups
from rushlight.basics.signatures import signature_of
from rushlight.engine.modes import is_grad_enabled
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.sparse import Embedding, EmbeddingBag
from rushlight.nn.parallel.buckets import _DEFAULT_BUCKET_CAP_MB as _DEFAULT_BUCKET_CAP_MB
from rushlight.nn.parallel.buckets import _MB_TO_BYTES as _MB_TO_BYTES
from rushlight.nn.parallel.buckets import _BucketCapacityConfig

if TYPE_CHECKING:
    from rushlight.basics.dtypes import dtype


@dataclass
class _MixedPrecision:
    """The dtypes of parameters, messages and buffers, which DistributedDataParallel refuses: ``torch.autocast`` computes in 16 bits."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None


class DistributedDataParallel(Module):
    """Trains one module on several processes, each with its part of the batch: gradients are averaged over the processes.

    They are sent in buckets while the backward pass goes on.  All processes begin with the parameters and buffers of the
    first, and so keep the same.  Optimizers in backward step with the mean, bucket by bucket.

    Args:
        module: the same on all processes.
        device_ids: may name one device.
        broadcast_buffers: give all processes the buffers of the first, now and before each forward;
            `forward_sync_buffers` says of the latter alone.
        process_group: the default group if None; `device_mesh` of one dimension has one too.
        bucket_cap_mb: MiB of gradients that are sent together, 25 by default; bucket_cap_mb_list: of each of the first, one by one.
        find_unused_parameters: some parameters may get no gradient on some process; else that is an error.
        gradient_as_bucket_view: gradients are views of the buckets, not copies.
        static_graph: as `find_unused_parameters`.
        mixed_precision: refused: ``torch.autocast`` computes in 16 bits.
        delay_all_reduce_named_params, param_to_hook_all_reduce, skip_all_reduce_unused_params, batched_grad_copy: accepted: when
            messages begin is decided here.

    Parameters and buffers whose names are in the module's `_ddp_params_and_buffers_to_ignore` are neither averaged
    nor sent.  Names in its `state_dict` begin with "module." as in PyTorch.  Raises ValueError before
    ``torch.distributed.init_process_group`` and for several devices, RuntimeError for a module without parameters
    that require gradients and where processes have different ones.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        self.process_group = group_of(process_group, device_mesh)
        self._processes = self.process_group.size()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: device_ids can only be None or contain a single element, got {list(device_ids)}"
            )
        check_options(delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, p) for name, p in self._kept(module.named_parameters()) if p.requires_grad]
        if not named:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                               "gradient.")  # fmt: skip
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids = list(device_ids) if device_ids else None
        self.device, self.device_type, self.is_multi_device_module = named[0][1].device, named[0][1].device.type, False
        at_first = broadcast_buffers is not False or forward_sync_buffers is not None
        self.broadcast_buffers = (
            broadcast_buffers is not False if forward_sync_buffers is None else forward_sync_buffers
        )
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view, self.require_backward_grad_sync = gradient_as_bucket_view, True
        self.mixed_precision, self.device_mesh = mixed_precision, device_mesh
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        self.require_forward_param_sync = True  # as the forward before it was to be averaged
        self._bucket_config = _BucketCapacityConfig.create(bucket_cap_mb, bucket_cap_mb_list)
        self._passes, self._error = 0, ""  # how many forwards are averaged, and what went wrong
        if self._processes > 1 and init_sync:
            frozen = [p for _, p in self._kept(module.named_parameters()) if not p.requires_grad]
            states = [*frozen, *(self._buffers_kept() if at_first else ())]
            groups.averaging["same_everywhere"](named, states, self.process_group)
        self._build_reducer()

    def _build_reducer(self) -> None:
        """Make what averages gradients, where there is anything to average."""
        named = [(name, p) for name, p in self._kept(self.module.named_parameters()) if p.requires_grad]
        self.reducer: Any = None
        if self._processes > 1:
            self.reducer = groups.averaging["Reducer"](
                named,
                self.process_group,
                self._bucket_config.caps(),
                self.find_unused_parameters or self.static_graph,
                self.gradient_as_bucket_view,
                {
                    id(layer.weight)
                    for layer in self.module.modules()
                    if isinstance(layer, Embedding | EmbeddingBag) and layer.sparse
                },
            )

    def __getstate__(self) -> dict[str, Any]:
        """Without the group, which belongs to the process.  Raises RuntimeError for another than the default one."""
        if self.process_group is not groups.world():
            raise RuntimeError(
                "DistributedDataParallel: DDP Pickling/Unpickling are only supported when using DDP with the default process group: "
                "one that init_process_group made, not new_group"
            )
        return {name: value for name, value in self.__dict__.items() if name not in ("process_group", "reducer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Average over the default group.  Raises ValueError where there is none."""
        super().__setstate__(state)
        self.process_group = groups.required()
        self._processes = self.process_group.size()
        self._build_reducer()

    def _set_static_graph(self) -> None:
        """As `static_graph=True`.  Raises RuntimeError after the first forward."""
        if self._passes:
            self._error = "set_static_graph() should be called before training loop starts, right after DistributedDataParallel is made"
            raise RuntimeError(self._error)
        self.static_graph = True
        if self.reducer is not None:
            self.reducer.unused = True

    def _kept(self, named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """Those of the module's parameters, or buffers, by name, that were not to be left out."""
        return ((name, tensor) for name, tensor in named if name not in self.parameters_to_ignore)

    def _buffers_kept(self) -> list[Any]:
        """The module's buffers that all processes have alike."""
        return [buffer for _, buffer in self._kept(self.module.named_buffers())]

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, params_and_buffers_to_ignore: Any) -> None:
        """Note names of a module's parameters and buffers that are to be neither averaged nor sent."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def forward(self, *inputs: object, **kwargs: object) -> Any:
        """The output of the module."""
        source = 0
        if "_join" in self.__dict__:
            groups.averaging["notify"](self)
            source = self.__dict__["_join"].active[0]
        if self._processes > 1 and self.broadcast_buffers and self.require_forward_param_sync:
            for buffer in self._buffers_kept():
                groups.averaging["broadcast"](buffer, group=self.process_group, group_src=source)
        averaged = self.require_backward_grad_sync and is_grad_enabled()
        self._passes += averaged
        if self.reducer is not None and is_grad_enabled():
            self.reducer.active = averaged
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = averaged
        return output

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose forwards have gradients that add up on each process; they are averaged with those of the first forward behind it."""
        former, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = former

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Let gradients be averaged as they are, or in float16: see ``torch.distributed.BuiltinCommHookType``."""
        self.register_comm_hook(self.process_group, groups.averaging["builtin"](comm_hook_type))

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What there is to tell of this: sizes, options, the processes, how many forwards were averaged, and the last error."""
        params = [p for _, p in self._kept(self.module.named_parameters()) if p.requires_grad]
        sizes = [] if self.reducer is None else [b.size * b.params[0].itemsize for b in self.reducer.buckets]
        return {
            "world_size": self._processes,
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": str(self.process_group.backend),
            "device_ids": ", ".join(map(str, self.device_ids or ())),
            "output_device": -1 if self.output_device is None else self.output_device,
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "bucket_cap_bytes": self._bucket_config.bucket_bytes_cap,
            "bucket_sizes": ", ".join(map(str, sizes)),
            "num_parameter_tensors": len(params),
            "total_parameter_size_bytes": sum(p.nbytes for p in params),
            "iteration": self._passes,
            "has_error": int(bool(self._error)),
            "error": self._error,
        }

    def register_comm_hook(self, state: object, hook: Callable[[object, Any], Any]) -> None:
        """Let ``hook(state, bucket)`` average the gradients of a bucket; it returns a Future of the tensor.

        bucket: a ``distributed.GradBucket``.  Raises RuntimeError the second time, TypeError for what cannot be called, ValueError
        for annotations of something else.
        """
        check_hook(hook)
        if self.reducer is None:
            return
        if self.reducer.hook is not None:
            raise RuntimeError(
                "DistributedDataParallel: register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self.reducer.state, self.reducer.hook = state, hook

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> contextlib.AbstractContextManager[Any]:  # fmt: skip
        """A block in which processes may have different numbers of batches.

        One that has none left answers the others with gradients of 0, and takes their parameters in the end.
        divide_by_initial_world_size: whether gradients are divided by the number of all processes, not of those that have a batch;
        enable: False for a block without effect; throw_on_early_termination: an error on all as soon as one has no batch.
        """
        if self._processes == 1 or not enable:
            return contextlib.nullcontext()
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return groups.averaging["joined"](self, enable, throw_on_early_termination, **options)


def group_of(process_group: Any, device_mesh: Any) -> Any:
    """The processes of a group, of a mesh of one dimension, or all.  Raises RuntimeError for both, and for another mesh."""
    if device_mesh is None:
        return groups.required() if process_group is None else process_group
    if process_group is not None:
        raise RuntimeError("DistributedDataParallel: Cannot specify both process_group and device_mesh arguments.")
    if device_mesh.ndim != 1:
        raise RuntimeError(f"DistributedDataParallel: Only 1D device mesh is supported, but got {device_mesh}.")
    return device_mesh.get_group(0)


def check_options(delayed: object, at: object, mixed_precision: object) -> None:
    """Raise ValueError for half of two options that go together, NotImplementedError for what is not here."""
    if (delayed is None) != (at is None):
        raise ValueError(
            "DistributedDataParallel: delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
        )
    if mixed_precision is not None:
        raise NotImplementedError(
            "DistributedDataParallel(mixed_precision=...): leave it out, compute within torch.autocast, and register "
            "bf16_compress_hook to send gradients in 16 bits"
        )


def _dump_DDP_relevant_env_vars() -> None:
    """Print what of the environment says how processes meet."""
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES",
             "OMP_NUM_THREADS", "TORCH_DISTRIBUTED_DEBUG", "NCCL_TOPO_DUMP_FILE",
             "TORCH_NCCL_ASYNC_ERROR_HANDLING"]  # fmt: skip
    names += sorted(
        name
        for name in {*os.environ} - {*names}
        if name.startswith(("RUSHLIGHT_", "GLOO_", "NCCL_", "TORCH_NCCL_", "PMI_", "MPICH_"))
    )
    print("\n".join(f"env:{name}={os.environ.get(name, 'N/A')}" for name in names))


def check_hook(hook: Any) -> None:
    """Raise TypeError or ValueError for what is no communication hook."""
    if not callable(hook):
        raise TypeError(f"Communication hook must be callable, got {hook!r}")
    try:
        signature = signature_of(hook)
    except (TypeError, ValueError):  # of compiled code
        return
    bucket = signature.parameters.get("bucket")
    kind = inspect.Parameter.empty if bucket is None else bucket.annotation
    if kind is not inspect.Parameter.empty and getattr(kind, "__name__", str(kind).rpartition(".")[2]) != "GradBucket":
        raise ValueError(f"Communication hook: bucket annotation should be dist.GradBucket, got {kind}")
    back = signature.return_annotation
    if back is not inspect.Signature.empty and not {"Any", "Future"} & set(re.findall(r"\w+", str(back))):
        raise ValueError(
            f"Communication hook: return annotation should be torch.futures.Future[torch.Tensor], got {back}"
        )
