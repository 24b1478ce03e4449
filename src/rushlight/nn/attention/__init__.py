"""Which implementation of attention may be used: accepted as in PyTorch, there is one here."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.lazily import lazily

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl", "current_flash_attention_impl",
           "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl",
           "sdpa_kernel"]  # fmt: skip
from rushlight.tensor import Tensor

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """Names of PyTorch's implementations of scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


# What may be used, as was said last; the order in which they are preferred.
allowed: dict[SDPBackend, bool] = {backend: True for backend in SDPBackend if backend is not SDPBackend.ERROR}
_order: list[SDPBackend] = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
                            SDPBackend.CUDNN_ATTENTION, SDPBackend.OVERRIDEABLE]  # fmt: skip


class SDPAParams:
    """What attention is asked to compute, for questions which implementation could.

    query, key, value: (..., length, features); attn_mask: Tensor or None.
    """

    def __init__(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout: float, is_causal: bool,
                 enable_gqa: bool):  # fmt: skip
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = float(dropout), is_causal, enable_gqa


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The implementations that may be used; with_priority: in the order in which they are preferred."""
    listed: list[Any] = (
        _order
        if with_priority
        else [SDPBackend.CUDNN_ATTENTION, *(b for b in _order if b is not SDPBackend.CUDNN_ATTENTION)]
    )
    return [backend for backend in listed if allowed[backend]]


@contextlib.contextmanager
def sdpa_kernel(backends: object, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """Says which implementations may be used, without effect: attention never keeps its probabilities, whichever it is.

    backends: an SDPBackend or several; set_priority: whether their order counts.  Raises AssertionError for what is none.
    """
    listed: list[Any] = (
        [backends] if isinstance(backends, SDPBackend) else list(backends) if isinstance(backends, Iterable) else [None]
    )
    if not all(isinstance(b, SDPBackend) for b in listed):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    former, order = dict(allowed), list(_order)
    allowed.update({backend: backend in listed for backend in allowed})
    if set_priority:
        _order.sort(key=lambda backend: listed.index(backend) if backend in listed else len(listed))
    try:
        yield {}
    finally:
        allowed.update(former)
        _order[:] = order


# Other implementations of flash attention, which are for GPUs -------------------------------------

_implementations: dict[str, Callable[[], Any]] = {}
_active: list[Any] = []  # name of the one that was activated, and what undoes it


def register_flash_attention_impl(impl: str, *, register_fn: Callable[[], Any]) -> None:
    """Make an implementation known by name; register_fn: called when it is activated, returns None or what has `remove`."""
    _implementations[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """The names of those that were registered."""
    return sorted(_implementations)


def activate_flash_attention_impl(impl: str) -> None:
    """Call what one was registered with.  Raises ValueError for one that was not."""
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl {impl!r}. Available implementations: {list_flash_attention_impls()}"
        )
    restore_flash_attention_impl(_raise_warn=False)
    _active[:] = impl, _implementations[impl]()


def current_flash_attention_impl() -> str | None:
    """The name of the one that was activated."""
    return _active[0] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Undo what `activate_flash_attention_impl` did; a warning where it did nothing."""
    if not _active:
        if _raise_warn:
            warn("Trying to restore default FA2 impl when no custom impl was activated")
        return
    undo = _active[1]
    _active.clear()
    if undo is not None:
        undo.remove()


__getattr__ = lazily(__name__, [f"{__name__}.flex_attention"])
