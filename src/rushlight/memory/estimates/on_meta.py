"""Operators on tensors of the device meta: results by the rules for shapes, or refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.state import modes
from rushlight.dispatch import call
from rushlight.dispatch.compute import compute
from rushlight.dispatch.meta import check_written, incompatible, note, nowhere, on_meta
from rushlight.dispatch.options import refuse
from rushlight.dispatch.shapes import Made, order_of
from rushlight.engine.node import Node, edge_of, next_seq
from rushlight.memory.estimates.dry import DryLevel
from rushlight.memory.estimates.standins import Tally
from rushlight.tensor import Tensor, wrap

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.basics.dtypes import dtype
    from rushlight.dispatch.declare import Op
    from rushlight.nn.parameter import Parameter

__all__ = ["MetaLevel"]


class _Uncounted(Tally):
    """A tally of arrays without memory: it counts nothing."""

    def add(self, array: Array, operator: str = "", category: int = 0) -> None:
        """Nothing is there."""

    def work(self, count: int, operator: str) -> None:
        """Nothing is computed."""


class MetaBackward(Node):
    """The node of what was made on the device meta: its gradients have the shapes of what it was made from."""

    __slots__ = ()

    def run(self, g: Any, wanted: int) -> Any:
        """Refused: raises NotImplementedError.  A backward on the device meta runs on tensors."""
        refuse("backward from a tensor on another device")

    def run_tensors(self, g: Tensor, wanted: int) -> list[Tensor | None]:
        """A tensor without memory for each input that wants one; with create_graph they depend on what the result did."""
        return [
            self._gradient(edge, g) if edge is not None and wanted >> i & 1 else None
            for i, edge in enumerate(self.edges)
        ]

    def _gradient(self, edge: Any, g: Tensor) -> Tensor:
        like = edge._held if isinstance(edge, Tensor) else edge
        found = on_meta(nowhere(like.shape, like.dtype))
        if modes.grad:
            record(found, (edge_of(g) if isinstance(g, Tensor) and g.requires_grad else None, *self.edges))
        return found


def record(result: Tensor, edges: tuple[Any, ...]) -> None:
    """Give a result a node with these edges."""
    node = MetaBackward()
    node.edges, node.extra, node.seq = edges, None, next_seq()
    node.shape, node.dtype = result._held.shape, result._held.dtype
    result._edge = node


class MetaLevel(DryLevel):
    """What operators hand over to where an input is on the device meta."""

    def __init__(self) -> None:
        super().__init__(_Uncounted())

    def owns(self, flat: tuple[Any, ...]) -> bool:
        """Whether any input is on the device meta."""
        return any(isinstance(x, Tensor) and x._meta for x in flat)

    def note(self, tensor: Parameter) -> None:
        """Another tensor without memory was made."""
        note(tensor)

    def cast(self, tensor: Tensor, dtype: dtype) -> Tensor:
        """A tensor of the same shape in another dtype."""
        made = on_meta(nowhere(tensor._held.shape, dtype.numpy, order_of(tensor._held)))
        return self.linked(made, (tensor,)) if dtype.is_floating_point or dtype.is_complex else made

    def results(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arrays without memory for what an operator makes."""
        made = self.planned(op, arrays, statics)
        if op.view and made is None:
            return compute(op, arrays, statics)
        if made is None:
            refuse(f"{op.name} (whose result's shape has no rule)")
        found = tuple(nowhere(*m) if isinstance(m, Made) else m for m in made)
        return (found, ()) if op.out_count is None else (found[: op.out_count], found[op.out_count :])

    def planned(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> Any:
        """What an operator makes: None where no rule says it."""
        if op.made is not None:
            return op.made(self.promoted(op, arrays), statics)
        return self.elementwise(op, arrays, statics) if op.elementwise else None

    def promoted(self, op: Op, arrays: list[Any]) -> list[Any]:
        """Operands in the dtype that an operator computes in."""
        if op.promote is None:
            return arrays
        target = dtypes.result_dtype([x for x in arrays if x is not None])
        if op.promote == "float" and target.category < dtypes.FLOAT:
            target = dtypes.get_default_dtype()
        kind = target.numpy
        return [
            nowhere(x.shape, kind, order_of(x)) if isinstance(x, np.ndarray) and x.dtype != kind else x for x in arrays
        ]

    def elementwise(self, op: Op, arrays: list[Any], statics: tuple[Any, ...]) -> list[Made] | None:
        """As on stand-ins, but shapes that do not fit are refused here, and what is not kept for a gradient is left out."""
        shapes = [x.shape for x in arrays if hasattr(x, "shape")]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise RuntimeError(
                f"{op.name}: the shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast"
            ) from None
        found = super().elementwise(op, arrays, statics)
        if found is None:
            kinds = [kind for kind in self.dtypes_of(op, arrays, statics)[: op.out_count] if kind is not None]
            found = [Made(np.broadcast_shapes(*shapes), kind) for kind in kinds]
        return found

    def apply(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run `op` by shapes."""
        if not op.name.startswith("index") and any(
            isinstance(x, Tensor) and not x._meta and x._held.ndim for x in flat
        ):
            raise RuntimeError(
                f"{op.name}: Expected all tensors to be on the same device, but found at least two devices, meta and cpu!"
            )
        plain = tuple(wrap(x._held) if isinstance(x, Tensor) else x for x in flat)
        outs, _ = self.results(op, call.arrays_of(op, plain)[0], statics)
        results = tuple(on_meta(x) for x in outs)
        if op.view and not modes.inference:
            call.track_views(op, flat[0], results, statics)
        if modes.grad and op.formulas:
            for result in results:
                self.linked(result, flat)
        return results[0] if op.out_count == 1 else results

    def linked(self, result: Tensor, flat: tuple[Any, ...]) -> Tensor:
        """Let a result say that it depends on those inputs that require grad."""
        edges = tuple(edge_of(x) if isinstance(x, Tensor) and x.requires_grad else None for x in flat)
        if modes.grad and any(edge is not None for edge in edges) and result._held.dtype.kind not in "biu":
            record(result, edges)
        return result

    def root(self, out: Tensor) -> Any:
        """The gradient to start from, of ones, where none is given."""
        return on_meta(nowhere(out._held.shape, out._held.dtype))

    def apply_inplace(self, op: Op, flat: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """Run the in-place form of `op`: there is nothing to write, but what does not fit is refused."""
        target = flat[0]
        if not target._meta:
            incompatible() if op.casts else refuse(f"{op.name}_ into a tensor on the CPU")
        if op.elementwise or op.casts:  # what casts copies
            check_written(f"{op.name}_" if op.elementwise else "copy_", target, flat[1:])
        target._bump_version()
        if op.formulas and any(isinstance(x, Tensor) and x.requires_grad for x in flat[1:]):
            self.linked(target, flat)
            if target._view is not None:
                self.linked(target._view.base, (target._view.base, *flat))
        return target
