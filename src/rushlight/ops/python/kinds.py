"""What operators of `torch.ops` are to programs that ask: those of the library itself, and those that programs declare."""

from __future__ import annotations

from typing import Any


class OpOverload:
    """One overload of an operator, as `torch.ops.aten.add.Tensor`."""

    namespace: str
    _opname: str
    _overloadname: str
    overloadpacket: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.overloadpacket, self._overloadname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """The overloads of one name, as `torch.ops.aten.add`."""

    def __init__(self, name: str, namespace: str):
        self.__name__, self._namespace, self.__module__ = name, namespace, f"torch._ops.{namespace}"
        self._qualified_op_name = f"{namespace}::{name}"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"
