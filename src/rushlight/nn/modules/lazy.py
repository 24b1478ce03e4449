"""Lazy modules: parameters take their shape from the first input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.nn.parameter import is_lazy

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


class LazyModuleMixin:
    """For modules that learn the shape of their parameters from the first call.

    A subclass overrides `initialize_parameters(*args)`, called with the arguments of the first forward.  After it the
    module's class becomes `cls_to_become`, if that is not None.
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._load_hook = module._register_load_state_dict_pre_hook(_materialize_from, with_module=True)
        self._initialize_hook = module.register_forward_pre_hook(_infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give every lazy parameter its shape; override."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether any own parameter or buffer has no shape yet."""
        module: Any = self
        return any(is_lazy(value) for value in (*module._parameters.values(), *module._buffers.values()))

    def _infer_parameters(
        self: object, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        _infer_parameters(module, args, kwargs or {})


def _infer_parameters(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before the first forward: initialise, take the hooks off, and become the ordinary class."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {module._get_name()} has not been fully initialized: initialize_parameters left parameters "
            "without a shape"
        )
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    for name in ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"):
        if not module.__dict__.get(name, True):
            del module.__dict__[name]
    if not any(name in module.__dict__ for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")):
        module.__dict__.pop("_hooked", None)
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _materialize_from(module: Any, state_dict: Any, prefix: str, *_: Any) -> None:
    """Before loading: lazy parameters take the shapes of the state_dict's."""
    for name, value in {**module._parameters, **module._buffers}.items():
        loaded = state_dict.get(prefix + name)
        if value is not None and loaded is not None and is_lazy(value) and not is_lazy(loaded):
            from rushlight.engine.modes import no_grad

            with no_grad():
                value.materialize(loaded.shape)
