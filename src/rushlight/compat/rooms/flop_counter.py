"""Count the multiplications and additions of products, convolutions and attention, by module and operator.

As in PyTorch's counter: an addition and a multiplication are two, and everything else is nothing.
"""

from __future__ import annotations

from collections import defaultdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rushlight.basics.events import NODE, OPERATOR, Observation
from rushlight.compat.rooms.flop_formulas import (  # noqa: F401  the formulas by their names
    addmm_flop,
    baddbmm_flop,
    bmm_flop,
    conv_flop_count,
    convert_num_with_suffix,
    convert_to_percent_str,
    get_shape,
    get_suffix_str,
    mm_flop,
    normalize_tuple,
    sdpa_backward_flop,
    sdpa_backward_flop_count,
    sdpa_flop,
    sdpa_flop_count,
    suffixes,
)
from rushlight.library.namespaces import aten
from rushlight.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

if TYPE_CHECKING:
    from rushlight.tensor import Tensor

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """Within the block, count the floating-point operations of this thread, forward and backward.

    mods: taken for PyTorch's sake; modules are known by their calls.  depth: how many levels of modules the table shows;
    display: print the table at the end of the block.  custom_mapping: refused, with NotImplementedError.

    >>> import rushlight as torch
    >>> from rushlight.compat.rooms.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(3, 4) @ torch.ones(4, 5)
    >>> counter.get_total_flops()
    120
    """

    passive = False  # as an observer: it is told before and after

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:  # fmt: skip
        if custom_mapping:
            raise NotImplementedError(
                "FlopCounterMode: expected custom_mapping=None: operators are counted by their shapes"
            )
        self.depth, self.display = depth, display
        self._counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._inside: list[str] = []
        self._made_in: dict[
            int, tuple[Any, tuple[str, ...], int]
        ] = {}  # of a node: itself, its modules, forward's count
        self._names: dict[int, str] = {}

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self._counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By the name of a module, and "Global" for all: by operator, how many."""
        return {
            module: {getattr(aten, name): n for name, n in counts.items()} for module, counts in self._counts.items()
        }

    @property
    def flop_counts(self) -> dict[str, dict[Any, int]]:
        """What `get_flop_counts` returns."""
        return self.get_flop_counts()

    def get_table(self, depth: int | None = None) -> str:
        """Modules and operators with their operations, as text."""
        depth = self.depth if depth is None else depth
        shown = sorted(
            (name for name in self._counts if name.count(".") < depth), key=lambda name: (name != "Global", name)
        )
        rows = [("Module", "FLOP", "% Total")]
        total = self.get_total_flops() or 1
        for name in shown:
            counts = self._counts[name]
            level = 0 if name == "Global" else name.count(".") + 1
            for label, value in ((name, sum(counts.values())), *((f" - aten.{op}", n) for op, n in counts.items())):
                rows.append((" " * level + label, f"{value:,}", f"{100 * value / total:.2f}%"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)

    # As a context ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> FlopCounterMode:
        self._counts.clear()
        self._counts["Global"]
        self._hooks = [register_module_forward_pre_hook(self._enter_module),
                       register_module_forward_hook(self._leave_module, always_call=True)]  # fmt: skip
        self._watch = Observation(self)
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, traceback)
        for hook in self._hooks:
            hook.remove()
        self._made_in.clear()
        self._inside.clear()
        if self.display:
            print(self.get_table())

    def _enter_module(self, module: Any, args: tuple[Tensor, ...]) -> None:
        name = self._names.get(id(module)) if self._inside else None
        if name is None:
            name = type(module).__name__
            self._names = {
                id(m): f"{name}.{path}" if path else name for path, m in module.named_modules()
            } | self._names
        self._inside.append(name)

    def _leave_module(self, module: Any, args: tuple[Tensor, ...], output: Tensor) -> None:
        if self._inside:
            self._inside.pop()

    # As an observer ----------------------------------------------------------------------------------------------------

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> None:
        """What begins: a node of an operator that was counted costs as much for each gradient."""
        if kind != NODE or id(what) not in self._made_in:
            return
        node, modules, count = self._made_in[id(what)]
        op = node.plan.op
        times = op.counted.times
        if times is None:
            times = sum(
                node.edges[op.tensors.index(name)] is not None for name in op.cost.requests if name in op.tensors
            )
        self._count(modules, op.counted.backward, int(times * count))

    def end(self, kind: int, what: Any, inputs: Any, statics: Any, token: Any, result: Any) -> None:
        """What ended: an operator."""
        if kind != OPERATOR or what.counted is None or result is None:
            return
        found, name = what.cost(inputs, statics), what.counted.forward
        if what.counted.alone and inputs[what.added] is None:
            name = what.counted.alone
        modules = tuple(dict.fromkeys(self._inside))
        self._count(modules, name, found)
        made = result[0] if isinstance(result, (tuple, list)) else result
        node = getattr(made, "_edge", None)
        node = getattr(node, "node", node)
        if node is not None:
            self._made_in[id(node)] = node, modules, found

    def _count(self, modules: tuple[str, ...], name: str, count: int) -> None:
        if not count:
            return
        for module in ("Global", *modules):
            self._counts[module][name] += count
