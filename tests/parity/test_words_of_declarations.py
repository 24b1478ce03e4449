"""What cannot be declared or registered as an operator, and what profiles refuse, in the words that programs look for."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.parity.refusing import refuse_alike

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

Case = tuple[str, Callable[[Any], Any]]


def annotated(t: Any, mutates: Any = (), default: Any = ..., /, **hints: Any) -> Any:
    """The declaration of a function of one argument with these annotations."""

    def f(x: Any) -> Any:
        return x

    def with_default(x: Any = default) -> Any:
        return x

    chosen = f if default is ... else with_default
    chosen.__annotations__ = {"x": t.Tensor, "return": t.Tensor, **{k.removesuffix("_"): v for k, v in hints.items()}}
    return t.library.infer_schema(chosen, mutates_args=mutates)


def by_place(t: Any) -> Any:
    def f(x: Any, /) -> Any:
        return x

    f.__annotations__ = {"x": t.Tensor, "return": t.Tensor}
    return t.library.infer_schema(f, mutates_args=())


def library(t: Any) -> Any:
    made = t.library.Library("declared_here", "FRAGMENT")
    made.define("once(Tensor x) -> Tensor")
    return made


def twice(t: Any) -> Any:
    made = library(t)
    try:
        return made.define("once(Tensor x) -> Tensor")
    finally:
        made._destroy()


def given(t: Any, *args: Any) -> Any:
    made = library(t)
    try:
        return made.impl(*args)
    finally:
        made._destroy()


CASES: dict[str, Case] = {
    "a list of anything": ("Parameter x has unsupported type", lambda t: annotated(t, x=list)),
    "words that may be none": ("Parameter x has unsupported type", lambda t: annotated(t, x=list[str | None])),
    "a name of nothing": ("Unsupported type annotation Nothing. It is not a type", lambda t: annotated(t, x="Nothing")),
    "lists of numbers as results": ("Return has unsupported type", lambda t: annotated(t, return_=list[int])),
    "words as results": ("Return has unsupported type", lambda t: annotated(t, return_=tuple[t.Tensor, str])),
    "a default that is a tuple": (
        "Parameter x has an unsupported default value type",
        lambda t: annotated(t, (), (1, 2), x=Sequence[int]),
    ),
    "arguments by place alone": ("We do not support positional-only args", by_place),
    "a word for what is changed": (
        "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'",
        lambda t: annotated(t, "x"),
    ),
    "a declaration twice": ("with the same name and overload name multiple times", twice),
    "an analysis that is none": (
        "Invalid alias_analysis type Q",
        lambda t: t.library.Library("declared_here", "FRAGMENT").define("f(Tensor x) -> Tensor", "Q"),
    ),
    "what computes nothing": (
        "Input function is required to be a callable but found type",
        lambda t: given(t, "once", 3, "CPU"),
    ),
    "the name of nothing": (
        "impl should be passed either a name or an OpOverload object as the first argument",
        lambda t: given(t, 3, abs, "CPU"),
    ),
    "a name without a namespace": (
        'Expected `qualname` to be of the form "namespace::name"',
        lambda t: t.library.register_fake("once")(abs),
    ),
    "a check of nothing": ("op must be", lambda t: t.library.opcheck(3, (t.ones(1),))),
    "stacks of no profile": (
        "Profiler must be initialized before exporting stacks",
        lambda t: t.profiler.profile().export_stacks("stacks"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refusals_are_of_pytorchs_kind_and_have_its_words(name: str) -> None:
    words, call = CASES[name]
    refuse_alike(reference, words, call)


@pytest.mark.parametrize("hint", [list[int | None], int | float | bool, list[int] | None, Sequence[bool], str])
def test_what_can_be_declared_is_declared_alike(hint: Any) -> None:
    answers = []
    for t in (reference, rushlight):
        try:
            answers.append(annotated(t, x=hint))
        except ValueError:
            answers.append("refused")
    assert answers[0] == answers[1]


def test_a_library_forgets_what_it_declared_and_nothing_else() -> None:
    t = rushlight
    first, second = library(t), t.library.Library("declared_here", "FRAGMENT")
    second.define("other(Tensor x) -> Tensor")
    second.impl("other", lambda x: x + 1, "CPU")
    first._destroy()
    assert t.ops.declared_here.other(t.zeros(1)).item() == 1
    with pytest.raises(AttributeError):
        t.ops.declared_here.once
    second._destroy()
    assert repr(second).startswith("Library(kind=FRAGMENT, ns=declared_here")


@pytest.mark.parametrize("t", [rushlight, reference], ids=["rushlight", "torch"])
def test_a_schedule_without_warming_up_is_told(t: Any) -> None:
    with pytest.warns(UserWarning, match="Profiler won't be using warmup, this can skew profiler results"):
        t.profiler.schedule(wait=0, warmup=0, active=1)
