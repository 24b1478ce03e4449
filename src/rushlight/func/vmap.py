"""vmap: a function of one sample as a function of many, run on all at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import broadcast_to, tree_flatten, tree_unflatten
from rushlight.dispatch.dims import wrap_dim
from rushlight.dispatch.randomness import Repetition
from rushlight.levels.batch import BatchedArray
from rushlight.ops.shape.join import cat_op
from rushlight.ops.shape.reshape import broadcast, slice_op
from rushlight.tensor import Tensor
from rushlight.transforms.batched import BatchedLevel
from rushlight.transforms.batching.given import in_front

BUDGET = 1 << 28  # bytes that chunk_size="auto" lets the inputs of a chunk and what is computed from them take
FACTOR = 16  # how many times the bytes of the inputs that is estimated to be


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: Any = None) -> Callable[..., Any]:  # fmt: skip
    """`func`, written for one sample, as a function of many, which runs each operator once for all.

    in_dims: for each argument the dimension that runs over the samples, None for one that all share: an int for all, or a
    tree of the arguments' structure. out_dims: the same of the results, where the samples are put. randomness: what random
    operators inside do: "error", "same" (every sample gets the same numbers) or "different". chunk_size: how many samples
    run at a time, None for all; "auto" chooses it so that a chunk's inputs, times 16 for what is computed from them, take
    at most 256 MiB.

    Raises ValueError where dimensions do not fit the arguments, and RuntimeError for what one sample's values would have
    to decide (control flow, `.item()`, shapes).

    >>> import rushlight as torch
    >>> torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size == "auto" or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call = Call(func, in_dims, out_dims, randomness)
        dims, size = call.inputs(args)
        chunk = automatic(call.leaves, dims, size) if chunk_size == "auto" else chunk_size
        if chunk is None:
            return call.run(call.leaves, dims, size, kwargs)
        return call.in_chunks(dims, size, chunk, kwargs)

    return wrapped


def name_of(func: Callable[..., Any]) -> str:
    """What messages call a function."""
    return getattr(func, "__name__", None) or repr(func)


def automatic(leaves: list[Any], dims: list[Any], size: int) -> int:
    """How many samples to run at a time within the byte budget."""
    each = sum(x._array.nbytes // max(size, 1) for x, d in zip(leaves, dims, strict=True) if d is not None)
    return max(1, int(BUDGET // max(each * FACTOR, 1)))


class Call:
    """One call of a vmapped function: its arguments taken apart, its results put together."""

    def __init__(self, func: Any, in_dims: Any, out_dims: Any, randomness: str):
        self.func, self.in_dims, self.out_dims, self.randomness = func, in_dims, out_dims, randomness

    @property
    def name(self) -> str:
        """What messages call the function: asked for by these alone, as one without a name prints all of a module."""
        return name_of(self.func)

    @property
    def where(self) -> str:
        """What messages call the call."""
        return f"vmap({self.name}, in_dims={self.in_dims}, ...)(<inputs>)"

    def inputs(self, args: tuple[Any, ...]) -> tuple[list[Any], int]:
        """The dimension of each leaf of the arguments, and the number of samples."""
        if not isinstance(self.in_dims, (int, tuple)):
            raise ValueError(f"{self.where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
                             f"of inputs, got: {type(self.in_dims)}.")  # fmt: skip
        if not args:
            raise ValueError(f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying "
                             "to vmap over a function with no inputs. The latter is unsupported.")  # fmt: skip
        self.leaves, self.spec = tree_flatten(args)
        dims = broadcast_to(self.in_dims, self.spec)
        if dims is None:
            raise ValueError(f"{self.where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                             f"{tree_flatten(self.in_dims)[1]!r} but inputs has structure {self.spec!r}.")  # fmt: skip
        dims = [self.dimension(x, d) for x, d in zip(self.leaves, dims, strict=True)]
        sizes = [x._array.shape[d] for x, d in zip(self.leaves, dims, strict=True) if d is not None]
        if not sizes:
            raise ValueError(f"{self.where}: at least one in_dim must be an int: None means that all samples share the argument, "
                             "and here they share all.")  # fmt: skip
        if any(n != sizes[0] for n in sizes):
            raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                             f"{sizes} for the mapped dimension")  # fmt: skip
        return dims, sizes[0]

    def dimension(self, x: object, d: object) -> Any:
        """The dimension of one leaf, counted from the front."""
        if d is None:
            return None
        if not isinstance(d, int):
            raise ValueError(
                f"{self.where}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(x, Tensor):
            raise ValueError(f"{self.where}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over "
                             "non-Tensor arguments, please use None as the respective in_dim")  # fmt: skip
        n = x._array.ndim
        if not -n <= d < n:
            raise ValueError(f"{self.where}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {n} so "
                             f"expected in_dim to satisfy -{n} <= in_dim < {n}.")  # fmt: skip
        return d % n

    def run(self, leaves: list[Any], dims: list[Any], size: int, kwargs: Any) -> Any:
        """Run the function on all samples at once."""
        found, spec, out_dims = self.results(leaves, dims, size, kwargs)
        return tree_unflatten([t if d is None else placed(t, d) for t, d in zip(found, out_dims, strict=True)], spec)

    def results(self, leaves: list[Any], dims: list[Any], size: int, kwargs: Any) -> tuple[list[Any], Any, list[Any]]:
        """The results with the samples in front, their structure, and where each wants the samples."""
        level = BatchedLevel(size, self.randomness)
        given = [x if d is None else level.batched(x, d) for x, d in zip(leaves, dims, strict=True)]
        with Setting("levels", (*modes.levels, level)):
            try:
                outputs = self.func(*tree_unflatten(given, self.spec), **kwargs)
            finally:
                level.end()
        found, spec = tree_flatten(outputs)
        out_dims = self.output_dims(outputs, spec)
        return [self.unwrapped(level, t, d) for t, d in zip(found, out_dims, strict=True)], spec, out_dims

    def output_dims(self, outputs: object, spec: Any) -> list[Any]:
        """Where each result wants the samples."""
        for d in tree_flatten(self.out_dims)[0]:
            if d is not None and not isinstance(d, int):
                raise ValueError(
                    f"vmap({self.name}, ..., out_dims={self.out_dims}): `out_dims` must be an int, None or a python "
                    "collection of ints representing "
                    "where in the outputs the vmapped dimension should appear."
                )
        lone = isinstance(outputs, Tensor) and isinstance(self.out_dims, tuple) and len(self.out_dims) == 1
        dims = broadcast_to(self.out_dims[0] if lone else self.out_dims, spec)
        if dims is None:
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not compatible with the "
                "structure of `outputs`. out_dims has "
                f"structure {tree_flatten(self.out_dims)[1]!r} but outputs has structure {spec!r}."
            )
        return dims

    def unwrapped(self, level: BatchedLevel, t: object, d: object) -> Any:
        """One result: as it is where its `out_dim` is None, else with the samples in front."""
        if not isinstance(t, Tensor):
            if d is None:
                return t
            raise ValueError(f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type {type(t)}. Did you "
                             "mean to set out_dims= to None for output?")  # fmt: skip
        tensor, dim = level.whole(t)
        if d is None:
            if dim is not None:
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when out_dim is None"
                )
            return tensor
        return broadcast(tensor, (level.size, *tensor.shape)) if dim is None else in_front(tensor, dim)

    def in_chunks(self, dims: list[Any], size: int, chunk: int, kwargs: Any) -> Any:
        """Run the function on some samples at a time and join the results."""
        parts = []
        repetition = Repetition() if self.randomness == "same" else None
        for start in range(0, max(size, 1), chunk):  # one of no samples where there are none
            end = min(start + chunk, size)
            leaves = self.leaves if end - start == size else self.sliced(dims, start, end)
            with repetition.run() if repetition is not None else nullcontext():
                parts.append(self.results(leaves, dims, end - start, kwargs))
        _, spec, out_dims = parts[0]
        joined = []
        for column, d in zip(zip(*(found for found, _, _ in parts), strict=True), out_dims, strict=True):
            joined.append(column[0] if d is None else placed(self.together(column), d))
        return tree_unflatten(joined, spec)

    def sliced(self, dims: list[Any], start: int, end: int) -> list[Any]:
        """The leaves of the arguments, with these samples alone."""
        return [x if d is None else slice_op(x, (*[slice(None)] * d, slice(start, end), ...))
                for x, d in zip(self.leaves, dims, strict=True)]  # fmt: skip

    def together(self, parts: tuple[Any, ...]) -> Any:
        """The results of all chunks as one tensor, which shares no memory with the arguments however many chunks there are."""
        if len(parts) > 1 or any(memory_is_shared(parts[0], x) for x in self.leaves):
            return cat_op(tuple(parts), 0)
        return parts[0]


def memory_is_shared(a: object, b: object) -> bool:
    """Whether the memory of two tensors may overlap, inside of other vmaps too."""
    return isinstance(b, Tensor) and np.may_share_memory(memory_of(a), memory_of(b))


def memory_of(x: Any) -> Any:
    """The array that a tensor lies in; of a sample, that of all samples."""
    while type(x._held) is BatchedArray:
        x = x._held.tensor
    return x._held


def placed(t: Any, d: int) -> Any:
    """A result with the samples moved from the front to dimension `d`."""
    n = t._array.ndim
    d = wrap_dim(d, n)
    return t if d == 0 else t.permute(*range(1, d + 1), 0, *range(d + 1, n))
