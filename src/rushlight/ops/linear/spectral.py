"""Short-time Fourier transforms and their inverse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight import kernels
from rushlight.basics import caller
from rushlight.basics.state import modes
from rushlight.dispatch import shapes
from rushlight.dispatch.declare import Array
from rushlight.dispatch.dims import as_int
from rushlight.dispatch.named import Named, named
from rushlight.dispatch.registry import function, op
from rushlight.kernels.reference.fourier import complex_of, real_of
from rushlight.levels.batch import everything
from rushlight.ops.linear.fourier import c2r_op, weights
from rushlight.ops.shape.strided import unfold, unfold_adjoint, unfold_op
from rushlight.tensor import Tensor, wrap

fft, functional = Named("fft"), Named("nn.functional")
BLOCK = 1 << 17  # elements of windows that are transformed together


def refuse(name: str, what: str) -> Any:
    """Raise RuntimeError."""
    raise RuntimeError(f"{name}(): {what}")


def lengths(name: str, n_fft: int, hop_length: Any, win_length: Any, window: Any) -> tuple[int, int]:
    """Hop and window length, checked."""
    hop = n_fft // 4 if hop_length is None else as_int(hop_length, name, "hop_length")
    width = n_fft if win_length is None else as_int(win_length, name, "win_length")
    if n_fft > 0 and hop <= 0:
        refuse(name, f"expected hop_length > 0, but got hop_length={hop}")
    if n_fft > 0 and not 0 < width <= n_fft:
        refuse(name, f"expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        refuse(name, f"expected a 1D window tensor of size equal to win_length={width}, but got window with size "
                     f"{list(window.shape)}")  # fmt: skip
    return hop, width


def full_window(window: object, width: int, n_fft: int, like: Tensor) -> Any:
    """The window in the middle of n_fft elements; None stands for ones everywhere."""
    if window is None:
        if width == n_fft:
            return None
        window = wrap(np.ones(width, like._array.real.dtype))
    left = (n_fft - width) // 2
    return functional.pad(window, (left, n_fft - width - left)) if width < n_fft else window


def without_window(message: str) -> None:
    """Warn once that there is no window."""
    caller.warn_once(f"{message} To suppress this warning, explicitly set `window=torch.ones(n_fft)`.")


def one_sided(onesided: bool | None, complex_values: bool) -> bool:
    """Whether half of the frequencies are kept."""
    if onesided and complex_values:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return not complex_values if onesided is None else bool(onesided)


@function(method=True, autocast="float32")
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None, align_to_window: bool | None = None) -> Tensor:  # fmt: skip
    """The Fourier transforms of windows of a signal, one every `hop_length`.  (L) or (B, L) -> (B, N, frames)

    n_fft: elements of a transform; win_length: of the window, put in the middle of them. center: the signal is padded, by
    `pad_mode`, so that frame t is centered at t * hop_length. normalized: divide by sqrt(n_fft). onesided: only the n_fft //
    2 + 1 frequencies that a real signal determines (default for those). return_complex: must be given for real signals;
    False gives real and imaginary parts in a last dimension. align_to_window: without `center`, frames begin with the window
    and not with the transform.
    """
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    complex_values = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not complex_values:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require "
                           "that return_complex=True in a future release.")  # fmt: skip
    if input._array.dtype.kind not in "fc":
        refuse("stft", f"expected a tensor of floating point or complex values, got {input.dtype}")
    if input.ndim not in (1, 2):
        refuse("stft", f"expected a 1D or 2D tensor, got {list(input.shape)}")
    hop, width = lengths("stft", n_fft, hop_length, win_length, window)
    signal = input if input.ndim == 2 else input.unsqueeze(0)
    signal = padded(signal, n_fft, width, center, pad_mode, bool(align_to_window))
    if not 0 < n_fft <= signal.shape[-1]:
        refuse("stft", f"expected 0 < n_fft <= {signal.shape[-1]}, but got n_fft={n_fft}")
    if window is None:
        without_window("A window was not provided. A rectangular window will be applied, which is known to cause spectral leakage. "
                       "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce it.")  # fmt: skip
    half = one_sided(onesided, complex_values) and not complex_values
    found = transformed(signal, full_window(window, width, n_fft, input), n_fft, hop, normalized, half).transpose(1, 2)
    found = found if input.ndim == 2 else found.squeeze(0)
    return found if return_complex or return_complex is None else named.view_as_real(found)


def transformed(signal: Tensor, window: Any, n_fft: int, hop: int, normalized: bool, half: bool) -> Any:
    """The transforms of windows of a signal: of real numbers, where nothing looks on, of a few at a time."""
    plain = half and window is not None and all(level.dry for level in modes.levels)
    if plain and signal._held.dtype in (np.float32, np.float64) and signal._held.dtype == window._held.dtype:
        return frames_op(signal, window, hop, 1 / math.sqrt(n_fft) if normalized else 1.0)
    frames = unfold(signal, 1, n_fft, hop)
    frames = frames if window is None else frames * window
    return (fft.rfft if half else fft.fft)(frames, norm="ortho" if normalized else "backward")


def _made(signal: Array, window: Array, hop: int) -> list[shapes.Made]:
    count, n = (signal.shape[1] - len(window)) // hop + 1, len(window)
    return [shapes.Made((len(signal), count, n // 2 + 1), complex_of(signal.dtype))]


@op(name="stft_frames", shape=_made)
def frames_op(signal: Array, window: Array, hop: int, scale: float) -> Array:
    """The transforms of windows (n) of a real signal, a few at a time.  (B, L), (n) -> (B, frames, n // 2 + 1)"""
    ((shape, dtype, _),) = _made(signal, window, hop)
    out = np.empty(shape, dtype)
    for row, at, part in some_frames(signal, len(window), hop):
        out[row, at] = kernels.fourier_half(part * window, (1,), scale)
    return out


def some_frames(signal: Array, n: int, hop: int) -> Iterator[tuple[int, slice, Array]]:
    """Windows of a signal, as views: whose they are, which, and a few of them.  (B, L) -> (some, n)"""
    frames, step = unfold_op.op.forward(signal, 1, n, hop), max(1, BLOCK // n)
    for row in range(len(frames)):
        for start in range(0, frames.shape[1], step):
            yield row, slice(start, min(start + step, frames.shape[1])), frames[row, start : start + step]


def _frames_raw(g: Array, signal: Array | None, window: Array | None, signal_shape: tuple[int, ...],
                window_shape: tuple[int, ...], hop: int, scale: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:  # fmt: skip
    (n,), real = window_shape, real_of(g.dtype)
    of_signal = np.zeros(signal_shape, real) if needs[0] else None
    of_window = np.zeros(n, real) if needs[1] else None
    inner = weights(g, 2, n, 0.5)[0]
    given = np.broadcast_to(np.zeros((), real), signal_shape) if signal is None else signal
    for row, at, part in some_frames(given, n, hop):
        back = kernels.fourier_whole(g[row, at] * inner, (1,), scale, n)
        if of_window is not None:
            of_window += np.einsum("fn,fn->n", part, back)
        if of_signal is not None:
            back *= window
            start, end = at.start * hop, (at.stop - 1) * hop + n
            of_signal[row, start:end] += unfold_adjoint.op.forward(back, (end - start,), 0, n, hop)
    return of_signal, of_window


@frames_op.grad("signal", "window", raw=_frames_raw, uses={"signal": "window", "window": "signal"})
def _(g: Tensor, signal: Tensor | None, window: Tensor | None, signal_shape: tuple[int, ...], window_shape: tuple[int, ...],
      hop: int, scale: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:  # fmt: skip
    (n,) = window_shape
    back = c2r_op(g * weights(g, 2, n, 0.5), (2,), scale, n)
    of_signal = unfold_adjoint(back * window, signal_shape, 1, n, hop) if needs[0] else None
    return of_signal, (unfold_op(signal, 1, n, hop) * back).sum((0, 1)) if needs[1] else None


def padded(signal: Any, n_fft: int, width: int, center: bool, pad_mode: str, align: bool) -> Any:
    """The signal (B, L) with what is put around it."""
    if center:
        half = n_fft // 2
        return functional.pad(signal.unsqueeze(0), (half, half), pad_mode).squeeze(0)
    if align:
        left = (n_fft - width) // 2
        return functional.pad(signal, (left, n_fft - width - left))
    return signal


@function(method=True)
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
          center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Tensor:  # fmt: skip
    """The signal of which `stft`, with the same arguments, gives `input`: the least squares estimate.

    input: (N, frames) or (B, N, frames), complex -> (L) or (B, L); length: of the result, which is cut or padded.
    Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984.
    """
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")  # fmt: skip
    if input.ndim not in (2, 3) or input._array.size == 0:
        refuse("istft", f"expected a tensor with 2 or 3 dimensions that is not empty, got {list(input.shape)}")
    hop, width = lengths("istft", n_fft, hop_length, win_length, window)
    if hop > width:
        refuse("istft", f"expected 0 < hop_length <= win_length, got hop_length={hop} and win_length={width}")
    half = input.shape[-2] != n_fft if onesided is None else onesided
    half = one_sided(half, return_complex or (window is not None and window.is_complex()))
    rows = n_fft // 2 + 1 if half else n_fft
    if input.shape[-2] != rows:
        refuse("istft", f"expected the frequency dimension (3rd to the last) of the input tensor to match {rows} when "
                        f"onesided={half}, but got {input.shape[-2]}")  # fmt: skip
    if window is None:
        without_window("A window was not provided. A rectangular window will be applied. Please provide the same window used by "
                       "stft to make the inversion lossless.")  # fmt: skip
    batch = input if input.ndim == 3 else input.unsqueeze(0)
    batch = batch.transpose(1, 2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = fft.ifft(batch, n=n_fft, norm=norm)
    else:  # of all frequencies of a real signal, the first half says it all
        frames = fft.irfft(batch[..., : n_fft // 2 + 1], n=n_fft, norm=norm)
    shape = full_window(window, width, n_fft, input)
    shape = wrap(np.ones(n_fft, input._array.real.dtype)) if shape is None else shape
    found = overlapped(frames, shape, n_fft, hop, center, length)
    return found if input.ndim == 3 else found.squeeze(0)


def overlapped(frames: Any, window: Any, n_fft: int, hop: int, center: bool, length: int | None) -> Any:
    """Frames added up, divided by the squares of the windows, cut to the signal."""
    total = n_fft + hop * (frames.shape[1] - 1)
    added = unfold_adjoint(frames * window, (frames.shape[0], total), 1, n_fft, hop)
    squares = (window * window).expand(1, frames.shape[1], n_fft)
    weights = unfold_adjoint(squares, (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start if center else total
    added, weights = added[:, start : min(end, total)], weights[:, start : min(end, total)]
    if weights.shape[-1] and not (np.abs(everything(weights._array)) > 1e-11).all():
        refuse(
            "istft", "window overlap add min: 1: some elements of the signal are in no window, or only where it is zero"
        )
    found = added / weights
    if end <= total:
        return found
    caller.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please "
                "check your center and hop_length settings.")  # fmt: skip
    return functional.pad(found, (0, end - total))
