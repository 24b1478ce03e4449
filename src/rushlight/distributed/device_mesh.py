"""Processes in a grid: groups along each of its dimensions, by name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics import groups
from rushlight.basics.arrays import Array
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.group import get_rank, init_process_group, is_initialized, new_group
from rushlight.tensor import Tensor, wrap

__all__ = ["DeviceMesh", "init_device_mesh"]

_inside: list[DeviceMesh] = []  # meshes that `with` blocks are in, outermost first


class DeviceMesh:
    """Processes arranged in a grid, which all of them make together.

    device_type: "cpu", or what the script says; mesh: their ranks, in nested lists or an integer tensor of any number of
    dimensions; mesh_dim_names: a name for each dimension, for ``mesh["name"]`` and `get_group`.  Makes the default group if
    there is none.  Raises ValueError for ranks that occur twice or that there are not, and for another number of names.
    """

    def __init__(self, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None,
                 backend_override: Any = None, _init_backend: bool = True, _rank: int | None = None) -> None:  # fmt: skip
        ranks = np.array(mesh._array if isinstance(mesh, Tensor) else mesh, dtype=np.int64)
        if not is_initialized():
            init_process_group()
        world = groups.required().size()
        if len(np.unique(ranks)) != ranks.size or ranks.size == 0 or ranks.min() < 0 or ranks.max() >= world:
            raise ValueError(f"DeviceMesh: expected different ranks below {world}, got {ranks.tolist()}")
        if mesh_dim_names is not None and len(mesh_dim_names) != ranks.ndim:
            raise ValueError(f"DeviceMesh: expected {ranks.ndim} names in mesh_dim_names, one for each dimension, got "
                             f"{tuple(mesh_dim_names)}")  # fmt: skip
        self._take(device_type, ranks, mesh_dim_names, [_along(ranks, d) for d in range(ranks.ndim)])

    def _take(self, device_type: str, ranks: Array, names: Sequence[str] | None, lines: list[Any]) -> None:
        self.device_type, self._ranks = device_type, ranks
        self.mesh_dim_names = None if names is None else tuple(names)
        self._lines: list[Any] = lines
        self._flat: dict[str, DeviceMesh] = {}
        self._root: DeviceMesh | None = None
        found = np.argwhere(ranks == get_rank())
        self._place: tuple[int, ...] | None = tuple(map(int, found[0])) if len(found) else None

    @property
    def mesh(self) -> Tensor:
        """The ranks.  (sizes of the dimensions) of int64"""
        return wrap(self._ranks.copy())

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(self._ranks.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self._ranks.ndim)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes: in all, or along a dimension."""
        return int(self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim])

    def get_rank(self) -> int:
        """The number of this process among all."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands in the grid; None outside of it."""
        return None if self._place is None else tuple(self._place)

    def _dim(self, mesh_dim: int | str | None, what: str) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(f"{what}: this mesh has {self.ndim} dimensions: say which, as mesh_dim")
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"{what}: no dimension is named {mesh_dim!r}: this mesh has {self.mesh_dim_names}")
            return (self.mesh_dim_names or ()).index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"{what}: there is no dimension {mesh_dim}: this mesh has {self.ndim}")
        return mesh_dim % self.ndim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes in line with this one along a dimension.  Raises RuntimeError where several could be meant."""
        return self._lines[self._dim(mesh_dim, "get_group")]  # type: ignore[no-any-return]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups along all dimensions."""
        return list(self._lines)

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along a dimension.  Raises RuntimeError where several could be meant."""
        dim = self._dim(mesh_dim, "get_local_rank")
        if self._place is None:
            raise RuntimeError(f"get_local_rank: rank {get_rank()} is not in {self}")
        return self._place[dim]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the grid along dimensions that are named, through this process.  Raises KeyError for unknown names."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if len(wanted) == 1 and wanted[0] in self._flat:
            return self._flat[wanted[0]]
        if not self.mesh_dim_names:
            raise KeyError("DeviceMesh: a part is taken by name, and this mesh has none: give it mesh_dim_names")
        dims = [self._dim(name, "DeviceMesh") for name in wanted]
        if wanted == self.mesh_dim_names:
            return self
        if sorted(dims) != dims or len(set(dims)) != len(dims):
            raise KeyError(
                f"Invalid mesh_dim_names {wanted}: expected different names in the order of {self.mesh_dim_names}"
            )
        place = self._place or (0,) * self.ndim
        part = self._ranks[tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))]
        found = DeviceMesh.__new__(DeviceMesh)
        found._take(self.device_type, part, wanted, [self._lines[d] for d in dims])
        found._root = self._root or self
        return found

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The mesh in one dimension, which the root mesh knows by a name from then on; all processes call this."""
        root = self._root or self
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if name not in root._flat:
            dims = [root._dim(n, "_flatten") for n in self.mesh_dim_names or ()]
            line = _along(root._ranks, *dims) if self.ndim > 1 else self._lines[0]
            found = DeviceMesh.__new__(DeviceMesh)
            found._take(self.device_type, self._ranks.reshape(-1), (name,), [line])
            found._root, root._flat[name] = root, found
        return root._flat[name]

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """A mesh on groups that are there: one group, or one for each dimension of `mesh`.  Raises ValueError where they do not fit."""
        several = isinstance(group, (list, tuple))
        lines = list(group) if several else [group]
        if mesh is None:
            if len(lines) != 1:
                raise ValueError(f"DeviceMesh.from_group: expected mesh= with {len(lines)} groups: how they lie in it")
            mesh = list(lines[0].ranks)
        ranks = np.array(mesh._array if isinstance(mesh, Tensor) else mesh, dtype=np.int64)
        if ranks.ndim != len(lines):
            raise ValueError(
                f"DeviceMesh.from_group: expected a mesh of {len(lines)} dimensions, as there are groups, got {ranks.ndim}"
            )
        found = DeviceMesh.__new__(DeviceMesh)
        found._take(device_type, ranks, mesh_dim_names, lines)
        return found

    def __enter__(self) -> DeviceMesh:
        _inside.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _inside.pop()

    def __deepcopy__(self, memo: object) -> DeviceMesh:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise NotImplementedError(
            "pickling a DeviceMesh, or a DTensor that lies on one: torch.distributed.checkpoint.save writes state dicts with "
            "DTensors, each process its part, and full_tensor() is a tensor that can be pickled"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        mine, its = ((m.device_type, m.shape, m._ranks.tobytes(), m.mesh_dim_names) for m in (self, other))
        return mine == its

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self._ranks.tobytes(), self.mesh_dim_names))

    def __repr__(self) -> str:
        sizes = self.shape if self.mesh_dim_names is None else dict(zip(self.mesh_dim_names, self.shape, strict=True))
        return f"DeviceMesh({sizes}, {self.device_type!r}, {self._ranks.tolist()})"


def _along(ranks: Array, *dims: int) -> object:
    """The group of this process along dimensions of a grid; all processes make all groups along them, in one order."""
    world = groups.required()
    if ranks.size == world.size() and len(dims) == ranks.ndim and ranks.reshape(-1).tolist() == list(world.ranks):
        return world
    others = [range(n) for d, n in enumerate(ranks.shape) if d not in dims]
    mine: Any = None
    for place in itertools.product(*others):
        at = iter(place)
        line = ranks[tuple(slice(None) if d in dims else next(at) for d in range(ranks.ndim))].reshape(-1).tolist()
        made = new_group(line)
        if get_rank() in line:
            mine = made
    return mine


def init_device_mesh(device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None,
                     backend_override: object = None) -> DeviceMesh:  # fmt: skip
    """A mesh of all processes, in the order of their ranks.

    mesh_shape: sizes of the dimensions, whose product is the number of processes.  Raises RuntimeError for another product or
    for names that do not fit.

    >>> import rushlight as torch
    >>> torch.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> mesh = torch.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> mesh["data"].get_local_rank(), mesh.get_group("model").size()
    (0, 1)
    >>> torch.distributed.destroy_process_group()
    """
    shape = tuple(mesh_shape)
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"init_device_mesh: expected different names in mesh_dim_names, got {tuple(mesh_dim_names)}"
            )
        if len(mesh_dim_names) != len(shape):
            raise RuntimeError(f"init_device_mesh: expected a name for each dimension of mesh_shape, got {shape} and "
                               f"{tuple(mesh_dim_names)}")  # fmt: skip
    if not is_initialized():
        init_process_group()
    world = groups.required().size()
    if int(np.prod(shape)) != world:
        raise RuntimeError(
            f"init_device_mesh: expected a mesh_shape whose product is the number of processes, {world}, got {shape}"
        )
    return DeviceMesh(device_type, np.arange(world).reshape(shape), mesh_dim_names=mesh_dim_names)


def usual(mesh: DeviceMesh | None) -> DeviceMesh:
    """A mesh that was given, else that of the `with` block, else all processes in a line."""
    if mesh is not None:
        return mesh
    return _inside[-1] if _inside else init_device_mesh("cpu", (groups.required().size(),))
