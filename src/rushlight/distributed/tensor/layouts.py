"""What a process has of a tensor that lies on several, and how the whole comes from the parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.running import nothing, run
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, parts
from rushlight.distributed.wire import moved, plain

REDUCED = {"sum": "SUM", "avg": "SUM", "max": "MAX", "min": "MIN", "product": "PROD"}


@dataclass(frozen=True)
class Spec:
    """How a tensor lies on processes.  placements: one for each dimension of the mesh; shape: of the whole tensor."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]

    def box(self, place: Sequence[int] | None = None) -> tuple[slice, ...]:
        """The part of the whole that a process has, by its place in the mesh: this one by default; nothing outside of it."""
        at = self.mesh.get_coordinate() if place is None else place
        if at is None:
            return tuple(slice(0, 0) for _ in self.shape)
        ranges = [range(n) for n in self.shape]
        for one, size, k in zip(self.placements, self.mesh.shape, at, strict=True):
            if isinstance(one, Shard):
                inner = ranges[one.dim]
                part = parts(len(inner), size)[k]
                ranges[one.dim] = inner[part.start : part.stop]
        return tuple(slice(r.start, r.stop) for r in ranges)

    def local_shape(self) -> tuple[int, ...]:
        """The shape of what this process has."""
        return tuple(s.stop - s.start for s in self.box())

    def cut(self, whole: Array) -> Any:
        """This process's part of an array, as a copy; of a sum the first process along it has all.  (shape) -> (local_shape)"""
        found = np.array(whole[self.box()], order="C")
        at = self.mesh.get_coordinate() or ()
        if any(
            isinstance(one, Partial) and one.reduce_op == "sum" and k
            for one, k in zip(self.placements, at, strict=False)
        ):
            found[...] = 0
        return found

    def whole(self, local: Any) -> Any:
        """The whole array, on every process, which all call this.  (local_shape) -> (shape)"""
        array = np.asarray(local, order="C")
        for d in reversed(range(self.mesh.ndim)):
            one, group = self.placements[d], self.mesh.get_group(d)
            if isinstance(one, Shard):
                array = gathered(array, one.dim, self._lengths(one.dim, d), group)
            elif isinstance(one, Partial):
                array = reduced(array, one.reduce_op, group)
        return array

    def brought(self, local: Array, other: Spec) -> Array:
        """The part of this process as another layout has it, which all call.  (local_shape) -> (other.local_shape)"""
        whole = self.whole(local)
        own = not np.may_share_memory(whole, local) and all(isinstance(one, Replicate) for one in other.placements)
        return whole if own else other.cut(whole)  # type: ignore[no-any-return]

    def of_gradients(self) -> Spec:
        """How a gradient lies, of which each process has all where it has a term of the tensor."""
        where = tuple(Replicate() if isinstance(one, Partial) else one for one in self.placements)
        return Spec(self.mesh, where, self.shape)

    def _lengths(self, dim: int, before: int) -> list[int]:
        """Lengths along a dimension of the parts that the processes along dimension `before` of the mesh have."""
        length, at = self.shape[dim], self.mesh.get_coordinate() or (0,) * self.mesh.ndim
        for one, size, k in zip(self.placements[:before], self.mesh.shape, at, strict=False):
            if isinstance(one, Shard) and one.dim == dim:
                length = len(parts(length, size)[k])
        return [len(r) for r in parts(length, self.mesh.shape[before])]


def gathered(local: Array, dim: int, lengths: Sequence[int], group: ProcessGroup) -> Array:
    """The parts of all processes of a group, joined along a dimension.  local: array whose length along it is this process's"""
    first = np.ascontiguousarray(np.moveaxis(local, dim, 0))
    rest = math.prod(first.shape[1:])
    out = np.empty((sum(lengths), *first.shape[1:]), first.dtype)
    counts = [n * rest for n in lengths]
    run(
        "all_gather",
        group,
        lambda way: way.all_gather_v(moved(out), moved(first), counts),
        nothing,
        False,
        tuple(counts),
    )
    return np.ascontiguousarray(np.moveaxis(out, 0, dim))


def reduced(local: Array, op: str, group: ProcessGroup) -> Any:
    """What the processes of a group have, added up, or what `op` says; 16-bit numbers in float32.  (*) -> (*)"""
    narrow = not plain(local.dtype)
    array = local.astype(np.float32) if narrow else local.copy()
    run("all_reduce", group, lambda way: way.all_reduce(array, REDUCED[op]), nothing, False, op)
    if op == "avg":
        array /= group.size()
    return array.astype(local.dtype) if narrow else array
