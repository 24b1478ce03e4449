"""Notebooks of the examples: their cells are those of the scripts, executed.

    python tools/notebooks.py                    # all that are not in step with their script
    python tools/notebooks.py gpt where_it_goes  # these, anew
    python tools/notebooks.py --check            # whether all are in step; nothing is executed

It needs nbclient and ipykernel (`pip install '.[notebooks]'`); what is executed is the rushlight of this Python's path.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES, NOTEBOOKS = ROOT / "examples", ROOT / "examples" / "notebooks"
LARGEST = 200_000  # bytes of a notebook
STARTED = {"four_processes": "run -n 4"}  # written to a file by the notebook, which starts it in several processes
# What a notebook shows at its end beside what the script prints.
SHOWN = {
    "where_it_goes": ["print(memory.text_report(recording, width=100))", "memory.advise(recording)"],
    "below_a_budget": ["budget.report()"],
    "before_it_runs": ["found"],
    "custom_function": [
        'from rushlight import viz\n\nviz.graph(Softsign.apply(BitAbs.apply(small)).sum(), {"x": small})'
    ],
}


def cells(name: str) -> list[tuple[str, str]]:
    """(kind, source) of each cell of an example: its docstring as text, then the statements, parted at empty lines."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    lines, body = source.splitlines(), ast.parse(source).body
    first, rest = body[0], body[1:]
    assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant), f"{name} has no docstring"
    found = [("markdown", f"# {title(name)}\n\n{str(first.value.value).strip()}\n\nThe same as `examples/{name}.py`.")]
    if name in STARTED:
        start = f"!rushlight {STARTED[name]} {name}.py"
        return [*found, ("code", f"%%writefile {name}.py\n{source.rstrip()}"), ("code", start)]
    found.append(("code", f'import sys\n\nsys.argv = ["{name}.py"]  # as the script has it without arguments'))
    start = end = first.end_lineno or 0
    for node in rest:
        begin = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        gap = [line for line in lines[end:begin] if not line.strip()]
        if gap and "\n".join(lines[start:end]).strip() and end > (first.end_lineno or 0):
            found.append(("code", "\n".join(lines[start:end]).strip()))
            start = end
        end = node.end_lineno or begin
    found.append(("code", "\n".join(lines[start:]).strip()))
    return found + [("code", source) for source in SHOWN.get(name, ())]


def title(name: str) -> str:
    """A name as a heading."""
    return name.replace("_", " ").capitalize()


def notebook(name: str) -> dict[str, Any]:
    """An example as a notebook that was not executed."""
    made = []
    for number, (kind, source) in enumerate(cells(name)):
        key = hashlib.sha256(f"{name}{number}".encode()).hexdigest()[:8]
        cell: dict[str, Any] = {"cell_type": kind, "id": key, "metadata": {}, "source": source}
        made.append(cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def path_of(name: str) -> Path:
    """Where the notebook of an example lies."""
    return NOTEBOOKS / f"{name}.ipynb"


def in_step(name: str) -> bool:
    """Whether the notebook of an example is there, executed, with the cells that its script gives."""
    path = path_of(name)
    if not path.exists():
        return False
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    ran = all(cell["execution_count"] for cell in found if cell["cell_type"] == "code")
    return ran and [(cell["cell_type"], "".join(cell["source"])) for cell in found] == cells(name)


def executed(name: str) -> str:
    """The text of the executed notebook.  Raises what a cell raises, and ValueError where it grows too large."""
    import nbformat
    from nbclient import NotebookClient

    made = nbformat.from_dict(notebook(name))
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(made, timeout=600, resources={"metadata": {"path": folder}}).execute()
        here = folder
    for cell in made.cells:
        cell.metadata.pop("execution", None)  # moments, which differ each time
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    nbformat.validate(made)
    text = (
        str(nbformat.writes(made)).replace(here, "/tmp").replace("\\r\\n", "\\n") + "\n"
    )  # a terminal's ends of lines
    if len(text.encode()) > LARGEST:
        raise ValueError(f"{name}: {len(text):,} characters, more than {LARGEST:,}")
    return text


def joined(outputs: list[Any]) -> list[Any]:
    """Outputs of a cell, with what was printed in pieces in one."""
    found: list[Any] = []
    for output in outputs:
        last = found[-1] if found else None
        if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            found.append(output)
    return found


def main() -> int:
    """Write notebooks, or say which are not in step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples to execute anew")
    parser.add_argument("--check", action="store_true", help="only say which are not in step")
    options = parser.parse_args()
    every = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    stale = options.names or [name for name in every if not in_step(name)]
    if options.check:
        print("\n".join(f"{name}: run tools/notebooks.py" for name in stale))
        return int(bool(stale))
    NOTEBOOKS.mkdir(exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    for name in stale:
        text = executed(name)
        path_of(name).write_text(text, encoding="utf-8")
        print(f"{path_of(name).relative_to(ROOT)}: {len(text):,} characters", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
