"""torch.signal.windows: windows for spectral analysis, symmetric ones for filters and periodic ones for transforms.

All take the length M and the keywords sym (True: symmetric; False: one period of a periodic window), dtype, layout, device
and requires_grad. They raise ValueError for negative lengths and dtypes other than float32 and float64.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.arrays import Array
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.state import modes
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor, layout, strided, wrap

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
           "kaiser", "nuttall"]  # fmt: skip


def checked(name: str, M: int, dtype: dtype | None, layout: layout | None) -> Any:
    """The dtype of a window.  Raises ValueError for what it cannot be."""
    if as_int(M, name, "M") < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def made(values: Array, dtype: dtype, device: device | str | int | None, requires_grad: bool) -> Tensor:
    """The window as a tensor."""
    t = wrap(np.asarray(values).astype(dtype.numpy))
    place = modes.default_device if device is None else device
    t = t if place is None else t.to(place)
    return t.requires_grad_() if requires_grad else t


def span(M: int, sym: bool) -> int:
    """The distance between the ends of the window."""
    return max(M - 1 if sym else M, 1)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: dtype | None = None,
                   layout: layout | None = strided, device: device | str | int | None = None,
                   requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The sum of (-1)^i a[i] cos(2 pi i n / (M - 1)) over the coefficients."""
    kind = checked("general_cosine", M, dtype, layout)
    if not isinstance(a, (tuple, list)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    if M <= 1:
        return made(np.ones(M), kind, device, requires_grad)
    angles = np.arange(M) * (2 * np.pi / span(M, sym))
    total = sum((-1) ** i * c * np.cos(i * angles) for i, c in enumerate(a))
    return made(total, kind, device, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: dtype | None = None,
                    layout: layout | None = strided, device: device | str | int | None = None,
                    requires_grad: bool = False) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos(2 pi n / (M - 1))."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def hamming(M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout | None = strided,
            device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The Hamming window: general_hamming with 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout | None = strided,
         device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The Hann window: general_hamming with 0.5.

    >>> import rushlight as torch
    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout | None = strided,
             device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The Blackman window, of three cosines."""
    checked("blackman", M, dtype, layout)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def nuttall(M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout | None = strided,
            device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The minimal four-term Blackman-Harris window of Nuttall (IEEE ASSP 29, 1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)  # fmt: skip


def bartlett(M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout | None = strided,
             device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The triangular window that ends in zeros."""
    kind = checked("bartlett", M, dtype, layout)
    if M <= 1:
        return made(np.ones(M), kind, device, requires_grad)
    return made(1 - np.abs(-1 + 2 * np.arange(M) / span(M, sym)), kind, device, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout | None = strided,
           device: device | str | int | None = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Half a period of the sine."""
    kind = checked("cosine", M, dtype, layout)
    n = M if sym or M <= 1 else M + 1
    return made(np.sin(np.pi * (np.arange(M) + 0.5) / max(n, 1)), kind, device, requires_grad)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: dtype | None = None,
                layout: layout | None = strided, device: device | str | int | None = None,
                requires_grad: bool = False) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau); a center other than the middle is for periodic windows alone."""
    kind = checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M <= 1:
        return made(np.ones(M), kind, device, requires_grad)
    middle = span(M, sym) / 2.0 if center is None else center
    return made(np.exp(-np.abs(np.arange(M) - middle) / tau), kind, device, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: dtype | None = None,
             layout: layout | None = strided, device: device | str | int | None = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """exp(-((n - (M - 1) / 2) / std)^2 / 2)."""
    kind = checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M <= 1:
        return made(np.ones(M), kind, device, requires_grad)
    return made(np.exp(-0.5 * ((np.arange(M) - span(M, sym) / 2.0) / std) ** 2), kind, device, requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: dtype | None = None,
           layout: layout | None = strided, device: device | str | int | None = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta), with the modified Bessel function I0."""
    kind = checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return made(np.ones(M), kind, device, requires_grad)
    x = -1 + 2 * np.arange(M) / span(M, sym)
    inside = beta * np.sqrt(np.clip(1 - x * x, 0, None))
    values = named.i0(wrap(np.append(inside, beta)))._array
    return made(values[:-1] / values[-1], kind, device, requires_grad)
