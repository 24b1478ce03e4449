"""Where an operator is known by name, and the figures of the house: what a reader meets before the first line of logic.

    python tools/where.py                  # five operators and all figures
    python tools/where.py softmax --files  # another one, with its files

A file knows an operator by name where it defines or imports that name or has it as a word of a string; where it takes it as an
attribute (`F.sigmoid`, `x.var()`), it uses it. Comments and docstrings do not count.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What else an operator's record, kernels and nodes are called.
OPERATORS = {
    "sigmoid": (),
    "gelu": (),
    "var": (),
    "layer_norm": ("native_layer_norm",),
    "conv2d": ("convolution_op", "conv_input_op", "conv_weight_op", "convolution"),
}
# What PyTorch calls modules at its top.
THEIRS = frozenset(
    "_C _dynamo accelerator amp ao autograd backends compiler cpu cuda distributed distributions fft func functional "
    "futures fx hub jit library linalg masked monitor multiprocessing nested nn onnx optim overrides package profiler quantization "
    "random serialization signal sparse special storage testing types utils version".split()
)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Share:
    """How many of some annotations are `Any` alone."""

    name: str
    any_alone: int
    all_of_them: int

    def __str__(self) -> str:
        share = 100 * self.any_alone / max(self.all_of_them, 1)
        return f"{self.name:34} {share:5.1f} %  ({self.any_alone} of {self.all_of_them})"


def parsed(folder: Path) -> dict[str, ast.Module]:
    """The syntax trees of all Python files below a folder, by their path from there."""
    paths = sorted(folder.rglob("*.py"))
    return {path.relative_to(folder).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def docstrings(tree: ast.AST) -> set[int]:
    """The identities of the constants that are docstrings, or any other string that is a statement of its own."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def all_names(name: str) -> tuple[str, ...]:
    """The name of an operator and what else it is called."""
    return (name, *OPERATORS.get(name, ()))


def knows(tree: ast.AST, name: str) -> set[str]:
    """How a file names an operator: "named" where it defines or imports it or has it in a string, "used" as an attribute."""
    names = all_names(name)
    word, notes, found = re.compile(rf"\b({'|'.join(names)})\b"), docstrings(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode | ast.ClassDef) and node.name in names:
            found.add("named")
        elif isinstance(node, ast.ImportFrom | ast.Import):
            if any(each in names for alias in node.names for each in (alias.name, alias.asname)):
                found.add("named")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            if word.search(node.value):
                found.add("named")
        elif isinstance(node, ast.Attribute) and node.attr in names:
            found.add("used")
    return found


def native(folder: Path, name: str) -> list[str]:
    """The C++ files that have the name as a word, or as a part of one of several words."""
    word = re.compile(rf"(?<![a-zA-Z])({'|'.join(all_names(name))})(?![a-z])")
    paths = (path for path in sorted(folder.rglob("*")) if path.suffix in (".cpp", ".h"))
    return [p.relative_to(folder).as_posix() for p in paths if word.search(p.read_text(encoding="utf-8"))]


def where(name: str, trees: dict[str, ast.Module], folder: Path | None = None) -> dict[str, list[str]]:
    """The files that name an operator, those that only use it, and those in C++."""
    found = {path: knows(tree, name) for path, tree in trees.items()}
    named = [path for path, how in found.items() if "named" in how]
    return {
        "named": named,
        "used": [path for path, how in found.items() if how == {"used"}],
        "native": native(folder, name) if folder is not None else [],
    }


def functions(trees: Iterable[ast.Module]) -> Iterator[FunctionNode]:
    """All functions, those inside of others too."""
    for tree in trees:
        yield from (node for node in ast.walk(tree) if isinstance(node, FunctionNode))


def names_of_any(trees: Iterable[ast.Module]) -> set[str]:
    """`Any`, and what modules call it: `Name = Any`."""
    found = {"Any", "typing.Any"}
    for tree in trees:
        for node in tree.body:
            # What is not named is not written out as text, which takes long for a table.
            named = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute)
            if named and ast.unparse(node.value) in ("Any", "typing.Any"):
                found |= {ast.unparse(target) for target in node.targets}
    return found


def shares(trees: dict[str, ast.Module], rooms: tuple[str, ...] = ()) -> list[Share]:
    """The shares of `Any` among annotated parameters and returns; of some rooms alone, if any are given."""
    chosen = [tree for path, tree in trees.items() if not rooms or path.startswith(rooms)]
    parameters: list[ast.expr | None] = []
    returns: list[ast.expr | None] = []
    for node in functions(chosen):
        a = node.args
        parameters += [arg.annotation for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if arg]
        returns.append(node.returns)
    alone = names_of_any(trees.values())

    def is_any(note: ast.expr | None) -> bool:
        return isinstance(note, ast.Name | ast.Attribute) and ast.unparse(note) in alone

    where = " and ".join(room.rstrip("/") for room in rooms) or "all"
    return [Share(f"Any: {what}, {where}", sum(map(is_any, notes)), sum(note is not None for note in notes))
            for what, notes in (("parameters", parameters), ("returns", returns))]  # fmt: skip


def lengths(trees: Iterable[ast.Module]) -> list[int]:
    """Lines of every function, without its docstring, from the shortest."""
    found = []
    for node in functions(trees):
        first = node.body[0]
        has_note = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        note = (first.end_lineno or 0) - first.lineno + 1 if has_note else 0
        found.append((node.end_lineno or 0) - node.lineno + 1 - note)
    return sorted(found)


def folders(paths: Iterable[str]) -> dict[str, int]:
    """How many files lie in each folder."""
    found: dict[str, int] = {}
    for path in paths:
        folder = path.rpartition("/")[0] or "."
        found[folder] = found.get(folder, 0) + 1
    return found


def own_modules(paths: Iterable[str]) -> list[str]:
    """The modules at the top that are not named as PyTorch's are."""
    top = [path.removesuffix(".py") for path in paths if "/" not in path]
    return [name for name in top if name not in THEIRS and not name.startswith("__")]


# The import graph --------------------------------------------------------------------------------------


def dotted(path: str, package: str) -> str:
    """The name of the module in a file."""
    parts = [package, *path.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All imports of a file, those in functions too, those for type checkers alone not."""
    for node in statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not for_checkers(node):
            yield from imports(node)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, and what else holds such: expressions, most of a tree, are passed over."""
    return (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt | ast.excepthandler | ast.match_case))


def for_checkers(node: ast.AST) -> bool:
    """Whether a statement is for type checkers alone: `if TYPE_CHECKING`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported(node: ast.Import | ast.ImportFrom, modules: set[str]) -> Iterator[str]:
    """The modules of the package that an absolute import names."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        yield from (name for name in names if name in modules)
        return
    for name in names:
        inner = f"{node.module}.{name}"
        if inner in modules:
            yield inner
        elif node.module in modules:
            yield str(node.module)


def graph(trees: dict[str, ast.Module], package: str) -> dict[str, set[str]]:
    """Which module imports which. A module that imports the package it lies in makes no edge: that one is begun before."""
    modules = {dotted(path, package): tree for path, tree in trees.items()}
    names = set(modules)
    edges = {
        module: {target for node in imports(tree) for target in imported(node, names)}
        for module, tree in modules.items()
    }
    return {module: {t for t in to if not f"{module}.".startswith(f"{t}.")} for module, to in edges.items()}


def largest_cycle(edges: dict[str, set[str]]) -> list[str]:
    """The largest group of modules each of which imports every other, by detours too."""
    best: list[str] = []
    for group in components(edges):
        if len(group) > max(1, len(best)):
            best = sorted(group)
    return best


def components(edges: dict[str, set[str]]) -> Iterator[list[str]]:
    """The strongly connected components, by Kosaraju's two walks."""
    order: list[str] = []
    seen: set[str] = set()
    for root in edges:
        order += walk(root, edges, seen)
    back: dict[str, set[str]] = {module: set() for module in edges}
    for module, to in edges.items():
        for target in to:
            back[target].add(module)
    seen = set()
    for root in reversed(order):
        if group := walk(root, back, seen):
            yield group


def walk(root: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
    """The modules that are reached from one and were not seen before, each after those that it reaches."""
    if root in seen:
        return []
    seen.add(root)
    done: list[str] = []
    stack = [(root, iter(sorted(edges[root])))]
    while stack:
        module, rest = stack[-1]
        target = next((t for t in rest if t not in seen), None)
        if target is None:
            done.append(module)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(sorted(edges[target]))))
    return done


# What is printed -----------------------------------------------------------------------------------------


def told(name: str, source: Path, tests: Path, files: bool, trees: dict[str, dict[str, ast.Module]]) -> list[str]:
    """The lines about one operator."""
    src, test = where(name, trees["src"], source), where(name, trees["tests"])
    lines = [
        f"{name:12} src: named in {len(src['named'])}, in C++ {len(src['native'])}, used in {len(src['used'])} more;  "
        f"tests: named in {len(test['named'])}, used in {len(test['used'])} more"
    ]
    if files:
        lines += [f"    {how:7} {path}" for found in (src, test) for how, paths in found.items() for path in paths]
    return lines


def figures(trees: dict[str, ast.Module], source: Path) -> list[str]:
    """The lines about the house."""
    rooms = tuple(f"{room}/" for room in ("engine", "dispatch") if any(path.startswith(f"{room}/") for path in trees))
    size = lengths(trees.values())
    crowded = {folder: count for folder, count in folders(trees).items() if count > 30}
    own, cycle = own_modules(trees), largest_cycle(graph(trees, source.name))
    lines = sum(len((source / path).read_text(encoding="utf-8").splitlines()) for path in trees)
    code = sum(1 for path in trees for line in (source / path).read_text(encoding="utf-8").splitlines() if line.strip())
    return [
        *map(str, (*shares(trees), *shares(trees, rooms))),
        f"folders of more than 30 files: {crowded or 'none'}",
        f"own modules at the top: {len(own)}  {' '.join(own)}",
        f"largest import cycle, imports in functions counted: {len(cycle)}  {' '.join(cycle[:12])}",
        f"functions: {len(size)}, median {statistics.median(size):g} lines, p90 {size[int(0.9 * len(size))]}",
        f"Python lines: {lines}, {code} of them not blank, in {len(trees)} files",
    ]


def main() -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operators", nargs="*", default=OPERATORS)
    parser.add_argument("--files", action="store_true", help="name the files")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout that is looked at")
    options = parser.parse_args()
    source, tests = options.root / "src" / "rushlight", options.root / "tests"
    trees = {"src": parsed(source), "tests": parsed(tests)}
    for name in options.operators:
        print("\n".join(told(name, source, tests, options.files, trees)))
    print("\n".join(figures(trees["src"], source)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
