"""``torch.library.custom_op``: an operator from a Python function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from rushlight.basics.dtypes import dtype
from rushlight.library import namespaces
from rushlight.library.operators import Declared
from rushlight.library.schema import FunctionSchema, infer_schema, parsed
from rushlight.library.tags import as_tags

__all__ = ["CustomOpDef", "custom_op"]

F = TypeVar("F", bound=Callable[..., Any])
KEYS = {"cpu": "CPU", None: "CPU", "cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "meta": "Meta", "hpu": "HPU"}


def named(schema: str, name: str) -> FunctionSchema:
    """A declaration without a name, given one.  Raises ValueError where the name lacks its namespace."""
    namespace, sign, rest = name.partition("::")
    if not (namespace and sign and rest):
        raise ValueError(f"expected a name with its namespace, as in 'my::sin', got {name!r}")
    if "(" in schema and schema.index("(") > 0:
        schema = schema[schema.index("(") :]
    return parsed(name + schema)


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
    tags: object = None,
) -> Callable[[Callable[..., Any]], CustomOpDef]: ...


@overload
def custom_op(
    name: str,
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
    tags: object = None,
) -> CustomOpDef: ...


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
    tags: object = None,
) -> Any:
    """Make an operator of a Python function, which nothing looks into: neither for gradients nor for shapes.

    name: with its namespace, "my::sin"; the operator is ``torch.ops.my.sin`` too.  mutates_args: the names of the tensors
    that the function changes in place, or "unknown".  device_types: where the function runs, anywhere by default.  schema:
    its declaration, found from the annotations where not given.  Returns a `CustomOpDef`, or a decorator.

    >>> import numpy as np, rushlight as torch
    >>> @torch.library.custom_op("example::cube", mutates_args=())
    ... def cube(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy() ** 3)
    >>> cube.register_autograd(lambda ctx, g: g * 3 * ctx.x**2,
    ...                        setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]))
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.grad(cube(x).sum(), x)
    (tensor([ 3., 12.]),)
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        op = CustomOpDef(named(text, name), function)
        op._opoverload.tags = as_tags(tags)
        op.register_kernel(device_types)(function)
        return op

    return make if fn is None else make(fn)


class CustomOpDef:
    """An operator that `custom_op` made: call it, or add to what is known of it."""

    def __init__(self, schema: FunctionSchema, function: Callable[..., Any]):
        if schema.has_tensors_by_keyword:
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args: a backward has no place for their gradients. Let {schema.name} take its "
                f"tensors by position as well: {schema}"
            )
        self._opoverload = Declared(schema, opaque=True)
        self._qualname = schema.name
        self._namespace, self._name = self._opoverload.namespace, self._opoverload._opname
        self._init_fn = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        namespaces.register(self._opoverload)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Say what computes on those devices: the CPU's is the one that runs here."""

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                self._opoverload.kernels[KEYS.get(kind, str(kind).upper())] = function
            return function

        return keep if fn is None else keep(fn)

    def register_fake(self, fn: F, /) -> F:
        """Say what gives tensors of the right shapes without computing."""
        self._opoverload.fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the formula: ``backward(ctx, *grads)`` and ``setup_context(ctx, inputs, output)``.

        Raises RuntimeError for an operator that changes its arguments, NotImplementedError for one with tensors by keyword
        alone.
        """
        self._opoverload.give_formula(backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Give the rule for vmap: ``func(info, in_dims, *args)`` returns the results and their batch dimensions."""

        def keep(function: Callable[..., Any]) -> None:
            self._opoverload.batching = function

        return keep if func is None else keep(func)

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """Convert floating-point inputs, but those of float64, to this dtype within autocast, which the function is not in then."""
        self._opoverload.give_casts(device_type, cast_inputs)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context in which the kernel that was registered for a device does not run, but the function itself."""
        kernels, key = self._opoverload.kernels, KEYS.get(device_type, device_type.upper())
        kernel = kernels.get(key)
        if kernel is not None and not enabled:
            kernels[key] = self._init_fn
        try:
            yield
        finally:
            if kernel is not None:
                kernels[key] = kernel

    def register_torch_dispatch(self, torch_dispatch_class: object, fn: Callable[..., Any] | None = None, /) -> Any:
        """Accepted: there is no `__torch_dispatch__` that would ask."""
        return (lambda function: function) if fn is None else fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"
