"""Modules as functions of their parameters: functional_call and stack_module_state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with the given tensors in place of its parameters and buffers of those names.

    Args:
        parameter_and_buffer_dicts: tensors by dotted names, in one or several dictionaries; what is not named stays the
            module's own.
        args, kwargs: arguments of the call; a single one need not be in a tuple.
        tie_weights: a tensor given for one name of a shared parameter is used for its other names too.
        strict: raise RuntimeError for unknown or missing names.

    The module is left as it was, whatever happens. In-place changes of its buffers by the call go to the tensors given.
    Raises ValueError for a name in several dictionaries and for different tensors on tied names.

    >>> import rushlight as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> new = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    >>> torch.func.functional_call(layer, new, torch.ones(1, 2))
    tensor([[3.5000]])
    """
    given = merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with reparametrized(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def merged(dicts: Any) -> dict[str, Tensor]:
    """The tensors of one or several dictionaries in one."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    several = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if several:
        raise ValueError(f"{several} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for d in dicts for name, tensor in d.items()}


@contextlib.contextmanager
def reparametrized(module: Any, given: dict[str, Tensor], tie_weights: bool = False,
                   strict: bool = False) -> Iterator[None]:  # fmt: skip
    """While active, `module` has the given tensors for its parameters and buffers of those names."""
    for tensor in given.values():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor!r} is not an instance of torch.Tensor")
    given = tied(module, given) if tie_weights else dict(given)
    if strict:
        check_names(module, given)
    places = [(*place_of(module, name), tensor) for name, tensor in given.items()]
    former: list[Any] = []
    try:
        for register, name, tensor in places:
            former.append((register, name, name in register, register.get(name)))
            register[name] = tensor
        yield
    finally:
        for register, name, had, tensor in reversed(former):
            if had:
                register[name] = tensor
            else:
                register.pop(name, None)


def place_of(module: Any, path: str) -> tuple[dict[str, Any], str]:
    """The dictionary that holds a parameter or buffer, and its name there.  Raises AttributeError for a wrong path."""
    parent, _, name = path.rpartition(".")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    owner = module
    for step in parent.split(".") if parent else ():
        if step not in owner._modules:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{step}`")
        owner = owner._modules[step]
    for register in ("_parameters", "_buffers"):
        if name in owner.__dict__[register]:
            return owner.__dict__[register], name
    return owner.__dict__["_buffers"], name


def tied(module: Any, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given` with the other names of shared tensors added."""
    result = dict(given)
    names: dict[Any, list[str]] = {}
    for found in (module.named_parameters, module.named_buffers):
        for name, tensor in found(remove_duplicate=False):
            names.setdefault(tensor, []).append(name)
    for group in names.values():
        mine = [name for name in group if name in given]
        if not mine or len(group) == 1:
            continue
        if any(given[name] is not given[mine[0]] for name in mine):
            raise ValueError(f"functional_call got multiple values for keys {sorted(mine)}, which are tied. Consider using "
                             "tie_weights=False")  # fmt: skip
        result.update(dict.fromkeys(group, given[mine[0]]))
    return result


def check_names(module: Any, given: dict[str, Tensor]) -> None:
    """Raise RuntimeError for names that the module does not have, and for those of its own that are missing."""
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


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several models of one class, stacked: (parameters, buffers) by name.

    What `vmap` of `functional_call` needs to run an ensemble at once. Stacked parameters are leaves, and require grad
    where those of the models do. Raises RuntimeError for models of different classes or modes.

    >>> import rushlight as torch
    >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(3, 2) for _ in range(4)])
    >>> params["weight"].shape
    torch.Size([4, 2, 3])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not all(m.training == models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = stacked([dict(m.named_parameters()) for m in models])
    return parameters, stacked([dict(m.named_buffers()) for m in models])


def stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Leaves that stack the tensors of one name."""
    from rushlight.ops.join import stack

    made = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        needs = [t.requires_grad for t in tensors]
        if any(needs) and not all(needs):
            raise RuntimeError(
                "Expected tensors from the same attribute on each model to have the same requires_grad, got mixed values "
                f"for {name!r}"
            )
        made[name] = stack([t.detach() for t in tensors]).requires_grad_(needs[0])
    return made


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Have every batch norm in a module use the statistics of its batch, and no running ones; return the module.

    Running statistics are changed in place, which `vmap` cannot do for each sample. Layers with an affine transformation
    keep it.
    """
    for module in root.modules():
        if hasattr(module, "running_mean") and hasattr(module, "track_running_stats"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor of all samples behind one inside `vmap`; of nested ones the outermost, or with recurse=False the next."""
    while getattr(tensor._array, "interpreted", False):
        tensor = tensor._array.tensor
        if not recurse:
            break
    return tensor
