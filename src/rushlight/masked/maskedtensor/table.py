"""What functions do with masked tensors, by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rushlight.dispatch.named import named
from rushlight.masked import _ops
from rushlight.masked.maskedtensor.binary import BINARY_NAMES, INPLACE_BINARY_NAMES
from rushlight.masked.maskedtensor.core import MaskedTensor, masked, plain
from rushlight.masked.maskedtensor.reductions import REDUCE_NAMES
from rushlight.masked.maskedtensor.unary import INPLACE_UNARY_NAMES, UNARY_NAMES
from rushlight.overrides.protocol import DisableTorchFunctionSubclass, unasked
from rushlight.tensor import Tensor

__all__ = ["TABLE"]

Call = Callable[[Any, Any, Any], Any]

ALIKE = [name for name in UNARY_NAMES if name != "pow"] + (
    "conj isfinite isreal real bfloat16 bool clone contiguous cpu detach double dropout float half int long short to to_dense type_as "
    "ones_like zeros_like empty_like full_like rand_like randn_like __abs__ __neg__ __pos__ __invert__"
).split()
WITHIN = [name for name in (*INPLACE_UNARY_NAMES, *INPLACE_BINARY_NAMES) if name != "pow_"]
PAIRS = [*BINARY_NAMES, "rsub"]
SYMBOLS = "add sub mul truediv floordiv mod and or xor lshift rshift eq ne lt le gt ge".split()
VIEWS = (
    "atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to cat chunk column_stack concat diagonal dsplit dstack expand expand_as "
    "flatten hsplit hstack kron meshgrid movedim narrow permute ravel reshape reshape_as row_stack select split squeeze stack swapaxes "
    "swapdims t tensor_split transpose unbind unflatten unfold unsqueeze view view_as vsplit vstack __getitem__ T.__get__ mT.__get__ H.__get__"
).split()
JOINED = frozenset(
    "broadcast_tensors cat column_stack concat concatenate dstack hstack kron meshgrid row_stack stack vstack".split()
)
REDUCTIONS = [name for name in REDUCE_NAMES if name not in ("all", "norm")]
READ = (
    "__hash__ __len__ __bool__ __float__ __int__ __index__ backward data_ptr device.__get__ dim dtype.__get__ element_size get_device "
    "grad_fn.__get__ is_complex is_contiguous is_cpu.__get__ is_cuda.__get__ is_floating_point is_leaf.__get__ is_meta.__get__ is_nested.__get__ "
    "is_signed is_sparse.__get__ itemsize.__get__ layout.__get__ names.__get__ nbytes.__get__ ndim.__get__ ndimension nelement numel "
    "output_nr.__get__ register_hook requires_grad.__get__ requires_grad.__set__ retain_grad retains_grad.__get__ shape.__get__ size "
    "storage_offset stride type _version.__get__ is_inference _is_view _base.__get__ grad.__delete__ is_quantized.__get__"
).split()


def _mask(x: object) -> Any:
    return x._masked_mask if isinstance(x, MaskedTensor) else x


def _first(args: Any, kwargs: Any) -> MaskedTensor:
    """The first masked operand."""
    return next(x for x in (*args, *kwargs.values()) if isinstance(x, MaskedTensor))


def alike(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The function of the elements, under the same mask."""
    own = _first(args, kwargs)
    args, kwargs = _every(plain, (args, kwargs))
    result = unasked(func, *args, **kwargs)
    mask = own._masked_mask
    return masked(result, mask.clone() if getattr(func, "__name__", "") == "clone" else mask)


def _same_mask(operands: list[Any]) -> Any:
    """The mask of all masked operands.  Raises ValueError where they have several."""
    masks = [x._masked_mask for x in operands if isinstance(x, MaskedTensor)]
    if any(not named.equal(masks[0], other) for other in masks[1:]):
        raise ValueError(
            "Input masks must match: masked operands must have the same mask: fill what does not count by to_tensor(value), or give them one mask"
        )
    return masks[0]


def pair(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The function of two operands, of which one may be plain or a number."""
    with DisableTorchFunctionSubclass():
        mask = _same_mask([*args, *kwargs.values()])
        args, kwargs = _every(plain, (args, kwargs))
        result = func(*args, **kwargs)
        return result if result is NotImplemented else masked(result, mask.expand(result.shape))


def within(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function that writes into its first operand."""
    with DisableTorchFunctionSubclass():
        _same_mask([*args, *kwargs.values()])
        own, *others = args
        if not isinstance(own, MaskedTensor):
            raise TypeError(
                f"{func.__name__}: a masked tensor is not written into a plain one: pass its to_tensor(value)"
            )
        func(own, *map(plain, others), **_every(plain, kwargs))
    return own


def view(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The function of the elements and of the mask.  Raises TypeError where elements are joined to those of a plain tensor."""
    if getattr(func, "__name__", "") in JOINED and any(_is_plain(x) for x in (*args, *kwargs.values())):
        raise TypeError(
            f"{func.__name__}: mask must have dtype bool, and a plain tensor has none: masked_tensor(x, torch.ones_like(x, "
            "dtype=torch.bool)) masks nothing"
        )
    with DisableTorchFunctionSubclass():
        data = func(*_every(plain, args), **_every(plain, kwargs))
        mask = func(*_every(_mask, args), **_every(_mask, kwargs))
        return masked(data, mask) if isinstance(data, Tensor) else type(data)(map(masked, data, mask))


def _is_plain(x: object) -> bool:
    """Whether an operand, or one in a list of them, is a tensor without a mask."""
    if isinstance(x, (tuple, list)):
        return any(map(_is_plain, x))
    return isinstance(x, Tensor) and not isinstance(x, MaskedTensor)


def _every(what: Callable[[Any], Any], given: Any) -> Any:
    """What stands in tuples, lists and dictionaries, each by itself."""
    if isinstance(given, dict):
        return {name: _every(what, x) for name, x in given.items()}
    return type(given)([_every(what, x) for x in given]) if type(given) in (tuple, list) else what(given)


def reduction(name: str) -> Call:
    """A reduction of what counts."""
    function = getattr(_ops, name)

    def reduced(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own, *rest = args
        with DisableTorchFunctionSubclass():
            dim, keepdim, options = _options(name, rest, dict(kwargs))
            result = function(plain(own), dim, keepdim=keepdim, mask=own._masked_mask, **options)
            return masked(result, _any(own._masked_mask, dim, keepdim))

    return reduced


def _options(name: str, rest: list[Any], given: dict[str, Any]) -> tuple[Any, bool, dict[str, Any]]:
    """Dimensions, whether they are kept, and what else is passed by name."""
    if "dim" not in given and rest:
        given["dim"] = rest.pop(0)
    options = inspect.signature(getattr(_ops, name)).parameters
    if "correction" in options and isinstance(given.get("dim"), bool):
        given["unbiased"] = given.pop("dim")
    if rest:
        given["keepdim" if len(rest) == 1 else "unbiased"] = rest.pop()
    allowed = (
        {"unbiased", "correction"}
        if "correction" in options
        else {"dtype"}
        if name in ("sum", "mean", "prod")
        else set()
    )
    dim, keepdim = given.pop("dim", None), given.pop("keepdim", False)
    wrong = set(given) - allowed
    if wrong or rest:
        raise TypeError(f"{name}(): masked tensors take no {', '.join(sorted(wrong)) or 'more arguments'} here")
    if name in ("prod", "argmax", "argmin") and isinstance(dim, tuple | list):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    return dim, keepdim, given


def _any(mask: Any, dim: Any, keepdim: bool) -> object:
    return (
        mask.any()
        if dim is None and not keepdim
        else mask.any(tuple(range(mask.ndim)) if dim is None else dim, keepdim)
    )


def every(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Whether all elements that count are true."""
    own = _first(args, kwargs)
    with DisableTorchFunctionSubclass():
        filled = plain(own).bool() | ~own._masked_mask
        result = func(filled, *args[1:], **kwargs)
        return masked(
            result,
            func(own._masked_mask, *args[1:], **kwargs).new_tensor(True)
            if result.ndim == 0
            else _any(own._masked_mask, args[1] if len(args) > 1 else kwargs.get("dim"), result.ndim == own.ndim),
        )


def softmax(name: str) -> Call:
    """Softmax of what counts."""
    function = getattr(_ops, name)

    def called(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own, *rest = args
        dim = rest[0] if rest else kwargs.get("dim")
        if dim is None:
            raise TypeError(f"{name}(): masked tensors want the argument 'dim'")
        with DisableTorchFunctionSubclass():
            return masked(function(plain(own), dim, dtype=kwargs.get("dtype"), mask=own._masked_mask), own._masked_mask)

    return called


def where(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Chosen elements, which count where those they are taken from do; those of plain tensors and numbers do."""
    condition, *options = args
    if isinstance(condition, MaskedTensor):
        raise TypeError("where(): the condition must be a plain tensor: use its get_data()")
    with DisableTorchFunctionSubclass():
        data = func(condition, *map(plain, options))
        counts = [x._masked_mask if isinstance(x, MaskedTensor) else named.scalar_tensor(True).bool() for x in options]
        return masked(data, func(condition, *counts).expand(data.shape))


def read(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is known of any tensor."""
    return unasked(func, *args, **kwargs)


def gradient(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The gradient, masked as the tensor."""
    found = unasked(func, *args, **kwargs)
    return found if found is None or isinstance(found, MaskedTensor) else masked(found, args[0]._masked_mask)


def gradients(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `torch.autograd.grad` gives, masked as the inputs."""
    inputs = args[1] if len(args) > 1 else kwargs["inputs"]
    found = unasked(func, *args, **kwargs)
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    return tuple(masked(g, x._masked_mask) if isinstance(x, MaskedTensor) and g is not None else g
                 for g, x in zip(found, inputs, strict=True))  # fmt: skip


def item(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The only element.  Raises ValueError where it does not count."""
    if args[0].numel() == 1 and not bool(args[0]._masked_mask):
        raise ValueError("item(): the element is masked out: ask get_mask() first, or to_tensor(value)")
    return unasked(func, *args, **kwargs)


def unfit(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What has no place for elements that do not count."""
    raise RuntimeError(
        f"{func.__name__}(): elements that are masked out have no value: use get_data() or to_tensor(value)"
    )


def itself(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What sets something about a tensor, and gives it back."""
    unasked(func, *args, **kwargs)
    return args[0]


def written(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Elements set to those of another masked tensor.  Raises TypeError for a plain one."""
    own, *where, value = args
    if not isinstance(own, MaskedTensor) or not isinstance(value, MaskedTensor):
        raise TypeError(
            f"{func.__name__}: elements of a masked tensor are set to those of another: got {type(value).__name__}"
        )
    with DisableTorchFunctionSubclass():
        func(own, *where, plain(value))
        func(own._masked_mask, *where, value._masked_mask)
    return own if func.__name__ == "copy_" else None


TABLE: dict[str, Call] = {
    **dict.fromkeys(ALIKE, alike),
    **dict.fromkeys(WITHIN, within),
    **dict.fromkeys(PAIRS, pair),
    **dict.fromkeys((f"__{way}{name}__" for name in SYMBOLS for way in ("", "r")), pair),
    **dict.fromkeys((f"__i{name}__" for name in SYMBOLS), within),
    **dict.fromkeys(VIEWS, view),
    **{name: reduction(name) for name in REDUCTIONS},
    **dict.fromkeys(READ, read),
    **{name: softmax(name) for name in ("softmax", "log_softmax")},
    "all": every,
    "where": where,
    "grad.__get__": gradient,
    "autograd.grad": gradients,
    "item": item,
    "tolist": unfit,
    "numpy": unfit,
    "__array__": unfit,
    "requires_grad_": itself,
    "grad.__set__": itself,
    "__setitem__": written,
    "copy_": written,
}


def power(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Powers of what counts, by a number."""
    if not isinstance(args[0], MaskedTensor) or any(isinstance(x, Tensor) for x in args[1:]):
        raise TypeError(f"{func.__name__}: masked tensors are raised to numbers alone")
    return alike(func, args, kwargs)


TABLE.update({"pow": power, "__pow__": power})
