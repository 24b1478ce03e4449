"""Instance normalisation."""

from __future__ import annotations

from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.nn import functional as F
from rushlight.nn.modules.batchnorm import _LazyNormBase, _NormBase
from rushlight.tensor import Tensor

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    """Normalisation of each channel of each sample; see InstanceNorm1d."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) or (C, *) -> the same shape."""
        self._check_input_dim(input)
        batched = input.ndim == self._dims[1]
        channels = input.shape[1 if batched else 0]
        if channels != self.num_features:
            self._check_channels(channels)
        if batched:
            return self._normalise(input)
        single: Any = input
        return self._normalise(single.unsqueeze(0)).squeeze(0)

    def _check_channels(self, channels: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim=1 to match num_features ({self.num_features}), but got: {channels}."
            )
        warn(
            f"input's size at dim=1 does not match num_features. You can silence this warning by not passing in "
            f"num_features, which is not used because affine=False (got {channels}, expected {self.num_features})"
        )

    def _normalise(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each channel of each sample of (N, C, L) or (C, L).

    Running statistics are kept, and used in evaluation, only with `track_running_stats=True`.

    Source: Ulyanov et al., Instance Normalization (2016).
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images (N, C, H, W) or (C, H, W); see InstanceNorm1d."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes (N, C, D, H, W) or (C, D, H, W); see InstanceNorm1d."""

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d whose `num_features` is that of its first input; it becomes an InstanceNorm1d then."""

    cls_to_become = InstanceNorm1d
    _dims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d whose `num_features` is that of its first input; it becomes an InstanceNorm2d then."""

    cls_to_become = InstanceNorm2d
    _dims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d whose `num_features` is that of its first input; it becomes an InstanceNorm3d then."""

    cls_to_become = InstanceNorm3d
    _dims = (4, 5)
