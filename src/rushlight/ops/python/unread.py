"""Classes of tensors that say themselves, by ``__torch_dispatch__``, what operators do with them.

A tensor of such a class has no array for those who compute: its `_array` says shape, strides and dtype, and refuses values.
Operators find it as they find what belongs to a level (see `levels`): while any such tensor is alive, `special.classes` is the
outermost level of each thread that has met one.  What it does is in `ops.python.classes`.
"""

from __future__ import annotations

import importlib
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.state import special
from rushlight.dispatch.meta import strided
from rushlight.dispatch.options import Nowhere, asker, refuse
from rushlight.levels.batch import UFUNCS
from rushlight.overrides.protocol import _disabled_torch_function_impl
from rushlight.overrides.public import arm, on_class
from rushlight.tensor import Tensor

ASKED: dict[str, Callable[..., Any]] = {}  # what runs in place of public functions: see `library.aten.asked`
alive: dict[int, Any] = {}
level: list[Callable[[], Any]] = []  # what makes `special.classes`: of a higher floor


class _Here(threading.local):
    """This thread's part: how many contexts it is in where no class is asked."""

    off = 0


here = _Here()


class Unread(Nowhere):
    """What such tensors hold that have no memory: shape, strides and dtype, and no values."""

    unread = True
    why = ("a tensor whose class has __torch_dispatch__ was taken as an array: what it holds is known to the class alone, which "
           "is asked by operators of torch")  # fmt: skip


def compared(name: str) -> Any:
    """The method of a comparison."""
    return lambda self, other: self.operate(name, other)


class Shown:
    """What such a tensor shows of an array: all but values.

    It says that it is an array, so that checks of arguments take it for one; NumPy can make none of it.  Comparisons, and NumPy's
    functions for masks, give tensors, by operators, so that formulas may compute masks on what they take for arrays.
    """

    __slots__ = ("held", "tensor")
    interpreted = False
    nowhere = unread = True
    why = Unread.why
    base = None

    def __init__(self, held: Array, tensor: Tensor):
        self.held, self.tensor = held, tensor

    @property
    def __class__(self) -> type[Any]:
        return Unread

    def __getattr__(self, name: str) -> Any:
        if name in SAID:
            return getattr(self.held, name)
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        self.refused()

    def refused(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise NotImplementedError: values were asked for."""
        refuse(asker(), self.why)

    def __len__(self) -> int:
        return len(self.held)

    def operate(self, name: str, *others: Any) -> Any:
        """The operator `name` of this and other operands, as a tensor."""
        return getattr(Tensor, name)(*[x.tensor if type(x) is Shown else x for x in (self, *others)])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: object) -> Any:
        if method != "__call__" or options or type(inputs[0]) is not Shown or ufunc.__name__ not in MASKS:
            self.refused()
        return inputs[0].operate(UFUNCS.get(ufunc.__name__, ufunc.__name__), *inputs[1:])

    __eq__, __ne__ = compared("eq"), compared("ne")
    __lt__, __le__, __gt__, __ge__ = compared("lt"), compared("le"), compared("gt"), compared("ge")
    __hash__ = object.__hash__

    __array__ = __array_function__ = __getitem__ = __setitem__ = __iter__ = __bool__ = __float__ = __int__ = refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = __abs__ = (
        __index__
    ) = refused
    __pow__ = __matmul__ = __and__ = __or__ = __xor__ = __invert__ = __iadd__ = refused


MASKS = frozenset("equal not_equal less less_equal greater greater_equal isnan isinf isfinite absolute".split())
SAID = {"shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags"}


def array_of(self: Any) -> Any:
    """What computes of such a tensor gets: no values, but where its class is not asked, which then has memory or not."""
    held: Array = self._held
    return held if here.off and held.__class__ is np.ndarray else Shown(held, self)


def prepare(cls: type[Any]) -> None:
    """Make a class whose first object comes to be one that operators ask, if it has ``__torch_dispatch__``."""
    if "_dispatched" in cls.__dict__ or not asks(cls):
        return
    if special.classes is None:
        special.classes = level[0]()
        importlib.import_module("rushlight.library.aten")  # of a higher floor: what is asked in place of functions
    cls._unusual = cls._dispatched = True
    asked = getattr(cls.__torch_function__, "__func__", None)
    if asked is Tensor.__torch_function__.__func__:  # type: ignore[attr-defined]
        cls.__torch_function__ = classmethod(_disabled_torch_function_impl)  # as PyTorch has it: one of both asks
    cls._array = property(array_of, lambda self, value: Tensor._held.__set__(self, value))
    cls._asked = ASKED
    arm()


def asks(cls: type[Any]) -> bool:
    """Whether a class has a ``__torch_dispatch__`` of its own."""
    method = getattr(cls, "__torch_dispatch__", None)
    return method is not None and getattr(method, "__func__", method) is not _disabled_torch_dispatch_impl


def note(tensor: Tensor) -> None:
    """From now on until it is gone, operators look for such tensors."""
    key = id(tensor)

    def gone(_: object) -> None:
        del alive[key]

    alive[key] = weakref.ref(tensor, gone)


def noted(tensor: Any) -> Any:
    """An object that has come to be, noted if its class has ``__torch_dispatch__``."""
    if tensor._dispatched:
        special.classes.note(tensor)
    return tensor


def without_memory(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any], offset: int) -> Array:
    """An array that says shape, strides (in elements), dtype, and where it begins, on memory that is not there."""
    if not offset:
        return strided(tuple(shape), strides, dtype).view(Unread)
    whole = strided((offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n),), (1,), dtype)
    steps = tuple(s * dtype.itemsize for s in strides)
    return np.ndarray(tuple(shape), dtype, whole, offset * dtype.itemsize, steps).view(Unread)


class Seen(Tensor):
    """What views of tensors without memory are where no class is asked: a tensor that says shape and strides, and refuses values."""

    __slots__ = ()
    _unusual = True

    @property
    def __class__(self) -> type[Any]:
        return Tensor

    @property
    def _array(self) -> Any:
        return Shown(self._held, self)

    @_array.setter
    def _array(self, value: Array) -> None:
        self._held = value


def seen(array: Array) -> Tensor:
    """Such a tensor, with the shape and the strides of an array."""
    t: Any = object.__new__(Seen)
    t._held, t._edge, t._storage, t._view = array.view(Unread), None, None, None
    return t


class DisableTorchDispatch:
    """Context manager in which no class is asked: operators work on the memory of tensors, where these have any."""

    def __enter__(self) -> None:
        here.off += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        here.off -= 1


def _disabled_torch_dispatch_impl(cls: type[Any], func: Callable[..., Any], types: tuple[type, ...],
                                  args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> object:  # fmt: skip
    """The ``__torch_dispatch__`` of a class that overrides nothing: operators work on the memory of its tensors."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


Tensor.__torch_dispatch__ = classmethod(_disabled_torch_dispatch_impl)  # type: ignore[attr-defined]
on_class.append(prepare)
