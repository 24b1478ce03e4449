"""What is public says what it is."""

import ast
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest
from tests.architecture.syntax import tree

import rushlight
from rushlight.dispatch.registry import NAMESPACES

PACKAGE = Path(rushlight.__file__).parent


def undocumented(tree: ast.Module) -> list[str]:
    """Public functions and classes at the top of a module that have no docstring."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        f"{node.lineno}: {node.name}"
        for node in tree.body
        if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node)
        if not any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def test_modules_have_docstrings() -> None:
    without = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.stat().st_size and not ast.get_docstring(tree(path))
    ]
    assert not without


def test_public_names_have_docstrings() -> None:
    without = []
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        if relative.parts[:2] == ("kernels", "reference"):
            continue  # the NumPy twin of a function in kernels/, which has the docstring of both
        if any(part.startswith("_") and part != "__init__.py" for part in relative.parts):
            continue
        without += [f"{relative}:{name}" for name in undocumented(tree(path))]
    assert not without, "\n".join(without)


def test_what_is_made_at_run_time_has_docstrings_too() -> None:
    names = [name for name in dir(rushlight) if not name.startswith("_")]
    assert not [name for name in names if callable(x := getattr(rushlight, name)) and not inspect.getdoc(x)]


def test_help_tells_of_tensors() -> None:
    assert str(inspect.signature(rushlight.sin)) == "(input: 'Tensor') -> 'Tensor'"
    assert str(inspect.signature(rushlight.mul)) == "(input: 'Tensor', other: 'Tensor | complex') -> 'Tensor'"
    operators = [x for space in NAMESPACES.values() for x in space.values() if hasattr(x, "op")]
    assert not [x.__name__ for x in operators if "Array" in str(inspect.signature(x))]


def test_the_package_is_loaded_once() -> None:
    """Files in folders that are no package would be loaded by their path, and all that is above them with them."""
    assert f"{PACKAGE.parent.name}.{PACKAGE.name}" not in sys.modules


def test_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_what_is_not_there_is_no_attribute() -> None:
    assert not hasattr(rushlight, "walls") and not hasattr(rushlight, "nonsense")


def test_names_that_are_loaded_when_asked_for_lead_somewhere() -> None:
    for module in (*rushlight._LAZY.values(), *rushlight._FUNCTIONS.values()):
        assert importlib.util.find_spec(module), module
    for name in (*rushlight._LAZY, *rushlight._FUNCTIONS):
        assert hasattr(rushlight, name), name


def test_a_module_whose_own_imports_fail_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_room.py").write_text("import a_module_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(rushlight._LAZY, "broken", "broken_room")
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        rushlight.broken
    monkeypatch.setitem(rushlight._LAZY, "broken", "rushlight.nowhere")
    assert not hasattr(rushlight, "broken")


def test_a_star_brings_what_scripts_name() -> None:
    names: dict[str, object] = {}
    exec("from rushlight import *", names)
    wanted = "Tensor arange cat exp float32 from_numpy int64 load manual_seed nn no_grad ones optim randn relu save tensor zeros"
    assert not [name for name in wanted.split() if name not in names]
    assert "ops" in names and not [
        name for name in names if name.startswith("_") and name not in ("__builtins__", "__version__")
    ]
