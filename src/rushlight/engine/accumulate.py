"""What happens when the gradient of a leaf is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from sys import getrefcount
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.eights import refuse
from rushlight.basics.handles import Hooks, RemovableHandle
from rushlight.basics.state import modes, special
from rushlight.engine.conform import Holders, is_dense, owns_memory, tensor_functions
from rushlight.engine.rows import Rows
from rushlight.kernels.pointwise.copies import LARGE, copied, move
from rushlight.overrides.protocol import users
from rushlight.signs import to_hold
from rushlight.storage import bump, dependents, refuse_inference, settle
from rushlight.tensor import LEAF, Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.engine.node import Node

# One of them is held while a leaf's gradient is replaced or added to: one for each leaf would cost memory.  Of the same thread
# again, where memory that a gradient is added to is wanted elsewhere first.
LOCKS = tuple(RLock() for _ in range(64))
FIRST = RLock()  # held for the instant in which a leaf gets its first gradient


def same_layout(g: Array, like: Array) -> bool:
    """Whether `g` has the layout that a gradient of `like` should have: its strides if it is dense, else C order."""
    if g.flags.c_contiguous:
        return bool(like.flags.c_contiguous or not is_dense(like))
    return g.strides == like.strides and is_dense(like)


BFLOAT16 = dtypes.bfloat16.numpy.num


def owned_copy(g: Array, like: Array) -> Array:
    """`g` itself where only the run holds it and its layout is right, else a copy laid out as `like`."""
    if getrefcount(g) <= Holders.leaf and g.flags.writeable and owns_memory(g):
        if g.flags.c_contiguous and like.flags.c_contiguous:  # the usual case of what is asked next
            return g
        if same_layout(g, like):
            return g
    if like.flags.c_contiguous or not is_dense(like):
        if g.nbytes >= LARGE:
            return copied(g)
        if g.dtype.num == BFLOAT16:  # numbers that NumPy copies one by one
            return np.array(g.view(np.uint16), order="C", subok=False).view(g.dtype)
        return np.array(g, order="C", subok=False)
    return move(g, np.empty_like(like))


def hooked(leaf: Tensor, g: Tensor) -> Tensor:
    """The gradient after the leaf's hooks: a tensor."""
    for hook in tuple(leaf._hooks.values()):
        result = called(hook, leaf, g)
        if result is not None:
            g = check_hook_result(result, g, hook)
    return g


def missed(leaf: Tensor) -> None:
    """No gradient comes to a leaf that was waiting for one: tell the hooks that count those of several tensors."""
    for hook in tuple(leaf._hooks.values()):
        if getattr(hook, "counts_none", False):
            called(hook, leaf, None)


def described(hook: Callable[..., Any]) -> str:
    """A hook's name and the line where it is defined."""
    code = getattr(hook, "__code__", None)
    where = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
    return f"{getattr(hook, '__name__', None) or repr(hook)!r}{where}"


def note_hook(error: BaseException, hook: Callable[..., Any], what: str, node: Node | None = None) -> None:
    """Add to an error in a hook what the hook ran for."""
    error.add_note(f"This happened in the hook {described(hook)}, which ran for {what}.")
    trace = None if node is None or node.extra is None else node.extra.traceback
    if trace:
        error.add_note(f"That operator was called at:\n{trace}")


def check_hook_result(result: object, g: Tensor, hook: Callable[..., Any]) -> Tensor:
    """The gradient that a hook returned instead of `g`."""
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Tensor, but hook returned {type(result).__name__!r}: hook {described(hook)}")
    if g is not None and result._array.shape != g._array.shape:
        raise RuntimeError(
            f"hook {described(hook)} has changed the size of value: got {list(result.shape)}, expected {list(g.shape)}"
        )
    if g is not None and result._array.dtype != g._array.dtype:
        raise RuntimeError(
            f"hook {described(hook)} has changed the type of value: got {result.dtype}, expected {g.dtype}"
        )
    return result


def checked(result: Tensor | tuple[Any, ...], grads: list[Any], hook: Callable[..., Any]) -> list[Any]:
    """What a hook returned, one gradient for each it was given."""
    if not isinstance(result, (tuple, list)):
        raise TypeError(f"expected tuple, but hook returned {type(result).__name__!r}: hook {described(hook)}")
    if len(result) != len(grads):
        raise RuntimeError(f"hook {described(hook)} has returned an incorrect number of values (got {len(result)}, but "
                           f"expected {len(grads)})")  # fmt: skip
    return [new if new is None else check_hook_result(new, old, hook) for new, old in zip(result, grads, strict=True)]


def accumulate_array(leaf: Tensor, g: Array) -> None:
    """Add the array `g` to `leaf.grad`, stealing or adding in place where possible, and run the leaf's hooks."""
    if leaf._edge is not LEAF and gone(leaf):
        dropped(leaf, wrap(g))
        return
    given = None
    if leaf._hooks or leaf._node_hooks is not None:
        given = prepared(leaf, wrap(g))
        if given is None or given._edge is not None:
            put(leaf, given)
            return
        g = given._array
        if leaf._node_hooks is None or not leaf._node_hooks.post:
            given = None
    fresh = leaf._grad is None
    while not (became(leaf, wrap(owned_copy(g, leaf._array))) if leaf._grad is None else add_in_place(leaf, g)):
        fresh = False  # another thread gave the leaf a gradient, or took it, in between
    del g
    if leaf._post_hooks:
        leaf._fresh = fresh
        accumulated(leaf)
    if given is not None:
        after_node(leaf, given)


def became(leaf: Tensor, g: Tensor) -> bool:
    """Let `g` be the gradient of a leaf that has none.  False if another thread was faster."""
    with FIRST:
        first = leaf._grad is None
        if first:
            leaf._grad = g
    return first


def add_in_place(leaf: Tensor, g: Array) -> bool:
    """Add the array `g` to the gradient that a leaf has, also where that has a graph, which goes on as it is.

    False if it has none any more.
    """
    with LOCKS[id(leaf) >> 6 & 63]:  # threads may send gradients to one leaf
        grad = leaf._grad
        if grad is None:
            return False
        if grad.__class__ is not Tensor and is_sparse(grad):
            leaf._grad = tensor_functions["sparse_total"](grad, wrap(g))
            return True
        refuse_inference(grad)
        if g.itemsize == 1:
            refuse("add", g.dtype)
        if dependents:
            settle(grad._held)
        if grad._bits:
            grad._held[...] = to_hold(grad, grad._array + g)
        else:
            np.add(grad._array, g, out=grad._array)
        bump(grad)  # an operator may have saved it
    return True


def gone(leaf: Tensor) -> bool:
    """Whether a leaf ceased to require grad.  Raises RuntimeError if an in-place change made it an operator's result."""
    if leaf._edge is None:
        return True
    raise RuntimeError(
        "leaf variable has been moved into the graph interior: it was detached and then changed in place by what requires "
        "grad, while a graph still accumulates into it as a leaf"
    )


def dropped(leaf: Tensor, g: Tensor) -> None:
    """Run the hooks of what was a leaf when its gradient was asked for; nobody keeps the gradient."""
    given = prepared(leaf, g)
    if leaf._post_hooks:
        accumulated(leaf)
    if leaf._node_hooks is not None:
        after_node(leaf, given)


def accumulate_tensor(leaf: Tensor, g: Tensor, with_hooks: bool = True) -> None:
    """Add the tensor `g` to `leaf.grad`, recording where grad mode says so, and run the leaf's hooks.

    with_hooks: whether those of the gradient and of the AccumulateGrad run.
    """
    if leaf._edge is not LEAF and gone(leaf):
        dropped(leaf, g)
        return
    if not with_hooks or not (leaf._hooks or leaf._node_hooks is not None):
        add(leaf, g)
    else:
        put(leaf, prepared(leaf, g))


def put(leaf: Tensor, g: Tensor | None) -> None:
    """Add to `leaf.grad` what the hooks before it made of a gradient, and run those after it."""
    if g is not None:
        add(leaf, g)
    if leaf._node_hooks is not None:
        after_node(leaf, g)


def add(leaf: Tensor, g: Tensor) -> None:
    """Add the tensor `g` to `leaf.grad`, out of place where a graph is made, and run the hooks that wait for that."""
    while True:
        former = leaf._grad
        if is_sparse(g) or is_sparse(former):
            with LOCKS[id(leaf) >> 6 & 63]:
                leaf._grad = tensor_functions["sparse_total"](leaf._grad, g)
            break
        if g._dispatched or (former is not None and former._dispatched):
            sole = getrefcount(g) <= Holders.leaf
            total = handed(leaf, former, g, sole)
        elif former is not None:
            total = summed(former, g)
        else:
            # A copy: others hold the gradient too, and `.grad` may be changed in place.
            total = g.clone() if same_layout(g._array, leaf._array) else laid_out(g, leaf._array)
        with LOCKS[id(leaf) >> 6 & 63]:
            if leaf._grad is former:  # else another thread was faster
                leaf._grad = total
                break
    if leaf._post_hooks:
        leaf._fresh = False
        accumulated(leaf)


def summed(former: Tensor, g: Tensor) -> Tensor:
    """The sum of two gradients of a leaf: in the first one's memory, as for arrays, unless a graph is made or vmap holds one."""
    if modes.grad or any(getattr(x._held, "interpreted", False) for x in (former, g)):
        return tensor_functions["add"](former, g)  # type: ignore[no-any-return]
    return former.add_(g)


def handed(leaf: Tensor, former: Tensor | None, g: Tensor, sole: bool) -> Tensor:
    """The gradient of a leaf where classes with `__torch_dispatch__` say what operators do: as PyTorch asks them.

    What the run alone holds (sole) becomes the gradient as it is, if it is laid out so; what others hold, too, is copied; to a
    gradient that is there it is added in place, unless a graph is made.
    """
    if former is not None:
        return tensor_functions["add"](former, g) if modes.grad or not former._dispatched else former.add_(g)
    if modes.grad or not g._dispatched:
        return g.clone()
    held, like = g._held, leaf._held
    if sole and same_layout(held, like):
        return special.classes.detached(g)  # type: ignore[no-any-return]
    return special.classes.copied_as(g, like if is_dense(like) else held)  # type: ignore[no-any-return]


def is_sparse(t: Any) -> bool:
    """Whether a gradient, or None, is a sparse tensor."""
    return Rows.sparse and t is not None and bool(t.is_sparse)


def laid_out(g: Tensor, like: Array) -> Tensor:
    """`g` with the layout that a gradient of `like` should have, by operators that can be differentiated."""
    if not is_dense(like):
        return g.contiguous()
    order = sorted(range(like.ndim), key=lambda i: -like.strides[i])
    return g.permute(order).contiguous().permute([order.index(i) for i in range(like.ndim)])


class NodeHooks:
    """Hooks on the AccumulateGrad of a leaf: they live as long as the leaf."""

    __slots__ = ("post", "pre")

    def __init__(self) -> None:
        self.pre, self.post = Hooks(), Hooks()


def node_hooks(leaf: Tensor) -> NodeHooks:
    """The hooks on a leaf's AccumulateGrad, for one to be added."""
    if leaf._node_hooks is None:
        leaf._node_hooks = NodeHooks()
    return leaf._node_hooks  # type: ignore[no-any-return]


def prepared(leaf: Tensor, g: Tensor) -> Tensor | None:
    """The gradient after the leaf's hooks and the pre-hooks of its AccumulateGrad."""
    if leaf._hooks:
        g = hooked(leaf, g)
    found: Any = g
    for hook in tuple(leaf._node_hooks.pre.values()) if leaf._node_hooks is not None else ():
        result = called(hook, leaf, (found,))
        if result is not None:
            (found,) = checked(result, [found], hook)
    return found  # type: ignore[no-any-return]


LATER: Any = (
    object()
)  # what a hook returns that runs those after it itself, by `resumed`, when the gradient is what they wait for


def resumed(leaf: Tensor, hook: Callable[..., Any]) -> None:
    """Run the hooks behind one that had returned `LATER`, and tell the run that the gradient is complete."""
    hooks = [*leaf._post_hooks.values()]
    leaf._awaited = False
    accumulated(leaf, hooks[hooks.index(hook) + 1 :])
    if leaf._awaited:
        return
    if leaf._node_hooks is not None:
        after_node(leaf, leaf._grad)
    if modes.run is not None:
        modes.run.completed(leaf)


def awaits(leaf: Tensor) -> bool:
    """Whether a hook of a leaf changes its gradient later than it is called."""
    return any(getattr(hook, "defers", False) for hook in (leaf._post_hooks or {}).values())


def accumulated(leaf: Tensor, hooks: Iterable[Callable[..., Any]] | None = None) -> None:
    """Run the hooks that wait for the accumulated gradient."""
    if leaf._awaited:
        leaf._awaited = False  # of a run that failed
    for hook in tuple(leaf._post_hooks.values()) if hooks is None else hooks:
        result = users(hook, leaf)
        if result is LATER:
            leaf._awaited = True
            return
        if result is not None and result is not leaf:
            kind = RuntimeError if isinstance(result, Tensor) else TypeError
            raise kind(f"Tensor post accumulate grad hooks should return None. Got {type(result).__name__} from the hook "
                       f"{described(hook)}.")  # fmt: skip


def after_node(leaf: Tensor, g: Tensor | None) -> None:
    """Run the post-hooks of the leaf's AccumulateGrad, unless the gradient is still to become another: `resumed` does then."""
    if leaf._awaited:
        return
    for hook in tuple(leaf._node_hooks.post.values()):
        result = called(hook, leaf, (), (g,))
        if result is not None:
            checked(result, [], hook)


def called(hook: Callable[..., Any], leaf: Tensor, *args: object) -> Any:
    """The result of a hook for a leaf; an error in it is told so."""
    try:
        return users(hook, *args)
    except Exception as error:
        note_hook(error, hook, f"the gradient of a leaf of shape {list(leaf.shape)}")
        raise


def post_hook(leaf: Tensor, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Register a hook that runs after a gradient was accumulated into `leaf`, behind the others or in front of them."""
    if not leaf.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if leaf._view is not None:
        Tensor._refresh(leaf)
    if leaf._edge is not LEAF:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    handle = leaf._add_hook("_post_hooks", hook)
    if prepend:
        leaf._post_hooks.move_to_end(handle.id, last=False)
    return handle
