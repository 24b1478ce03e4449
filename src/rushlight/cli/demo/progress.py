"""A bar for one run: tqdm's where it is installed and somebody watches, else a line for each tenth of the way or four seconds."""

import sys
from time import monotonic
from typing import Any

__all__ = ["Progress"]

SILENT = 4.0  # seconds after which a line comes before the next tenth


class Progress:
    """Shows the steps of the run ``name``; a context manager."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bar: Any = None
        self.tenth, self.said = 0, monotonic()

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm

                self.bar = tqdm(desc=f"{self.name:<24}", unit="step", leave=True)
            except ImportError:
                pass
        if self.bar is None:
            print(f"{self.name:<24}   0 %", file=sys.stderr, flush=True)
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
        elif step * 10 // steps > self.tenth or monotonic() - self.said > SILENT:
            self.tenth, self.said = step * 10 // steps, monotonic()
            print(f"{self.name:<24} {100 * step // steps:>3} %   loss {loss:.3f}", file=sys.stderr, flush=True)
