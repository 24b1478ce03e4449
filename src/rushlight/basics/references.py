"""How many references an object has, which differs between versions of Python: from 3.14 on a call adds none for its arguments."""

from __future__ import annotations

from sys import getrefcount


class _Slot:
    """What holds an object."""

    __slots__ = ("held",)

    def __init__(self, held: object):
        self.held = held


def _counted(slot: _Slot) -> int:
    held = slot.held
    return getrefcount(held)


HELD = _counted(_Slot(object()))  # as a function counts them that has in a variable what one other object holds
