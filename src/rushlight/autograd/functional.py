"""Derivatives of functions: Jacobians, Hessians and their products with vectors.

Each function here takes `func` of tensors that returns tensors, and `inputs`, one tensor or a tuple, to differentiate
at. create_graph: the result can itself be differentiated. strict: raise where an output or a derivative does not depend
on an input, instead of giving zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.autograd.functional_parts import (
    INDEPENDENT,
    _construct_standard_basis_for,  # noqa: F401
    _grad_postprocess,  # noqa: F401
    _tuple_postprocess,  # noqa: F401
    as_tuple,
    check_jacobian,
    check_outputs,
    check_same,
    check_transformed,
    constant,
    filled,
    finished,
    gradients,
    outputs_of,
    prepared,
    vector_for,
)
from rushlight.basics.dtypes import is_complex
from rushlight.basics.state import Setting
from rushlight.levels.batch import BatchedArray
from rushlight.ops.shape.join import stack
from rushlight.tensor import Tensor, wrap

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
_as_tuple = as_tuple
STRATEGIES = ("forward-mode", "reverse-mode")


def vjp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of a vector with its Jacobian: (outputs, v^T J).

    v: of the shapes of the outputs; may be None for one output of one element. The product has the structure of
    `inputs`. Raises RuntimeError for a vector that does not fit.

    >>> import rushlight as torch
    >>> torch.autograd.functional.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with Setting("grad", True):
        was_tuple, given = as_tuple(inputs, "inputs", "vjp")
        at = prepared(given, create_graph, "vjp")
        outs_tuple, outs = outputs_of(func(*at), "vjp")
        check_outputs(outs, strict)
        vectors = vector_for(v, outs, outs_tuple, "vjp", "the user-provided function returns")
        products = filled(gradients(outs, at, vectors, create_graph), at, strict, create_graph, "back")
    return finished(outs, outs_tuple, create_graph), finished(products, was_tuple, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of its Jacobian with a vector: (outputs, J v).

    v: of the shapes of the inputs; may be None for one input of one element. The product has the structure of the
    outputs. It is found by two backward passes; `forward_ad` and `func.jvp` need one pass only.

    >>> import rushlight as torch
    >>> torch.autograd.functional.jvp(lambda x: x.sum() * x, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
    (tensor([3., 6.]), tensor([4., 2.]))
    """
    with Setting("grad", True):
        several, given = as_tuple(inputs, "inputs", "jvp")
        at = prepared(given, create_graph, "jvp")
        vectors = vector_for(v, at, several, "jvp", "the input to the user-provided function is")
        was_tuple, outs = outputs_of(func(*at), "jvp")
        check_outputs(outs, strict)
        # u -> u^T J is linear: its derivative at any u, times v, is J v.
        anchors = tuple(wrap(np.zeros(o._array.shape, o._array.dtype)).requires_grad_() for o in outs)
        back = filled(gradients(outs, at, anchors, True), at, strict, create_graph, "back")
        check_constant(back, strict and create_graph)
        products = gradients(back, anchors, vectors, create_graph)
        results = filled(products, outs, strict, create_graph, "back_trick")
    return finished(outs, was_tuple, create_graph), finished(results, was_tuple, create_graph)


def check_constant(grads: tuple[Tensor, ...], strict: bool) -> None:
    """In strict mode, raise RuntimeError for gradients that depend on no input."""
    for i, g in enumerate(grads):
        if strict and not g.requires_grad:
            raise RuntimeError(constant("back", i))


def jacobian(func: Callable[..., Any], inputs: Tensor | tuple[Tensor, ...], create_graph: bool = False,
             strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The Jacobian of `func`: for output and input of shapes O and I a tensor of shape (*O, *I).

    Several outputs or inputs give a tuple over outputs, or over inputs, or a tuple of tuples, outputs first. vectorize:
    all rows in one batched pass instead of one by one: faster, more memory. strategy: "forward-mode" computes columns
    instead of rows, with vectorize=True alone.

    >>> import rushlight as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return forward_jacobian(func, inputs, create_graph, strict, vectorize)
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with Setting("grad", True):
        ins_tuple, given = as_tuple(inputs, "inputs", "jacobian")
        at = prepared(given, create_graph, "jacobian")
        outs_tuple, outs = outputs_of(func(*at), "jacobian")
        check_outputs(outs, strict)
        one = batched_rows if vectorize else rows
        parts = [one(outs[i], at, i, create_graph, strict) for i in range(len(outs))]
    return arranged(parts, outs_tuple, ins_tuple, create_graph)


def arranged(parts: list[list[Tensor]], outs_tuple: bool, ins_tuple: bool, create_graph: bool) -> Any:
    """Parts of a Jacobian, by output and input, in the structure of the user's outputs and inputs."""
    made = tuple(finished(tuple(row), ins_tuple, create_graph) for row in parts)
    return made if outs_tuple else made[0]


def rows(out: Tensor, at: tuple[Tensor, ...], i: int, create: bool, strict: bool) -> list[Tensor]:
    """The Jacobian of one output with respect to every input, one row after another."""
    shapes = [(*out._array.shape, *x._array.shape) for x in at]
    if is_complex(out._array.dtype):
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}: take the "
                           "Jacobians of the real and the imaginary part")  # fmt: skip
    if create or any(type(x._array) is BatchedArray for x in (out, *at)):
        columns: list[list[Tensor]] = [[] for _ in at]
        for vector in basis(out):
            for k, g in enumerate(row(out, at, vector, i, create, strict)):
                columns[k].append(g)
        return [stack(c).reshape(s) if c else wrap(np.zeros(s, x._array.dtype))
                for c, s, x in zip(columns, shapes, at, strict=True)]  # fmt: skip
    whole = [np.zeros((out.nelement(), *x._array.shape), x._array.dtype) for x in at]
    for n, vector in enumerate(basis(out)):
        for k, g in enumerate(row(out, at, vector, i, False, strict)):
            whole[k][n] = g._array
    return [wrap(w.reshape(s)) for w, s in zip(whole, shapes, strict=True)]


def basis(out: Tensor) -> Any:
    """The unit vectors of the shape of `out`, one after another, in C order."""
    for n in range(out.nelement()):
        unit = np.zeros(out.nelement(), out._array.dtype)
        unit[n] = 1
        yield wrap(unit.reshape(out._array.shape))


def row(out: Tensor, at: tuple[Tensor, ...], vector: Tensor, i: int, create: bool, strict: bool) -> list[Tensor]:
    """One row of the Jacobian of output `i` with respect to every input."""
    made = []
    for k, (g, x) in enumerate(zip(gradients((out,), at, (vector,), create, True), at, strict=True)):
        if g is None and strict:
            raise RuntimeError(f"Output {i} of the user-provided function is independent of input {k}. {INDEPENDENT}")
        if g is not None and strict and create and not g.requires_grad:
            raise RuntimeError(constant("back", k))
        made.append(wrap(np.zeros(x._array.shape, x._array.dtype)) if g is None else g)
    return made


def batched_rows(out: Tensor, at: tuple[Tensor, ...], i: int, create: bool, strict: bool) -> list[Tensor]:
    """As `rows`, all at once."""
    n, shape = out.nelement(), out._array.shape
    units = wrap(np.eye(n, dtype=out._array.dtype).reshape(n, *shape))
    grads = gradients((out,), at, (units,), create, True, True) if n else (None,) * len(at)
    return [wrap(np.zeros((*shape, *x._array.shape), x._array.dtype)) if g is None
            else g.reshape((*shape, *x._array.shape)) for g, x in zip(grads, at, strict=True)]  # fmt: skip


def forward_jacobian(
    func: Callable[..., Any], inputs: Tensor | tuple[Tensor, ...], create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian by columns, in forward mode."""
    for flag, name, kind in ((strict, "strict", RuntimeError), (create_graph, "create_graph", NotImplementedError)):
        if flag:
            raise kind(
                f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` are not supported '
                f'together (yet). Please either set `{name}=False` or `strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
        )
    from rushlight.func.jacobians import columns

    ins_tuple, given = as_tuple(inputs, "inputs", "jacobian")
    shape: list[bool] = []

    def flat(*args: Tensor) -> tuple[Tensor, ...]:
        was_tuple, outs = outputs_of(func(*args), "jacobian")
        shape[:] = [was_tuple]
        return outs

    parts = columns(flat, given)
    return arranged(parts, shape[0], ins_tuple, True)


def single_output(func: Callable[..., Any], name: str, strict: bool) -> Callable[..., Any]:
    """`func` with the check that it returns one tensor of one element, here as a scalar."""

    def checked(*args: Tensor) -> Tensor:
        was_tuple, outs = outputs_of(func(*args), name)
        check_outputs(outs, strict)
        if was_tuple:
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if outs[0].nelement() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        return outs[0].reshape(())

    return checked


def hessian(func: Callable[..., Any], inputs: object, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The Hessian of `func`, whose output has one element: for an input of shape I a tensor of shape (*I, *I).

    Several inputs give a tuple of tuples: `H[i][k]` of shape (*I_i, *I_k). outer_jacobian_strategy: "forward-mode"
    differentiates the gradient in forward mode, with vectorize=True alone.

    >>> import rushlight as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    ins_tuple, given = as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    check_transformed("hessian", create_graph)
    scalar = single_output(func, "hessian", strict)

    def first(*at: Tensor) -> tuple[Tensor, ...]:
        parts = jacobian(scalar, at, create_graph=True)
        check_jacobian(parts, strict)
        return parts  # type: ignore[no-any-return]

    found = jacobian(first, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    found = tuple(finished(row, True, create_graph) for row in found)
    return found if ins_tuple else found[0][0]


def vhp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of `func`, and the product of a vector with its Hessian: (output, v^T H).

    v: of the shapes of the inputs; may be None for one input of one element.

    >>> import rushlight as torch
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with Setting("grad", True):
        was_tuple, given = as_tuple(inputs, "inputs", "vhp")
        at = prepared(given, create_graph, "vhp")
        vectors = vector_for(v, at, was_tuple, "vhp", "the input to the user-provided function is")
        out = single_output(func, "vhp", strict)(*at)
        jac = scalar_jacobian(out, at, strict)
        products = filled(gradients(jac, at, vectors, create_graph), at, strict, create_graph, "double_back")
    return finished((out,), False, create_graph), finished(products, was_tuple, create_graph)


def scalar_jacobian(out: Tensor, at: tuple[Tensor, ...], strict: bool) -> tuple[Tensor, ...]:
    """The gradient of a scalar, to be differentiated again; strict: checked to exist and to allow that."""
    jac = filled(gradients((out,), at, (None,), True), at, strict, not strict, "back")
    check_jacobian(jac, strict)
    return jac


def hvp(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The output of `func`, and the product of its Hessian with a vector: (output, H v).

    For functions that are twice continuously differentiable that is what `vhp` computes, with one pass less. Here the
    double-backward way of `jvp` is followed, as the name says.

    >>> import rushlight as torch
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with Setting("grad", True):
        was_tuple, given = as_tuple(inputs, "inputs", "hvp")
        at = prepared(given, create_graph, "hvp")
        vectors = vector_for(v, at, was_tuple, "hvp", "the input to the user-provided function is")
        out = single_output(func, "hvp", strict)(*at)
        jac = scalar_jacobian(out, at, strict)
        anchors = tuple(wrap(np.zeros(x._array.shape, x._array.dtype)).requires_grad_() for x in at)
        double = filled(gradients(jac, at, anchors, True), at, strict, True, "double_back")
        products = gradients(double, anchors, vectors, create_graph)
        results = filled(products, at, strict, create_graph, "double_back_trick")
    check_same(results, at, True)
    return finished((out,), False, create_graph), finished(results, was_tuple, create_graph)
