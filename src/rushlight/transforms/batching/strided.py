"""Memory seen with other strides, and copied into an order."""

from __future__ import annotations

from rushlight.dispatch import families
from rushlight.dispatch.formats import channels_last_order, contiguous_format, preserve_format
from rushlight.dispatch.options import strides_of
from rushlight.ops.shape.reshape import permute_op
from rushlight.ops.shape.strided import as_strided
from rushlight.tensor import Tensor
from rushlight.transforms.batching.given import Given, Results


@families.strided.batched
def strided(c: Given) -> Tensor:
    """A view by strides of each sample, where it lies in the memory of all."""
    x = c.values[0]
    if c["offset"] < 0 or c["offset"] + reach(c["size"], c["stride"]) > reach(c.shapes[0], strides_of(x._array)[1:]):
        raise RuntimeError(
            f"vmap: result = tensor.as_strided({list(c['size'])}, {list(c['stride'])}, offset {c['offset']} from its first "
            "element) can access memory outside of `tensor`, where other samples may lie. This is not supported: copy what "
            "is needed from the tensor that is vmapped over."
        )
    return as_strided(
        x, (c.size, *c["size"]), (strides_of(x._array)[0], *c["stride"]), x.storage_offset() + c["offset"]
    )


def reach(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How far from the first element the last one lies."""
    return sum((n - 1) * s for n, s in zip(size, stride, strict=True) if n)


@families.by_position.batched
def by_position(c: Given) -> Results:
    """Copies by positions in memory: samples lie far enough apart."""
    shape = tuple(c["shape"]) if c.has("shape") else c.shapes[0]
    apart = abs(c["offset"]) + max(reach(c["size"], c["stride"]), reach(shape, c["own"])) + 1
    changes = {"size": (c.size, *c["size"]), "stride": (apart, *c["stride"]), "own": (apart, *c["own"])}
    if c.has("shape"):
        changes["shape"] = (c.size, *shape)
    return c.run(c.every(), c.changed(**changes))


@families.complex_view.batched
def complex_view(c: Given) -> Results:
    """Pairs in the last dimension, which must be neighbours in memory."""
    return c.run(c.values)


@families.cloned.batched
def cloned(c: Given) -> Results:
    """A copy of each sample in a memory format."""
    format = c["format"]
    if format is None or format is preserve_format or format is contiguous_format:
        return c.run(c.values)
    order = (0, *(d + 1 for d in channels_last_order(len(c.shapes[0]))))
    copied = c.run([permute_op(c.values[0], order)], (contiguous_format,))
    return permute_op(copied, tuple(sorted(range(len(order)), key=order.__getitem__)))
