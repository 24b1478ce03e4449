"""The allocator under NumPy's arrays, seen from Python: bytes counted, events recorded, a limit kept.

NumPy lets its data allocator be replaced (NumPy enhancement proposal 49).  `install` puts the one of
``native/memory.cpp`` under every array that is made from then on, in every thread.  Where there are no native kernels,
`rushlight.kernels.traced` does the same in Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rushlight.kernels.native import loader
from rushlight.kernels.traced import TracedLibrary, trace

_SET, _DEFAULT = 304, 306  # places of PyDataMem_SetHandler and PyDataMem_DefaultHandler in NumPy's C API
_PYTHON = ("PyGILState_Check", "PyEval_GetFrame", "PyFrame_GetBack", "PyFrame_GetCode", "PyFrame_GetLasti", "Py_IncRef",
           "Py_DecRef", "PyGC_Disable", "PyGC_Enable", "PyGILState_Ensure", "PyGILState_Release")  # fmt: skip
_p, _i, _n, _o = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.py_object
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "handler": (_i,), "python": (_p,), "totals": (_p,), "reset_peak": (), "exact": (_i,), "limit": (_n, _p),
    "record": (_n, _i), "aside": (_i,), "forget": (), "adopt": (_p, _n, _i), "label": (_n, _i, _i), "category": (_o, _i, _i),
    "mark": (_i, _n, _n), "sizes": (_p,), "events": (_p, _n, _p), "alive": (_p, _n, _p), "stack_size": (_i,), "stack": (_i, _p, _p),
}  # fmt: skip
Room = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int64)
R = TypeVar("R")

ASIDE = 1 << 15  # bytes (memory.cpp, kLarge)
EVENT = np.dtype([("time", "i8"), ("block", "i8"), ("address", "i8"), ("size", "i8"), ("value", "i8"), ("stack", "i4"),
                  ("label", "i4"), ("thread", "u4"), ("action", "u1"), ("category", "u1"), ("unused", "u1", 2)])  # fmt: skip


class Totals(NamedTuple):
    """What was counted since the allocator was installed, in bytes and blocks."""

    bytes: int
    peak: int
    blocks: int
    blocks_ever: int
    bytes_ever: int


class Library:
    """The functions ``rl_memory_*``, called with the GIL held."""

    def __init__(self, path: str):
        library = ctypes.PyDLL(path)
        for name, kinds in _ARGUMENTS.items():
            function = library[f"rl_memory_{name}"]
            function.argtypes, function.restype = (
                kinds,
                _i if name in ("label", "events", "alive", "stack_size", "aside") else None,
            )
            setattr(self, name, function)
        self.handler.restype = _p
        addresses = (ctypes.cast(getattr(ctypes.pythonapi, name), _p) for name in _PYTHON)
        self.python((_p * len(_PYTHON))(*addresses))

    def __getattr__(self, name: str) -> Any: ...


_library: Library | TracedLibrary | None = None
_failure = "it was not asked for yet"
_late = False  # whether arrays may have been made before
_former = 0  # the peak from before something was measured for itself: see `taken`


def install(build: bool = True) -> bool:
    """Count NumPy's memory from now on; whether it is counted.  build: compile what is not compiled yet."""
    global _library, _failure, _late
    if _library is not None:
        return True
    if os.environ.get("RUSHLIGHT_COUNT_MEMORY", "1").lower() in ("0", "false", "off", "no"):
        _failure = "RUSHLIGHT_COUNT_MEMORY is off"
        return False
    path = loader.library() if build or loader.built() else None
    if _library is not None:  # done by what loaded the kernels
        return True
    if path is None and not build and loader.may_build():
        _failure = "the native kernels are not built yet"
        return False
    try:
        found, _failure = _native(path) if path is not None and not _marked() else _traced()
    except Exception as error:  # an unknown NumPy: arithmetic goes on without
        found, _failure = None, f"{type(error).__name__}: {error}"
    if found is not None and not _failure:
        _library, _late = found, build
    return not _failure


def _native(path: str) -> tuple[Library, str]:
    """The functions of the native kernels, under NumPy's arrays; what is in the way, or ""."""
    found = Library(path)
    put, _, failure = _handlers()
    if not failure:
        put(found.handler(_huge_pages()))
    return found, failure


def _traced() -> tuple[TracedLibrary | None, str]:
    """The functions in Python; what is in the way, or ""."""
    put, former, failure = _handlers()
    failure = failure or trace()
    return (None if failure else TracedLibrary(put, former)), failure


def _marked() -> bool:
    """Whether there are marks around NumPy's own blocks, for which Python has a debugger (`-X dev`, PYTHONMALLOC): NumPy takes them from
    Python from 2.5 on, and those that are there would be given back to the C library, which does not know them.
    """
    _, address, failure = _handlers()
    if failure:
        return False
    take = ctypes.PYFUNCTYPE(_p, _p, ctypes.c_size_t)
    give = ctypes.PYFUNCTYPE(None, _p, _p, ctypes.c_size_t)
    context, malloc, _, _, free = (_p * 5).from_address(address + 128)
    size = 4096  # of what is smaller NumPy has some that was used before
    block = take(malloc or 0)(context, size)
    fresh = ctypes.string_at(block, size)
    give(free or 0)(context, block, size)
    return fresh == b"\xcd" * size  # as that debugger fills what it gives


def was_late() -> bool:
    """Whether arrays were made before they were counted, of which nobody was told yet."""
    global _late
    late, _late = library() is not None and _late, False
    return late


def library() -> Library | TracedLibrary:
    """The functions; installed now if they were not.  Raises RuntimeError where they cannot be."""
    if _library is None and not install():
        raise RuntimeError(f"memory cannot be counted: {_failure}. Look at what `rushlight doctor` says.")
    assert _library is not None
    return _library


def installed() -> bool:
    """Whether memory is being counted."""
    return _library is not None


def _huge_pages() -> bool:
    from numpy._core import multiarray

    ask: Any = multiarray.__dict__["_get_madvise_hugepage"]
    return bool(ask())


def _handlers() -> tuple[Callable[[int], Any], int, str]:
    """A function that has NumPy's default capsule point to a handler, for all threads and contexts at once, the address of
    NumPy's own, and what is in the way, or "".

    NumPy's own function for it, PyDataMem_SetHandler, sets a context variable, which new threads and the cells of a
    notebook do not inherit.
    """
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    api = ctypes.pythonapi
    get, put, name = api.PyCapsule_GetPointer, api.PyCapsule_SetPointer, b"mem_handler"
    get.restype, get.argtypes = _p, [ctypes.py_object, ctypes.c_char_p]
    put.argtypes = [ctypes.py_object, _p]
    table = ctypes.cast(get(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(_p))
    capsule = ctypes.cast(table[_DEFAULT] or 0, ctypes.POINTER(ctypes.py_object)).contents.value
    address = get(capsule, name)
    former = ctypes.cast(address, ctypes.POINTER(ctypes.c_ubyte * 128)).contents
    wrong = ""
    if bytes(former[:127]).split(b"\0")[0] != b"default_allocator" or former[127] != 1:
        wrong = "NumPy's data allocator is not its own, or of another version than 1"
    return lambda handler: put(capsule, handler), address, wrong


def totals() -> Totals:
    """Bytes and blocks now, at the peak, and ever; -1 where that is not counted."""
    found = _counted()
    return found if found.peak >= _former else found._replace(peak=_former)


def _counted() -> Totals:
    out = (ctypes.c_int64 * 5)()
    library().totals(out)
    return Totals(*out)


def reset_peak() -> None:
    """Let the peak be what is in use now."""
    global _former
    _former = 0
    library().reset_peak()


def peak_since() -> int:
    """The most bytes in use at once since this was asked last, or since the peak was reset: `totals` tells of all that time."""
    global _former
    found = _counted().peak
    _former = max(_former, found)
    library().reset_peak()
    return found


def taken(fn: Callable[[], Any], tell: Callable[[Any], R]) -> tuple[R, int]:
    """What `tell` says of what `fn` returns, and the most bytes that were in use at once while that ran beyond those before.

    They are no part of the peak of which `totals` tells: what `fn` returned is gone then. What other threads take
        meanwhile is counted.
    """
    global _former
    before, result = totals(), None
    reset_peak()
    try:
        result = fn()
        most = totals().peak - before.bytes
        return tell(result), most
    finally:
        result, _former = None, before.peak
        library().reset_peak()


def blocks() -> int:
    """How many blocks are alive."""
    lib = library()
    return lib.blocks() if isinstance(lib, TracedLibrary) else totals().blocks


def limit(most: int, make_room: Callable[[int], bool] | None) -> Any:
    """Refuse (as MemoryError) what would take more than `most` bytes in all, after `make_room(bytes too many)`; 0: no limit.

    make_room: whether they are free now; other threads may take them, then it is asked again. Keep what is returned
        as long as the limit is set.
    """
    room = Room(make_room) if make_room is not None else None
    library().limit(most, room)
    return room


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """What this thread allocates within is about the recording: it is no part of it, and not counted (from `ASIDE` on)."""
    former = _library.aside(1) if _library is not None else 0
    try:
        yield
    finally:
        if _library is not None:
            _library.aside(former)


def read() -> tuple[Any, int, Any, list[list[tuple[Any, int]]]]:
    """What was recorded: events (E) and how many were dropped before them, blocks alive (B), and stacks.

    Once the recording is over, alive is what was when it ended.  A stack is a list of code objects and positions in
    them, innermost first.
    """
    lib = library()
    if isinstance(lib, TracedLibrary):
        return lib.read(EVENT)
    events, (kept, dropped, alive, stacks) = _filled(lib, lib.events, lambda sizes: sizes[0] + sizes[2])
    return events[:kept], dropped, events[kept : kept + alive], [_stack(lib, i) for i in range(stacks)]


def alive() -> Any:
    """Blocks alive, as `read` tells them, without the events: soon done, while a recording goes on.  (B)"""
    lib = library()
    if isinstance(lib, TracedLibrary):
        return lib.alive_now(EVENT)
    blocks, sizes = _filled(lib, lib.alive, lambda sizes: sizes[2])
    return blocks[: sizes[2]]


def _filled(lib: Library, fill: Callable[..., int], count: Callable[[Any], int]) -> tuple[Any, Any]:
    """What `fill` writes into an array for at least as many events as `count` says of the sizes, and the sizes."""
    sizes = (ctypes.c_int64 * 4)()
    lib.sizes(sizes)
    while True:  # again if other threads made more meanwhile
        # Of less than `ASIDE` bytes the recording would have an event.
        events = np.zeros(max(count(sizes) + 64, ASIDE // EVENT.itemsize + 1), EVENT)
        if fill(events.ctypes.data, len(events), sizes):
            return events, sizes


def stack(number: int) -> list[tuple[Any, int]]:
    """A stack of the recording that goes on: code objects and positions in them, innermost first."""
    lib = library()
    return lib.stack_of(number) if isinstance(lib, TracedLibrary) else _stack(lib, number)


def _stack(lib: Library, number: int) -> list[tuple[Any, int]]:
    size = lib.stack_size(number)
    codes, positions = (ctypes.py_object * size)(), (ctypes.c_int * size)()
    lib.stack(number, codes, positions)
    pairs = [(codes[i], positions[i]) for i in range(size)]
    ctypes.memset(codes, 0, ctypes.sizeof(codes))  # the references are the recording's
    return pairs
