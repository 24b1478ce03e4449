"""A tensor of which some elements do not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.function import Function
from rushlight.basics import dtypes
from rushlight.dispatch.named import named
from rushlight.masked.maskedtensor.printing import shown
from rushlight.overrides.listing import resolve_name
from rushlight.overrides.protocol import DisableTorchFunctionSubclass
from rushlight.tensor import Tensor, strided

__all__ = ["MaskedTensor", "is_masked_tensor"]

KINDS = ("float16", "bfloat16", "float32", "float64", "bool", "int8", "int16", "int32", "int64")


def is_masked_tensor(obj: object, /) -> bool:
    """Whether something is a masked tensor.

    >>> import rushlight as torch
    >>> is_masked_tensor(torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))), is_masked_tensor(torch.ones(2))
    (True, False)
    """
    return isinstance(obj, MaskedTensor)


def _masks_match(a: Any, b: Any) -> bool:
    """Whether two masked tensors have the same mask; of what is no masked tensor every mask is the same."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    mine, its = a._masked_mask, b._masked_mask
    return bool(mine.dim() == its.dim() and mine.shape == its.shape and named.equal(mine, its))


def _tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two plain tensors are equal, or close, in whatever dtypes.  Raises ValueError for masked ones."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor: compare get_data() and get_mask()")
    if a.layout != b.layout or a.shape != b.shape:
        return False
    kind = dtypes.promote_types(a.dtype, b.dtype)
    a, b = a.to(kind), b.to(kind)
    return bool(named.equal(a, b) if exact else named.allclose(a, b, rtol=rtol, atol=atol))


class MaskedTensor(Tensor):
    """A tensor with a mask: False where an element does not count.

    data: of a real dtype; mask: of bools, of the same shape.  The object is a leaf of the graph with the memory of `data`;
    `as_masked_tensor` makes one through which gradients reach `data`.  Operators compute with what counts: one of a single
    operand keeps the mask, one of two masked operands wants them to have the same mask, a reduction leaves elements out and gives
    one that does not count where none did.  Gradients are masked as the tensor is.

    Raises ValueError for another shape of the mask, TypeError for other dtypes and for what is no tensor or is masked already.

    >>> import rushlight as torch
    >>> data, mask = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([True, False, True])
    >>> m = torch.masked.masked_tensor(data, mask)
    >>> m.sum()
    MaskedTensor(  5.0000, True)
    >>> (m * 2).to_tensor(0)
    tensor([2., 0., 8.])
    """

    _masked_mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _check(data, mask)
        made = masked(data.detach().clone(), mask.clone())  # what is changed in place later is not what was given
        made.requires_grad = bool(requires_grad)
        return made

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What there is under the name of a function.  Raises TypeError where there is nothing."""
        from rushlight.masked.maskedtensor.table import TABLE  # which computes with this class

        name = str(resolve_name(func) or getattr(func, "__name__", "")).removeprefix("torch.")
        name = name.removeprefix("Tensor.").removeprefix("nn.functional.")
        if name not in TABLE:
            raise TypeError(
                f"{name}: not implemented for masked tensors: compute with get_data() and get_mask(), or fill what does "
                "not count by to_tensor(value)"
            )
        return TABLE[name](func, args, kwargs or {})

    def get_data(self) -> Tensor:
        """The elements, with those that do not count; gradients of these are zero."""
        return plain(self)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    @property
    def _masked_data(self) -> Tensor:
        """The elements themselves, of no graph: packages read and write them by PyTorch's name."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor).detach()

    def to_tensor(self, value: Any) -> Tensor:
        """The elements, `value` in the place of those that do not count."""
        with DisableTorchFunctionSubclass():
            return self.get_data().masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """Whether the elements are in a sparse layout: False, since these are not masked here."""
        return False

    is_sparse_csr = is_sparse_coo  # type: ignore[assignment]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        with DisableTorchFunctionSubclass():
            return shown(self.as_subclass(Tensor).detach(), self._masked_mask)

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __deepcopy__(self, memo: Any) -> MaskedTensor:
        with DisableTorchFunctionSubclass():
            made = masked(self.as_subclass(Tensor).detach().clone(), self._masked_mask.clone())
        made.requires_grad = bool(self.requires_grad)
        memo[id(self)] = made
        return made


class _Through(Function):
    """The elements as a plain tensor; gradients of those that do not count are zero."""

    @staticmethod
    def forward(ctx: Any, data: Any, mask: Tensor) -> Any:
        ctx.save_for_backward(mask)
        return data.view_as(data)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (mask,) = ctx.saved_tensors
        return named.where(mask, grads[0], named.zeros_like(grads[0])), None


def plain(x: Any) -> Any:
    """The elements of a masked tensor, anything else as it is."""
    if not isinstance(x, MaskedTensor):
        return x
    with DisableTorchFunctionSubclass():
        data = x.as_subclass(Tensor)
        return _Through.apply(data, x._masked_mask) if data.requires_grad else data


def masked(data: Any, mask: Any) -> MaskedTensor:
    """A masked tensor of these, of whose graph it is."""
    with DisableTorchFunctionSubclass():
        made: MaskedTensor = data.as_subclass(MaskedTensor)
        made._masked_mask = mask
    return made


def _check(data: Any, mask: Any) -> None:
    """Raises TypeError or ValueError where data and mask make no masked tensor."""
    for name, x in (("data", data), ("mask", mask)):
        if not isinstance(x, Tensor) or isinstance(x, MaskedTensor):
            raise TypeError(f"MaskedTensor: {name} must be a plain Tensor, got {type(x).__name__}")
        if x.layout is not strided:
            raise TypeError(f"MaskedTensor: {name} has the layout {x.layout}: only strided tensors are masked here")
    if mask.dtype is not dtypes.bool:
        raise TypeError(f"MaskedTensor: the mask must be of torch.bool, got {mask.dtype}")
    if data.dtype.name not in KINDS:
        raise TypeError(f"MaskedTensor: not for {data.dtype}: use one of {', '.join(KINDS)}")
    if data.shape != mask.shape:
        raise ValueError(
            f"MaskedTensor: data and mask must have the same shape, got {tuple(data.shape)} and {tuple(mask.shape)}"
        )
