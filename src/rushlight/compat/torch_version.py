"""``torch.torch_version``: a version that compares as versions do, and which one scripts see."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["PYTORCH", "TorchVersion"]

# The grammar of PEP 440.
_VERSION = re.compile(
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|rc|c)[-_.]?(?P<pre_number>\d*))?"
    r"(?P<post>-(?P<post_short>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z\d]+(?:[-_.][a-z\d]+)*))?\s*",
    re.IGNORECASE,
)
_BEFORE, _AFTER = (-1,), (1,)  # below and above every (0, ...)


def _number(text: str | None) -> int:
    return int(text or 0)


def _key(version: str) -> tuple[Any, ...] | None:
    """What orders versions as PEP 440 says; None for what is no version."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    release = found["release"].split(".")
    while len(release) > 1 and _number(release[-1]) == 0:
        release.pop()
    pre: tuple[Any, ...] = _AFTER
    if found["pre"]:
        phase = "rc" if found["pre"].lower() in ("c", "rc", "pre", "preview") else found["pre"][0].lower()
        pre = (0, phase, _number(found["pre_number"]))
    elif found["dev"] and not found["post"]:
        pre = _BEFORE  # 1.0.dev1 is older than 1.0a1
    post = (0, _number(found["post_short"] or found["post_number"])) if found["post"] else _BEFORE
    dev = (0, _number(found["dev_number"])) if found["dev"] else _AFTER
    parts = re.split(r"[-_.]", (found["local"] or "").lower())
    local = [(0, int(part), "") if part.isdigit() else (-1, 0, part) for part in parts] if found["local"] else []
    return _number(found["epoch"]), [_number(part) for part in release], pre, post, dev, local


def _text(other: object) -> str | None:
    """A string, a tuple of numbers or a version of ``packaging`` as a string; None for anything else."""
    if isinstance(other, str):
        return other
    if isinstance(other, tuple | list):
        return ".".join(map(str, other))
    return str(other) if hasattr(other, "release") and hasattr(other, "public") else None


class TorchVersion(str):
    """A string that compares as a version, with strings, tuples of numbers and versions of ``packaging``.

    The order is that of PEP 440.  What is no version compares as a string.

    >>> from rushlight.compat.torch_version import TorchVersion
    >>> TorchVersion("2.13.0") >= "2.9", TorchVersion("2.13.0") < (2, 9), TorchVersion("2.13.0") == "2.13"
    (True, False, True)
    """

    __hash__ = str.__hash__

    def _compare(self, other: object, method: str) -> Any:
        text = _text(other)
        if text is None:
            return NotImplemented
        mine, theirs = _key(str(self)), _key(text)
        if mine is None or theirs is None:
            return getattr(str, method)(self, text)
        return getattr(tuple, method)(mine, theirs)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, "__eq__")  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        return self._compare(other, "__ne__")  # type: ignore[no-any-return]

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "__lt__")  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "__le__")  # type: ignore[no-any-return]

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, "__gt__")  # type: ignore[no-any-return]

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, "__ge__")  # type: ignore[no-any-return]


PYTORCH = TorchVersion("2.13.0+rushlight")  # the version of PyTorch whose behaviour this is
