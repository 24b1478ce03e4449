"""The founding documents run verbatim.  They lie outside the repository; where they are absent this is skipped."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rushlight import memory
from rushlight.memory.recordings.recording import PHASE, PHASES
from rushlight.memory.snapshots.snapshots import load

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "documents"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the founding documents are not here")

_BLOCK = re.compile(r"^\.\. code-block:: default\n\n(?P<body>(?:(?:[ ]{4}.*)?\n)+)", re.MULTILINE)
_OUTPUT = re.compile(r"^ \.\. code-block:: none\n\n(?P<body>(?:(?:[ ]{4}.*)?\n)+)", re.MULTILINE)


def document(start: str) -> str:
    """The text of the document whose file name starts so."""
    return next(FOLDER.glob(start + "*")).read_text(encoding="utf-8")


def dedented(pattern: re.Pattern[str], text: str) -> list[str]:
    """The bodies of all matches, without the four columns that the format adds."""
    return ["\n".join(line[4:] for line in found["body"].splitlines()) for found in pattern.finditer(text)]


def run(tmp_path: Path, script: str) -> list[str]:
    """The lines that ``rushlight run --weights random`` prints for ``script``."""
    path = tmp_path / "document.py"
    path.write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "rushlight", "run", "--weights", "random", path.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


def test_blocks_are_found() -> None:
    assert len(dedented(_BLOCK, document("1-"))) == 5
    assert len(dedented(_BLOCK, document("2-"))) == 13


def test_gentle_introduction(tmp_path: Path) -> None:
    text = document("2-")
    lines = run(tmp_path, "\n".join(dedented(_BLOCK, text)))
    printed = [line for block in dedented(_OUTPUT, text) for line in block.splitlines() if line.strip()]
    expected = [line for line in printed if not line.startswith("Downloading")]
    assert len(expected) == 4
    assert lines == expected


def test_optimizer_step_in_backward(tmp_path: Path) -> None:
    """ViT-L/16 with Adam takes about 5 GB; its snapshots tell what the text says of them."""
    script = "\n".join(dedented(_BLOCK, document("1-")))
    assert script.count("dump(s") == 2 and script.count("train(model") == 4
    run(tmp_path, script)
    plain, fused = (load(tmp_path / name) for name in ("snapshot.pickle", "snapshot-opt-in-bwd.pickle"))
    weights = 304_326_632 * 4
    highest, at = plain.peak()
    assert 4 * weights <= highest < 5.16e9
    phase = [PHASES[v] for v, a in zip(plain.value[: at + 1], plain.action[: at + 1], strict=True) if a == PHASE][-1]
    assert phase in ("backward", "optimizer")
    # Parameters and state stay, gradients do not; what was recorded as plain's is still alive in part.
    assert fused.peak()[0] < highest - 0.6 * weights
    page = tmp_path / "report.html"
    memory.report(plain, page, compare=fused)
    assert "</html>" in page.read_text(encoding="utf-8")
