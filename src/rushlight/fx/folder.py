"""A module that runs a graph as a folder of Python code and its tensors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rushlight.serialization import save

if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule
    from rushlight.nn.modules.module import Module

__all__ = ["to_folder"]


def _package() -> str:
    """How code imports this package."""
    known = sys.modules.get("torch") is sys.modules["rushlight"]
    return "import torch" if known else "import rushlight as torch"


def _import(name: str, value: Any) -> str:
    """A line that makes a name of the code known."""
    if value is sys.modules["rushlight"] and name == "torch":
        return _package()
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    if isinstance(value, float):
        return f"from math import {name}"
    if value is type(None):
        return f"{name} = type(None)"
    module = getattr(value, "__module__", None) or "builtins"
    return f"from {module} import {getattr(value, '__qualname__', value.__name__)} as {name}"


def _member(folder: Path, name: str, module: Module) -> str:
    file = folder / f"{name}.pt"
    save(module, file)
    return f"self.{name} = torch.load({str(file)!r}, weights_only=False)  # {' '.join(repr(module).split())}"


def to_folder(module: GraphModule, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
    """Write ``module.py`` with a class of that name, whose state lies beside it, so that the folder can be imported.

    Submodules are written with `torch.save`, one file each; parameters and buffers into ``state_dict.pt``.
    """
    place = Path(folder)
    place.mkdir(exist_ok=True, parents=True)
    state = place / "state_dict.pt"
    save(module.state_dict(), state)
    code = module._graph.python_code("self")
    lines = ["super().__init__()", *(_member(place, name, child) for name, child in module.named_children())]
    lines += [
        f"self.register_buffer({name!r}, torch.empty({list(b.shape)}, dtype={b.dtype}))"
        for name, b in module._buffers.items()
        if b is not None
    ]
    lines += [f"self.{name} = torch.nn.Parameter(torch.empty({list(p.shape)}, dtype={p.dtype}), {p.requires_grad})"
              for name, p in module._parameters.items() if p is not None]  # fmt: skip
    lines.append(f"self.load_state_dict(torch.load({str(state)!r}))")
    imports = dict.fromkeys([_package(), *(_import(name, value) for name, value in code.globals.items())])
    body = "".join(f"        {line}\n" for line in lines)
    forward = "".join(f"    {line}\n" if line else "\n" for line in code.src.strip("\n").splitlines())
    text = (
        "\n".join(imports) + f"\n\n\nclass {module_name}(torch.nn.Module):\n    def __init__(self):\n{body}\n{forward}"
    )
    (place / "module.py").write_text(text, encoding="utf-8")
    (place / "__init__.py").write_text("from .module import *\n", encoding="utf-8")
