"""Loads the kernels with ctypes: those that the wheel brought, else compiled here, once, into a cache.

`tables` does the work, on import if the kernels are compiled already, else at their first call, and never raises: with
neither, or with ``RUSHLIGHT_NATIVE=0`` in the environment, there are no tables and the callers take their
NumPy references.  `status` says what happened and why.

The compiled file's name holds a hash of the sources, the flags and the compiler (path, size, date), so that a
change of any of them compiles anew.  Of processes that start together one compiles, under a lock, and the others wait; it
compiles in a folder of its own and renames, so that nobody meets half a library.  What was compiled is used also where the
compiler is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import math
import os
import stat
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from rushlight import cpu
from rushlight.basics import heap
from rushlight.basics.arrays import Array
from rushlight.kernels.native import compiler as compiling
from rushlight.kernels.native import divided, ufuncs
from rushlight.kernels.native.compiler import SOURCES, find_compiler
from rushlight.kernels.native.signatures import ABI, BFLOAT16, BYTES, FLOAT16, HALVES, MAPS, ROWS, SIGNATURES, TILES


class Kernels:
    """The functions of one dtype: each is bound when it is first asked for, by what its family has declared until then."""

    def __init__(self, lib: Any, suffix: str, signatures: dict[str, str] = SIGNATURES) -> None:
        self._lib, self._suffix, self._signatures = lib, suffix, signatures

    def __getattr__(self, name: str) -> Any:
        letters = self._signatures.get(name)
        if letters is None:
            raise AttributeError(f"no family of kernels has declared {name!r}")
        function = _function(self._lib, f"rl_{name}_{self._suffix}", letters)
        setattr(self, name, function)
        return function


Tables = dict[Any, Kernels]

# Python's functions that native code calls, in the order of `Python` in call.h.
ASKED = (
    *("Type_IsSubtype", "Err_SetString", "Err_Occurred", "Eval_SaveThread", "Eval_RestoreThread"),
    *("Number_AsSsize_t", "Long_AsUnsignedLongLongMask", "Float_AsDouble", "Long_FromSsize_t", "_IncRef", "_DecRef"),
    *("Capsule_New", "Capsule_GetPointer", "CFunction_NewEx"),
)

_HEAD = object.__basicsize__  # bytes before an ndarray's data pointer
BROUGHT = os.path.join(SOURCES, "compiled")  # the kernels that a wheel brings, for each kind of machine

_lock = threading.RLock()
_tables: Tables | None = None
_library: Any = None
_threads = 0  # what set_num_threads was given; 0: the default
_status: dict[str, Any] = {"state": "not loaded yet"}
_told: list[str] = []  # the folder, once its user was told that kernels are compiled into it


def tables() -> Tables:
    """The kernels by dtype (float32, float64), and those of 16-bit floats by suffix and kind; empty where there are none.  Compiles on first use."""
    global _tables
    if _tables is None:
        with _lock:
            if _tables is None:
                _tables = _load()
                if _tables:
                    from rushlight.kernels import allocator  # which asks for the library, and finds it

                    allocator.install()
    return _tables


def of_bytes() -> Kernels | None:
    """The kernels of bytes, words and random numbers; None where there are none."""
    return tables().get("bytes")


def library() -> str | None:
    """The path of the compiled kernels, compiled now if they were not; None where they cannot be used."""
    return _library._name if tables() and _library is not None else None


def built() -> bool:
    """Whether the kernels need not be compiled before they are used."""
    if _tables is not None or _switched_off():
        return bool(_tables)
    if any(map(os.path.exists, _brought())):
        return True
    with contextlib.suppress(OSError):
        compiler = find_compiler()
        if compiler is None:
            return any(True for _ in _compiled_before(cache_folder()))
        return os.path.exists(_file(cache_folder(), compiler, _flag_sets()[0]))
    return False


def may_build() -> bool:
    """Whether the kernels could still be compiled."""
    return _tables is None and not _switched_off() and find_compiler() is not None


def _switched_off() -> bool:
    return os.environ.get("RUSHLIGHT_NATIVE", "1").lower() in ("0", "false", "off", "no")


def status() -> dict[str, Any]:
    """State (``loaded``, ``disabled``, ``no compiler``, ``failed``), library, compiler, flags, seconds, error."""
    return dict(_status)


def forget() -> None:
    """Make the next use decide anew (after a change of the environment)."""
    global _tables
    with _lock:
        _tables = None
        _sources.cache_clear()
        _status.clear()
        _status["state"] = "not loaded yet"


def default_threads() -> int:
    """``OMP_NUM_THREADS`` if set, else the processors this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(wanted)) if wanted.isdigit() else cpu.count()


def set_num_threads(count: int) -> None:
    """Threads that one kernel may use, the caller included.  ValueError unless positive."""
    global _threads
    if count < 1:
        raise ValueError(f"set_num_threads: expected a positive number of threads, got {count}")
    _threads = int(count)
    if _library is not None:
        _library.rl_set_threads(_threads)


def get_num_threads() -> int:
    """Threads that one kernel may use, the caller included."""
    return _threads or default_threads()


def _load() -> Tables:
    heap.keep_freed()
    if _switched_off():
        _status.update(state="disabled", error="RUSHLIGHT_NATIVE is off")
        return {}
    found: Tables = {}
    try:
        found = _find_or_build()
    except Exception as error:  # a broken compiler or disk must not break arithmetic
        _status.update(state="failed", error=f"{type(error).__name__}: {error}")
    if _status["state"] == "failed":
        compiling.say(
            "its kernels cannot be had, and NumPy computes in their place, slower: `rushlight doctor` says why"
        )
    return found


def _brought() -> list[str]:
    """Where a wheel's kernels for this machine would lie, the best first; none where they are to be compiled otherwise."""
    if _HEAD != compiling.HEAD or os.environ.get("RUSHLIGHT_CXXFLAGS"):
        return []
    machine, level = cpu.machine(), cpu.level()
    levels = (n for n in range(level, -1, -1) if (machine, n) in compiling.TARGETS)
    return [os.path.join(BROUGHT, compiling.in_wheel(machine, n)) for n in levels]


def _find_brought() -> Tables:
    """The kernels that the wheel brought."""
    for library in _brought():
        found = _open(library) if os.path.exists(library) else None
        if found is not None:
            _status.update(state="loaded", library=library, compiler="came compiled")
            return found
    return {}


def _find_or_build() -> Tables:
    brought = _find_brought()
    if brought:
        return brought
    compiler = find_compiler()
    if compiler is None:
        return _find_compiled()
    _status["compiler"] = " ".join(compiler)
    folder = cache_folder()
    for flags in _flag_sets():
        library = _file(folder, compiler, flags)
        _ensure(compiler, flags, library)
        for _ in range(2):
            if os.path.exists(library):
                found = _open(library)
                if found is not None:
                    _status.update(state="loaded", library=library, flags=" ".join(flags))
                    return found
                _build(compiler, flags, library)  # cut short or from elsewhere: once more
    _status.setdefault("error", "could not be compiled; see the .failed files in " + folder)
    _status["state"] = "failed"
    return {}


def cache_folder() -> str:
    """``$RUSHLIGHT_CACHE``, else ``rushlight`` in the user's cache, else a private folder for temporary files."""
    wanted = os.environ.get("RUSHLIGHT_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for candidate in ([wanted] if wanted else []) + [os.path.join(base, "rushlight")]:
        path = os.path.abspath(candidate)
        with contextlib.suppress(OSError):
            os.makedirs(path, exist_ok=True)
            if os.access(path, os.W_OK | os.X_OK):
                return path
    return _temporary_folder()


def _temporary_folder() -> str:
    """A folder only this user can write to: what is loaded from it runs."""
    import tempfile

    owner = os.getuid() if hasattr(os, "getuid") else 0
    path = os.path.join(tempfile.gettempdir(), f"rushlight-{owner}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, mode=0o700)
    facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode) or (hasattr(os, "getuid") and facts.st_uid != owner) or facts.st_mode & 0o022:
        return tempfile.mkdtemp(prefix="rushlight-")
    return path


def _flag_sets() -> list[tuple[str, ...]]:
    rounds = cpu.level() == 4 and "avx512_bf16" in cpu.flags()
    return compiling.flag_sets(cpu.level(), _HEAD, ABI, ("-mavx512bf16",) if rounds else ())


def _file(folder: str, compiler: list[str], flags: tuple[str, ...]) -> str:
    """Where the kernels lie: named by what they are made from, and by what."""
    binary = os.stat(os.path.realpath(compiler[0]))
    made_by = hashlib.sha256(repr((compiler, binary.st_size, binary.st_mtime_ns)).encode()).hexdigest()[:8]
    return os.path.join(folder, f"kernels-{_key(flags)}-{made_by}.so")


def _key(flags: tuple[str, ...]) -> str:
    return hashlib.sha256(repr((flags, cpu.machine(), _sources())).encode()).hexdigest()[:20]


@functools.cache
def _sources() -> str:
    """What tells the sources of the kernels from others, read once."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(SOURCES)):
        if name.endswith((".cpp", ".h")):
            with open(os.path.join(SOURCES, name), "rb") as file:
                digest.update(name.encode() + file.read())
    return digest.hexdigest()


def _compiled_before(folder: str) -> Iterator[str]:
    """Kernels of these sources and this machine that some compiler made, the best first."""
    there = sorted(name for name in os.listdir(folder) if name.endswith(".so"))
    for flags in _flag_sets():
        start = f"kernels-{_key(flags)}-"
        yield from (os.path.join(folder, name) for name in there if name.startswith(start))


def _find_compiled() -> Tables:
    """The kernels where there is no compiler any more."""
    for library in _compiled_before(cache_folder()):
        found = _open(library)
        if found is not None:
            _status.update(state="loaded", library=library, compiler="none now; compiled before")
            return found
    _status.update(state="no compiler", error="no C++ compiler found (set CXX or install g++)")
    return {}


def _failure(library: str) -> str:
    """The file of the compiler's words where the library could not be compiled."""
    return f"{library.removesuffix('.so')}.failed"


def _ensure(compiler: list[str], flags: tuple[str, ...], library: str) -> None:
    """Compile the kernels, unless that was done or tried before, perhaps by another process just now."""
    tried = library, _failure(library)
    if any(map(os.path.exists, tried)):
        return
    with _alone(os.path.dirname(library)):
        if not any(map(os.path.exists, tried)):
            _build(compiler, flags, library)


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Hold the lock under which kernels are compiled, or go on without where there are no locks.

    The system lets go of it with the process, however that ends.
    """
    try:
        import fcntl

        handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (ImportError, OSError):
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            compiling.say("waiting for another process, which compiles the kernels")
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _build(compiler: list[str], flags: tuple[str, ...], library: str) -> None:
    """Compile every source side by side, link, and rename into place; on failure keep the compiler's words."""
    import shutil
    import tempfile
    from pathlib import Path

    folder = os.path.dirname(library)
    seconds = math.ceil(compiling.SECONDS / cpu.count() / 10) * 10
    if not _told:  # other flags are tried after those that a compiler refuses
        compiling.say(f"compiling its kernels into {folder}: once, for some {seconds} seconds")
        _told.append(folder)
    start = time.perf_counter()
    work = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
    try:
        error = compiling.compile_kernels(compiler, flags, work, cpu.count())
        if error is None:
            os.replace(work / "kernels.so", library)
            _status["compile_seconds"] = round(time.perf_counter() - start, 2)
        else:
            (work / "log").write_text(error)
            os.replace(work / "log", _failure(library))
            _status["error"] = error[-2000:]
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _open(library: str) -> Tables | None:
    """Load and check a compiled file; None if it is not what was asked for."""
    global _library

    try:
        lib = ctypes.PyDLL(library)  # with the GIL: kernels give it back once they have looked at their arguments
        if lib.rl_abi() != ABI:
            return None
    except (OSError, AttributeError) as error:
        _status["error"] = str(error)
        if os.path.dirname(library) != BROUGHT:
            with contextlib.suppress(OSError):
                os.unlink(library)
        return None
    if not _reads_arrays(lib):
        _status["error"] = "this NumPy's arrays are laid out in another way"
        return None
    found: Tables = {np.dtype(t): Kernels(lib, suffix) for t, suffix in ((np.float32, "f32"), (np.float64, "f64"))}
    found["bytes"] = Kernels(lib, "bytes", BYTES)
    for suffix in ("f16", "bf16"):
        for what, signatures in (("halves", HALVES), ("maps", MAPS), ("rows", ROWS)):
            found[suffix, what] = Kernels(lib, suffix, signatures)
    for suffix, what, signatures, there in (
        ("bf16", "products", BFLOAT16, "avx512_bf16" in cpu.flags()),
        ("f16", "products", FLOAT16, cpu.level() == 4),
        ("bf16", "tiles", TILES, {"amx_tile", "amx_bf16"} <= cpu.flags()),
    ):
        if there and hasattr(
            lib, f"rl_product_{suffix}" if what == "products" else f"rl_leave_{suffix}"
        ):  # not every compiler makes them
            found[suffix, what] = Kernels(lib, suffix, signatures)
    _library = lib
    ufuncs.install(lib)
    divided.install(lib)
    lib.rl_set_threads(_threads or default_threads())
    return found


def _reads_arrays(lib: Any) -> bool:
    """Show Python's functions to native code; whether it then reads arrays of every kind as NumPy does."""
    api: Any = ctypes.pythonapi
    addresses = [id(thing) for thing in (None, np.ndarray, RuntimeError, MemoryError, TypeError, OverflowError)]
    addresses += [ctypes.cast(getattr(api, f"Py{name}"), ctypes.c_void_p).value or 0 for name in ASKED]
    lib.rl_python((ctypes.c_void_p * len(addresses))(*addresses))
    lib.rl_describe.argtypes = [ctypes.py_object, ctypes.c_void_p]
    lib.rl_function.restype, lib.rl_function.argtypes = (
        ctypes.py_object,
        [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return all(_reads(lib, array) for array in _probes())


def _probes() -> list[Any]:
    """Arrays that differ in all that native code looks at."""
    locked = np.zeros((2, 3), np.uint8)
    locked.flags.writeable = False
    odd = np.zeros(9, np.uint8)[1:].view(np.float64)
    return [np.arange(7.0)[2:], np.zeros((2, 3), np.float32).T, locked, odd, np.array(None), np.zeros((2, 3, 4))[:, ::2],
            np.zeros(2, np.dtype(np.int64).newbyteorder()), np.zeros((0, 2), bool).view(np.memmap)]  # fmt: skip


def _reads(lib: Any, array: Array) -> bool:
    flags, dtype = array.flags, array.dtype
    order = {"<": "=", ">": "="}.get(dtype.byteorder, dtype.byteorder) if dtype.isnative else dtype.byteorder
    want = [array.ctypes.data, array.ndim, flags.c_contiguous, flags.f_contiguous, flags.aligned, flags.writeable,
            ord(dtype.kind), ord(order), dtype.itemsize, True, *array.shape, *array.strides]  # fmt: skip
    found = (ctypes.c_int64 * len(want))()
    lib.rl_describe(array, found)
    return list(found) == [int(number) for number in want]


def _function(lib: Any, name: str, letters: str) -> Any:
    """A kernel as a built-in function (see functions.cpp), or where that does not know its letters as ctypes calls it."""
    function = lib[name]
    with contextlib.suppress(TypeError):
        return lib.rl_function(name.encode(), letters.encode(), ctypes.cast(function, ctypes.c_void_p))
    kinds = {
        "a": ctypes.py_object, "n": ctypes.c_ssize_t, "u": ctypes.c_uint64, "i": ctypes.c_int, "d": ctypes.c_double,
    }  # fmt: skip
    arguments, _, result = letters.partition(">")
    function.argtypes = [kinds[letter] for letter in arguments]
    function.restype = kinds[result] if result else None
    return function
