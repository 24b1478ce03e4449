"""Several maps side by side: each of them on a stretch, or on a slice, of one dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.dispatch.named import named
from rushlight.distributions import constraints
from rushlight.distributions.transform import Transform
from rushlight.distributions.utils import sum_rightmost

if TYPE_CHECKING:
    from rushlight.distributions.constraints import _Cat, _Stack
    from rushlight.tensor import Tensor

__all__ = ["CatTransform", "StackTransform"]


class _Joined(Transform):
    """What both have in common.  Raises AssertionError for what is no Transform."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        super().__init__(cache_size=cache_size)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all of them are."""
        return all(t.bijective for t in self.transforms)

    def _parts(self, whole: Any, what: str) -> Sequence[Any]:
        """What each of the maps gets."""
        raise NotImplementedError

    def _join(self, parts: list[Any]) -> Tensor:
        """What each of them gave, together."""
        raise NotImplementedError

    def _each(self, apply: Callable[[Transform, Any], Any], whole: Tensor, what: str) -> Tensor:
        parts = self._parts(whole, what)
        return self._join([apply(t, part) for t, part in zip(self.transforms, parts, strict=True)])

    def _call(self, x: Tensor) -> Tensor:
        return self._each(lambda t, part: t(part), x, "x")

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each(lambda t, part: t.inv(part), y, "y")

    def _check_dim(self, whole: Tensor) -> None:
        if not -whole.dim() <= self.dim < whole.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {whole.dim()} dimensions")


class StackTransform(_Joined):
    """`tseq`, as many maps as `dim` has slices, one for each of them.  (*, K, *) -> (*, K, *)

    Raises AssertionError for another number of slices.
    """

    def _parts(self, whole: Any, what: str) -> Sequence[Any]:
        self._check_dim(whole)
        size = whole.size(self.dim)
        if size != len(self.transforms):
            raise AssertionError(f"{what}.size({self.dim}) = {size} must equal len(transforms) {len(self.transforms)}")
        return [whole.select(self.dim, i) for i in range(size)]

    def _join(self, parts: list[Any]) -> Tensor:
        return named.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Any) -> Tensor:
        pairs = zip(self.transforms, self._parts(x, "x"), self._parts(y, "y"), strict=True)
        return named.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)

    @constraints.dependent_property
    def domain(self) -> _Stack:
        """Each slice in the domain of its map."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> _Stack:
        """Each slice in the codomain of its map."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CatTransform(_Joined):
    """`tseq` on stretches along `dim` of `lengths` elements each, 1 where none are given.  (*, L, *) -> (*, L, *)

    Raises AssertionError where numbers of lengths and maps, or their sum and the size of the dimension, differ.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0):  # fmt: skip
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @property
    def event_dim(self) -> int:
        """The largest."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The elements of all stretches."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if cache_size == self._cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, whole: Tensor, what: str) -> Sequence[Any]:
        self._check_dim(whole)
        if whole.size(self.dim) != self.length:
            raise AssertionError(f"{what}.size({self.dim}) = {whole.size(self.dim)} must equal length {self.length}")
        return whole.split(self.lengths, self.dim)

    def _join(self, parts: list[Any]) -> Tensor:
        return named.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Any) -> Tensor:
        """Those of the parts one after another, or their sum where `dim` is within the event."""
        terms = []
        for t, a, b in zip(self.transforms, self._parts(x, "x"), self._parts(y, "y"), strict=True):
            terms.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return named.cat(terms, dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> _Cat:
        """Each stretch in the domain of its map."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> _Cat:
        """Each stretch in the codomain of its map."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
