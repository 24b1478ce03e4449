"""The examples in README and docs do what the pages show."""

import doctest
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
    if page.parent.name == "docs" or page.parent.parent.name == "docs":
        assert page.relative_to(ROOT / "docs").as_posix() in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
