"""Short-time Fourier transforms and their inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.basics import caller
from rushlight.dispatch.named import Named, named
from rushlight.dispatch.registry import function
from rushlight.levels.batch import everything
from rushlight.ops.shape.strided import unfold, unfold_adjoint
from rushlight.tensor import Tensor, wrap

fft, functional = Named("fft"), Named("nn.functional")


def refuse(name: str, what: str) -> Any:
    """Raise RuntimeError."""
    raise RuntimeError(f"{name}(): {what}")


def lengths(name: str, n_fft: int, hop_length: Any, win_length: Any, window: Any) -> tuple[int, int]:
    """Hop and window length, checked."""
    hop = n_fft // 4 if hop_length is None else int(hop_length)
    width = n_fft if win_length is None else int(win_length)
    if n_fft > 0 and hop <= 0:
        refuse(name, f"expected hop_length > 0, but got hop_length={hop}")
    if n_fft > 0 and not 0 < width <= n_fft:
        refuse(name, f"expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        refuse(name, f"expected a 1D window tensor of size equal to win_length={width}, but got window with size "
                     f"{list(window.shape)}")  # fmt: skip
    return hop, width


def full_window(window: Any, width: int, n_fft: int, like: Tensor) -> Any:
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
    shape = full_window(window, width, n_fft, input)
    frames = unfold(signal, 1, n_fft, hop)
    frames = frames if shape is None else frames * shape
    transform = fft.rfft if one_sided(onesided, complex_values) and not complex_values else fft.fft
    found = transform(frames, norm="ortho" if normalized else "backward").transpose(1, 2)
    found = found if input.ndim == 2 else found.squeeze(0)
    return found if return_complex or return_complex is None else named.view_as_real(found)


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
