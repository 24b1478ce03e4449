"""Arrays become pointers in one place: `call.h`, which checks them.  Nothing else hands memory to native kernels."""

import ast
import re
from pathlib import Path

from tests.architecture.syntax import dotted, nodes

import rushlight
from rushlight.kernels.native.signatures import SIGNATURES

PACKAGE = Path(rushlight.__file__).parent
NATIVE = PACKAGE / "kernels" / "native"

# Modules that read an array's address, and what for: no address goes to a kernel of ours.
ADDRESSES = {
    "backends/lapack.py": "calls OpenBLAS, whose routines take addresses",
    "autograd/profiler/collector.py": "names blocks of memory",
    "kernels/allocator.py": "events of the allocator, with the room for them",
    "kernels/traced.py": "the functions that NumPy asks for blocks",
    "kernels/native/divided.py": "gives NumPy loops, as ufuncs.py does",
    "kernels/native/loader.py": "proves the layout of arrays, and shows Python's functions",
    "kernels/native/ufuncs.py": "gives NumPy loops, which it hands addresses itself",
    "ops/create/interchange.py": "reads what a DLPack capsule says of its numbers",
    "viz/model.py": "names arrays",
}


def test_no_other_module_reads_addresses() -> None:
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and (
                node.attr in ("data_as", "c_void_p") or dotted(node).endswith(".ctypes.data")
            ):
                found.add(path.relative_to(PACKAGE).as_posix())
    allowed = {*ADDRESSES, "basics/makers.py"}  # the latter: the allocator of a type
    assert found <= allowed, sorted(found - allowed)


def test_only_kernels_ask_for_native_functions() -> None:
    """`native(dtype)` and `loader.tables()` give them: their callers live in kernels/."""
    given = re.compile(r"\bloader\._?tables\b|\bimport [^\n]*\bnative\b|\bdispatch\.native\b")
    found = {p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py") if given.search(p.read_text("utf-8"))}
    assert {name for name in found if not name.startswith("kernels/")} <= {
        "cli/doctor.py"
    }  # which asks whether there are any


def test_every_exported_kernel_checks_its_arrays() -> None:
    """Each function that takes arrays asks a `Call` for every one, and none reads an array's data itself."""
    for path in sorted(NATIVE.glob("*.cpp")) + sorted(NATIVE.glob("*.h")):
        text = path.read_text(encoding="utf-8")
        if path.name not in ("call.h", "call.cpp", "memory.cpp"):
            assert "->data" not in text and "reinterpret_cast<Array" not in text, path.name
    exported = "".join(path.read_text(encoding="utf-8") for path in (*NATIVE.glob("*.cpp"), *NATIVE.glob("*.h")))
    for body in re.findall(r"RL_EXPORT [^\n{]*\bArray \*.*?\n(?:    )?\}", exported.replace("\\\n", "\n"), re.S):
        name = re.search(r"rl_[\w#]+", body)
        assert name is not None
        if name.group().startswith(("rl_memory", "rl_describe")):
            continue
        for argument in re.findall(r"(?<!const )\bArray \*(\w+)", body.split("{")[0]):
            assert len(re.findall(rf"\b{argument}\b", body)) >= 2, (name.group(), argument)
        assert "rl::Call call(" in body or "_all<" in body, name.group()


def test_kernels_take_arrays_as_objects() -> None:
    assert all(set(letters.removesuffix(">n")) <= set("anuid") for letters in SIGNATURES.values())
