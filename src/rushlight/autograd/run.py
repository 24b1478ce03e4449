"""backward and grad."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rushlight.basics import caller, dtypes
from rushlight.basics.caller import warn
from rushlight.basics.dtypes import is_complex
from rushlight.basics.errors import explained
from rushlight.basics.foreign import kind_of
from rushlight.basics.size import Size
from rushlight.basics.state import modes, special
from rushlight.dispatch.registry import known_as
from rushlight.engine.conform import fits, tensor_functions
from rushlight.engine.hooks import retain_grad
from rushlight.engine.node import AccumulateGrad, Node, Port, Severed, accumulator, edge_of
from rushlight.engine.reach import count_contributions
from rushlight.engine.rows import Rows
from rushlight.engine.run import Run
from rushlight.tensor import Tensor, wrap


class GradientEdge(NamedTuple):
    """A place in the graph: output `output_nr` of `node`."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that the gradient of `tensor` flows along.  Raises RuntimeError if it does not require grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    fn = tensor.grad_fn
    return GradientEdge(accumulator(tensor) if fn is None else fn, tensor.output_nr)


def engine_edge(x: Tensor | GradientEdge) -> Any:
    """The engine's edge of a tensor or GradientEdge: a leaf, a node, a port, or None."""
    if isinstance(x, Tensor):
        return edge_of(x)
    if not isinstance(x, GradientEdge):
        raise AssertionError(f"Expected output to be a torch.Tensor or a GradientEdge, got {kind_of(x)}")
    if isinstance(x.node, AccumulateGrad):
        return x.node.variable
    return x.node if x.node.count == 1 else Port(x.node, x.output_nr)


def as_tuple(x: Any) -> tuple[Any, ...]:
    """One tensor or edge, or a sequence of them, as a tuple."""
    if x is None:
        return ()
    return (x,) if isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def expected(x: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and NumPy dtype of the gradient of a tensor or edge."""
    if isinstance(x, Tensor):
        return x._array.shape, x._array.dtype
    edge = engine_edge(x)
    like = edge._array if isinstance(edge, Tensor) else edge
    return like.shape, like.dtype


def initial(outputs: tuple[Any, ...], grads: tuple[Any, ...], batched: bool = False) -> list[Any]:
    """The gradients to start from: those given, or ones for outputs of one element."""
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made: list[Any] = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=True)):
        shape, dtype = expected(out)
        if g is None:
            made.append(implicit(out, shape, dtype))
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {kind_of(g)}")
        else:
            check_gradient(g, shape, dtype, i)
            made.append(g)
    return made


def implicit(out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor | None:
    """A gradient of one for an output of one real element."""
    if isinstance(out, Tensor) and not out.requires_grad:
        return None
    if math.prod(shape) != 1:
        raise explained(RuntimeError("grad can be implicitly created only for scalar outputs"), "not-a-scalar")
    if is_complex(dtype):
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtypes.of(dtype)}")
    if without_memory((out,)):
        return special.meta.root(out)  # type: ignore[no-any-return]
    if isinstance(out, Tensor) and out._dispatched:
        return special.classes.ones(out)  # type: ignore[no-any-return]
    return wrap(np.array(1, dtype, ndmin=len(shape)))


def check_gradient(g: Tensor, shape: tuple[int, ...], dtype: np.dtype[Any], i: int) -> None:
    """Raise RuntimeError unless `g` fits output `i`, of that shape and dtype."""
    if g._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape!r} and output[{i}] has a shape of "
            f"{Size(shape)!r}."
        )
    if is_complex(g._array.dtype) != is_complex(dtype):
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                           f"dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of "
                           f"{dtypes.of(dtype)}.")  # fmt: skip


def roots_of(outputs: tuple[Any, ...], grads: list[Any]) -> list[tuple[Any, Tensor]]:
    """(edge, gradient) of every output.  Raises RuntimeError for an output outside the graph."""
    roots = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=True)):
        edge = engine_edge(out)
        if edge is None or (edge.__class__ is Severed and out._edge is None):
            raise explained(
                RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn"), "no-grad"
            )
        dtype = expected(out)[1]
        if Rows.sparse and g.is_sparse:
            g = g.to(dtypes.of(dtype))
        elif g._array.dtype != dtype and g._edge is None:
            plain = g._array.__class__ is np.ndarray
            g = wrap(g._array.astype(dtype)) if plain else tensor_functions["cast"](g, dtype)
        shape = getattr(edge._array if isinstance(edge, Tensor) else edge, "shape", None)
        roots.append((edge, g if shape is None or g._array.shape == shape else of_place(g, shape, i)))
    return roots


def of_place(g: Tensor, shape: tuple[int, ...], i: int) -> Tensor:
    """The gradient of output `i`, summed to the shape that it had when it was computed: `set_` or `.data` gave it another.

    Raises RuntimeError where it cannot be summed to that.
    """
    have = g._array.shape
    if not fits(have, shape):
        raise RuntimeError(
            f"invalid gradient at index {i} - got {list(have)} but expected shape compatible with {list(shape)}: output[{i}] "
            "was computed with that shape, and was given another one since, by set_() or .data"
        )
    return tensor_functions["sum_to_size"](g, shape)  # type: ignore[no-any-return]


def target_key(x: Tensor | GradientEdge, i: int, what: str) -> tuple[Any, int]:
    """The run's key of input `i`.  Raises RuntimeError for one outside the graph."""
    if not isinstance(x, (Tensor, GradientEdge)):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {kind_of(x)}")
    edge = engine_edge(differentiated(x))
    if edge is None:
        raise RuntimeError(f"One of the differentiated Tensors does not require grad: input {i} of {what}()")
    return (edge, 0) if isinstance(edge, Tensor) else (edge.node, edge.nr)


def differentiated(x: Any) -> Any:
    """The tensor that the graph knows of an input: of a sparse one its values."""
    return getattr(x, "_values_of", x)


def target_keys(inputs: tuple[Any, ...], what: str) -> list[Any]:
    """The run's key of each input."""
    return [target_key(x, i, what) for i, x in enumerate(inputs)]


CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between a parameter and its gradient, whose graph "
    "leads back to it, so that neither is freed before the cycle collector runs: use autograd.grad(..., create_graph=True), or "
    "set .grad to None after use."
)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:  # fmt: skip
    """Accumulate the sum of gradients of `tensors` into the `.grad` of the graph's leaves (or of `inputs` alone).

    tensors: one or several tensors or gradient edges; grad_tensors: for each, the vector of the vector-Jacobian
    product, of its shape; may be None for outputs of one element. retain_graph: keep what was saved, for another
    backward (default: create_graph). create_graph: record the backward, for derivatives of higher order.

    Raises RuntimeError for outputs outside the graph, for gradients that do not fit, and where the graph was freed.

    >>> import rushlight as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if modes.transform is not None or (special.count and any(hasattr(level, "randomness") for level in modes.levels)):
        raise RuntimeError("backward() called inside a function transformation (torch.func). This is not supported: use "
                           "torch.func.grad or torch.func.vjp instead, or call backward() outside of it.")  # fmt: skip
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph and inputs is None:
        caller.warn(CYCLE)
    if grad_tensors is None and inputs is None and grad_variables is None and is_loss(tensors):
        array, edge = tensors._array, edge_of(tensors)
        shape = getattr(edge, "shape", array.shape)  # that it was computed with: `set_` may have given it another since
        roots = [(edge, wrap(np.array(1, array.dtype, ndmin=len(shape))))]
        run = accumulating(keep, create_graph or (special.count > 0 and of_levels(roots)))
        run.record = create_graph
        if special.launcher is None:
            run.execute(roots)
        else:
            special.launcher(run, roots)
        return
    outputs = as_tuple(tensors)
    if grad_variables is not None:
        grad_tensors = renamed(grad_tensors, grad_variables)
    given = as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(outputs)
    wanted = None if inputs is None else as_tuple(inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = roots_of(outputs, initial(outputs, given))
    targets: Any = None
    if wanted is not None:
        targets = {}
        for i, x in enumerate(wanted):
            targets[target_key(x, i, "backward")] = []
            if isinstance(x, Tensor):
                retain_grad(x)
    run = accumulating(keep, create_graph or without_memory(outputs) or of_levels(roots), targets)
    run.record = create_graph
    if special.launcher is None:
        run.execute(roots)
    else:
        special.launcher(run, roots)


def accumulating(keep: bool, on_tensors: bool, targets: Any = None) -> Run:
    """A run that adds to `.grad`; where a model estimates its memory and runs backward itself, one without computing."""
    if modes.levels and modes.levels[-1].dry and not on_tensors and targets is None:
        return modes.levels[-1].run(keep)  # type: ignore[no-any-return]
    return Run(keep, on_tensors, targets, True)


def is_loss(x: object) -> bool:
    """Whether `x` is one real number in the graph: the usual case, with nothing else to check."""
    return (isinstance(x, Tensor) and x._edge is not None and not (x._meta or x._dispatched) and x._array.size == 1
            and x._array.dtype.kind == "f")  # fmt: skip


def of_levels(roots: list[tuple[Any, Tensor]]) -> bool:
    """Whether a run that adds to `.grad` is one on tensors for the sake of levels: those of an estimate run it themselves."""
    return bool(modes.levels) and not modes.levels[-1].dry and seen_by_levels(roots)


def seen_by_levels(roots: list[tuple[Any, Tensor]]) -> bool:
    """Whether a run may meet what belongs to an active level, which sees tensors, not arrays: there is such by now, or there may
    be by hooks and custom functions of the graph."""
    if not all(level.idle() for level in modes.levels):
        return True
    for place in count_contributions(roots):
        if isinstance(place, Tensor):
            if place._hooks or place._node_hooks is not None:
                return True
        elif place.extra is not None or place.plan is None:
            return True
    return False


def without_memory(outputs: tuple[Any, ...]) -> bool:
    """Whether a run is one of shapes alone, on the device meta."""
    return special.meta is not None and any(isinstance(x, Tensor) and x._meta for x in outputs)


def renamed(grad_tensors: object, grad_variables: object) -> Any:
    """The older name of `grad_tensors`, with a warning.  Raises RuntimeError where both are given."""

    warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
    if grad_tensors is not None:
        raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                           "only use `grad_tensors`.")  # fmt: skip
    return grad_variables


def grad(outputs: Any, inputs: object, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor, ...]:  # fmt: skip
    """The sum of gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    outputs, inputs: one or several tensors or gradient edges; grad_outputs: as in `backward`. allow_unused: give None
    for inputs that the outputs do not depend on instead of raising; materialize_grads: give zeros. is_grads_batched:
    the first dimension of each of grad_outputs runs over several vector-Jacobian products.

    >>> import rushlight as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    outs, ins = as_tuple(outputs), as_tuple(inputs)
    if not only_inputs:
        warn(
            "grad: the only_inputs argument is deprecated and is ignored now: inputs alone get gradients", FutureWarning
        )
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")  # fmt: skip
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    given = as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return tuple(batched_grad(outs, ins, given, keep, create_graph, allow_unused, materialize_grads))
    roots = roots_of(outs, initial(outs, given))
    keys = target_keys(ins, "grad")
    on_tensors = create_graph or (bool(modes.levels) and seen_by_levels(roots)) or without_memory(outs)
    run = Run(keep, on_tensors, {key: [] for key in keys}, False)
    run.record = create_graph
    found = run.execute(roots)
    results = [found.get(key) for key in keys]
    results = [r if r is None or isinstance(r, Tensor) else wrap(r) for r in results]
    if any(g is not None and g._edge is not None for g in given):
        results = [as_given(r, key, roots) for r, key in zip(results, keys, strict=True)]
    return tuple(finished(r, x, i, allow_unused, materialize_grads, create_graph)
                 for i, (r, x) in enumerate(zip(results, ins, strict=True)))  # fmt: skip


def as_given(result: Any, key: tuple[Any, int], roots: list[tuple[Any, Tensor]]) -> Any:
    """The tensor given for an output that is an input too, with its graph, where it is all of the gradient there."""
    for edge, g in roots:
        node, nr = (edge, 0) if isinstance(edge, Tensor) else (edge.node, edge.nr)
        if result is not None and node is key[0] and nr == key[1] and result._array is g._array:
            return g
    return result


def finished(result: Tensor | None, x: Tensor, i: int, allow_unused: bool, materialize: bool, create: bool) -> Any:
    """A gradient, or what stands for one that did not arrive."""
    known = differentiated(x)
    if result is None and materialize:
        shape, dtype = expected(known)
        result = wrap(np.zeros(shape, dtype)).requires_grad_(create)
    if result is None and not allow_unused:
        raise explained(
            RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if "
                f"this is the desired behavior. It is of shape {list(expected(x)[0])}."
            ),
            "not-in-the-graph",
        )
    return result if known is x or result is None else x._with(result)  # type: ignore[attr-defined]  # a sparse tensor


def batched_grad(
    outs: tuple[Tensor, ...],
    ins: tuple[Tensor, ...],
    given: Any,
    keep: bool,
    create: bool,
    allow: bool,
    materialize: bool,
) -> list[Any]:
    """Gradients for each row of `given`, all in one run."""
    from rushlight.func.vmap import vmap

    unused: list[bool] = []

    def one(vectors: tuple[Tensor, ...]) -> Any:
        found = grad(outs, ins, vectors, keep, create, True, allow or materialize)
        unused[:] = [g is None for g in found]
        return tuple(g for g in found if g is not None)

    check_batches(outs, given)
    rows = iter(vmap(one, (tuple(None if g is None else 0 for g in given),))(given))
    found = [None if missing else next(rows) for missing in unused]
    return [finished(g, x, i, True, materialize, create) for i, (g, x) in enumerate(zip(found, ins, strict=True))]


def check_batches(outs: tuple[Tensor, ...], given: tuple[Tensor, ...]) -> None:
    """Raise RuntimeError unless each of `given` holds vectors of the shape of its output."""
    if not any(isinstance(g, Tensor) for g in given):
        raise RuntimeError("grad: is_grads_batched=True needs grad_outputs whose first dimension runs over the vectors")
    for i, (out, g) in enumerate(zip(outs, given, strict=False)):
        if isinstance(g, Tensor) and g.shape[1:] != expected(out)[0]:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension, and "
                f"the others must be those of the output: grad_output[{i}] has a shape of {list(g.shape)} and output[{i}] one of "
                f"{list(expected(out)[0])}."
            )


def tensor_backward(self: Tensor, gradient: object = None, retain_graph: bool | None = None, create_graph: bool = False,
                    inputs: list[Tensor] | None = None) -> None:  # fmt: skip
    """Accumulate gradients of this tensor into the leaves that it depends on: see torch.autograd.backward.

    gradient: of this tensor's shape; a list or tuple of one tensor is that tensor.
    """
    given = gradient if gradient is None or isinstance(gradient, (list, tuple)) else (gradient,)
    backward(self, given, retain_graph, create_graph, inputs=inputs)


Tensor.backward = known_as(tensor_backward, "backward", "Tensor")  # type: ignore[method-assign]


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output, a tensor or an edge of the graph, and of its gradient, or of one of a batch of gradients."""
    shape = output.node._input_metadata[output.output_nr].shape if isinstance(output, GradientEdge) else output.shape
    return shape, grad.shape[1:] if is_grads_batched else grad.shape
