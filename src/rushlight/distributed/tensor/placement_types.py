"""How a tensor lies on the processes along a dimension of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rushlight.absent import walls

if TYPE_CHECKING:
    from rushlight.distributed.device_mesh import DeviceMesh

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along a dimension of a mesh: `Shard`, `Replicate` or `Partial`."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part of it, along dimension `dim`."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it is the sum of what the processes have."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part, along dimension `dim` of the tensor, as `torch.chunk` deals: the last ones may have less."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of the tensor."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a term: the tensor is what `reduce_op` makes of them."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def parts(length: int, count: int) -> list[range]:
    """The part of each of `count` processes of a dimension, as `torch.chunk` deals it."""
    size = -(-length // count)
    return [range(min(k * size, length), min((k + 1) * size, length)) for k in range(count)]


def checked(name: str, placements: Sequence[Any] | None, mesh: DeviceMesh, dims: int) -> tuple[Placement, ...]:
    """Placements, one for each dimension of a mesh; dimensions of the tensor counted from its beginning.

    Raises ValueError for another number of them, TypeError for what is none.
    """
    found = tuple(Replicate() for _ in range(mesh.ndim)) if placements is None else tuple(placements)
    if len(found) != mesh.ndim:
        raise ValueError(
            f"{name}: expected {mesh.ndim} placements, one for each dimension of {mesh}, got {list(found)}"
        )
    made = []
    for one in found:
        if not isinstance(one, Placement):
            raise TypeError(f"{name}: expected Shard(dim), Replicate() or Partial() as a placement, got {one!r}")
        if isinstance(one, Shard):
            if not -max(dims, 1) <= one.dim < max(dims, 1):
                raise ValueError(f"{name}: there is no dimension {one.dim} to shard: the tensor has {dims}")
            one = Shard(one.dim % max(dims, 1))
        made.append(one)
    return tuple(made)


__getattr__ = walls.lacking(__name__)
