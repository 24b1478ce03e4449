"""Mixed precision where there is no GPU: scripts that switch it off, or ask for CUDA's, run in full precision.

As in PyTorch without CUDA, ``autocast("cuda")`` and ``GradScaler("cuda")`` warn and do nothing; so do those for the CPU,
for rushlight computes in the dtypes that it is given.
"""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from rushlight.basics import caller, dtypes

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

Function = TypeVar("Function", bound=Callable[..., Any])


def is_autocast_available(device_type: str) -> bool:
    """Whether mixed precision can be had on devices of this kind: no."""
    return False


# What PyTorch would compute in, by kind of device.
_LOWER = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16, "hpu": dtypes.bfloat16, "ipu": dtypes.float16,
          "mps": dtypes.float16, "xla": dtypes.bfloat16, "xpu": dtypes.float16}  # fmt: skip


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on devices of this kind compute in mixed precision now: no.

    Raises RuntimeError for an unknown kind of device.
    """
    get_autocast_dtype(device_type)
    return False


def is_autocast_cpu_enabled() -> bool:
    """Whether operators on the CPU compute in mixed precision now: no."""
    return False


def is_autocast_cache_enabled() -> bool:
    """Whether autocast would keep converted parameters: yes, and there are none."""
    return True


def clear_autocast_cache() -> None:
    """Forget converted parameters: there are none."""


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that PyTorch's autocast takes on devices of this kind.  Raises RuntimeError for an unknown kind.

    >>> import rushlight as torch
    >>> torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
    (torch.float16, False)
    """
    if device_type not in _LOWER:
        raise RuntimeError(f"autocast: expected one of the device types {', '.join(_LOWER)}, got {device_type!r}")
    return _LOWER[device_type]


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """``get_autocast_dtype("cuda")``, by its older name."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """``get_autocast_dtype("cpu")``, by its older name."""
    return get_autocast_dtype("cpu")


def _device_type(name: str, device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: expected `device_type` of type `str`, got: `{type(device_type)}`")
    return device_type


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Any:
    """Decorates ``forward`` of a custom function for autocast: it gets its inputs as they are, as without autocast.

    ``cast_inputs`` is what autocast would convert them to.  Without a function, a decorator that does the same.
    Raises ValueError unless ``device_type`` is a string.

    >>> import rushlight as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float16)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @torch.amp.custom_bwd(device_type="cuda")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> Double.apply(torch.ones(2))
    tensor([2., 2.])
    """
    device_type = _device_type("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(ctx, "save_for_backward"):  # else an input: the function has setup_context
            ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), False
        return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates ``backward`` of a function whose ``forward`` has :func:`custom_fwd`: it computes as that did.

    Without a function, a decorator that does the same.  Raises ValueError unless ``device_type`` is a string.
    """
    device_type = _device_type("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    return bwd


def _switched_off(name: str, device_type: str, enabled: bool) -> None:
    """Checks that there is nothing to do; warns where CUDA was asked for, as PyTorch does without it.

    Raises RuntimeError for an unknown kind of device.
    """
    if device_type not in ("cpu", "cuda"):
        raise RuntimeError(f"{name}: expected device_type 'cpu' or 'cuda', got {device_type!r}")
    if not enabled:
        return
    if device_type == "cuda":
        caller.warn(f"{name}: CUDA is not available, disabling")
    else:
        caller.warn(
            f"{name}: there is no mixed precision on the CPU, disabling: operators compute in the dtypes that they are given. "
            "Convert model and inputs for less memory, as in model.to(torch.bfloat16)"
        )


class autocast:
    """A context or decorator that leaves everything in the precision it has.

    >>> import rushlight as torch
    >>> with torch.autocast("cpu", enabled=False):
    ...     y = torch.ones(2) * 2
    >>> y.dtype
    torch.float32
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        _switched_off("autocast", device_type, enabled)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return None

    def __call__(self, function: Function) -> Function:
        """Decorates ``function`` without changing what it does."""

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]


class GradScaler:
    """The loss scaler, switched off: losses pass as they are and steps are the optimizer's."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _switched_off("GradScaler", device, enabled)
        self._asked_for = enabled

    def is_enabled(self) -> bool:
        """Whether losses are scaled: no."""
        return False

    def get_scale(self) -> float:
        """The factor of losses: 1."""
        return 1.0

    def scale(self, outputs: Any) -> Any:
        """``outputs`` as they are."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing was scaled."""
        self._check(optimizer)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step."""
        self._check(optimizer)
        return optimizer.step(*args, **kwargs)

    def _check(self, optimizer: Any) -> None:
        """Raises RuntimeError for an optimizer that steps inside backward, unless ``enabled=False`` was passed."""
        if self._asked_for and getattr(optimizer, "_in_backward", None) is not None:
            raise RuntimeError(
                f"GradScaler: this {type(optimizer).__name__} steps inside backward (optim.in_backward), and loss scaling has "
                "to see all gradients before any parameter is stepped: it looks for infinite ones, divides by the scale, and "
                "may skip the step. Train in float32 or bfloat16 and pass enabled=False, or step after backward."
            )

    def update(self, new_scale: Any = None) -> None:
        """There is no factor to change."""

    def state_dict(self) -> dict[str, Any]:
        """Empty, as PyTorch's is when it is switched off."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Accepts any state, and keeps none."""
