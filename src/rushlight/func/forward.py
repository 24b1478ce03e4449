"""jvp and linearize: products of Jacobians with vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.autograd import forward_ad
from rushlight.basics import tree
from rushlight.basics.state import Setting
from rushlight.basics.tree import Spec
from rushlight.func.reverse import check_aux, check_outputs, grads, split_aux
from rushlight.func.transform import Transform
from rushlight.tensor import Tensor, wrap

WHAT = "jvp(f, primals, tangents)"


def check_pairs(primals: object, tangents: object) -> tuple[list[Any], list[Any], Any]:
    """The leaves of primals and tangents, and their structure.  Raises RuntimeError where they do not go together."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{WHAT}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = tree.tree_flatten(primals)
    vectors, shape = tree.tree_flatten(tangents)
    if spec != shape:
        raise RuntimeError(
            f"{WHAT}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
            f"of 3 tensors, tangents also must be. Got primals with structure {spec!r} and tangents with structure "
            f"{shape!r}"
        )
    for name, leaves in (("primals", flat), ("tangents", vectors)):
        if not leaves:
            raise RuntimeError(f"{WHAT}: Expected {name} to contain at least one Tensor.")
        for x in leaves:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{WHAT}: Expected {name} to only contain Tensors, got {type(x)}")
    return flat, vectors, spec


def pushed(func: Callable[..., Any], primals: list[Tensor], tangents: list[Any], spec: Spec, has_aux: bool,
           strict: bool = False) -> tuple[list[Any], list[Any], Any, Any]:  # fmt: skip
    """(output leaves, their tangents, output structure, auxiliary); a tangent of None is zero and costs nothing."""
    with Setting("forward_grad", True), Setting("inference", False), forward_ad.dual_level() as level:
        level.of_function = True
        duals = [p if t is None else forward_ad.make_dual(p, t, level=level)
                 for p, t in zip(primals, tangents, strict=True)]  # fmt: skip
        output, aux = split_aux(func(*tree.tree_unflatten(duals, spec)), has_aux, WHAT)
        flat, shape = tree.tree_flatten(output)
        check_outputs(WHAT, flat)
        if has_aux:
            check_aux(aux)
        pairs = [forward_ad.unpack_dual(x, level=level) for x in flat]
        aux = tree.tree_map(
            lambda x: forward_ad.unpack_dual(x, level=level).primal if isinstance(x, Tensor) else x, aux
        )
    if strict and any(t is None for _, t in pairs):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    values = [p for p, _ in pairs]
    found = [wrap(np.zeros(p._array.shape, p._array.dtype)) if t is None else t for p, t in pairs]
    return values, found, shape, aux


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The outputs of `func`, and the product of its Jacobian with `tangents`, in forward mode: (outputs, products).

    primals: a tuple of arguments, which may be trees; tangents: of the same structure and shapes. has_aux: `func`
    returns (outputs, aux), and aux is returned third. strict: raise where an output depends on no input.

    >>> import rushlight as torch
    >>> torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    flat, vectors, spec = check_pairs(primals, tangents)
    values, found, shape, aux = pushed(func, flat, vectors, spec, has_aux, strict)
    result = tree.tree_unflatten(values, shape), tree.tree_unflatten(found, shape)
    return (*result, aux) if has_aux else result


def differentiable(x: Tensor) -> bool:
    """Whether an output has a derivative."""
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def product_of(output: Tensor) -> Callable[[Iterator[Tensor]], Any]:
    """How `Linear` comes by the product for an output, given those for the differentiable ones in order."""
    if differentiable(output):
        return next
    if not isinstance(output, Tensor):
        return lambda _: output
    shape, dtype = output._held.shape, output._held.dtype
    return lambda _: wrap(np.zeros(shape, dtype))


class Linear:
    """The function that `linearize` returns: the Jacobian at one point, times tangents; `func` is not run again.

    Its graph is that of u -> u^T J, which is linear in u: its derivative by u, times t, is J t. Outputs of bools and
    integers have derivatives of zero, of their dtype; outputs that are no tensors are given back as they are.
    """

    def __init__(self, func: Callable[..., Any], primals: tuple[Any, ...]):
        transform = Transform()
        with transform:
            inputs = transform.inputs(primals)
            self.primals, self.spec = tree.tree_flatten(inputs)
            self.output = func(*inputs)
            transform.check_captured(func)
            leaves, self.outputs_spec = tree.tree_flatten(self.output)
            self.products = [product_of(x) for x in leaves]
            self.outs = [x for x in leaves if differentiable(x)]
            self.anchors = [wrap(np.zeros(x._array.shape, x._array.dtype)) for x in self.outs]
            self.anchors = transform.inputs(self.anchors)
            recorded = Transform()  # the marks are still open: it records
            self.back = grads(self.outs, self.primals, self.anchors, True, recorded)
            transform.close()
            self.output = transform.results(self.output)

    def __call__(self, *tangents: Tensor) -> Any:
        """The product with tangents of the structure, shapes and dtypes of the primals."""
        flat, spec = tree.tree_flatten(tangents)
        if spec != self.spec:
            raise RuntimeError(f"Expected the tangents {spec!r} to have the same argspec as the primals {self.spec!r}")
        for i, (t, p) in enumerate(zip(flat, self.primals, strict=True)):
            for name in ("shape", "dtype"):
                have, want = getattr(t, name), getattr(p, name)
                if have != want:
                    raise RuntimeError(f"tangent:{i} with {name} {have!r} in flattened pytree doesn't match the {name} "
                                       f"{want!r} of the corresponding primal.")  # fmt: skip
        transform = Transform()
        with Setting("grad", True):
            found = transform.results(grads(self.back, self.anchors, flat, True, transform))
        following = iter(found)
        return tree.tree_unflatten([product(following) for product in self.products], self.outputs_spec)


def linearize(func: Callable[..., Any], *primals: object) -> tuple[Any, Any]:
    """The outputs of `func` at `primals`, and the function that multiplies tangents with its Jacobian there.

    That function does not run `func` again, and may be called often. As `func.jvp`, where the tangents are known before.

    >>> import rushlight as torch
    >>> y, jvp_fn = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> jvp_fn(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    linear = Linear(func, primals)
    return linear.output, linear
