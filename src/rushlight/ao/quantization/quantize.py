"""``torch.ao.quantization.quantize``: put observers, or modules that round, into a model; quantizing itself is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from rushlight import nn
from rushlight.ao.nn import qat
from rushlight.ao.quantization import fake_quantize as fakes
from rushlight.ao.quantization.observer import _is_activation_post_process
from rushlight.ao.quantization.qconfig import Maker, QConfig, QConfigAny, _activation_is_memoryless
from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub, QuantWrapper
from rushlight.basics import caller
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module
    from rushlight.tensor import Tensor

M = TypeVar("M", bound="Module")

__all__ = ["add_quant_dequant", "get_default_qat_module_mappings", "get_default_qconfig_propagation_list", "prepare", "prepare_qat",
           "propagate_qconfig_", "swap_module"]  # fmt: skip

ROUNDING = {nn.Conv2d: qat.Conv2d, nn.Conv3d: qat.Conv3d, nn.Linear: qat.Linear}
OBSERVED = {
    *ROUNDING,
    *ROUNDING.values(),
    QuantStub,
    DeQuantStub,
    NonDynamicallyQuantizableLinear,
    *(
        getattr(nn, name)
        for name in (
            "BatchNorm2d BatchNorm3d Conv1d ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout ELU Embedding EmbeddingBag GRU GRUCell "
            "GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LSTMCell LayerNorm LeakyReLU PReLU RNNCell ReLU6 "
            "Sequential"
        ).split()
    ),
}
# Results that lie between known limits, while a model trains.
KNOWN = {
    nn.Hardsigmoid: fakes.default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: fakes.default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: fakes.default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: fakes.default_fixed_qparams_range_neg1to1_fake_quant,
}  # fmt: skip


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """Which layers are trained with weights rounded, and as which."""
    return dict(ROUNDING)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The layers whose results are observed."""
    return set(OBSERVED)


def _made_anew(maker: Any) -> Maker:
    """What makes an observer, in a wrapper of its own where its class takes `factory_kwargs`, as PyTorch has it."""
    try:
        maker.with_args(factory_kwargs=None)()
    except (AttributeError, TypeError):
        return maker  # type: ignore[no-any-return]
    return maker.with_callable_args(factory_kwargs=lambda: None)  # type: ignore[no-any-return]


def propagate_qconfig_(
    module: Module, qconfig_dict: dict[Any, Any] | None = None, prepare_custom_config_dict: object = None
) -> None:
    """Give every layer its `qconfig`: its own, or by its name or class, or that of the module around it."""
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module: Module, given: dict[Any, Any], outer: QConfigAny, name: str) -> None:
    found = getattr(module, "qconfig", given.get(name, given.get(type(module), outer)))
    if found is not None and getattr(found, "_fields", None) == ("activation", "weight"):
        found = QConfig(_made_anew(found.activation), _made_anew(found.weight))
    module.qconfig = found
    for child, each in module.named_children():
        _propagate(each, given, found, f"{name}.{child}" if name else child)


def _observer_forward_hook(self: Module, input: tuple[Tensor, ...], output: Tensor) -> Any:
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Module, input: tuple[Tensor, ...]) -> Any:
    return self.activation_post_process(input[0])


def _observe(module: Module, maker: Callable[[], Any] | None = None) -> None:
    """Let a layer's results, or its input where limits are those of one call, go through an observer."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (maker or module.qconfig.activation)())
    if _activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _add_observer_(module: Module, kinds: set[Any], whole: set[Any]) -> None:
    for child in list(module.children()):
        if type(child) is nn.Dropout:
            continue
        if type(child) in whole:
            _observe(child)
        elif child.training and type(child) in KNOWN:
            _observe(child, KNOWN[type(child)])
        else:
            _add_observer_(child, kinds, whole)
    if type(module) in kinds and not isinstance(module, nn.Sequential):
        if not module._modules:
            _observe(module)
        if hasattr(module, "weight_fake_quant"):
            _observe(module)


def prepare(
    model: M,
    inplace: bool = False,
    allow_list: Iterable[Any] | None = None,
    observer_non_leaf_module_list: Iterable[Any] | None = None,
    prepare_custom_config_dict: object = None,
) -> M:
    """A copy of a model in which layers with a `qconfig` have observers of their results.

    inplace: change the model itself; allow_list: the classes of layers, those of `get_default_qconfig_propagation_list` by
    default.
    """
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        caller.warn(
            "prepare: no layer has a qconfig, so nothing is observed: assign `.qconfig` to the model or its layers"
        )
    _add_observer_(model, set(allow_list or OBSERVED), set(observer_non_leaf_module_list or ()))
    return model


def prepare_qat(model: M, mapping: dict[Any, Any] | None = None, inplace: bool = False) -> M:
    """A copy of a model that trains with weights and results rounded, by the `qconfig` of its layers.

    mapping: the classes that round for those that do not.  Raises AssertionError for a model in evaluation mode.

    >>> import rushlight as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3))
    >>> net.qconfig = torch.ao.quantization.get_default_qat_qconfig("qnnpack")
    >>> type(torch.ao.quantization.prepare_qat(net)[0]) is torch.ao.nn.qat.Linear
    True
    """
    if not model.training:
        raise AssertionError("prepare_qat: expected a model in training mode: call train() before")
    classes = ROUNDING if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    _swap(model, classes)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(classes.values()))


def _swap(module: Module, mapping: dict[Any, Any]) -> None:
    for name, child in list(module.named_children()):
        _swap(child, mapping)
        module._modules[name] = swap_module(child, mapping, {})


def swap_module(
    mod: Module, mapping: dict[Any, Any], custom_module_class_mapping: object, use_precomputed_fake_quant: bool = False
) -> Module:
    """The layer that `mapping` has for the class of one with a `qconfig`, with its hooks; others as they are."""
    if getattr(mod, "qconfig", None) is None or type(mod) not in mapping:
        return mod
    made: Module = mapping[type(mod)].from_float(mod)
    for before in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(before)
    for after in mod._forward_hooks.values():
        if after is not _observer_forward_hook:
            made.register_forward_hook(after)
    return made


def add_quant_dequant(module: Module) -> Module:
    """Put layers that have a `qconfig` between stubs, in place; a layer without others in it comes back in a `QuantWrapper`."""
    if not module._modules and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


is_activation_post_process = _is_activation_post_process
