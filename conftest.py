"""Modules that stand on an extra which is not installed are not collected for their examples."""

import importlib.util

collect_ignore = [
    path
    for path, needed in {"src/rushlight/compat/rooms/tensorboard.py": "tensorboard"}.items()
    if importlib.util.find_spec(needed) is None
]
