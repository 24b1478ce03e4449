"""Where the components of a batch lie along the dimension in which their sizes differ."""

from __future__ import annotations

import itertools
import weakref

from rushlight.dispatch.named import named as torch
from rushlight.tensor import Tensor

__all__ = ["NestedInt", "Ragged", "of_sizes", "ragged"]

_numbers = itertools.count(1)


class NestedInt:
    """The size of a ragged dimension: another number in each component.  It equals itself and what lies in the same places.

    Numbers are compared with it as far as that can be known: it counts as at least 2.  Raises ValueError where it cannot.
    """

    __slots__ = ("factor", "number")
    stands_for_sizes = True

    def __init__(self, number: int, factor: int = 1) -> None:
        self.number, self.factor = number, factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and (self.number, self.factor) == (other.number, other.factor)

    def __hash__(self) -> int:
        return hash((NestedInt, self.number, self.factor))

    def __bool__(self) -> bool:
        return True

    def __mul__(self, factor: int) -> NestedInt:
        return NestedInt(self.number, self.factor * factor)

    __rmul__ = __mul__

    def __ge__(self, other: object) -> bool:
        return self == other or self._above(other, 2)

    def __gt__(self, other: object) -> bool:
        return self != other and self._above(other, 1)

    def __le__(self, other: object) -> bool:
        return not self > other

    def __lt__(self, other: object) -> bool:
        return not self >= other

    def _above(self, other: object, least: int) -> bool:
        if isinstance(other, int) and other <= least:
            return True
        raise ValueError(
            f"{self!r} stands for sizes that differ: whether they are larger than {other!r} is known of each alone"
        )

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"


class Ragged:
    """The places of components: where each begins, how long it is, and the size that stands for all lengths.

    offsets: (B + 1); lengths: (B), where components are shorter than what lies between their offsets, or None.
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None, least: int | None, most: int | None) -> None:
        self.offsets, self.lengths = offsets, lengths
        bounds = offsets.tolist()
        self.starts: list[int] = bounds[:-1]
        self.gaps = [b - a for a, b in itertools.pairwise(bounds)]
        self.sizes: list[int] = self.gaps if lengths is None else lengths.tolist()
        self.least = min(self.sizes, default=0) if least is None else least
        self.most = max(self.sizes, default=0) if most is None else most
        self.symbol = NestedInt(next(_numbers))

    @property
    def whole(self) -> bool:
        """Whether components lie side by side, without holes between."""
        return self.lengths is None


_known: weakref.WeakValueDictionary[int, Ragged] = weakref.WeakValueDictionary()


def ragged(offsets: Tensor, lengths: Tensor | None = None, least: int | None = None, most: int | None = None) -> Ragged:
    """The places that these tensors say: the same object for the same tensors, as long as something lies there."""
    key = id(offsets if lengths is None else lengths)
    found = _known.get(key)
    if found is None or found.offsets is not offsets or found.lengths is not lengths:
        _known[key] = found = Ragged(offsets, lengths, least, most)
    return found


def of_sizes(sizes: list[int]) -> Ragged:
    """The places of components of these sizes, side by side."""
    return ragged(torch.tensor([0, *itertools.accumulate(sizes)]))
