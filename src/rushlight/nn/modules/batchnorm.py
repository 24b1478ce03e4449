"""Batch normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.basics.dtypes import int64
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.devices import device
    from rushlight.basics.groups import ProcessGroup

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """What batch and instance normalisation share: scale, shift and running statistics, one for each channel."""

    _version = 2
    _dims: tuple[int, ...] = ()  # numbers of dimensions that an input may have

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(ops.empty(num_features, **options)) if affine else None)
        self.register_parameter("bias", Parameter(ops.empty(num_features, **options)) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", ops.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", ops.ones(num_features, **options) if tracked else None)
        count = ops.tensor(0, dtype=int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics seen so far: mean 0, variance 1."""
        if self.track_running_stats:
            mean: Any = self.running_mean
            variance: Any = self.running_var
            count: Any = self.num_batches_tracked
            mean.zero_()
            variance.fill_(1)
            count.zero_()

    def reset_parameters(self) -> None:
        """Forget the statistics; scale 1, shift 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._dims:
            expected = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"{type(self).__name__}: expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        """Number of channels and options."""
        has_bias = self.bias is not None
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={has_bias}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any, **named: Any
    ) -> None:
        """Before version 2 there was no count of batches: keep ours."""
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            kept: Any = self.num_batches_tracked
            state_dict[key] = ops.tensor(0, dtype=int64) if kept is None else kept
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest, **named)


class _BatchNorm(_NormBase):
    """Normalisation of each channel over the batch; see BatchNorm1d."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> the same shape."""
        self._check_input_dim(input)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        use_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if use_running else None,
            self.running_var if use_running else None,
            self.weight,
            self.bias,
            by_batch,
            self._factor(),
            self.eps,
        )

    def _factor(self) -> float:
        """Count this batch, and the weight that its statistics get in the running ones."""
        count: Any = self.num_batches_tracked
        if self.training and self.track_running_stats and count is not None:
            count.add_(1)
            if self.momentum is None:
                return 1.0 / float(count)
        return 0.0 if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each channel of (N, C) or (N, C, L).

    In training mean and (biased) variance are the batch's, and running ones (variance unbiased) are kept with weight
    `momentum`, or as plain averages with `momentum=None`; in evaluation the running ones are used.

    Source: Ioffe and Szegedy, Batch Normalization (2015).
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images (N, C, H, W); see BatchNorm1d."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes (N, C, D, H, W); see BatchNorm1d."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose statistics span all processes of a group; with one process, BatchNorm."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: device | str | int | None = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"SyncBatchNorm: expected at least 2D input (got {input.ndim}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: ProcessGroup | None = None) -> Module:
        """The tree of `module` with every BatchNorm replaced by a SyncBatchNorm on the same tensors."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            result = _synchronised(cls, module, process_group)
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


def _synchronised(cls: type[Any], module: Module, process_group: ProcessGroup | None) -> Module:
    result = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                 process_group, bias=module.bias is not None)  # fmt: skip
    result._parameters.update(module._parameters)
    result._buffers.update(module._buffers)
    result.training = module.training
    return result


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Takes `num_features` from the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device=device, dtype=dtype, bias=bias)
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = ops.tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Fresh statistics, scale and shift, once they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `num_features` from the input and make the tensors."""
        self.num_features = input.shape[1]
        if not self.has_uninitialized_params():
            return  # the tensors were loaded before the first input, or there are none
        lazy: Any = [self.weight, self.bias] if self.affine else []
        if self.track_running_stats:
            lazy += [self.running_mean, self.running_var]
        for tensor in lazy:
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d whose `num_features` is that of its first input; it becomes a BatchNorm1d then."""

    cls_to_become = BatchNorm1d
    _dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d whose `num_features` is that of its first input; it becomes a BatchNorm2d then."""

    cls_to_become = BatchNorm2d
    _dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d whose `num_features` is that of its first input; it becomes a BatchNorm3d then."""

    cls_to_become = BatchNorm3d
    _dims = (5,)
