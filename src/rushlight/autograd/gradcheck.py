"""gradcheck and gradgradcheck: derivatives compared with finite differences.

The work is in `jacobian_checks`, which is loaded when the first check runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.gradcheck_options import GradcheckError, Options, check_options
from rushlight.autograd.nested_values import _iter_tensors as _iter_tensors
from rushlight.autograd.older_jacobians import _get_numerical_jacobian as _get_numerical_jacobian
from rushlight.tensor import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the derivatives of `func` at `inputs` with finite differences: True, or GradcheckError.

    func: gives a tensor or several, the same ones whenever it is called with the same values. inputs: a tensor or several;
    those that require grad are checked, and should be float64 or complex128 for the default tolerances.

    eps: the step of the differences; atol, rtol: how far a derivative may be from them. raise_exception: False returns
    False in place of raising. nondet_tol: how far two backwards at the same place may differ. check_undefined_grad: also
    run backwards in which some outputs have no gradient. check_grad_dtypes: also that gradients have the dtypes of their
    inputs. check_backward_ad, check_forward_ad: which modes are checked. check_batched_grad, check_batched_forward_grad:
    also that `vmap` of a backward, or of a forward-mode derivative, gives what a loop gives. fast_mode: compare random
    projections of the Jacobians, in a few runs of `func` in place of two for each element; what fails is looked at again in
    full. masked: that derivatives by sparse inputs are those by the elements that they store, which are all that rushlight has:
    without it, sparse inputs that require grad are refused.

    The message of the error shows both Jacobians (a row for each element of the input, a column for each of the output),
    says where they differ most, and which operator is at fault.

    >>> import rushlight as torch
    >>> torch.autograd.gradcheck(torch.sin, torch.ones(2, dtype=torch.float64, requires_grad=True))
    True
    """
    options = Options(eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
                      check_batched_forward_grad, check_forward_ad, check_backward_ad, fast_mode)  # fmt: skip
    return run(func, inputs, options, raise_exception, bool(masked))


def run(func: Callable[..., Any], inputs: object, options: Options, raise_exception: bool, masked: bool) -> bool:
    """Check `func`, raising or not."""
    check_options(options)
    from rushlight.autograd import jacobian_checks
    from rushlight.autograd.sparse_checks import by_values

    try:
        jacobian_checks.Check(*by_values(func, jacobian_checks.as_tuple(inputs), masked), options).run()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | tuple[Tensor | float, ...],
    grad_outputs: Tensor | tuple[Tensor, ...] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the derivatives of the gradients of `func` with finite differences: True, or GradcheckError.

    What is checked is the function from `inputs` and `grad_outputs` to the gradients of the inputs, with `gradcheck`,
    whose options these are. grad_outputs: a tensor for each output that requires grad; random numbers if None, which lie
    apart in memory with gen_non_contig_grad_outputs. check_rev_over_rev: by backward through backward; check_fwd_over_rev:
    by forward mode through backward.

    >>> import rushlight as torch
    >>> torch.autograd.gradgradcheck(torch.exp, torch.ones(2, dtype=torch.float64, requires_grad=True))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, asked in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    from rushlight.autograd import jacobian_checks
    from rushlight.autograd.sparse_checks import by_values

    func, inputs = by_values(func, jacobian_checks.as_tuple(inputs), masked)
    gradients, arguments = jacobian_checks.second_order(func, inputs, grad_outputs, gen_non_contig_grad_outputs)
    options = Options(eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, False,
                      check_fwd_over_rev, check_rev_over_rev, fast_mode)  # fmt: skip
    return run(gradients, arguments, options, raise_exception, masked)


def get_numerical_jacobian(
    fn: Callable[..., object],
    inputs: tuple[object, ...],
    target: object = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Tensor, ...]:
    """An older function: the Jacobians of the first output by finite differences, of every input or those of `target`.

    fn: takes the tuple of inputs. Each Jacobian has a row for each element of an input, a column for each of the output.
    Warns (FutureWarning). Raises ValueError for another grad_out than 1.
    """
    from rushlight.autograd import older_jacobians

    return older_jacobians.numerical(fn, inputs, target, eps, grad_out)


def get_analytical_jacobian(
    inputs: tuple[object, ...], output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """An older function: the Jacobians of `output` by backward, and whether a second backward gave them too.

    Two values more say that gradients have the sizes and dtypes of their inputs. Warns (FutureWarning). Raises ValueError
    for another grad_out than 1.
    """
    from rushlight.autograd import older_jacobians

    return older_jacobians.analytical(inputs, output, nondet_tol, grad_out)
