"""A program that PyInstaller freezes brings all of the package: most of it is loaded on use, and seen by nobody before."""

import runpy
import tomllib
from pathlib import Path

import rushlight_command

ROOT = Path(__file__).resolve().parents[2]


def test_the_folder_of_hooks_is_where_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pyinstaller40"] == {"hook-dirs": "rushlight_command:pyinstaller_hooks"}
    (folder,) = rushlight_command.pyinstaller_hooks()
    assert (Path(folder) / "hook-rushlight.py").exists()


def test_modules_and_files_are_brought() -> None:
    found = runpy.run_path(str(Path(rushlight_command.pyinstaller_hooks()[0]) / "hook-rushlight.py"))
    assert {"rushlight", "rushlight.serialization", "rushlight.nn.functional"} <= {*found["hiddenimports"]}
    assert {"rushlight/kernels/native", "rushlight/datasets"} <= {into for _, into in found["datas"]}
    assert all(Path(path).exists() for path, _ in found["datas"])
