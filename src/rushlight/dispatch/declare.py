"""Declaring an operator: `Op`, and the decorators that make one from its forward on raw arrays.

The decorated function is the forward, and its signature the public one.
Parameters annotated `Array` or `Array | None` are tensors; the last of them may be `Arrays`, a sequence; the others are
static. With `ufunc` the forward is that function of the backend and the decorated body is not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rushlight.backends.numpy import backend
from rushlight.basics.arrays import Array as Array
from rushlight.dispatch.costs import Counted
from rushlight.dispatch.families import Family
from rushlight.dispatch.plan import Formula, FullNode, Plan, SeveralOutputs, arguments
from rushlight.dispatch.rules import Rule

Arrays = tuple[Array, ...]
F = TypeVar("F", bound=Callable[..., Any])
OPS: dict[str, Op] = {}


class Op:
    """A differentiable operator: its forward, formulas, and how its inputs and outputs are treated."""

    large: Any = None  # (array, array or number): a forward for large arrays, where threads pay
    cheap = False  # whether a large result is computed again for backward rather than kept: see `rebuilt`
    remade: Any = (
        None  # the operator that makes its first result again of its inputs and others of its results, and their names
    )
    heavy = False  # whether it costs so much more than its inputs' making that they may be
    saver: Any = None  # (node, inputs, wanted, result): saves inputs in a way of its own, where they may be
    order: Any = None  # the order in which gradients are handed on, as positions of inputs, where it is not theirs
    one_value = False  # whether it writes one value everywhere, so that elements may share memory
    into: Any = None  # (first input, other inputs, statics) -> auxiliaries: the forward written into its first input
    bits: Any = None  # of a view: (bits of the input) -> those of the result; by default they stay
    turns = 0  # the bits that it turns over, of memory that stays as it is
    unwatched: Any = None  # its public function without the look at modes, and that without recording: made by `quick`
    unrecorded: Any = None
    scales: Any = None  # the ufunc of two arrays in whose place it may run where 16-bit numbers meet Python's
    numbers = False  # whether two Python numbers will do, and give a tensor
    exact = False  # whether Python's numbers beside 16-bit tensors stay in float32
    made: Rule | None = None  # what it makes, from shapes alone: declared by `shape`
    needed: Rule | None = None  # the bytes that its kernel needs for a moment: declared by `work`
    cost: Rule | None = None  # its floating-point operations: declared by `costs`
    check: Any = None  # (list of operands as arrays and numbers): raises where they do not go together

    def __init__(self, fn: Any, *, name: str | None = None, outputs: Any = 1, aux: tuple[str, ...] = (),
                 view: bool = False, promote: str | None = None, half: str | None = "float32",
                 differentiable: tuple[int, ...] | None = None, ufunc: str | None = None, elementwise: bool = False,
                 linear: bool = False, samples: Any = None, refuse: str = "", refusal: Any = NotImplementedError,
                 strict: bool = False, masks: tuple[str, ...] = (), broadcasts: tuple[str, ...] = (),
                 complex_half: str = "", shown: str = "", factors: tuple[int, ...] = (), added: int | None = None,
                 linear_together: bool = False, repeatable: bool = False, shape: Callable[..., Any] | None = None,
                 cost: Callable[..., Any] | None = None, aten: tuple[str, ...] = (), counted: Counted | None = None,
                 batch: Family | None = None, aliases: tuple[str, ...] = (), autocast: str | None = None):  # fmt: skip
        """outputs: how many, or their names, or None if that varies. promote: None, "arith", "float" or "compare".

        half: "float32" computes float16 and bfloat16 there; None passes them to the forward as they are.
        refuse: letters of the kinds of dtypes it has no result for (b bool, i integer, f floating point, c complex), for
        which it raises `refusal`. strict: Python numbers are not taken in the place of tensors.
        masks: names of tensors that are masks or indices, whose dtype is no matter of promotion. broadcasts: names of
        the tensors that are broadcast together, in the order in which the error for sizes that differ names them;
        all of them, of an elementwise operator.
        complex_half: what becomes of complex32. "moves": the forward takes it, since it only moves elements; "widens": it
        is computed in complex64 and rounded; "": refused, except by views.
        factors: the positions of inputs in each of which it is linear; added: that of the one which is added to their product.
        linear_together: whether it is linear in all of its inputs together, though that is not all that `linear` says.
        repeatable: whether it is deterministic and costs little beside a matrix product, so that stores may run it again; so
        are all elementwise ones. shape: its rule for shapes, one of `shapes`; one of its own is declared by `shape` below.
        cost: that for its floating-point operations, one of `costs`. aliases: what else it is published as; aten: what else `torch.ops.aten` calls it.
        counted: how PyTorch's counter of operations calls it, where that counts it.
        batch: which operators vmap treats as it; without one an elementwise operator is broadcast, any other is looped.
        autocast: what becomes of operands under autocast: "lower": they get its dtype; "float32": that; None: they stay as they are.
        shown: the name that users see in the graph and in profiles, where that is not its own.
        """
        self.name, self.forward, self.view = name or fn.__name__, fn, view
        self.aten, self.counted, self.batch, self.aliases = aten, counted, batch, aliases
        self.autocast = autocast
        self.shown = shown or self.name.removesuffix("_op")
        self.factors, self.added, self.linear_together = factors, added, linear_together
        self.signature(fn)
        names = ("out",) if outputs in (1, None) else tuple(outputs)
        self.out_names, self.out_count = names, None if outputs is None else len(names)
        self.aux, self.promote, self.half, self.ufunc = aux, promote, half, ufunc
        self.differentiable = tuple(range(len(names))) if differentiable is None else differentiable
        self.elementwise, self.linear, self.samples = elementwise, linear, samples
        self.repeatable = repeatable or elementwise
        self.broadcasts = tuple(
            self.tensors.index(name) for name in broadcasts or (self.tensors if elementwise else ())
        )
        self.free = sum(1 << self.tensors.index(name) for name in masks)  # a bit for each
        self.refuse, self.refusal, self.strict = refuse, refusal, strict or promote is None
        self.complex_half = complex_half or ("moves" if view else "")
        self.formulas: list[Formula] = []
        self.targets: frozenset[int] = frozenset()
        self.target_mask = 0  # the same as bits
        self.plans: dict[tuple[int, int], Plan] = {}
        self.jvp: Any = None
        self.call: Any = None
        self.node_class: Any = None
        self.slim_class: Any = None
        self.written = False  # whether its function, which depends on the formulas, was written out
        # Formulas as source, for real arrays: of the few operators for which a call costs as much as the work.
        self.inline: dict[str, str] = {}
        self.__doc__ = fn.__doc__
        if shape is not None:
            self.shape(shape)
        if cost is not None:
            self.costs(cost)
        if ufunc is not None:
            self.forward = ufunc_forward(ufunc)
        OPS[self.name] = self

    def signature(self, fn: Callable[..., Any]) -> None:
        """Read the parameters: tensors, the sequence among them, statics and their defaults."""
        code, notes = fn.__code__, fn.__annotations__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.names = names
        self.tensors = tuple(n for n in names if str(notes.get(n, "")).startswith("Array"))
        self.static_names = names[len(self.tensors) :]
        if names[: len(self.tensors)] != self.tensors:
            raise TypeError(f"operator {fn.__name__}: tensors come before static parameters, got {names}")
        last = self.tensors[-1] if self.tensors else ""
        self.sequence = len(self.tensors) - 1 if str(notes.get(last)) == "Arrays" else None
        values = fn.__defaults__ or ()
        self.defaults = dict(
            zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values, strict=True)
        )
        self.defaults.update(fn.__kwdefaults__ or {})

    def input_name(self, position: int) -> str:
        """The parameter name of the input at a flat position."""
        if self.sequence is not None and position >= self.sequence:
            return f"{self.tensors[self.sequence]}[{position - self.sequence}]"
        return str(self.tensors[position])

    def grad(self, *targets: str, raw: Callable[..., Any] | None = None,
             uses: dict[str, str] | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
        """Declare the gradient formula of the inputs named; of several jointly, it returns one for each.

        raw: a twin on arrays, `raw(...)` with requests of its own, used in first-order runs. uses: by target, the
        names (apart by blanks) of what its gradient takes of what the formula asks for; the rest is None where no
        other target is wanted, and is not saved.
        """

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            formula = Formula(targets, fn, len(targets) > 1)
            formula.uses = None if uses is None else {t: frozenset(uses[t].split()) for t in targets}
            self.add_formula(formula, raw)
            return fn

        return add

    def add_formula(self, formula: Formula, raw: Callable[..., Any] | None = None) -> None:
        """Add a formula, with its twin, and check their requests."""
        if self.written:
            raise RuntimeError(f"operator {self.name}: it was called before its gradients were declared")
        if raw is not None:
            formula.raw, formula.raw_requests = raw, arguments(raw)
        known = {*self.tensors, *self.static_names, *self.out_names, *self.aux, "g", "gs", "needs",
                 *(f"{t}_{what}" for t in self.tensors for what in ("shape", "spare")), *(f"g_{o}" for o in self.out_names)}  # fmt: skip
        for request in (*formula.requests, *formula.raw_requests):
            if request not in known:
                raise TypeError(
                    f"operator {self.name}: a formula asks for {request!r}, which is none of {sorted(known)}"
                )
        self.formulas.append(formula)
        self.targets |= {self.tensors.index(t) for t in formula.targets}
        self.target_mask = sum(1 << i for i in self.targets)

    def tangent(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Declare the tangent rule: a function of values and tangents that returns those of the outputs.

        Its parameter names are its request, as those of a gradient formula: inputs, outputs, statics by name, and t_NAME,
        the tangent of an input, None where it has none.
        """
        requests = arguments(fn)
        known = {*self.tensors, *self.static_names, *self.out_names, *(f"t_{name}" for name in self.tensors)}
        for request in requests:
            if request not in known:
                raise TypeError(
                    f"operator {self.name}: its tangent asks for {request!r}, which is none of {sorted(known)}"
                )
        self.jvp = fn, requests
        return fn

    def shape(self, fn: F) -> F:
        """Declare what it makes, from shapes alone: a function that returns a `shapes.Made` for each result and auxiliary
        result, or None where values decide. Of a view: the copy that it is where strides do not allow a view."""
        self.made = Rule(self, fn)
        return fn

    def costs(self, fn: F) -> F:
        """Declare its floating-point operations, a multiplication and an addition being two."""
        self.cost = Rule(self, fn)
        return fn

    def work(self, fn: F) -> F:
        """Declare the bytes that its kernel needs for a moment beside inputs and results."""
        self.needed = Rule(self, fn)
        return fn

    def plan(self, mask: int, count: int) -> Plan:
        """The plan for the inputs whose bits are in `mask`, out of `count`."""
        key = mask, count
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = Plan(self, mask, count)
        return found

    def node_type(self) -> Any:
        """The class of this operator's nodes, named as PyTorch names them."""
        if self.node_class is None:
            self.node_class = self.node_subclass(FullNode if self.out_count == 1 else SeveralOutputs)
        return self.node_class

    def node_subclass(self, base: type[Any]) -> type[Any]:
        """A subclass of `base` that bears the name of this operator's nodes."""
        words = "".join(w[:1].upper() + w[1:] for w in self.shown.split("_"))
        return type(f"{words}Backward0", (base,), {"__slots__": ()})

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arguments as (tensors, statics) in the order of the signature.  Raises TypeError as Python does."""
        names, given = self.names, len(args)
        if given > len(names):
            raise TypeError(f"{self.name}() takes {len(names)} arguments ({', '.join(names)}) but {given} were given")
        if kwargs or given < len(names):
            values = list(args)
            for name in names[given:]:
                if name in kwargs:
                    values.append(kwargs.pop(name))
                elif name in self.defaults:
                    values.append(self.defaults[name])
                else:
                    raise TypeError(f"{self.name}() missing required argument {name!r}")
            if kwargs:
                word = next(iter(kwargs))
                problem = "multiple values for" if word in names else "an unexpected keyword"
                raise TypeError(f"{self.name}() got {problem} argument {word!r}")
            args = tuple(values)
        n = len(self.tensors)
        return args[:n], args[n:]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The operator's results, as of its public function."""
        return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.name}({', '.join(self.names)})>"


def ufunc_forward(name: str) -> Callable[..., Any]:
    """A forward that is the backend's function `name`."""
    found: list[Any] = []

    def forward(*arrays: object) -> Any:
        if not found:
            found.append(getattr(backend, name))
        return found[0](*arrays)

    return forward
