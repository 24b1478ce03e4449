"""Pythons beside this one: programs in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def printed(*words: object, **options: Any) -> str:
    """What Python prints when it is started with these words.  Fails where it ends with an error."""
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=240, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_as_torch(program: str) -> str:
    """What a program prints whose `import torch` is this library."""
    return printed("-m", "rushlight", "run", "-c", program)
