"""grad, grad_and_value and vjp: gradients of functions in reverse mode."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.autograd.run import initial, roots_of, target_keys
from rushlight.basics import tree
from rushlight.basics.dtypes import is_complex
from rushlight.basics.state import modes
from rushlight.engine.node import Node, Severed, edge_of
from rushlight.engine.run import Run
from rushlight.func.transform import Transform, how_to_run
from rushlight.tensor import Tensor, wrap


def chosen(args: tuple[Any, ...], argnums: Any) -> tuple[int, ...]:
    """The positions that `argnums` names, as non-negative numbers.  Raises RuntimeError for what is none."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    places = tuple(n % len(args) for n in numbers)
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return places


def replaced(args: tuple[Any, ...], places: tuple[int, ...], values: Any) -> tuple[Any, ...]:
    """The arguments with those at `places` replaced."""
    made = list(args)
    for place, value in zip(places, values, strict=True):
        made[place] = value
    return tuple(made)


def split_aux(output: Tensor | tuple[Any, ...], has_aux: bool, what: str) -> tuple[Any, Any]:
    """(output, auxiliary) of what the user's function returned."""
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def check_outputs(what: str, leaves: list[Any]) -> None:
    """Raise RuntimeError where the user's function returned nothing to differentiate."""
    if not leaves or leaves == [None]:
        raise RuntimeError(
            f"{what}: Expected f to be a function that has non-empty output (got output = {leaves}): return a tensor, or "
            "several in a tuple, list or dictionary"
        )
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")


def check_aux(aux: object) -> None:
    """Raise RuntimeError unless an auxiliary output holds tensors alone."""
    for x in tree.tree_leaves(aux):
        if x is not None and not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


def zeros_like(x: Tensor) -> Tensor:
    """Zeros for an input that nothing depends on."""
    return wrap(np.zeros(x._array.shape, x._array.dtype))


def grads(outputs: list[Tensor], inputs: list[Tensor], vectors: Any, keep: bool, transform: Transform) -> list[Tensor]:
    """Gradients of the outputs that require grad; zeros for inputs that none of them depends on."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if recorded(o) and not (
        v is None and is_complex(o._held.dtype) and not reaches(edge_of(o), inputs))]  # fmt: skip
    if not pairs:
        return [zeros_like(x) for x in inputs]
    outs, given = (tuple(column) for column in zip(*pairs, strict=True))
    on_tensors, record = how_to_run([*outs, *(v for v in given if v is not None)], transform)
    keys = target_keys(tuple(inputs), "grad")
    run = Run(keep or record, on_tensors, {key: [] for key in keys}, False)
    run.record = record
    former, modes.transform = modes.transform, transform  # what was captured in inference mode may be saved, and read
    try:
        found = run.execute(roots_of(outs, initial(outs, given)))
    finally:
        modes.transform = former
    return [zeros_like(x) if key not in found else found[key] if on_tensors else wrap(found[key])
            for key, x in zip(keys, inputs, strict=True)]  # fmt: skip


def recorded(output: Tensor) -> bool:
    """Whether an output has a place in the graph: a view that a custom function marked requires grad, and has none."""
    return output.requires_grad and not (output._edge is None and edge_of(output).__class__ is Severed)


def reaches(edge: Node, inputs: list[Tensor]) -> bool:
    """Whether one of the inputs can be reached from an edge."""
    targets = {id(edge_of(x)) for x in inputs}
    stack, seen = [edge], set()
    while stack:
        edge = stack.pop()
        if id(edge) in targets:
            return True
        node = None if edge is None or isinstance(edge, Tensor) else edge.node
        if node is not None and node not in seen:
            seen.add(node)
            stack += node.edges
    return False


WHAT = "grad_and_value(f)(*args)"


def check_scalar(output: Tensor) -> None:
    """Raise RuntimeError unless the user's function returned a tensor without dimensions."""
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{WHAT}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output._array.ndim != 0:
        raise RuntimeError(
            f"{WHAT}: Expected f(*args) to return a scalar Tensor, got tensor with {output._array.ndim} dims. Maybe you "
            "wanted to use the vjp or jacrev APIs instead?"
        )


def value_and_grads(
    func: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """(gradients, value, auxiliary) of one call."""
    places = chosen(args, argnums)
    transform = Transform()
    with transform:
        inputs = transform.inputs(tuple(args[n] for n in places))
        output, aux = split_aux(func(*replaced(args, places, inputs), **kwargs), has_aux, WHAT)
        check_scalar(output)
        if has_aux:
            check_aux(aux)
        transform.check_captured(func)
        transform.close()
        flat, spec = tree.tree_flatten(inputs)
        # An auxiliary result in a graph outside must not find it freed.
        found = grads([output], flat, [None], has_aux, transform)
        results = transform.results((tuple(tree.tree_unflatten(found, spec)), output, aux))
    transform.settle()
    gradients, value, aux = results
    return gradients if isinstance(argnums, tuple) else gradients[0], value, aux


def grad_and_value(func: Callable[..., Any], argnums: object = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of `func` and its value: (gradient, value).

    As `grad`; with has_aux it returns (gradient, (value, aux)).

    >>> import rushlight as torch
    >>> torch.func.grad_and_value(lambda x: (x ** 2).sum())(torch.tensor([1.0, 3.0]))
    (tensor([2., 6.]), tensor(10.))
    """

    @functools.wraps(func)
    def wrapper(*args: Tensor, **kwargs: object) -> tuple[Tensor | tuple[Tensor, ...], ...]:
        gradient, value, aux = value_and_grads(func, argnums, has_aux, args, kwargs)
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return wrapper


def grad(func: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """A function that computes the gradient of `func`, which returns a tensor without dimensions.

    argnums: which arguments to differentiate with respect to, a number or a tuple of numbers; each may be a tree of
    tensors, and the gradient has its structure. has_aux: `func` returns (output, aux), and the result is (gradient,
    aux). Gradients of gradients are taken by nesting. `no_grad` around the call is ignored; inside `func` it counts.

    Raises RuntimeError for outputs that are not a scalar, ValueError for arguments that are not tensors.

    >>> import rushlight as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5)) == -torch.tensor(0.5).sin()
    tensor(True)
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, _, aux = value_and_grads(func, argnums, has_aux, args, kwargs)
        return (gradient, aux) if has_aux else gradient

    return wrapper


class Pullback:
    """The function that `vjp` returns: cotangents of the outputs to those of the inputs, as often as one likes."""

    def __init__(self, transform: Transform, outputs: list[Tensor], spec: Any, inputs: tuple[Tensor, ...]):
        self.transform, self.outputs, self.spec = transform, outputs, spec
        self.inputs, self.inputs_spec = tree.tree_flatten(inputs)

    def only(self, k: int) -> Pullback:
        """The same for output leaf `k` alone."""
        made = copy.copy(self)
        made.outputs, made.spec = [self.outputs[k]], tree.LEAF
        return made

    def __call__(self, cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """Gradients of the inputs, of their structure."""
        flat, spec = tree.tree_flatten(cotangents)
        if spec != self.spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {spec!r}, primal output: {self.spec!r}"
            )
        for i, (out, g) in enumerate(zip(self.outputs, flat, strict=True)):
            if not isinstance(g, Tensor):
                raise TypeError(f"vjp_fn: cotangents are tensors, but got {type(g).__name__} for output {i}")
            if g._array.shape != out._array.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape!r} and output[{i}] has a shape of "
                    f"{out.shape!r}."
                )
        transform = Transform()
        transform.outer = transform.outer if create_graph is None else create_graph
        found = transform.results(grads(self.outputs, self.inputs, flat, retain_graph, transform))
        return tree.tree_unflatten(found, self.inputs_spec)


def vjp_over(
    func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, owner: Callable[..., Any] | None = None
) -> tuple[Any, Pullback, Any]:
    """(outputs, pullback, auxiliary) of one call.  owner: the user's function, whose captured tensors may not be changed."""
    what = "vjp(f, *primals)"
    transform = Transform()
    with transform:
        inputs = transform.inputs(primals, True)  # what it returns may be called where gradients are recorded
        output, aux = split_aux(func(*inputs), has_aux, what)
        if has_aux:
            check_aux(aux)
        flat, spec = tree.tree_flatten(output)
        check_outputs(what, flat)
        for x in flat:
            if x._held.dtype.kind in "biu":
                raise RuntimeError(
                    f"{what}: All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {x.dtype}: "
                    "return what is not differentiated as aux, with has_aux=True"
                )
        transform.check_captured(func if owner is None else owner)
        transform.close()
        shown, aux = transform.results((output, aux))
    return shown, Pullback(transform, flat, spec, inputs), aux


def vjp(func: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """The outputs of `func`, and the function that multiplies a vector with its Jacobian: (outputs, vjp_fn).

    vjp_fn takes cotangents of the structure of the outputs and returns a tuple of gradients, one for each of `primals`,
    which may be trees. It may be called again. has_aux: `func` returns (outputs, aux), and aux is returned third.

    >>> import rushlight as torch
    >>> y, vjp_fn = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> vjp_fn(torch.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    output, pullback, aux = vjp_over(func, primals, has_aux)
    return (output, pullback, aux) if has_aux else (output, pullback)
