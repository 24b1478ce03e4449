"""Functions and files stay small enough to be read at a glance."""

import ast
import statistics
from pathlib import Path

import rushlight

PACKAGE = Path(rushlight.__file__).parent
LONGEST_FUNCTION = 70
LONGEST_FILE = 700

# "file:function" that may be longer, and why.
LONG_FUNCTIONS: dict[str, str] = {}
LONG_FILES: dict[str, str] = {}


def functions() -> dict[str, int]:
    """Lines of every function, docstring and signature included."""
    found: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                key = f"{path.relative_to(PACKAGE).as_posix()}:{node.name}"
                found[key] = max(found.get(key, 0), node.end_lineno - node.lineno + 1)
    return found


def files() -> dict[str, int]:
    """Lines of every source file."""
    suffixes = {".py", ".cpp", ".h"}
    paths = sorted(path for path in PACKAGE.rglob("*") if path.suffix in suffixes)
    return {path.relative_to(PACKAGE).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def percentile(values: list[int], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def test_functions_are_short() -> None:
    lengths = list(functions().values())
    assert statistics.median(lengths) <= 8
    assert percentile(lengths, 0.9) <= 30


def test_no_function_is_long() -> None:
    long = {name: lines for name, lines in functions().items() if lines > LONGEST_FUNCTION}
    assert set(long) == set(LONG_FUNCTIONS), long


def test_files_are_short() -> None:
    assert percentile(list(files().values()), 0.9) <= 450


def test_no_file_is_long() -> None:
    long = {name: lines for name, lines in files().items() if lines > LONGEST_FILE}
    assert set(long) == set(LONG_FILES), long
