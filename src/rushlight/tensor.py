"""Tensor: an array, and its place in the graph.  It knows no operator: `ops` attaches those."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from numbers import Number
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.devices import CPU, device
from rushlight.basics.errors import explained
from rushlight.basics.handles import Hooks, RemovableHandle
from rushlight.basics.makers import maker
from rushlight.basics.size import Size
from rushlight.basics.state import modes, special
from rushlight.signs import turn
from rushlight.storage import Reshaped, Storage, bump, move, offset_of, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.basics.arrays import Array
    from rushlight.stubs.methods import TensorMethods
else:
    TensorMethods = object  # `ops` and `autograd` attach them


class _Leaf:
    """The edge of a tensor that requires grad and was computed by nothing: gradients gather in its `.grad`."""

    def __repr__(self) -> str:
        return "LEAF"


LEAF: Any = _Leaf()
new_tuple: Any = tuple.__new__
ITSELF: Any = object()  # in `Tensor._dual_base`: this tensor's tangents are its own, though its memory is another's


class ViewInfo:
    """How a view came from its base: the operators to replay, and the version of the base that its edge knows.

    parent: the same of the tensor that this is a view of, None if that is the base; op, statics, position: the operator
    that made it, its arguments, and which of its results it is. array: the base's array when the chain of views began,
    which `transpose_` and its like replace. kind: "" or why in-place changes are refused: "no_grad", "inference",
    "multi", "function", "as it is" (of a custom Function that was not recorded).
    """

    __slots__ = ("array", "base", "kind", "op", "parent", "position", "statics", "version")
    array: Any
    base: Tensor
    kind: str
    op: Any
    parent: ViewInfo | None
    position: int | None
    statics: tuple[Any, ...]
    version: int


class Tensor(TensorMethods):
    """A multi-dimensional array whose operators can be differentiated.

    Slots: `_array` the memory, of tensors with bits what they show of it (`_held` is always the memory); `_edge` None,
    LEAF, or the graph's node (or port of a node) that computed it; `_storage` and `_view` are None until something
    else shares the memory.
    """

    __slots__ = ("__dict__", "__weakref__", "_array", "_edge", "_storage", "_view")
    _array: Any
    _held: Any  # the slot `_array` by another name, which `signs` leaves as it is
    _edge: Any
    _storage: Any
    _view: Any
    __array_priority__ = 1000
    _grad: Any = None
    _hooks: Any = None  # of a leaf: run on each gradient before it is accumulated
    _post_hooks: Any = None  # of a leaf: run after accumulation
    _fresh = False  # of a leaf whose hooks run: whether its gradient was made now, so that nobody else holds it
    _awaited = False  # of a leaf: whether one of them waits for what the gradient is to become: see `accumulate.LATER`
    _accumulator: Any = None  # of a leaf: weak reference to its AccumulateGrad node
    _node_hooks: Any = None  # of a leaf: hooks registered on that node; they live as long as the leaf
    _retains: Any = None
    _inference = False
    _bits = 0  # CONJ, NEG: see `signs`
    _unusual = False  # whether it was made in inference mode or has bits: nothing for the paths that make views quickly
    _elsewhere = False  # of a class: whether the memory may be on disk: see `memory.paged`
    _spread = False  # of a class: whether its memory is one process's part of it: see `distributed.tensor`
    _meta = False  # of a class: whether there is no memory, on the device meta: see `dispatch.meta`
    _dispatched = False  # of a class: whether its `__torch_dispatch__` runs operators: see `ops.python.unread`
    _asked: Any = None  # of such a class: what runs in place of public functions that are no operators, by their names
    _place: Any = None  # of such a tensor without memory: the device that it says it is on
    _tangents: Any = None  # {level: tangent}
    _dual_base: Any = (
        None  # the tensor whose tangents those of this view are views of, where that is not the view's base
    )
    _stamp = 0  # of such a base: how often its tangents were replaced; of a view: the stamp of those that it has
    _reshaped: Any = None  # set by engine.views: notes that `.data` has another shape
    _refresh: Any = None  # set by engine.views: brings the edge of a view up to date

    if TYPE_CHECKING:  # what `ops` and `autograd` attach
        _backward_hooks: Any  # the dictionary of hooks that old code reads
        _on_page: Any  # of classes whose memory may be elsewhere
        _on_disk: Any

        def __setattr__(self, name: str, value: object) -> None: ...
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]: ...
        def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
        def __add__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rshift__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rand__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __ror__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rxor__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __pow__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Tensor | complex) -> Tensor: ...
        def __rmatmul__(self, other: Tensor | complex) -> Tensor: ...
        def __and__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __or__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __xor__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __lt__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __le__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __gt__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __ge__(self, other: Tensor | Array | complex) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __index__(self) -> int: ...
        def __complex__(self) -> complex: ...

    # Identity and memory ---------------------------------------------------------------------------

    __hash__ = object.__hash__

    @property
    def shape(self) -> Size:
        """Sizes of the dimensions."""
        return new_tuple(Size, self._held.shape)  # type: ignore[no-any-return]  # of integers already: nothing to look at

    @property
    def dtype(self) -> dtypes.dtype:
        """Type of the elements."""
        return dtypes.of(self._held.dtype)

    @property
    def device(self) -> device:
        """Where the elements are."""
        return self._place or CPU

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self._held.ndim)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._held.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return int(self._held.nbytes)

    @property
    def layout(self) -> Any:
        """Always strided."""
        return strided

    @property
    def _version(self) -> int:
        """How often the memory was changed in place.  Raises RuntimeError for a tensor of inference mode, which counts nothing."""
        if self._storage is None and not self._inference:
            return 0
        return storage_of(self).changes

    def _bump_version(self) -> None:
        bump(self)

    def untyped_storage(self) -> Storage:
        """The bytes shared with views."""
        return storage_of(shown(self))

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self._held.__array_interface__["data"][0]) if self._held.size else 0

    def storage_offset(self) -> int:
        """Elements between the start of the storage and this tensor's first element."""
        return offset_of(self._held)

    # Place in the graph ----------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor."""
        return self._edge is not None or (self._view is not None and self._view.base._edge is not None
                                          and self._held.dtype.kind not in "biu")  # fmt: skip

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool: it cannot be deleted, set it to False")

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise RuntimeError(f"requires_grad must be a bool, got {type(value).__name__}")
        if not self._unrecorded() and not self.is_leaf:
            _refuse_flag(value)
        self.requires_grad_(value)

    def _unrecorded(self) -> bool:
        """Whether this is a view made where nothing is recorded: a leaf whatever becomes of its base."""
        return (self._edge is None or self._edge is LEAF) and self._view is not None and bool(self._view.kind)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether gradients are accumulated in `.grad` of this leaf, in place.

        A view that was not recorded, of what requires grad, or does by now, becomes a leaf of its own. Raises RuntimeError
        for tensors that are not leaves or not of a floating-point or complex dtype.
        """
        if requires_grad is not True and requires_grad is not False and not isinstance(requires_grad, np.bool_):
            raise TypeError("requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                            f"{type(requires_grad).__name__}")  # fmt: skip
        if requires_grad:
            if self._view is not None and not self._view.kind:  # else it is told where it is used
                Tensor._refresh(self)
            if self._edge is not None:
                return self
            if self._held.dtype.kind in "biu":
                raise RuntimeError(
                    f"only Tensors of floating point and complex dtype can require gradients, got {self.dtype}"
                )
            if self._inference and not modes.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed: clone() it."
                )
            for level in reversed(modes.levels):
                if level.lift(self):
                    break
            self._edge = LEAF
        elif self._unrecorded():
            self._edge = None  # that it still requires grad is of its base
        elif not self.is_leaf:
            _refuse_flag(requires_grad)
        else:
            self._edge = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator computed this tensor."""
        if self._view is not None:
            Tensor._refresh(self)
        edge = self._edge  # a leaf itself is the edge of what saved-tensor hooks made of that leaf
        return edge is None or edge is LEAF or isinstance(edge, Tensor)

    @property
    def grad_fn(self) -> Any:
        """The node that computed this tensor, or None for leaves."""
        if self._view is not None:
            Tensor._refresh(self)
        edge = self._edge
        node = None if edge is None or edge is LEAF else getattr(edge, "node", None)  # of a leaf seen by a level: none
        return None if node is None or node.severed else node

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        edge = self._edge
        return 0 if edge is None or edge is LEAF else getattr(edge, "nr", 0)

    @property
    def _base(self) -> object:
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    def is_inference(self) -> bool:
        """Whether this tensor was made in inference mode."""
        return self._inference

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient: None, or a tensor of this one's shape and dtype."""
        if self._grad is None and self._retains is None and not _without_history(self):
            _warn_non_leaf_grad()
        return self._grad  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            _check_grad(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self) -> dtypes.dtype:
        """The dtype of this leaf's gradient: its own; another is refused.  Raises RuntimeError where it is no leaf."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype: expected a leaf, got a tensor that an operator made")
        return self.dtype

    @grad_dtype.setter
    def grad_dtype(self, value: dtypes.dtype | None) -> None:
        if value is not self.grad_dtype:
            raise NotImplementedError(
                f"grad_dtype: rushlight's gradients have the dtype of their tensor, {self.dtype}; got {value}. A step in backward "
                "(torch.optim.in_backward) frees each gradient before the next is made, which saves more than 16 bits"
            )

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph, with a version counter of its own.  Inside `vmap` RuntimeError, as in PyTorch."""
        if self._held.__class__ is np.ndarray and not self._inference:
            return twin(shown(self))
        if getattr(self._held, "samples", False):
            raise RuntimeError("accessing `data` under vmap transform is not allowed")
        return self.detach()

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if getattr(self._held, "samples", False):
            raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")
        if self._edge is not None and value._held.dtype.kind in "biu":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype, got "
                               f"{value.dtype}")  # fmt: skip
        if value._meta:
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
                               "tensor type: one is on the device meta, and has no memory")  # fmt: skip
        if self._view is not None:
            Tensor._refresh(self)
            self._view = None
        alike = self._held.shape == value._held.shape and not isinstance(self._storage, Reshaped)
        former = None if alike or self._inference or value._inference else (storage_of(self), self._held.shape)
        move(self, value._held, value._inference)
        turn(self, value._bits)
        if former is not None:
            Tensor._reshaped(self, former)

    def _add_hook(self, slot: str, hook: Callable[..., Any]) -> RemovableHandle:
        hooks = getattr(self, slot)
        if hooks is None:
            hooks = Hooks()
            setattr(self, slot, hooks)
        return hooks.add(hook)  # type: ignore[no-any-return]

    def _weak(self) -> object:
        return weakref.ref(self)

    def __len__(self) -> int:
        if self._held.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return len(self._held)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            what = "no values" if self._array.size == 0 else "more than one value"
            raise explained(RuntimeError(f"Boolean value of Tensor with {what} is ambiguous"), "more-than-one-value")
        if modes.levels:
            look(self._array)
        if self._dispatched and special.classes.owns((self,)):
            return bool(special.classes.called("_local_scalar_dense", self))
        return bool(self._array.reshape(())[()])

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, (Tensor, Number, np.bool_)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
            )
        value: Any = element._array if isinstance(element, Tensor) else element
        try:
            return bool((self._array == value).any())
        except ValueError:
            raise RuntimeError(f"Tensor.__contains__: the size of the element {list(value.shape)} does not broadcast to "
                               f"the tensor's {list(self._array.shape)}") from None  # fmt: skip


def look(array: Array) -> None:
    """Tell a rehearsal, which does not compute, that a program reads values."""
    for level in modes.levels:
        if level.dry:
            level.looked(array)


def _refuse_flag(value: bool) -> NoReturn:
    way = " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    words = "you can only change requires_grad flags of leaf variables." + ("" if value else way)
    raise explained(RuntimeError(words), "requires-grad-of-a-result")


def _check_grad(tensor: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if (value._meta or tensor._meta) and value.device != tensor.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
            f"'{tensor.device.type}': both must be on one device"
        )
    if value._held.shape != tensor._held.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(tensor.shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )
    if value._held.dtype != tensor._held.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with grad_dtype '{tensor.dtype}'. The "
            "gradient must match the tensor's dtype"
        )


def _without_history(t: Tensor) -> bool:
    """Whether a tensor is a leaf, or a view whose history was lost by a change of its base."""
    try:
        return t.is_leaf
    except RuntimeError:
        return True


def _warn_non_leaf_grad() -> None:
    caller.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you want the gradient of a non-leaf Tensor, call .retain_grad() on "
        "it before backward."
    )


Tensor._held = Tensor.__dict__["_array"]


class layout:
    """How elements lie in memory."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:  # copies are the layout itself
        return self.name


strided, jagged = layout("strided"), layout("jagged")
sparse_coo, sparse_csr, sparse_csc = layout("sparse_coo"), layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
_new = object.__new__
bare = maker(Tensor)


def as_array(x: Array) -> Array:
    """`x` as an array; what a level interprets in place of one is left as it is."""
    if getattr(x, "interpreted", False):
        return x
    if getattr(x, "nowhere", False):
        why = getattr(x, "why", "")
        raise NotImplementedError(f"a part of a tensor without values was taken as values: {why}")
    return np.asarray(x)


def wrap(array: Any) -> Tensor:
    """A tensor on `array`, outside the graph.  array: (*) of a supported dtype, not copied."""
    t = bare()
    t._array = array if array.__class__ is np.ndarray else as_array(array)
    t._edge = t._storage = t._view = None
    return t


def steady_node(tensor: Tensor) -> tuple[Any, Tensor] | None:
    """The node that made a tensor or what it is a view of, and that, where its gradient is to stay though that changes."""
    result: Tensor = tensor if tensor._view is None else tensor._view.base
    edge: Any = result._edge
    if edge is None or not getattr(edge, "steady_out", False):  # a leaf that hooks unpacked is its own edge
        return None
    return edge, result


def shown(tensor: Tensor) -> Tensor:
    """A tensor whose memory is about to be shown outside of the graph: its node wants to know when that changes there."""
    found = steady_node(tensor)
    if found is not None:
        found[0].watch_result(found[1])
    return tensor


def twin(tensor: Tensor) -> Tensor:
    """A tensor that shows the same of the same memory, outside the graph, with a version counter of its own."""
    if tensor._dispatched and special.classes.owns((tensor,)):
        return special.classes.detached(tensor)  # type: ignore[no-any-return]
    t = wrap(tensor._held)
    return turn(t, tensor._bits) if tensor._bits else t


def alias(tensor: Tensor, cls: type[Any] = Tensor) -> Any:
    """A leaf of class `cls` that shows the same of the memory of `tensor`, sharing its version counter."""
    cls, held = tensor._on_page(cls) if tensor._elsewhere else (cls, tensor._held)
    t = _new(cls)
    t._array, t._edge, t._view = held, None, None
    if tensor._meta:
        special.meta.note(t)
    elif cls._dispatched:
        special.classes.note(t)
    t._storage = storage_of(tensor)
    if tensor._inference:
        t._inference = t._unusual = True
    return turn(t, tensor._bits) if tensor._bits else t
