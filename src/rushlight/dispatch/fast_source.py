"""The public functions of operators, written out as source for each: what `fast` says in general, without its loops.

An operator's function is written at its first call, since most operators of a program are never called.  What the source
says is the usual case: no mode is unusual, the tensors are float32 or float64, or small ones of 16 bits that the forward takes
as they are.  The rest goes to `fast.slow`.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics.makers import maker
from rushlight.basics.state import UNRECORDED, modes, special, unkept
from rushlight.dispatch import fast
from rushlight.dispatch.call import apply, record, shape_of
from rushlight.dispatch.compute import LARGE_HALVES, check_broadcast, halves_of, held
from rushlight.dispatch.keeping import rebuilt
from rushlight.dispatch.keeping.sides import keep_sides
from rushlight.dispatch.plan import OpNode, Plan
from rushlight.dispatch.quick import unrecorded
from rushlight.engine.node import Severed, edge_of, next_seq
from rushlight.engine.saved import Constant
from rushlight.kernels.rows import LARGE
from rushlight.overrides import fitting
from rushlight.tensor import LEAF, Tensor, bare, wrap

if TYPE_CHECKING:
    from rushlight.dispatch.declare import Op

NAMES: dict[str, Any] = {
    "BEYOND": 1 << 63, "BOOL": np.dtype(bool), "Constant": Constant, "I64": np.dtype(np.int64),
    "F16": np.dtype(np.float16), "F32": fast.F32, "F64": fast.F64, "LEAF": LEAF, "Tensor": Tensor,
    "asarray": np.asarray, "check_broadcast": check_broadcast, "completed": fast.completed, "edge_of": edge_of,
    "fitting": fitting, "held": held, "keep_rest": fast.keep_rest, "keep_sides": keep_sides,
    "LARGE_HALVES": LARGE_HALVES, "ndarray": np.ndarray, "bare": bare, "next_seq": next_seq,
    "note_view": fast.note_view, "Severed": Severed, "record": fast.record, "record_all": record, "rebuilt": rebuilt,
    "shape_of": shape_of, "slow": fast.slow, "special": special, "PLAIN": (Tensor, float, int),
    "UNRECORDED": UNRECORDED, "general": partial(fast.slow, run=apply), "modes": modes, "unkept": unkept,
    "unrecorded": unrecorded, "wrap": wrap,
}  # fmt: skip


def first(*args: object, **kwargs: object) -> Any:
    """What every function is until its first call (its globals are the names that its source will use)."""
    write()  # type: ignore[name-defined]  # noqa: F821
    return call(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def written(op: Op, source: Callable[..., Any], **names: object) -> Callable[..., Any]:
    """A function of the code that `source(op, scope)` gives as text, `def call(...)`, when it is first called.

    Its globals have `twins`, other function objects that are to have the same code, `again`, which makes another such
    function with globals of its own, and `source`, which also gives the text of one that does not record.
    """
    scope = {
        **NAMES,
        "__name__": "rushlight.dispatch.fast_source",
        "op": op,
        "twins": [],
        "again": partial(written, op, source, **names),
        "source": source,
        **names,
    }  # the name is what filters of warnings go by

    def write() -> None:
        found: dict[str, Any] = {}
        op.written = True
        exec(compile(source(op, scope), f"<{op.name}>", "exec"), scope, found)
        for each in (call, *scope["twins"]):
            each.__kwdefaults__, each.__code__ = found["call"].__kwdefaults__, found["call"].__code__

    call = scope["call"] = FunctionType(first.__code__, scope, op.name)
    scope["first"] = first.__code__
    scope["write"] = write
    return call


def runner(op: Op) -> Callable[..., Any]:
    """The forward of an operator on arrays."""
    return getattr(np, op.ufunc) if op.ufunc is not None else op.forward


# Elementwise, of one or two ---------------------------------------------------------------------------------------

# Where no graph is recorded, and nothing else is unusual; all arguments follow.
UNRECORDED_HERE = """if special.count and modes.way is UNRECORDED and not special.everywhere and special.meta is None{more}:
    return (op.unrecorded or unrecorded(op))"""

UNARY = """
def call(input, *, out=None):
    if input.__class__ is ndarray and (input.dtype is F32 or input.dtype is F64):
        result = run(input)
        return result if result.__class__ is ndarray else asarray(result)
    if special.count or out is not None or not isinstance(input, Tensor):
        {unrecorded}(input)
        return slow(op, (input,), out)
    x = input._array
    d = x.dtype
    if {unusual}:
        x = None
        return slow(op, (input,), out)
    result = run(x)
    if result.__class__ is not ndarray:
        result = asarray(result)
    ex = input._edge if input._view is None else edge_of(input)
    t = bare()
    t._array = result
    t._storage = t._view = None
    {recorded}
"""

BINARY = """
def call(input, other, *, out=None):
    if special.count or out is not None or not isinstance(input, Tensor):
        {unrecorded}(input, other)
        return slow(op, (input, other), out)
    x = input._array
    d = x.dtype
    if {unusual}:
        x = None  # what a tensor with bits shows is held once
        return slow(op, (input, other), out)
    if isinstance(other, Tensor):
        y = w = other._array
        if y.dtype is not d:
            return slow(op, (input, other), out)
        ey = other._edge
        if other._view is not None:
            ey = edge_of(other)
            if ey.__class__ is Severed:  # see `call.make_node`
                return slow(op, (input, other), out)
    elif {numbers}:
        y = w = other
        ey = None
        if d.itemsize == 2:
            w = {held}
            if w is None:
                return slow(op, (input, other), out)
    else:
        return slow(op, (input, other), out)
    {checked}
    try:
        result = {result}
    except ValueError:
        check_broadcast(op.name, (x, y))
        raise
    if result.__class__ is not ndarray:
        result = asarray(result)
    ex = input._edge
    if input._view is not None:
        ex = edge_of(input)
        if ex.__class__ is Severed:
            return slow(op, (input, other), out)
    t = bare()
    t._array = result
    t._storage = t._view = None
    {recorded}
"""

# input, other: what is saved of them; edges: where their gradients go
NODE = """
node = {node_type}()
node.seq = next_seq()
node.extra = None
node.plan = {plan}
node.edges = {edges}
node.shape = result.shape
node.dtype = d
node.versions = {versions}
node.saved = {saved}
{rest}
t._edge = node
return t
"""

PLAIN = "t._edge = None\nreturn t"  # that nothing records
EDGES = {1: "(input if ex is LEAF else ex,)", 2: "(None, other if ey is LEAF else ey)"}
BOTH = "(input if ex is LEAF else ex, other if ey is LEAF else ey)"


def indented(text: str, by: int) -> str:
    """The lines of a text moved to the right, the first not: it stands where its placeholder stood."""
    return ("\n" + " " * by).join(line for line in text.strip().splitlines() if line.strip())


def unrecorded_here(more: str, by: int) -> str:
    """The lines that leave a function for its twin that records nothing, up to the arguments, where `more` holds too."""
    return indented(UNRECORDED_HERE.format(more=more), by)


def node_source(op: Op, scope: dict[str, Any], mask: int, number: bool = False) -> str:
    """The lines that record a result for the inputs in `mask`; number: the second input is one, which has no version."""
    count = len(op.tensors)
    mask &= op.target_mask
    if not mask or op.promote == "compare":
        return PLAIN
    plan = scope[f"plan{mask}"] = Plan(op, mask, count, real=True)
    keeps = bool(plan.save_outs or plan.needs_shapes)
    if op.slim_class is None:
        op.slim_class = op.node_subclass(OpNode)
    scope["Full" if keeps else "Slim"] = maker(op.node_type() if keeps else op.slim_class)
    saved = ["None"] * count
    tensors = [name for i, name in enumerate(op.tensors) if i in plan.save_inputs and not (i and number)]
    for i in plan.save_inputs:
        saved[i] = "Constant(other)" if i and number else op.tensors[i]
    versions = ["0"] * count
    for name in tensors:
        versions[op.tensors.index(name)] = f"0 if {name}._storage is None else {name}._storage.version"
    untouched = " and ".join(f"{name}._storage is None" for name in tensors)
    edges = EDGES[mask] if count == 1 or mask == 2 else BOTH if mask == 3 else "(input if ex is LEAF else ex, None)"
    shapes = "(x.shape,)" if count == 1 else "(x.shape, shape_of(other))"
    return NODE.format(
        node_type="Full" if keeps else "Slim",
        plan=f"plan{mask}",
        edges=edges,
        saved=f"({', '.join(saved)},)",
        versions=f"None if {untouched} else ({', '.join(versions)},)" if tensors else "None",
        rest="\n".join(
            [f"keep_rest(node, t, {shapes})"] * keeps
            + ["if result.nbytes >= rebuilt.LARGE:\n    rebuilt.watch(node, t)"] * op.cheap
            + ["if result.nbytes >= rebuilt.LARGE:\n    x = None  # nobody is to hold it\n    keep_sides(node)"]
            * (op.sides is not None)
        ),
    )


def unary_source(op: Op, scope: dict[str, Any], recorded: bool = True) -> str:
    """Source of an elementwise operator on one tensor."""
    scope["halves"] = unchecked(op)
    plain = "if ex is None:\n    t._edge = None\n    return t\n"
    here = unrecorded_here(" and out is None", 8)
    unusual = "d is not F32 and d is not F64 and d not in halves"
    if of_integers(op):
        unusual = "d is not I64 and d is not BOOL" if "f" in op.refuse else f"{unusual} and d is not I64"
    return UNARY.format(
        unusual=unusual, unrecorded=here, recorded=indented(plain + node_source(op, scope, 1) if recorded else PLAIN, 4)
    )


def binary_source(op: Op, scope: dict[str, Any], recorded: bool = True) -> str:
    """Source of an elementwise operator on two tensors, or a tensor and a number."""
    scope["halves"] = halves_of(op)
    numbers = "False" if op.strict else "other.__class__ is float or other.__class__ is int"
    result = "run(x, w)"
    if op.large is not None:
        scope["large"], scope["LARGE"] = op.large, LARGE
        result = "run(x, w) if x.nbytes < LARGE else large(x, w)"
    lines = binary_lines(op, scope) if recorded else PLAIN
    here = unrecorded_here(" and out is None and isinstance(input, Tensor) and isinstance(other, PLAIN)", 8)
    checked = "" if op.check is None or op.ufunc is not None else "if d.itemsize == 2:\n        op.check((x, w))"
    return BINARY.format(
        unusual=unusual(op),
        unrecorded=here,
        numbers=numbers,
        held=number_source(op),
        checked=checked,
        result=result,
        recorded=indented(lines, 4),
    )


def unchecked(op: Op) -> Set[np.dtype[Any]]:
    """Dtypes of 16 bits as `halves_of` says, where nothing else is asked of the arrays."""
    return halves_of(op) if op.check is None or op.ufunc is not None else frozenset()


def number_source(op: Op) -> str:
    """A Python number as the general path has it beside 16 bits; None where it does more about it."""
    if op.exact:
        return "None"
    return (
        "other if other.__class__ is float and d is not F16 else held(d, other)"
        if op.knows_numbers
        else "held(d, other)"
    )


def unusual(op: Op) -> str:
    """The condition under which a dtype `d` beside `other` is left to the general path."""
    whole = "isinstance(other, Tensor) or (other.__class__ is int and -BEYOND <= other < BEYOND)"
    if "f" in op.refuse:
        return f"(d is not BOOL or not isinstance(other, Tensor)) and (d is not I64 or not ({whole}))"
    floats = "d is not F32 and d is not F64 and (d not in halves or x.nbytes > LARGE_HALVES)"
    return f"{floats} and (d is not I64 or not ({whole}))" if of_integers(op) else floats


def of_integers(op: Op) -> bool:
    """Whether the forward is as it is for int64 too, and for Python integers beside it."""
    return (op.ufunc is not None or op.integers) and op.promote != "float" and "i" not in op.refuse


def binary_lines(op: Op, scope: dict[str, Any]) -> str:
    """The lines that record a result of two tensors, or a tensor and a number."""
    lines = ["if ex is not None:", "    if ey is not None:", f"        {indented(node_source(op, scope, 3), 8)}"]
    if not op.strict:
        lines += ["    if y is other:", f"        {indented(node_source(op, scope, 1, True), 8)}"]
    lines += [f"    {indented(node_source(op, scope, 1), 4)}"]
    return "\n".join([*lines, "if ey is not None:", f"    {indented(node_source(op, scope, 2), 4)}", PLAIN])


def unary(op: Op) -> Callable[..., Any]:
    """The public function of an elementwise operator on one tensor without statics."""
    return written(op, unary_source, run=runner(op))


def binary(op: Op, slow: Callable[..., Any] = fast.slow) -> Callable[..., Any]:
    """The public function of an elementwise operator on two tensors, or a tensor and a number, without statics.

    slow: what is called where the fast path does not apply.
    """
    return written(op, binary_source, run=runner(op), slow=slow)


# Any fixed number of tensors, with statics ------------------------------------------------------------------------

HEAD = """
def call(*args, **kwargs):
    if kwargs or len(args) != {count}:
        rest = None if kwargs else rests.get(len(args))
        if rest is None:
            args, out = completed(op, args, kwargs)
            if out is not None:
                return slow(op, args[:{n}], out, args[{n}:])
        else:
            args += rest
    {names} = args
    {array}
    tensors, mask, kind = False, 0, None
"""

# One array, of which formulas make the gradients that no graph records.
ARRAY = """
if a0.__class__ is ndarray and (a0.dtype is F32 or a0.dtype is F64):
    x0 = a0
    {result}
    return result if result.__class__ is ndarray else asarray(result)
"""

INPUT = """
    e{i} = None
    if isinstance(a{i}, Tensor):
        if special.count:
            {unrecorded}(*args)
            return slow(op, {inputs}, None, {statics})
        tensors, x{i} = True, a{i}.{memory}
        e{i} = a{i}._edge
        if a{i}._view is not None:
            e{i} = edge_of(a{i})
            if e{i}.__class__ is Severed:
                return slow(op, {inputs}, None, {statics})
        if e{i} is not None:
            mask |= {bit}
            if e{i} is LEAF:
                e{i} = a{i}
    elif a{i}.__class__ is ndarray or a{i} is None:
        x{i} = a{i}
    else:
        return slow(op, {inputs}, None, {statics})
"""

DTYPE = """
    if x{i} is not None:
        d = x{i}.dtype
        if d is not kind:
            if (d is not F32 and d is not F64 and (d not in halves{large}){plain}){unlike}:
                {forget}
                return slow(op, {inputs}, None, {statics})
            kind = d
"""

TAIL = """
    {result}
    if result.__class__ is not ndarray:
        result = asarray(result)
    if not tensors:
        return result
    t = bare()
    t._array = result
    t._edge = t._storage = t._view = None
"""

# Of several outputs, which are recorded as everywhere.
SEVERAL = """
    {result}
    results = tuple([x if x.__class__ is ndarray else asarray(x) for x in result[:{count}]])
    if not tensors:
        return results
    results = tuple([wrap(x) for x in results])
"""

RUN = """
try:
    result = {forward}
except Exception as error:
    {sizes}
    fitting.statics(op, {statics})
    raise
"""
SIZES = "if error.__class__ is ValueError:\n        check_broadcast(op.name, ({arrays},))"


def fixed_source(op: Op, scope: dict[str, Any], recorded: bool = True) -> str:
    """Source of an operator on a fixed number of tensors, with statics."""
    scope["halves"] = unchecked(op)
    n, count = len(op.tensors), len(op.names)
    names = [f"a{i}" for i in range(count)]
    inputs, statics = (f"({''.join(f'{a}, ' for a in part)})" for part in (names[:n], names[n:]))
    forget = " = ".join([*(f"x{i}" for i in range(n)), "None"])
    same = " or kind is not None" if op.promote is not None else ""
    plain = ' and d.kind not in "biu"' if takes_all(op) else " and d is not I64" if op.integers else ""
    large = " or x{i}.nbytes > LARGE_HALVES" if op.broadcasts else ""
    arrays = ", ".join(f"x{i}" for i in range(n))
    compared = ", ".join(f"x{i}" for i in op.broadcasts)
    values = ", ".join([arrays, *names[n:]])
    forward = f"forward({values})"
    if op.planes and op.aux and op.formulas and recorded:
        forward += f" if mask else unkept(forward, {values})"
    if op.broadcasts or op.static_names:
        result = RUN.format(
            forward=forward, sizes=SIZES.format(arrays=compared) if op.broadcasts else "", statics=statics
        )
    else:
        result = f"result = {forward}"
    several = op.out_count != 1
    if op.aux and not several:
        result += "\naux = result[1:]\nresult = result[0]"
    alone = indented(ARRAY.format(result=indented(result, 4)), 4) if n == 1 and not op.aux and not several else ""
    source = HEAD.format(count=count, n=n, names="".join(f"{a}, " for a in names), array=alone)
    for i in range(n):
        memory = "_held" if op.view else "_array"  # views are made of memory: see `fast.note_view`
        source += INPUT.format(
            i=i, unrecorded=unrecorded_here("", 12), bit=1 << i, inputs=inputs, statics=statics, memory=memory
        )
        if not op.free >> i & 1:
            source += DTYPE.format(
                i=i, unlike=same, plain=plain, large=large.format(i=i), inputs=inputs, statics=statics, forget=forget
            )
    if several:
        source += SEVERAL.format(result=indented(result, 4), count=op.out_count)
        if op.formulas and recorded:
            source += f"    if mask:\n        record_all(op, {inputs}, {statics}, results, result[{op.out_count}:])\n"
        return source + "    return results\n"
    source += TAIL.format(result=indented(result, 4))
    if op.view:
        source += f"    if a0.__class__ is not ndarray:\n        note_view(op, t, a0, {statics})\n"
    if op.formulas and recorded:
        edges = "".join(f"e{i}, " if op.target_mask >> i & 1 else "None, " for i in range(n))
        aux = "aux" if op.aux else "None"
        tracked = "mask and not t._inference" if op.view else "mask"
        source += f"    if {tracked}:\n        record(op, table, t, {inputs}, {statics}, ({edges}), mask, {aux})\n"
    return source + "    return t\n"


def takes_all(op: Op) -> bool:
    """Whether the general path gives the forward integers and bools as they are, and its results back."""
    return op.promote is None and op.half is None and op.ufunc is None and op.check is None and not op.refuse


def fixed(op: Op) -> Callable[..., Any]:
    """The public function of an operator on a fixed number of tensors, with statics."""
    return written(op, fixed_source, forward=op.forward, table={}, rests=rests(op))


def rests(op: Op) -> dict[int, tuple[Any, ...]]:
    """The last arguments by how many are given, where all that are not have defaults."""
    found: dict[int, tuple[Any, ...]] = {}
    rest: tuple[Any, ...] = ()
    for count in range(len(op.names) - 1, len(op.tensors) - 1, -1):
        name = op.names[count]
        if name not in op.defaults:
            break
        rest = (op.defaults[name], *rest)
        found[count] = rest
    return found
