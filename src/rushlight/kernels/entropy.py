"""Numbers in less memory, exactly: bytes in as many bits as their frequency asks for, and words without those that are 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rushlight.kernels.native import loader
from rushlight.kernels.native.signatures import exports_of_bytes
from rushlight.kernels.reference import entropy as reference
from rushlight.kernels.reference.entropy import CHUNK, STREAMS

if TYPE_CHECKING:
    from types import ModuleType

    from rushlight.kernels.dispatch import Array

__all__ = ["CHUNK", "OVERHEAD", "coded", "decoded", "spread", "squeezed"]

exports_of_bytes(
    # entropy.cpp: elements, how many, bytes of each, which of them are coded; lengths of codes, bytes of streams;
    # returns how many those are
    plan_codes="annuaa>n",
    # likewise, then the codes and the other bytes
    pack_codes="annuaaaa",
    # codes, bytes of them; elements, bytes of each, which have codes; lengths, sizes, the other bytes and the
    # elements; returns whether they fit
    unpack_codes="annnuaaaa>n",
    # words, how many, bytes of each, a bit for each that is not 0; returns how many are not
    find_words="anna>n",
    # likewise, then those that are not 0 and how many they are
    squeeze_words="annaan",
    # those that are not 0, how many they and all are, bytes of each, the bits, all
    spread_words="annnaa",
)

OVERHEAD = 256 + 4 * STREAMS  # bytes of a chunk beside its codes: their lengths, the sizes of streams


def _kernels() -> ModuleType | loader.Kernels:
    return loader.of_bytes() or reference


def coded(data: Array, width: int, mask: int) -> list[Array]:
    """The bytes of elements, those that `mask` names by Huffman codes: lengths of codes, sizes of streams, these, and the other bytes.

    data: (count * width) of uint8; bit k of mask: byte k of each element, the lowest first, has a code.  A chunk of
    CHUNK elements has codes of its own, of no bits where it is one byte throughout.
    """
    count, planes = data.size // width, mask.bit_count()
    lengths = np.empty((-(-count // CHUNK), planes, 256), np.uint8)
    sizes = np.empty((len(lengths), planes, STREAMS), np.uint32)
    kernels = _kernels()
    streams = np.empty(kernels.plan_codes(data, count, width, mask, lengths, sizes), np.uint8)
    plain = np.empty((width - planes) * count, np.uint8)
    kernels.pack_codes(data, count, width, mask, lengths, sizes, streams, plain)
    return [lengths.reshape(-1), sizes.reshape(-1), streams, plain]


def decoded(parts: list[Array], width: int, mask: int, out: Array) -> None:
    """What `coded` made of elements, into `out`, (count * width) of uint8.  RuntimeError if it was changed since."""
    streams, plain, count = parts[2], parts[3], out.size // width
    shape = -(-count // CHUNK), mask.bit_count()
    lengths, sizes = parts[0].reshape(*shape, 256), parts[1].reshape(*shape, STREAMS)
    wrong = _kernels().unpack_codes(streams, streams.size, count, width, mask, lengths, sizes, plain, out)
    if wrong >= 0:
        raise RuntimeError(
            f"decoded: the bits of elements {wrong * CHUNK} to {min(count, (wrong + 1) * CHUNK)} are not those that were "
            "written: was their memory or their file changed?"
        )


def squeezed(words: Array) -> list[Array]:
    """A bit for each of the words that is not 0, (count / 8) of uint8, the first the lowest, and those that are not."""
    kernels, data, width = _kernels(), words.view(np.uint8), words.itemsize
    bits = np.empty(-(-words.size // 8), np.uint8)
    kept = np.empty(kernels.find_words(data, words.size, width, bits), words.dtype)
    kernels.squeeze_words(data, words.size, width, bits, kept.view(np.uint8), kept.size)
    return [bits, kept]


def spread(parts: list[Array], out: Array) -> None:
    """The reverse of `squeezed`: into `out`, (count) words."""
    bits, kept = parts
    _kernels().spread_words(kept.view(np.uint8), kept.size, out.size, out.itemsize, bits, out.view(np.uint8))
