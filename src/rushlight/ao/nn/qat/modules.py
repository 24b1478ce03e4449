"""``torch.ao.nn.qat``: layers that compute with their weights rounded, for training what will be quantized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from rushlight.dispatch.named import Named
from rushlight.nn.modules import conv, linear
from rushlight.nn.parameter import Parameter

if TYPE_CHECKING:
    from rushlight.ao.quantization.qconfig import QConfigAny
    from rushlight.basics.devices import device
    from rushlight.basics.dtypes import dtype
    from rushlight.nn.modules.module import Module
    from rushlight.tensor import Tensor

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]
functional = Named("nn.functional")


class _Rounding:
    """A layer with `weight_fake_quant`, made of one with a `qconfig`."""

    _FLOAT_MODULE: ClassVar[Any]
    _SETTINGS: ClassVar[tuple[str, ...]]
    weight: Any
    bias: Any
    training: bool

    def __init__(
        self,
        *args: Any,
        qconfig: QConfigAny = None,
        device: device | str | None = None,
        dtype: dtype | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, device=device, dtype=dtype, **kwargs)  # type: ignore[call-arg]
        if not qconfig:
            raise AssertionError(f"{type(self).__name__}: the argument qconfig is missing")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Self:
        """Such a layer with the parameters of another, whose `qconfig` says how to round.  Raises AssertionError for others."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float: expected a {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}"
            )
        if not getattr(mod, "qconfig", None):
            raise AssertionError(f"qat.{cls.__name__}.from_float: the layer has no qconfig")
        made = cls(
            *(getattr(mod, name) for name in cls._SETTINGS),
            bias=mod.bias is not None,
            qconfig=mod.qconfig,
            **cls._more(mod),
        )
        made.weight, made.bias = mod.weight, mod.bias
        return made

    @classmethod
    def _more(cls, mod: Module | _Rounding) -> dict[str, Any]:
        return {}

    def to_float(self) -> Any:
        """A layer of the ordinary kind with copies of the parameters."""
        made = self._FLOAT_MODULE(
            *(getattr(self, name) for name in self._SETTINGS), bias=self.bias is not None, **self._more(self)
        )
        made.weight = Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = Parameter(self.bias.detach())
        made.train(self.training)
        return made


class Linear(_Rounding, linear.Linear):
    """`nn.Linear` whose weight is rounded.  qconfig: whose `weight` makes what rounds."""

    _FLOAT_MODULE = linear.Linear
    _SETTINGS = "in_features", "out_features"

    def forward(self, input: Tensor) -> Any:
        """(*, in_features) -> (*, out_features)"""
        return functional.linear(input, self.weight_fake_quant(self.weight), self.bias)


class _Convolution(_Rounding):
    _SETTINGS = "in_channels", "out_channels", "kernel_size"
    _conv_forward: Any

    @classmethod
    def _more(cls, mod: Module | _Rounding) -> dict[str, Any]:
        return {name: getattr(mod, name) for name in ("stride", "padding", "dilation", "groups", "padding_mode")}

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, O, *)"""
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)


class Conv1d(_Convolution, conv.Conv1d):
    """`nn.Conv1d` whose weight is rounded."""

    _FLOAT_MODULE = conv.Conv1d


class Conv2d(_Convolution, conv.Conv2d):
    """`nn.Conv2d` whose weight is rounded."""

    _FLOAT_MODULE = conv.Conv2d


class Conv3d(_Convolution, conv.Conv3d):
    """`nn.Conv3d` whose weight is rounded."""

    _FLOAT_MODULE = conv.Conv3d
