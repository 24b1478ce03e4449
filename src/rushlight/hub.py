"""torch.hub: models that a folder's ``hubconf.py`` offers.  Nothing is fetched from a network.

``load``, ``list`` and ``help`` take a local folder with ``source="local"``; a repository by name, and weights by an address
that are not in the folder of the hub already, are refused with NotImplementedError.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir", "tqdm"]

# The first digits of a file's hash, in its name: resnet18-f37072fd.pth
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_chosen: Path | None = None


def _get_torch_home() -> str:
    """The folder of caches: TORCH_HOME, or torch in XDG_CACHE_HOME, by default in ~/.cache."""
    caches = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(caches, "torch")))


def get_dir() -> str:
    """The folder of the hub: what `set_dir` said, or hub in that of caches."""
    return str(_chosen) if _chosen is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Use another folder."""
    global _chosen
    _chosen = Path(os.path.expanduser(d))


def _refuse_fetching(function: str, what: str, instead: str) -> NotImplementedError:
    return NotImplementedError(
        f"torch.hub.{function}: {what!r} would have to be fetched, which rushlight does not do: {instead}"
    )


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    """While active, modules are looked for in this folder first."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _hubconf(folder: str) -> ModuleType:
    """The module hubconf.py of a folder, executed, with its dependencies there.  Raises RuntimeError where they are not."""
    path = os.path.join(folder, "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise FileNotFoundError(f"torch.hub: no hubconf.py in {folder}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: object) -> Callable[..., Any]:
    """The function `name` of a hubconf.  Raises ValueError for no string, RuntimeError where there is none."""
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found: Any = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found  # type: ignore[no-any-return]


def _local(function: str, folder: object) -> str:
    """A local folder.  Raises NotImplementedError for a repository's name."""
    path = os.path.expanduser(str(folder))
    if not os.path.isdir(path):
        raise _refuse_fetching(function, str(folder), "clone it and give the folder, to load() with source='local'")
    return path


def load(repo_or_dir: Any, model: str, *args: object, source: str = "github", trust_repo: Any = "check",
         force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: object) -> Any:  # fmt: skip
    """What the function `model` of a folder's hubconf.py returns for the other arguments.

    Raises ValueError for a source that is neither "github" nor "local", NotImplementedError for "github".
    """
    if source.lower() not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source.lower() == "github":
        raise _refuse_fetching("load", str(repo_or_dir), "clone it and give the folder with source='local'")
    folder = _local("load", repo_or_dir)
    with _on_path(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def help(github: object, model: str, force_reload: bool = False, skip_validation: bool = False,
         trust_repo: object = "check") -> str | None:  # fmt: skip
    """The docstring of the function `model` of a local folder's hubconf.py."""
    folder = _local("help", github)
    with _on_path(folder):
        return _entry(_hubconf(folder), model).__doc__


def list(github: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check",
         verbose: bool = True) -> Any:  # fmt: skip
    """The names of the functions that a local folder's hubconf.py offers."""
    folder = _local("list", github)
    with _on_path(folder):
        module = _hubconf(folder)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refused with NotImplementedError: nothing is fetched."""
    raise _refuse_fetching("download_url_to_file", url, f"fetch it yourself, to {dst}")


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: object = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """`torch.load` of the file of this address that lies in `model_dir` already, by default checkpoints in the hub's folder.

    Raises NotImplementedError where it does not.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else os.path.expanduser(model_dir)
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise _refuse_fetching("load_state_dict_from_url", url, f"fetch it yourself, to {path}")
    from rushlight.serialization import load as read

    return read(path, map_location=map_location, weights_only=weights_only)


class _NoBar:
    """A bar of progress that shows nothing: what is iterated over, counted to, or said of it is as it is."""

    def __init__(self, iterable: Any = None, total: int | None = None, **options: Any) -> None:
        self.iterable, self.total, self.n = iterable, total, 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, n: int = 1) -> None:
        """So much more is done."""
        self.n += n

    def set_description(self, *words: object, **options: object) -> None:
        """Nothing is shown."""

    def close(self) -> None:
        """Nothing was shown."""


def tqdm(iterable: object = None, *args: object, **options: object) -> Any:
    """A bar of progress by the package tqdm; one that shows nothing where it is not installed."""
    try:
        from tqdm import tqdm as bar
    except ImportError:
        bar = _NoBar
    return bar(iterable, *args, **options)
