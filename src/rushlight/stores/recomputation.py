"""Saved tensors that are computed again instead of kept."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from rushlight.basics.state import modes, set_mode
from rushlight.stores.calls import Recipes
from rushlight.stores.layout import stretch
from rushlight.stores.region import Handle, Region
from rushlight.stores.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.stores.chain import Saved


class RecomputeStore(Store):
    """Drops saved tensors that a few cheap operators compute again, in backward, from others that are kept.

    Cheap are elementwise operators, activations, normalisations, softmax, dropout (its draws are not repeated) and copies:
    so of a convolution, a batch norm and a relu, the input of the norm is kept, and the relu's result, which the next
    convolution saves, is not. Gradients are bit for bit the same. It stores nothing itself: other stores, inside or
    around it, get what it does not drop, and what it needs is taken from them.

    As a wrapper of a module it is a checkpoint instead (`torch.utils.checkpoint`, `use_reentrant=False`): the module's inputs
    alone are kept, and its forward runs again in backward, after which running statistics of its norms are as they were.

    Args:
        limit: how many operators may have to run again for one tensor.
        Further: the filters of every store, for what is dropped.

    >>> import rushlight as torch
    >>> from rushlight import stores
    >>> x = torch.randn(64, 64, requires_grad=True)
    >>> w = torch.randn(64, 64, requires_grad=True)
    >>> with stores.recompute() as store:
    ...     y = ((x @ w).tanh().sigmoid() @ w).sum()
    >>> y.backward()
    >>> store.stats()["dropped_bytes"]
    16384
    """

    kind = "recompute"
    recomputes = True

    def __init__(self, *, limit: int = 4, **filters: Any):
        super().__init__(**filters)
        if limit < 1:
            raise ValueError(f"stores.recompute: limit= must be at least 1 operator, got {limit}")
        self.recipes = Recipes(limit)

    # Contexts ----------------------------------------------------------------------------------------

    def __enter__(self) -> RecomputeStore:
        super().__enter__()
        self.entered.former.append(modes.observers)
        if self.recipes not in modes.observers:
            set_mode("observers", (*modes.observers, self.recipes))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        set_mode("observers", self.entered.former.pop())
        super().__exit__(kind, error, tb)

    def run(self, forward: Callable[..., Any], module: object, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """The forward of a wrapped module: checkpointed."""
        from rushlight.checkpoint import checkpoint
        from rushlight.checkpoint.once import counting_once

        def contexts() -> tuple[Any, Any]:
            return counting_once(module)

        return checkpoint(forward, *args, use_reentrant=False, context_fn=contexts, **kwargs)

    # Packing -----------------------------------------------------------------------------------------

    def region(self, saved: Saved) -> Region | None:
        """The region that keeps the memory of a saved tensor, None if there is none."""
        known = self.recipes.region(saved.storage, saved.version)
        return None if known is None else known()

    def learn(self, saved: Saved, region: Region) -> None:
        """A region was made of a saved tensor: what is computed from it can be computed again."""
        known = self.region(saved)
        if not saved.layout.compact and (known is None or known.stop - known.start < region.stop - region.start):
            self.recipes.learn(saved.storage, saved.version, region)

    def source(self, saved: Saved) -> Handle:
        """Keep a tensor that no store takes as it is."""
        region, layout = self.region(saved), saved.layout
        if region is None or not (region.start <= layout.start and layout.stop <= region.stop) or layout.compact:
            region = Region(stretch(saved.tensor._array, layout), layout, 0, saved.watch, saved.array)
            self.learn(saved, region)
        return Handle(region, layout if layout.compact else layout.within(region.start), saved.watch)

    def recomputed(self, saved: Saved) -> Region | None:
        """The region of a tensor that can be computed again, None if it cannot."""
        if saved.layout.compact or saved.watch is None:
            return None
        region = self.region(saved)
        if region is not None:
            return region if region.start <= saved.layout.start and saved.layout.stop <= region.stop else None
        innermost = self in getattr(modes.saved_hooks[-1], "stores", ())  # else hooks within made something else of it
        again = self.recipes.again(saved.storage, saved.version, saved.tensor._array if innermost else None)
        if again is None:
            return None
        region = Region(again, again.layout, again.cost, saved.watch, saved.array)
        self.recipes.learn(saved.storage, saved.version, region)
        self.note_kept(saved.layout.nbytes)
        return region

    def stats(self) -> dict[str, Any]:
        """As of every store; `dropped_bytes` are those of the tensors that are computed again."""
        return {**super().stats(), "dropped_bytes": self.counts["bytes"]}

    def arguments(self) -> list[str]:
        return [f"limit={self.recipes.limit}", *super().arguments()]
