"""``torch.ao.quantization.observer``: modules that pass on what they get and see within which limits it lies."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from rushlight.ao.quantization import histogram as histograms
from rushlight.ao.quantization.utils import (
    ALLOWED,
    EPS,
    calculate_qmin_qmax,
    check_min_max_valid,
    is_per_channel,
    is_per_tensor,
    validate_qmin_qmax,
)
from rushlight.basics import caller, dtypes, schemes
from rushlight.basics.dtypes import dtype as DType
from rushlight.basics.schemes import qscheme as Scheme
from rushlight.dispatch.named import named
from rushlight.nn.modules.module import Module
from rushlight.tensor import Tensor

QUINT8, QINT8, QUINT4 = (next(d for d in dtypes.NAMED if d.name == name) for name in ("quint8", "qint8", "quint4x2"))
AFFINE = schemes.per_tensor_affine


class _PartialWrapper:
    """A class with some of its arguments, to be called with the rest; `callable_args` are made at each call."""

    def __init__(self, p: Callable[..., Any]):
        self.p: Any = p
        self.callable_args: dict[str, Callable[[], Any]] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **made)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: object) -> _PartialWrapper:
        """The same with more arguments."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Callable[[], Any]) -> _PartialWrapper:
        """The same with more arguments, which are made at each call."""
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Callable[..., Any], /, **kwargs: object) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Callable[..., Any], /, **kwargs: Callable[[], Any]) -> _PartialWrapper:
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(ABC, Module):
    """What observers have in common: a dtype of few bits, `with_args`, and two methods to be written.

    >>> import rushlight as torch
    >>> observer = torch.ao.quantization.MinMaxObserver(dtype=torch.quint8)
    >>> _ = observer(torch.tensor([-1.0, 4.1]))
    >>> observer.calculate_qparams()
    (tensor([0.0200]), tensor([50], dtype=torch.int32))
    """

    def __init__(self, dtype: DType, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Any:
        """`x` as it is, after it was looked at."""

    @abstractmethod
    def calculate_qparams(self) -> Any:
        """The scale and the zero point."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of even steps, with a range of steps and a scheme.

    Raises AssertionError for other schemes and dtypes.
    """

    _version = 3
    eps: Tensor
    min_val: Tensor
    max_val: Tensor
    averaging_constant: float  # of those that see running means

    def __init__(self, dtype: DType = QUINT8, qscheme: Scheme = AFFINE, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: dict[str, Any] | None = None, eps: float = EPS,
                 is_dynamic: bool = False, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme, self.reduce_range = qscheme, reduce_range
        if reduce_range:
            caller.warn("reduce_range is going to be removed: give the range by quant_min and quant_max")
        self._made = {} if factory_kwargs is None else {k: v for k, v in factory_kwargs.items() if v is not None}
        self.register_buffer("eps", named.tensor([eps], **self._made))
        if qscheme not in schemes.SCHEMES:
            raise AssertionError(f"observers work for {schemes.SCHEMES}, got {qscheme}")
        if dtype.name not in ALLOWED:
            raise AssertionError(f"observers work for the dtypes {', '.join(ALLOWED)}, got {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )
        if qscheme in schemes.SYMMETRIC and reduce_range and dtype is QUINT8:
            raise NotImplementedError("reduce_range: a symmetric range of quint8 cannot be halved")

    def _keep_limits(self, low: float | list[float], high: float | list[float]) -> None:
        self.register_buffer("min_val", named.tensor(low, **self._made))
        self.register_buffer("max_val", named.tensor(high, **self._made))

    def _saw(self, low: Tensor, high: Tensor) -> None:
        """Keep limits, in the buffers that are there."""
        for kept, value in ((self.min_val, low), (self.max_val, high)):
            if kept.shape != value.shape:
                kept.resize_(value.shape)
            kept.copy_(value)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        if local_metadata.get("version") in (None, 1):  # which had no such buffer
            state_dict[f"{prefix}eps"] = named.tensor([EPS])
        for name in ("min_val", "max_val"):
            kept, given = getattr(self, name, None), state_dict.get(prefix + name)
            if kept is not None and given is not None and kept.shape != given.shape:
                kept.resize_(given.shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """The scale and the zero point of limits, one each or one for each channel."""
        if not check_min_max_valid(min_val, max_val):
            return named.tensor([1.0]), named.tensor([0])
        low, high = named.clamp(min_val, max=0), named.clamp(max_val, min=0)
        steps = float(self.quant_max - self.quant_min)
        if self.qscheme in schemes.SYMMETRIC:
            scale = named.maximum(named.maximum(-low, high) / (steps / 2), self.eps.reshape([1] * low.dim() or ()))
            zero = named.full(low.shape, self._middle(), dtype=dtypes.int64)
        elif self.qscheme is schemes.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = named.where(scale > self.eps, scale, named.ones_like(scale))
            zero = -1 * min_val / scale
        else:
            scale = named.maximum((high - low) / steps, self.eps.reshape([1] * low.dim() or ()))
            zero = self.quant_min - named.round(low / scale).int()
            zero = named.clamp(zero, self.quant_min, self.quant_max)
        return scale.reshape(-1), zero.reshape(-1)

    def _middle(self) -> int:
        """The zero point of steps about zero."""
        if self.dtype.name in ("quint8", "uint8"):
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if self.dtype.name == "uint16" else 0

    def calculate_qparams(self) -> Any:
        """The scale and the zero point of the limits that were seen."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The limits."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen.  Raises NotImplementedError where an observer does not know how."""
        raise NotImplementedError(f"reset_min_max_vals: {type(self).__name__} cannot forget its limits")


_ObserverBase = UniformQuantizationObserverBase


def _check_per_tensor(observer: object, qscheme: Scheme) -> None:
    if not is_per_tensor(qscheme):
        raise NotImplementedError(
            f"{type(observer).__name__}: expected a qscheme of the whole tensor, torch.per_tensor_symmetric or "
            f"torch.per_tensor_affine, got {qscheme}"
        )


class MinMaxObserver(UniformQuantizationObserverBase):
    """Sees the smallest and the largest of all elements.

    Raises NotImplementedError for schemes of channels.
    """

    def __init__(self, dtype: DType = QUINT8, qscheme: Scheme = AFFINE, **kwargs: Any) -> None:
        _check_per_tensor(self, qscheme)
        super().__init__(dtype=dtype, qscheme=qscheme, **kwargs)
        self._keep_limits(math.inf, -math.inf)

    def forward(self, x_orig: Tensor) -> Any:
        """`x_orig` as it is."""
        if x_orig.numel():
            low, high = named.aminmax(x_orig.detach().to(self.min_val.dtype))
            self._saw(named.minimum(low, self.min_val), named.maximum(high, self.max_val))
        return x_orig

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.fill_(math.inf)
        self.max_val.fill_(-math.inf)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Sees running means of the smallest and the largest element of each call.

    averaging_constant: how much a call counts.  Raises NotImplementedError for schemes of channels, and for dynamic limits
    with another constant than 1.
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: DType = QUINT8,
        qscheme: Scheme = AFFINE,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        _check_per_tensor(self, qscheme)
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver: limits of one call (is_dynamic) need an averaging_constant of 1, got "
                f"{averaging_constant}"
            )
        super().__init__(dtype=dtype, qscheme=qscheme, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Tensor) -> Any:
        """`x_orig` as it is."""
        if x_orig.numel():
            low, high = named.aminmax(x_orig.detach().to(self.min_val.dtype))
            if not (self.min_val == math.inf and self.max_val == -math.inf):
                low, high = _between(self, low, high)
            self._saw(low, high)
        return x_orig


def _between(observer: UniformQuantizationObserverBase, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The running means with new limits."""
    weight, kept_low, kept_high = observer.averaging_constant, observer.min_val, observer.max_val
    return kept_low + weight * (low - kept_low), kept_high + weight * (high - kept_high)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Sees the smallest and the largest element of each channel.

    ch_axis: the dimension of channels.  Raises NotImplementedError for schemes of all elements, and for dynamic limits.
    """

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: DType = QUINT8,
        qscheme: Scheme = schemes.per_channel_affine,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        if not is_per_channel(qscheme):
            raise NotImplementedError(
                f"{name}: expected a qscheme of channels, torch.per_channel_symmetric, torch.per_channel_affine or "
                f"torch.per_channel_affine_float_qparams, got {qscheme}"
            )
        if is_dynamic:
            raise NotImplementedError(f"{name}: there are no limits of channels of one call (is_dynamic)")
        super().__init__(dtype=dtype, qscheme=qscheme, is_dynamic=is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self._keep_limits([], [])

    def _limits(self, x: Tensor) -> Any:
        rows = x.detach().to(self.min_val.dtype).transpose(0, self.ch_axis).flatten(1)
        return named.aminmax(rows, dim=1)

    def forward(self, x_orig: Tensor) -> Any:
        """`x_orig` as it is."""
        if x_orig.numel():
            low, high = self._limits(x_orig)
            if self.min_val.numel() and self.max_val.numel():
                low, high = self._joined(low, high)
            self._saw(low, high)
        return x_orig

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Any, Any]:
        return named.minimum(low, self.min_val), named.maximum(high, self.max_val)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val, self.max_val = named.empty(0), named.empty(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Sees running means of the smallest and the largest element of each channel."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: DType = QUINT8,
        qscheme: Scheme = schemes.per_channel_affine,
        **kwargs: Any,
    ) -> None:
        super().__init__(ch_axis=ch_axis, dtype=dtype, qscheme=qscheme, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Any, Any]:
        return _between(self, low, high)


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts elements in bins, and cuts off the ends by which rounding to few steps loses less.

    Raises NotImplementedError for schemes of channels, and for dynamic limits.
    """

    histogram: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype: DType = QUINT8,
        qscheme: Scheme = AFFINE,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        _check_per_tensor(self, qscheme)
        if is_dynamic:
            raise NotImplementedError("HistogramObserver: there is no histogram of one call (is_dynamic)")
        super().__init__(dtype=dtype, qscheme=qscheme, is_dynamic=is_dynamic, **kwargs)
        self.bins, self.upsample_rate = bins, histograms.FINER
        self.register_buffer("histogram", named.zeros(bins, **self._made))
        self._keep_limits(math.inf, -math.inf)
        self.dst_nbins = 2 ** dtypes.iinfo(dtype).bits

    def forward(self, x_orig: Tensor) -> Any:
        """`x_orig` as it is; what is infinite in it is not counted."""
        x: Any = x_orig.detach()
        if x.isinf().any():
            caller.warn("HistogramObserver: the input has infinite elements, and is not counted")
            x = x[x.abs() != math.inf]
        if not x.numel():
            return x_orig
        low, high = named.aminmax(x)
        unseen = bool(self.min_val == math.inf or self.max_val == -math.inf)
        if not unseen:
            low, high = named.minimum(self.min_val, low), named.maximum(self.max_val, high)
        counts = named.histc(x, self.bins, min=low.item(), max=high.item())
        if not unseen:
            same = bool(low == self.min_val and high == self.max_val)
            counts = counts + (self.histogram if same else histograms.moved(self, low, high))
        self.histogram.copy_(counts)
        self._saw(low, high)
        return x_orig

    def calculate_qparams(self) -> Any:
        """The scale and the zero point of the limits by which least is lost."""
        if self.min_val == math.inf and self.max_val == -math.inf:
            caller.warn("calculate_qparams: nothing was seen yet, so the scale is 1 and the zero point 0")
            return named.tensor([1.0]), named.tensor([0])
        return self._calculate_qparams(*histograms.searched(self))


class FixedQParamsObserver(ObserverBase):
    """Sees nothing: the scale and the zero point are given.  Raises NotImplementedError for dynamic limits."""

    def __init__(self, scale: float, zero_point: int, dtype: DType = QUINT8, qscheme: Scheme = AFFINE, quant_min: int = 0,
                 quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver: what is given does not change by call (is_dynamic)")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", named.tensor([scale], dtype=dtypes.float32))
        self.register_buffer("zero_point", named.tensor([zero_point], dtype=dtypes.int32))

    def forward(self, X: Tensor) -> Any:
        """`X` as it is."""
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point


class _Blind(ObserverBase):
    """Sees nothing, and knows no scale."""

    def forward(self, x: Tensor) -> Any:
        """`x` as it is."""
        return x

    def calculate_qparams(self) -> NoReturn:
        """Refused: nothing is known of limits.  Raises Exception, as in PyTorch."""
        raise Exception(f"calculate_qparams: {type(self).__name__} sees no limits to make them of")


class PlaceholderObserver(_Blind):
    """Sees nothing: settings of what is not observed, or only while a model runs."""

    def __init__(
        self,
        dtype: DType = dtypes.float32,
        custom_op_name: str = "",
        compute_dtype: DType | None = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Scheme | None = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = AFFINE if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps, self.custom_op = EPS if eps is None else eps, custom_op_name
        if compute_dtype:
            caller.warn("compute_dtype is going to be removed: give is_dynamic in its place")

    def extra_repr(self) -> str:
        """Its settings."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Blind):
    """Keeps copies of what it gets, for looking at it."""

    def __init__(self, dtype: DType = QUINT8) -> None:
        super().__init__(dtype=dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Any:
        """`x` as it is."""
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        """The copies."""
        return self.tensor_val


class NoopObserver(_Blind):
    """Sees nothing: settings alone."""

    def __init__(self, dtype: DType = dtypes.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Blind):
    """Sees nothing: a layer whose result has the limits of its input."""

    def __init__(self) -> None:
        super().__init__(QUINT8)


def _is_activation_post_process(module: Module) -> bool:
    from rushlight.ao.quantization.fake_quantize import FakeQuantizeBase

    return isinstance(module, ObserverBase | FakeQuantizeBase)


def get_observer_state_dict(mod: Module) -> Any:
    """What the observers in a model saw: their part of its `state_dict`."""
    state: Any = mod.state_dict()
    found: Any = OrderedDict((k, v) for k, v in state.items() if "activation_post_process" in k)
    found._metadata = state._metadata
    return found


def load_observer_state_dict(mod: Module, obs_dict: dict[str, Any]) -> None:
    """Let the observers in a model have seen what those did from which `obs_dict` is."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, f"{name}.", {}, False, missing, unexpected, [])


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=QINT8, qscheme=schemes.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=QINT8, qscheme=schemes.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=QINT8, qscheme=schemes.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=QINT8, qscheme=schemes.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=QUINT8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=QUINT8, qscheme=schemes.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=QUINT4, qscheme=schemes.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=QUINT8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=QUINT8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver

__all__ = [name for name, value in list(globals().items()) if name[0] != "_" and (
    name.startswith(("default_", "get_", "load_", "per_", "weight_")) or name.endswith(("Observer", "ObserverBase")))]  # fmt: skip
