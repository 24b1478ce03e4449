"""A headless Chromium, spoken to through its debugging pipe: true mouse events, its console, its requests, its pictures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROGRAM = next((path for name in NAMES if (path := shutil.which(name))), None)
# Chromium speaks through file descriptors 3 and 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 50) for fd in sys.argv[1:3]]
os.dup2(ends[0], 3); os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of one browser; a context manager."""

    def __init__(self, width: int = 1280, height: int = 900, dark: bool = False, touch: bool = False):
        self.folder = tempfile.mkdtemp()
        self.counter, self.session, self.events = 0, None, list[dict[str, Any]]()
        self.rest = b""
        there, self.send_to = os.pipe()
        self.read_from, back = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.folder}"]  # fmt: skip
        command = [sys.executable, "-c", LAUNCH, str(there), str(back), str(PROGRAM), *flags, "about:blank"]
        self.process = subprocess.Popen(
            command, pass_fds=(there, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(there)
        os.close(back)
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        if touch:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.send_to)
        os.close(self.read_from)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        self.counter += 1
        message = {"id": self.counter, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        number = self.counter
        while True:
            answer = self.receive(60)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next message."""
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            if not select([self.read_from], [], [], max(0.0, end - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            data = os.read(self.read_from, 1 << 20)
            if not data:
                raise RuntimeError("the browser has gone")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, page: Path, fragment: str = "", seconds: float = 60) -> None:
        """Open a report and wait until it is drawn."""
        self.call("Page.navigate", url=page.as_uri() + fragment)
        end = time.monotonic() + seconds
        while self.js("document.documentElement?.dataset.ready") != "yes":
            if time.monotonic() > end:
                raise RuntimeError(f"the page is not ready: {self.faults()} {self.js('document.body.innerText')[:500]}")
            time.sleep(0.02)

    def js(self, expression: str) -> Any:
        """The value of an expression in the page, awaited."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"].get("exception", found["exceptionDetails"])))
        return found["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event: "move", "press", "release" or "wheel"."""
        types = {"move": "mouseMoved", "press": "mousePressed", "release": "mouseReleased", "wheel": "mouseWheel"}
        held = {"button": "left", "clickCount": 1} if kind in ("press", "release") else {}
        self.call("Input.dispatchMouseEvent", type=types[kind], x=x, y=y, **held, **more)

    def click(self, x: float, y: float) -> None:
        """Press and release."""
        self.mouse("move", x, y)
        self.mouse("press", x, y)
        self.mouse("release", x, y)

    def key(self, key: str) -> None:
        """A key is pressed and released."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is: x, y, width, height."""
        place = f"(r => ({{x: r.x, y: r.y, width: r.width, height: r.height}}))(document.querySelector('{selector}').getBoundingClientRect())"
        return self.js(place)

    def picture(self, path: Path, whole: bool = False) -> None:
        """Take a picture of the page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def faults(self) -> list[str]:
        """Errors and warnings that the page or the browser reported."""
        self.call("Runtime.evaluate", expression="1")
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(str(params["entry"]))
            elif method == "Runtime.consoleAPICalled":
                found.append(str(params["args"]))
        return found + list(self.js("window.__rushlight ? window.__rushlight.faults : []"))

    def requests(self) -> list[str]:
        """What was asked of anybody, but for the page itself and data inside it."""
        urls = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("data:", "about:", "file:"))]
