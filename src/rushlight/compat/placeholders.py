"""Classes of PyTorch that libraries name, in annotations and `isinstance`, and that nothing is an instance of here."""

from __future__ import annotations

from typing import Any

from rushlight import absent
from rushlight.absent.reasons import SCRIPT, TYPES

__all__ = ["CUDAGraph", "SymBool", "SymFloat", "SymInt"]


class _Absent:
    """A class without instances.  Raises RuntimeError when one is made."""

    why = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"torch.{type(self).__name__}: {self.why}")


class SymInt(_Absent):
    """A size that a compiler does not know yet."""

    why = "sizes are numbers here: nothing is compiled ahead of them"


class SymFloat(_Absent):
    """A number that a compiler does not know yet."""

    why = SymInt.why


class SymBool(_Absent):
    """A condition that a compiler does not know yet."""

    why = SymInt.why


class CUDAGraph(_Absent):
    """Work of a GPU that is recorded and run again."""

    why = "there is no GPU"


def __getattr__(name: str) -> Any:
    """A type of TorchScript's, made when it is first asked for."""
    if name.endswith("Type") and name.removesuffix("Type") in TYPES.split():
        absent.put(globals(), absent.classes("torch", SCRIPT, name))
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
