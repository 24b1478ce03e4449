"""The options that optimizers have in common: what is refused of each, said once, and which of them came later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.tensor import Tensor

# Options that came to the optimizers over time, as groups of checkpoints from before are to have them.
LATER = {
    "maximize": False,
    "foreach": None,
    "capturable": False,
    "differentiable": False,
    "fused": None,
    "decoupled_weight_decay": False,
}


def given(scope: dict[str, Any]) -> dict[str, Any]:
    """The options that an `__init__` was called with: of its `locals()` all but the parameters and the optimizer."""
    return {name: value for name, value in scope.items() if name not in ("self", "params", "__class__")}


def checked(scope: dict[str, Any], order: str = "") -> dict[str, Any]:
    """As `given`, each checked as in all optimizers that have it.  Raises ValueError, TypeError for text, RuntimeError for `fused` beside others.

    order: which come first in groups of parameters, and so in files, where PyTorch has another order there than in its calls.
    """
    options = given(scope)
    options = {name: options[name] for name in (*order.split(), *options)}
    for name, refuse in CHECKS.items():
        if name in options:
            if isinstance(options[name], str):
                raise TypeError(
                    f"{name}: expected a number, got the text {options[name]!r} (YAML reads 1e-3 so: write 1.0e-3)"
                )
            refuse(options[name])
    if options.get("fused"):
        if options.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if options.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return options


def check(right: bool, message: str, value: object) -> None:
    """Raise ValueError with the value filled into the message unless it is right."""
    if not right:
        raise ValueError(message.format(value))


def number(value: Any) -> Any:
    """An option as a Python number, if it is a tensor of one element."""
    return value._array.item() if isinstance(value, Tensor) else value


def check_lr(lr: Tensor | float, message: str = "Invalid learning rate: {}") -> None:
    """Raise ValueError for a learning rate below zero or a tensor of several elements."""
    if isinstance(lr, Tensor) and lr._array.size != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(number(lr) >= 0.0, message, number(lr))


def check_betas(betas: Any) -> None:
    """Raise ValueError unless both betas are in [0, 1)."""
    for i in (0, 1):
        check(0.0 <= number(betas[i]) < 1.0, f"Invalid beta parameter at index {i}: {{}}", betas[i])


def _not_negative(what: str) -> Callable[[Any], None]:
    return lambda value: check(number(value) >= 0.0, f"Invalid {what} value: {{}}", value)


# Option -> what raises for a value that is refused, in the order in which they are looked at.
CHECKS: dict[str, Callable[[Any], None]] = {
    "lr": check_lr,
    "rho": lambda rho: check(0.0 <= rho <= 1.0, "Invalid rho value: {}", rho),
    "eps": _not_negative("epsilon"),
    "betas": check_betas,
    "momentum": _not_negative("momentum"),
    "lr_decay": _not_negative("lr_decay"),
    "weight_decay": _not_negative("weight_decay"),
    "momentum_decay": _not_negative("momentum_decay"),
    "initial_accumulator_value": _not_negative("initial_accumulator_value"),
    "min_8bit_size": _not_negative("min_8bit_size"),
}
