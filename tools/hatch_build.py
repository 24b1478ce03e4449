"""Puts compiled kernels into a wheel.

With Zig's compiler (`pip install ziglang`) they are compiled for every level of the machine's instructions and for an old
C library, so that the wheel runs everywhere (manylinux2014); `RUSHLIGHT_MACHINE=aarch64` compiles for another machine.
With another C++ compiler they are for this machine alone, as where somebody installs from source. Without any the wheel has
no kernels, and they are compiled at first use where that is possible. An editable installation is left alone.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parents[1] / "src" / "rushlight"


def module(path: str) -> ModuleType:
    """A file of the package, loaded without the package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, PACKAGE / path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Kernels(BuildHookInterface):  # type: ignore[misc,type-arg]
    """Compiles before the wheel is packed, and adds the page that `rushlight explain` prints."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        build_data["force_include"][str(PACKAGE.parents[1] / "docs" / "errors.md")] = "rushlight/cli/errors.md"
        if not sys.platform.startswith("linux"):
            return
        self.work = Path(tempfile.mkdtemp(prefix="rushlight-wheel-"))
        compiling, abi = module("kernels/native/compiler.py"), module("kernels/native/signatures.py").ABI
        cpu = module("cpu.py")
        machine = os.environ.get("RUSHLIGHT_MACHINE") or platform.machine()
        if importlib.util.find_spec("ziglang") is not None:
            zig = [sys.executable, "-m", "ziglang", "c++"]
            todo = [
                (level, compiling.wheel_flags(machine, level, abi)) for of, level in compiling.TARGETS if of == machine
            ]
            system = f"manylinux_2_17_{machine}.manylinux2014_{machine}"
        else:
            zig, system = compiling.find_compiler(), f"linux_{machine}"
            todo = [(cpu.level(), compiling.flag_sets(cpu.level(), compiling.HEAD, abi)[0])]
        made = {} if zig is None else self.compiled(compiling, zig, machine, todo, cpu.count())
        if made:
            build_data.update(pure_python=False, tag=f"py3-none-{system}")
            build_data["force_include"].update(made)

    def compiled(
        self, compiling: ModuleType, compiler: list[str], machine: str, todo: list[Any], jobs: int
    ) -> dict[str, str]:
        """Compile: from files to their places in the wheel."""
        made = {}
        for level, flags in todo:
            name = compiling.in_wheel(machine, level)
            compiling.say(f"compiling {name}")
            work = self.work / name.removesuffix(".so")
            work.mkdir()
            error = compiling.compile_kernels(compiler, flags, work, jobs)
            if error is not None:
                compiling.say(f"{name} could not be compiled, and is left out: {error[-2000:]}")
                continue
            made[str(work / "kernels.so")] = f"rushlight/kernels/native/compiled/{name}"
        return made

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(getattr(self, "work", ""), ignore_errors=True)
