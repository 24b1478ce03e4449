"""A bar for one run: tqdm's where it is installed and somebody watches, else one line per tenth of the way."""

import sys
from typing import Any

__all__ = ["Progress"]


class Progress:
    """Shows the steps of the run ``name``; a context manager."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bar: Any = None
        self.tenth = 0

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm

                self.bar = tqdm(desc=f"{self.name:<24}", unit="step", leave=True)
            except ImportError:
                pass
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def step(self, step: int, steps: int, loss: float) -> None:
        """Step ``step`` of ``steps`` is done and had loss ``loss``."""
        if self.bar is not None:
            self.bar.total = steps
            self.bar.set_postfix_str(f"loss {loss:.3f}", refresh=False)
            self.bar.update(step - self.bar.n)
        elif step * 10 // steps > self.tenth:
            self.tenth = step * 10 // steps
            print(f"{self.name:<24} {10 * self.tenth:>3} %   loss {loss:.3f}", file=sys.stderr, flush=True)
