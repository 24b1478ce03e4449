"""``torch._VF``: functions of `torch` by name, as recurrent layers of libraries call them."""

from __future__ import annotations

import sys
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not callable(found := getattr(sys.modules["rushlight"], name, None)):
        raise AttributeError(f"module 'torch._VF' has no attribute {name!r}")
    return found
