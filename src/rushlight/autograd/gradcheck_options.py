"""What a check of derivatives is asked for, and what it raises."""

from __future__ import annotations

from typing import NamedTuple


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where a derivative is wrong."""

    __module__ = "rushlight.autograd.gradcheck"  # where users find it


class Options(NamedTuple):
    """The keyword arguments of `gradcheck`."""

    eps: float = 1e-6
    atol: float = 1e-5
    rtol: float = 1e-3
    nondet_tol: float = 0.0
    check_undefined_grad: bool = True
    check_grad_dtypes: bool = False
    check_batched_grad: bool = False
    check_batched_forward_grad: bool = False
    check_forward_ad: bool = False
    check_backward_ad: bool = True
    fast_mode: bool = False


def check_options(options: Options) -> None:
    """Raise AssertionError for options that contradict each other."""
    if not (options.check_forward_ad or options.check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if options.check_batched_grad and not options.check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if options.check_batched_forward_grad and not options.check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
