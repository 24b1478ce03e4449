"""``torchviz`` under ``rushlight run``: its ``make_dot``, drawn by rushlight.viz, without Graphviz."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from rushlight.viz import Picture, graph

__all__ = ["Dot", "make_dot"]


class Dot(Picture):
    """What ``make_dot`` returns: a picture with the methods of graphviz.Digraph that scripts call."""

    format = "svg"

    @property
    def source(self) -> str:
        """The text for Graphviz."""
        return self.dot

    def render(self, filename: Any = "Digraph.gv", directory: Any = None, format: str | None = None,
               cleanup: bool = False, view: bool = False, **others: Any) -> str:  # fmt: skip
        """Write ``filename.svg``, or another ``format`` with the program dot of Graphviz; the path.

        Raises RuntimeError for a format that needs the program where it is not installed.
        """
        ending = (format or self.format).lower()
        path = Path(directory or ".", f"{os.fspath(filename)}.{ending}")
        path.parent.mkdir(parents=True, exist_ok=True)
        if ending in ("svg", "dot", "gv"):
            return str(self.save(path))
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError(f"render(format={ending!r}) needs the program dot of Graphviz, which is not installed; "
                               "format='svg' needs nothing")  # fmt: skip
        subprocess.run([program, f"-T{ending}", "-o", str(path)], input=self.dot.encode(), check=True)
        return str(path)

    def view(self, filename: object = "Digraph.gv", **others: Any) -> str:
        """As ``render``: no window opens."""
        return self.render(filename, **others)


def make_dot(var: object, params: object = None, show_attrs: bool = False, show_saved: bool = False,
             max_attr_chars: int = 50) -> Dot:  # fmt: skip
    """The graph behind ``var``; ``params`` names its leaves, ``show_saved`` adds what is kept for backward."""
    return Dot(graph(var, params, show_saved).model)
