"""Modules as functions of their parameters: functional_call and stack_module_state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.ops.shape.join import stack
from rushlight.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: object = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with the given tensors in place of its parameters, buffers and other tensors of those names.

    Args:
        parameter_and_buffer_dicts: tensors by dotted names, in one or several dictionaries; what is not named stays the
            module's own, and names that the module does not have are ignored.
        args, kwargs: arguments of the call; a single one need not be in a tuple.
        tie_weights: a tensor given for one name of a shared parameter is used for its other names too.
        strict: raise RuntimeError for unknown or missing names.

    The module is left as it was, whatever happens. In-place changes of its buffers by the call go to the tensors given;
    what the call assigns to a name is afterwards in the dictionary, if there is one alone.
    Raises ValueError for a name in several dictionaries and for different tensors on tied names, TypeError for the name of
    what is no tensor, AttributeError for one that is computed (a property, a parametrized tensor).

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


def merged(dicts: object) -> dict[str, Tensor]:
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
    """While active, `module` has the given tensors under those names; afterwards `given` what it had under them then."""
    for tensor in given.values():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor!r} is not an instance of torch.Tensor")
    all_names = tied(module, given) if tie_weights else dict(given)
    if strict:
        check_names(module, all_names)
    places = [Place(module, path) for path in all_names]
    swapped: list[Place] = []
    try:
        for place, tensor in zip(places, all_names.values(), strict=True):
            swapped.append(place)
            place.former = place.get()
            place.put(tensor)
        yield
    finally:
        left = {place.path: place.get() for place in swapped}
        for place in reversed(swapped):
            place.put(place.former)
        given.update({path: left[path] for path in given if left.get(path, MISSING) is not MISSING})


MISSING = object()


class Place:
    """Where a module, or one inside it, keeps a tensor: its parameters, its buffers, or its other attributes."""

    def __init__(self, module: Any, path: str):
        parent, _, self.name = path.rpartition(".")
        if not self.name:
            raise KeyError('tensor name can\'t be empty string ""')
        self.path, self.former = path, MISSING
        owner = submodule(module, parent)
        registers = [owner.__dict__[register] for register in ("_parameters", "_buffers")]
        self.register = next((r for r in registers if self.name in r), owner.__dict__)
        self.others = [r for r in (*registers, owner.__dict__) if r is not self.register]
        if self.register is owner.__dict__:
            check_attribute(owner, self.name)

    def get(self) -> Any:
        """What is here now, wherever the module has moved it to, or MISSING."""
        return next((r[self.name] for r in (self.register, *self.others) if self.name in r), MISSING)

    def put(self, value: Any) -> None:
        """Put a value here, and nowhere else; nothing for MISSING."""
        for other in self.others:
            other.pop(self.name, None)
        if value is MISSING:
            self.register.pop(self.name, None)
        else:
            self.register[self.name] = value


def submodule(module: Any, path: str) -> Any:
    """The module at a dotted path.  Raises AttributeError where there is nothing, TypeError where there is no module."""
    for step in path.split(".") if path else ():
        if step not in module._modules:
            if hasattr(module, step):
                raise TypeError(f"submodule `{step}`: {getattr(module, step)!r} is not an instance of torch.nn.Module")
            raise AttributeError(f"{type(module).__name__} has no attribute `{step}`")
        module = module._modules[step]
    return module


def check_attribute(owner: object, name: str) -> None:
    """Raise where an attribute that is neither parameter nor buffer cannot hold a tensor for the time of a call."""
    if hasattr(getattr(type(owner), name, None), "__set__"):
        raise AttributeError(f"attribute `{name}` of {type(owner).__name__} is computed when it is read: give what it is "
                             "computed from (of a parametrized tensor `parametrizations.NAME.original`)")  # fmt: skip
    value = getattr(owner, name, None)
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"attribute `{name}`: {value!r} is not an instance of torch.Tensor")


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
    made = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        needs = [t.requires_grad for t in tensors]
        if any(needs) and not all(needs):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad, got mixed values")
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
