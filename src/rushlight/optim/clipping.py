"""Limits on gradients: what a step inside backward applies to each gradient before it is used."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from rushlight.basics import groups
from rushlight.dispatch import functions as ops
from rushlight.ops.python import lists
from rushlight.ops.reduce.norms import vector_norm
from rushlight.optim.options import check, number
from rushlight.tensor import Tensor, wrap

SCOPES = ("all", "group", "parameter")
EPS = 1e-6  # what `nn.utils.clip_grad_norm_` adds to a norm that it divides by


class Clipping:
    """How gradients are limited: by value, then by norm.

    value: every element is brought into [-value, value]; None: not.
    limit: the largest norm: a number, one for each group (None: without), or None.
    norm_type, nonfinite: as `nn.utils.clip_grad_norm_` has them.
    by: whether a norm is that of all gradients together, of each group, or of each parameter.
    passes: 2: a first run of backward finds the norms and a second steps; 1: gradients wait until the norm is known.
    """

    def __init__(self, value: float | None, limit: Any, norm_type: float, nonfinite: bool, by: str, passes: int):
        check(value is None or value > 0, "in_backward: clip_grad_value must be positive, got {}", value)
        several = isinstance(limit, (list, tuple))
        for one in limit if several else (limit,):
            check(one is None or number(one) > 0, "in_backward: clip_grad_norm must be positive, got {}", one)
        check(by in SCOPES, "in_backward: clip_by must be 'all', 'group' or 'parameter', got {!r}", by)
        check(passes in (1, 2), "in_backward: clip_passes must be 1 or 2, got {!r}", passes)
        check(not several or by == "group", "in_backward: clip_grad_norm may be one for each group only with "
              "clip_by='group', got {}", limit)  # fmt: skip
        self.value, self.limit, self.by, self.passes = value, limit, by, passes
        self.norm_type, self.nonfinite = float(norm_type), nonfinite

    @property
    def joint(self) -> bool:
        """Whether a gradient can be scaled only when others are known too."""
        return self.limit is not None and self.by != "parameter"

    def limit_of(self, group: int) -> Any:
        """The largest norm of gradients of a group."""
        if not isinstance(self.limit, (list, tuple)):
            return self.limit
        if group >= len(self.limit):
            raise ValueError(f"in_backward: clip_grad_norm has {len(self.limit)} values, and the optimizer a group {group}: "
                             "give one for each group, or remove the handle and fuse again")  # fmt: skip
        return self.limit[group]

    def key(self, group: int) -> Hashable:
        """Which gradients share a norm."""
        return group if self.by == "group" else 0

    def cut(self, grad: Tensor) -> None:
        """Limit the elements of a gradient in place."""
        if self.value is not None:
            grad.clamp_(min=-self.value, max=self.value)

    def norm(self, grad: Tensor) -> Tensor:
        """The norm of one gradient, to the bit as `nn.utils.clip_grad_norm_` takes it."""
        found = lists.norms([grad]) if self.norm_type == 2 else None
        if found is not None:
            return wrap(found.reshape(()))
        if grad._spread:
            (value,) = groups.averaging["norms_over"]([grad], self.norm_type)
            return wrap(np.asarray(value, grad._held.dtype))
        result: Tensor = vector_norm(grad, self.norm_type)
        return result

    def total(self, norms: Iterable[Tensor]) -> Tensor:
        """The norm of several gradients from theirs.  Raises RuntimeError where it is not finite and must be."""
        listed = list(norms)
        total: Any = listed[0] if len(listed) == 1 else vector_norm(ops.stack(listed), self.norm_type)
        if self.nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(
                f"in_backward: the norm of order {self.norm_type} of the gradients is {total.item()}, and "
                "error_if_nonfinite=True: no parameter whose gradient it scales has been stepped"
            )
        return total  # type: ignore[no-any-return]

    def factor(self, total: Tensor, group: int) -> Tensor | None:
        """What gradients with the joint norm `total` are multiplied by; None for those that are short enough."""
        limit = self.limit_of(group)
        if limit is None:
            return None
        factor: Any = float(number(limit)) / (total + EPS)
        return None if factor.item() >= 1.0 else factor.clamp(max=1.0)
