"""Tests that are run once for each of several arguments: `parametrize`, `subtest` and what makes test cases of them."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype

# (function, suffix of the name, arguments by name, decorators of the arguments by name)
Variant = tuple[Callable[..., Any], str, dict[str, Any], Callable[[dict[str, Any]], list[Any]]]


class subtest:
    """One value of a parametrized test, with a name and decorators of its own."""

    __slots__ = ("arg_values", "decorators", "name")

    def __init__(self, arg_values: Any, name: str | None = None, decorators: list[Any] | None = None) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, decorators or []


def shown(index: int, name: str, value: object) -> str:
    """An argument in the name of a test."""
    if isinstance(value, (dtype, device)):
        return str(value).rpartition(".")[2]
    if inspect.isfunction(value):
        return f"{name}_{value.__name__}"
    if isinstance(value, (int, float, str)):
        return f"{name}_{str(value).replace('.', '_')}"
    return f"{name}{index}"


class _TestParametrizer:
    """A decorator that makes several tests of one: see `parametrize`."""

    def __call__(self, fn: Any) -> Any:
        inner = getattr(fn, "parametrize_fn", None)
        fn.parametrize_fn = self._variants if inner is None else functools.partial(both, inner, self._variants)
        return fn

    def _variants(self, test: Callable[..., Any], generic_cls: object, device_cls: object) -> Iterator[Variant]:
        """The tests that `test` is, for a class and, where there is one, a device."""
        raise NotImplementedError


def both(inner: Callable[..., Iterator[Variant]], outer: Callable[..., Iterator[Variant]], test: Any, generic_cls: object,
         device_cls: object) -> Iterator[Variant]:  # fmt: skip
    """The variants of one decorator around another's."""
    for fn, name, given, decorators in inner(test, generic_cls, device_cls):
        for around, before, more, others in outer(fn, generic_cls, device_cls):
            if shared := set(given) & set(more):
                raise RuntimeError(f"{test.__name__}: parametrized twice by {', '.join(sorted(shared))}")
            chosen = functools.partial(_joined, decorators, others)
            yield around, "_".join(part for part in (before, name) if part), {**given, **more}, chosen


def _joined(*each: Any) -> list[Any]:
    """The decorators that several functions of the arguments choose."""
    *functions, given = each
    return [decorator for fn in functions for decorator in fn(given)]


class parametrize(_TestParametrizer):
    """Run a test for each value of an argument, or of several.

    arg_str: their names, with commas between; arg_values: values, tuples of them, or `subtest`; name_fn: what makes the
    end of the test's name of the values.
    """

    def __init__(self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None) -> None:
        self.arg_str, self.arg_values, self.name_fn = arg_str, list(arg_values), name_fn
        self.arg_names = [name.strip() for name in arg_str.split(",") if name.strip()]

    def _named(self, index: int, values: list[Any]) -> str:
        if self.name_fn is not None:
            return self.name_fn(*values)
        return "_".join(shown(index, name, value) for name, value in zip(self.arg_names, values, strict=True))

    def _variants(self, test: Callable[..., Any], generic_cls: object, device_cls: object) -> Iterator[Variant]:
        if not self.arg_names:
            yield test, "", {}, lambda _: []
            return
        for index, each in enumerate(self.arg_values):
            own = each.decorators if isinstance(each, subtest) else []
            value = each.arg_values if isinstance(each, subtest) else each
            values = [value] if len(self.arg_names) == 1 else list(value)
            if len(values) != len(self.arg_names):
                raise RuntimeError(
                    f"Expected # values == # arg names, but got: {len(values)} values and {len(self.arg_names)} names "
                    f'for test "{test.__name__}"'
                )
            name = each.name if isinstance(each, subtest) and each.name else self._named(index, values)
            yield test, name, dict(zip(self.arg_names, values, strict=True)), functools.partial(_always, own)


def _always(decorators: list[Any], given: dict[str, Any]) -> list[Any]:
    return decorators


class decorateIf(_TestParametrizer):
    """Decorate those of a parametrized test for whose arguments, as a dictionary, `predicate_fn` is true."""

    def __init__(self, decorator: Any, predicate_fn: Callable[[dict[str, Any]], bool]) -> None:
        self.decorator, self.predicate_fn = decorator, predicate_fn

    def _variants(self, test: Callable[..., Any], generic_cls: object, device_cls: object) -> Iterator[Variant]:
        yield test, "", {}, lambda given: [self.decorator] if self.predicate_fn(given) else []


def bound(test: Callable[..., Any], name: str, given: dict[str, Any], decorators: Iterable[Any]) -> Callable[..., Any]:
    """A test of that name with these arguments."""

    @functools.wraps(test)
    def run(self: Any, *args: object, **kwargs: object) -> Any:
        return test(self, *args, **given, **kwargs)

    made: Any = run
    for decorator in decorators:
        made = decorator(made)
    made.__name__ = name
    for left in ("parametrize_fn", "__wrapped__"):
        made.__dict__.pop(left, None)
    return made  # type: ignore[no-any-return]


def instantiate_parametrized_tests(generic_cls: object) -> Any:
    """Put the tests that parametrized ones are into their class, in their place.  Returns the class."""
    for name, test in list(vars(generic_cls).items()):
        if not hasattr(test, "parametrize_fn"):
            continue
        delattr(generic_cls, name)
        for fn, end, given, decorators in test.parametrize_fn(test, generic_cls, None):
            whole = f"{name}_{end}" if end else name
            if whole in vars(generic_cls):
                raise RuntimeError(f"Redefinition of test {whole}")
            setattr(generic_cls, whole, bound(fn, whole, given, decorators(given)))
    return generic_cls


def reparametrize(parametrizer: Any, adapt_fn: Callable[..., Any]) -> Any:
    """A decorator whose tests `adapt_fn(test, name, arguments, decorators)` makes of another's."""

    class Adapted(_TestParametrizer):
        def _variants(self, test: Callable[..., Any], generic_cls: Any, device_cls: Any) -> Iterator[Variant]:
            found = parametrizer._variants(test, generic_cls, device_cls)
            return itertools.chain.from_iterable(adapt_fn(*variant) for variant in found)

    return Adapted()
