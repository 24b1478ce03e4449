"""DTensor: a tensor of which each process has a part, or all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.autograd.function import Function
from rushlight.basics import groups
from rushlight.basics.dtypes import dtype
from rushlight.basics.size import Size
from rushlight.basics.state import modes
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.device_mesh import DeviceMesh, usual
from rushlight.distributed.group import get_rank
from rushlight.distributed.tensor.layouts import Spec, reduced
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, checked
from rushlight.nn.parameter import Parameter
from rushlight.overrides.protocol import DisableTorchFunctionSubclass
from rushlight.overrides.public import made
from rushlight.tensor import Tensor, alias, twin, wrap

__all__ = ["DTensor", "ShardedParameter", "distribute_tensor", "local_of", "spread"]


class DTensor(Tensor):
    """A tensor that lies on the processes of a mesh: as a program sees it, of the shape of the whole; its memory is a part.

    Made by `distribute_tensor`, `DTensor.from_local` and ``fully_shard``.  Operators on each element work on the parts,
    norms, sums, means and extremes of all elements over all processes; others raise NotImplementedError: `full_tensor()` gives
    the whole, `to_local()` this process's part.  Gradients pass through these two, `from_local` and `redistribute`, and through
    no operator.
    """

    _spread = True
    _spec: Spec

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: object = None,
        grad_placements: object = None,
    ) -> DTensor:
        """A DTensor whose part on this process is given, on its memory.

        shape: of the whole; without it all processes must have parts alike.  Raises ValueError where the parts cannot be those
        of a tensor of that shape.
        """
        mesh = usual(device_mesh)
        where = checked("DTensor.from_local", placements, mesh, local_tensor.dim())
        if shape is None:
            sizes = list(local_tensor.shape)
            for one, count in zip(where, mesh.shape, strict=True):
                if isinstance(one, Shard):
                    sizes[one.dim] *= count
            shape = sizes
        spec = Spec(mesh, where, tuple(shape))
        if spec.local_shape() != tuple(local_tensor.shape):
            raise ValueError(f"DTensor.from_local: of a tensor of shape {list(spec.shape)} rank {get_rank()} has the part "
                             f"{list(spec.local_shape())}, got {list(local_tensor.shape)}: pass shape=")  # fmt: skip
        return _FromLocal.apply(local_tensor, spec)  # type: ignore[no-any-return]

    @property
    def shape(self) -> Size:
        """Sizes of the whole."""
        return Size(self._spec.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole."""
        return math.prod(self._spec.shape) * self.itemsize

    @property
    def device_mesh(self) -> DeviceMesh:
        """The processes that it lies on."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        return self._spec.placements

    @property
    def data(self) -> Any:
        """The same memory outside the graph."""
        return spread(twin(self), self._spec)

    @data.setter
    def data(self, value: Any) -> None:
        part = (
            isinstance(value, Tensor) and not value._spread and value._held.shape == self._held.shape
        )  # as to_empty gives it
        if not part and not (isinstance(value, DTensor) and value._spec == self._spec):
            raise ValueError(f"`.data` of a DTensor: expected one of {described(self)}, got {described(value)}")
        with DisableTorchFunctionSubclass():
            _set_data(self, twin(value))

    @property
    def grad(self) -> Any:
        """The gradient: None, or a DTensor that lies alike."""
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and not (
            isinstance(value, DTensor) and value._spec == self._spec and value._held.dtype == self._held.dtype
        ):
            raise RuntimeError(
                f"grad of {described(self)} of {self.dtype}: expected a DTensor that lies alike, got {described(value)}"
            )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _alike(self, local: Tensor) -> DTensor:
        """A DTensor that lies as this one, on the memory of its part: what optimizers make state with."""
        return spread(local, self._spec)  # type: ignore[no-any-return]

    def to_local(self, *, grad_placements: object = None) -> Tensor:
        """This process's part, on the same memory."""
        return _ToLocal.apply(self) if differentiable(self) else alias(self)  # type: ignore[no-any-return]

    def full_tensor(self, *, grad_placements: object = None) -> Tensor:
        """The whole, on every process, which all call this."""
        if differentiable(self):
            return self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim).to_local()
        return wrap(self._spec.whole(self._array))

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: dtype | None = None,
        backward_dtype: dtype | None = None,
    ) -> DTensor:
        """The same tensor, with other placements: all processes call this."""
        mesh = self._spec.mesh if device_mesh is None else device_mesh
        if mesh != self._spec.mesh:
            raise NotImplementedError(
                f"DTensor.redistribute: another mesh, {mesh}: distribute_tensor(x.full_tensor(), mesh, ...)"
            )
        where = checked("DTensor.redistribute", placements, mesh, len(self._spec.shape))
        if any(isinstance(one, Partial) for one in where) and where != self._spec.placements:
            raise RuntimeError(
                "DTensor.redistribute: a tensor that is whole cannot become Partial(): use Shard(dim) or Replicate()"
            )
        spec = Spec(mesh, where, self._spec.shape)
        return _Redistributed.apply(self, spec, forward_dtype)  # type: ignore[no-any-return]

    @property
    def _grad(self) -> Any:
        return self.__dict__.get("_grad")

    @_grad.setter
    def _grad(self, value: Any) -> None:
        # Where a gradient comes through `to_local` and its like it is a part, which lies as this does.
        plain = value is not None and not value._spread and value._held.shape == self._held.shape
        self.__dict__["_grad"] = spread(value, self._spec) if plain else value

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        from rushlight.distributed.tensor.rules import called

        return called(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return (
            f"DTensor(local_tensor={alias(self)!r}, device_mesh={self._spec.mesh}, placements={self._spec.placements})"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotImplementedError(
            f"pickling or copying {described(self)}: each process has a part. torch.distributed.checkpoint.save writes them, and "
            "full_tensor() is a tensor that can be pickled"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = spread(wrap(self._array.copy()), self._spec, type(self))
            known.requires_grad_(self._edge is not None)
        return known


def differentiable(x: DTensor) -> bool:
    """Whether gradients have to find their way to a DTensor."""
    return bool(modes.grad and x._edge is not None)


class _FromLocal(Function):
    """A part as a DTensor: its gradient is a part."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: Spec) -> Any:
        return spread(twin(local), spec)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return local_of(grad), None


class _ToLocal(Function):
    """A DTensor's part: its gradient is a part of that of the whole."""

    @staticmethod
    def forward(ctx: Any, x: DTensor) -> Any:
        return twin(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


class _Redistributed(Function):
    """A DTensor that lies in another way: its gradient is brought back to where that of the first lies."""

    @staticmethod
    def forward(ctx: Any, x: DTensor, spec: Spec, to: dtype | None) -> Any:
        ctx.given, ctx.made, ctx.dtype = x._spec.of_gradients(), spec.of_gradients(), x.dtype
        local = x._array if spec == x._spec else x._spec.brought(x._array, spec)
        return spread(wrap(local if to is None else local.astype(to.numpy)), spec)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        local = local_of(grad)._array.astype(ctx.dtype.numpy)
        return wrap(local if ctx.made == ctx.given else ctx.made.brought(local, ctx.given)), None, None


_set_data: Any = Tensor.__dict__["data"].fset


class ShardedParameter(DTensor, Parameter):
    """A parameter of which each process has a part: what ``fully_shard`` makes of parameters."""

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return f"Parameter containing:\n{DTensor.__repr__(self)}"

    __reduce_ex__ = DTensor.__reduce_ex__
    __deepcopy__ = DTensor.__deepcopy__


def described(x: object) -> str:
    """A DTensor in words, for errors."""
    if not isinstance(x, DTensor):
        return f"a {type(x).__name__}"
    return f"a DTensor of shape {list(x._spec.shape)} with placements {', '.join(map(str, x._spec.placements))}"


def spread(local: Tensor, spec: Spec, cls: Any = DTensor) -> Any:
    """A DTensor on the memory of its part.  local: (spec.local_shape())"""
    made(cls)
    t = alias(local, cls)
    t._spec = spec
    return t


def local_of(x: object) -> Any:
    """A plain tensor on the memory of a DTensor, with its version counter; anything else as it is."""
    return alias(x) if isinstance(x, DTensor) else x


def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
                      src_data_rank: int | None = 0) -> DTensor:  # fmt: skip
    """A tensor that all processes have, or process `src_data_rank` of each line of the mesh, dealt to them.

    placements: one for each dimension of the mesh, Replicate() by default; src_data_rank: whose values count; None: those that
    each process has, without a message.  A parameter gives a parameter.  Raises ValueError for placements that do not fit.
    """
    mesh = usual(device_mesh)
    where = checked("distribute_tensor", placements, mesh, tensor.dim())
    if isinstance(tensor, DTensor):
        return tensor.redistribute(mesh, where)
    if any(isinstance(one, Partial) for one in where):
        raise ValueError(
            "distribute_tensor: a tensor that is whole cannot become Partial(): use Shard(dim) or Replicate()"
        )
    whole = tensor.detach()
    if src_data_rank is not None:
        whole = whole.clone()
        for d in range(mesh.ndim):
            broadcast(whole, group=mesh.get_group(d), group_src=src_data_rank)
    spec = Spec(mesh, where, tuple(tensor.shape))
    local = wrap(spec.cut(whole._array))
    made_of = spread(local, spec, ShardedParameter if isinstance(tensor, Parameter) else DTensor)
    return made_of.requires_grad_(tensor.requires_grad)  # type: ignore[no-any-return]


def norms_over(tensors: Sequence[Any], order: float) -> list[Any]:
    """The norm of each tensor, of DTensors that of the whole: one message for each mesh.  -> 0-d arrays in float64"""
    found = [_power_sum(t._array, order) for t in tensors]
    where: dict[DeviceMesh, list[int]] = {}
    for i, t in enumerate(tensors):
        if t._spread:
            where.setdefault(t._spec.mesh, []).append(i)
    for mesh, places in where.items():
        for d in range(mesh.ndim):
            chosen = [i for i in places if isinstance(tensors[i]._spec.placements[d], Shard)]
            if chosen:
                sums = reduced(
                    np.array([found[i] for i in chosen]), "max" if order == math.inf else "sum", mesh.get_group(d)
                )
                for i, value in zip(chosen, sums, strict=True):
                    found[i] = value
    return [np.float64(v) if order in (0, math.inf) else np.float64(v) ** (1 / order) for v in found]


def _power_sum(array: Any, order: float) -> Any:
    """What norms of parts are made of: the sum of powers, or the largest magnitude, in float64."""
    flat = np.abs(array.reshape(-1)).astype(np.float64)
    if order == math.inf:
        return flat.max() if flat.size else np.float64(0)
    if order == 0:
        return np.float64(np.count_nonzero(flat))
    return np.power(flat, order).sum()


def no_gradient_lost(name: str, tensors: Sequence[Any]) -> None:
    """Raise NotImplementedError where gradients were to pass through an operator on DTensors."""
    if modes.grad and any(isinstance(t, DTensor) and t._edge is not None for t in tensors):
        raise NotImplementedError(f"{name} of a DTensor that requires grad: gradients do not pass through operators on DTensors. "
                                  "Call it within torch.no_grad(), or on detach()")  # fmt: skip


groups.averaging["norms_over"] = norms_over
__all__ += ["Replicate", "no_gradient_lost", "norms_over"]
