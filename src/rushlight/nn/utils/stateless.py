"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight.tensor import Tensor

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with the given tensors in place of its parameters and buffers of those names.

    Args:
        parameters_and_buffers: tensors by dotted names; what is not named stays the module's own.
        args, kwargs: arguments of the call; a single one need not be in a tuple.
        tie_weights: a tensor given for one name of a shared parameter is used for its other names too.
        strict: raise RuntimeError for unknown or missing names.

    The module is left as it was, whatever happens.  Raises RuntimeError for different tensors on tied names.
    """
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*positional, **(kwargs or {}))


@contextlib.contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    given = _tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        _check_names(module, given)
    places = [place for place in (_find(module, name, tensor) for name, tensor in given.items()) if place]
    originals = []
    try:
        for owner, register, name, tensor in places:
            originals.append((owner, register, name, owner.__dict__[register].get(name), tensor))
            owner.__dict__[register][name] = tensor
        yield
    finally:
        for owner, register, name, original, _ in reversed(originals):
            owner.__dict__[register][name] = original


def _find(module: Any, path: str, tensor: Any) -> Any:
    """The module and register that hold `path`, or AttributeError."""
    parent, _, name = path.rpartition(".")
    owner = module.get_submodule(parent)
    for register in ("_parameters", "_buffers"):
        if name in owner.__dict__[register]:
            return owner, register, name, tensor
    raise AttributeError(f"functional_call: {type(owner).__name__} has no parameter or buffer `{name}` (of {path!r})")


def _names_by_tensor(module: Any) -> dict[Any, list[str]]:
    """All names of every parameter and buffer."""
    names: dict[Any, list[str]] = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names.setdefault(tensor, []).append(name)
    for name, tensor in module.named_buffers(remove_duplicate=False):
        names.setdefault(tensor, []).append(name)
    return names


def _tied(module: Any, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given` with the other names of shared tensors added."""
    result = dict(given)
    for names in _names_by_tensor(module).values():
        mine = [name for name in names if name in given]
        if not mine or len(names) == 1:
            continue
        if any(given[name] is not given[mine[0]] for name in mine):
            raise ValueError(f"functional_call got multiple values for keys {sorted(mine)}, which are tied.")
        for name in names:
            result[name] = given[mine[0]]
    return result


def _check_names(module: Any, given: dict[str, Tensor]) -> None:
    known = {n for n, _ in module.named_parameters(remove_duplicate=False)}
    known |= {n for n, _ in module.named_buffers(remove_duplicate=False)}
    missing, unexpected = sorted(known - set(given)), sorted(set(given) - known)
    if not missing and not unexpected:
        return
    lines = [f"Error(s) in reparametrizing for {module._get_name()}:"]
    for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
        if keys:
            lines.append("{} key(s): {}.".format(kind, ", ".join(f"'{k}'" for k in keys)))
    raise RuntimeError("\n\t".join(lines))
