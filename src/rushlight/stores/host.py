"""Host memory as a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.autograd.graph import copied_to_host
from rushlight.stores.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from rushlight.basics.arrays import Array


class CpuStore(Store):
    """Keeps copies of saved tensors in host memory, as `torch.autograd.graph.save_on_cpu`, with filters and sharing.

    Tensors of the CPU device lie there already: for them it saves nothing by itself, and costs the copies of what else stays
    alive. What is gained is that a copy does not keep a larger memory alive of which it is a small part. Inside another
    store it is harmless. Arguments: the filters of every store.

    >>> import rushlight as torch
    >>> from rushlight import stores
    >>> x = torch.ones(1024, requires_grad=True)
    >>> with stores.cpu() as store:
    ...     y = (x.sin().exp() * 2).sum()
    >>> y.backward()
    >>> store.stats()["bytes"]
    4096
    """

    kind = "cpu"
    exact = True

    def encode(self, array: Array, guard: Callable[..., Any] | None) -> tuple[list[Any], Any]:
        return [copied_to_host(array)], None

    def decode(self, parts: list[Any], note: Any, count: int, dtype: np.dtype[Any]) -> Any:
        return parts[0]
