"""What messages say of where they are explained, and what is said there."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

import rushlight
from rushlight.cli import explain, main

ROOT = Path(__file__).resolve().parents[2]
KNOWN = explain.sections()


def named_in_the_package() -> set[str]:
    """The names that errors of the package are explained by."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "rushlight").rglob("*.py"))
    calls = (node for text in texts if "explained(" in text or "hint(" in text for node in ast.walk(ast.parse(text))
             if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("explained", "hint"))  # fmt: skip
    return {call.args[-1].value for call in calls if isinstance(call.args[-1], ast.Constant)}


def test_no_message_has_the_hint_which_is_a_note() -> None:
    """Programs and PyTorch's own tests compare messages to the letter."""
    sources = [*(ROOT / "src" / "rushlight").rglob("*.py"), *(ROOT / "src" / "rushlight").rglob("*.cpp")]
    having = {path.name for path in sources if "[rushlight explain" in path.read_text(encoding="utf-8")}
    assert having == {"errors.py", "explain.py"}


def test_a_traceback_ends_in_the_hint() -> None:
    program = "import rushlight as torch; torch.ones(2, requires_grad=True).mul(2).backward()"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr.splitlines()
    assert told[-2] == "RuntimeError: grad can be implicitly created only for scalar outputs"
    assert told[-1] == "[rushlight explain not-a-scalar]"


def test_every_message_has_its_section_and_every_section_its_message() -> None:
    assert named_in_the_package() == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_a_section_has_cause_and_cure_and_shows_its_own_message(name: str) -> None:
    text = KNOWN[name]
    assert text.startswith("**Cause.** ") and "\n**Cure.** " in text
    shown = re.findall(r"\[rushlight explain ([a-z-]+)\]", text)
    assert set(shown) <= {name}  # the examples run with all pages
    assert shown or name in (
        "nothing-was-recorded",
        "missing-extra",
        "missing-name",
        "out-of-memory",
    )  # nothing to run alone


def test_links_of_sections_lead_somewhere() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page):
        assert (ROOT / "docs" / target).exists(), target


def test_one_section_by_its_name_or_as_the_message_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "backward-twice"]) == 0
    one = capsys.readouterr().out
    assert one.startswith("backward-twice\n\nCause. ") and "retain_graph=True" in one and "```" not in one
    assert main(["explain", "[rushlight explain backward-twice]"]) == 0
    assert capsys.readouterr().out == one


def test_sections_by_words_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    words = "mat1 and mat2 shapes cannot be multiplied (3x7 and 8x2): input of shape [3, 7] and weight of shape [2, 8]"
    assert main(["explain", f"linear: {words} cannot be multiplied"]) == 0
    assert capsys.readouterr().out.startswith("sizes-of-a-product\n")


def test_all_are_listed_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(KNOWN) and max(map(len, lines)) <= 120


def test_what_is_not_known_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "backwards-twice"]) == 1
    told = capsys.readouterr().err
    assert "near to it: backward-twice" in told


def test_an_error_that_was_caught_keeps_nothing_alive() -> None:
    """It would where a frame of the package had a name for it."""
    kept = (
        lambda x: setattr(x * 1, "requires_grad", False),
        lambda x: x.numpy(),
        lambda x: rushlight.nn.Linear(2, 2).load_state_dict({"weight": x}),
        lambda x: x.backward(),
        lambda x: x.view(7),
    )
    gc.disable()
    try:
        for use in kept:
            x = rushlight.ones(2, requires_grad=True)
            gone = weakref.ref(x)
            with contextlib.suppress(RuntimeError):
                use(x)
            del x
            assert gone() is None, use
    finally:
        gc.enable()
