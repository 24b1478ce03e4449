"""Custom functions: `Function`, the context that the user's forward and backward share, and the node."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from rushlight.autograd.function_arguments import by_position, places, positional, refuse_keywords, with_defaults
from rushlight.autograd.function_checks import RawSaved, check_dirty, check_gradients, check_saved, refuse_composed
from rushlight.autograd.nested_values import _nested_map as _nested_map
from rushlight.basics import events
from rushlight.basics.caller import warn
from rushlight.basics.state import Setting, modes, set_mode, special
from rushlight.basics.tree import tree_leaves
from rushlight.dispatch.call import saved_hooks
from rushlight.engine import anomaly, inplace
from rushlight.engine.conform import tensor_functions
from rushlight.engine.node import Error, Node, Port, edge_of, edge_or_refusal, next_seq
from rushlight.engine.rows import Rows
from rushlight.engine.saved import Packed, SavedOutput, freed, stale
from rushlight.engine.views import make_view
from rushlight.ops.shape.reshape import reshape_op
from rushlight.overrides.protocol import users
from rushlight.storage import storage_of
from rushlight.tensor import Tensor, alias, wrap

OF_THE_NODE = frozenset(
    {"metadata", "next_functions", "register_hook", "register_prehook", "_input_metadata", "_sequence_nr"}
)


class FunctionCtx:
    """The `ctx` that the static methods of a custom function receive: the user may set any attribute on it.

    Its node is another object, so that no attribute of the user's can be one of the engine's.  It shares the attributes
    that are set, passes for an instance of the node's class, and has the node's hooks and edges.
    """

    _weak: Any = None  # the node, which holds this object

    _node: Any = None  # the node, while backward or the user looks at what was saved
    _saved: Any = ()
    _recorded = False
    _accessed = False  # whether what was saved is given away: see `clear_saved_tensors_on_access`
    materialize_grads = True
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    to_save: tuple[Any, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()
    _pushing = False  # whether jvp runs
    _of_view: Any = None  # while the node runs for a view that forward changed: the edge of that view as it then was
    _tensors: Any = None  # which arguments of forward were tensors
    extra = None  # of a node: `stale` asks for the traceback that anomaly mode kept

    def __init__(self, function: Any, needs_input_grad: tuple[bool, ...]):
        self._function, self.needs_input_grad = function, needs_input_grad

    @property
    def __class__(self) -> Any:  # what isinstance() looks at
        return self._function._node_class

    @__class__.setter
    def __class__(self, kind: object) -> None:
        raise TypeError("__class__ of the context of a custom function cannot be set")

    def __getattr__(self, name: str) -> Any:
        node = self._weak() if name in OF_THE_NODE and self._weak is not None else None
        if node is None:
            raise AttributeError(f"'{self._function.__name__}Backward' object has no attribute '{name}'")
        return getattr(node, name)

    def name(self) -> str:
        """The name of the node."""
        return f"{self._function.__name__}Backward"

    def save_for_backward(self, *tensors: object) -> None:
        """Keep inputs or outputs (tensors or None) for backward: at most one call, from forward or setup_context.

        TypeError for anything else where the call is recorded.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: object) -> None:
        """Keep tensors for jvp."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def maybe_clear_saved_tensors(self) -> None:
        """Free what was saved, in a backward that keeps no graph."""
        if modes.run is not None and not modes.run.keep:
            self._saved = None

    def mark_dirty(self, *args: object) -> None:
        """Say that forward changed these inputs in place."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: object) -> None:
        """Say that these outputs have no gradient."""
        for t in args:
            if not isinstance(t, Tensor):
                raise RuntimeError(
                    f"mark_non_differentiable only accepts variable arguments, but got {type(t).__name__}"
                )
        self.non_differentiable = args

    def mark_shared_storage(self, *pairs: object) -> None:
        """Refused, as in PyTorch: shared storage is noticed by itself."""
        raise DeprecationWarning(
            "mark_shared_storage is deprecated: tensors with shared storages are automatically tracked."
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not arrive come to backward as zeros (default) or None."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept; in jvp, what save_for_forward did."""
        if self._pushing and self.saved_for_forward:
            return self.saved_for_forward
        if not self._recorded:
            return self.to_save
        if self._saved is None:
            freed(self) if not self._accessed else accessed(self)
        found = tuple([self._unpack(entry) for entry in self._saved])
        if self._function.clear_saved_tensors_on_access:
            self._saved, self._accessed = None, True
        return found

    def _unpack(self, entry: Any) -> Any:
        """A saved tensor, its version checked.  RuntimeError where it was changed, or is a view whose history was lost."""
        if entry is None:
            return None
        kept, edge, version = entry
        if edge.__class__ is int:  # an output, whose edge is the node: to hold that would close a cycle
            edge = None if self._node is None else self._of_view or self._node.port(edge)
        if isinstance(edge, RuntimeError):
            raise edge
        if isinstance(kept, Packed):
            return kept.tensor(edge)
        storage = kept.storage if isinstance(kept, SavedOutput) else kept._storage
        found = 0 if storage is None else storage.changes
        if found != version:
            array = kept.array if isinstance(kept, SavedOutput) else kept._array
            stale(self._node or self, "a saved tensor", array.shape, found, version, storage)
        if isinstance(kept, SavedOutput):
            return kept.tensor(edge)
        if kept._view is not None:  # a view that has no history any more is refused before backward computes with it
            edge_of(kept)
        return kept

    def _save(self, node: FunctionNode, outputs: list[Any]) -> None:
        """Turn what the user saved into what the context keeps."""
        hooks = saved_hooks()
        saved: list[Any] = []
        given, self.to_save = self.to_save, ()  # before hooks raise: an output would hold its node, which holds this
        for t in given:
            nr = last_place(t, outputs)  # as `finish` takes the last
            if t is None:
                saved.append(None)
            elif nr is not None and made_by(node, t):
                kept: Any = Packed(t, hooks, (self.name(), "result"), True) if hooks else SavedOutput(t, nr)
                saved.append((kept, nr, counted(t)))
            elif hooks:
                packed = Packed(t, hooks, (self.name(), "a saved tensor"))
                saved.append((packed, edge_or_refusal(t), 0))
            else:
                if (
                    nr is not None and t._edge is None
                ):  # what is not differentiable may be changed to depend on the node
                    t = alias(t)
                saved.append((t, None, counted(t)))
        self._saved, self._recorded = saved, True

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """An older name of `saved_tensors`."""

        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            freed(self)
        return tuple(RawSaved(self, i) for i in range(len(self._saved)))


def accessed(ctx: FunctionCtx) -> NoReturn:
    """Raise the error for what was given away when it was asked for before."""
    raise RuntimeError(
        f"{ctx.name()}: saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
        "function, which frees them then: keep what it gave in a variable, or leave the attribute out"
    )


def ends(edge: Any) -> bool:
    """Whether an edge leads to an input of a function transformation that is a constant to those outside."""
    return getattr(edge, "leaf_like", False) and edge.edges == (None,)


def leads(edges: Any) -> bool:
    """Whether any edge leads somewhere."""
    for edge in edges:
        if edge is not None:
            return True
    return False


def among(x: object, some: Any) -> bool:
    """Whether an object is one of some: itself, not its equal."""
    for each in some:  # many times faster than `any` of a generator
        if each is x:
            return True
    return False


def last_place(x: object, some: list[Any]) -> int | None:
    """The last place at which a list holds this object, None for none."""
    for k in range(len(some) - 1, -1, -1):
        if some[k] is x:
            return k
    return None


def counted(t: Tensor) -> int:
    """The version of a tensor that is saved.  Raises RuntimeError for one of inference mode, which has none."""
    return storage_of(t).version if t._inference else t._version


def made_by(node: object, t: Tensor) -> bool:
    """Whether a tensor's place in the graph is this node, or, of a view that forward changed, one around it."""
    if t._view is not None and getattr(t._view.base._edge, "fn", None) is node:
        return True
    return getattr(t._edge, "node", None) is node


class FunctionNode(Node):
    """The node of a custom function; what it does not know itself, its context does."""

    __slots__ = ("count", "ctx")
    count: int

    def __init__(self, ctx: FunctionCtx, edges: tuple[Any, ...]):
        _set_ctx(self, ctx)
        _set_edges(self, edges)
        _set_extra(self, None)
        _set_seq(self, next_seq())
        ctx._weak = weakref.ref(self)

    def input_places(self) -> tuple[int, ...] | None:
        """The arguments of forward that were tensors: others have no place in the graph that those outside see."""
        tensors = self.ctx._tensors
        return None if tensors is None or all(tensors) else tuple(i for i, seen in enumerate(tensors) if seen)

    def __setattr__(self, name: str, value: object) -> None:
        """Set what is the engine's here, and everything else on the context, where backward sees it."""
        (object.__setattr__ if hasattr(type(self), name) else _set_on_context)(self, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.ctx, name)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>"

    def __getattr__(self, name: str) -> Any:
        ctx = self.ctx
        former, ctx._node = ctx._node, self
        try:
            return getattr(ctx, name)
        finally:
            ctx._node = former

    @property
    def runs_without_grad(self) -> bool:  # type: ignore[override]
        # Not with None: often none comes here where zeros come in PyTorch.
        return bool(self.ctx.materialize_grads)

    def of_view(self, edge: object) -> None:
        """Take `edge` for that of the outputs that were saved, until None is given: see `CopySlices`."""
        self.ctx._of_view = edge

    def port(self, nr: int) -> Any:
        """The edge of output `nr`."""
        return self if self.count == 1 else Port(self, nr)

    def release(self) -> None:
        if self.ctx._recorded and self.ctx._saved:
            self.ctx._saved = None

    def run(self, g: Any, wanted: int) -> Any:
        grads = [None if x is None else wrap(x) for x in (g if self.count != 1 else [g])]
        results = self.call_backward(grads, False, wanted)
        if Rows.sparse:
            results = [r if r is None or not r.is_sparse else tensor_functions["rows"](r) for r in results]
        return [r._array if isinstance(r, Tensor) else r for r in results]

    def run_tensors(self, g: Any, wanted: int) -> Any:
        return self.call_backward(list(g) if self.count != 1 else [g], True, wanted)

    def call_backward(self, grads: list[Any], create: bool, wanted: int) -> list[Any]:
        """Run the user's backward and check what it returned: a gradient or None for each argument of forward.

        wanted: the mask of edges that lead somewhere. Of a function transformation what it captured is a constant.
        """
        ctx = self.ctx
        if ctx.materialize_grads and among(None, grads):
            self.materialize(grads)
        fn = ctx._function
        backward = fn.backward
        if backward is Function.backward:
            backward = fn.vjp
        elif fn.vjp is not Function.vjp:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                               "implement one of them.")  # fmt: skip
        former, ctx._node = ctx._node, self
        grad = set_mode("grad", create and modes.grad)
        try:
            results = users(backward, ctx, grads) if fn.boxed_grads_call else users(backward, ctx, *grads)
        finally:
            set_mode("grad", grad)
            ctx._node = former
        given = list(results) if isinstance(results, (tuple, list)) else [results]
        edges = self.open_edges(wanted)
        found = check_gradients(ctx, given, edges, ctx._tensors)
        if edges is self.edges:
            return found
        return [r if edge is own else None for r, edge, own in zip(found, edges, self.edges, strict=True)]

    def materialize(self, grads: list[Any]) -> None:
        """Put zeros where no gradient arrived for an output that is a tensor."""
        shapes, kinds = (self.shape, self.dtype) if self.count != 1 else ([self.shape], [self.dtype])
        for k, g in enumerate(grads):
            if g is None and shapes[k] is not None:
                grads[k] = wrap(np.zeros(shapes[k], kinds[k]))

    def open_edges(self, wanted: int) -> Sequence[Any]:
        """The edges, with None for those that lead nowhere; themselves, where all lead somewhere."""
        if modes.transform is not None:
            return [edge if wanted >> i & 1 else None for i, edge in enumerate(self.edges)]
        for edge in self.edges:
            if ends(edge):
                return [None if ends(edge) else edge for edge in self.edges]
        return self.edges  # type: ignore[no-any-return]


# The engine's own attributes, set without asking `__setattr__` whose they are.
_set_ctx, _set_count = vars(FunctionNode)["ctx"].__set__, vars(FunctionNode)["count"].__set__
_set_edges, _set_extra, _set_seq = (vars(Node)[name].__set__ for name in ("edges", "extra", "seq"))
_set_shape, _set_dtype = vars(Node)["shape"].__set__, vars(Node)["dtype"].__set__


def _set_on_context(node: Any, name: str, value: Any) -> None:
    setattr(node.ctx, name, value)


class Function:
    """An operation with a backward of its own: subclass it with static methods `forward` and `backward`.

    Either `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`; `backward(ctx, *grads)`
    returns a gradient or None for each argument of forward; `jvp(ctx, *tangents)` serves forward mode. Call `apply`.

    >>> import rushlight as torch
    >>> class Exp(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (y,) = ctx.saved_tensors
    ...         return grad * y
    >>> x = torch.zeros(1, requires_grad=True)
    >>> Exp.apply(x).backward()
    >>> x.grad
    tensor([1.])

    Attributes of the class: generate_vmap_rule, whether `vmap` goes through forward and backward themselves.
    clear_saved_tensors_on_access: what was saved is free once backward has asked for it, which it may do once.
    boxed_grads_call: backward gets one list of gradients, which it may empty to free them early.
    """

    generate_vmap_rule = clear_saved_tensors_on_access = boxed_grads_call = False
    _node_class: Any = None

    def __init__(self, *args: object, **kwargs: object):
        warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
                      "invoke them on the class itself: call apply().", DeprecationWarning)  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused, as in PyTorch: functions are applied by their class."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method, and call apply()."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; nothing inside is recorded."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepare `ctx` for backward, where forward does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """Gradients of the arguments of forward, given those of its outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")  # fmt: skip

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **kwargs: Any) -> Any:
        """Tangents of the outputs, given those of the arguments of forward."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")  # fmt: skip

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs and their batch dimensions for batched arguments."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap static method "
                                  "or set generate_vmap_rule=True.")  # fmt: skip

    @classmethod
    def apply(cls, *args: Any, **kwargs: object) -> Any:
        """Run forward and record it: one tensor, or the tuple that forward returned."""
        told = kwargs.pop("_told", False) if kwargs else False  # whether the observers know of this call
        if special.observing and not told:
            run = functools.partial(cls.apply, *args, _told=True, **kwargs)
            return events.observed(events.FUNCTION, cls, args, (), run)
        if cls.__dict__.get("_node_class") is None:
            cls._node_class = type(
                f"{cls.__name__}Backward", (FunctionNode,), {"__slots__": (), "__module__": "torch.autograd.function"}
            )
        if cls.setup_context is not Function.setup_context and (kwargs or len(args) < positional(cls.forward)):
            args, kwargs = with_defaults(cls, args, kwargs), {}
        elif kwargs:
            args, kwargs = by_position(cls, args, kwargs)
        if special.count and modes.levels:
            level = next((level for level in reversed(modes.levels) if level.owns(tuple(tree_leaves(args)))), None)
            if hasattr(level, "randomness"):
                from rushlight.autograd import function_vmap

                if kwargs:
                    refuse_keywords(cls, kwargs, "inside vmap")
                return function_vmap.apply(level, cls, args)
        edges, needed, tensors = places(args)
        ctx = FunctionCtx(cls, needed)
        ctx._tensors = tensors
        if Rows.composed and modes.grad:
            refuse_composed(cls, args, needed)
        node = cls._node_class(ctx, edges)
        if modes.levels:
            return cls._in_levels(node, args, kwargs)
        result = finish(node, args, cls._run(ctx, args, kwargs))
        ctx.saved_for_forward = ()
        return result

    @classmethod
    def _run(cls, ctx: FunctionCtx, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What forward returns; `ctx` is set up."""
        grad = set_mode("grad", False)
        try:
            if cls.setup_context is Function.setup_context:
                return cls.forward(ctx, *args, **kwargs)
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
            return output
        finally:
            set_mode("grad", grad)

    @classmethod
    def _in_levels(cls, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """As `apply` while levels are active: tangents of the arguments go through jvp, not through forward."""
        from rushlight.autograd import function_jvp

        ctx = node.ctx
        pushes = function_jvp.pushes(args)
        with Setting("forward_grad", modes.forward_grad and not pushes):
            output = cls._run(ctx, args, kwargs)
        several = output if isinstance(output, (tuple, list)) else (output,)
        constant = tuple(k for k, out in enumerate(several) if any(out is x for x in ctx.non_differentiable))
        result = finish(node, args, output)
        try:
            if pushes:
                function_jvp.push(ctx, args, result, constant)
        finally:
            ctx.saved_for_forward = ()  # outputs among them lead to the node, which keeps `ctx`
        return result


def finish(node: FunctionNode, args: tuple[Any, ...], output: Any) -> Any:
    """Give the outputs of a custom function their place in the graph."""
    ctx = node.ctx
    if output.__class__ is Tensor and output._edge is None and output._view is None and not among(output, args):
        if not (ctx.dirty_tensors or ctx.non_differentiable or ctx.saved_for_forward):
            return finish_one(node, output)
    several = isinstance(output, (tuple, list))
    outputs = list(output) if several else [output]
    recorded = modes.grad and leads(node.edges)
    if recorded:
        check_saved(ctx.to_save)  # before anything has its place in the graph
    ctx.dirty_tensors = check_dirty(ctx, args, outputs, recorded) if ctx.dirty_tensors else ()
    inputs = returned_inputs(ctx, args, outputs)
    for t in ctx.dirty_tensors:
        if recorded and differentiable(ctx, t):
            inplace.check(t, True)
        inplace.written(t, ctx.name())
    node.count = len(outputs)
    if recorded and modes.anomaly is not None:
        anomaly.note(node)
    results: list[Any] = []
    for k, out in enumerate(outputs):
        repeated = isinstance(out, Tensor) and among(out, outputs[:k])
        results.append(
            again(node, args, outputs, results, inputs, recorded) if repeated else place(node, args, out, k, recorded)
        )
    shapes = [out._array.shape if isinstance(out, Tensor) else None for out in results]
    kinds = [out._array.dtype if isinstance(out, Tensor) else None for out in results]
    node.shape, node.dtype = (shapes, kinds) if node.count != 1 else (shapes[0], kinds[0])
    inputs += [t for t in ctx.dirty_tensors if not differentiable(ctx, t)]  # they too are shown by aliases
    if recorded:
        ctx.to_save = tuple(renamed(t, outputs, results, inputs) for t in ctx.to_save)
        ctx._save(node, results)
    if ctx.saved_for_forward:
        ctx.saved_for_forward = tuple(renamed(t, outputs, results, inputs) for t in ctx.saved_for_forward)
    # Tensors held by the context as attributes of ours would close cycles through their edges.
    ctx.dirty_tensors = ctx.non_differentiable = ()
    return (results if isinstance(output, list) else tuple(results)) if several else results[0]


def finish_one(node: FunctionNode, out: Tensor) -> Tensor:
    """As `finish`, of one output that forward made."""
    array, ctx = out._array, node.ctx
    _set_count(node, 1)
    _set_shape(node, array.shape)
    _set_dtype(node, array.dtype)
    if modes.grad and leads(node.edges):
        check_saved(ctx.to_save)
        if modes.anomaly is not None:
            anomaly.note(node)
        if array.dtype.kind not in "biu":
            out._edge = node
        ctx._save(node, [out])
    return out


def again(node: FunctionNode, args: tuple[Any, ...], outputs: list[Any], results: list[Any], inputs: list[Any],
          recorded: bool) -> Any:  # fmt: skip
    """The next output, which is the same tensor as one before.  results: those so far."""
    k = len(results)
    out = outputs[k]
    former = results[next(j for j in range(k) if outputs[j] is out)]
    if inside_func() and not among(out, node.ctx.dirty_tensors):
        return place(node, args, alias(out), k, recorded)  # inside of torch.func, each output is its own
    if (former is not out and among(out, args)) or among(out, inputs):
        return place(node, args, out, k, recorded)  # an input that is shown by aliases
    if former._edge is not None and recorded:
        former._edge = node.port(k)  # one tensor returned twice is the last of its outputs
    return former


def inside_func() -> bool:
    """Whether a transformation of `torch.func` runs: of gradients, or of tangents."""
    return modes.transform is not None or any(getattr(level, "of_function", False) for level in modes.levels)


def returned_inputs(ctx: Any, args: tuple[Any, ...], outputs: list[Any]) -> list[Any]:
    """The inputs that are outputs as they are, unchanged.  RuntimeError where one is saved, if setup_context is overridden."""
    found = [x for x in args if isinstance(x, Tensor) and among(x, outputs) and not among(x, ctx.dirty_tensors)]
    if found and ctx._function.setup_context is not Function.setup_context:
        kept = (*ctx.to_save, *ctx.saved_for_forward)
        if any(t is x and (differentiable(ctx, x) or not x.requires_grad) for t in kept for x in found):
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
                "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
                "setup ctx inside the forward function itself."
            )
    return found


def differentiable(ctx: Any, out: Tensor) -> bool:
    """Whether an output is to have a gradient where the call is recorded."""
    return out._array.dtype.kind not in "biu" and not among(out, ctx.non_differentiable)


def renamed(t: object, outputs: list[Any], results: list[Any], inputs: list[Any]) -> Any:
    """The tensor that stands for an output which was returned under another object; inputs: they stay what they are."""
    if not among(t, outputs) or among(t, inputs):
        return t
    return next(r for out, r in zip(outputs, results, strict=True) if out is t)


def place(node: FunctionNode, args: tuple[Any, ...], out: Any, k: int, recorded: bool) -> Any:
    """One output, with its edge."""
    if not isinstance(out, Tensor):
        return out
    is_input, recorded = among(out, args), recorded and differentiable(node.ctx, out)
    if is_input and not recorded and out.requires_grad:
        return alias(out)  # the input goes on requiring grad, this output does not
    if among(out, node.ctx.dirty_tensors):
        if recorded:
            node.shape, node.dtype = out._array.shape, out._array.dtype
            inplace.rebase(out, node.port(k))
        return out
    if is_input or (out._edge is not None and recorded):
        of, out = out, alias(out)
        if is_input and not of._inference:
            kind = "function" if recorded else "as it is"
            make_view(out, of, reshape_op.op, (of._array.shape,), None, kind)
    elif out._view is not None and recorded:
        out._view = copy.copy(out._view)
        out._view.kind = "multi" if node.count > 1 else "function"
        out._view.version = out._storage.version  # what forward did to it is part of what the function does
    if recorded:
        out._edge = node.port(k)
    return out


class InplaceFunction(Function):
    """An older base class of functions that may work in place: `inplace` is an attribute of its instances."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


BackwardCFunction, FunctionMeta = FunctionNode, type  # PyTorch's names


ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot be differentiated: differentiating its results raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx: FunctionCtx, *grads: object) -> Any:
        recording = modes.grad
        with Setting("grad", False):
            outputs = fn(ctx, *grads)
        if not recording or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return outputs
        several = isinstance(outputs, (tuple, list))
        edges = tuple(edge_of(g) for g in grads if isinstance(g, Tensor) and g.requires_grad)
        made = []
        for t in outputs if several else (outputs,):
            if isinstance(t, Tensor):
                t = alias(t)
                t._edge = Error(edges, t._array, RuntimeError, ONCE)
            made.append(t)
        return tuple(made) if several else made[0]

    return wrapper
