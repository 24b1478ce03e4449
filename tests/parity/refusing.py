"""What both libraries answer, refusals included, as something that can be compared."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight


def refused(call: Callable[[], Any]) -> Any:
    """What a call gives, or the name of its error."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


def refused_in_words(call: Callable[[], Any]) -> Any:
    """What a call gives, or the name of its error and what that says."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


def raised(call: Callable[[], Any]) -> type[Exception] | None:
    """The class of a call's error, if it raises one."""
    try:
        call()
    except Exception as error:
        return type(error)
    return None


def refuse_alike(reference: Any, words: str, call: Callable[[Any], Any]) -> None:
    """Fail unless both libraries refuse a call with errors of one class that have these words."""
    kinds = []
    for library in (reference, rushlight):
        with pytest.raises(Exception, match=words) as caught:
            call(library)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
