"""The rooms of the house and their floors: writes the table of `docs/how-it-works.md`.

    python tools/rooms.py

A room imports only rooms of lower floors; `tests/architecture` enforces that. What the table says of a room is the first
sentence of its own docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rushlight"
PAGE = ROOT / "docs" / "how-it-works.md"
TABLE = re.compile(r"^\| floor \|.*?\n\n", re.DOTALL | re.MULTILINE)

# The one table of floors: a room is a module or package directly below rushlight.
FLOORS = {
    0: "absent basics cpu futures version",
    1: "kernels",
    2: "backends",
    3: "generator signs storage tensor",
    4: "engine levels overrides types",
    5: "dispatch",
    6: "ops",
    7: "transforms",
    8: "autograd distributions fft func linalg signal special",
    9: "accelerator amp checkpoint cuda library masked monitor nested nn optim profiler random sparse stores utils viz",
    10: "_C _dynamo ao distributed onnx jit memory serialization testing",
    11: "cli compat compiler datasets fx hub models multiprocessing",
    12: "__init__ __main__",
}
FLOOR = {room: floor for floor, rooms in FLOORS.items() for room in rooms.split()}


def sentence(room: str) -> str:
    """What a room says of itself: the first sentence of its docstring."""
    path = PACKAGE / room / "__init__.py"
    tree = ast.parse((path if path.exists() else PACKAGE / f"{room}.py").read_text(encoding="utf-8"))
    note = re.sub(r"\s+", " ", ast.get_docstring(tree) or "").replace("``", "`").replace("|", "\\|")
    return re.split(r"(?<=[.])\s", note, maxsplit=1)[0]


def table() -> str:
    """The rooms from the lowest floor, a row each."""
    order = sorted(FLOOR, key=lambda room: (FLOOR[room], room.strip("_")))
    rows = [f"| {FLOOR[room]} | `{room}` | {sentence(room)} |" for room in order]
    return "\n".join(["| floor | room | |", "| --- | --- | --- |", *rows, "", ""])


def with_table(page: str) -> str:
    """A page with the table as it is now."""
    return TABLE.sub(lambda _: table(), page, count=1)


def main() -> int:
    """Write the table into the page."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
