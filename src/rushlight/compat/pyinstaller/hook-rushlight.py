"""What PyInstaller reads to freeze a program that uses rushlight: modules that are loaded on use, and the kernels beside them."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
LEFT_OUT = {"__pycache__", "pyinstaller"}
_files = [
    path
    for path in sorted(PACKAGE.rglob("*"))
    if path.is_file() and not LEFT_OUT & set(path.relative_to(PACKAGE).parts)
]

hiddenimports = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
                 for path in _files if path.suffix == ".py"]  # fmt: skip
datas = [(str(path), str(path.parent.relative_to(PACKAGE.parent))) for path in _files if path.suffix != ".py"]
