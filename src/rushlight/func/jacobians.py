"""jacrev, jacfwd and hessian: whole Jacobians, many rows or columns at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.basics import tree
from rushlight.basics.dtypes import is_complex
from rushlight.basics.state import Setting
from rushlight.basics.tree import Spec
from rushlight.func.forward import pushed
from rushlight.func.reverse import Pullback, chosen, replaced, vjp_over, zeros_like
from rushlight.func.vmap import vmap
from rushlight.levels.batch import BatchedArray
from rushlight.ops.shape.join import cat
from rushlight.ops.shape.reshape import permute_op
from rushlight.tensor import Tensor, wrap


def units(like: Tensor, start: int, stop: int) -> Tensor:
    """Unit vectors number `start` to `stop` of the shape of `like`, stacked."""
    n = like._array.size
    block = np.zeros((stop - start, n), like._array.dtype)
    block[np.arange(stop - start), np.arange(start, stop)] = 1
    return wrap(block.reshape(stop - start, *like._array.shape))


def jacrev(func: Callable[..., Any], argnums: object = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:  # fmt: skip
    """A function that computes the Jacobian of `func` by rows, in reverse mode.

    For an output of shape O and an argument of shape I it is of shape (*O, *I), in the structure of the outputs, with
    that of the arguments inside. argnums: which arguments, a number or a tuple. has_aux: `func` returns (outputs, aux),
    and the result is (Jacobian, aux). chunk_size: how many rows to compute at once; all by default. Fewer need less
    memory beside the Jacobian itself.

    >>> import rushlight as torch
    >>> torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: object, **kwargs: object) -> Any:
        places = chosen(args, argnums)
        check_real("jacrev", "inputs", tree.tree_leaves(tuple(args[n] for n in places)))

        def partial(*primals: object) -> Any:
            return func(*replaced(args, places, primals), **kwargs)

        output, pullback, aux = vjp_over(partial, tuple(args[n] for n in places), has_aux, func)
        outs, spec = tree.tree_flatten(output)
        check_real("jacrev", "outputs", outs)
        with Setting("inference", False):  # results are ordinary tensors, as those of vjp
            rows = [rows_of(pullback, outs, k, chunk_size) for k in range(len(outs))]
        pullback.transform.settle()
        shaped = [tree.tree_unflatten(row, pullback.inputs_spec) for row in rows]
        jacobian = tree.tree_unflatten([r if isinstance(argnums, tuple) else r[0] for r in shaped], spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def rows_of(pullback: Pullback, outs: list[Tensor], k: int, chunk_size: int | None) -> list[Tensor]:
    """The Jacobian of output `k` with respect to every input leaf."""
    out, inputs = outs[k], pullback.inputs
    n = out._array.size
    step = n if chunk_size is None else chunk_size
    single = pullback.only(k)
    if n == 0 or not single.outputs[0].requires_grad:
        return [wrap(np.zeros((*out._array.shape, *x._array.shape), x._array.dtype)) for x in inputs]
    gathered = Gather(n, len(inputs))
    for start in range(0, n, max(step, 1)):
        stop = min(start + step, n)
        vectors = units(out, start, stop)
        if chunk_size == 1:
            found = [g.unsqueeze(0) for g in tree.tree_leaves(single(vectors.squeeze(0)))]
        else:
            found = tree.tree_leaves(vmap(single)(vectors))
        gathered.add(start, stop, found)
    return [g.reshape((*out._array.shape, *x._array.shape)) for g, x in zip(gathered.done(), inputs, strict=True)]


def check_real(name: str, what: str, leaves: list[Any]) -> None:
    """Raise for what is no tensor, or complex: the Jacobian of a complex function is no one matrix."""
    for i, x in enumerate(leaves):
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if is_complex(x._array.dtype):
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened {what[:-1]} idx: {i}"
            )


class Gather:
    """Blocks of rows put together: in memory made at once, where no graph or level needs to see it."""

    def __init__(self, rows: int, count: int):
        self.rows, self.blocks = rows, [[] for _ in range(count)]  # type: ignore[var-annotated]
        self.whole: list[Any] = [None] * count

    def add(self, start: int, stop: int, found: list[Tensor]) -> None:
        """Rows `start` to `stop` of each column of blocks."""
        for i, block in enumerate(found):
            plain = not (block.requires_grad or block._tangents or type(block._array) is BatchedArray)
            if start == 0 and stop == self.rows:
                self.blocks[i].append(block)
            elif plain and (start == 0 or self.whole[i] is not None):
                if start == 0:
                    self.whole[i] = np.empty((self.rows, *block._array.shape[1:]), block._array.dtype)
                self.whole[i][start:stop] = block._array
            else:
                if self.whole[i] is not None:
                    self.blocks[i], self.whole[i] = [wrap(self.whole[i][:start])], None
                self.blocks[i].append(block)

    def done(self) -> list[Tensor]:
        """All rows of each."""
        return [wrap(w) if w is not None else b[0] if len(b) == 1 else cat(b)
                for w, b in zip(self.whole, self.blocks, strict=True)]  # fmt: skip


def jacfwd(
    func: Callable[..., Any], argnums: object = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` by columns, in forward mode.

    As `jacrev`; cheaper where there are fewer inputs than outputs. randomness: what random operators of `func` do for
    the columns, as in `vmap`: "error", "same" or "different".

    >>> import rushlight as torch
    >>> torch.func.jacfwd(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: object, **kwargs: object) -> Any:
        places = chosen(args, argnums)
        flat, spec = tree.tree_flatten(tuple(args[n] for n in places))
        check_real("jacfwd", "inputs", flat)

        def partial(*primals: object) -> Any:
            return func(*replaced(args, places, primals), **kwargs)

        by_output, shape, aux = columns_of(partial, flat, spec, has_aux, randomness)
        parts = [tree.tree_unflatten(row, spec) for row in by_output]
        jacobian = tree.tree_unflatten([p if isinstance(argnums, tuple) else p[0] for p in parts], shape)
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def columns_of(func: Callable[..., Any], flat: list[Tensor], spec: Spec, has_aux: bool,
               randomness: str) -> tuple[list[list[Tensor]], Any, Any]:  # fmt: skip
    """(Jacobians of every output leaf by every input leaf, structure of the outputs, auxiliary).

    The function runs once, for all columns together: what it draws or changes is then one and the same for all.
    """
    shape: list[Any] = []

    def push(vectors: list[Tensor]) -> tuple[Any, ...]:
        _, found, structure, aux = pushed(func, flat, vectors, spec, has_aux)
        shape[:] = [structure]
        return found, aux if has_aux else ()

    sizes = [x._array.size for x in flat]
    ends = list(itertools.accumulate(sizes))
    if not any(sizes):
        found, aux = push([zeros_like(x) for x in flat])
        empty = [[wrap(np.zeros((*t._array.shape, *x._array.shape), t._array.dtype)) for x in flat] for t in found]
        return empty, shape[0], aux
    blocks = [padded_units(x, end - n, ends[-1]) for x, n, end in zip(flat, sizes, ends, strict=True)]
    found, aux = vmap(push, randomness=randomness)(blocks)
    columns = [[columns_last(t[end - n : end], x) for x, n, end in zip(flat, sizes, ends, strict=True)] for t in found]
    return columns, shape[0], tree.tree_map(lambda a: a[0], aux)


def padded_units(like: Tensor, start: int, rows: int) -> Tensor:
    """The unit vectors of the shape of `like`, stacked from row `start` of `rows`; the other rows are zero."""
    n = like._array.size
    block = np.zeros((rows, n), like._array.dtype)
    block[np.arange(start, start + n), np.arange(n)] = 1
    return wrap(block.reshape(rows, *like._array.shape))


def columns_last(t: Tensor, x: Tensor) -> Tensor:
    """Columns stacked along the first dimension as a Jacobian: the output's dimensions, then those of input `x`."""
    d = t._array.ndim
    moved = permute_op(t, (*range(1, d), 0)) if d > 1 else t
    return moved.reshape((*t._array.shape[1:], *x._array.shape))


def columns(func: Callable[..., Any], inputs: tuple[Tensor, ...]) -> list[list[Tensor]]:
    """The Jacobian of each of the tensors that `func` returns in a tuple, with respect to each input."""
    _, spec = tree.tree_flatten(inputs)
    return columns_of(func, list(inputs), spec, False, "error")[0]


def hessian(func: Callable[..., Any], argnums: object = 0) -> Callable[..., Any]:
    """A function that computes the Hessian of `func`: forward mode over reverse mode.

    For a scalar function of an argument of shape I it is of shape (*I, *I); several arguments nest, as in `jacrev`.

    >>> import rushlight as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
