"""Reads pickles of plain values, and nothing else: a file cannot make this reader call, import or build anything.

Lists, tuples, dictionaries with keys of text, text, numbers, True, False and None.  Every other instruction is refused,
also those that Python's own unpickler carries out before it asks `find_class`.  Time and memory are in proportion to the
length of the file: no numbers or positions larger than the file allows, no hashing of anything but text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

__all__ = ["PlainError", "first_item", "loads"]

LONGEST = 16  # bytes of a number
REFUSED = {
    b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"i": "INST", b"o": "OBJ", b"R": "REDUCE", b"b": "BUILD", b"\x81": "NEWOBJ",
    b"\x92": "NEWOBJ_EX", b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4", b"P": "PERSID", b"Q": "BINPERSID",
    b"\x97": "NEXT_BUFFER", b"\x98": "READONLY_BUFFER",
}  # fmt: skip


class PlainError(ValueError):
    """The bytes are no pickle of plain values; the message says where and why."""


class _Done(Exception):
    """The value that was looked for is complete."""


def loads(data: bytes) -> Any:
    """The value in a pickle.  Raises PlainError for damaged data, and for all that is not plain."""
    return Machine(data).run()


def first_item(data: bytes, key: str) -> str | None:
    """The text under a key, if the pickle is a dictionary that begins with it: without reading what follows."""
    machine = Machine(data)
    machine.wanted = key
    try:
        machine.run()
    except (_Done, PlainError):
        pass
    return machine.found


class Machine:
    """Carries out the instructions of one pickle."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.wanted: str | None = None
        self.found: str | None = None

    def run(self) -> Any:
        """The value."""
        self.weigh()
        try:
            self.loop()
            return self.result()
        except PlainError:
            raise
        except struct.error:
            raise PlainError(f"it ends early, after {len(self.data):,} bytes") from None
        except (LookupError, ValueError, TypeError) as error:
            what = "a value is asked for that is not there" if isinstance(error, LookupError) else str(error)
            raise PlainError(f"it is damaged at byte {self.at:,}: {what}") from None

    def weigh(self) -> None:
        """Refuse what is little else than instructions that make containers: a byte would become a hundred."""
        made = sum(self.data.count(bytes([code])) for code in b"}]l\x85\x86\x87")
        if made > len(self.data) // 4 + 4096:
            raise PlainError(
                f"{made:,} of its {len(self.data):,} bytes make containers: a file that means to fill the memory"
            )

    def result(self) -> Any:
        """What is on the stack at the end."""
        if len(self.stack) != 1 or self.marks:
            raise PlainError(f"it ends with {len(self.stack)} values, not one")
        return self.stack[0]

    def loop(self) -> None:
        """Carry out instructions up to the end: the frequent ones here, the others by table."""
        data, stack, memo = self.data, self.stack, self.memo
        push, remember, mark, whole = stack.append, memo.append, self.marks.append, int.from_bytes
        rare, i, end = RARE, 0, len(self.data)
        while i < end:
            code = data[i]
            i += 1
            if code == 0x6A:  # LONG_BINGET
                push(memo[whole(data[i : i + 4], "little")])
                i += 4
            elif code == 0x68:  # BINGET
                push(memo[data[i]])
                i += 1
            elif code == 0x8A and data[i] <= LONGEST:  # LONG1
                push(whole(data[i + 1 : i + 1 + data[i]], "little", signed=True))
                i += 1 + data[i]
            elif code == 0x4A:  # BININT
                push(whole(data[i : i + 4], "little", signed=True))
                i += 4
            elif code == 0x4B:  # BININT1
                push(data[i])
                i += 1
            elif code == 0x28:  # MARK
                mark(len(stack))
            elif code == 0x94:  # MEMOIZE
                remember(stack[-1])
            elif code == 0x4D:  # BININT2
                push(whole(data[i : i + 2], "little"))
                i += 2
            elif code == 0x7D:  # EMPTY_DICT
                push({})
            elif code == 0x2E:  # STOP
                self.at = i
                return
            elif code in rare:
                self.at = i
                rare[code](self)
                i = self.at
            else:
                self.at = i
                self.refuse(code)
        self.at = i
        raise PlainError(f"it ends early, after {end:,} bytes")

    def refuse(self, code: int) -> None:
        """Raise the error for an instruction that is not carried out."""
        name = REFUSED.get(bytes([code]))
        if name:
            raise PlainError(f"the instruction {name} at byte {self.at - 1:,} asks for more than plain values: refused")
        raise PlainError(f"byte {self.at - 1:,} (0x{code:02x}) is no instruction of a pickle of plain values")

    # Bytes ----------------------------------------------------------------------------------------------

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        end = self.at + n
        if end > len(self.data):
            raise PlainError(
                f"it ends early: byte {self.at:,} announces {n:,} bytes, {len(self.data) - self.at:,} are left"
            )
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, form: str) -> Any:
        """A number of fixed length."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> bytes:
        """The rest of a line, of those numbers that are written in digits."""
        end = self.data.find(b"\n", self.at, self.at + 64)
        if end < 0:
            raise PlainError(f"byte {self.at:,}: a line of digits without end")
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    # Values ---------------------------------------------------------------------------------------------

    def text(self, form: str) -> None:
        """Push text."""
        self.stack.append(self.take(self.number(form)).decode("utf-8", "surrogatepass"))

    def bytes_as_text(self, form: str) -> None:
        """Push text that Python 2 wrote as bytes."""
        self.stack.append(self.take(self.number(form)).decode("latin-1"))

    def long(self, form: str) -> None:
        """Push a number of some length."""
        n = self.number(form)
        if not 0 <= n <= LONGEST:
            raise PlainError(f"byte {self.at:,}: a number of {n:,} bytes; at most {LONGEST} make sense here")
        self.stack.append(int.from_bytes(self.take(n), "little", signed=True))

    def digits(self) -> None:
        """Push a number written in digits, or one of the old truth values."""
        found = self.line()
        self.stack.append({b"00": False, b"01": True}[found] if found in (b"00", b"01") else int(found.rstrip(b"L")))

    def put(self, index: int) -> None:
        """Remember the top of the stack under a number."""
        if index > len(self.data):
            raise PlainError(f"byte {self.at:,}: a memory with {index:,} places, more than the file has bytes")
        missing = index + 1 - len(self.memo)
        if missing > 0:
            self.memo.extend([None] * missing)
        self.memo[index] = self.stack[-1]

    # Containers -----------------------------------------------------------------------------------------

    def marked(self) -> list[Any]:
        """The values above the last mark, which is taken away."""
        mark = self.marks.pop()
        if mark > len(self.stack):
            raise PlainError(f"byte {self.at:,}: a mark above the stack")
        values = self.stack[mark:]
        del self.stack[mark:]
        return values

    def tuple_of(self, n: int) -> None:
        """Make a tuple of the top n values."""
        if len(self.stack) - (self.marks[-1] if self.marks else 0) < n:
            raise PlainError(f"byte {self.at:,}: a tuple of {n} values, the stack has fewer")
        values = tuple(self.stack[len(self.stack) - n :])
        del self.stack[len(self.stack) - n :]
        self.stack.append(values)

    def made(self, kind: type) -> None:
        """Make a list or tuple of what is above the mark."""
        values = kind(self.marked())
        self.stack.append(values)

    def dictionary(self) -> None:
        """Make a dictionary of the keys and values above the mark."""
        values = self.marked()
        self.stack.append({})
        self.set_items(values)

    def append(self, values: list[Any]) -> None:
        """Append to the list on the stack."""
        target = self.stack[-1]
        if type(target) is not list:
            raise PlainError(f"byte {self.at:,}: values are appended to {type(target).__name__}, not to a list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        """Put keys and values into the dictionary on the stack."""
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise PlainError(f"byte {self.at:,}: items of {type(target).__name__}, or a key without a value")
        keys = values[::2]
        if {*map(type, keys)} - {str}:
            raise PlainError(f"byte {self.at:,}: a key that is not text")
        target.update(zip(keys, values[1::2]))

    def peek(self) -> None:
        """Stop early if the first item of the first dictionary is the wanted one."""
        if self.wanted is not None and len(self.stack) >= 3:
            outer, key, value = self.stack[:3]
            if outer == {} and key == self.wanted and type(value) is str:
                self.found = value
            raise _Done


def _text(form: str) -> Callable[[Machine], None]:
    def instruction(machine: Machine) -> None:
        machine.text(form)
        machine.peek()

    return instruction


Instruction = Callable[[Machine], Any]
RARE: dict[int, Instruction] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME
    0x4E: lambda m: m.stack.append(None),  # NONE
    0x88: lambda m: m.stack.append(True),  # NEWTRUE
    0x89: lambda m: m.stack.append(False),  # NEWFALSE
    0x49: Machine.digits,  # INT
    0x4C: Machine.digits,  # LONG
    0x8A: lambda m: m.long("<B"),  # LONG1
    0x8B: lambda m: m.long("<i"),  # LONG4
    0x47: lambda m: m.stack.append(m.number(">d")),  # BINFLOAT
    0x46: lambda m: m.stack.append(float(m.line())),  # FLOAT
    0x8C: _text("<B"),  # SHORT_BINUNICODE
    0x58: _text("<I"),  # BINUNICODE
    0x8D: _text("<Q"),  # BINUNICODE8
    0x55: lambda m: m.bytes_as_text("<B"),  # SHORT_BINSTRING
    0x54: lambda m: m.bytes_as_text("<I"),  # BINSTRING
    0x5D: lambda m: m.stack.append([]),  # EMPTY_LIST
    0x29: lambda m: m.stack.append(()),  # EMPTY_TUPLE
    0x85: lambda m: m.tuple_of(1),  # TUPLE1
    0x86: lambda m: m.tuple_of(2),  # TUPLE2
    0x87: lambda m: m.tuple_of(3),  # TUPLE3
    0x74: lambda m: m.made(tuple),  # TUPLE
    0x6C: lambda m: m.made(list),  # LIST
    0x64: Machine.dictionary,  # DICT
    0x61: lambda m: m.append([m.stack.pop()]),  # APPEND
    0x65: lambda m: m.append(m.marked()),  # APPENDS
    0x73: lambda m: m.set_items([m.stack.pop(-2), m.stack.pop()]),  # SETITEM
    0x75: lambda m: m.set_items(m.marked()),  # SETITEMS
    0x71: lambda m: m.put(m.number("<B")),  # BINPUT
    0x72: lambda m: m.put(m.number("<I")),  # LONG_BINPUT
    0x70: lambda m: m.put(int(m.line())),  # PUT
    0x67: lambda m: m.stack.append(m.memo[int(m.line())]),  # GET
    0x30: lambda m: m.stack.pop(),  # POP
    0x31: Machine.marked,  # POP_MARK
    0x32: lambda m: m.stack.append(m.stack[-1]),  # DUP
}
