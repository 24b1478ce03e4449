"""The types that checkers and editors read say what the package does."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools import stubs
from tools.calls import CALLS
from tools.replaying.cases import SPACE, variables

import rushlight as torch

NAMESPACE = {"T": "functions", "F": "functional", "L": "linalg", "S": "special", "X": "fft"}


def test_the_files_are_what_the_declarations_say():
    # In a process of its own: classes of results are made when they are first given.
    done = subprocess.run([sys.executable, stubs.__file__, "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everyday_lines_run():
    runpy.run_path(str(Path(__file__).with_name("everyday.py")))


def declared(file: str, name: str) -> set[str]:
    """The types of the results that a stub names for a function."""
    text = (stubs.FOLDER / f"{file}.pyi").read_text(encoding="utf-8")
    return set(re.findall(rf"^ *def {name}\(.*\) -> (.*): \.\.\.$", text, re.M))


def taken_over(file: str, name: str) -> bool:
    """Whether a stub has a function as its own source declares it."""
    text = (stubs.FOLDER / f"{file}.pyi").read_text(encoding="utf-8")
    return re.search(rf"^from \S+ import {name} as {name}$", text, re.M) is not None


def shown(value: Any) -> str:
    """The type of a value as the stubs write it."""
    if isinstance(value, torch.Tensor):
        return "Tensor"
    if type(value) is tuple:
        return "tuple"
    return f"results.{type(value).__name__}" if isinstance(value, tuple) else type(value).__name__


def test_every_published_function_is_there():
    missing = [name for name, value in vars(torch.Tensor).items()
               if callable(value) and not name.startswith("_") and not declared("methods", name)
               and name not in stubs.shown_by_source()]  # fmt: skip
    assert not missing


@pytest.mark.parametrize("file", stubs.PLACES)
def test_what_is_declared_is_listed(file):  # pyright takes names for private that a list beside them does not have
    tree = ast.parse((stubs.FOLDER / f"{file}.pyi").read_text(encoding="utf-8"))
    (listed,) = (ast.literal_eval(x.value) for x in tree.body if ast.unparse(x).startswith("__all__"))
    functions = {x.name for x in tree.body if isinstance(x, ast.FunctionDef)}
    assert functions <= {*listed} and len({*listed}) == len(listed)


def test_the_package_lists_what_the_stubs_do():
    listed = (stubs.FOLDER / "functions.pyi").read_text(encoding="utf-8").partition("__all__")[2]
    assert all(f'    "{name}",\n' in listed for name in ("ones", "float32", "nn", "save"))
    assert "__all__ += _functions.__all__" in Path(torch.__file__).read_text(encoding="utf-8")


def names_a_function(call: str) -> bool:
    """Whether a text is a call of a function or method by its name, not an expression around one."""
    tree = ast.parse(call, mode="eval").body
    return isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute)


@pytest.mark.parametrize("call", [c for c in CALLS if names_a_function(c)])
def test_results_have_the_declared_types(call):
    function = ast.parse(call, mode="eval").body.func
    space = function.value.id if isinstance(function.value, ast.Name) and function.value.id in NAMESPACE else None
    file = NAMESPACE.get(space, "methods")
    types = declared(file, function.attr)
    result = eval(call, {**SPACE, **{name: torch.tensor(v) for name, v in variables(call).items()}})
    assert types or function.attr in stubs.shown_by_source() or taken_over(file, function.attr), call
    if types and types != {"Any"}:
        assert any(t.split("[")[0] == shown(result) for t in types), (call, types, shown(result))
