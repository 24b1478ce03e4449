"""`torch.ops.aten`: operators under the names by which selective checkpointing and other policies know them."""

from __future__ import annotations

from typing import Any

from rushlight.dispatch.declare import OPS


class Overloads:
    """An operator by name; every overload of it is the operator itself."""

    def __init__(self, name: str):
        self.name, self.op = name, OPS[name]

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self.op

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.op.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def __getattr__(name: str) -> Any:
    known = name if name in OPS else next((op.name for op in OPS.values() if name in op.aten), None)
    if known is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute {name!r}")
    return Overloads(known)
