"""Declarations of operators: ``f(Tensor x, int n=2, *, Tensor? y=None) -> Tensor``, from text or from annotations."""

from __future__ import annotations

import inspect
import numbers
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import ALL, dtype
from rushlight.basics.signatures import signature_of
from rushlight.generator import Generator
from rushlight.tensor import Tensor, layout

__all__ = ["Argument", "FunctionSchema", "MISSING", "infer_schema", "parsed"]

MISSING = object()  # the default of an argument that has none

# Names of types in declarations, and what a value must be.
TYPES: dict[str, Any] = {
    "Tensor": Tensor, "int": numbers.Integral, "SymInt": numbers.Integral, "float": numbers.Real, "bool": bool, "str": str,
    "Scalar": numbers.Number, "ScalarType": dtype, "Device": (device, str), "Layout": layout, "Generator": Generator,
    "MemoryFormat": object, "Any": object, "Dimname": str,
}  # fmt: skip
FROM_ANNOTATIONS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", numbers.Number: "Scalar",
    int | float | bool: "Scalar", typing.Union[int, float, bool]: "Scalar",  # noqa: UP007  (another class)
    dtype: "ScalarType", device: "Device",
}  # fmt: skip
RESULTS = {"Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar"}  # what an annotated function may return
ARGUMENT = re.compile(
    r"(?P<type>\w+)(?P<alias>!|\([\w| >*-]*!?\))?(?P<inner>\?)?(?P<list>\[\d*\])?(?P<optional>\?)?(?P<outer>\([\w| >*-]*!?\))?"
    r"\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?"
)
RETURN = re.compile(r"(?P<type>\w+)(?P<alias>!|\([\w| >*-]*!?\))?(?P<list>\??(?:\[\d*\])?\??)(?:\s+(?P<name>\w+))?")
WORDS = {"None": None, "True": True, "False": False, "contiguous_format": None, "Mean": 1, "Sum": 2}


@dataclass(frozen=True)
class Argument:
    """An argument of a declaration.

    kind: the name of its type; many: whether it is a list of them; optional: whether None is one; written: whether the
    operator changes it.
    """

    name: str
    kind: str
    many: bool = False
    optional: bool = False
    optional_items: bool = False
    written: bool = False
    default: Any = MISSING
    kwarg_only: bool = False
    alias: str = ""

    @property
    def type(self) -> str:
        """The type as the declaration has it."""
        text = self.kind + self.alias + "?" * self.optional_items + "[]" * self.many
        return text + "?" * self.optional

    def fits(self, value: object) -> bool:
        """Whether a value is of the type."""
        if value is None:
            return self.optional
        if not self.many:
            return self.one(value)
        if isinstance(value, int) and self.kind in ("int", "SymInt"):
            return True
        return isinstance(value, Sequence) and all(
            self.one(item) or (item is None and self.optional_items) for item in value
        )

    def one(self, value: Any) -> bool:
        """Whether a value is of the type, lists apart."""
        if isinstance(value, bool) and self.kind in ("int", "SymInt", "float"):
            return False
        number = self.kind in ("int", "SymInt", "float", "bool", "Scalar") and isinstance(value, Tensor)
        return isinstance(value, TYPES.get(self.kind, object)) or (number and value.numel() == 1)

    def __str__(self) -> str:
        default = {} if self.default is MISSING else {"": f"={shown(self.default)}"}
        return f"{self.type} {self.name}{default.get('', '')}"


def shown(value: object) -> str:
    """A default as a declaration has it."""
    if isinstance(value, dtype):
        return value.name
    return f'"{value}"' if isinstance(value, str | device) else str(value)


@dataclass(frozen=True, repr=False)
class FunctionSchema:
    """The declaration of an operator.

    name: with its namespace, as in ``my::sin``; overload_name: "" for the usual one; returns: the types of its results.
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    single: bool = True  # whether the result is no tuple

    @property
    def is_mutable(self) -> bool:
        """Whether it changes an argument."""
        return any(argument.written for argument in self.arguments)

    @property
    def has_tensors_by_keyword(self) -> bool:
        """Whether tensors are given to it by keyword alone."""
        return any(argument.kwarg_only and argument.kind == "Tensor" for argument in self.arguments)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The values of the positional arguments and of those by name alone, defaults filled in.

        Raises RuntimeError where one is missing, not known, or of another type.
        """
        names = [a.name for a in self.arguments if not a.kwarg_only]
        if len(args) > len(names):
            raise RuntimeError(
                f"{self.name}() expected at most {len(names)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name in given or all(name != a.name for a in self.arguments):
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
            given[name] = value
        values = {a.name: self.value(i, a, given) for i, a in enumerate(self.arguments)}
        by_name = {a.name: values[a.name] for a in self.arguments if a.kwarg_only}
        return [values[name] for name in names], by_name

    def value(self, position: int, argument: Argument, given: dict[str, Any]) -> Any:
        """The value of one argument."""
        value = given.get(argument.name, argument.default)
        if value is MISSING:
            raise RuntimeError(f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}")
        if not argument.fits(value):
            raise RuntimeError(
                f"{self.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
                f"found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value}\nDeclaration: {self}"
            )
        return value

    def __str__(self) -> str:
        full = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        texts: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in texts:
                texts.append("*")
            texts.append(str(argument))
        results = self.returns[0] if self.single else f"({', '.join(self.returns)})"
        return f"{full}({', '.join(texts)}) -> {results}"

    __repr__ = __str__


def parsed(text: str) -> FunctionSchema:
    """The declaration that a text is.

    >>> str(parsed("my::f(Tensor x, int[2] size=1, *, Tensor(a!) out) -> (Tensor, Tensor)"))
    'my::f(Tensor x, int[] size=1, *, Tensor(a!) out) -> (Tensor, Tensor)'

    Raises RuntimeError where it is none.
    """
    found = re.fullmatch(r"\s*(?P<name>[\w:]+)(?:\.(?P<overload>\w+))?\s*\((?P<rest>.*)", text, re.DOTALL)
    if found is None or "->" not in text:
        raise RuntimeError(f"expected a declaration like 'f(Tensor x, int n=2) -> Tensor', got {text!r}")
    inside, _, results = found["rest"].rpartition("->")
    arguments, by_name = [], False
    for part in split(inside.strip().removesuffix(")")):
        if part == "*":
            by_name = True
        else:
            arguments.append(argument_of(part, by_name, text))
    results = results.strip()
    single = not results.startswith("(")
    returns = tuple(result_of(part, text) for part in split(results if single else results[1:-1]))
    return FunctionSchema(found["name"], found["overload"] or "", tuple(arguments), returns, single)


def split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def argument_of(text: str, by_name: bool, whole: str) -> Argument:
    """One argument of a declaration."""
    found = ARGUMENT.fullmatch(text)
    if found is None or found["type"] not in TYPES:
        raise RuntimeError(f"{text!r} is no argument that is known, in {whole!r}")
    many = found["list"] is not None
    alias = found["alias"] or found["outer"] or ""
    return Argument(
        found["name"], found["type"], many, bool(found["optional"] or (found["inner"] and not many)),
        bool(found["inner"] and many), "!" in alias, default_of(found["default"], found["type"]), by_name, alias,
    )  # fmt: skip


def default_of(text: str | None, kind: str) -> Any:
    """The default that a text is."""
    if text is None:
        return MISSING
    text = text.strip()
    if text in WORDS:
        return WORDS[text]
    if text.startswith("["):
        return [default_of(part, kind) for part in split(text[1:-1])]
    if text[:1] in "'\"":
        return text[1:-1]
    if kind == "ScalarType":
        return next((known for known in ALL if known.name == text), text)
    return float(text) if kind == "float" or not re.fullmatch(r"-?\d+", text) else int(text)


class Result(str):
    """The type of a result."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The type as the declaration has it."""
        return str(self)


def result_of(text: str, whole: str) -> str:
    """The type of a result."""
    found = RETURN.fullmatch(text)
    if found is None:
        raise RuntimeError(f"{text!r} is no result that is known, in {whole!r}")
    return Result(found["type"] + (found["alias"] or "") + found["list"])


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The declaration of a function whose parameters and result are annotated.

    mutates_args: the names of the tensors that it changes, or "unknown" for all.  Raises ValueError for a parameter
    without an annotation, or with one that operators cannot have.

    >>> def scaled(x: Tensor, by: float = 2.0) -> Tensor: ...
    >>> infer_schema(scaled, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    signature = signature_of(prototype_function)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError("infer_schema(func): mutates_args must either be a sequence of the names of the arguments that are "
                         f"mutated or the string 'unknown', got {mutates_args!r}")  # fmt: skip
    hints = hints_of(prototype_function)
    texts, written = [], set() if mutates_args == "unknown" else set(mutates_args)
    unknown = written - set(signature.parameters)
    if unknown:
        raise ValueError(f"infer_schema(func): {unknown} in mutates_args were not found in the custom op's signature: they are no "
                         f"parameters of {prototype_function.__name__}{signature}")  # fmt: skip
    for i, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        texts.append(
            parameter_text(
                parameter, hints, signature, None if mutates_args == "unknown" else parameter.name in written, i
            )
        )
    return f"{op_name or ''}({', '.join(texts)}) -> {result_text(hints, signature)}"


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function.  Raises ValueError where one is text that names no type."""
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            f"infer_schema(func): Unsupported type annotation {error.name}. It is not a type: {error}"
        ) from error


def parameter_text(
    parameter: inspect.Parameter, hints: dict[str, Any], signature: object, written: bool | None, number: int
) -> str:
    """One parameter as a declaration has it.  written: whether the function changes it, None where that is not known."""
    if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ValueError(f"infer_schema(func): We do not support positional-only args, varargs, or varkwargs. Got func "
                         f"with signature {signature}")  # fmt: skip
    if parameter.name not in hints:
        raise ValueError(f"infer_schema(func): Parameter {parameter.name} must have a type annotation. Got func with "
                         f"signature {signature}")  # fmt: skip
    kind = kind_of(hints[parameter.name])
    if kind is None:
        several = typing.get_origin(hints[parameter.name]) is tuple
        words = "We do not support Tuple inputs in schema: annotate a list, as list[int]. " * several
        raise ValueError(f"infer_schema(func): Parameter {parameter.name} has unsupported type "
                         f"{hints[parameter.name]}. {words}The valid types are tensors, numbers, str, dtype and device, lists of "
                         f"them, and None. Got func with signature {signature}")  # fmt: skip
    if kind.startswith("Tensor"):
        kind = kind if written is False else f"Tensor(a{number}!){kind[6:]}"
    elif written is True:
        raise ValueError(
            f"infer_schema(func): Parameter {parameter.name} is in mutable_args but only Tensors or collections of Tensors "
            f"can be mutated. Got func with signature {signature}"
        )
    if parameter.default is parameter.empty:
        return f"{kind} {parameter.name}"
    if not isinstance(parameter.default, int | float | str | dtype | device | None):
        raise ValueError(
            f"infer_schema(func): Parameter {parameter.name} has an unsupported default value type "
            f"{type(parameter.default)}: give None, and take it inside. Got func with signature {signature}"
        )
    return f"{kind} {parameter.name}={shown(parameter.default)}"


def kind_of(annotation: object) -> str | None:
    """The name of an annotation's type in declarations, None where it has none."""
    if annotation in FROM_ANNOTATIONS:
        return FROM_ANNOTATIONS[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in inside:
        rest = tuple(item for item in inside if item is not type(None))
        kind = kind_of(rest[0] if len(rest) == 1 else typing.Union[rest])  # noqa: UP007  (made of a tuple)
        return None if kind is None else f"{kind}?"
    sequence = origin in (list, Sequence, typing.Sequence) or (origin is tuple and inside[1:] == (...,))
    kind = kind_of(inside[0]) if sequence and inside else None
    return None if kind is None or kind.endswith("]") or (kind.endswith("?") and kind != "Tensor?") else f"{kind}[]"


def result_text(hints: dict[str, Any], signature: object) -> str:
    """The results as a declaration has them."""
    annotation = hints.get("return", MISSING)
    if annotation is MISSING:
        raise ValueError(f"infer_schema(func): No return type annotation was provided. Please add one. Got func with "
                         f"signature {signature}")  # fmt: skip
    if annotation in (None, type(None)):
        return "()"
    inside = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else None
    kinds = [kind_of(item) for item in (inside if inside is not None and ... not in inside else [annotation])]
    if not set(kinds) <= RESULTS:
        raise ValueError(
            f"infer_schema(func): Return has unsupported type {annotation}. Got func with signature {signature}"
        )
    return f"({', '.join(map(str, kinds))})" if inside is not None else str(kinds[0])
