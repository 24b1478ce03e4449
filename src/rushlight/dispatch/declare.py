"""Declaring an operator: `Op`, and the decorators that make one from its forward on raw arrays.

The decorated function is the forward, and its signature the public one.
Parameters annotated `Array` or `Array | None` are tensors; the last of them may be `Arrays`, a sequence; the others are
static. With `ufunc` the forward is that function of the backend and the decorated body is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from rushlight.backends.numpy import backend
from rushlight.basics.arrays import Array as Array
from rushlight.basics.makers import maker
from rushlight.dispatch.costs import Counted
from rushlight.dispatch.families import Family
from rushlight.dispatch.keeping.blocks import cut
from rushlight.dispatch.plan import Formula, FullNode, Plan, SeveralOutputs, arguments
from rushlight.dispatch.rules import Rule
from rushlight.engine.node import Node

Arrays = tuple[Array, ...]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
N = TypeVar("N", bound=Node)
OPS: dict[str, Op] = {}


NO_SOURCE: Mapping[str, str] = MappingProxyType({})
NO_NAMES: Mapping[str, str | Callable[[Any], object]] = MappingProxyType({})


class Op:
    """A differentiable operator: its forward, formulas, and how its inputs and outputs are treated.

    A record is closed: what a declaration says is given by keyword, what needs the operator first by decorators, each
    once.  To set an attribute later is an AttributeError, but for what is `MADE` of the record.
    """

    # What a declaration says by keyword, with what holds where it does not say it.
    aux: tuple[str, ...] = ()  # names of auxiliary results, which only formulas see
    view: bool = False  # whether the result shares the memory of the first input
    promote: str | None = None  # how dtypes meet: None, "arith", "float" or "compare"
    # Where float16 and bfloat16 are computed; None, as of all that moves elements, passes them to the forward as they are.
    half: str | None = "float32"
    ufunc: str | None = None  # the function of the backend that is the forward
    elementwise: bool = False  # whether an element of the result is of those at its place alone
    pointwise: bool = False  # whether that holds for numbers beside its first input: so are all elementwise ones
    foreach: bool = False  # whether there is a form of it on each tensor of a list
    passes: float = 1.0  # what its pass over memory costs, in plain ones
    # Whether its forward makes arrays on the way, so that large inputs are gone through block by block: see `keeping.blocks`.
    cut: bool = False
    linear: bool = False  # whether it is linear in all of its inputs together, so that its tangent is itself
    factors: tuple[int, ...] = ()  # the positions of inputs in each of which it is linear
    added: int | None = None  # that of the one which is added to their product
    added_at: int = -1  # the dimension of the result along which that one lies
    refuse: str = ""  # letters of kinds of dtypes that it has no result for: bool, integer, floating point, complex
    refusal: Any = NotImplementedError  # what is raised for those, made of words about dtypes
    strict: bool = False  # whether Python numbers are refused in the place of tensors, as where nothing promotes
    complex_half: str = ""  # complex32: "moves": the forward takes it, as views do; "widens": to complex64; "": refused
    repeatable: bool = False  # whether it costs little beside a product, and may run again; so are all elementwise ones
    # What `torch.ops.aten` calls it, with the overload, where that is not its own name; two are those of a tensor and of a number
    # as the last input. With arguments where PyTorch has others: see `library.aten.shown`.
    aten: tuple[str, ...] = ()
    aten_call: str = (
        ""  # the rule of `library.aten` that says what PyTorch has for a call, where a line of arguments cannot
    )
    aten_more: bool = False  # whether PyTorch's operator gives more results, which are what handlers get and give
    # PyTorch's operator of its gradient, with arguments, by the input where not of the first alone; or a rule of
    # `library.aten.handed`
    aten_gradient: str | Mapping[str, str] = ""
    aliases: tuple[str, ...] = ()  # what else it is published as
    counted: Counted | None = None  # how PyTorch's counter of operations calls it, where that counts it
    batch: Family | None = None  # which operators vmap treats as it; else it is broadcast, or looped
    autocast: str | None = None  # operands under autocast get: "lower": its dtype; "float32": that; None: nothing
    shown: str = ""  # the name that users see in the graph and in profiles, where that is not its own
    # What its nodes show as `_saved_x` by PyTorch's names: our name of it, or a function of the node.
    saved_as: Mapping[str, str | Callable[[Any], object]] = NO_NAMES
    cheap: bool = False  # whether a large result is computed again for backward rather than kept: see `rebuilt`
    again: int = 0  # operations of a product that take as long as making an element again; 0: it is not made again
    behind: str = ""  # of what it is made again: its "input", or the two of a "sum" or a "product"
    over: bool = False  # whether it may be made again over its first input, where that was made for it alone
    gates: Callable[..., Array] | None = None  # (result, statics): a mask that says all that the gradient asks of it
    # (all inputs that it saves): where what it makes of them is under 0, and where over, which is all that the gradient asks
    sides: Callable[..., tuple[Array, Array]] | None = None
    planes: int = (
        0  # how many bits an element of its auxiliary result takes, which are kept of it: see `keeping.bits`; 0: all
    )
    heavy: bool = False  # whether it costs so much more than its inputs' making that they may be
    steady: bool = (
        False  # whether its gradient stays what it is where its first input is changed afterwards, as in PyTorch
    )
    # The same of its result: its nodes keep a mask of it (see `gates`), or a copy, when it is to change.
    steady_out: bool = False
    saver: Any = None  # (node, inputs, wanted, result): saves inputs in a way of its own, where they may be
    order: Any = None  # the order in which gradients are handed on, as positions of inputs, where it is not theirs
    by_memory: bool = False  # whether it goes by places in memory rather than in its input
    casts: bool = False  # whether its in-place form takes what it writes from any dtype
    direct: bool = False  # whether its in-place form needs no memory for its result
    one_value: bool = False  # whether it writes one value everywhere, so that elements may share memory
    bits: Any = None  # of a view: (bits of the input) -> those of the result; by default they stay
    turns: int = 0  # the bits that it turns over, of memory that stays as it is
    scales: Any = None  # the ufunc of two arrays in whose place it may run where 16-bit numbers meet Python's
    numbers: bool = False  # whether two Python numbers will do, and give a tensor
    # Whether `out=` is to be of the result's dtype; None: elementwise ones of one input that keep theirs; "real": of real numbers.
    same_out: bool | str | None = None
    takes_out: bool = True  # whether its public function has the keyword `out`
    exact: bool = False  # whether Python's numbers beside 16-bit tensors stay in float32
    integers: bool = False  # whether the forward of an operator without ufunc takes int64 arrays, and Python integers beside them, as one would
    knows_numbers: bool = (
        False  # whether a float behind its first input reaches the forward as it is: another form than an array
    )
    takes_number: Any = None  # (node, position): whether that input is a number as which PyTorch has another form
    # Formulas as source, for real arrays: of the few operators for which a call costs as much as the work.
    inline: Mapping[str, str] = NO_SOURCE

    # What is declared by decorators.
    formulas: list[Formula]
    targets: frozenset[int] = frozenset()
    target_mask = 0  # the same as bits
    covered = 0  # the same of flat positions: of a sequence, all from its own on
    jvp: Any = None
    made: Rule | None = None  # what it makes, from shapes alone: declared by `shape`
    needed: Rule | None = None  # the bytes that its kernel needs for a moment: declared by `work`
    cost: Rule | None = None  # its floating-point operations: declared by `costs`
    into: Any = None  # (first input, other inputs, statics) -> auxiliaries: the forward written into its first input
    check: Any = None  # (list of operands as arrays and numbers): raises where they do not go together
    remade: Any = None  # the operator that makes its first result again of inputs and other results, and their names
    then: Any = None  # by names of operators made again of its result: what makes theirs of its own operands
    large: Any = None  # (array, array or number): a forward for large arrays, where threads pay

    # What is made of the record, when it is needed.
    call: Any = None  # its public function
    node_class: type[FullNode] | None = None
    slim_class: Any = None
    written: bool = False  # whether its function, which depends on the formulas, was written out
    unwatched: Callable[..., Any] | None = (
        None  # its public function without the look at modes, and that without recording: made by `quick`
    )
    unrecorded: Callable[..., Any] | None = None
    MADE: ClassVar = frozenset({"call", "node_class", "slim_class", "new_node", "written", "unwatched", "unrecorded"})
    SETTINGS: ClassVar[dict[str, Any]]  # what may be said by keyword and is kept as it is

    # What follows from the forward and from what is said.
    name: str
    writes: str  # the name of its form in place
    forward: Callable[..., Any]
    names: tuple[str, ...]
    tensors: tuple[str, ...]
    static_names: tuple[str, ...]
    sequence: int | None  # the position of the input that is a sequence
    defaults: dict[str, Any]
    out_names: tuple[str, ...]
    out_count: int | None
    differentiable: tuple[int, ...]
    broadcasts: tuple[int, ...]
    free: int  # a bit for each input whose dtype is no matter of promotion
    plans: dict[tuple[int, int], Plan]

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        outputs: Any = 1,
        differentiable: tuple[int, ...] | None = None,
        masks: tuple[str, ...] = (),
        broadcasts: tuple[str, ...] = (),
        shape: Callable[..., Any] | None = None,
        cost: Callable[..., Any] | None = None,
        **settings: object,
    ) -> None:
        """outputs: how many, or their names, or None if that varies; differentiable: positions of those that have gradients.

        name: that of the function without "_op" at its end, unless it is given. masks: names of tensors that are
        masks or indices, whose dtype is no matter of promotion. broadcasts: names of the tensors that are broadcast
        together, in the order in which the error for sizes that differ names them;
        all of them, of an elementwise operator. shape: its rule for shapes, one of `shapes`; one of its own is declared
        by `shape` below. cost: that for its floating-point operations, one of `costs`.
        settings: of `SETTINGS`; TypeError for others.
        """
        unknown = settings.keys() - Op.SETTINGS.keys()
        if unknown:
            raise TypeError(
                f"operator {fn.__name__}: no declaration says {sorted(unknown)}; known are {sorted(Op.SETTINGS)}"
            )
        record = vars(self)
        record.update(Op.SETTINGS, **settings)
        record.update(forward=fn, formulas=[], plans={}, __doc__=fn.__doc__)
        record["name"] = name or fn.__name__.removesuffix("_op")
        record["shown"] = self.shown or self.name
        record["writes"] = f"{self.name.rstrip('_')}_"
        self._signature(fn)
        names = ("out",) if outputs in (1, None) else tuple(outputs)
        record.update(out_names=names, out_count=None if outputs is None else len(names))
        record["differentiable"] = tuple(range(len(names))) if differentiable is None else differentiable
        record["repeatable"] = self.repeatable or self.elementwise
        record["pointwise"] = self.pointwise or self.elementwise
        if self.same_out is None:
            record["same_out"] = self.elementwise and self.promote == "arith" and len(self.tensors) == 1
        together = broadcasts or (self.tensors if self.elementwise else ())
        record["broadcasts"] = tuple(self.tensors.index(each) for each in together)
        record["free"] = sum(1 << self.tensors.index(each) for each in masks)
        record["strict"] = self.strict or self.promote is None
        record["complex_half"] = self.complex_half or ("moves" if self.view else "")
        if self.complex_half == "moves":
            record["half"] = settings.get("half")
        if shape is not None:
            self.shape(shape)
        if cost is not None:
            self.costs(cost)
        if self.ufunc is not None:
            record["forward"] = ufunc_forward(self.ufunc)
        if self.cut:
            record["forward"] = cut(fn)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Op.MADE:
            raise AttributeError(
                f"operator {self.name}: its record is closed, and {name!r} cannot be set: say it where the operator "
                "is declared, by a keyword or a decorator"
            )
        vars(self)[name] = value

    def declare(self, name: str, value: T) -> T:
        """Say what `name` is of this operator, which nothing said before; returns it.  Raises RuntimeError where it was said."""
        record = vars(self)
        if record.get(name) is not None:
            raise RuntimeError(f"operator {self.name}: {name!r} was declared before, as {record[name]!r}")
        record[name] = value
        return value

    def _signature(self, fn: Callable[..., Any]) -> None:
        """Read the parameters: tensors, the sequence among them, statics and their defaults."""
        code, notes = fn.__code__, fn.__annotations__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not all(isinstance(note, str) for note in notes.values()):
            raise TypeError(f"operator {fn.__name__}: annotations are read as they are written: its file begins with "
                            "`from __future__ import annotations`")  # fmt: skip
        tensors = tuple(n for n in names if str(notes.get(n, "")).startswith("Array"))
        if names[: len(tensors)] != tensors:
            raise TypeError(f"operator {fn.__name__}: tensors come before static parameters, got {names}")
        last = tensors[-1] if tensors else ""
        values = fn.__defaults__ or ()
        defaults = dict(zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values, strict=True))
        vars(self).update(
            names=names,
            tensors=tensors,
            static_names=names[len(tensors) :],
            sequence=len(tensors) - 1 if str(notes.get(last)) == "Arrays" else None,
            defaults={**defaults, **(fn.__kwdefaults__ or {})},
        )

    def input_name(self, position: int) -> str:
        """The parameter name of the input at a flat position."""
        if self.sequence is not None and position >= self.sequence:
            return f"{self.tensors[self.sequence]}[{position - self.sequence}]"
        return str(self.tensors[position])

    def grad(
        self,
        *targets: str,
        raw: Callable[..., Any] | None = None,
        shapes: Callable[..., Any] | None = None,
        uses: dict[str, str] | None = None,
        blocks: bool | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the gradient formula of the inputs named; of several jointly, it returns one for each.

        raw: a twin on arrays, `raw(...)` with requests of its own, used in first-order runs. shapes: what that makes, for
        the estimate, where it is not an array of each input's shape: see `Formula`. uses: by target, the names (apart
        by blanks) of what its gradient takes of what the formula asks for; the rest is None where no other target is
        wanted, and is not saved. blocks: whether it goes over large arrays block by block, each element of what it
        makes being of those at its place alone; by default formulas of pointwise operators do that make temporaries,
        and no twins.
        """

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            formula = Formula(targets, fn, len(targets) > 1)
            formula.uses = None if uses is None else {t: frozenset(uses[t].split()) for t in targets}
            formula.blocks = blocks
            self.add_formula(formula, raw, shapes)
            return fn

        return add

    def add_formula(
        self, formula: Formula, raw: Callable[..., Any] | None = None, shapes: Callable[..., Any] | None = None
    ) -> None:
        """Add a formula, with its twin, and check their requests."""
        if self.written:
            raise RuntimeError(f"operator {self.name}: it was called before its gradients were declared")
        if raw is not None:
            formula.raw, formula.raw_requests = raw, arguments(raw)
        known = {
            *self.tensors,
            *self.static_names,
            *self.out_names,
            *self.aux,
            "g",
            "gs",
            "needs",
            *(f"{t}_{what}" for t in self.tensors for what in ("shape", "spare")),
            *(f"g_{o}" for o in self.out_names),
        }
        for request in (*formula.requests, *formula.raw_requests):
            if request not in known:
                raise TypeError(
                    f"operator {self.name}: a formula asks for {request!r}, which is none of {sorted(known)}"
                )
        if shapes is not None:
            formula.shapes = shapes
            for request in set(arguments(shapes)) - {*formula.raw_requests, "make"}:
                raise TypeError(f"operator {self.name}: the shapes of a twin ask for {request!r}, which it does not")
        for target in set(formula.targets).difference(self.tensors):
            raise TypeError(f"operator {self.name}: a formula is for {target!r}, which is none of the parameters annotated "
                            f"Array: {[*self.tensors]}")  # fmt: skip
        self.formulas.append(formula)
        targets = self.targets | {self.tensors.index(t) for t in formula.targets}
        mask = sum(1 << i for i in targets)
        vars(self).update(
            targets=targets,
            target_mask=mask,
            covered=mask if self.sequence not in targets else mask | -1 << self.sequence,
        )

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
        self.declare("jvp", (fn, requests))
        return fn

    def shape(self, fn: F) -> F:
        """Declare what it makes, from shapes alone: a function that returns a `shapes.Made` for each result and auxiliary
        result, or None where values decide. Of a view: the copy that it is where strides do not allow a view."""
        self.declare("made", Rule(self, fn))
        return fn

    def costs(self, fn: F) -> F:
        """Declare its floating-point operations, a multiplication and an addition being two."""
        self.declare("cost", Rule(self, fn))
        return fn

    def work(self, fn: F) -> F:
        """Declare the bytes that its kernel needs for a moment beside inputs and results."""
        self.declare("needed", Rule(self, fn))
        return fn

    def variant(self, **changes: object) -> Op:
        """Another record, that differs in what is said.  What is made of this one would run it, and is made anew."""
        made: Op = object.__new__(Op)
        said = {name: value for name, value in vars(self).items() if name not in self.MADE}
        vars(made).update({**said, "plans": {}, **changes})
        return made

    def plan(self, mask: int, count: int) -> Plan:
        """The plan for the inputs whose bits are in `mask`, out of `count`."""
        key = mask, count
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = Plan(self, mask, count)
        return found

    def node_type(self) -> type[FullNode]:
        """The class of this operator's nodes, named as PyTorch names them."""
        if self.node_class is None:
            self.node_class = self.node_subclass(FullNode if self.out_count == 1 else SeveralOutputs)
        return self.node_class

    def new_node(self) -> FullNode:
        """A node of this operator with nothing in it."""
        self.new_node = maker(self.node_type())  # type: ignore[method-assign]  # from now on called in its place
        return self.new_node()

    def node_subclass(self, base: type[N]) -> type[N]:
        """A subclass of `base` that bears the name of this operator's nodes."""
        words = "".join(w[:1].upper() + w[1:] for w in self.shown.split("_"))
        return type(f"{words}Backward0", (base,), {"__slots__": (), "steady_out": self.steady_out})

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


Op.SETTINGS = {name: vars(Op)[name] for name in takewhile(lambda name: name != "formulas", Op.__annotations__)}


def ufunc_forward(name: str) -> Callable[..., Any]:
    """A forward that is the backend's function `name`."""
    found: list[Any] = []

    def forward(*arrays: object) -> Any:
        if not found:
            found.append(getattr(backend, name))
        if arrays[-1] is None:  # which NumPy compares with every element
            raise TypeError(f"{name}(): argument 'other' (position 2) must be Tensor, not NoneType")
        return found[0](*arrays)

    return forward
