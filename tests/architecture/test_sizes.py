"""Functions and files stay small enough to be read at a glance."""

import ast
import functools
import statistics
from pathlib import Path

from tests.architecture.syntax import nodes, tree
from tools import where

import rushlight

PACKAGE = Path(rushlight.__file__).parent
MEDIAN_FUNCTION, LONG_FUNCTION, LONGEST_FUNCTION = (
    5,
    17,
    70,
)  # half of all, nine of ten, and all have at most so many lines
LONG_FILE, LONGEST_FILE = 330, 700  # nine of ten, and all
MOST_FILES = 30  # in one folder
MOST_AT_THE_TOP = 3
LARGEST_CYCLE = 3  # of modules that import each other, imports inside of functions counted
MOST_NAMING = 4  # files that know one operator by name
MOST_ANY = 0.1, 0.12  # of annotated parameters, of returns: they may fall, never rise
MOST_ANY_BELOW = 0.045, 0.08  # in the engine and in dispatch

# "file:function" that may be longer, and why.
LONG_FUNCTIONS: dict[str, str] = {}
LONG_FILES: dict[str, str] = {}


def trees() -> dict[str, ast.Module]:
    """The syntax trees of all files, by their path from the package."""
    return {path.relative_to(PACKAGE).as_posix(): tree(path) for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def functions() -> dict[str, int]:
    """Lines of every function, docstring and signature included."""
    found: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes(path):
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
    assert statistics.median(lengths) <= MEDIAN_FUNCTION
    assert percentile(lengths, 0.9) <= LONG_FUNCTION


def test_no_function_is_long() -> None:
    long = {name: lines for name, lines in functions().items() if lines > LONGEST_FUNCTION}
    assert set(long) == set(LONG_FUNCTIONS), long


def test_files_are_short() -> None:
    assert percentile(list(files().values()), 0.9) <= LONG_FILE


def test_no_file_is_long() -> None:
    long = {name: lines for name, lines in files().items() if lines > LONGEST_FILE}
    assert set(long) == set(LONG_FILES), long


def test_no_folder_is_crowded() -> None:
    crowded = {folder: count for folder, count in where.folders(trees()).items() if count > MOST_FILES}
    assert not crowded, "a room of its own for some of them"


def test_few_modules_at_the_top_are_our_own() -> None:
    """What PyTorch has no module for lies in a room that says what it is."""
    own = where.own_modules(trees())
    assert len(own) <= MOST_AT_THE_TOP, own


def test_imports_in_functions_make_no_large_cycles() -> None:
    cycle = where.largest_cycle(where.graph(trees(), "rushlight"))
    assert len(cycle) <= LARGEST_CYCLE, cycle


def test_an_operator_is_known_by_name_in_few_files() -> None:
    """What is said of an operator stands in its declaration."""
    texts = {path: (PACKAGE / path).read_text(encoding="utf-8") for path in trees()}
    named = {}
    for name in where.OPERATORS:
        likely = {path: t for path, t in trees().items() if any(each in texts[path] for each in where.all_names(name))}
        named[name] = where.where(name, likely)["named"]
    assert not {name: files for name, files in named.items() if len(files) > MOST_NAMING}


def test_annotations_say_something() -> None:
    """`Any` alone, by whatever name a module calls it, tells neither a reader nor a checker what is taken or given."""
    for most, rooms in ((MOST_ANY, ()), (MOST_ANY_BELOW, ("engine/", "dispatch/"))):
        found = where.shares(trees(), rooms)
        assert all(s.any_alone <= bound * s.all_of_them for s, bound in zip(found, most, strict=True)), "\n".join(
            map(str, found)
        )


def test_contributing_says_what_is_enforced() -> None:
    told = " ".join((PACKAGE.parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    parameters, returns = (f"{100 * share:g} %" for share in MOST_ANY)
    assert (
        f"a median of at most {MEDIAN_FUNCTION} lines, nine of ten at most {LONG_FUNCTION}, none more than {LONGEST_FUNCTION}; "
        f"no file more than {LONGEST_FILE}, nine of ten at most {LONG_FILE}, no folder more than {MOST_FILES} files; "
        f"`Any` alone annotates no more than {parameters} of parameters and {returns} of returns."
    ) in told
