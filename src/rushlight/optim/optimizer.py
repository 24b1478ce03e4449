"""The base of all optimizers: parameter groups, state, checkpoints and hooks."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, ClassVar, TypeAlias

import numpy as np

from rushlight.basics.caller import warn
from rushlight.basics.errors import explained
from rushlight.basics.events import MARK, observed
from rushlight.basics.foreign import kind_of
from rushlight.basics.handles import Hooks, RemovableHandle
from rushlight.basics.state import modes, special
from rushlight.kernels.reference.optim import BLOCK
from rushlight.optim.parts import (  # noqa: F401  optimizers of others take them from here
    _capturable_doc,
    _default_to_fused_or_foreach,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _group_tensors_by_device_and_dtype,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)  # fmt: skip
from rushlight.storage import settle
from rushlight.tensor import Tensor, wrap

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_foreach_supported_types = [Tensor]  # of which PyTorch steps many at once: subclasses of Tensor one by one
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
_global_optimizer_pre_hooks = Hooks()
_global_optimizer_post_hooks = Hooks()


class _Required:
    """The default of an option that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"

    def __copy__(self) -> _Required:
        return self

    def __deepcopy__(self, memo: object) -> _Required:
        return self

    def __reduce__(self) -> str:
        return "required"


required = _Required()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each `step` of every optimizer.

    args holds the optimizer first.  What the hook returns, unless None, is a pair (args, kwargs) that replaces them.
    """
    return _global_optimizer_pre_hooks.add(hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each `step` of every optimizer."""
    return _global_optimizer_post_hooks.add(hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` as it runs the hooks of its optimizer around itself."""

    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        if self._in_backward is not None:
            return self._in_backward.step_called(step, args, kwargs)
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
            or special.count
        ):
            return step(*args, **kwargs)
        level = next((x for x in modes.levels if getattr(x, "dry", False)), None)
        if level is not None:  # an estimate: arrays have shapes only
            return level.stepped(self)
        name = f"Optimizer.step#{type(self).__name__}.step"
        return observed(MARK, (name, None), (self,), (), _between_hooks, step, self, args, kwargs)

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


def _between_hooks(step: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> object:
    """Run `step` and the hooks around it."""
    args, kwargs = _before(step, self, args, kwargs)
    result = step(*args, **kwargs)
    run_post_hooks(self, args, kwargs)
    return result


def run_post_hooks(
    optimizer: Optimizer, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None
) -> None:
    """Run what is to run after a step."""
    args, kwargs = (optimizer,) if args is None else args, {} if kwargs is None else kwargs
    for hook in [*optimizer._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()]:
        hook(optimizer, args, kwargs)


def run_pre_hooks(optimizer: Optimizer) -> None:
    """Run what is to run before a step that backward takes.  Raises RuntimeError for other arguments of the step."""
    for hook in [*_global_optimizer_pre_hooks.values(), *optimizer._optimizer_step_pre_hooks.values()]:
        if hook(optimizer, (optimizer,), {}) is not None:
            raise RuntimeError(f"in_backward: the step hook {hook!r} returned other arguments for the step; a step inside "
                               "backward has none: return None")  # fmt: skip


def _before(step: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
    """Run the pre-hooks; the arguments as they leave them."""
    for hook in [*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
        result = hook(self, args, kwargs)
        if result is None:
            continue
        if not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
        args, kwargs = result
    return args, kwargs


class Optimizer:
    """Changes parameters by their gradients.  Subclasses define `step`.

    Args:
        params: tensors, pairs (name, tensor), or groups: dictionaries with "params" and options of their own.
        defaults: the options of groups that do not give them.

    Attributes: `param_groups`, a list of dictionaries; `state`, a dictionary from parameter to what is kept of it;
    `defaults`.  Raises TypeError for parameters that are not tensors in an ordered collection, ValueError for an
    empty list, tensors that are not leaves, and parameters that occur in two groups.
    """

    refused_in_backward: ClassVar[str | None] = None  # why a step cannot be taken one parameter at a time
    elementwise: ClassVar[bool] = (
        True  # whether each element is stepped by itself, and a part of a parameter as the whole
    )
    _own_dtypes: ClassVar[frozenset[str]] = frozenset({"step"})  # state whose dtype is not the parameter's
    _in_backward: Any = None  # how this optimizer steps inside backward: see `optim.in_backward`
    state: Any
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}; wrap it in a list"
            )
        if hasattr(params, "parameters") and not isinstance(params, Iterable):
            name = type(params).__name__
            raise TypeError(f"'{name}' object is not iterable: give the optimizer its parameters, `model.parameters()`")
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise explained(ValueError("optimizer got an empty parameter list"), "nothing-to-optimize")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        self.__dict__.setdefault("_in_backward", None)
        for name in _HOOKS:
            self.__dict__.setdefault(name, Hooks())

    def _patch_step_function(self) -> None:
        """Have the class's own `step` run hooks, once."""
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def _cuda_graph_capture_health_check(self) -> None:
        """Nothing: there are no graphs of kernels.  Steps that were written after PyTorch's begin with it."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [*([""] if i else []), f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # Parameter groups ------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dictionary with "params" (a tensor or a list of tensors or of named tensors) and options."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _order(param_group)
        for param in param_group["params"]:
            _check_param(param, self.defaults.get("differentiable"))
            if param._spread and not self.elementwise:
                raise NotImplementedError(
                    f"{type(self).__name__} of a DTensor: its step needs the whole of a parameter, of which each process has a part: "
                    "use an optimizer that steps each element by itself, such as AdamW"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_overlap(param_group)
        self.param_groups.append(param_group)

    def _check_overlap(self, new: dict[str, Any]) -> None:
        params = new["params"]
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error")
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(ids):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in new) != ("param_names" in self.param_groups[0]):
            which = "with" if "param_names" in new else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{which} names to the optimizer"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or, with `set_to_none=False`, fill them with zeros."""
        if special.observing:
            name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
            observed(MARK, (name, None), (), (), self._clear, set_to_none)
        else:
            self._clear(set_to_none)

    def _clear(self, set_to_none: bool) -> None:
        """As `zero_grad`, unobserved."""
        if self._in_backward is not None:
            self._in_backward.cleared(self, set_to_none)
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    _zero_grad(p)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once.  closure: evaluates the model again and returns the loss."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    def step_param(self, param: Tensor, group: dict[str, Any]) -> None:
        """Change one parameter, of a group, by its gradient, as `step` does: what a step inside backward is made of.

        Here by the class's own `step`, which is shown this parameter alone.
        """
        step, groups = type(self).step, self.param_groups
        self.param_groups = [OneParam(group, param)]
        try:
            getattr(step, "__wrapped__", step)(self)  # without the hooks of a whole step
        finally:
            self.param_groups = groups

    def _zeros(self, param: Tensor) -> Tensor:
        """The gradient that `zero_grad(set_to_none=False)` leaves of a parameter that was stepped."""
        return wrap(np.zeros_like(param._array))

    # What estimates ask ------------------------------------------------------------------------------

    _shared: ClassVar[frozenset[str]] = frozenset()  # state that is one tensor for all parameters
    _ordering: ClassVar[int] = 0  # bytes that a step needs for each row of a sparse gradient

    def _layout(self, shape: tuple[int, ...], dtype: np.dtype[Any], group: dict[str, Any]) -> dict[str, Any] | None:
        """Shape and dtype of each tensor that is kept for a parameter; None if a step of a small one is to show it."""
        return None

    def _work(self, array: Any, group: dict[str, Any]) -> int:
        """Bytes that a step of one parameter needs for a moment: formulas work on blocks."""
        return int(min(array.size, BLOCK) * 4 * (9 if array.itemsize == 2 else 6))

    # Checkpoints -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state and the options, with parameters numbered in the order of their groups.

        Returns {"state": {number: {name: value}}, "param_groups": [{option: value, "params": [numbers]}]}.
        """
        if self._in_backward is not None:
            self._in_backward.check_state_dict(self)
        for pre_hook in list(self._optimizer_state_dict_pre_hooks.values()):
            pre_hook(self)
        numbers: dict[int, int] = {}
        groups = [_packed_group(group, numbers) for group in self.param_groups]
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        packed: dict[str, Any] = {"state": state, "param_groups": groups}
        for post_hook in list(self._optimizer_state_dict_post_hooks.values()):
            result = post_hook(self, packed)
            packed = packed if result is None else result
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over options and state that `state_dict()` of a like optimizer returned.

        State is converted to the dtype of its parameter, except `step`.  Raises ValueError when the groups differ in
        number or size.  Hyperparameters come from `state_dict`: build schedulers before loading.
        """
        state_dict = state_dict.copy()
        for pre_hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            result = pre_hook(self, state_dict)
            state_dict = state_dict if result is None else result
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        _check_sizes(groups, saved)
        params = {
            number: p
            for group, own in zip(saved, groups, strict=True)
            for number, p in zip(group["params"], own["params"], strict=True)
        }
        state: Any = type(self.state)() if not isinstance(self.state, defaultdict) else defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _cast(params[key], value, self._own_dtypes)
            else:
                state[key] = value
        merged = [_merged_group(own, group) for own, group in zip(groups, saved, strict=True)]
        self.__setstate__({"state": state, "param_groups": merged})
        if self._in_backward is not None:
            self._in_backward.loaded()
        for post_hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            post_hook(self)

    # Hooks -----------------------------------------------------------------------------------------

    OptimizerPreHook: ClassVar[Any] = Callable[..., Any]  # as programs annotate hooks
    OptimizerPostHook: ClassVar[Any] = Callable[..., None]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A `step` as it is: hooks are called and steps are told to profilers without being wrapped."""
        return func

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each `step`; it may return new (args, kwargs)."""
        return self._hooks("step_pre").add(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each `step`."""
        return self._hooks("step_post").add(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before each `state_dict()`."""
        return self._hooks("state_dict_pre").add(hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after each `state_dict()`; it may return another dictionary."""
        return self._hooks("state_dict_post").add(hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before each `load_state_dict()`; it may return another dictionary."""
        return self._hooks("load_state_dict_pre").add(hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after each `load_state_dict()`."""
        return self._hooks("load_state_dict_post").add(hook, prepend)

    def _hooks(self, what: str) -> Hooks:
        hooks: Hooks = getattr(self, f"_optimizer_{what}_hooks")
        return hooks


class OneParam(dict[str, Any]):
    """A parameter group as seen by a step of one of its parameters: what it keeps for all of them cannot be changed."""

    def __init__(self, group: dict[str, Any], param: Tensor):
        super().__init__(group)
        super().__setitem__("params", [param])

    def __setitem__(self, key: str, value: int) -> None:
        raise RuntimeError(
            f"in_backward: the optimizer's step sets {key!r} of a parameter group, which parameters that are stepped one "
            "after the other would share: keep it in the state of each parameter, or step after backward"
        )


def _order(group: dict[str, Any]) -> None:
    """Make "params" a list of tensors, and "param_names" the list of their names if they have any."""
    params = group["params"]
    if isinstance(params, Tensor):
        group["params"] = [params]
        return
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = list(params)
    named = [isinstance(p, tuple) for p in params]
    if any(named):
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        group["params"] = [p for _, p in params]
        group["param_names"] = [name for name, _ in params]
    else:
        group["params"] = params


def _check_param(param: Tensor, differentiable: bool | None) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {kind_of(param)}")
    if param._bits:
        raise ValueError("can't optimize a tensor with a conjugate or negative bit: its memory holds other numbers than it "
                         "shows; use resolve_conj() or resolve_neg() on it")  # fmt: skip
    if not (differentiable or param.is_leaf or getattr(param, "retains_grad", False)):
        raise explained(
            ValueError(
                "can't optimize a non-leaf Tensor: optimize the leaf that it was computed from, or detach() it and set "
                "requires_grad"
            ),
            "nothing-to-optimize",
        )


def _zero_grad(p: Tensor) -> None:
    grad: Any = p.grad
    assert grad is not None
    if grad.is_sparse:
        p.grad = grad.zeros_like()
        return
    if grad.grad_fn is not None or grad.requires_grad:  # leave the graph that computed it as it is
        p.grad = grad = wrap(grad._array.copy())
    settle(grad._held)
    grad._held[...] = 0
    grad._bump_version()


def _packed_group(group: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    packed = {k: v for k, v in group.items() if k != "params"}
    for p in group["params"]:
        numbers.setdefault(id(p), len(numbers))
    packed["params"] = [numbers[id(p)] for p in group["params"]]
    return packed


def _merged_group(own: dict[str, Any], saved: dict[str, Any]) -> dict[str, Any]:
    """The saved options with this optimizer's parameters and their names."""
    saved["params"] = own["params"]
    if "param_names" in own and "param_names" not in saved:
        saved["param_names"] = own["param_names"]
    return saved


def _check_sizes(groups: list[dict[str, Any]], saved: list[dict[str, Any]]) -> None:
    if len(groups) != len(saved):
        raise ValueError(
            "loaded state dict has a different number of parameter groups: "
            f"it has {len(saved)}, this optimizer {len(groups)}"
        )
    for i, (own, group) in enumerate(zip(groups, saved, strict=True)):
        if len(own["params"]) != len(group["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                f"group {i} has {len(group['params'])} parameters, this optimizer's {len(own['params'])}"
            )


def _cast(param: Tensor, value: Tensor | dict[Any, Any], own: frozenset[str], key: str | None = None) -> object:
    """`value`, state of `param`, in the dtype that it must have; a tensor of the right one is taken as it is."""
    if isinstance(value, Tensor):
        if key in own:
            return value
        if value._array.dtype == param._array.dtype or not param.dtype.is_floating_point:
            return value
        if value.ndim == 0 < param.ndim and param.itemsize < value.itemsize:
            return value  # a counter: 16 bits would not hold it
        return value.to(dtype=param.dtype)
    if isinstance(value, dict):
        return {k: _cast(param, v, own, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, v, own) for v in value)
    return value
