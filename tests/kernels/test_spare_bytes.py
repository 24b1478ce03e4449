"""The end of a small block says how much was asked for, however strictly the compiler watches what is written."""

import subprocess
from pathlib import Path

import pytest

from rushlight.kernels.native import compiler

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include "spare.h"

int main() {
    long wrong = 0;
    for (size_t bytes = 0; bytes < rl::kLarge + 64; bytes += bytes < 600 ? 1 : 37) {
        void *block = rl::marked(std::malloc(rl::with_spare(bytes)), bytes);
        wrong += bytes < rl::kLarge - 64 && rl::size_by_end(block) != bytes;
        block = rl::marked(std::realloc(block, rl::with_spare(bytes / 2)), bytes / 2);
        wrong += rl::size_by_end(block) != bytes / 2 && bytes / 2 < rl::kLarge - 64;
        std::free(block);
        block = rl::marked(std::calloc(rl::with_spare(bytes), 1), bytes);
        wrong += rl::size_by_end(block) < bytes;
        std::free(block);
    }
    std::printf("%ld", wrong);
}
"""


@pytest.mark.parametrize(
    "flags", [("-O2",), ("-O2", "-D_FORTIFY_SOURCE=3"), ("-O3", "-D_FORTIFY_SOURCE=3")], ids=" ".join
)
def test_sizes_by_the_end_of_blocks(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Ubuntu's GCC checks writes against what was asked for (_FORTIFY_SOURCE=3) without being told to."""
    found = compiler.find_compiler()
    if found is None:
        pytest.skip("no C++ compiler here")
    source, program = tmp_path / "sizes.cpp", tmp_path / "sizes"
    source.write_text(PROGRAM)
    subprocess.run(
        [*found, "-std=c++17", *flags, f"-I{compiler.SOURCES}", str(source), "-o", str(program)],
        check=True,
        timeout=120,
    )
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0", "")
