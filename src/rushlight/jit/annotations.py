"""``torch.jit.annotations``: types by which TorchScript is told what arguments are; annotations like any others here."""

from __future__ import annotations

from typing import Any, List  # noqa: UP035  (its public name)

__all__ = ["Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "List"]


class _Broadcasting:
    """A list that one number may stand for: ``BroadcastingList2[int]`` is ``list[int]``."""

    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()
