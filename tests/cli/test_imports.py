"""The import hook, within one process."""

import sys
import types
from typing import Any

import pytest

from rushlight.compat import aliases, imports, naming


@pytest.fixture
def hook():
    """The hook, installed for one test; another torch that is already here is put aside."""
    aside = {name: sys.modules.pop(name) for name in list(sys.modules) if aliases.real_name(name)}
    imports.install()
    yield
    imports.uninstall()
    sys.modules.update(aside)


def test_second_name_same_module(hook: None) -> None:
    import torch

    import rushlight

    spec = rushlight.__spec__
    assert torch is rushlight and rushlight.__spec__ is spec and spec.name == "rushlight"


def test_install_twice_is_once(hook: None) -> None:
    before = list(sys.meta_path)
    imports.install()
    assert sys.meta_path == before


def test_uninstall_forgets_the_names(hook: None) -> None:
    import torch.nn

    imports.uninstall()
    assert "torch" not in sys.modules and "torch.nn" not in sys.modules and "rushlight.nn" in sys.modules
    assert torch.nn is not None


def test_refused_beside_another_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", object())
    with pytest.raises(RuntimeError, match="imported already"):
        imports.install()


def test_multiprocessing_is_taught_once() -> None:
    """However often the hook is installed."""
    import types

    from rushlight.compat import children

    spawning = types.ModuleType("spawning")
    spawning.get_preparation_data = lambda name: {}  # type: ignore[attr-defined]
    children.teach_spawn(spawning)
    taught = spawning.get_preparation_data
    children.teach_spawn(spawning)
    assert spawning.get_preparation_data is taught
    server: Any = types.ModuleType("serving")
    server.ForkServer = type("ForkServer", (), {"ensure_running": lambda self: None})
    server._forkserver = server.ForkServer()
    children.teach_server(server)
    started = server.ForkServer.ensure_running
    children.teach_server(server)
    assert server.ForkServer.ensure_running is started


def test_the_name_of_a_module_is_looked_up_once_for_all_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("rushlight.nn.of_this_test")
    vars(module).update({f"C{k}": type(f"C{k}", (), {"__module__": module.__name__}) for k in range(50)})
    asked: list[str] = []
    monkeypatch.setattr(naming, "public_name", lambda name: asked.append(name) or name)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    naming.show_public(module)
    assert asked == [module.__name__]
