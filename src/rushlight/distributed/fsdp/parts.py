"""One parameter that processes share: in parts, and whole while its module computes."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.basics.arrays import Array
from rushlight.basics.groups import ProcessGroup
from rushlight.distributed.debug import compared
from rushlight.distributed.tensor.dtensor import ShardedParameter, spread
from rushlight.distributed.tensor.layouts import Spec
from rushlight.distributed.tensor.placement_types import parts
from rushlight.distributed.wire import moved, plain
from rushlight.distributed.work import Work
from rushlight.nn.parameter import Parameter
from rushlight.overrides.public import made
from rushlight.storage import root_of, settle
from rushlight.tensor import Tensor, wrap

__all__ = ["Lane", "Part", "gather", "whole"]

SMALL = 1 << 16  # bytes of a parameter: those of less travel together, in one message
# By the identity of its memory, each parameter that is whole now.
whole: weakref.WeakValueDictionary[int, Part] = weakref.WeakValueDictionary()
_set_class: Any = object.__dict__["__class__"].__set__
_set_data: Any = Tensor.__dict__["data"].fset


class Part:
    """A parameter and the part of it that this process keeps.

    While it is whole the parameter is an ordinary one, and engine and optimizers know nothing of this; else it is a
    `ShardedParameter` whose memory is the part.  It is one object all the time: saved tensors, hooks and optimizers refer to it.
    """

    def __init__(self, name: str, param: Tensor, spec: Spec, group: ProcessGroup, low: Any = None) -> None:
        """low: the dtype that it is gathered in, if another."""
        self.name, self.param, self.spec, self.low = name, param, spec, low
        rest = math.prod(spec.shape[1:])
        self.counts = [len(r) * rest for r in parts(spec.shape[0], group.size())]
        self.small = param.nbytes < SMALL
        self.root: Any = None  # the memory of the parameter, while it is whole
        self.shard: Any = None  # this process's part, while the parameter is whole
        self.other: Any = None  # the gradient in the other form: of the part while it is whole, else of the whole
        self.hooked = False
        made(ShardedParameter)
        local = unset(param, spec) if param._meta else spec.cut(param._array)
        param._spec = spec
        self._become(ShardedParameter, local)

    @property
    def whole(self) -> bool:
        """Whether the parameter is whole now."""
        return self.shard is not None

    def _become(self, cls: Any, array: Array) -> None:
        p = self.param
        p.__class__ = Parameter  # a plain tensor's `.data` is set
        _set_data(p, wrap(array))
        p.__class__ = cls
        p._grad, self.other = self.other, p._grad

    def gathered(self, array: Array) -> None:
        """The whole has arrived.  array: (spec.shape)"""
        self.shard = self.param._held
        self.root = root_of(array)
        whole[id(self.root)] = self
        self._become(Parameter, array)

    def reshard(self) -> None:
        """Keep the part alone."""
        if self.whole:
            whole.pop(id(self.root), None)
            shard, self.shard, self.root = self.shard, None, None
            self._become(ShardedParameter, shard)

    def keep(self) -> None:
        """Take this process's part of what the whole has become."""
        if self.whole:
            settle(self.shard)
            self.shard[...] = self.spec.cut(self.param._array)

    def add(self, array: Any) -> None:
        """Add to the gradient of the part.  array: of its shape, which becomes the gradient where there was none"""
        own = self.other if self.whole else self.param._grad
        if own is not None:
            np.add(own._held, array, out=own._held)
            own._bump_version()
            return
        grad = spread(wrap(array), self.spec)
        if self.whole:
            self.other = grad
        else:
            self.param._grad = grad

    def sent(self) -> Array:
        """The part as it is gathered: C-contiguous.  (elements of the part)"""
        held = np.ascontiguousarray(self.param._held).reshape(-1)
        return held if self.low is None else held.astype(self.low)

    def rows(self, rank: int) -> slice:
        """Where in the whole, as one dimension, the part of a process lies."""
        begin = sum(self.counts[:rank])
        return slice(begin, begin + self.counts[rank])


def unset(param: Tensor, spec: Spec) -> Array:
    """The part of a parameter on the device meta, which becomes an ordinary one: full of NaN, for it has no values yet."""
    dtype = param._held.dtype
    _set_class(param, Parameter)  # past its own answer to what its class is
    param._held, param._storage = np.empty(0, dtype), None
    return np.full(spec.local_shape(), 0 if dtype.kind in "biu" else np.nan, dtype)


class Coming:
    """Parameters on their way to be whole."""

    def __init__(self, chosen: Sequence[Part], group: ProcessGroup) -> None:
        self.group, self.works = group, list[Work]()
        self.arrays: list[tuple[Part, Any]] = []
        self.small: list[Part] = []
        if group.size() == 1:
            self.arrays = [(p, p.sent().reshape(p.spec.shape)) for p in chosen]
            return
        for p in chosen:
            if p.small:
                self.small.append(p)
            else:
                self.alone(p)
        if self.small:
            self.together()

    def alone(self, part: Part) -> None:
        """Begin to gather a parameter where it is to lie."""
        given = part.sent()
        out = np.empty(part.spec.shape, given.dtype)
        self.begin(moved(out).reshape(-1), moved(given), part.counts, part.name, given)
        self.arrays.append((part, out))

    def together(self) -> None:
        """Begin to gather small parameters as bytes, one behind the other."""
        pieces = [p.sent() for p in self.small]
        self.sizes = [x.itemsize for x in pieces]
        given = np.concatenate([x.view(np.uint8) for x in pieces])
        counts = [
            sum(p.counts[r] * size for p, size in zip(self.small, self.sizes, strict=True))
            for r in range(self.group.size())
        ]
        self.flat = np.empty(sum(counts), np.uint8)
        self.begin(self.flat, given, counts, f"{self.small[0].name} and {len(self.small) - 1} more", given)

    def begin(self, out: Any, given: Any, counts: Sequence[int], name: str, keep: Any) -> None:
        """Begin a message to and from each."""
        compared("fully_shard: gather", self.group, (name, tuple(counts)))
        request = self.group.channel.all_gather_v(out, given, counts)
        self.works.append(Work(request, lambda: kept(keep), f"fully_shard: gather {name}", self.group.timeout))

    def arrive(self) -> list[tuple[Part, Any]]:
        """Wait; the parameters with what they are whole."""
        for work in self.works:
            work.wait()
        return self.arrays + (self.apart() if self.small else [])

    def apart(self) -> list[tuple[Part, Any]]:
        """The small parameters out of what came."""
        found = [
            np.empty(math.prod(p.spec.shape) * size, np.uint8) for p, size in zip(self.small, self.sizes, strict=True)
        ]
        at = 0
        for r in range(self.group.size()):
            for p, size, out in zip(self.small, self.sizes, found, strict=True):
                rows, n = p.rows(r), p.counts[r] * size
                out[rows.start * size : rows.stop * size] = self.flat[at : at + n]
                at += n
        dtypes = [p.param._held.dtype if p.low is None else p.low for p in self.small]
        return [(p, out.view(d).reshape(p.spec.shape)) for p, out, d in zip(self.small, found, dtypes, strict=True)]


def kept(given: object) -> None:
    """Keeps what is sent alive until it has gone."""


def gather(chosen: Sequence[Part], group: ProcessGroup) -> Coming:
    """Begin to gather parameters."""
    return Coming(chosen, group)


class Lane:
    """Gradients on their way to be added up over processes, each of which gets its part.

    grads: (part, gradient of the whole): one of them, or small ones; divisor: what sums are divided by; replicas: processes
    that have the same part, None where there are none; dtype: what is added up in, if another.
    """

    def __init__(self, grads: Sequence[tuple[Part, Any]], group: ProcessGroup, replicas: ProcessGroup | None,
                 divisor: float, dtype: Any = None) -> None:  # fmt: skip
        self.parts, self.replicas, self.divisor = [p for p, _ in grads], replicas, divisor
        arrays = [(p, added(g, dtype)) for p, g in grads]
        self.nbytes = sum(a.nbytes for _, a in arrays)
        counts = [sum(p.counts[r] for p in self.parts) for r in range(group.size())]
        if len(arrays) == 1:
            given = arrays[0][1]
        else:
            given = np.concatenate([a[p.rows(r)] for r in range(group.size()) for p, a in arrays])
        if group.size() == 1:
            self.out, self.work = given, Work()
            return
        self.out = np.empty(counts[group.rank()], given.dtype)
        name = self.parts[0].name
        compared("fully_shard: reduce", group, (name, len(self.parts), tuple(counts)))
        request = group.channel.reduce_scatter_v(self.out, given, counts, "SUM")
        self.work = Work(request, lambda: kept(given), f"fully_shard: reduce the gradient of {name}", group.timeout)

    def arrive(self) -> None:
        """Wait, and put the means where they belong."""
        self.work.wait()
        if self.replicas is not None:
            way = self.replicas.channel.all_reduce(self.out, "SUM")
            Work(way, None, "fully_shard: reduce over replicas", self.replicas.timeout).wait()
        if self.divisor != 1:
            np.divide(self.out, self.divisor, out=self.out)
        at = 0
        for p in self.parts:
            shape = p.spec.local_shape()
            n = math.prod(shape)
            piece = self.out if len(self.parts) == 1 else self.out[at : at + n]
            to = (p.shard if p.whole else p.param._held).dtype
            p.add(piece.astype(to, copy=len(self.parts) > 1).reshape(shape))
            at += n


def added(grad: Array, dtype: Any) -> Array:
    """A gradient as it is added up: C-contiguous, in a type that MPI adds.  (*) -> (n,)"""
    flat = np.ascontiguousarray(grad).reshape(-1)
    if dtype is not None and flat.dtype != dtype:
        flat = flat.astype(dtype)
    return flat if plain(flat.dtype) else flat.astype(np.float32)
