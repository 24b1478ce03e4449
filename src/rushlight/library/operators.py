"""Operators that are not the package's own: what is known of each, and how one runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rushlight.autograd.function import Function
from rushlight.autograd.graph import increment_version
from rushlight.basics.devices import device
from rushlight.basics.events import observers
from rushlight.basics.state import Setting, modes
from rushlight.basics.tree import Spec, tree_flatten, tree_leaves, tree_unflatten
from rushlight.library.fallback import with_warnings
from rushlight.library.schema import FunctionSchema
from rushlight.ops.python.kinds import OpOverload, OpOverloadPacket
from rushlight.ops.shape.join import stack
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.autograd.function_vmap import VmapInfo
    from rushlight.basics.dtypes import dtype

__all__ = ["Declared", "DeclaredPacket", "OpOverload", "OpOverloadPacket"]

CPU = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")  # keys of what computes, the nearest first
AUTOGRAD = ("AutogradCPU", "Autograd")


class Call:
    """One call: the operator, the structure of its arguments and, once it ran, of its results."""

    def __init__(self, op: Declared, spec: Spec, by_name: dict[str, Any]):
        self.op, self.spec, self.by_name = op, spec, by_name
        self.results: Any = None

    def arguments(self, flat: Sequence[Any]) -> list[Any]:
        """The positional arguments."""
        return tree_unflatten(list(flat), self.spec)


class Generated(Function):
    """The function through which an operator with a formula of the user's, or without one, is recorded."""

    @staticmethod
    def forward(call: Call, *flat: Any) -> tuple[Tensor, ...]:
        result = call.op.compute(call.arguments(flat), call.by_name)
        values, call.results = tree_flatten(result)
        return tuple(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *flat = inputs
        ctx.call = call
        ctx.needs_input_grad = tuple(tree_unflatten(list(ctx.needs_input_grad[1:]), call.spec))
        op, results = call.op, tree_unflatten(list(output), call.results)
        if op.setup_context is None:
            return
        more = {"keyword_only_inputs": call.by_name} if call.by_name else {}
        op.setup_context(ctx, inputs=tuple(call.arguments(flat)), output=results, **more)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        call = ctx.call
        if call.op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {call.op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        nested = tree_unflatten(list(grads), call.results)
        found = call.op.backward(ctx, *(nested if isinstance(nested, tuple) else (nested,)))
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(ctx.needs_input_grad):
            raise RuntimeError(
                f"{call.op}: the registered backward returned {len(found)} gradients, and the operator has "
                f"{len(ctx.needs_input_grad)} arguments; return None where there is none"
            )
        return (None, *(g for gs, needs in zip(found, ctx.needs_input_grad, strict=True) for g in spread(gs, needs)))

    @staticmethod
    def vmap(info: VmapInfo, in_dims: Any, call: Call, *flat: Any) -> Any:
        dims = tree_unflatten(list(in_dims[1:]), call.spec)
        if call.op.batching is not None:
            result, out_dims = call.op.batching(info, tuple(dims), *call.arguments(flat), **call.by_name)
            values, call.results = tree_flatten(result)
            return tuple(values), tuple(spread_dims(out_dims, len(values)))
        return by_sample(info, in_dims[1:], call, flat)


def spread(grads: Any, needs: Any) -> list[Any]:
    """The gradients of one argument: of its tensors, where it is a list."""
    if not isinstance(needs, list | tuple):
        return [grads]
    return [None] * len(needs) if grads is None else list(grads)


def spread_dims(dims: int, count: int) -> list[Any]:
    """A batch dimension for each result."""
    return [dims] * count if dims is None or isinstance(dims, int) else list(tree_leaves(dims))


def by_sample(info: VmapInfo, in_dims: tuple[int | None, ...], call: Call, flat: Sequence[Any]) -> tuple[Any, ...]:
    """One call a sample, stacked."""
    rows = []
    for i in range(info.batch_size):
        sample = [x if dim is None else x.select(dim, i) for x, dim in zip(flat, in_dims, strict=True)]
        values, call.results = tree_flatten(call.op(*call.arguments(sample), **call.by_name))
        rows.append(values)
    stacked = tuple(stack(list(column)) for column in zip(*rows, strict=True))
    return stacked, (0,) * len(stacked)


class Declared(OpOverload):
    """An operator with a declaration: ``torch.ops.my.sin.default``.

    kernels: what computes it, by dispatch key; fake: what says the shapes of its results; backward and setup_context: its
    formula; batching: its rule for vmap; opaque: whether its kernels are not looked into for gradients.
    """

    def __init__(self, schema: FunctionSchema, opaque: bool = False):
        self._schema, self.opaque = schema, opaque
        self.namespace, _, self._opname = schema.name.partition("::")
        self._overloadname = schema.overload_name or "default"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.batching: Callable[..., Any] | None = None
        self.tags: tuple[Any, ...] = ()
        self.casts: dtype | None = None  # what autocast converts floating-point arguments to
        name = f"GeneratedBackwardFor_{self.namespace}_{self._opname}_{self._overloadname}"
        self.function: Any = type(name, (Generated,), {})
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__, self.__module__ = self.__name__, f"torch._ops.{self.namespace}"

    def add_kernel(self, key: str, fn: Callable[..., Any]) -> None:
        """Let `fn` compute it for a dispatch key; for "Meta" it says shapes as well."""
        self.kernels[key] = fn
        if key == "Meta":
            self.fake = fn

    @property
    def op(self) -> Any:
        """The operator with all of its overloads."""
        return found(self.namespace, self._opname)

    overloadpacket = op

    def name(self) -> str:
        """The name with its namespace."""
        return self._schema.name + (f".{self._schema.overload_name}" if self._schema.overload_name else "")

    def give_formula(self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> None:
        """Keep its formula.  Raises for an operator that changes its arguments or takes tensors by keyword alone."""
        if self._schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {self._schema}. Please "
                "create a functional operator and register an autograd formula for that."
            )
        if self._schema.has_tensors_by_keyword:
            raise NotImplementedError(
                "register_autograd with kwarg-only Tensor args: a backward has no place for their gradients. Let the "
                f"operator take its tensors by position as well: {self._schema}"
            )
        self.backward, self.setup_context = backward, setup_context

    def give_casts(self, device_type: str, to: dtype) -> None:
        """Keep what autocast converts its arguments to, on the CPU alone.  Raises RuntimeError for a kind of device that is not known."""
        if device(device_type).type == "cpu":
            self.casts = to

    def has_kernel_for_dispatch_key(self, key: object) -> bool:
        """Whether something was registered for the key."""
        return str(key).rpartition(".")[2] in self.kernels

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, by_name = self._schema.bind(args, kwargs)
        if self.casts is not None and modes.autocast is not None:
            casting = type(modes.autocast)(self.casts, False, {})
            with Setting("autocast", None):
                return self(*casting("lower", values), **casting("lower", by_name))
        for key in AUTOGRAD:
            if key in self.kernels:
                return self.kernels[key](*values, **by_name)
        tensors = [x for x in tree_leaves(values) if isinstance(x, Tensor)]
        tracked = modes.grad and any(x.requires_grad for x in tensors)
        if not (modes.levels or (tracked and (self.opaque or self.backward is not None))):
            result = self.compute(values, by_name)
            return with_warnings(self.name(), result, tensors) if tracked and self.is_bare() else result
        if self._schema.is_mutable:
            return self.written(values, by_name)
        flat, spec = tree_flatten(values)
        call = Call(self, spec, by_name)
        results = self.function.apply(call, *flat)
        return tree_unflatten(list(results), call.results)

    def is_bare(self) -> bool:
        """Whether its kernel is one for the CPU, of which nobody has said that gradients go through it."""
        return any(key in self.kernels for key in CPU[:2])

    def written(self, values: list[Any], by_name: dict[str, Any]) -> Any:
        """Run an operator that changes arguments: outside of the graph, as in PyTorch."""
        with Setting("grad", False):
            return self.compute(values, by_name)

    def compute(self, values: list[Any], by_name: dict[str, Any]) -> Any:
        """What the kernel gives."""
        if any(isinstance(x, Tensor) and x.is_meta for x in tree_leaves(values)):
            kernel: Callable[..., Any] | None = self.shaping()
        else:
            kernel = next((self.kernels[key] for key in CPU if key in self.kernels), None)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self.name()}' with arguments from the 'CPU' backend: nothing was registered for it. "
                "Register a function for the CPU with torch.library.register_kernel or Library.impl"
            )
        result = watched(self, values, by_name, partial(kernel, *values, **by_name))
        if self.opaque:
            self.check_apart(result, values)
        for argument, value in zip(self._schema.arguments, [*values, *by_name.values()], strict=True):
            if argument.written:
                changed(value)
        return result

    def shaping(self) -> Callable[..., Any]:
        """What gives the shapes of results for tensors on the device meta.

        Raises NotImplementedError, for what `custom_op` made RuntimeError, where nothing is registered that would.
        """
        for kernel in (self.kernels.get("Meta"), self.fake, *(self.kernels.get(key) for key in CPU[1:])):
            if kernel is not None:
                return kernel
        if self.opaque:
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({self.name()})>: it says the shapes of results for tensors on "
                f"the device meta, and `{self._opname}.register_fake` registers it"
            )
        raise NotImplementedError(
            f"{self.name()}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. "
            "Give it one with torch.library.register_fake"
        )

    def check_apart(self, result: object, values: list[Any]) -> None:
        """Raise RuntimeError where a result shares memory with an argument."""
        inputs = {id(x._storage) for x in tree_leaves(values) if isinstance(x, Tensor) and x._storage is not None}
        given = {id(x) for x in tree_leaves(values) if isinstance(x, Tensor)}
        for x in tree_leaves(result):
            if isinstance(x, Tensor) and (id(x) in given or (x._storage is not None and id(x._storage) in inputs)):
                raise RuntimeError(
                    f"{self.name()}: The output of this custom operator (1) must not also be an input to this custom operator "
                    "and (2) may not alias any inputs to this custom operator: return a clone"
                )


def watched(op: Declared, values: list[Any], by_name: dict[str, Any], run: Callable[[], Any]) -> Any:
    """The result of `run`, around which observers come that have a method for operators like this one."""
    for watcher in observers():
        if hasattr(watcher, "around"):
            run = partial(watcher.around, op, values, by_name, run)
    return run()


def changed(value: Tensor) -> None:
    """Count a change of the memory of tensors that a kernel wrote to."""
    for x in tree_leaves(value):
        if isinstance(x, Tensor) and not x.is_inference():
            increment_version(x)


def found(namespace: str, name: str) -> DeclaredPacket:
    """The operator of a name."""
    from rushlight.library import namespaces

    return namespaces.packets[namespace][name]


class DeclaredPacket(OpOverloadPacket):
    """The overloads of one name: ``torch.ops.my.sin``; called, the first that takes the arguments runs."""

    def __init__(self, namespace: str, name: str):
        super().__init__(name, namespace)
        self._overloads: dict[str, Declared] = {}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overloads)

    def __reduce__(self) -> tuple[Any, ...]:  # copies of operators are the operators
        return found, (self._namespace, self.__name__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which `copy` and `pickle` ask for of an object without a name yet
            raise AttributeError(name)
        try:
            return self.__dict__["_overloads"][name]
        except KeyError:
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name '{name}'"
            ) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        errors = []
        for overload in self._overloads.values():
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError as error:
                errors.append(str(error))
                continue
            return overload(*args, **kwargs)
        raise RuntimeError("\n".join(errors))


def __getattr__(name: str) -> Any:
    """What stands on this module."""
    if name == "HigherOrderOperator":
        return importlib.import_module("rushlight._C._higher_order").HigherOrderOperator
    if name == "DispatchKey":
        return importlib.import_module("rushlight._C").DispatchKey
    raise AttributeError(f"module 'torch._ops' has no attribute {name!r}")
