"""Which BLAS runs, with which core type.

OpenBLAS, which NumPy's wheels carry, chooses kernels ("core type") by the processor's model when it loads.  On
processors newer than itself it may fall back to AVX2 where AVX-512 is there, at half the speed.  So
`prepare` looks at the processor's flags and

- before NumPy is imported, names the core type in the environment for as long as NumPy's import takes;
- afterwards, where OpenBLAS chose a lesser one, makes it choose again, which its DYNAMIC_ARCH builds can.

It also shortens how long OpenBLAS's idle threads keep a core busy (2^26 cycles by default): the other kernels'
threads want that core.

What the user set of ``OPENBLAS_CORETYPE`` and ``OPENBLAS_THREAD_TIMEOUT`` is left alone, and nothing stays in the
environment for child processes.  Importing this module imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from rushlight import cpu

_VARIABLE = "OPENBLAS_CORETYPE"
_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
_IDLE_CYCLES = "20"  # as a power of two: half a millisecond, longer than most pauses between two products
# What OpenBLAS calls its core types, those with AVX-512 kernels and those without.
_WIDE = frozenset({"skylakex", "cooperlake", "sapphirerapids"})
_NARROW = frozenset({"haswell", "zen", "sandybridge", "nehalem", "prescott", "core2", "penryn", "dunnington"})

_NOT_CALLED = "rushlight.backends.blas.prepare was not called"
_how = _NOT_CALLED
_library: Any = None


def wanted_core() -> str | None:
    """The core type that this processor's flags call for; None where OpenBLAS is to choose."""
    if not sys.platform.startswith("linux"):
        return None
    return "SkylakeX" if cpu.level() >= 4 else None


def prepare() -> None:
    """Choose the core type; imports NumPy under it, or corrects the one that a NumPy imported before chose."""
    global _how
    core = None if os.environ.get(_VARIABLE) else wanted_core()
    early = "numpy" not in sys.modules
    if early:
        _import_numpy_under({_TIMEOUT: _IDLE_CYCLES} | ({} if core is None else {_VARIABLE: core}))
        _how = "chosen from the processor's flags before NumPy loaded it"
    if os.environ.get(_VARIABLE):
        _how = f"{_VARIABLE} was set by the user"
    elif core is None:
        _how = "left to the library"
    elif _how == _NOT_CALLED:
        _how = _correct(core)
    if not early and _TIMEOUT not in os.environ and sys.platform.startswith("linux"):
        _shorten_idling()


def _import_numpy_under(settings: dict[str, str]) -> None:
    """Import NumPy with ``settings`` in the environment where the user set none, and take them out again."""
    fresh = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(fresh)
    try:
        import numpy  # noqa: F401
    finally:
        for name in fresh:
            del os.environ[name]


def _correct(core: str) -> str:
    """Switch an OpenBLAS that is already loaded to ``core`` if its own choice is lesser; says what was done."""
    now = core_type()
    if now is None or now.lower() not in _NARROW:
        return "chosen by the library" + ("" if now is None else ", rightly")
    if _running_threads() > 1:
        return "chosen by the library; other threads ran, so that it could not be corrected: import rushlight first"
    if not _switch(core):
        return "chosen by the library, which cannot be corrected: import rushlight before numpy"
    return f"corrected from {now} after NumPy had loaded it"


def _running_threads() -> int:
    threading = sys.modules.get("threading")
    return 1 if threading is None else int(threading.active_count())


def _switch(core: str) -> bool:
    """Let OpenBLAS choose again under ``core``.  No product may run meanwhile."""
    lib = library()
    if lib is None or not hasattr(lib, "gotoblas_dynamic_init") or not hasattr(lib, "gotoblas_dynamic_quit"):
        return False
    os.environ[_VARIABLE] = core
    try:
        lib.gotoblas_dynamic_quit()
        lib.gotoblas_dynamic_init()
    finally:
        del os.environ[_VARIABLE]
    return core_type() == core


def _shorten_idling() -> None:
    """Have the threads of an OpenBLAS that is already loaded start again with the shorter timeout, at its next use."""
    lib, names = library(), ("openblas_read_env", "blas_thread_shutdown_", "blas_thread_init")
    if lib is None or _running_threads() > 1 or not all(hasattr(lib, name) for name in names):
        return
    os.environ[_TIMEOUT] = _IDLE_CYCLES
    try:
        lib.openblas_read_env()
        lib.blas_thread_shutdown_()
        lib.blas_thread_init()
    finally:
        del os.environ[_TIMEOUT]


def library() -> Any:
    """The loaded OpenBLAS as a ctypes library; None if there is none (another BLAS, another system)."""
    global _library
    if _library is None:
        path = library_path()
        if path is not None:
            import ctypes

            _library = ctypes.CDLL(path)
    return _library


def library_path() -> str | None:
    """The file of the OpenBLAS that NumPy loaded, from this process's memory map (Linux)."""
    try:
        with open("/proc/self/maps") as file:
            paths = [line.split(maxsplit=5)[-1].strip() for line in file if "openblas" in line]
    except OSError:
        return None
    named = [path for path in dict.fromkeys(paths) if path.startswith("/")]
    numpys = [path for path in named if "/numpy" in path]
    return next(iter(numpys or named), None)


def _function(name: str) -> Any:
    """An OpenBLAS function under any of the names its builds give it, or None."""
    lib = library()
    for spelled in (f"scipy_openblas_{name}64_", f"scipy_openblas_{name}", f"openblas_{name}64_", f"openblas_{name}"):
        if lib is not None and hasattr(lib, spelled):
            return getattr(lib, spelled)
    return None


def _text(name: str) -> str | None:
    function = _function(name)
    if function is None:
        return None
    import ctypes

    function.restype = ctypes.c_char_p
    value = function()
    return value.decode() if value else None


def core_type() -> str | None:
    """The core type in use, as OpenBLAS names it (``SkylakeX``, ``Haswell``, ...), None for other BLAS."""
    return _text("get_corename")


def get_num_threads() -> int | None:
    """Threads that a product may use, None where unknown."""
    function = _function("get_num_threads")
    return None if function is None else int(function())


def set_num_threads(count: int) -> bool:
    """Let products use ``count`` threads; whether the BLAS in use could be told."""
    function = _function("set_num_threads")
    if function is not None:
        function(int(count))
    return function is not None


def info() -> dict[str, Any]:
    """Library, version, core type, the one the processor calls for, threads, and how the choice came about."""
    import numpy as np

    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    core, wanted = core_type(), wanted_core()
    return {
        "library": blas.get("name", "unknown"),
        "path": library_path(),
        "version": _text("get_config") or blas.get("version", "unknown"),
        "core": core,
        "wanted": wanted,
        "right": core is None or wanted is None or core.lower() not in _NARROW,
        "threads": get_num_threads(),
        "how": _how,
    }
