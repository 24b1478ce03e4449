"""torch.hub: folders that offer models, and files that are there already; nothing is fetched."""

from pathlib import Path

import pytest

import rushlight as torch

HUBCONF = """
dependencies = ["numpy"]
import helper

def double(x, times=2):
    "Twice, or more."
    return helper.product(x, times)

def _private():
    pass
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "helper.py").write_text("def product(x, times):\n    return x * times\n")
    return tmp_path


def test_a_local_folder(repository: Path) -> None:
    assert torch.hub.load(repository, "double", 4, source="local", times=3) == 12
    assert torch.hub.list(repository) == ["double"] and torch.hub.help(repository, "double") == "Twice, or more."
    with pytest.raises(RuntimeError, match="Cannot find callable nothing in hubconf"):
        torch.hub.load(repository, "nothing", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(repository, "double", source="disk")


def test_dependencies_have_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text("dependencies = ['a_package_that_is_not_there']")
    with pytest.raises(RuntimeError, match="Missing dependencies: a_package_that_is_not_there"):
        torch.hub.list(tmp_path)


def test_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert torch.hub.get_dir() == str(tmp_path / "hub")
    address = "https://example.com/models/weights.pth"
    for call in (
        lambda: torch.hub.load("someone/something", "model"),
        lambda: torch.hub.list("someone/something"),
        lambda: torch.hub.load_state_dict_from_url(address),
        lambda: torch.hub.download_url_to_file(address, "here"),
    ):
        with pytest.raises(NotImplementedError, match="would have to be fetched"):
            call()
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save({"w": torch.ones(2)}, folder / "weights.pth")
    assert torch.hub.load_state_dict_from_url(address)["w"].tolist() == [1.0, 1.0]
