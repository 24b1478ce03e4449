"""The base class of invertible maps, and their inverses."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from rushlight.basics.forwarding import forwarded
from rushlight.basics.size import Size
from rushlight.tensor import Tensor

__all__ = ["Transform"]


class Transform:
    """A map y = t(x) from `domain` to `codomain`; `t.inv` goes back.

    Subclasses define `_call`, `_inverse`, `log_abs_det_jacobian(x, y)` and, of monotonous maps, `sign`. With
    `cache_size=1` the last pair is kept, so that t.inv(t(x)) is x. Raises ValueError for other cache sizes.
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: Any = (None, None)
        self._inv: Any = None
        super().__init__()

    @property
    def event_dim(self) -> int:
        """How many dimensions make up one element.  Raises ValueError where domain and codomain differ in it."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return int(self.domain.event_dim)

    @property
    def inv(self) -> Any:
        """The inverse map."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """+1 where it increases, -1 where it decreases."""
        raise NotImplementedError(f"{type(self).__name__} does not implement sign")

    def with_cache(self, cache_size: int = 1) -> Self:
        """The same map with this cache."""
        if cache_size == self._cache_size:
            return self
        made = copy(self)
        Transform.__init__(made, cache_size)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    def __eq__(self, other: object) -> bool:
        if type(self).__init__ is Transform.__init__:
            return type(self) is type(other)
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """y of x.  (*batch, *event) -> (*batch, *event)"""
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Any) -> Tensor:
        """x of y."""
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not implement _inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        """log |dy/dx| at a point.  (*batch, *event) twice -> (*batch)"""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """The shape of y for an x of this shape."""
        return Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """The shape of x for a y of this shape."""
        return Size(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a map, by the map."""

    domain: Any = forwarded("_inv.codomain", "The map's codomain.")
    codomain: Any = forwarded("_inv.domain", "The map's domain.")
    bijective: bool = forwarded("_inv.bijective", "As the map.")
    sign: Any = forwarded("_inv.sign")
    inv: Transform = forwarded("_inv")

    def __init__(self, transform: Transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"
