"""``torch.utils.serialization.config``: settings of `torch.save` and `torch.load` as attributes.

`load`: `mmap` (whether files at a path are mapped, False), `endianness`, `mmap_flags`, `calculate_storage_offsets` (kept, without
effect).  `save`: `storage_alignment` (bytes, 64), `compute_crc32` (True), and `use_pinned_memory_for_d2h` (kept, without effect).
"""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from rushlight.serialization import options

__all__ = ["load", "patch", "save"]


class _Section:
    """Settings of one kind.  Raises AttributeError for a name that is none of them."""

    def __init__(self, name: str, values: dict[str, Any]):
        object.__setattr__(self, "_settings", (name, values))

    def _known(self, setting: str) -> dict[str, Any]:
        section, values = object.__getattribute__(self, "_settings")
        if setting not in values:
            raise AttributeError(
                f"torch.utils.serialization.config.{section}.{setting} is no setting: there are {sorted(values)}"
            )
        found: dict[str, Any] = values
        return found

    def __getattr__(self, setting: str) -> Any:
        return self._known(setting)[setting]

    def __setattr__(self, setting: str, value: object) -> None:
        self._known(setting)[setting] = value

    def __dir__(self) -> list[str]:
        return []


load, save = _Section("load", options.LOADING), _Section("save", options.SAVING)


class patch(ContextDecorator):
    """Within a block, or while a function runs: other settings.

    arg1: a dictionary from names such as "load.mmap" to values, or one name, with arg2 its value; or names by keyword.
    Raises AttributeError for a name that is no setting.

    Example:
        >>> from rushlight.compat.serialization import config
        >>> with config.patch("load.mmap", True):
        ...     config.load.mmap
        True
        >>> config.load.mmap
        False
    """

    def __init__(self, arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> None:
        self.changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        self.former: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self.former.append({name: _value(name) for name in self.changes})
        _set(self.changes)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _set(self.former.pop())


def _section(name: str) -> tuple[_Section, str]:
    section, _, setting = name.partition(".")
    found = {"load": load, "save": save}.get(section)
    if found is None or not setting:
        raise AttributeError(
            f"torch.utils.serialization.config.{name} is no setting: their names begin with 'load.' or 'save.'"
        )
    return found, setting


def _value(name: str) -> object:
    section, setting = _section(name)
    return getattr(section, setting)


def _set(changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        section, setting = _section(name)
        setattr(section, setting, value)
