"""Columns of elements, and files: what datapipes share."""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, ClassVar

from rushlight.basics.caller import warn
from rushlight.basics.signatures import signature_of

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks",
           "validate_input_col", "validate_pathname_binary_tuple"]  # fmt: skip


def _is_local_fn(fn: object) -> bool:
    """Whether it is a function inside of another one, which cannot be pickled."""
    if isinstance(fn, functools.partial):
        return False
    name = getattr(fn, "__qualname__", "")
    return "<locals>" in name or "<locals>" in getattr(type(fn), "__qualname__", "")


def _check_unpickable_fn(fn: Callable[..., object]) -> None:
    """Warn of a function that cannot be pickled.  Raises TypeError for what cannot be called."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    inner: object = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    what = "Local" if _is_local_fn(inner) else "Lambda" if getattr(inner, "__name__", "") == "<lambda>" else None
    if what is not None:
        warn(
            f"{what} function is not supported by pickle, please use regular python function or functools.partial instead."
        )


def validate_input_col(fn: Callable[..., object], input_col: int | tuple[object, ...] | list[object] | None) -> None:
    """Raise ValueError unless a function can be called with the elements of these columns by position."""
    try:
        parameters = signature_of(fn).parameters.values()
    except ValueError:  # builtin functions have none
        return
    given = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in by_position if p.default is p.empty]
    name = getattr(fn, "__name__", repr(fn))
    alone = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if alone:
        raise ValueError(f"The function {name} takes keyword-only parameters, which is not allowed: {', '.join(alone)}")
    if len(needed) > given:
        raise ValueError(f"The function {name} takes {len(needed)} non-default parameters, but {given} are required.")
    if len(by_position) < given and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ValueError(f"The function {name} takes {len(by_position)} parameters, but {given} are required.")


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits a pattern, or one of several; every name fits none."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False
) -> Iterable[str]:
    """The paths of the files in a folder whose names fit, or the path itself where it is a file."""

    def failed(error: OSError) -> None:
        warn(f"{error.filename} : {error.strerror}")
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, folders, names in os.walk(root, onerror=failed):
        folder = os.path.abspath(folder) if abspath else folder
        if not non_deterministic:
            names.sort()
        yield from (os.path.join(folder, name) for name in names if match_masks(name, masks))
        if not recursive:
            return
        if not non_deterministic:
            folders.sort()


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterable[tuple[str, StreamWrapper]]:
    """Pairs of a path and its file, opened.  Raises TypeError for a path that is no string."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for path in (pathnames,) if isinstance(pathnames, str) else pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, mode, encoding=encoding), name=path)


def validate_pathname_binary_tuple(data: tuple[str, IO[bytes]]) -> None:
    """Raise TypeError or ValueError unless it is a pair of a path and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not hasattr(data[1], "read"):
        raise TypeError(f"binary stream within the tuple should have a stream, but it is type {type(data[1])}")


class StreamWrapper:
    """A stream that is closed when nobody needs it: with its children, where it has any (as an archive has)."""

    session_streams: ClassVar[dict[StreamWrapper, int]] = {}
    debug_unclosed_streams = False

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.close_on_last_child, self.closed = 0, False, False
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: object, depth: int = 0) -> None:
        """Close all streams in a tree of lists, tuples and dictionaries."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
            return
        inside = v.values() if isinstance(v, dict) else v if isinstance(v, (list, tuple)) else ()
        for each in inside:
            cls.close_streams(each, depth + 1)

    def close(self, *args: object, **kwargs: object) -> None:
        """Close it, and its parent where that waits for its last child."""
        if self.closed:
            return
        StreamWrapper.session_streams.pop(self, None)
        self.closed = True
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if parent.child_counter == 0 and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)

    def autoclose(self) -> None:
        """Close it now, or with its last child."""
        self.close_on_last_child = True
        if self.child_counter == 0:
            self.close()

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self.file_obj)]

    def __del__(self) -> None:
        if not self.closed:
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)  # type: ignore[misc]


Columns = int | str | Sequence[Any]
