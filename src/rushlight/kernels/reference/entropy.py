"""Bytes in as many bits as their frequency asks for, and words without those that are 0, in NumPy."""

from __future__ import annotations

import numpy as np

from rushlight.basics.arrays import Array

CHUNK = 32768  # elements whose bytes share a code
STREAMS = 4  # in which a chunk's bytes are written
LONGEST = 11  # bits of a code
ALONE = 255  # in place of a length: the only byte of its chunk, which takes no bits
SLACK = 8  # bytes behind the last stream


def shares(count: int) -> list[slice]:
    """Which of a chunk's `count` bytes each stream holds."""
    each = -(-count // STREAMS)
    return [slice(min(s * each, count), min((s + 1) * each, count)) for s in range(STREAMS)]


def frequency_lengths(weights: list[int]) -> list[int]:
    """Lengths of the codes of bytes by descending frequency: Huffman's, of which none is longer than LONGEST.

    What is longer is shortened as JPEG does it (ITU-T T.81, K.3).
    """
    many = len(weights)
    tree, above = list(reversed(weights)), [0] * (2 * many)
    leaf, node = 0, many
    for parent in range(many, 2 * many - 1):
        total = 0
        for _ in range(2):
            if leaf < many and (node >= len(tree) or tree[leaf] <= tree[node]):
                child, leaf = leaf, leaf + 1
            else:
                child, node = node, node + 1
            above[child] = parent
            total += tree[child]
        tree.append(total)
    depth = [0] * (2 * many)
    for child in range(2 * many - 3, -1, -1):
        depth[child] = depth[above[child]] + 1
    return limited(np.bincount(depth[:many], minlength=257))


def limited(of_length: Array) -> list[int]:
    """Lengths in ascending order, of which there are `of_length[n]` of n bits, none above LONGEST."""
    for length in range(256, LONGEST, -1):
        while of_length[length]:
            shorter = max(n for n in range(1, length - 1) if of_length[n])
            for n, more in ((length, -2), (length - 1, 1), (shorter + 1, 2), (shorter, -1)):
                of_length[n] += more
    return np.repeat(np.arange(257), of_length).tolist()


def code_lengths(plane: Array) -> Array:
    """The length of each byte's code in bits, (256) of uint8; 0 for bytes that do not occur."""
    total = np.bincount(plane, minlength=256)
    there = np.argsort(-total, kind="stable")[: np.count_nonzero(total)]
    found = np.zeros(256, np.uint8)
    found[there] = ALONE if there.size == 1 else frequency_lengths(total[there].tolist())
    return found


def codes_of(lengths: Array) -> Array:
    """The code of each byte, (256): those of a length follow each other, after all shorter ones; its first bit is its lowest."""
    code, found = 0, np.zeros(256, np.int64)
    for length in range(1, LONGEST + 1):
        for byte in np.flatnonzero(lengths == length):
            found[byte] = int(format(code, f"0{length}b")[::-1], 2)
            code += 1
        code <<= 1
    return found


def coded_planes(width: int, mask: int) -> list[int]:
    """Which of an element's bytes have codes."""
    return [k for k in range(width) if mask >> k & 1]


def plan_codes(data: Array, count: int, width: int, mask: int, lengths: Array, sizes: Array) -> int:
    """Find the codes of each chunk and plane, and the bytes of their streams; how many bytes all take.

    data: (count * width) of uint8; lengths: (chunks, coded planes, 256) of uint8; sizes: (chunks, coded planes, STREAMS) of uint32.
    """
    for c in range(len(lengths)):
        chunk = data.reshape(count, width)[c * CHUNK : (c + 1) * CHUNK]
        for j, k in enumerate(coded_planes(width, mask)):
            lengths[c, j] = code_lengths(chunk[:, k])
            bits = (lengths[c, j] % ALONE)[chunk[:, k]].astype(np.int64)
            sizes[c, j] = [-(-int(bits[part].sum()) // 8) for part in shares(len(chunk))]
    return int(sizes.sum()) + SLACK


def pack_codes(
    data: Array, count: int, width: int, mask: int, lengths: Array, sizes: Array, coded: Array, plain: Array
) -> None:
    """Write the streams one behind the other into `coded`, (bytes), and the other planes into `plain`, (planes * count)."""
    planes = data.reshape(count, width)
    streams = [
        stream(part, codes_of(lengths[c, j]), lengths[c, j] % ALONE)
        for c in range(len(lengths))
        for j, k in enumerate(coded_planes(width, mask))
        for part in (
            planes[c * CHUNK : (c + 1) * CHUNK, k][share] for share in shares(len(planes[c * CHUNK : (c + 1) * CHUNK]))
        )
    ]
    coded[:] = np.concatenate([*streams, np.zeros(SLACK, np.uint8)])
    rest = [k for k in range(width) if not mask >> k & 1]
    plain.reshape(len(rest), count)[...] = planes.T[rest]


def stream(part: Array, codes: Array, lengths: Array) -> Array:
    """Bytes as their codes, one behind the other, in whole bytes."""
    bits = codes[part][:, None] >> np.arange(LONGEST) & 1
    used = np.arange(LONGEST) < lengths[part][:, None]
    return np.packbits(bits[used].astype(np.uint8), bitorder="little")


def unpack_codes(
    coded: Array, size: int, count: int, width: int, mask: int, lengths: Array, sizes: Array, plain: Array, data: Array
) -> int:
    """The reverse of `pack_codes`; the first chunk whose bits are none that it writes, -1 where there is none."""
    starts = np.concatenate([[0], np.cumsum(sizes.reshape(-1), dtype=np.int64)])
    if starts[-1] + SLACK != size:
        return 0
    planes, kept = data.reshape(count, width), coded_planes(width, mask)
    rest = [k for k in range(width) if k not in kept]
    planes[:, rest] = plain.reshape(len(rest), count).T
    for c in range(len(lengths)):
        chunk = planes[c * CHUNK : (c + 1) * CHUNK]
        for j, k in enumerate(kept):
            first = (c * len(kept) + j) * STREAMS
            found = unpack_plane(coded, starts[first : first + STREAMS + 1], lengths[c, j], len(chunk))
            if found is None:
                return c
            chunk[:, k] = found
    return -1


def unpack_plane(coded: Array, starts: Array, lengths: Array, count: int) -> Array | None:
    """The bytes of a chunk, of whose streams each begins at one of `starts`; None where the bits are not those of a code."""
    if (lengths == ALONE).any():
        return np.full(count, lengths.argmax(), np.uint8)
    table = table_of(lengths)
    if table is None:
        return None
    parts, ends = shares(count), 8 * starts[1:]
    at, found = 8 * starts[:-1], np.zeros((STREAMS, parts[0].stop), np.uint8)
    many = np.array([part.stop - part.start for part in parts])
    for i in range(parts[0].stop):
        byte = np.minimum(at >> 3, coded.size - 3)
        word = coded[byte] | coded[byte + 1].astype(np.int64) << 8 | coded[byte + 2].astype(np.int64) << 16
        entry = table[word >> (at & 7) & (1 << LONGEST) - 1]
        found[:, i] = entry & 255
        at = np.minimum(at + np.where(i < many, entry >> 8, 0), ends + 1)
    whole = ((at <= ends) & (at + 8 > ends)).all()
    return np.concatenate([row[:n] for row, n in zip(found, many, strict=True)]) if whole else None


def table_of(lengths: Array) -> Array | None:
    """Byte and length of the code with which LONGEST bits begin; None where lengths are not those of a whole code."""
    used = np.flatnonzero(lengths)
    bits = lengths[used].astype(np.int64)
    if (bits > LONGEST).any() or (1 << LONGEST - bits).sum() != 1 << LONGEST:
        return None
    table, codes = np.zeros(1 << LONGEST, np.int64), codes_of(lengths)
    for byte, length in zip(used.tolist(), bits.tolist(), strict=True):
        table[codes[byte] :: 1 << length] = byte | length << 8
    return table


def find_words(data: Array, count: int, width: int, bits: Array) -> int:
    """A bit for each word that is not 0; how many there are.  data: (count * width) of uint8; bits: (count / 8) of uint8."""
    there = data.view(f"u{width}") != 0
    bits[:] = np.packbits(there, bitorder="little")
    return int(np.count_nonzero(there))


def squeeze_words(data: Array, count: int, width: int, bits: Array, words: Array, many: int) -> None:
    """The words whose bits are set, (many * width) of uint8."""
    words.view(f"u{width}")[:] = data.view(f"u{width}")[
        np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)
    ]


def spread_words(words: Array, many: int, count: int, width: int, bits: Array, data: Array) -> None:
    """The reverse of `squeeze_words`."""
    data[:] = 0
    data.view(f"u{width}")[np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)] = words.view(f"u{width}")
