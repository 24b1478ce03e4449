"""Modes of recording, under PyTorch's module name."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, ClassVar

from rushlight.engine.modes import Mode, enable_grad, inference_mode, no_grad, set_grad_enabled
from rushlight.storage import storage_of
from rushlight.tensor import Tensor

__all__ = ["enable_grad", "enforce_grad_layout_policy", "inference_mode", "is_multithreading_enabled", "no_grad",
           "set_grad_enabled", "set_multithreading_enabled"]  # fmt: skip


class _Accepted(Mode):
    """A setting that changes nothing here: a context manager, a decorator and a function, as the others."""

    settings: Any = ()

    def __init__(self, mode: bool = True):
        super().__init__()
        self.mode = bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return None

    def clone(self) -> Mode:
        return type(self)(self.mode)


class _Noted(threading.local):
    multithreading, view_replay = True, False


_noted = _Noted()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` set in this thread."""
    return _noted.multithreading


def is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` set in this thread."""
    return _noted.view_replay


class _Setting(_Accepted):
    """One that is noted: as a function call from now on, as a context manager inside."""

    what: ClassVar[str]

    def __init__(self, mode: bool = True):
        super().__init__(mode)
        self.before = getattr(_noted, self.what)
        setattr(_noted, self.what, self.mode)

    def __enter__(self) -> None:
        setattr(_noted, self.what, self.mode)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        setattr(_noted, self.what, self.before)

    def __call__(self, function: Any) -> Any:
        setattr(_noted, self.what, self.before)
        return super().__call__(function)


class set_multithreading_enabled(_Setting):
    """Whether a backward may use several threads for several devices: noted, without effect on one device.

    >>> import rushlight as torch
    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     torch.autograd.is_multithreading_enabled()
    False
    """

    what = "multithreading"


class _force_original_view_tracking(_Setting):
    """Whether views of changed bases are made by their own operators again: noted, they always are."""

    what = "view_replay"


class _unsafe_preserve_version_counter(_Accepted):
    """Within the block, changes of one tensor or several are not counted: what was saved of them is taken for unchanged."""

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]):
        super().__init__()
        self.storages = [storage_of(t) for t in ((tensors,) if isinstance(tensors, Tensor) else tensors)]
        self.versions = [s.version for s in self.storages]

    def __exit__(self, *error: object) -> None:
        for storage, version in zip(self.storages, self.versions, strict=True):
            storage.version = version


class enforce_grad_layout_policy(_Accepted):
    """Whether gradients are laid out as "Default gradient layouts" says: they always are."""

    def __init__(self, enable: bool = True):
        super().__init__(enable)
