"""The house: a room imports only rooms of lower floors, and no module imports itself by a detour."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.syntax import nodes, tree
from tools import rooms, where
from tools.rooms import FLOOR

import rushlight

PACKAGE = Path(rushlight.__file__).parent


# Rooms of one floor that may be imported by others of it: (importing, imported): why.
NEIGHBOURS = {
    ("tensor", "storage"): "a tensor owns a storage",
    ("tensor", "signs"): "a tensor may show the conjugates of what its memory holds",
    ("generator", "tensor"): "the state of a generator is a tensor of bytes",
    ("engine", "overrides"): "what a run computes with tensors is not for classes to override",
    ("engine", "levels"): "the engine hands over to the active interpreter",
    ("distributions", "autograd"): "the entropy of an exponential family is a derivative of its normalizer",
    ("autograd", "func"): "the two faces of one machine",
    ("func", "autograd"): "the two faces of one machine",
    ("cuda", "amp"): "torch.cuda.amp is an older name of torch.amp",
    ("optim", "utils"): "parameters are keys of weak dictionaries",
    ("optim", "nn"): "an averaged model is a module",
    ("nn", "utils"): "containers use the tree and data helpers",
    ("stores", "nn"): "stores wrap modules, and follow which of them run",
    ("stores", "checkpoint"): "a module wrapped in stores.recompute is checkpointed",
    ("utils", "checkpoint"): "torch.utils.checkpoint is its public name",
    ("distributed", "serialization"): "a checkpoint is files, and ordinary files are made of it",
    ("cli", "models"): "the demo trains a model",
    ("cli", "datasets"): "the demo trains on the digits",
    ("cli", "compat"): "run resolves torch to this package",
    ("compiler", "compat"): "torch.compiler.compile is torch.compile",
    ("compat", "models"): "torchvision.models is rushlight.models",
    ("multiprocessing", "compat"): "processes that are started resolve torch to this package",
    ("compat", "hub"): "torch.utils.model_zoo is an older name of it",
}

# Imports that go up on purpose: (file, imported room): why.
UPWARD: dict[tuple[str, str], str] = {
    ("cli/estimate.py", "__init__"): "reads names of dtypes as users write them",
    ("compat/imports.py", "__init__"): "shows another version of the package",
    ("overrides/listing.py", "__init__"): "lists what the namespaces of the package have",
    ("compat/missing.py", "__init__"): "speaks of the package as a whole",
    ("compat/torchaudio_operators.py", "__init__"): "is written as programs are, on the public functions",
    ("compat/torchvision_operators.py", "__init__"): "is written as programs are, on the public functions",
    ("testing/_internal/common_distributed.py", "__init__"): "is written as tests are, on the public functions",
    ("testing/_internal/common_utils.py", "__init__"): "is written as tests are, on the public functions",
    ("testing/_internal/matrices.py", "__init__"): "is written as tests are, on the public functions",
}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of ``rushlight.x.y`` is ``x``; the package itself is the room ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(tree: ast.AST, top_only: bool = False) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports in a syntax tree, those for type checkers left out."""
    for node in where.statements(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif where.for_checkers(node):
            continue
        elif not (top_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            yield from imports(node, top_only)


def targets(node: ast.Import | ast.ImportFrom, module: str, is_package: bool, modules: set[str]) -> Iterator[str]:
    """The modules of this package that an import statement in ``module`` names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "rushlight")
        return
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + (1 if is_package else 0)]
        base = ".".join([*parts, *([base] if base else [])])
    if base.split(".")[0] != "rushlight":
        return
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        yield inner if inner in modules else base


@functools.cache
def graph(top_only: bool = False) -> dict[str, set[str]]:
    """Which module imports which."""
    paths = sources()
    modules = {module_name(path) for path in paths}
    edges: dict[str, set[str]] = {}
    for path in paths:
        module = module_name(path)
        edges[module] = {
            target
            for node in imports(tree(path), top_only)
            for target in targets(node, module, path.name == "__init__.py", modules)
            if target != module
        }
    return edges


def test_the_map_shows_the_rooms() -> None:
    """The page's table is that which `tools/rooms.py` makes of the floors and of what each room says of itself."""
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert rooms.with_table(page) == page, "run python tools/rooms.py"


def test_every_room_has_a_floor() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in sources()}
    rooms -= {"stubs"}  # what type checkers alone read
    assert rooms == set(FLOOR), f"rooms without a floor, floors without a room: {sorted(rooms ^ set(FLOOR))}"


def test_imports_go_down() -> None:
    files = {module_name(path): path.relative_to(PACKAGE).as_posix() for path in sources()}
    wrong = []
    for module, imported in graph().items():
        room = room_of(module)
        for target in imported:
            other = room_of(target)
            if other == room or FLOOR[other] < FLOOR[room]:
                continue
            if (room, other) in NEIGHBOURS and FLOOR[room] == FLOOR[other]:
                continue
            if (files[module], other) not in UPWARD:
                wrong.append(f"{files[module]} ({room}, floor {FLOOR[room]}) imports {target} (floor {FLOOR[other]})")
    assert not wrong, "\n".join(sorted(wrong))


def test_types_come_from_no_higher_floor() -> None:
    """What is imported for type checkers alone: an engine that names a class of `nn` would know of it all the same."""
    wrong = []
    for path in sources():
        module = module_name(path)
        guards = [n for n in nodes(path) if where.for_checkers(n)]
        for node in (x for guard in guards for x in ast.walk(guard) if isinstance(x, ast.ImportFrom)):
            other = room_of(node.module or "")
            if (
                (node.module or "").startswith("rushlight.")
                and other != "stubs"
                and FLOOR[other] > FLOOR[room_of(module)]
            ):
                wrong.append(f"{module} has types from {node.module}")
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_needed() -> None:
    """An exception that nothing uses any more is struck off."""
    files = {path.relative_to(PACKAGE).as_posix(): module_name(path) for path in sources()}
    edges = graph()
    idle = [key for key in UPWARD if key[1] not in {room_of(t) for t in edges.get(files.get(key[0], ""), ())}]
    idle_neighbours = set(NEIGHBOURS) - {(room_of(module), room_of(t)) for module, to in edges.items() for t in to}
    assert not idle
    assert not idle_neighbours


def test_no_cycles_at_import_time() -> None:
    edges = graph(top_only=True)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            pytest.fail("import cycle: " + " -> ".join((*path[path.index(module) :], module)))
        if module in done:
            return
        for target in sorted(edges.get(module, ())):
            # A package's __init__ is begun before its modules: a module importing its package is no cycle of ours.
            if not module.startswith(target + "."):
                visit(target, (*path, module))
        done.add(module)

    for module in sorted(edges):
        visit(module, ())


def test_torch_is_never_imported() -> None:
    """PyTorch is compared with, never built on."""
    for path in sources():
        for node in imports(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            assert not any(name.split(".")[0] == "torch" for name in names), f"{path}:{node.lineno}"
