"""What goes into the package that is installed."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
MADE = (".pyc", ".so")


def test_a_wheel_has_every_file_of_the_package() -> None:
    """What .gitignore names anywhere is left out of a wheel: the report's page once was, as it is called report.html."""
    package = ROOT / "src" / "rushlight"
    there = {path.relative_to(ROOT) for path in package.rglob("*") if path.is_file() and path.suffix not in MADE}
    packed = {Path(file.relative_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert not there - packed
