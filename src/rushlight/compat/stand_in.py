"""A distribution named ``torch`` in a virtual environment, which is this package: what ``install-as-torch`` writes.

It consists of metadata, which pip and ``importlib.metadata`` read; of a finder, which Python loads at each start and
which loads this package when ``torch`` is imported; of the program ``torchrun``; and of a constraint in the
environment's ``pip.conf``, since the newest torchvision asks for a PyTorch of its own, which pip would fetch.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import importlib.metadata
import io
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from rushlight.compat.torch_version import PYTORCH

__all__ = ["Refused", "StandIn"]

FINDER = '''"""Finds torch, and torchvision where none is installed, in rushlight.  Written by `rushlight install-as-torch`."""
import sys
from importlib.machinery import ModuleSpec


class _Loader:
    def create_module(self, spec):
        from rushlight.compat.as_torch import load
        sys.meta_path.remove(_Finder)
        module = load(spec.name)
        self.kept = module.__spec__, module.__loader__
        return module

    def exec_module(self, module):
        module.__spec__, module.__loader__ = self.kept


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torchvision" and sys._getframe(2).f_globals.get("__name__") == "importlib.util":
            return None  # a library asks whether the package itself is installed
        return ModuleSpec(name, _Loader(), is_package=True) if name in ("torch", "torchvision", "functorch") else None


sys.meta_path.append(_Finder)  # last: what is installed comes first
'''
HOOK = "import _rushlight_as_torch\n"
TORCHRUN = """#!{python}
import sys

from rushlight.distributed.run import main

if __name__ == "__main__":
    sys.exit(main())
"""
METADATA = f"""Metadata-Version: 2.1
Name: torch
Version: {PYTORCH[:]}
Summary: rushlight, under the name of the package whose interface it has
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: rushlight\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = "[console_scripts]\ntorchrun = rushlight.distributed.run:main\n"
INSTALLER = "rushlight"


class Refused(Exception):
    """Why nothing was written, and what to do."""


@dataclass
class StandIn:
    """The stand-in of one environment.

    prefix: the environment's folder; packages: its site-packages; scripts: where its programs lie.  The running Python's
    by default.
    """

    prefix: Path = field(default_factory=lambda: Path(sys.prefix))
    packages: Path = field(default_factory=lambda: Path(sysconfig.get_path("purelib")))
    scripts: Path = field(default_factory=lambda: Path(sysconfig.get_path("scripts")))

    @property
    def information(self) -> Path:
        """The folder of metadata."""
        return self.packages / f"torch-{PYTORCH[:]}.dist-info"

    @property
    def settings(self) -> Path:
        """The environment's settings of pip."""
        return self.prefix / "pip.conf"

    @property
    def constraints(self) -> Path:
        """What keeps pip from replacing the stand-in."""
        return self.prefix / "rushlight-constraints.txt"

    @property
    def installed(self) -> bool:
        """Whether it is there."""
        return (self.information / "RECORD").exists()

    def install(self) -> None:
        """Write all of it; where a file cannot be written, none is left.  Raises Refused."""
        self.check()
        if self.installed:
            self.remove()
        try:
            self.write()
        except OSError as error:
            self.remove()
            raise Refused(f"{error.filename} cannot be written: {error.strerror}") from None

    def check(self) -> None:
        """Raise Refused where this is no virtual environment or has a torch of its own."""
        if sys.prefix == sys.base_prefix and not (Path(sys.prefix) / "conda-meta").exists():
            raise Refused(
                f"{sys.executable} belongs to no virtual environment, and others use its packages too: make one with "
                "`python -m venv .venv`, install rushlight there, and give the command there"
            )
        other = next(iter(importlib.metadata.distributions(name="torch", path=[str(self.packages)])), None)
        if other is not None and (other.read_text("INSTALLER") or "").strip() != INSTALLER:
            raise Refused(
                f"PyTorch {other.version} is installed in {self.packages}: take it out first with "
                "`pip uninstall torch`, or use `rushlight run`, which leaves it alone"
            )
        if (self.packages / "torch").exists():
            raise Refused(f"there is a package torch in {self.packages} already, which would come first: remove it")

    def write(self) -> None:
        """Write the files, and last the list of them."""
        self.information.mkdir(parents=True)
        before = self.settings.read_bytes() if self.settings.exists() else None
        if before is not None:
            (self.information / "pip.conf.before").write_bytes(before)
        written = {
            self.packages / "_rushlight_as_torch.py": FINDER,
            self.packages / "_rushlight_as_torch.pth": HOOK,
            self.scripts / "torchrun": TORCHRUN.format(python=sys.executable),
            self.constraints: f"# PyTorch's name is taken by rushlight here\ntorch=={PYTORCH[:]}\n",
            self.settings: self.constrained(before),
            self.information / "METADATA": METADATA,
            self.information / "WHEEL": WHEEL,
            self.information / "entry_points.txt": ENTRY_POINTS,
            self.information / "INSTALLER": INSTALLER + "\n",
        }
        for path, text in written.items():
            path.write_text(text)
        (self.scripts / "torchrun").chmod(0o755)
        listed = [path for path in written if before is None or path != self.settings]
        self.record(listed + [self.information / "pip.conf.before"] * (before is not None))

    def constrained(self, before: bytes | None) -> str:
        """The settings of pip with our constraint among them."""
        parser = configparser.RawConfigParser()
        parser.read_string((before or b"").decode())
        for section in ("install", "download"):
            if not parser.has_section(section):
                parser.add_section(section)
            others = parser.get(section, "constraint", fallback="").split()
            parser.set(section, "constraint", "\n".join([*others, self.constraints.as_uri()]))
        text = io.StringIO()
        parser.write(text)
        return text.getvalue()

    def record(self, paths: list[Path]) -> None:
        """Write RECORD, by which pip too can take everything out."""
        lines = [f"{self.relative(path)},sha256={digest(path)},{path.stat().st_size}" for path in paths]
        lines.append(f"{self.relative(self.information / 'RECORD')},,")
        (self.information / "RECORD").write_text("\n".join(lines) + "\n")

    def relative(self, path: Path) -> str:
        """A path as RECORD has it: from site-packages."""
        try:
            return path.relative_to(self.packages).as_posix()
        except ValueError:
            steps = self.packages.relative_to(self.prefix).parts
            return Path(*[".."] * len(steps), path.relative_to(self.prefix)).as_posix()

    def remove(self) -> None:
        """Take everything out again; the settings of pip become what they were."""
        before = self.information / "pip.conf.before"
        if before.exists():
            self.settings.write_bytes(before.read_bytes())
        elif self.settings.exists() and self.constraints.as_uri() in self.settings.read_text():
            self.settings.unlink()
        for path in (self.constraints, self.scripts / "torchrun", *self.packages.glob("_rushlight_as_torch.p*"),
                     *self.packages.glob("__pycache__/_rushlight_as_torch.*"), *self.information.glob("*")):  # fmt: skip
            path.unlink(missing_ok=True)
        if self.information.exists():
            self.information.rmdir()


def digest(path: Path) -> str:
    """A file's hash as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
