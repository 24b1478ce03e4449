"""``torch.library.opcheck``: whether what was registered for an operator agrees with what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.basics.tree import tree_leaves
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.library.operators import Declared

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(Exception):
    """An operator does not do what was said of it."""


def tensors(values: object) -> list[Tensor]:
    """The tensors in a tree."""
    return [x for x in tree_leaves(values) if isinstance(x, Tensor)]


def check_schema(op: Declared, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Whether the operator changes what its declaration says, and nothing else."""
    values, by_name = op._schema.bind(args, kwargs)
    before = [[x.detach().clone() for x in tensors(value)] for value in [*values, *by_name.values()]]
    op(*args, **kwargs)
    for argument, value, former in zip(op._schema.arguments, [*values, *by_name.values()], before, strict=True):
        same = all(x.detach().equal(y) for x, y in zip(tensors(value), former, strict=True))
        if not same and not argument.written:
            raise OpCheckError(
                f"opcheck(op, ...): test_schema failed: Argument {argument.name} is not defined as mutable but was mutated by "
                f"{op}, whose declaration is {op._schema}: name it in mutates_args"
            )


def check_autograd(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Whether an operator on tensors that require grad has a formula where one is needed."""
    wanted = any(x.requires_grad for x in tensors([args, kwargs]))
    if not wanted or op._schema.is_mutable or op.backward is not None or not op.opaque:
        return
    raise OpCheckError(
        f"opcheck(op, ...): test_autograd_registration failed: {op} got tensors that require grad and has no formula: give one "
        "with register_autograd"
    )


def check_fake(op: Declared, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Whether the fake gives the shapes and dtypes that the operator gives."""
    if op.fake is None:
        raise OpCheckError(f"opcheck(op, ...): test_faketensor failed: {op} has no fake: give one with register_fake")
    values, by_name = op._schema.bind(args, kwargs)
    fakes, results = tensors(op.fake(*values, **by_name)), tensors(op(*args, **kwargs))
    for i, (fake, real) in enumerate(zip(fakes, results, strict=True)):
        if (fake.shape, fake.dtype) != (real.shape, real.dtype):
            raise OpCheckError(
                f"opcheck(op, ...): test_faketensor failed: result {i} of {op} is {real.dtype} of {tuple(real.shape)}, and "
                f"its fake says {fake.dtype} of {tuple(fake.shape)}"
            )


CHECKS: dict[str, Callable[..., None]] = {
    "test_schema": check_schema,
    "test_autograd_registration": check_autograd,
    "test_faketensor": check_fake,
}


def opcheck(
    op: object,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check what was registered for an operator on sample arguments; "SUCCESS" for each check, or its error.

    Raises OpCheckError at the first that fails, unless `raise_exception` is False; ValueError for a check not known.
    """
    from rushlight.library import overload

    found = {}
    for name in [test_utils] if isinstance(test_utils, str) else test_utils:
        if name == "test_aot_dispatch_dynamic":
            continue  # nothing is compiled
        if name not in CHECKS:
            raise ValueError(f"opcheck(op, ...): expected test_utils to be subset of {sorted(CHECKS)}, got {name!r}")
        try:
            CHECKS[name](overload(op), args, dict(kwargs or {}))
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            found[name] = error  # type: ignore[assignment]
    return found
