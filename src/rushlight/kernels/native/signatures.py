"""What native functions there are: each family says beside its Python what its C++ exports.

A letter for each argument: a ndarray (or None), n size, u unsigned 64-bit, i int, d double; then ``>n`` where a size is returned: the first
index that lies outside, -1 where there is none, unless it says otherwise.  ``rl_<name>_f32`` and ``rl_<name>_f64`` are exported for each.
Raise ``ABI`` when the meaning of one changes.
"""

from __future__ import annotations

ABI = 71

# twister.cpp: state, output, elements; the first number, how far they reach and where they end.  (Its Python is imported when it is asked for.)
SIGNATURES: dict[str, str] = {"evenly": "uanddd"}

# ``rl_<name>_bf16`` and ``rl_<name>_f16``: 16-bit floats as unsigned numbers.  halves.cpp: input, output, elements; two inputs, output, elements; input,
# output, elements, a number on either side.  narrow_products.cpp: the factor of few rows, that of many, row or None, result; which are turned,
# whether the result is; batch, few, many, K; returns whether it was done; both factors, result, which are turned; batch, M, N, K; returns the same; input,
# places, rows, elements of each, whether of the least
HALVES: dict[str, str] = {
    "widen": "aan",
    "narrow": "aan",
    "extremes_at": "aanni",
    "product_of_few": "aaaaiiinnnn>n",
    "product_of_short": "aaaiinnnn>n",
} | dict.fromkeys(("add", "subtract", "multiply", "divide"), "aaan")
HALVES |= dict.fromkeys(
    ("add_number", "subtract_number", "multiply_number", "divide_number", "number_subtract", "number_divide"), "aand"
)

# ``rl_<name>_bytes``.  digest.cpp, crc32.cpp: bytes, how many, where to start; returns the digest.  twister.cpp: state, where words or exponential
# numbers go, how many; numbers, how far behind each but the last that lies which it changes places with, how many; a state and how many
# words it goes on by; a state, where its bits go, rows, how many are drawn for each and kept of them, below what a number sets its
# bit; numbers that become normal ones, how many times 16.  draws.cpp: state, a normal number that waits, parameters in whose place
# numbers go (normal ones have none), how many; state, trials, chances, how many.  entropy.cpp: elements, how many, bytes of each, which bytes are
# coded; lengths of codes, bytes of streams; the codes and the other bytes; words, a bit for each that is not 0, those that are not.
# circular.cpp: numbers of float64, results, elements. masks.cpp: a mask, how many are set over the middle of three dimensions, elements before, in and behind it; a mask, how many are set in each block, size; a mask, how many are set before each block, elements, where they go, size, how many are set;
# likewise with sizes of the dimensions in the place of elements.  copies.cpp and casts.cpp: elements, where they go; whether they went.  along.cpp, joined_rows.cpp: elements, index, where they
# go or come from, extents.  resample.cpp: elements, result, the places of each of three dimensions that are taken, or
# None; the size before these dimensions, theirs, that behind them.  pad.cpp: elements, result, the number around them; of each dimension how many
# there are, how many come before them, how many the result has.  choose.cpp: a mask, elements where it is set and where it is not, result; how often the mask repeats, its size, bytes of an element, how many there are of both; and
# elements of matrices, result; how many matrices, their rows and columns, bytes of an element, a diagonal and whether what lies above it is kept
BYTES: dict[str, str] = {
    "digest": "anu>n",
    "crc32": "anu>n",
    "words": "uan",
    "shuffle": "aan",
    "skip": "un",
    "coins": "aannnu",
    "box_muller": "an",
    "exponentials": "uan",
    "normals": "uaan",
    "log_gammas": "uaan",
    "poissons": "uaan",
    "binomials": "uaan",
    "plan_codes": "annuaa>n",
    "pack_codes": "annuaaaa",
    "unpack_codes": "annnuaaaa>n",
    "find_words": "anna>n",
    "squeeze_words": "annaan",
    "spread_words": "annnaa",
    "choose": "aaaa" + "nnnnn",
    "triangle": "aa" + "nnnnni",
    "copy": "aa>n",
    "cast": "aa>n",
    "pick": "aaaaa" + "nnnnn",
    "gather_along": "aaannnn>n",
    "put_along": "aaannnn>n",
    "put_rows": "aaannnn>n",
    "take_rows": "aaannnn>n",
    "sines": "aan",
    "cosines": "aan",
    "counts": "aannn",
    "mask_counts": "aan",
    "mask_take": "aaaann",
    "mask_put": "aaaann",
    "mask_write": "aaaann",
    "mask_places": "aaaann",
    "pad": "aaaa",
}

# ``rl_<name>_bf16`` and ``rl_<name>_f16``: of 16-bit floats as unsigned numbers, computed in float32 and rounded once.
MAPS: dict[str, str] = {}

# ``rl_<name>_bf16`` and ``rl_<name>_f16`` likewise, of rows: their weights, statistics and sums are float32.
ROWS: dict[str, str] = {}

# ``rl_<name>_bf16`` on processors that multiply such numbers, and ``rl_<name>_tiles_bf16`` on those that do so by tiles.  product.cpp,
# tiles.cpp: as `attention`, in and out of bfloat16; and factors, row, what is added, result, panels, how many; which are turned; batch, M, K,
# N; alpha and beta
BFLOAT16: dict[str, str] = {
    "product": "aaaaaanii" + "nnnn" + "dd",
    "product_wide": "aaaaaanii" + "nnnn" + "dd",  # to float32
    "attention": "aaaaaaid",
    "attention_backward": "a" * 9 + "id",
    # conv_pairs.h: as `conv` (kernels/convolution.py), the first with a bias or None, the last returns whether all numbers are finite
    "conv": "aaaaa",
    "conv_input": "aaaa",
    "conv_weight": "aaaa>n",
    "conv_room": "ai>n",
}
# `leave` returns 0 where it is given.
TILES: dict[str, str] = {"leave": ">n"} | {f"{name}_tiles": letters for name, letters in BFLOAT16.items()}

# ``rl_<name>_f16`` on processors with AVX-512.  product_halves.cpp
FLOAT16: dict[str, str] = {name: BFLOAT16[name] for name in ("product", "product_wide")}


def exports(**letters: str) -> None:
    """Declare the functions of a family."""
    SIGNATURES.update(letters)


def exports_of_rows(**letters: str) -> None:
    """Declare the functions of a family that there are for 16 bits, too."""
    exports(**letters)
    ROWS.update(letters)
