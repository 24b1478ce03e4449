"""The windows at the top of ``torch``: as those of torch.signal.windows, periodic unless asked otherwise.

All take the length and, after their own arguments, the keywords dtype (a floating-point one; default: the default dtype),
layout, device, pin_memory and requires_grad, and give a tensor of shape (window_length,).  They raise RuntimeError for
negative lengths and other dtypes and layouts, TypeError for what is no length.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch.options import check_pinned
from rushlight.overrides.attach import function
from rushlight.signal import windows
from rushlight.tensor import Tensor, strided

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _length(name: str, length: object, periodic: object) -> int:
    if isinstance(length, bool | float) or not hasattr(length, "__index__"):
        kind = type(length).__name__
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {kind}")
    if not isinstance(periodic, bool | int):
        raise TypeError(f"{name}(): argument 'periodic' (position 2) must be bool, not {type(periodic).__name__}")
    number = operator.index(length)
    if number < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={number}")
    return number


def _window(name: str, make: Callable[..., Tensor], length: Any, periodic: Any, dtype: dtype | None = None, layout: object = None,
            device: device | str | int | None = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """What `make` of torch.signal.windows computes in float64, in the dtype asked for."""
    if pin_memory:
        check_pinned(name)
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, for strided tensors only, got: {layout}")
    made: Tensor = make(_length(name, length, periodic), sym=not periodic, dtype=dtypes.float64, device=device).to(
        dtype
    )
    return made.requires_grad_() if requires_grad else made


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """The Hann window: sin^2(pi n / N), N the length or, unless `periodic`, one less.

    >>> import rushlight as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", windows.hann, window_length, periodic, **options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """alpha - beta cos(2 pi n / N), N the length or, unless `periodic`, one less.

    >>> import rushlight as torch
    >>> torch.hamming_window(3, periodic=False)
    tensor([0.0800, 1.0000, 0.0800])
    """

    def make(length: int, **how: Any) -> Tensor:
        return windows.general_cosine(length, a=[alpha, beta], **how)

    return _window("hamming_window", make, window_length, periodic, **options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N), N the length or, unless `periodic`, one less.

    >>> import rushlight as torch
    >>> torch.blackman_window(3)[1:]
    tensor([0.6300, 0.6300])
    """
    return _window("blackman_window", windows.blackman, window_length, periodic, **options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """The triangle 1 - |2 n / N - 1|, N the length or, unless `periodic`, one less.

    >>> import rushlight as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", windows.bartlett, window_length, periodic, **options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta), N the length or, unless `periodic`, one less.

    >>> import rushlight as torch
    >>> torch.kaiser_window(3, periodic=False, beta=5.0)
    tensor([0.0367, 1.0000, 0.0367])
    """

    def make(length: int, **how: Any) -> Tensor:
        return windows.kaiser(length, beta=abs(beta), **how)  # I0 is even

    return _window("kaiser_window", make, window_length, periodic, **options)


for _name in __all__:  # modes and what stands for a length are asked, as of other functions of torch
    globals()[_name] = function(globals()[_name], _name, "")
