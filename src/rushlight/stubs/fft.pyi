"""What operators publish as `torch.fft.NAME`.

Made by `python tools/stubs.py`: what is changed here is lost.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, overload

from numpy import ndarray

from rushlight.basics import dtypes
from rushlight.basics.devices import device
from rushlight.generator import Generator
from rushlight.dispatch.formats import memory_format
from rushlight.basics.size import Size
from rushlight.storage import Storage
from rushlight.stubs import results
from rushlight.tensor import Tensor, layout

# What are names of functions, methods and dtypes too.
_bool: TypeAlias = builtins.bool
_complex: TypeAlias = builtins.complex
_dtype: TypeAlias = dtypes.dtype
_float: TypeAlias = builtins.float
_int: TypeAlias = builtins.int
_type: TypeAlias = builtins.type


def fft(input: Tensor, n: _int | None = ..., dim: _int = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def fft2(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def fftfreq(n: _int, d: _float = ..., *, dtype: _dtype | None = ..., layout: layout | None = ..., device: device | str | _int | None = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., out: Tensor | None = ...) -> Tensor: ...
def fftn(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] | None = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def fftshift(input: Tensor, dim: _int | Sequence[_int] | None = ...) -> Tensor: ...
def hfft(input: Tensor, n: _int | None = ..., dim: _int = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def hfft2(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def hfftn(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] | None = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def ifft(input: Tensor, n: _int | None = ..., dim: _int = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def ifft2(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def ifftn(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] | None = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def ifftshift(input: Tensor, dim: _int | Sequence[_int] | None = ...) -> Tensor: ...
def ihfft(input: Tensor, n: _int | None = ..., dim: _int = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def ihfft2(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def ihfftn(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] | None = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def irfft(input: Tensor, n: _int | None = ..., dim: _int = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def irfft2(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def irfftn(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] | None = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def rfft(input: Tensor, n: _int | None = ..., dim: _int = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def rfft2(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...
def rfftfreq(n: _int, d: _float = ..., *, dtype: _dtype | None = ..., layout: layout | None = ..., device: device | str | _int | None = ..., requires_grad: _bool = ..., pin_memory: _bool = ..., out: Tensor | None = ...) -> Tensor: ...
def rfftn(input: Tensor, s: _int | Sequence[_int] | None = ..., dim: _int | Sequence[_int] | None = ..., norm: str | None = ..., *, out: Tensor | None = ...) -> Tensor: ...

__all__: list[str] = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
