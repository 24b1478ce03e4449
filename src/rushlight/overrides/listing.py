"""Lists of what can be overridden, and the names of public functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rushlight.overrides import names
from rushlight.overrides.protocol import nowrap
from rushlight.overrides.public import OWNER, PUBLIC, Public
from rushlight.tensor import Tensor


def owner(func: object) -> Public | None:
    """What is known of a public function, or of the function of an attribute: ``Tensor.shape.__get__``."""
    found = OWNER.get(id(func))
    if found is not None and found.twin is func:
        return found
    return next((public for public in PUBLIC if public.name.endswith("__") and public.func == func), None)


def get_default_nowrap_functions() -> set[Any]:
    """The functions whose results ``Tensor.__torch_function__`` leaves as they are: those that give parts of a tensor."""
    return nowrap()


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that classes can override, by the namespace that has them.

    >>> import rushlight as torch
    >>> torch.clone in torch.overrides.get_overridable_functions()[torch]
    True
    """
    import rushlight

    torch: Any = rushlight
    spaces = {
        "torch": torch, "torch.Tensor": Tensor, "torch.nn.functional": torch.nn.functional,
        "torch.linalg": torch.linalg, "torch.fft": torch.fft, "torch.special": torch.special,
        "torch.autograd": torch.autograd,
    }  # fmt: skip
    found: dict[Any, list[Any]] = {space: [] for space in spaces.values()}
    for public in PUBLIC:
        if public.name in names.UNLISTED:
            continue
        if (not public.factory and public.twin is public.func) or public.name.endswith("__"):
            where = public.name.removesuffix(".__get__").removesuffix(".__set__").removesuffix(".__delete__")
            found[spaces[where.rpartition(".")[0]]].append(public.func)
    return found


def get_ignored_functions() -> set[Any]:
    """The public functions that no class can override: they have no tensor to ask, or make objects; and classes.

    >>> import rushlight as torch
    >>> torch.zeros in torch.overrides.get_ignored_functions()
    True
    """
    import rushlight

    silent = {getattr(rushlight, name) for name in names.SILENT | names.SETTINGS if hasattr(rushlight, name)}
    methods = {vars(Tensor)[name] for name in names.SILENT_METHODS if callable(vars(Tensor).get(name))}
    return silent | methods | {public.func for public in PUBLIC if public.factory or public.name in names.UNLISTED}


def get_testing_overrides() -> dict[Any, Any]:
    """For each function that can be overridden one with the same parameters that returns -1."""

    def override(func: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(*args: object, **kwargs: object) -> int:
            return -1

        try:
            replaced.__signature__ = inspect.signature(func)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            pass  # that of an attribute
        return replaced

    return {func: override(func) for functions in get_overridable_functions().values() for func in functions}


def resolve_name(f: Any) -> str | None:
    """The name of a public function, as torch.linalg.cholesky; None of any other.

    >>> import rushlight as torch
    >>> torch.overrides.resolve_name(torch.Tensor.add), torch.overrides.resolve_name(torch.Tensor.shape.__get__)
    ('torch.Tensor.add', 'torch.Tensor.shape.__get__')
    """
    public = owner(f)
    return None if public is None else public.name


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is a method of Tensor, or what reads an attribute.

    >>> import rushlight as torch
    >>> ask = torch.overrides.is_tensor_method_or_property
    >>> ask(torch.Tensor.add), ask(torch.Tensor.shape.__get__), ask(torch.add)
    (True, True, False)
    """
    public = owner(func)
    return public is not None and public.name.startswith("torch.Tensor.")
