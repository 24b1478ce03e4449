"""The examples in README and docs do what the pages show."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    examples = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    failures = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=failures.append)
    assert not runner.failures, "".join(failures)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_is_in_the_navigation(page: Path) -> None:
    if page.relative_to(ROOT).parts[0] == "docs":
        assert page.relative_to(ROOT / "docs").as_posix() in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """Of the repository or of the package."""
    named = set(re.findall(r"`([\w./]+/[\w.]+\.(?:py|cpp|h|md))`", page.read_text(encoding="utf-8")))
    homes = (ROOT, ROOT / "src" / "rushlight", ROOT / "docs")
    assert not {name for name in named if not any((home / name).exists() for home in homes)}


def test_decisions_have_one_number_each_and_a_row() -> None:
    folder = ROOT / "docs" / "decisions"
    rows = (folder / "index.md").read_text(encoding="utf-8")
    paths = sorted(folder.glob("[0-9]*.md"))
    numbers = [path.name[:4] for path in paths]
    assert numbers == [f"{n:04}" for n in range(2, len(paths) + 2)]  # the first stands in the index
    for path in paths:
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert f"| {path.name[:4]} | [{title}]({path.name}) |" in rows
