"""The last finder of all: it says why a module of PyTorch that nobody found is not here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from rushlight.absent.reasons import why

__all__ = ["install"]


class _Reasons:
    """Finds nothing.  An `import` learns the reason; who only asks, as `importlib.util.find_spec` does, is told None."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        room, _, rest = fullname.partition(".")
        if not rest or room not in ("torch", "rushlight") or not _imports(sys._getframe(1)):
            return None
        if room == "torch" and sys.modules.get("torch") is not sys.modules["rushlight"]:
            return None  # PyTorch itself
        module = f"torch.{rest}"
        parent, _, name = module.rpartition(".")
        said = why(parent, name) or why(module)
        if said is not None:
            raise ModuleNotFoundError(f"No module named {fullname!r}: {module} is not here: {said}", name=fullname)
        return None


def _imports(frame: Any) -> bool:
    """Whether an import asks a finder, by the frame that called it."""
    while frame is not None and frame.f_code.co_name == "_find_spec":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_find_and_load_unlocked"


def install() -> None:
    """Let imports that fail say why, from now on in this process."""
    if not any(type(finder) is _Reasons for finder in sys.meta_path):
        sys.meta_path.append(_Reasons())
