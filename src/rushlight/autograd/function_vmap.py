"""Custom functions under vmap: their `vmap` staticmethod, or a rule made from forward, setup_context and backward.

Two graphs are served. That of all samples together is recorded by what runs on their tensors: the user's vmap, or a
function made of the user's methods, each of which runs under the level. That of the samples gets a node with a context
of its own, where a batched argument requires grad.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from rushlight.autograd.function import Function, FunctionCtx, finish
from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import broadcast_to, tree_flatten, tree_map, tree_unflatten
from rushlight.engine.node import edge_of
from rushlight.ops.reduce.sums import sum_op
from rushlight.ops.shape.reshape import broadcast, permute_op
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import in_front

MORE = "The page on vmap in the documentation shows how."


class VmapInfo(NamedTuple):
    """What the vmap staticmethod of a custom function is told: the number of samples, and vmap's `randomness`."""

    batch_size: int
    randomness: str


def apply(level: Any, cls: type[Any], args: tuple[Any, ...]) -> Any:
    """Run a custom function on arguments some of which are batched at `level`."""
    check(cls)
    outside = modes.levels[: modes.levels.index(level)]
    whole = tree_map(lambda x: level.whole(x)[0] if isinstance(x, Tensor) else x, args)
    dims = tree_map(lambda x: level.whole(x)[1] if isinstance(x, Tensor) else None, args)
    with Setting("levels", outside):
        if cls.generate_vmap_rule:
            outputs, out_dims = generated(level, cls, whole, dims)
        else:
            info = VmapInfo(level.size, level.randomness)
            outputs, out_dims = checked(cls, cls.vmap(info, dims, *whole))
    leaves, spec = tree_flatten(outputs)
    found = [sample(level, t, d, args) for t, d in zip(leaves, out_dims, strict=True)]
    return recorded(level, cls, args, tree_unflatten(found, spec))


def check(cls: type[Any]) -> None:
    """Raise RuntimeError for functions that vmap cannot run."""
    own = cls.vmap is not Function.vmap
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod: {cls.__name__} does not. {MORE}"
        )
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {MORE}"
        )
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            f"vmap staticmethod or set generate_vmap_rule=True. {MORE}"
        )


def checked(cls: Any, result: Any) -> tuple[Any, list[Any]]:
    """What a vmap staticmethod returned: the outputs, and the dimension of the samples in each of their leaves."""
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
        raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                           f"compatible with the output. Got {got} instead ({cls.__name__})")  # fmt: skip
    outputs, out_dims = result
    spec = tree_flatten(outputs)[1]
    dims = broadcast_to(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]!r} but output has structure {spec!r} ({cls.__name__}). {MORE}"
        )
    for d in dims:
        if d is not None and not isinstance(d, int):
            raise TypeError(f"{cls.__name__}.vmap: each of out_dims must be an int or None, got {d!r}")
    return outputs, dims


def sample(level: Any, t: Any, dim: Any, args: tuple[Any, ...]) -> Any:
    """One output as a batched tensor; the argument itself where it is that, changed in place."""
    if not isinstance(t, Tensor):
        return t
    for x in args:
        part = level.part(x)
        if part is not None and part.tensor is t and part.dim == dim:
            return x
    if dim is None:
        return t
    if not -t.ndim <= dim < t.ndim or t.shape[dim] != level.size:
        raise RuntimeError(f"vmap: a custom function returned an output of shape {list(t.shape)} with out_dim={dim}, but "
                           f"that dimension must run over the {level.size} samples")  # fmt: skip
    return level.batched(t, dim % t.ndim)


def recorded(level: Any, cls: type[Any], args: tuple[Any, ...], output: object) -> Any:
    """The output, in the graph of the samples where a batched argument requires grad."""
    edges = tuple(edge_of(x) if isinstance(x, Tensor) and level.part(x) is not None else None for x in args)
    if not modes.grad or all(e is None for e in edges):
        return output
    ctx = FunctionCtx(cls, tuple(e is not None for e in edges))
    node = cls._node_class(ctx, edges)
    with Setting("grad", False):
        cls.setup_context(ctx, args, output)
    return finish(node, args, output)


# A rule made from the user's methods ---------------------------------------------------------------


class Call:
    """One call of a function made for `cls`: what turns its tensors into samples and back."""

    def __init__(self, level: Any, cls: Any, dims: Any):
        self.level, self.cls, self.dims = level, cls, tree_flatten(dims)[0]
        self.spec: Any = None  # of the arguments
        self.out_spec: Any = None
        self.out_dims: list[Any] = []
        self.saved_dims: list[Any] = []

    def active(self) -> Setting:
        """The level, active again."""
        return Setting("levels", (*modes.levels, self.level))

    def samples(self, leaves: Iterable[Any]) -> Any:
        """The arguments as the user's methods see them."""
        made = [x if d is None else self.level.batched(x, d) for x, d in zip(leaves, self.dims, strict=True)]
        return tree_unflatten(made, self.spec)

    def outputs(self, leaves: Iterable[Any]) -> Any:
        """The outputs as the user's methods see them."""
        made = [t if d is None else self.level.batched(t, d) for t, d in zip(leaves, self.out_dims, strict=True)]
        return tree_unflatten(made, self.out_spec)


def generated(level: object, cls: type[Any], whole: object, dims: object) -> tuple[Any, list[Any]]:
    """The outputs on the tensors of all samples, and the dimension of the samples in each."""
    call = Call(level, cls, dims)
    leaves, call.spec = tree_flatten(whole)
    if cls.__dict__.get("_vmapped") is None:
        cls._vmapped = type(f"Vmapped{cls.__name__}", (Vmapped,), {})
    found = cls._vmapped.apply(call, *leaves)
    return tree_unflatten(found, call.out_spec), call.out_dims


class Vmapped(Function):
    """All samples at once, by the methods of a custom function under the level."""

    generate_vmap_rule = True

    @staticmethod
    def forward(call: Call, *leaves: Any) -> Any:
        with call.active():
            output = call.cls.forward(*call.samples(leaves))
        found, call.out_spec = tree_flatten(output)
        pairs = [call.level.whole(t) if isinstance(t, Tensor) else (t, None) for t in found]
        call.out_dims = [d for _, d in pairs]
        return tuple(t for t, _ in pairs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        call, *leaves = inputs
        with call.active():
            given, made = call.samples(leaves), call.outputs(output)
            inner = FunctionCtx(call.cls, tuple(ctx.needs_input_grad[1:]))
            call.cls.setup_context(inner, given, made)
        pairs = [(None, None) if t is None else call.level.whole(t) for t in inner.to_save]
        call.saved_dims = [d for _, d in pairs]
        ctx.save_for_backward(*(t for t, _ in pairs))
        ctx.set_materialize_grads(inner.materialize_grads)
        ctx.mark_dirty(*matching(inner.dirty_tensors, tree_flatten(given)[0], leaves))
        ctx.mark_non_differentiable(*matching(inner.non_differentiable, tree_flatten(made)[0], output))
        inner.to_save = inner.dirty_tensors = inner.non_differentiable = ()
        ctx.inner, ctx.call = inner, call

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call, inner = ctx.call, ctx.inner
        saved = ctx.saved_tensors
        with call.active():
            inner.to_save = tuple(t if d is None else call.level.batched(t, d)
                                  for t, d in zip(saved, call.saved_dims, strict=True))  # fmt: skip
            given = [g if g is None or d is None else call.level.batched(g, d)
                     for g, d in zip(grads, call.out_dims, strict=True)]  # fmt: skip
            try:
                results = call.cls.backward(inner, *given)
            finally:
                inner.to_save = ()
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        return None, *(of_all(call.level, g, d) for g, d in zip(results, call.dims, strict=True))


def matching(wanted: Any, samples: Any, tensors: Any) -> list[Any]:
    """The tensors of all samples for those of `samples` that are among `wanted`."""
    return [t for s, t in zip(samples, tensors, strict=True) if any(s is w for w in wanted)]


def of_all(level: Any, g: Any, dim: Any) -> Any:
    """The gradient of an argument, given that of its samples: summed for one that all samples share."""
    if not isinstance(g, Tensor):
        return g
    tensor, at = level.whole(g)
    if dim is None:
        return tensor if at is None else sum_op(tensor, (at,), False)
    whole = broadcast(tensor, (level.size, *tensor.shape)) if at is None else in_front(tensor, at)
    return whole if dim == 0 else permute_op(whole, (*range(1, dim + 1), 0, *range(dim + 1, whole.ndim)))
