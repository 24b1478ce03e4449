"""Modules that PyTorch has loaded once ``import torch`` is done: programs reach them by dots alone, and import them nowhere.

``torch.utils._python_dispatch.TorchDispatchMode`` works there without a line that imports ``torch.utils._python_dispatch``.
Here such a module is loaded when it is first reached.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from rushlight.compat.aliases import real_name

__all__ = ["BELOW", "lend"]

# By a module's public name: those below it, with blanks between.
BELOW = {
    "torch": "_custom_ops",
    "torch._functorch": "config vmap",
    "torch.cuda.amp": "autocast_mode common grad_scaler",
    "torch.fx": "_compatibility experimental operator_schemas",
    "torch.fx.experimental": "proxy_tensor",
    "torch.masked.maskedtensor": "binary reductions unary",
    "torch.nested": "_internal",
    "torch.nested._internal": "nested_tensor",
    "torch.nn": "common_types qat quantizable quantized",
    "torch.nn.utils": "_named_member_accessor",
    "torch.optim": "_functional adamw",
    "torch.profiler": "profiler",
    "torch.testing": "_comparison _internal",
    "torch.utils": "_contextlib _dtype_abbrs _foreach_utils _import_utils _mode_utils _ordered_set _python_dispatch _traceback",
}


def lend(module: ModuleType) -> None:
    """Let a module that bears its public name find those below it when they are asked for."""
    public, names = module.__name__, BELOW.get(module.__name__, "").split()
    former = vars(module).get("__getattr__")
    if not names or hasattr(former, "lent"):
        return

    def __getattr__(name: str) -> Any:  # named as those that errors do not show
        if name in names:
            return importlib.import_module(str(real_name(f"{public}.{name}")))
        if former is not None:
            return former(name)
        raise AttributeError(f"module {public!r} has no attribute {name!r}")

    __getattr__.lent = True  # type: ignore[attr-defined]
    vars(module)["__getattr__"] = __getattr__
