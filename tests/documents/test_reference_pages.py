"""The site: pages have titles of their own, and the reference has an entry for every public name."""

from __future__ import annotations

import collections
import re
from pathlib import Path

import pytest
from docs.reference import generate

from rushlight import memory, stores
from rushlight.dispatch.registry import NAMESPACES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    found: dict[str, str] = generate.pages()
    return found


def headings(text: str) -> list[str]:
    return re.findall(r"^## (\S+)$", text, re.MULTILINE)


def test_no_two_pages_have_one_title(pages: dict[str, str]) -> None:
    texts = [*pages.values(), *(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))]
    without = [
        re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL) for text in texts
    ]  # what is said to the builder
    titles = collections.Counter(text.splitlines()[0].casefold() for text in without)
    assert [title for title, count in titles.items() if count > 1] == []
    assert all(title.startswith("# ") for title in titles)


def test_generated_pages_are_in_the_navigation(pages: dict[str, str]) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [path for path in pages if f"- {path}\n" not in navigation] == []


def test_every_method_of_a_tensor_has_an_entry_once(pages: dict[str, str]) -> None:
    found = headings(pages["reference/tensor.md"])
    assert found == [f"Tensor.{name}" for name in generate.names_of_tensor()]
    assert "Tensor.backward" in found and "Tensor.requires_grad" in found


def test_what_changes_in_place_shows_its_arguments(pages: dict[str, str]) -> None:
    text = pages["reference/operators/elementwise.md"]
    assert "\nacos_(input)\n" in text and "_(*args, **kwargs)" not in text


def test_examples_are_code(pages: dict[str, str]) -> None:
    assert "```pycon\n>>> import rushlight as torch\n>>> torch.sin(" in pages["reference/operators/elementwise.md"]


def test_every_operator_has_an_entry_on_one_page(pages: dict[str, str]) -> None:
    found = collections.Counter(
        name for path, text in pages.items() if "/operators/" in path for name in headings(text)
    )
    assert set(found.values()) == {1}
    for space in ("", "nn.functional", "linalg", "fft", "special"):
        prefix = f"torch.{space}." if space else "torch."
        public = {name for name, f in NAMESPACES[space].items() if not name.startswith("_") and callable(f)}
        assert {prefix + name for name in public} <= set(found)


def test_links_between_generated_pages_lead_to_headings(pages: dict[str, str]) -> None:
    anchors = {path: {generate.anchor(name) for name in headings(text)} for path, text in pages.items()}
    lost = []
    for path, text in pages.items():
        for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", text):
            there = str(Path(path).parent / target) if target else path
            if anchor not in anchors[there.replace("/../", "/")]:
                lost.append((path, target, anchor))
    assert lost == []


def test_stores_and_memory_are_found_by_their_names() -> None:
    page = (DOCS / "reference" / "stores.md").read_text(encoding="utf-8")
    assert all(f"\n## stores.{name}\n" in page for name in stores.__all__ if name.islower())
    assert "::: rushlight.memory" in (DOCS / "reference" / "memory.md").read_text(encoding="utf-8")
    assert {"budget", "recording"} <= set(memory.__all__)  # members that the page shows are those of __all__


def test_links_of_pages_lead_to_files(pages: dict[str, str]) -> None:
    lost = []
    for path in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            there = (path.parent / target).resolve()
            if not there.exists() and there.relative_to(DOCS).as_posix() not in pages:
                lost.append((path.name, target))
    assert lost == []
