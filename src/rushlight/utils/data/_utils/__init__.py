"""What loaders are made of, and what those that libraries write ask for by PyTorch's names."""

from __future__ import annotations

import atexit

HAS_NUMPY = True
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks whether workers are there
python_exit_status = False  # whether the interpreter ends


def _ends() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_ends)
