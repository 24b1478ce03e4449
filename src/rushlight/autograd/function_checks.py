"""What custom functions may return and save, and the errors for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.caller import warn
from rushlight.basics.dtypes import is_complex
from rushlight.basics.errors import explained
from rushlight.engine.conform import fits
from rushlight.engine.node import Severed, edge_of
from rushlight.engine.saved import Packed, SavedOutput, SavedTensor, freed
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.autograd.function import FunctionCtx


def check_gradients(ctx: FunctionCtx, results: list[Any], edges: Any, tensors: Sequence[Tensor]) -> list[Any]:
    """What a backward returned, one gradient or None for each argument of forward.

    tensors: which arguments were tensors, None where that is not known. Raises RuntimeError for what does not fit.
    """
    count = len(edges)
    if len(results) > count and all(r is None for r in results[count:]):
        results = results[:count]
    if len(results) != count:
        raise explained(
            RuntimeError(
                f"function {ctx.name()} returned an incorrect number of gradients (expected {count}, got {len(results)})"
            ),
            "gradients-of-a-function",
        )
    for i, r in enumerate(results):
        if r is None:
            continue
        if tensors is not None and not tensors[i]:
            raise RuntimeError(
                f"function {ctx.name()} returned a gradient different than None at position {i + 1}, but the corresponding forward "
                "input was not a Variable"
            )
        if not isinstance(r, Tensor):
            raise RuntimeError(
                f"function {ctx.name()} returned a gradient of type {type(r).__name__} at position {i + 1}: expected Variable or "
                f"None (got {type(r).__name__})"
            )
        edge = edges[i]
        if edge is not None and edge.__class__ is not Severed:  # else it goes nowhere
            check_fits(ctx, i, r, edge)
    return results


def check_saved(values: Any) -> None:
    """Raise TypeError for what is neither a tensor nor None among what a custom function saves for backward."""
    for i, t in enumerate(values):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
            )


def check_fits(ctx: FunctionCtx, i: int, r: Tensor, edge: Any) -> None:
    """Raise RuntimeError unless gradient `i` can be summed to the shape of its argument and is as real as that."""
    like = edge._array if isinstance(edge, Tensor) else edge
    have, shape = r._array.shape, like.shape
    if have != shape and not fits(have, shape):
        raise RuntimeError(
            f"Function {ctx.name()} returned an invalid gradient at index {i} - got {list(have)} but expected shape compatible "
            f"with {list(shape)}"
        )
    if is_complex(r._array.dtype) and not is_complex(like.dtype):
        raise RuntimeError(
            f"Function {ctx.name()} returned an invalid gradient at index {i} - got {r.dtype} but the argument is real: return "
            "its real part"
        )


def check_dirty(ctx: FunctionCtx, args: tuple[Any, ...], outputs: list[Any], recorded: bool) -> tuple[Any, ...]:
    """The arguments that forward changed in place.  Warns of other tensors; raises RuntimeError for what was not returned.

    recorded: whether the call is; then one that is a view must be the only tensor returned.
    """
    dirty = []
    for t in ctx.dirty_tensors:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"mark_dirty can only accept variables, but argument is of type {type(t).__name__}")
        if not any(t is x for x in args):
            warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should "
                "be passed to mark_dirty().",
                UserWarning,
            )
            continue
        if not any(t is x for x in outputs):
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The "
                               "inputs that are modified inplace must all be outputs of the Function.")  # fmt: skip
        dirty.append(t)
    views = [t for t in dirty if t._view is not None and t._held.dtype.kind not in "biu"]
    tracked = [t for t in views if not any(t is x for x in ctx.non_differentiable)]
    if recorded and tracked and len(outputs) > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
            "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
            "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
            "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
            "operations)."
        )
    return tuple(dirty)


class RawSaved(SavedTensor):
    """A place of a custom function's node that keeps a tensor: `register_hooks` says how it is packed and unpacked."""

    __slots__ = ("ctx", "index")

    def __init__(self, ctx: Any, index: int):
        self.ctx, self.index = ctx, index

    def register_hooks(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        """As for nodes of operators."""
        ctx = self.ctx
        if ctx._saved is None:
            freed(ctx)
        entry = ctx._saved[self.index]
        if entry is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        kept, edge, version = entry
        if isinstance(kept, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                "is allowed at a time."
            )
        own = isinstance(kept, SavedOutput)
        tensor = kept.tensor(None) if isinstance(kept, SavedOutput) else kept
        packed = Packed(tensor, ((pack_hook, unpack_hook),), (ctx.name(), "a saved tensor"), own)

        ctx._saved[self.index] = (packed, edge if own else edge_of(tensor), version)


def refuse_composed(cls: type[Any], args: tuple[Any, ...], needed: tuple[Any, ...]) -> None:
    """Raise NotImplementedError for a sparse or nested argument that requires grad: a node has no edge to its values."""
    for i, (x, wanted) in enumerate(zip(args, needed, strict=True)):
        if wanted and (x.is_nested or x.is_sparse or x.is_sparse_csr):
            kind, dense = ("nested", "to_padded_tensor()") if x.is_nested else ("sparse", "to_dense()")
            raise NotImplementedError(
                f"{cls.__name__}.apply(): argument {i} is a {kind} tensor that requires grad, which would get no gradient: "
                f"give its values(), or {dense}"
            )
