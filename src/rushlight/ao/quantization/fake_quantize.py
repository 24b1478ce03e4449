"""``torch.ao.quantization.fake_quantize``: modules that round to few bits while a model trains, within limits that they see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rushlight.ao.quantization.observer import (
    QINT8,
    QUINT4,
    QUINT8,
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _PartialWrapper,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from rushlight.ao.quantization.utils import is_per_channel, is_per_tensor
from rushlight.basics import dtypes, schemes
from rushlight.dispatch.named import named
from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor


class FakeQuantizeBase(ABC, Module):
    """What such modules have in common: two buffers that say whether it rounds and whether it looks."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self._switches(dtypes.uint8)

    def _switches(self, dtype: dtypes.dtype) -> None:
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, named.tensor([1], dtype=dtype))

    @abstractmethod
    def forward(self, x: Tensor) -> Any:
        """`x` rounded."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on, or not."""
        self.fake_quant_enabled.fill_(int(enabled))

    def disable_fake_quant(self) -> None:
        """Pass on what comes from now on."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Look at what comes from now on, or not."""
        self.observer_enabled.fill_(int(enabled))

    def disable_observer(self) -> None:
        """Keep to the limits from now on."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: object) -> _PartialWrapper:
        """The class with some of its arguments."""
        return _with_args(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Rounds to steps of a scale, and passes gradients where nothing is cut off.

    observer: the class of what sees limits; observer_kwargs: its arguments.  Raises AssertionError where the range is not one of
    its dtype.

    >>> import rushlight as torch
    >>> fake = torch.ao.quantization.FakeQuantize(quant_min=0, quant_max=3)
    >>> fake(torch.tensor([0.0, 0.4, 0.7, 3.0]))
    tensor([0., 0., 1., 3.])
    """

    scale: Tensor
    zero_point: Tensor
    activation_post_process: Any

    def __init__(
        self,
        observer: Callable[..., Any] = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            given = getattr(getattr(observer, "p", None), "keywords", {})
            check_bounds(quant_min, quant_max, given.get("dtype", observer_kwargs.get("dtype", QUINT8)))
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        seen = self.activation_post_process = observer(**observer_kwargs, is_dynamic=is_dynamic)
        self.quant_min, self.quant_max, self.is_dynamic = seen.quant_min, seen.quant_max, seen.is_dynamic
        self.dtype, self.qscheme, self.ch_axis = seen.dtype, seen.qscheme, getattr(seen, "ch_axis", -1)
        if not (is_per_channel(self.qscheme) or is_per_tensor(self.qscheme)):
            raise AssertionError(
                f"FakeQuantize: expected a scheme of the whole tensor or of channels, got {self.qscheme}"
            )
        whole = self.qscheme is not schemes.per_channel_affine_float_qparams
        self.register_buffer("scale", named.tensor([1.0], dtype=dtypes.float32))
        self.register_buffer("zero_point", named.tensor([0], dtype=dtypes.int32 if whole else dtypes.float32))
        self.is_per_channel = is_per_channel(self.qscheme)

    def calculate_qparams(self) -> Any:
        """The scale and the zero point of what the observer saw."""
        return self.activation_post_process.calculate_qparams()

    def _keep(self, scale: Tensor, zero_point: Tensor) -> None:
        for kept, value in ((self.scale, scale), (self.zero_point, zero_point)):
            if kept.shape != value.shape:
                kept.resize_(value.shape)
            kept.copy_(value)

    def forward(self, X: Tensor) -> Any:
        """`X` rounded, or as it is."""
        if self.observer_enabled.item() == 1:
            self.activation_post_process(X.detach())
            self._keep(*self.calculate_qparams())
        return self._rounded(X) if self.fake_quant_enabled.item() == 1 else X

    def _rounded(self, X: Tensor) -> Any:
        low, high = self.activation_post_process.quant_min, self.activation_post_process.quant_max
        if self.is_per_channel:
            return named.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, low, high)
        return named.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, low, high)

    def extra_repr(self) -> str:
        """Its settings and limits."""
        seen = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, quant_min={seen.quant_min}, "
            f"quant_max={seen.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, "
            f"zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in ("scale", "zero_point"):
            kept, given = getattr(self, name), state_dict.get(prefix + name)
            if given is not None and kept.shape != given.shape:
                kept.resize_(given.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def check_bounds(quant_min: int, quant_max: int, dtype: dtypes.dtype) -> None:
    """Raise AssertionError for a range that is none, or that a dtype has not."""
    if quant_min > quant_max:
        raise AssertionError(f"quant_min and quant_max: expected a range, got {quant_min} to {quant_max}")
    info = dtypes.iinfo(dtype)
    if info.min > quant_min:
        raise AssertionError(f"quant_min out of bound: {dtype} begins at {info.min}, got {quant_min}")
    if quant_max > info.max:
        raise AssertionError(f"quant_max out of bound: {dtype} ends at {info.max}, got {quant_max}")


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds to steps that are given.  Raises AssertionError for observers that see something."""

    def __init__(self, observer: Callable[..., Any]) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a {FixedQParamsObserver.__name__}")
        if not is_per_tensor(self.qscheme):
            raise AssertionError(f"{type(self).__name__}: expected a scheme of the whole tensor, got {self.qscheme}")
        self._observer_ctr = observer
        self.scale, self.zero_point = self.activation_post_process.scale, self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        """Its settings."""
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
                f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.quant_min}, quant_max={self.quant_max}, "
                f"qscheme={self.qscheme}")  # fmt: skip


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with running means as limits, by one function, which keeps steps of zero exact.

    Raises AssertionError for other observers.
    """

    def __init__(
        self,
        observer: Callable[..., Any] = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, MovingAverageMinMaxObserver | MovingAveragePerChannelMinMaxObserver
        ):
            raise AssertionError(
                "FusedMovingAvgObsFakeQuantize: expected an observer of running means, such as MovingAverageMinMaxObserver"
            )
        self._switches(dtypes.int64)
        self.is_symmetric_quant = self.qscheme in schemes.SYMMETRIC

    def extra_repr(self) -> str:
        """Its settings and limits."""
        seen = self.activation_post_process
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
                f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={seen.quant_min}, quant_max={seen.quant_max}, "
                f"qscheme={self.qscheme}, reduce_range={seen.reduce_range}")  # fmt: skip

    def forward(self, X: Tensor) -> Any:
        """`X` rounded, or as it is."""
        seen = self.activation_post_process
        return named.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, seen.min_val, seen.max_val, self.scale, self.zero_point,
            seen.averaging_constant, seen.quant_min, seen.quant_max, self.ch_axis, self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


def disable_fake_quant(mod: Module) -> None:
    """For `model.apply`: let such modules pass on what comes."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Module) -> None:
    """For `model.apply`: let such modules round."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Module) -> None:
    """For `model.apply`: let such modules keep to their limits."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Module) -> None:
    """For `model.apply`: let such modules look at what comes."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()


_BYTES = {"quant_min": 0, "quant_max": 255, "dtype": QUINT8}
_SIGNED = {"quant_min": -128, "quant_max": 127, "dtype": QINT8}
_ODD = {**_SIGNED, "quant_min": -127, "eps": 2**-12}
_MEANS = {"observer": MovingAverageMinMaxObserver}
_CHANNELS = {"observer": MovingAveragePerChannelMinMaxObserver}
_EVEN, _EVEN_CHANNELS = {"qscheme": schemes.per_tensor_symmetric}, {"qscheme": schemes.per_channel_symmetric}
_REAL = {"qscheme": schemes.per_channel_affine_float_qparams, "ch_axis": 0, "averaging_constant": 1}

default_fake_quant = FakeQuantize.with_args(**_MEANS, **_BYTES, qscheme=schemes.per_tensor_affine, reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(**_MEANS, **_SIGNED, **_EVEN, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(**_MEANS, **_BYTES, is_dynamic=True, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    **_CHANNELS, **_SIGNED, **_EVEN_CHANNELS, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant = FakeQuantize.with_args(**_CHANNELS, **_BYTES, **_REAL)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(**_CHANNELS, **_REAL, dtype=QUINT4)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTES, qscheme=schemes.per_tensor_affine, reduce_range=True
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_MEANS, **_BYTES)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_MEANS, **_SIGNED, **_EVEN)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    **_CHANNELS, **_SIGNED, **_EVEN_CHANNELS
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**_MEANS, **_ODD, **_EVEN)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_CHANNELS, **_ODD, **_EVEN_CHANNELS
)

__all__ = [name for name in list(globals()) if "FakeQuantize" in name or "fake_quant" in name or name in (
    "disable_observer", "enable_observer")]  # fmt: skip
