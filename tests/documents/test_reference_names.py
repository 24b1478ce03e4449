"""Every name of the autograd reference manual exists here, and the table of names shows a test for each.

The manual lies outside the repository; what needs it is skipped where it is absent.
"""

import ast
import inspect
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT.parent / "shared" / "documents"
TABLE = ROOT / "docs" / "reference-table.md"
needs_the_manual = pytest.mark.skipif(not FOLDER.is_dir(), reason="the founding documents are not here")

_ROW = re.compile(r"^`(?P<name>[A-Za-z_][\w.]*)`(?:\([^|]*\))? *\|", re.MULTILINE)
_CLASS = re.compile(r"^`class (?P<name>[\w.]+)(?:\((?P<arguments>[^`]*)\))?`", re.MULTILINE)
_DOTTED = re.compile(r"(?<![\w/.])(?:torch|autograd)(?:\.[A-Za-z_]\w*)+")
# What the manual calls by the names of variables in its text and examples.
OWNERS = {
    "Exp": "torch.autograd.Function", "autograd": "torch.autograd", "ctx": "torch.autograd.function.FunctionCtx",
    "handle": "torch.utils.hooks.RemovableHandle", "model": "torch.nn.Module", "optimizer": "torch.optim.Optimizer",
    "param": "torch.Tensor", "prof": "torch.autograd.profiler.profile", "tensor": "torch.Tensor", "var": "torch.Tensor",
}  # fmt: skip
_METHOD = re.compile(rf"(?<![\w./])(?P<owner>{'|'.join(OWNERS)})\.(?P<name>[A-Za-z_]\w*)")
_WORDS = re.compile(
    r"`(Variable|half|float|double|bfloat16|cfloat|cdouble)\b|(?<=[( ])(half|bfloat16|cfloat|cdouble)\b"
)


def manual() -> str:
    """The text of the manual."""
    return next(FOLDER.glob("4-*")).read_text(encoding="utf-8")


def names(text: str) -> set[str]:
    """All dotted names under torch that the manual speaks of: in its tables, definitions, prose and examples."""
    found = {found["name"] for pattern in (_ROW, _CLASS) for found in pattern.finditer(text)}
    found |= {name for name in _DOTTED.findall(text) if not re.search(rf"{re.escape(name)}(?:\.py|\.html)", text)}
    found |= {f"{OWNERS[method['owner']]}.{method['name']}" for method in _METHOD.finditer(text)}
    found |= {
        f"torch.{'autograd.' * (word == 'Variable')}{word}" for pair in _WORDS.findall(text) for word in pair if word
    }
    return {absolute(name) for name in found}


def absolute(name: str) -> str:
    """A name of the manual from `torch` on: its tables leave `torch.autograd` out."""
    if name.startswith("torch."):
        return name
    return f"torch.{name}" if name.startswith("autograd.") else f"torch.autograd.{name}"


def resolve(name: str) -> Any:
    """The thing of that name.  Raises AttributeError where there is none."""
    return reduce(getattr, name.split(".")[1:], torch)


def missing(wanted: set[str]) -> list[str]:
    """The names among them that do not exist."""
    without = []
    for name in sorted(wanted):
        try:
            resolve(name)
        except AttributeError as error:
            without.append(f"{name}: {error}")
    return without


def parameters(arguments: str) -> list[str]:
    """The names in a signature as the manual prints it."""
    plain = " ".join(arguments.split())
    node = ast.parse(f"def f({plain}): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]


@needs_the_manual
def test_the_manual_is_read() -> None:
    found = names(manual())
    assert len(found) >= 70
    assert {"torch.autograd.functional.hvp", "torch.Tensor.retain_grad", "torch.autograd.graph.save_on_cpu",
            "torch.autograd.profiler.profile.key_averages", "torch.autograd.backward"} <= found  # fmt: skip


@needs_the_manual
def test_every_name_exists() -> None:
    without = missing(names(manual()))
    assert not without, "\n".join(without)


@needs_the_manual
def test_every_signature_takes_what_the_manual_says() -> None:
    wrong = []
    for found in _CLASS.finditer(manual()):
        if not found["arguments"] or "*args" in found["arguments"]:
            continue
        takes = inspect.signature(resolve(absolute(found["name"]))).parameters
        lacks = [name for name in parameters(found["arguments"]) if name not in takes]
        if lacks:
            wrong.append(f"{found['name']} does not take {lacks}")
    assert not wrong, "\n".join(wrong)


@needs_the_manual
def test_a_node_has_what_the_manual_lists() -> None:
    listed = next(line for line in manual().splitlines() if "'_raw_saved_result'" in line)
    node = torch.zeros(3, requires_grad=True).exp().grad_fn
    without = [name for name in ast.literal_eval(listed.strip()) if name not in dir(node) or not hasattr(node, name)]
    assert not without, without


def rows() -> dict[str, str]:
    """{name: test} of the table of names."""
    pattern = re.compile(r"^\| `(?P<name>[\w.]+)` \| `(?P<test>[^`]+)` \|", re.MULTILINE)
    return {found["name"]: found["test"] for found in pattern.finditer(TABLE.read_text(encoding="utf-8"))}


@needs_the_manual
def test_the_table_lists_every_name() -> None:
    listed, wanted = set(rows()), names(manual())
    assert wanted <= listed, sorted(wanted - listed)


def test_what_the_table_lists_exists() -> None:
    assert not missing(set(rows()))


def test_the_tests_that_the_table_names_exist() -> None:
    wrong = []
    for name, test in rows().items():
        file, _, function = test.partition("::")
        path = ROOT / "tests" / file
        if not path.is_file() or not re.search(rf"^ *def {function}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            wrong.append(f"{name}: {test}")
    assert not wrong, "\n".join(wrong)
