"""``rushlight install-as-torch``: a virtual environment in which torch is rushlight, for Python and for pip."""

import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

SITE = [str(Path(__file__).parents[2] / "src"), *[p for p in sys.path if p.endswith("site-packages")]]


class Environment:
    """A virtual environment that sees this package, and no PyTorch that may be installed beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        packages = next(folder.glob("lib/python*/site-packages"))
        shown = folder / "shown"
        shown.mkdir()
        for site in SITE:
            for path in Path(site).iterdir():
                if path.name.partition("-")[0].partition(".")[0] in ("numpy", "ml_dtypes", "rushlight"):
                    (shown / path.name).symlink_to(path)
        (packages / "shown.pth").write_text(f"{shown}\n")
        self.packages = packages

    def run(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.python), *arguments], capture_output=True, text=True, cwd=self.folder, timeout=120
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def rushlight(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "rushlight", "install-as-torch", *arguments, status=status)

    def files(self) -> dict[Path, bytes]:
        return {
            path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file() and "shown" not in path.parts
        }


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "an environment")


def test_scripts_need_no_launcher_and_libraries_see_a_distribution(environment: Environment) -> None:
    environment.rushlight()
    script = environment.folder / "train.py"
    script.write_text(
        textwrap.dedent("""
        import importlib.metadata, importlib.util, sys
        assert not any(name.startswith("rushlight") for name in sys.modules)
        assert importlib.metadata.version("torch") == "2.13.0+rushlight"
        assert importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torchaudio") is None
        import torch.nn as nn
        import torch, torchvision
        import rushlight
        assert torch is rushlight and nn is rushlight.nn and torch.__name__ == "torch"
        assert torch.__spec__.name == "rushlight"
        print(torch.ones(2).requires_grad_().sum())
    """)
    )
    assert environment.run(str(script)).stdout == "tensor(2., grad_fn=<SumBackward0>)\n"
    spawned = "import torch, subprocess, sys; print(subprocess.run([sys.executable, '-c', 'import torch; print(torch.__version__)']).returncode)"
    assert environment.run("-c", spawned).stdout.split() == ["2.13.0+rushlight", "0"]


def test_who_asks_for_torchvision_hears_that_it_is_not_installed(environment: Environment) -> None:
    environment.rushlight()
    program = "import importlib.util as u; {}asked = u.find_spec('torchvision'); import torchvision.models as m; print(asked, m.__name__)"
    for before in ("", "import torch; "):
        assert environment.run("-c", program.format(before)).stdout == "None torchvision.models\n"
    wheel(environment.packages, "torchvision", "0.28.0", unpacked=True)
    found = "import importlib.util as u, torch; print(u.find_spec('torchvision').origin)"
    assert str(environment.packages) in environment.run("-c", found).stdout


def test_undone_without_a_trace(environment: Environment) -> None:
    (environment.folder / "pip.conf").write_text("[global]\n# of one's own\nno-input = true\n")
    before = environment.files()
    environment.rushlight()
    environment.rushlight()  # again
    environment.run("-c", "import torch")
    assert environment.files() != before
    environment.rushlight("--undo")
    assert environment.files() == before
    assert "nothing to take out" in environment.rushlight("--undo", status=1).stderr
    assert "No module named 'torch'" in environment.run("-c", "import torch", status=1).stderr


def test_refused_beside_pytorch_and_outside_of_environments(environment: Environment) -> None:
    wheel(environment.packages, "torch", "2.9.1", unpacked=True)
    before = environment.files()
    assert "PyTorch 2.9.1 is installed" in environment.rushlight(status=1).stderr
    assert environment.files() == before
    program = (
        "import sys; sys.prefix = sys.base_prefix; from rushlight.cli import main; sys.exit(main(['install-as-torch']))"
    )
    assert "belongs to no virtual environment" in environment.run("-c", program, status=1).stderr


def test_torchrun_starts_one_process_and_takes_one_number_of_machines(environment: Environment) -> None:
    environment.rushlight()
    script = environment.folder / "train.py"
    script.write_text("import os, sys\nprint(os.environ['RANK'], os.environ['WORLD_SIZE'], sys.argv[1:])\n")
    torchrun = str(environment.folder / "bin" / "torchrun")
    assert environment.run(torchrun, "--standalone", str(script), "--epochs", "3").stdout == "0 1 ['--epochs', '3']\n"
    assert (
        "expected one number of machines" in environment.run(torchrun, "--nnodes", "1:2", str(script), status=2).stderr
    )


def wheel(folder: Path, name: str, version: str, *requires: str, unpacked: bool = False) -> None:
    """A wheel of a package with nothing in it, or what it would unpack to."""
    information = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {other}\n" for other in requires
    )
    files = {
        f"{name}/__init__.py": "",
        f"{information}/METADATA": metadata,
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/INSTALLER": "pip\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{information}/RECORD"])
    if unpacked:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def test_pip_fetches_no_pytorch(environment: Environment, tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel(index, "torch", "2.14.1")
    wheel(index, "torch", "2.13.0")
    wheel(index, "torchvision", "0.29.1", "torch==2.14.1")
    wheel(index, "torchvision", "0.28.0", "torch==2.13.0")
    wheel(index, "timm", "1.0.0", "torch", "torchvision")
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python), "--disable-pip-version-check"]

    def given(*arguments: str) -> str:
        done = subprocess.run([*pip, *arguments], capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    environment.rushlight()
    said = given("install", "--no-index", "--find-links", str(index), "timm")
    assert "Successfully installed timm-1.0.0 torchvision-0.28.0" in said, said
    assert "No broken requirements" in given("check")
    assert "Successfully uninstalled torch-2.13.0+rushlight" in given("uninstall", "--yes", "torch")
    left = [path for path in environment.files() if "as_torch" in path.name or "constraint" in path.name]
    assert not left and not (environment.folder / "pip.conf").exists()
