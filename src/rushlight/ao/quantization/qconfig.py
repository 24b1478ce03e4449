"""``torch.ao.quantization.qconfig``: which observers, or modules that round, layers get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.ao.quantization import fake_quantize as fakes
from rushlight.ao.quantization import observer as observers
from rushlight.ao.quantization.fake_quantize import FakeQuantize, FakeQuantizeBase, FusedMovingAvgObsFakeQuantize
from rushlight.ao.quantization.observer import (
    QINT8,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    _PartialWrapper,
)
from rushlight.basics import dtypes
from rushlight.nn.modules.linear import Identity
from rushlight.nn.modules.module import Module

Maker = _PartialWrapper | type[Module] | Callable[..., Any]  # what makes an observer
BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


class _Pair(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Pair):
    """What makes the observers of a layer: classes, or classes with arguments, of its results and of its weight.

    Raises ValueError for observers that are made already.
    """

    __slots__ = ()

    def __new__(cls, activation: Maker, weight: Maker) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig: expected what makes observers, got an observer: give its class, or Observer.with_args(...) for one "
                "with arguments"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(QConfig):
    """An older name, of settings for weights alone."""

    __slots__ = ()

    def __new__(cls, activation: Maker = Identity, weight: Maker = Identity) -> QConfigDynamic:
        return super().__new__(cls, activation, weight)  # type: ignore[return-value]


QConfigAny = QConfig | None


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The observers for a backend.  Raises AssertionError for others than fbgemm, x86, qnnpack and onednn."""
    _check("get_default_qconfig", backend, version, (0,))
    weight = (
        observers.default_weight_observer if backend == "qnnpack" else observers.default_per_channel_weight_observer
    )
    return QConfig(HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The modules that round while a model trains for a backend, in one function each from version 1 on."""
    _check("get_default_qat_qconfig", backend, version, (0, 1))
    kind: Any = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    reduce = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    activation = kind.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **reduce)
    whole, channels = (
        (fakes.default_fused_wt_fake_quant, fakes.default_fused_per_channel_wt_fake_quant)
        if version
        else (fakes.default_weight_fake_quant, fakes.default_per_channel_weight_fake_quant)
    )
    return QConfig(activation, whole if backend == "qnnpack" else channels)


def _check(name: str, backend: str, version: int, versions: tuple[int, ...]) -> None:
    if backend not in BACKENDS:
        raise AssertionError(f"backend: expected one of {BACKENDS}, got {backend!r}")
    if version not in versions:
        raise AssertionError(f"{name}: expected version {' or '.join(map(str, versions))}, got {version}")


def _same(a: Maker, b: Maker) -> bool:
    """Whether two makers of observers make alike."""
    if not (isinstance(a, _PartialWrapper) and isinstance(b, _PartialWrapper)):
        return bool(a == b)
    given, other = dict(a.p.keywords), dict(b.p.keywords)
    alike = "observer" not in given or "observer" not in other or _same(given.pop("observer"), other.pop("observer"))
    return bool(alike and a.p.func == b.p.func and a.p.args == b.p.args and given == other)


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Whether two settings make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    return _same(q1.activation, q2.activation) and _same(q1.weight, q2.weight)


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Whether limits are those of the last call alone."""
    made = qconfig.activation()
    made = made.activation_post_process if isinstance(made, FakeQuantizeBase) else made
    return getattr(made, "averaging_constant", None) == 1


default_qconfig = QConfig(observers.default_observer, observers.default_weight_observer)
default_debug_qconfig = QConfig(observers.default_debug_observer, observers.default_weight_observer)
default_per_channel_qconfig = QConfig(observers.default_observer, observers.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(observers.default_dynamic_quant_observer, observers.default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=dtypes.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float16), PlaceholderObserver.with_args(dtype=dtypes.float16)
)
per_channel_dynamic_qconfig = QConfig(
    observers.default_dynamic_quant_observer, observers.default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    observers.default_placeholder_observer, observers.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    observers.default_placeholder_observer, observers.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(fakes.default_fake_quant, fakes.default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(fakes.default_dynamic_fake_quant, fakes.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, fakes.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fakes.default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(fakes.default_fused_act_fake_quant, fakes.default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(ReuseInputObserver, NoopObserver)
default_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(dtype=QINT8, reduce_range=False, eps=2**-12),
    observers.weight_observer_range_neg_127_to_127,
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(dtype=QINT8, reduce_range=False, eps=2**-12),
    observers.per_channel_weight_observer_range_neg_127_to_127,
)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=dtypes.float32), fakes.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=dtypes.float32), fakes.default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
_signed = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=QINT8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qat_qconfig = QConfig(_signed, fakes.fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed, fakes.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

__all__ = [name for name in list(globals()) if name.endswith(("qconfig", "4bit", "_v2")) or name in (
    "QConfig", "QConfigAny", "QConfigDynamic", "qconfig_equals")]  # fmt: skip
