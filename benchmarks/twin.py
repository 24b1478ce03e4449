"""One source of a model, built on either library: the comparison is of libraries, not of models."""

import builtins
from pathlib import Path
from types import ModuleType
from typing import Any

# Where a model's source looks for the library, and what it gets when the library is PyTorch.
SAME_IN_TORCH = {
    "rushlight": "",
    "rushlight.dispatch.functions": "",
    "rushlight.nn": ".nn",
    "rushlight.ops": "",
    "rushlight.tensor": "",
}


def load(path: Path, library: ModuleType) -> ModuleType:
    """The module in ``path`` with ``rushlight`` resolved to ``library``."""

    def find(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if name not in SAME_IN_TORCH or library.__name__ == "rushlight":
            return builtins.__import__(name, globals, locals, fromlist, level)
        return builtins.__import__(library.__name__ + SAME_IN_TORCH[name], None, None, fromlist or ("",))

    module = ModuleType(f"{path.stem}_on_{library.__name__}")
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": find}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def copy_weights(source: Any, target: Any, library: ModuleType) -> None:
    """Give ``target``, a module of ``library``, the parameters and buffers of ``source``."""
    target.load_state_dict({k: library.from_numpy(v.numpy().copy()) for k, v in source.state_dict().items()})
