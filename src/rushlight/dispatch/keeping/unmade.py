"""Results of large products that nobody has looked at yet, and so are not made.

Logits are the largest result of a language model, and a loss can do with a few rows of them at a time.  So a large product is
given out as a tensor that has a shape, strides and a place in the graph, but no memory: its arrays lie on addresses that are only
reserved.  Who asks for the array has it made, as it would have been at once, and from then on it is a tensor as any other.
Methods that look at shapes alone, or make views, leave it unmade.  `cross_entropy` finds its rows by the strides.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rushlight.basics import events
from rushlight.basics.addresses import reserved
from rushlight.basics.state import modes, special
from rushlight.dispatch.memory_views import view_at
from rushlight.engine.saved import Sparing
from rushlight.overrides.protocol import NOBODY, disguised, here, switched_off
from rushlight.storage import Storage, bytes_before, depend, independent, root_of
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.dispatch.declare import Op

ndarray = np.ndarray
_ARRAY: Any = Tensor.__dict__["_array"]
_ROOT: Any = Storage.__dict__["root"]
_set_class: Any = object.__dict__["__class__"].__set__


class _Outlines(threading.local):
    """of: the product whose outlines this thread is shown in place of arrays."""

    of: Any = None


shown = _Outlines()


class Outlined:
    """Context manager within which this thread is shown the outlines of a product: for what looks at no element."""

    __slots__ = ("former", "product")

    def __init__(self, product: Product):
        self.product = product

    def __enter__(self) -> None:
        self.former, shown.of = shown.of, self.product

    def __exit__(self, *_: object) -> None:
        shown.of = self.former


def outlined(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array without memory behind it.  OSError where there are no addresses."""
    found: Array = np.ndarray(shape, dtype, reserved(math.prod(shape) * dtype.itemsize))
    key = id(found)
    outlines[key] = weakref.ref(found, lambda _: outlines.pop(key, None))
    return found


outlines: dict[int, Any] = {}  # by id: weak references to the arrays that own no memory


def is_outline(array: Array) -> bool:
    """Whether an array is one without memory behind it."""
    found = outlines.get(id(array))
    return found is not None and found() is array


class Product:
    """How a result is made, and who waits for it.

    changed: whether any of them may have, by `.data` perhaps. given: the arrays of its operands: input, weight (a
    class in a row, or in each of the `columns`) and perhaps a bias. forward: makes it of `arrays`, the same or
    copies, which are copied when their memory is about to change. outline: what it will look like.
    of: the product of which this is the result in another dtype, or a copy, until either is made; None of others.
    rows: which rows of that a copy has; None of all. casts: weak references to those that are made of this one so.
    wanted: of which of them gradients are. tensors: weak references to the tensors on it; storage: one to theirs.
    made: the result, once it is; touched: whether a
    loss had done without it by then. waiting: weak references to what is told when it is `made`.
    """

    __slots__ = (
        "__weakref__",
        "arrays",
        "casts",
        "changed",
        "columns",
        "done",
        "forward",
        "given",
        "keys",
        "lock",
        "made",
        "of",
        "outline",
        "rows",
        "storage",
        "tensors",
        "told",
        "waiting",
        "wanted",
    )

    def __init__(
        self,
        forward: Callable[..., Any],
        arrays: tuple[Any, ...],
        shape: tuple[int, ...],
        told: Callable[[], None] | None = None,
        dtype: np.dtype[Any] | None = None,
        of: Product | None = None,
    ):
        """told: called, without arguments, when the result is made after all though a loss had done without; dtype: of the
        result, that of the first array if None."""
        self.outline = outlined(shape, arrays[0].dtype if dtype is None else dtype)
        self.of, self.casts = of, list[Any]()
        self.rows: Array | None = None
        if of is not None:
            of.casts.append(weakref.ref(self))
        self.forward, self.arrays, self.told = forward, arrays, told
        self.wanted: list[bool] = []
        self.waiting: list[Any] = []
        self.given, self.columns, self.changed = arrays, False, False
        self.made: Any = None
        self.done = False
        self.lock = threading.RLock()
        self.tensors: list[Any] = []
        self.storage: Any = None
        self.keys = [depend(x, self) for x in arrays if x is not None]

    def __del__(self) -> None:
        independent(getattr(self, "keys", ()), self)

    def settle(self, root: Array) -> None:
        """Some of what it is made of is about to change."""
        self.changed = True
        self.arrays = tuple(x if x is None or root_of(x) is not root else x.copy(order="K") for x in self.arrays)

    def comes_from(self, given: tuple[Any, ...]) -> None:
        """Take these for the operands, of which it is made or of copies."""
        self.given = given
        self.keys += [depend(x, self) for x, own in zip(given, self.arrays, strict=True) if x is not own]

    def take(self, tensor: Tensor) -> Tensor:
        """A tensor on the outline as one that is not made."""
        _ARRAY.__set__(tensor, Place(self, tensor._held))
        self.tensors.append(weakref.ref(tensor))
        _set_class(tensor, Unmade)
        return tensor

    def follow(self, made: Array) -> None:
        """What this is made of is made: this is made of that as it is now, whatever happens to that later."""
        if self.made is None:
            self.arrays, self.of = (made,), None
            self.keys.append(depend(made, self))

    @property
    def known(self) -> Array | None:
        """The result, or the same rows in another dtype; None where they are not made."""
        source: Array | None = self.made
        if source is None and len(self.arrays) == 1:
            source = self.arrays[0]
        elif source is None and self.of is not None:
            source = self.of.known
        if source is not None and self.made is None and self.rows is not None:
            self.make()
            source = self.made
        return source

    def first(self, rows: Array) -> tuple[Product, Array]:
        """The product that this is made of in the end, and which of its rows are some of this one's."""
        product = self
        while True:
            rows = rows if product.rows is None else product.rows[rows]
            if product.of is None:
                return product, rows
            product = product.of

    def operands(self) -> tuple[Any, Any, Any]:
        """Input (*, K), weight (N, K) and bias (N) or None, of which it is made."""
        x, w, *bias = self.arrays
        return x, w.T if self.columns else w, bias[0] if bias else None

    def make(self) -> None:
        """Make the result, and let every tensor see it."""
        with self.lock:
            if self.made is None:
                self.made = self.forward(*self.arrays)
                self.arrays, self.of = (), None
                for later in [found for found in (reference() for reference in self.casts) if found is not None]:
                    later.follow(self.made)
                del self.forward  # with what it holds
                if self.done and self.told is not None:
                    self.told()
            self.hand_out(self.made)  # also to views that another thread made meanwhile

    def hand_out(self, made: Array) -> None:
        """Let tensors, views and their storage see the result in place of the outline."""
        root, own = root_of(made), self.outline
        for reference in self.tensors:
            tensor = reference()
            place = None if tensor is None else _ARRAY.__get__(tensor)
            if place.__class__ is not Place:
                continue
            seen, info = place.outline, tensor._view
            array = made if seen is own else view_at(made, seen.shape, seen.strides, bytes_before(seen))
            while info is not None:
                info.array, info = (made if info.array is own else info.array), info.parent
            _ARRAY.__set__(tensor, array)
            _set_class(tensor, Tensor)
        storage = None if self.storage is None else self.storage()
        if storage is not None:
            _ROOT.__set__(storage, root)
            storage.__class__ = Storage
        waiting, self.waiting = self.waiting, []
        for later in [found for found in (reference() for reference in waiting) if found is not None]:
            later.made()


class Place:
    """What stands in the slot of a tensor that is not made: its product, and its outline on that."""

    __slots__ = ("outline", "product")

    def __init__(self, product: Product, outline: Array):
        self.product, self.outline = product, outline


def rows_of(outline: Array, product: Product) -> Array | None:
    """Which rows of a product are those of logits (N, C, *), in the order of their targets; None where they are no whole rows."""
    classes = product.outline.shape[-1]
    step = classes * outline.itemsize
    start = bytes_before(outline)
    others = [(n, s) for i, (n, s) in enumerate(zip(outline.shape, outline.strides, strict=True)) if i != 1]
    if outline.shape[1] != classes or outline.strides[1] != outline.itemsize or start % step:
        return None
    if any(s % step for n, s in others if n > 1):
        return None
    rows: Array = np.zeros((), np.intp)
    for n, s in others:
        rows = np.add.outer(rows, np.arange(n) * (s // step if n > 1 else 0))
    rows = rows.reshape(-1) + start // step
    return rows


class UnmadeStorage(Storage):
    """The storage of such tensors, in whose slot stands the product."""

    __slots__ = ()

    def __init__(self, product: Product):
        _ROOT.__set__(self, product)
        self.version, self.writer = 0, None
        product.storage = weakref.ref(self)

    @property
    def root(self) -> Array:
        found: Array | Product = _ROOT.__get__(self)
        if not isinstance(found, Product):
            return found
        if shown.of is found:
            return found.outline
        found.make()
        return _ROOT.__get__(self)

    @root.setter
    def root(self, value: Array) -> None:
        _ROOT.__set__(self, value)


@switched_off
class Unmade(Tensor):
    """A tensor whose memory is made when somebody asks for it."""

    __slots__ = ()

    @property
    def __class__(self) -> type[Any]:
        return Tensor

    @__class__.setter
    def __class__(self, value: type[Any]) -> None:
        self._array  # noqa: B018  # made: from here on it is no tensor of this class
        _set_class(self, value)

    @property
    def _array(self) -> Array:
        place: Array | Place = _ARRAY.__get__(self)
        if not isinstance(place, Place):
            return place
        if shown.of is place.product:
            return place.outline
        place.product.make()
        return _ARRAY.__get__(self)

    @_array.setter
    def _array(self, value: Array) -> None:
        _ARRAY.__set__(self, value)
        _set_class(self, Tensor)

    _held = _array


T = TypeVar("T")


def place_of(tensor: object) -> Place | None:
    """Where a tensor stands that is not made; None of all others."""
    if type(tensor) is not Unmade:
        return None
    place = _ARRAY.__get__(tensor)
    return place if place.__class__ is Place else None


def come_true(tensor: T) -> T:
    """A tensor, made if it was not yet, also where its outline is shown."""
    place = place_of(tensor)
    if place is not None:
        place.product.make()
    return tensor


def unseen(tensor: object) -> bool:
    """Whether a tensor is not made, and its outline not shown in its place."""
    place = place_of(tensor)
    return place is not None and shown.of is not place.product


def usual() -> bool:
    """Whether this thread records and nothing else; observers that change nothing may look on, an estimate may be made, a
    budget be kept, forward mode be on or off, and autocast be on: who asks converts what is to be converted, and sees to it
    that no operand has a tangent."""
    if not special.count:
        return True
    if not events.unseen(events.observers()) or not all(isinstance(pair, Sparing) for pair in modes.saved_hooks):
        return False
    odd = modes.odd - bool(modes.saved_hooks) - (modes.autocast is not None) - (not modes.forward_grad)
    odd -= bool(modes.levels) and all(hasattr(level, "tangent_of") for level in modes.levels)
    return odd == bool(modes.observers) or (odd == 1 and rehearsed() is not None)


def rehearsed() -> Any:
    """The level of the estimate that this thread makes; None where it makes none."""
    return modes.levels[-1] if modes.levels and all(level.dry for level in modes.levels) else None


def told(op: Op, inputs: tuple[Any, ...], statics: tuple[Any, ...], run: Callable[..., Any], *args: object) -> Any:
    """The result of `run(*args)`, which does what `op` does; observers are told so."""
    return events.observed(events.OPERATOR, op, inputs, statics, run, *args) if special.observing else run(*args)


# Methods that make views, or look at no element ---------------------------------------------------------------------

VIEWS = ("view", "reshape", "flatten", "unflatten", "transpose", "swapaxes", "permute", "movedim", "t", "unsqueeze", "squeeze",
         "narrow", "__getitem__", "view_as")  # fmt: skip
LOOKS = ("size", "dim", "ndimension", "numel", "nelement", "stride", "element_size", "is_contiguous", "is_floating_point",
         "is_complex", "__len__")  # fmt: skip
SEEN = ("shape", "dtype", "device", "ndim", "itemsize", "nbytes", "requires_grad", "is_leaf", "grad_fn", "output_nr")
shaped: dict[
    str, Any
] = {}  # "of": makes of a view operator's plan one that takes deferred gradients; others: what copies rows


def look(plain: Callable[..., Any], self: Tensor, *args: object, **kwargs: object) -> object:
    """What a method gives that looks at no element."""
    place = place_of(self)
    if place is None:
        return plain(self, *args, **kwargs)
    with Outlined(place.product):
        return plain(self, *args, **kwargs)


def basic(x: object) -> bool:
    """Whether an argument of a method that makes a view says nothing that would have it copy."""
    if isinstance(x, tuple):
        return all(map(basic, x))
    return x is None or x is Ellipsis or x.__class__ is slice or (isinstance(x, int) and not isinstance(x, bool))


def view(plain: Callable[..., Any], self: Tensor, *args: object, **kwargs: object) -> object:
    """What a method gives that makes a view: of what is not made, one that is not made."""
    place = place_of(self)
    if place is None or not usual() or not all(map(basic, (*args, *kwargs.values()))):
        return plain(come_true(self), *args, **kwargs)
    with Outlined(place.product):
        return adopted(plain(self, *args, **kwargs), place.product, self)


def adopted(made: object, product: Product, of: Tensor) -> object:
    """A view of an outline, as one that is not made, through which deferred gradients pass."""
    if made is of or not isinstance(made, Tensor) or made._storage is not of._storage:
        return made
    node = made._edge
    if node is not None and getattr(node, "plan", None) is not None:
        node.plan = shaped["of"](node.plan)
    return product.take(made)


def unchanged(
    kind: type[Any] | None, plain: Callable[..., Any], self: Tensor, *args: object, **kwargs: object
) -> object:
    """What a method gives that mostly returns the tensor itself: where it is of dtype `kind`, or of any for None."""
    place = place_of(self)
    if place is not None and not args and not kwargs and (kind is None or place.outline.dtype == kind):
        return self
    return plain(self, *args, **kwargs)


def copying(name: str, plain: Callable[..., Any], self: Tensor, *args: object, **kwargs: object) -> object:
    """What a method gives that copies: rows that are not made stay so."""
    place = place_of(self)
    if place is not None and not args and not kwargs:
        if name == "contiguous" and place.outline.flags.c_contiguous:
            return self
        found = shaped[name](self, place.outline)
        if found is not None:
            return found
    return plain(self, *args, **kwargs)


UNCHANGED = {"float": np.float32, "double": np.float64, "cpu": None}
COPIES = ("contiguous", "clone")
METHODS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(LOOKS, look),
    **dict.fromkeys(VIEWS, view),
    **{name: partial(unchanged, kind) for name, kind in UNCHANGED.items()},
    **{name: partial(copying, name) for name in COPIES},
}


def asking() -> bool:
    """Whether a mode of this thread is to be asked before any function: it may look at what it is given."""
    return bool(here.modes) and here.asks != NOBODY


def method(name: str) -> Callable[..., Any]:
    """A method of tensors that are not made."""
    own = METHODS[name]

    def call(self: Tensor, *args: object, **kwargs: object) -> object:
        plain = getattr(Tensor, name)
        return plain(self, *args, **kwargs) if asking() else own(plain, self, *args, **kwargs)

    return call


def seen(name: str) -> property:
    """An attribute of theirs; what sets and deletes it is Tensor's."""
    plain: Any = Tensor.__dict__[name]

    def get(self: Tensor) -> object:
        return Tensor.__dict__[name].__get__(self) if asking() else look(plain.fget, self)

    return property(get, plain.fset, plain.fdel)


for _name in METHODS:
    setattr(Unmade, _name, method(_name))
for _name in SEEN:
    setattr(Unmade, _name, seen(_name))
disguised[Unmade] = {f"torch.Tensor.{_name}": own for _name, own in METHODS.items()}
disguised[Unmade].update({f"torch.Tensor.{_name}.__get__": look for _name in SEEN})
