"""What functions do with DTensors: by parts where each element is by itself, over all processes where they make one number."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.tree import tree_flatten, tree_map, tree_unflatten
from rushlight.dispatch import functions
from rushlight.dispatch.declare import OPS
from rushlight.distributed.tensor.dtensor import (
    DTensor,
    ShardedParameter,
    described,
    local_of,
    no_gradient_lost,
    norms_over,
    spread,
)
from rushlight.distributed.tensor.layouts import Spec, reduced
from rushlight.distributed.tensor.placement_types import Partial, Replicate, Shard
from rushlight.overrides.listing import resolve_name
from rushlight.overrides.protocol import unasked
from rushlight.storage import bump, settle
from rushlight.tensor import Tensor, alias, wrap

# What is composed of operators of each element by itself, changes the dtype, or makes another tensor of the same
# shape; Python's methods.
COMPOSED = frozenset(
    "bfloat16 celu clamp_max clamp_min clip clone contiguous detach divide double empty_like float full_like half int long "
    "not_equal ones_like positive subtract to true_divide type type_as zero zeros_like "
    "__abs__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__ "
    "__neg__ __pos__ __pow__ __rpow__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __invert__ __and__ __or__".split()
)
RANDOM = frozenset("normal_ uniform_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_ random_".split())
LIKE = {"rand_like": "uniform_", "randn_like": "normal_"}
PLAINLY = frozenset("requires_grad_ dim element_size is_floating_point is_complex is_contiguous register_hook "
                    "register_post_accumulate_grad_hook data_ptr untyped_storage storage_offset is_inference __hash__ "
                    "is_same_size type_as is_signed backward retain_grad share_memory_ cpu get_device is_tensor "
                    "is_pinned pin_memory".split())  # fmt: skip
NO_GRADIENT = frozenset(
    "detach zeros_like ones_like empty_like full_like eq ne lt le gt ge isnan isinf isfinite sign zero_".split()
)
EXTREMES = {"max": ("MAX", -math.inf), "amax": ("MAX", -math.inf), "min": ("MIN", math.inf), "amin": ("MIN", math.inf)}


def called(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function of DTensors.  Raises NotImplementedError where it needs more than the parts."""
    name = func.__name__
    if name in ("__get__", "__set__", "__delete__"):
        return attribute(func, args)
    short = name.removeprefix("_foreach_")
    plain = short if short.endswith("__") else short.removesuffix("_")
    if name in SPECIAL:
        return SPECIAL[name](args, kwargs)
    if name in PLAINLY:
        return unasked(func, *args, **kwargs)
    if func.__module__.endswith(".nn.init"):  # it calls methods, which are asked for in turn
        return func.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]
    found = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, DTensor)]
    if all(isinstance(p, Replicate) for x in found for p in x._spec.placements):
        return by_parts(func, args, kwargs, found, replicated=True)
    if name in RANDOM:
        return random(func, args, kwargs)
    if plain in COMPOSED or plain in pointwise():
        return by_parts(func, args, kwargs, found)
    if name in LIKE:
        made = by_parts(tensor_functions("empty_like"), args[:1], kwargs, found)
        return random(tensor_functions(LIKE[name]), (made,), {})
    refuse(func, found)


@functools.cache
def pointwise() -> frozenset[str]:
    """The public names of operators of each element by itself."""
    return frozenset(name for op in OPS.values() if op.pointwise for name in (op.shown, op.name, *op.aliases))


def tensor_functions(name: str) -> Any:
    """A function of tensors by its name."""
    return getattr(Tensor, name, None) or getattr(functions, name)


@functools.cache
def name_of(func: Any) -> str:
    """The public name of a function: torch.Tensor.add."""
    return resolve_name(func) or func.__name__


def refuse(func: Callable[..., Any], found: list[Any]) -> NoReturn:
    """Raise NotImplementedError for a function that is not defined for these DTensors."""
    name = name_of(func)
    more = " Parameters of a module that is sharded are whole while that module runs: call the module." if any(
        isinstance(x, ShardedParameter) for x in found) else ""  # fmt: skip
    raise NotImplementedError(
        f"{name} of {', '.join(described(x) for x in found)}: expected a function of each element by itself, of "
        "DTensors that lie alike, or a norm, sum, mean or extreme of all elements. Use full_tensor() for the "
        f"whole, to_local() for this process's part.{more}"
    )


READ = frozenset(
    "grad requires_grad is_leaf grad_fn dtype device layout itemsize ndim _version output_nr retains_grad is_cuda is_cpu "
    "is_sparse is_meta is_quantized is_mkldnn is_nested is_mps is_xpu names _base _is_view is_mtia is_maia is_vulkan "
    "is_ipu is_xla is_sparse_csr _backward_hooks".split()
)


def attribute(func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Read, set or delete an attribute that is none of DTensor's own."""
    name = name_of(func).split(".")[-2]
    if name not in READ:
        refuse(func, [args[0]])
    return unasked(func, *args)


def by_parts(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any], replicated: bool = False
) -> Any:
    """Call a function on what this process has."""
    if func.__name__.rstrip("_") not in NO_GRADIENT:
        no_gradient_lost(name_of(func), found)
    spec = common(func, found)
    if not replicated:
        check_plain(func, args, kwargs, spec, found)
    result = func(*tree_map(local_of, args), **tree_map(local_of, kwargs))
    local = spec.local_shape()
    kept = {id(x._held): x for x in found}

    def back(r: Tensor) -> Any:
        if not isinstance(r, Tensor):
            return r
        same = kept.get(id(r._held))
        if same is not None and func.__name__ != "detach":
            return same
        if replicated:
            return spread(r, Spec(spec.mesh, spec.placements, tuple(r.shape)))
        return spread(r, spec) if tuple(r._held.shape) == local else r

    leaves, tree = tree_flatten(result)
    return tree_unflatten([back(r) for r in leaves], tree)


def common(func: Callable[..., Any], found: list[Any]) -> Spec:
    """How the DTensors of a call lie, but for those that are one number on all processes.  Raises as `refuse` where they differ."""
    specs = [
        x._spec for x in found if not (x._held.size == 1 and all(isinstance(p, Replicate) for p in x._spec.placements))
    ]
    if not specs:
        return found[0]._spec  # type: ignore[no-any-return]
    for one in specs:
        if one.mesh != specs[0].mesh or one.placements != specs[0].placements or (
            one.shape != specs[0].shape and not func.__name__.startswith("_foreach_")):  # fmt: skip
            refuse(func, found)
    if any(isinstance(p, Partial) for p in specs[0].placements):
        refuse(func, found)
    return specs[0]  # type: ignore[no-any-return]


def check_plain(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], spec: Spec,
                found: list[Any]) -> None:  # fmt: skip
    """Raise as `refuse` for tensors of several elements that are no DTensors: of what part they are nobody knows."""
    for x in tree_flatten((args, kwargs))[0]:
        if isinstance(x, Tensor) and not isinstance(x, DTensor) and x.numel() != 1:
            refuse(func, found)


def random(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill a DTensor as the whole would be filled: all processes draw alike where their generators stand alike."""
    x = args[0]
    no_gradient_lost(func.__name__, [x])
    whole = wrap(np.empty(x._spec.shape, x._held.dtype))
    func(whole, *args[1:], **kwargs)
    return filled(x, x._spec.cut(whole._array))


def filled(x: Any, array: Array) -> Any:
    """Write this process's part of a DTensor."""
    settle(x._held)
    x._held[...] = array
    bump(x)
    return x


def copied(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x.copy_(y)``: of a DTensor, or of a whole tensor that every process has."""
    x, y = args[0], args[1] if len(args) > 1 else kwargs["src" if "src" in kwargs else "other"]
    no_gradient_lost("copy_", [x, y])
    if not isinstance(x, DTensor):
        raise NotImplementedError(f"copy_ of {described(y)} into a tensor: give it full_tensor() or to_local()")
    if not isinstance(y, DTensor):
        return filled(x, x._spec.cut(np.broadcast_to(y._array, x._spec.shape)))
    if y._spec != x._spec:
        y = y.redistribute(x._spec.mesh, x._spec.placements)
    return filled(x, y._array)


def number(x: Any, value: Array, dtype: Any = None) -> Any:
    """A number that all processes have, as a DTensor of no dimensions."""
    spec = Spec(x._spec.mesh, tuple(Replicate() for _ in x._spec.placements), ())
    return spread(wrap(np.asarray(value, x._held.dtype if dtype is None else dtype)), spec)


def over_all(x: Any, array: Array, op: str) -> Any:
    """What processes have of one number, added up, or what `op` says, along the dimensions of the mesh that share the tensor."""
    for d, one in enumerate(x._spec.placements):
        if isinstance(one, Shard):
            array = reduced(array, op, x._spec.mesh.get_group(d))
    return array


def whole_only(name: str, x: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise NotImplementedError for a reduction along some dimensions."""
    no_gradient_lost(name, [x])
    if args or any(v is not None and v is not False for k, v in kwargs.items() if k != "dtype"):
        raise NotImplementedError(f"{name} of {described(x)}: expected no dim: along dimensions, reduce full_tensor()")


def summed(args: tuple[Any, ...], kwargs: dict[str, Any], mean: bool = False) -> Any:
    """``x.sum()`` and ``x.mean()``."""
    x = args[0]
    whole_only("mean" if mean else "sum", x, args[1:], kwargs)
    total = over_all(x, np.asarray(local_of(x).double().sum()._array), "sum")
    return number(x, total / max(math.prod(x._spec.shape), 1) if mean else total)


def extreme(name: str) -> Callable[..., Any]:
    """``x.max()`` and its like."""

    def found(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x = args[0]
        whole_only(name, x, args[1:], kwargs)
        op, start = EXTREMES[name]
        mine = getattr(local_of(x), name)()._array.astype(np.float64) if x._held.size else np.array(start)
        return number(x, over_all(x, np.asarray(mine), op.lower()))

    return found


def either(name: str) -> Callable[..., Any]:
    """``x.any()`` and ``x.all()``."""

    def found(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x = args[0]
        whole_only(name, x, args[1:], kwargs)
        mine = np.asarray(getattr(local_of(x), name)()._array, np.uint8)
        return number(x, over_all(x, mine, "max" if name == "any" else "min"), np.bool_)

    return found


def norm(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The norm of all elements."""
    x, order = args[0], args[1] if len(args) > 1 else kwargs.get("p", kwargs.get("ord", 2.0))
    if not isinstance(x, DTensor):
        refuse(tensor_functions("norm"), [y for y in args if isinstance(y, DTensor)])
    whole_only("norm", x, args[2:], {k: v for k, v in kwargs.items() if k not in ("p", "ord")})
    (value,) = norms_over([x], 2.0 if order in (None, "fro") else float(order))
    return number(x, value)


def all_norms(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch._foreach_norm``."""
    tensors, order = args[0], args[1] if len(args) > 1 else kwargs.get("ord", 2.0)
    return tuple(number(x, value) if x._spread else wrap(np.asarray(value, x._held.dtype))
                 for x, value in zip(tensors, norms_over(tensors, float(order)), strict=True))  # fmt: skip


def size(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x.size()``, ``x.size(dim)``."""
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    return args[0].shape if dim is None else args[0].shape[dim]


def numel(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Elements of the whole."""
    return math.prod(args[0]._spec.shape)


def stride(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Strides of the whole, in C order."""
    shape = args[0]._spec.shape
    found = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return found[args[1]] if len(args) > 1 else found


def item(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The number of a DTensor of one element, which all processes have."""
    x = args[0]
    return wrap(x._spec.whole(x._array)).item() if numel(args, {}) == 1 else alias(x).item()


def length(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """``len(x)``."""
    if not args[0]._spec.shape:
        raise TypeError("len() of a 0-d tensor")
    return args[0]._spec.shape[0]  # type: ignore[no-any-return]


def shown(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The text of a DTensor."""
    return repr(args[0])


SPECIAL: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {
    "copy_": copied, "sum": summed, "mean": lambda a, k: summed(a, k, True), "norm": norm, "linalg_vector_norm": norm,
    "vector_norm": norm, "linalg_norm": norm, "_foreach_norm": all_norms, "size": size, "numel": numel, "nelement": numel,
    "stride": stride, "item": item, "__float__": lambda a, k: float(item(a, k)), "__bool__": lambda a, k: bool(item(a, k)),
    "__len__": length, "__format__": shown, "any": either("any"), "all": either("all"),
    **{name: extreme(name) for name in EXTREMES},
}  # fmt: skip
