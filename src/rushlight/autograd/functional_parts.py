"""What the functions of `autograd.functional` share: checks of arguments, prepared inputs, gradients with gaps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from rushlight.autograd.run import grad
from rushlight.basics.state import modes
from rushlight.tensor import Tensor, wrap

INDEPENDENT = "This is not allowed in strict mode."
NO_HESSIAN = (
    "While computing the hessian, found that the {} of the user-provided function {}is independent of the {}. This is not "
    "allowed in strict mode. You should ensure that your function is {} differentiable and that the {} depends on the "
    "inputs (this would be violated by a {} function for example)."
)


def as_tuple(value: object, what: str, name: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether `value` is a tuple, and its tensors.  Raises TypeError, naming function and argument, for anything else."""
    message = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the"
    if isinstance(value, Tensor):
        return False, (value,)
    if not isinstance(value, tuple):
        raise TypeError(f"{message} given {what} has type {type(value)}.")
    for i, each in enumerate(value):
        if not isinstance(each, Tensor):
            raise TypeError(f"{message} value at index {i} has type {type(each)}.")
    return True, value


def outputs_of(value: Tensor | int | tuple[Tensor, ...], name: str) -> tuple[bool, tuple[Tensor, ...]]:
    """As `as_tuple`, of what the user's function returned."""
    return as_tuple(value, "outputs of the user-provided function", name)


def check_transformed(name: str, create_graph: bool) -> None:
    """Raise RuntimeError inside a transformation of `torch.func` that would see the results as constants."""
    if create_graph:
        return
    if modes.transform is not None or any(getattr(level, "of_function", False) for level in modes.levels):
        raise RuntimeError(
            f"You are attempting to use torch.autograd.functional.{name} inside of a function being transformed by "
            "torch.func, without create_graph=True: what it returns would be a constant to that transformation. Use the "
            "functions of torch.func there (vjp, jvp, jacrev, jacfwd, hessian), or create_graph=True."
        )


def prepared(inputs: tuple[Tensor, ...], connected: bool, name: str) -> tuple[Tensor, ...]:
    """Inputs for the function `name` to differentiate at: new tensors that require grad, connected to those given or not."""
    check_transformed(name, connected)
    made = []
    for x in inputs:
        if not connected:
            made.append(x.detach().requires_grad_())
        else:
            view = x.view_as(x)
            made.append(view if view.requires_grad else view.requires_grad_())
    return tuple(made)


def finished(results: tuple[Any, ...], was_tuple: bool, create_graph: bool) -> Any:
    """Results as the user sees them: outside the graph unless it was asked for, alone where there is one."""
    out = tuple(r if create_graph or not r.requires_grad else r.detach() for r in results)
    return out if was_tuple else out[0]


def check_same(vectors: tuple[Tensor, ...], like: tuple[Tensor, ...], several: bool) -> None:
    """Raise RuntimeError unless the vectors `v` are as many and of the shapes of `like`, which came in a tuple if `several`."""
    if len(vectors) != len(like) and not several:
        raise RuntimeError(f"The given v should contain a single Tensor. Got {len(vectors)}.")
    if len(vectors) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (v, x) in enumerate(zip(vectors, like, strict=True)):
        if v._array.shape != x._array.shape:
            which = f"Entry {i} in v" if several else "v"
            raise RuntimeError(f"{which} has invalid size: should be {x.shape!r} but got {v.shape!r}.")


def vector_for(
    v: Tensor | tuple[Tensor, ...] | None, like: tuple[Tensor, ...], several: bool, name: str, of: str
) -> tuple[Tensor, ...]:
    """The vector of a product: the one given, detached and checked, or one for a single element.

    several: whether what it has to fit came in a tuple.
    """
    if v is not None:
        _, vectors = as_tuple(v, "v", name)
        check_same(vectors, like, several)
        return vectors
    if len(like) != 1 or like[0].nelement() != 1:
        raise RuntimeError(f"The vector v can only be None if {of} a single Tensor with a single element.")
    return (wrap(np.ones(like[0]._array.shape, like[0]._array.dtype)),)


def check_outputs(outputs: tuple[Tensor, ...], strict: bool) -> None:
    """In strict mode, raise RuntimeError for outputs that do not require grad."""
    for i, out in enumerate(outputs):
        if strict and not out.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def check_jacobian(parts: tuple[Tensor, ...], strict: bool) -> None:
    """In strict mode, raise RuntimeError where a first derivative is constant, on the way to a second one."""
    for i, part in enumerate(parts):
        if strict and not part.requires_grad:
            raise RuntimeError(
                NO_HESSIAN.format("jacobian", f"with respect to input {i} ", "input", "twice", "jacobian", "linear")
            )


def gradients(outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], vectors: tuple[Tensor | None, ...],
              create: bool = False, keep: bool | None = None, batched: bool = False) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of the outputs that require grad; None for inputs that none of them depends on."""
    pairs = [(o, g) for o, g in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, given = zip(*pairs, strict=True)
    return grad(outs, inputs, given, keep, create, allow_unused=True, is_grads_batched=batched)


def filled(grads: tuple[Any, ...], like: tuple[Tensor, ...], strict: bool, create: bool,
           stage: str) -> tuple[Tensor, ...]:  # fmt: skip
    """Gradients with zeros for those missing, which strict mode refuses.

    stage: "back" of a vector-Jacobian product, "back_trick" of a Jacobian-vector product by two of them, and the same
    after "double_" for Hessians.
    """
    made = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(missing(stage, i))
            g = wrap(np.zeros(x._array.shape, x._array.dtype))
        elif strict and create and not g.requires_grad:
            raise RuntimeError(constant(stage, i))
        made.append(g)
    return tuple(made)


def missing(stage: str, i: int) -> str:
    """The error for an input that a result does not depend on."""
    if stage == "back":
        return f"The output of the user-provided function is independent of input {i}. {INDEPENDENT}"
    if stage == "back_trick":
        return f"The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the " \
            f"double backward trick to compute forward mode gradients. {INDEPENDENT}"  # fmt: skip
    if stage == "double_back":
        return f"The jacobian of the user-provided function is independent of input {i}. {INDEPENDENT}"
    return f"The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. " \
        "This is not allowed in strict mode as it prevents from using the double backward trick to replace forward " \
        "mode AD."  # fmt: skip


def constant(stage: str, i: int) -> str:
    """The error for a derivative that depends on no input, where it was to be differentiated again."""
    what = "hessian" if stage.startswith("double_") else "jacobian"
    return f"The {what} of the user-provided function is independent of input {i}. This is not allowed in strict mode " \
        "when create_graph=True."  # fmt: skip


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Derivatives, in tuples of any depth, as the user sees them: outside the graph unless it was asked for."""
    if isinstance(inputs, Tensor):
        return inputs if create_graph else inputs.detach()
    return tuple(_grad_postprocess(each, create_graph) for each in inputs)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Results without the tuples that were put around single tensors: of the outer one, and of both for a pair."""
    if not isinstance(to_unpack, tuple):
        return res if to_unpack else res[0]
    several, each_several = to_unpack
    inner = res if each_several else tuple(each[0] for each in res)
    return inner if several else inner[0]


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The rows of the identity over all elements of some tensors, cut into columns of each.  -> (N, n) for each of n elements"""
    whole = np.eye(sum(tensor_numels))
    ends = np.cumsum((0, *tensor_numels))
    parts = [whole[:, start:end] for start, end in itertools.pairwise(ends)]
    return tuple(wrap(part.astype(x._array.dtype)) for x, part in zip(tensors, parts, strict=True))
