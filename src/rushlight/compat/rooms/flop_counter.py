"""Count the multiplications and additions of products, convolutions and attention, by module and operator.

As in PyTorch's counter: an addition and a multiplication are two, and everything else is nothing, unless a formula is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any

from rushlight.basics import caller
from rushlight.basics.events import NODE, OPERATOR, Observation
from rushlight.basics.state import modes
from rushlight.basics.tree import tree_leaves, tree_map
from rushlight.compat.rooms.flops import calls as flop_calls
from rushlight.compat.rooms.flops import formulas as flop_formulas
from rushlight.compat.rooms.flops.formulas import (  # noqa: F401  the formulas by their names
    addmm_flop,
    baddbmm_flop,
    bmm_flop,
    conv_backward_flop,
    conv_flop,
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
from rushlight.dispatch import randomness
from rushlight.dispatch.declare import Op
from rushlight.library.namespaces import aten
from rushlight.library.operators import Declared, DeclaredPacket
from rushlight.nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from rushlight.ops.python.aten import Packet, names
from rushlight.tensor import Tensor

__all__ = ["FlopCounterMode", "register_flop_formula"]

PACKETS = Packet, DeclaredPacket
flop_registry: dict[Any, Callable[..., Any]] = {}


def shape_wrapper(f: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of shapes as one of tensors."""

    @wraps(f)
    def of_tensors(*args: object, out_val: object = None, **kwargs: object) -> Any:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets: object, get_raw: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives operators a formula: how many operations a call takes.

    targets: an operator as `torch.ops` has it, or several in a list.  The formula gets the shapes of the arguments and
    `out_shape`, that of the result; with `get_raw`, the arguments as they are and `out_val`.  Raises ValueError for what is no
    operator, RuntimeError for one that has a formula.

    >>> import rushlight as torch
    >>> from rushlight.compat.rooms.flop_counter import FlopCounterMode, register_flop_formula
    >>> counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.exp: lambda x, out_shape: 10 * x.numel()})
    >>> with counter:
    ...     _ = torch.ones(3, 4).exp()
    >>> counter.get_total_flops()
    120
    """

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        counts = formula if get_raw else shape_wrapper(formula)
        for target in tree_leaves(targets):
            if not isinstance(target, PACKETS):
                raise ValueError(
                    f"register_flop_formula(targets): each is an operator, as torch.ops.mylib.foo is, got {target} of {type(target)}"
                )
            check_runs(target)
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}: it has a formula already")
            flop_registry[target] = counts
        return counts

    return register


def check_runs(target: object) -> None:
    """Raise NotImplementedError for a gradient of the package's own: it is no operator here, so nothing would be counted."""
    name = str(target)
    if name.startswith("aten.") and "_backward" in name and target not in flop_registry:
        raise NotImplementedError(
            f"a formula for {name}: gradients are computed by formulas here, of which the counter knows those of products, "
            "convolutions and attention alone; give the operator of forward one, or count in a custom operator"
        )


def _own() -> None:
    """The formulas of the package's own operators."""
    for name, formula in (
        ("mm", mm_flop),
        ("addmm", addmm_flop),
        ("bmm", bmm_flop),
        ("baddbmm", baddbmm_flop),
        ("convolution", conv_flop),
        ("convolution_backward", conv_backward_flop),
        ("_scaled_dot_product_flash_attention", sdpa_flop),
        ("_scaled_dot_product_flash_attention_backward", sdpa_backward_flop),
    ):
        flop_registry[getattr(aten, name)] = shape_wrapper(formula)


_own()


class FlopCounterMode:
    """Within the block, count the floating-point operations of this thread, forward and backward.

    mods: taken for PyTorch's sake; modules are known by their calls.  depth: how many levels of modules the table shows;
    display: print the table at the end of the block.  custom_mapping: formulas by operator, as `register_flop_formula` takes
    them, which count before others.  An operator in place, and one inside of a custom operator, is not counted.

    >>> import rushlight as torch
    >>> from rushlight.compat.rooms.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(3, 4) @ torch.ones(4, 5)
    >>> counter.get_total_flops()
    120
    """

    passive = False  # as an observer: it is told before and after

    def __init__(self, mods: object = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:  # fmt: skip
        if mods is not None:
            caller.warn("FlopCounterMode: mods is not needed, modules are known by their calls")
        for target in custom_mapping or ():
            check_runs(target)
        self.flop_registry = {
            **flop_registry,
            **{k: v if getattr(v, "_get_raw", False) else shape_wrapper(v) for k, v in (custom_mapping or {}).items()},
        }
        self._within = 0  # of custom operators, and of nodes that were counted, how many run
        self._open: list[bool] = []  # of each operator that runs: whether one inside of it was counted
        self._others = {k: v for k, v in self.flop_registry.items() if not isinstance(k, DeclaredPacket)}
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._inside: list[str] = []
        # Of a node: itself, its modules, and the call that made it.
        self._made_in: dict[int, tuple[Any, tuple[str, ...], flop_calls.Call]] = {}
        self._names: dict[int, str] = {}

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By the name of a module, and "Global" for all: by operator, how many."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Modules and operators with their operations, as text; of all of them where no module has all."""
        depth = self.depth if depth is None else depth
        names = sorted(n for n in self.flop_counts if n != "Global" and (depth is None or n.count(".") < depth))
        rows = [row for name in names for row in self._rows(name, name.count("."))]
        total = self.get_total_flops()
        if "Global" in self.flop_counts and all(sum(self.flop_counts[n].values()) < total for n in names):
            rows = [*self._rows("Global", 0), *((f" {name}", n, part) for name, n, part in rows)]
        return flop_formulas.table(rows or [("Global", "0", "0%")])

    def _rows(self, name: str, level: int) -> list[tuple[str, str, str]]:
        """A module, and each of its operators: how many, and the part of the whole."""
        total, counts = self.get_total_flops(), self.flop_counts[name]
        suffix, indent = get_suffix_str(total), " " * level
        return [(indent + shown, convert_num_with_suffix(n, suffix), convert_to_percent_str(n, total))
                for shown, n in ((name, sum(counts.values())), *((f" - {op}", n) for op, n in counts.items()))]  # fmt: skip

    # As a context ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.flop_counts["Global"]
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

    def _enter_module(self, module: Module, args: tuple[Tensor, ...]) -> None:
        name = self._names.get(id(module)) if self._inside else None
        if name is None:
            name = type(module).__name__
            found = module.named_modules(remove_duplicate=False)
            self._names = {id(m): f"{name}.{path}" if path else name for path, m in found} | self._names
        self._inside.append(name)

    def _leave_module(self, module: Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if self._inside:
            self._inside.pop()

    # As an observer ----------------------------------------------------------------------------------------------------

    def begin(self, kind: int, what: Any, inputs: Any, statics: tuple[Any, ...]) -> bool:
        """What begins: a node of an operator that was counted, unless its formula runs on tensors, as for a graph and inside of vmap:
        then its operators are seen.

        Whether what runs inside of it is counted with it.
        """
        if kind == OPERATOR:
            self._open.append(False)
        of_samples = modes.levels and randomness.innermost() is not None
        if kind != NODE or self._within or modes.grad or of_samples or id(what) not in self._made_in:
            return False
        node, modules, call = self._made_in[id(what)]
        op = node.plan.op
        needs = [edge is not None for edge in node.edges[: len(op.tensors)]]
        for name, args, out in flop_calls.backward(op, call, needs):
            self._count(modules, getattr(aten, name), args, {}, out)
        self._within += 1  # formulas run on tensors where another mode is active
        return True

    def end(self, kind: int, what: Any, inputs: Any, statics: tuple[Any, ...], token: object, result: Any) -> None:
        """What ended: an operator, which is counted unless it was one of others that were, as inside of vmap and of modes."""
        self._within -= token is True
        if kind != OPERATOR:
            return
        counted = self._open.pop() if self._open else False
        if not self._within and result is not None:
            counted = self._ended(what, inputs, statics, result, counted)
        if counted and self._open:
            self._open[-1] = True

    def _ended(self, what: Any, inputs: Any, statics: tuple[Any, ...], result: Any, counted: bool) -> bool:
        """Count an operator, unless what is inside of it was counted; whether either was."""
        modules = tuple(dict.fromkeys(self._inside))
        if what.counted is None:
            asked = [] if counted else self._asked(what)
            for target in asked:
                self._count(modules, target, (*inputs, *statics), {}, result)
            return counted or bool(asked)
        call = flop_calls.forward(what, inputs, statics, result)
        if not counted:
            self._count(modules, getattr(aten, call[0]), call[1], {}, call[2])
        made = result[0] if isinstance(result, (tuple, list)) else result
        node = getattr(made, "_edge", None)
        node = getattr(node, "node", node)
        if getattr(getattr(node, "plan", None), "op", None) is what:
            self._made_in.setdefault(id(node), (node, modules, call))
        return True

    def around(self, op: Declared, values: list[Any], by_name: dict[str, Any], run: Callable[[], Any]) -> Any:
        """A custom operator: counted as a whole where it has a formula, else by its parts where it is nothing but them."""
        target = op.overloadpacket
        if target not in self.flop_registry and set(op.kernels) == {"CompositeImplicitAutograd"}:
            return run()
        self._within += 1
        try:
            result = run()
        finally:
            self._within -= 1
        if target in self.flop_registry and not self._within:
            self._count(tuple(dict.fromkeys(self._inside)), target, tuple(values), by_name, result)
        return result

    def _asked(self, op: Op) -> list[Any]:
        """Under which names this operator has a formula that somebody gave."""
        return [k for k in self._others if k.__name__ == op.name or k.__name__ in names(op)]

    def _count(
        self, modules: tuple[str, ...], target: object, args: tuple[Any, ...], by_name: dict[str, Any], result: object
    ) -> None:
        count = self.flop_registry[target](*args, **by_name, out_val=result)
        for module in ("Global", *modules):
            self.flop_counts[module][target] += count
