"""Mixed precision: products in 16 bits, and what needs more digits in float32, without a change of the model.

As in PyTorch without CUDA, ``autocast("cuda")`` and ``GradScaler("cuda")`` warn and do nothing.
"""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from rushlight.amp.casting import Casting, usable
from rushlight.amp.scaler import GradScaler
from rushlight.basics import caller, dtypes
from rushlight.basics.lazily import lazily
from rushlight.basics.state import Setting, modes, set_mode

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

Function = TypeVar("Function", bound=Callable[..., Any])


def is_autocast_available(device_type: str) -> bool:
    """Whether mixed precision can be had on devices of this kind: on the CPU."""
    return device_type == "cpu"


# What PyTorch would compute in, by kind of device.
_LOWER = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16, "hpu": dtypes.bfloat16, "ipu": dtypes.float16,
          "mps": dtypes.float16, "xla": dtypes.bfloat16, "xpu": dtypes.float16}  # fmt: skip


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on devices of this kind compute in mixed precision now.

    Raises RuntimeError for an unknown kind of device.
    """
    get_autocast_dtype(device_type)
    return device_type == "cpu" and modes.autocast is not None


def is_autocast_cpu_enabled() -> bool:
    """Whether operators on the CPU compute in mixed precision now."""
    return modes.autocast is not None


def is_autocast_cache_enabled() -> bool:
    """Whether autocast keeps converted parameters until its outermost context ends."""
    return _outside["cached"] if modes.autocast is None else bool(modes.autocast.cached)


_outside = {"cached": True}  # what contexts begin with


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether autocast keeps converted parameters: in the context that is open, else in those to come."""
    if modes.autocast is None:
        _outside["cached"] = bool(enabled)
    else:
        modes.autocast.cached = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget converted parameters."""
    if modes.autocast is not None:
        modes.autocast.copies.clear()


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that autocast takes on devices of this kind: in a context its own, else PyTorch's choice.  Raises RuntimeError for an unknown kind.

    >>> import rushlight as torch
    >>> torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
    (torch.float16, False)
    """
    if device_type not in _LOWER:
        raise RuntimeError(f"autocast: expected one of the device types {', '.join(_LOWER)}, got {device_type!r}")
    return modes.autocast.dtype if device_type == "cpu" and modes.autocast is not None else _LOWER[device_type]


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """``get_autocast_dtype("cuda")``, by its older name."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """``get_autocast_dtype("cpu")``, by its older name."""
    return get_autocast_dtype("cpu")


def _device_type(name: str, device_type: object) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: expected `device_type` of type `str`, got: `{type(device_type)}`")
    return device_type


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Any:
    """Decorates ``forward`` of a custom function for autocast.

    With ``cast_inputs`` its floating-point inputs are converted to that, and it computes without autocast, where autocast is on;
    without, it computes as its surroundings.  Without a function, a decorator that does the same.  Raises ValueError
    unless ``device_type`` is a string.

    >>> import rushlight as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @torch.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> with torch.autocast("cpu"):
    ...     Double.apply(torch.ones(2, dtype=torch.bfloat16))
    tensor([2., 2.])
    """
    device_type = _device_type("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        if hasattr(ctx, "save_for_backward"):  # else an input: the function has setup_context
            ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        casting = Casting(cast_inputs, False, {})
        with Setting("autocast", None):
            return fwd(casting("lower", ctx), *(casting("lower", x) for x in args), **casting("lower", kwargs))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates ``backward`` of a function whose ``forward`` has `custom_fwd`: it computes as that did.

    Without a function, a decorator that does the same.  Raises ValueError unless ``device_type`` is a string.
    """
    device_type = _device_type("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        if device_type != "cpu":
            return bwd(ctx, *args, **kwargs)
        with autocast(device_type, ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward


class autocast:
    """A context or decorator in which products (matrices, convolutions, attention, LSTM) compute in `dtype`, bfloat16 or float16,
    and losses, distances, decompositions and transforms in float32; other operators in the dtype of their operands.

    Parameters stay as they are, and so do their gradients; with `cache_enabled` they are converted once until the outermost
    context ends.  Meant for forward and loss: backward computes in the dtypes of forward by itself.  float64 is never converted.
    Products of bfloat16 are twice as fast as float32's on processors with AVX512-BF16, slower on others.

    >>> import rushlight as torch
    >>> layer = torch.nn.Linear(3, 2)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     y = layer(torch.ones(1, 3))
    ...     loss = torch.nn.functional.mse_loss(y, torch.zeros(1, 2))
    >>> loss.backward()
    >>> y.dtype, loss.dtype, layer.weight.grad.dtype
    (torch.bfloat16, torch.float32, torch.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device = device_type
        self.cached = is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        self._enabled = usable("autocast", device_type, enabled)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if self._enabled and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            caller.warn(f"autocast: expected dtype torch.bfloat16 or torch.float16 on the CPU, got {dtype}: disabling")
            self._enabled = False
        self._former: list[Any] = []

    def __enter__(self) -> Self:
        if self.device == "cpu":
            outer = modes.autocast
            copies = {} if outer is None else outer.copies
            made = Casting(self.fast_dtype, self.cached, copies) if self._enabled else None
            self._former.append((set_mode("autocast", made), made))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.device == "cpu":
            former, made = self._former.pop()
            set_mode("autocast", former)
            if former is None and made is not None:
                made.copies.clear()

    def __call__(self, function: Function) -> Function:
        """Decorates ``function``: it is called in the context."""

        @functools.wraps(function)
        def called(*args: object, **kwargs: object) -> Any:
            with self:
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]


# The modules in which PyTorch keeps autocast and the scaler.
__getattr__ = lazily("torch.amp", ("rushlight.compat.rooms.autocast_mode", "rushlight.compat.rooms.grad_scaler"))
