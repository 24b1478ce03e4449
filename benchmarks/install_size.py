"""How much space an installation takes, dependencies included: `python benchmarks/install_size.py`."""

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 95_000_000
ROOT = Path(__file__).resolve().parents[1]


def fresh() -> int:
    """Bytes that `pip install rushlight` adds to an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "installed"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # Its own warning would speak of the environment that pip itself runs in.
        subprocess.run([*command, "--root-user-action=ignore", "--target", target, str(ROOT)], check=True)
        return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def installed(name: str) -> int:
    """Bytes of an installed distribution and of all that it requires, in this environment."""
    found: dict[str, int] = {}
    _collect(name, found)
    return sum(found.values())


def _collect(name: str, found: dict[str, int]) -> None:
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return  # required on another platform only
    paths = (distribution.locate_file(file) for file in distribution.files or ())
    found[key] = sum(path.stat().st_size for path in map(Path, map(str, paths)) if path.is_file())
    for requirement in distribution.requires or ():
        needed, _, marker = requirement.partition(";")
        if "extra" not in marker:
            _collect(re.split(r"[\s\[<>=!~(]", needed.strip())[0], found)


def main() -> int:
    size = fresh()
    print(f"rushlight with its dependencies: {size / 1e6:.1f} MB (limit {LIMIT / 1e6:.0f} MB)")
    return 0 if size <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
