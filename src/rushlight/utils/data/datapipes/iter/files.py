"""Datapipes of files: their paths, their streams, and what these hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, sized
from rushlight.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe
from rushlight.utils.data.datapipes.utils.common import (
    StreamWrapper,
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
    validate_pathname_binary_tuple,
)
from rushlight.utils.data.datapipes.utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "RoutedDecoderIterDataPipe", "StreamReaderIterDataPipe"]


def _length(pipe: object, length: int) -> int:
    if length == -1:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return length


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """The paths of the files in folders, in order unless `non_deterministic`.

    root: a folder, a list of them, or a datapipe. masks: patterns of names. length: what `len` says.
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe[str] = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots: Any = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        return _length(self, self.length)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[tuple[str, StreamWrapper]]):
    """Pairs of a path and its file, opened.  mode: "r", "b", "t" or both.  Raises ValueError for another mode."""

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, StreamWrapper]]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        return _length(self, self.length)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """Pairs of a path and what its stream holds, in pieces of `chunk` bytes, or whole."""

    def __init__(self, datapipe: IterDataPipe[tuple[str, Any]], chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, stream in self.datapipe:
            while True:
                piece = stream.read(self.chunk)
                if not piece:
                    stream.close()
                    break
                yield path, piece


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[tuple[str, Any]]):
    """Pairs of a path and its stream, decoded by the first of `handlers` that knows it; key_fn: its kind, of the path."""

    def __init__(
        self,
        datapipe: Iterable[tuple[str, Any]],
        *handlers: Callable[..., Any],
        key_fn: Callable[[str], Any] = extension_extract_fn,
    ) -> None:
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Ask these before the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            validate_pathname_binary_tuple(data)
            decoded = self.decoder({data[0]: data[1]})
            yield data[0], decoded[data[0]]

    def __len__(self) -> int:
        return sized(self, [self.datapipe])[0]
