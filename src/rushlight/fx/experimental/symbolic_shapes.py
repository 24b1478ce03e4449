"""``torch.fx.experimental.symbolic_shapes``: questions about sizes, which are plain numbers here, so that all are answered at once."""

from __future__ import annotations

from typing import Any

from rushlight import absent

__all__ = ["free_symbols", "guard_bool", "guard_float", "guard_int", "guard_or_false", "guard_or_true",
           "guard_scalar", "guard_size_oblivious", "is_nested_int", "has_free_symbols", "has_free_unbacked_symbols",
           "has_static_value", "has_symbolic_sizes_strides", "is_concrete_bool", "is_concrete_float",
           "is_concrete_int", "optimization_hint", "statically_known_false", "statically_known_true", "sym_and",
           "sym_eq", "sym_or"]  # fmt: skip
absent.names(
    globals(),
    "sizes are plain numbers here: nothing is captured that would need symbols",
    "ConstraintViolationError DimConstraints DimDynamic GuardOnDataDependentSymNode RelaxedUnspecConstraint ShapeEnv ShapeEnvSettings "
    "Specialization StatefulSymbolicContext StatelessSymbolicContext StrictMinMaxConstraint SubclassSymbolicContext "
    "SymIntSymbolicContext SymbolicContext TrackedFake ValueRangesSLoc",
    "bind_symbols compute_unbacked_bindings constrain_range constrain_unify eval_guards rebind_unbacked resolve_unbacked_bindings",
)


def guard_int(a: int) -> int:
    """The number.  Raises AssertionError for what is none."""
    if type(a) is not int:
        raise AssertionError(f"expected int, got {type(a)}")
    return a


def guard_float(a: float) -> float:
    """The number.  Raises AssertionError for what is none."""
    if not isinstance(a, float):
        raise AssertionError(f"expected float, got {type(a)}")
    return a


def guard_bool(a: bool) -> bool:
    """The truth.  Raises AssertionError for what is none."""
    if type(a) is not bool:
        raise AssertionError(f"expected bool, got {type(a)}")
    return a


def guard_scalar(a: Any) -> Any:
    """The number or truth."""
    return a


guard_size_oblivious = optimization_hint = guard_scalar


def guard_or_false(a: object) -> bool:
    """Whether a condition holds."""
    return bool(a)


guard_or_true = statically_known_true = guard_or_false


def statically_known_false(a: object) -> bool:
    """Whether a condition does not hold."""
    return not a


def is_nested_int(s: object) -> bool:
    """Whether a size stands for lengths that differ from row to row: it does not, it is a number."""
    return False


def has_static_value(a: object) -> bool:
    """Whether a number is known: yes."""
    return True


is_concrete_bool = is_concrete_float = is_concrete_int = has_static_value


def has_free_symbols(val: object) -> bool:
    """Whether symbols stand in it: no."""
    return False


has_free_unbacked_symbols = has_symbolic_sizes_strides = has_free_symbols


def free_symbols(val: object) -> set[Any]:
    """The symbols that stand in it: none."""
    return set()


def sym_and(x: object, *others: object) -> bool:
    """Whether all conditions hold."""
    return all((x, *others))


def sym_or(x: object, *others: object) -> bool:
    """Whether one of the conditions holds."""
    return any((x, *others))


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two numbers, or two sequences of numbers, are equal."""
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(sym_eq(a, b) for a, b in zip(x, y, strict=True))
    return bool(x == y)
