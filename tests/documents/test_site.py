"""The documentation as a browser shows it: built once, searched, and checked for what stands in the way of reading it."""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.memory import browser as browsers

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings"))
AXE = importlib.util.find_spec("axe_core_python")

pytestmark = [
    pytest.mark.skipif(browsers.PROGRAM is None, reason="no browser is installed"),
    pytest.mark.skipif(not MKDOCS, reason="MkDocs is not installed"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the built documentation."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def visit(browser: Any, address: str) -> None:
    browser.call("Page.navigate", url=address)
    until(lambda: browser.js("document.readyState") == "complete" and browser.js("location.href") == address)


def until(found: Any) -> Any:
    """What `found()` says as soon as that is something."""
    end = time.monotonic() + 30
    while not (answer := found()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return answer


def first_hit(browser: Any, typed: str) -> Any:
    """The name and the address that stand first in what a search finds, None while there are none."""
    browser.js(
        "(typed => { const box = document.querySelector('.md-search__input'); box.focus(); box.value = typed;"
        " box.dispatchEvent(new Event('input', { bubbles: true }));"
        f" box.dispatchEvent(new KeyboardEvent('keyup', {{ bubbles: true }})); }})({json.dumps(typed)})"
    )
    time.sleep(0.5)
    return browser.js(
        "(link => link && [link.querySelector('h1, h2').innerText, link.getAttribute('href').split('/').slice(3).join('/')])"
        "(document.querySelector('.md-search-result__link'))"
    )


HITS = {
    "Tensor.backward": ("Tensor.backward", "reference/tensor/#tensorbackward"),
    "backward": ("Tensor.backward", "reference/tensor/#tensorbackward"),
    "torch.exp": ("torch.exp", "reference/operators/elementwise/#torchexp"),
    "memory.budget": ("memory.budget", "reference/memory/#rushlight.memory.budget"),
    "rushlight.memory.recording": ("memory.recording", "reference/memory/#rushlight.memory.recording"),
    "stores.disk": ("stores.disk", "reference/stores/#storesdisk"),
    "does not fit": ("My model does not fit", "memory/does-not-fit/"),
}


def test_a_name_is_the_first_that_the_search_finds(site: str) -> None:
    with browsers.Browser() as browser:
        visit(browser, site)
        for typed, expected in HITS.items():
            until(lambda typed=typed, expected=expected: plain(first_hit(browser, typed)) == expected)


def plain(hit: Any) -> Any:
    return None if hit is None else (hit[0].strip(), hit[1].split("?")[0])


PAGES = [
    "",
    "getting-started/",
    "memory/does-not-fit/",
    "reference/memory/",
    "cli/",
    "errors/",
    "reference/operators/norm/",
]


@pytest.mark.slow
@pytest.mark.skipif(AXE is None, reason="axe-core-python is not installed")
@pytest.mark.parametrize(("width", "dark"), [(390, False), (900, True), (1440, False), (1440, True)])
def test_nothing_is_in_the_way_of_screen_readers(site: str, width: int, dark: bool) -> None:
    program = Path(AXE.origin).with_name("axe.min.js").read_text(encoding="utf-8") + ";1"  # type: ignore[union-attr,arg-type]
    with browsers.Browser(width, 900, dark=dark) as browser:
        for page in PAGES:
            visit(browser, site + page)
            assert browser.js("document.documentElement.scrollWidth") <= width, page
            browser.js(program)
            found = browser.js(
                "axe.run({ resultTypes: ['violations'] }).then(told => told.violations"
                ".map(v => [v.id, v.impact, v.nodes.length, v.nodes[0].html.slice(0, 200)]))"
            )
            assert found == [], page


@pytest.mark.parametrize("page", ["memory", "data", "func"])
def test_examples_of_the_reference_are_code(site: str, page: str) -> None:
    with urllib.request.urlopen(f"{site}reference/{page}/index.html") as answer:
        text = answer.read().decode("utf-8")
    assert '<div class="highlight"><pre' in text and "<blockquote>" not in text


def test_tables_fit_the_screen(site: str) -> None:
    wide = "[...document.querySelectorAll('.md-typeset__scrollwrap')].filter(x => x.scrollWidth > x.clientWidth + 2).length"
    with browsers.Browser(width=1280) as browser:
        for page in ("differences/", "reference-table/", "memory/does-not-fit/"):
            visit(browser, site + page)
            until(lambda: browser.js("document.querySelectorAll('.md-typeset__scrollwrap').length"))
            assert browser.js(wide) == 0, page
