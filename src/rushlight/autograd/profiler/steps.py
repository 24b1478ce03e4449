"""How many steps the parts of a program have counted: optimizers, profiles."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["KinetoStepTracker"]


class KinetoStepTracker:
    """The steps of each part, by its name; a program is as far as the one that is farthest."""

    _current_step: ClassVar[int] = 0
    _step_dict: ClassVar[dict[str, int]] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Let a part count, from the step at which the program is."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a part.  Returns whether it was there."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a part.  Returns how far the program is."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """How far the program is."""
        return cls._current_step
