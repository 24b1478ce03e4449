"""What files hold, by the ends of their names."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import numpy as np

from rushlight.tensor import wrap
from rushlight.utils.data.datapipes.utils.common import StreamWrapper

__all__ = ["Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn", "handle_extension",
           "imagehandler", "mathandler", "videohandler"]  # fmt: skip

_IMAGES = ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm")
_IMAGE_SPECS = {  # library, dtype of elements, colours
    "l8": ("numpy", "uint8", "l"), "rgb8": ("numpy", "uint8", "rgb"), "rgba8": ("numpy", "uint8", "rgba"), "l": ("numpy", "float", "l"),
    "rgb": ("numpy", "float", "rgb"), "rgba": ("numpy", "float", "rgba"), "torchl8": ("torch", "uint8", "l"),
    "torchrgb8": ("torch", "uint8", "rgb"), "torchrgba8": ("torch", "uint8", "rgba"), "torchl": ("torch", "float", "l"),
    "torchrgb": ("torch", "float", "rgb"), "torch": ("torch", "float", "rgb"), "torchrgba": ("torch", "float", "rgba"),
    "pill": ("pil", None, "l"), "pil": ("pil", None, "rgb"), "pilrgb": ("pil", None, "rgb"), "pilrgba": ("pil", None, "rgba"),
}  # fmt: skip


def _loaded(data: bytes) -> object:
    """What a pickle holds: `pickle.loads`, to be asked for with files that one trusts alone."""
    return pickle.loads(data)


_BASIC: dict[tuple[str, ...], Callable[[bytes], Any]] = {
    ("txt", "text", "transcript"): lambda data: data.decode("utf-8"),
    ("cls", "cls2", "class", "count", "index", "inx", "id"): lambda data: _number(data),
    ("json", "jsn"): lambda data: json.loads(data),
    ("pyd", "pickle"): _loaded,
}


def _number(data: bytes) -> int | None:
    try:
        return int(data)
    except ValueError:
        return None


def basichandlers(extension: str, data: bytes) -> Any:
    """Text, numbers, JSON and pickles; None for other ends of names."""
    return next((decode(data) for ends, decode in _BASIC.items() if extension in ends), None)


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """What decodes names with one of several ends, given with blanks between them, by `f(data)`."""
    ends = [end.split(".") for end in extensions.lower().split()]

    def g(key: str, data: object) -> Any:
        last = key.lower().split(".")
        return f(data) if any(last[-len(end) :] == end for end in ends if len(end) <= len(last)) else None

    return g


class ImageHandler:
    """Decodes images: "rgb", "l", "rgba", with "8" for bytes, "torch" for tensors (channels first) or "pil" before it.

    Raises AssertionError for another way, ModuleNotFoundError without Pillow.
    """

    def __init__(self, imagespec: str) -> None:
        if imagespec not in _IMAGE_SPECS:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in _IMAGES:
            return None
        try:
            import PIL.Image
        except ImportError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder. Please use `pip install Pillow`"
            ) from error
        library, kind, mode = _IMAGE_SPECS[self.imagespec]
        with io.BytesIO(data) as stream:
            image = PIL.Image.open(stream)
            image.load()
            image = image.convert(mode.upper())
        return image if library == "pil" else _as_array(np.asarray(image), library, kind)


def _as_array(image: Any, library: str, kind: str | None) -> object:
    """An image as an array (H, W, C), or as a tensor (C, H, W)."""
    image = image.astype("f") / 255 if kind == "float" else image.copy()
    if library == "numpy":
        return image
    return wrap(np.ascontiguousarray(image.transpose(2, 0, 1) if image.ndim == 3 else image[None]))


def imagehandler(imagespec: str) -> ImageHandler:
    """What decodes images in one way."""
    return ImageHandler(imagespec)


def videohandler(extension: str, data: bytes) -> None:
    """None: videos are left to other packages."""


def audiohandler(extension: str, data: bytes) -> None:
    """None: sounds are left to other packages."""


class MatHandler:
    """Decodes files of MATLAB by SciPy, with the arguments of `scipy.io.loadmat`."""

    def __init__(self, **loadmat_kwargs: object) -> None:
        import scipy.io

        self.sio, self.loadmat_kwargs = scipy.io, loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        with io.BytesIO(data) as stream:
            return self.sio.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: object) -> MatHandler:
    """What decodes files of MATLAB."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The end of a name, without the dot."""
    return PurePath(pathname).suffix[1:]


class Decoder:
    """Decodes the values of a dictionary by the first handler that knows the ends of their names."""

    def __init__(self, *handler: Callable[..., Any], key_fn: Callable[[str], Any] = extension_extract_fn) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[..., Any] | None) -> None:
        """Ask these before the others."""
        self.handlers = [*(h for h in handler if h is not None), *self.handlers]

    @staticmethod
    def _is_stream_handle(data: object) -> bool:
        inner = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(inner, (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """One value, decoded if a handler knows it."""
        if not data:
            return data
        extension = self.key_fn(key)
        if self._is_stream_handle(data):
            stream = data
            data = stream.read()
            stream.close()
        for handle in self.handlers:
            found = handle(extension, data)
            if found is not None:
                return found
        return data

    def decode(self, data: dict[str, Any]) -> dict[str, Any]:
        """All values of a dictionary; names with two underscores before and behind, and their values, stay."""
        return {k: v if k.startswith("__") and k.endswith("__") else self.decode1(k, v) for k, v in data.items()}

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        return self.decode(data)
