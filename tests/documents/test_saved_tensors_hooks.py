"""The tutorial on hooks for saved tensors runs verbatim, with the outputs that it prints.

It lies outside the repository; where it is absent this is skipped.
"""

import re
from pathlib import Path

import pytest
from tests.documents import test_documents as documents

pytestmark = pytest.mark.skipif(not documents.FOLDER.is_dir(), reason="the founding documents are not here")
_RANDOM = re.compile(r"-?\d\.\d{4}\b")


def printed() -> list[str]:
    """The lines that the document shows as printed.

    An output that begins with an empty line is no print but the value of a cell's last expression.
    """
    outputs = documents.dedented(documents._OUTPUT, documents.document("5-"))
    return [line for text in outputs if not text.startswith("\n") for line in text.splitlines() if line.strip()]


def test_it_prints_what_it_shows(tmp_path: Path) -> None:
    blocks = documents.dedented(documents._BLOCK, documents.document("5-"))
    assert len(blocks) == 18
    lines, expected = documents.run(tmp_path, "\n".join(blocks)), printed()
    assert len(expected) == 12 and expected[-1] == "Double access failed!"
    shape, *rest = lines  # random numbers
    assert _RANDOM.sub("#", shape).replace(" ", "") == _RANDOM.sub("#", expected[0]).replace(" ", "")
    assert rest == expected[1:]


def test_the_mistake_it_warns_of_is_one(tmp_path: Path) -> None:
    """A hook that deletes its file at the first unpacking fails at the second, with the file's name."""
    blocks = documents.dedented(documents._BLOCK, documents.document("5-"))
    wrong = next(i for i, block in enumerate(blocks) if "os.remove(name)" in block)
    script = (
        "import torch\n"
        + blocks[wrong]
        + blocks[wrong + 1].split("print")[0]
        + "y.grad_fn._saved_self\ny.backward(x)\n"
    )
    (tmp_path / "wrong.py").write_text(script, encoding="utf-8")
    with pytest.raises(AssertionError, match="FileNotFoundError"):
        documents.run(tmp_path, script)


def test_its_pictures_are_drawn(tmp_path: Path) -> None:
    """What it shows with another package, under that package's name."""
    blocks = documents.dedented(documents._BLOCK, documents.document("5-"))
    script = "\n".join(
        [blocks[0], blocks[2], "from torchviz import make_dot",
         "print(make_dot(y, params={'x': x}, show_saved=True).render('graph'))"]
    )  # fmt: skip
    assert documents.run(tmp_path, script)[-1] == "graph.svg"
    assert "MulBackward0" in (tmp_path / "graph.svg").read_text(encoding="utf-8")
