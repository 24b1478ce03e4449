"""What native functions there are: each family says beside its Python what its C++ exports, by the functions here.

A letter for each argument: a ndarray (or None), n size, u unsigned 64-bit, i int, d double; then ``>n`` where a size
is returned: the first index that lies outside, -1 where there is none, unless it says otherwise.  A function is bound
when it is first asked for (see loader.py). Raise ``ABI`` when the meaning of one changes.
"""

from __future__ import annotations

ABI = 73

# ``rl_<name>_f32`` and ``rl_<name>_f64``.
SIGNATURES: dict[str, str] = {}

# ``rl_<name>_bytes``: elements as bytes or words, whatever they mean, and random numbers.
BYTES: dict[str, str] = {}

# ``rl_<name>_bf16`` and ``rl_<name>_f16``: 16-bit floats as unsigned numbers.
HALVES: dict[str, str] = {}

# Likewise, of those computed in float32 and rounded once, element by element.
MAPS: dict[str, str] = {}

# Likewise, of rows: their weights, statistics and sums are float32.
ROWS: dict[str, str] = {}

# ``rl_<name>_bf16`` on processors that multiply such numbers, ``rl_<name>_tiles_bf16`` on those that do so by tiles,
# and ``rl_<name>_f16`` on those with AVX-512.
BFLOAT16: dict[str, str] = {}
TILES: dict[str, str] = {}
FLOAT16: dict[str, str] = {}


def exports(**letters: str) -> None:
    """Declare the functions of a family."""
    SIGNATURES.update(letters)


def exports_of_rows(**letters: str) -> None:
    """Declare the functions of a family that there are for 16 bits, too."""
    exports(**letters)
    ROWS.update(letters)


def exports_of_bytes(**letters: str) -> None:
    """Declare functions of bytes, words or random numbers."""
    BYTES.update(letters)


def exports_of_halves(**letters: str) -> None:
    """Declare functions of 16-bit floats."""
    HALVES.update(letters)


def exports_of_bfloat16(**letters: str) -> None:
    """Declare functions that multiply bfloat16 numbers, by tiles and by AVX512-BF16."""
    BFLOAT16.update(letters)
    exports_of_tiles(**{f"{name}_tiles": kinds for name, kinds in letters.items()})


def exports_of_tiles(**letters: str) -> None:
    """Declare functions that need tiles."""
    TILES.update(letters)


def exports_of_float16(**letters: str) -> None:
    """Declare functions that multiply float16 numbers."""
    FLOAT16.update(letters)
