"""The place of the memory in a tensor that a batched level interprets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex
from rushlight.basics.errors import explained
from rushlight.basics.state import modes
from rushlight.tensor import Tensor, look, wrap

UFUNCS = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
          "invert": "bitwise_not", "absolute": "abs", "multiply": "mul", "subtract": "sub", "divide": "div",
          "true_divide": "div", "negative": "neg", "conjugate": "conj", "power": "pow",
          "rint": "round"}  # fmt: skip
MEANINGS = {"item": "calling .item() on a Tensor", "reshape": "attempting to use a Tensor in control flow (if, while, and, bool())",
            "tolist": "calling .tolist() on a Tensor", "__array__": "calling .numpy() on a Tensor",
            "view": "calling .numpy() on a Tensor", "__getitem__": "reading elements of a Tensor"}  # fmt: skip


class Flags:
    """What `ndarray.flags` says. Not contiguous, so that what needs memory in C order asks for a copy, and fails."""

    c_contiguous = f_contiguous = forc = contiguous = owndata = False
    writeable = aligned = True
    num = 0  # none of NumPy's flags, by which kernels ask whether memory is in C order


FLAGS = Flags()


class Interpreted(np.ndarray[Any, Any]):
    """What a BatchedArray says its class is, so that checks of arguments take it for an array: nothing is of this class."""


class BatchedArray:
    """One sample's shape and dtype in place of the memory of a tensor inside `vmap`.

    level: the batched level that interprets it; tensor: the tensor of all samples; dim: the dimension of that in which
    they lie, None where every sample has the same values. Nothing can be computed with it as with an array: what asks
    for its values raises RuntimeError. Comparisons and NumPy's elementwise functions give tensors, by operators, so that
    formulas may compute masks on what they take for arrays.
    """

    __slots__ = ("copied", "dim", "dtype", "level", "shape", "tensor")
    interpreted = samples = True
    base = None
    flags = FLAGS

    def __init__(self, level: Any, tensor: Any, dim: int | None):
        shape = tensor._held.shape
        self.level, self.tensor, self.dim = level, tensor, dim
        self.shape = shape if dim is None else (*shape[:dim], *shape[dim + 1 :])
        self.dtype = tensor._held.dtype
        self.copied = False  # whether memory of its own holds what the user may take for a view

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        return Interpreted

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of one sample in the memory of all, in bytes."""
        steps: tuple[int, ...] = self.tensor._array.strides
        return steps if self.dim is None else (*steps[: self.dim], *steps[self.dim + 1 :])

    def memory(self) -> Array:
        """The array of all samples, which begins where the first does."""
        array = self.tensor._array
        return array.memory() if type(array) is BatchedArray else array

    @property
    def real(self) -> Any:
        """Of complex samples, the array of their real parts."""
        return wrap(self).real._array if is_complex(self.dtype) else self

    def operate(self, name: str, *others: Array | float) -> Any:
        """The operator `name` of this and other operands, as a tensor."""
        from rushlight.tensor import Tensor, wrap

        if self.level not in modes.levels:
            raise RuntimeError(
                "a tensor of a function under vmap was used after the call: only what the function returns can be used outside"
            )
        operands = [wrap(x) if type(x) is BatchedArray else x for x in (self, *others)]
        return getattr(Tensor, name)(*operands)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: object) -> Any:
        name = UFUNCS.get(ufunc.__name__, ufunc.__name__)
        first = inputs[0]
        if method != "__call__" or options or type(first) is not BatchedArray:
            refuse(f"np.{ufunc.__name__}")
        return first.operate(name, *inputs[1:])

    def __array_function__(
        self, function: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...], options: dict[Any, Any]
    ) -> Any:
        refuse(f"np.{function.__name__}")

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: object = None) -> Any:
        refuse("__array__")

    def _arithmetic(self, *others: object) -> object:
        refuse("arithmetic on the array")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _arithmetic
    __floordiv__ = __mod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __int__ = __float__ = _arithmetic
    __and__ = __or__ = __xor__ = __abs__ = __invert__ = __index__ = _arithmetic

    def __getitem__(self, index: tuple[slice, ...]) -> Any:
        refuse("__getitem__")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise RuntimeError("vmap: out= is not possible inside a function being vmapped: use the result instead")

    def __iter__(self) -> Any:
        refuse("__getitem__")

    def __bool__(self) -> bool:  # noqa: PLE0304
        refuse("reshape")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __eq__(self, other: Any) -> Any:
        return self.operate("eq", other)

    def __ne__(self, other: Any) -> Any:
        return self.operate("ne", other)

    def __lt__(self, other: Any) -> Any:
        return self.operate("lt", other)

    def __le__(self, other: Any) -> Any:
        return self.operate("le", other)

    def __gt__(self, other: float) -> Any:
        return self.operate("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self.operate("ge", other)

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(name)

    def __repr__(self) -> str:
        return f"<{list(self.shape)} of each sample in {list(self.tensor.shape)}>"


def everything(array: Any) -> Any:
    """An array, or the values of all samples in dimensions in front: for checks that raise where any is wrong.

    Nothing, of a tensor whose class has ``__torch_dispatch__``, since what that calls looks at what it holds, and on
    the device meta.
    """
    if type(array) is not BatchedArray:
        return np.empty((0,) * max(array.ndim, 1), array.dtype) if getattr(array, "unread", False) else array
    whole = array.tensor._array
    values = everything(whole)
    return values if array.dim is None else np.moveaxis(values, values.ndim - whole.ndim + array.dim, 0)


class DataDependent(RuntimeError):
    """Values were asked for that differ from sample to sample."""


def dynamic(name: str) -> NoReturn:
    """Raise the error for an operator whose results have shapes that depend on values."""
    raise DataDependent(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"{name}, whose result has a shape that differs from sample to sample (data-dependent). Use torch.where or a mask "
        "of fixed shape in its place."
    )


def of_one_shape(name: str, array: object) -> Any:
    """The array, on whose values the shape of a result depends: an estimate notes that.

    Raises RuntimeError for that of samples, each of which would have a result of a shape of its own.
    """
    if type(array) is BatchedArray:
        return dynamic(name)
    if modes.levels:
        look(array)  # type: ignore[arg-type]
    return array


def refuse(what: str) -> NoReturn:
    """Raise the error for asking for values that differ from sample to sample."""
    shown = MEANINGS.get(what, f"calling {what} on a Tensor")
    raise explained(
        DataDependent(
            f"vmap: It looks like you're {shown} inside a function being vmapped. The values differ from "
            "sample to sample there, so data-dependent control flow, .item() and operators whose results have a "
            "data-dependent shape are not possible: rewrite it with other operations (torch.where in place of if), or do it "
            "outside of vmap."
        ),
        "values-under-vmap",
    )


def batches_of(x: Tensor) -> set[Any]:
    """The levels of `vmap` of which a tensor holds a value for each sample."""
    found = set()
    while type(x._held) is BatchedArray:
        if x._held.dim is not None:
            found.add(x._held.level)
        x = x._held.tensor
    return found


def batched_like(other: Tensor, whole: Tensor) -> Tensor:
    """What samples share as what differs from sample to sample, as `other` does: a copy for each."""
    zero: Tensor = other.new_zeros((), dtype=whole.dtype)
    return (zero + whole).contiguous()
