#!/usr/bin/env python
"""Runs the fast sweep once with kernels that the compiler watches: -fsanitize=address,undefined.

Any report ends it with an exit status that is not 0.  Where there is no compiler, or one without these libraries, it says so
and ends with 0.  The kernels lie in a cache of their own, `.sanitized` beside this folder, and are built once.

    python tools/sanitize.py [options of tools/sweep_kernels.py]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99",
}
PROBE = "import sys; from rushlight.kernels.native import loader; loader.tables(); s = loader.status(); " \
        "print(s.get('error', '')) if s['state'] != 'loaded' else sys.exit(77)"  # fmt: skip


def libraries(compiler: list[str]) -> list[str]:
    """The sanitizer's library and that of C++, which must be loaded before Python; none if the compiler has no such."""
    found = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so"):
        path = subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        if not os.path.isabs(path) or not os.path.exists(path):
            return []
        found.append(os.path.realpath(path))
    return found


def main() -> int:
    """Build, sweep, and return the sweep's exit status."""
    from rushlight.kernels.native.loader import find_compiler

    compiler = find_compiler()
    preload = libraries(compiler) if compiler else []
    if not preload:
        print(f"sanitize: skipped, {'no C++ compiler' if compiler is None else f'{compiler[0]} has no libasan'} here")
        return 0
    environment = {**os.environ, **OPTIONS, "LD_PRELOAD": ":".join(preload), "RUSHLIGHT_CXXFLAGS": FLAGS,
                   "RUSHLIGHT_CACHE": str(ROOT / ".sanitized"), "RUSHLIGHT_NATIVE": "1"}  # fmt: skip
    probe = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True)
    if probe.returncode != 77:
        print(f"sanitize: the kernels could not be built or loaded\n{probe.stdout}\n{probe.stderr}")
        return 1
    options = sys.argv[1:] or ["--fast", "--operators", "no", "--dtypes", "float32,bfloat16"]
    sweep = [sys.executable, str(ROOT / "tools" / "sweep_kernels.py"), *options]
    done = subprocess.run(sweep, env=environment).returncode
    print("sanitize: no report" if done == 0 else f"sanitize: FAILED with exit status {done}")
    return done


if __name__ == "__main__":
    raise SystemExit(main())
