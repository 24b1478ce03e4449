"""A reader of pickles that calls nothing but what is on a list.

Python's own unpickler can be told which names a pickle may mention, but sets attributes on whatever the pickle has at
hand, and reaches registered extensions without asking.  This one interprets the instructions that PyTorch's files use,
and refuses every other.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import IO, Any

from rushlight.serialization import names
from rushlight.serialization.names import StorageType
from rushlight.tensor import Tensor

_BLOCKED = frozenset(("sys", "os", "posix", "nt"))  # modules of which nothing is called, whatever the user allows


def advice(name: str) -> str:
    """What to do about a name that is not allowed."""
    return (
        f"If you trust this file, allow the name with `torch.serialization.add_safe_globals([{name}])` or the "
        f"`torch.serialization.safe_globals([{name}])` context manager, or load the file with weights_only=False, which can run "
        "any code that the file holds."
    )


class Reader:
    """Takes bytes from a file, all that are asked for."""

    def __init__(self, file: IO[bytes]):
        self.file = file

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        if n > 1 << 31:
            raise pickle.UnpicklingError(f"the pickle speaks of {n} bytes, more than there can be")
        data = self.file.read(n)
        if len(data) < n:
            raise EOFError("the pickle ends early")
        return data

    def line(self) -> str:
        """The rest of the line."""
        data = self.file.readline()
        if not data.endswith(b"\n"):
            raise EOFError("the pickle ends early")
        return data[:-1].decode("utf-8")

    def unpack(self, form: str) -> Any:
        """A number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]


class Machine:
    """Reads one pickle.  persistent_load: gives the storages that the pickle names."""

    def __init__(self, file: IO[bytes], persistent_load: Callable[[Any], Any], encoding: str = "utf-8"):
        self.reader, self.persistent_load, self.encoding = Reader(file), persistent_load, encoding
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.allowed: list[Any] = []  # what names of the file stood for: only this may be called

    def load(self) -> Any:
        """The object.  Raises pickle.UnpicklingError for a pickle that is damaged or mentions what is not allowed."""
        try:
            while True:
                code = self.reader.take(1)
                if code == pickle.STOP:
                    return self.stack.pop()
                instruction = INSTRUCTIONS.get(code)
                if instruction is None:
                    raise pickle.UnpicklingError(
                        f"Weights only load failed: Unsupported operand {code[0]}, an instruction that is not allowed"
                    )
                instruction(self)
        except pickle.UnpicklingError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError, EOFError, struct.error, OverflowError) as error:
            message = f"Weights only load failed: the pickle is damaged or hostile ({type(error).__name__}: {error})"
            raise pickle.UnpicklingError(message) from error

    # What instructions do --------------------------------------------------------------------------

    def push(self, value: object) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def marked(self) -> list[Any]:
        """The values above the last mark, which is taken away."""
        values, self.stack = self.stack, self.marks.pop()
        return values

    def mark(self) -> None:
        """Set a mark."""
        self.marks.append(self.stack)
        self.stack = []

    def put(self, index: int) -> None:
        """Remember the top of the stack."""
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        """Push what was remembered."""
        self.push(self.memo[index])

    def tuple_of(self, n: int) -> None:
        """Make a tuple of the top n values."""
        if len(self.stack) < n:
            raise LookupError("the stack is too short")
        values = tuple(self.stack[len(self.stack) - n :])
        self.stack[len(self.stack) - n :] = [values]

    def find(self, module: str, name: str) -> None:
        """Push what a name stands for."""
        if module in _BLOCKED:
            raise pickle.UnpicklingError(
                f"Weights only load failed: Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked"
            )
        try:
            found = names.lookup(module, name)
        except KeyError:
            self.refuse(module, name)
        self.allowed.append(found)
        self.push(found)

    def refuse(self, module: str, name: str) -> None:
        """Raise the error for a name that is not allowed."""
        if module.startswith("torch") and name in names.UNSUPPORTED:
            raise pickle.UnpicklingError(f"Weights only load failed: {names.UNSUPPORTED[name]} is not supported")
        full = name if module in ("builtins", "__builtin__") else f"{module}.{name}"
        raise pickle.UnpicklingError(
            f"Weights only load failed: Unsupported global: GLOBAL {full} was not an allowed global by default. {advice(name)}"
        )

    def stack_find(self) -> None:
        """As `find`, by the two strings on the stack."""
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("a name is no string")
        self.find(module, name)

    def call(self) -> None:
        """Call what a name stood for."""
        args, function = self.stack.pop(), self.stack.pop()
        self.check(function)
        if type(args) is not tuple:
            raise TypeError("arguments that are no tuple")
        self.push(function(*args))

    def check(self, function: Callable[..., Any]) -> None:
        """Refuse what no name stood for, and what is not to be called."""
        known = any(function is found for found in self.allowed)
        if not known or isinstance(function, StorageType) or any(function is kind for kind in names.FACTORIES):
            raise pickle.UnpicklingError(
                f"Weights only load failed: Trying to call reduce for unrecognized function {function!r}: it must not be called"
            )

    def make(self) -> None:
        """Make an empty object of a class that a name stood for."""
        args, cls = self.stack.pop(), self.stack.pop()
        self.check(cls)
        if not isinstance(cls, type) or type(args) is not tuple:
            raise TypeError(f"{cls!r} is no class")
        self.push(cls.__new__(cls, *args))

    def build(self) -> None:
        """Give an object its attributes: dictionaries their own, objects of classes that the user allowed any."""
        state, target = self.stack.pop(), self.stack[-1]
        kind = type(target)
        if kind is names.Ignored:
            return
        # The file need not have named a class that the user allowed: numpy.dtype(...) is of a class of each dtype.
        of_user = any(kind is known for known in names.user_table().values())
        if isinstance(target, type) or not (of_user or any(kind is known for known in self.allowed)):
            self.refuse_change(kind)
        if of_user and hasattr(target, "__setstate__"):
            target.__setstate__(state)
        elif of_user or isinstance(target, dict):
            self.set_attributes(target, state)
        else:
            self.refuse_change(kind)

    @staticmethod
    def refuse_change(kind: type) -> None:
        """Raise the error for a file that sets the state of an object of a class that is not allowed."""
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise pickle.UnpicklingError(
            "Weights only load failed: Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
            f"but got {kind}: the file sets the state of a {name}. {advice(kind.__qualname__)}"
        )

    @staticmethod
    def set_attributes(target: Tensor, state: Any) -> None:
        """Update the attributes of an object by one dictionary, or by two, the second for slots."""
        own, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        for name, value in [*(own or {}).items(), *(slots or {}).items()]:
            if type(name) is not str or name.startswith("__"):
                raise TypeError(f"no attribute is called {name!r}")
            if own and name in own:
                target.__dict__[name] = value
            else:
                setattr(target, name, value)

    def append(self, values: list[Any]) -> None:
        """Append to the list on the stack."""
        if type(self.stack[-1]) is not list:
            raise TypeError(f"Can only append to lists, but got {type(self.stack[-1])}")
        self.stack[-1].extend(values)

    def set_items(self, values: list[Any]) -> None:
        """Set items of the dictionary on the stack."""
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise TypeError(
                f"Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[key] = value

    def add_items(self, values: list[Any]) -> None:
        """Add to the set on the stack."""
        if type(self.stack[-1]) is not set:
            raise TypeError("only sets can be added to")
        self.stack[-1].update(values)

    def persistent(self) -> None:
        """Push the storage that the top of the stack names."""
        self.push(self.persistent_load(self.stack.pop()))

    def text(self, data: bytes) -> None:
        """Push a string of Python 2, which may have been bytes."""
        self.push(data if self.encoding == "bytes" else data.decode(self.encoding))

    def long(self, n: int) -> None:
        """Push an integer of n bytes."""
        if n > 1 << 16:
            raise ValueError(f"an integer of {n} bytes")
        self.push(int.from_bytes(self.reader.take(n), "little", signed=True))

    def copy(self) -> None:
        """Push the top of the stack again."""
        self.push(self.stack[-1])

    def drop(self) -> None:
        """Take the top of the stack away."""
        self.stack.pop()


Instruction = Callable[[Machine], Any]
INSTRUCTIONS: dict[bytes, Instruction] = {
    pickle.PROTO: lambda m: m.reader.take(1),
    pickle.FRAME: lambda m: m.reader.take(8),
    pickle.MARK: Machine.mark,
    pickle.POP: Machine.drop,
    pickle.POP_MARK: Machine.marked,
    pickle.DUP: Machine.copy,
    pickle.NONE: lambda m: m.push(None),
    pickle.NEWTRUE: lambda m: m.push(True),
    pickle.NEWFALSE: lambda m: m.push(False),
    pickle.BININT: lambda m: m.push(m.reader.unpack("<i")),
    pickle.BININT1: lambda m: m.push(m.reader.unpack("<B")),
    pickle.BININT2: lambda m: m.push(m.reader.unpack("<H")),
    pickle.LONG1: lambda m: m.long(m.reader.unpack("<B")),
    pickle.LONG4: lambda m: m.long(m.reader.unpack("<I")),
    pickle.BINFLOAT: lambda m: m.push(m.reader.unpack(">d")),
    pickle.SHORT_BINSTRING: lambda m: m.text(m.reader.take(m.reader.unpack("<B"))),
    pickle.BINSTRING: lambda m: m.text(m.reader.take(m.reader.unpack("<I"))),
    pickle.BINUNICODE: lambda m: m.push(m.reader.take(m.reader.unpack("<I")).decode("utf-8", "surrogatepass")),
    pickle.SHORT_BINUNICODE: lambda m: m.push(m.reader.take(m.reader.unpack("<B")).decode("utf-8", "surrogatepass")),
    pickle.BINUNICODE8: lambda m: m.push(m.reader.take(m.reader.unpack("<Q")).decode("utf-8", "surrogatepass")),
    pickle.SHORT_BINBYTES: lambda m: m.push(m.reader.take(m.reader.unpack("<B"))),
    pickle.BINBYTES: lambda m: m.push(m.reader.take(m.reader.unpack("<I"))),
    pickle.BINBYTES8: lambda m: m.push(m.reader.take(m.reader.unpack("<Q"))),
    pickle.BYTEARRAY8: lambda m: m.push(bytearray(m.reader.take(m.reader.unpack("<Q")))),
    pickle.EMPTY_TUPLE: lambda m: m.push(()),
    pickle.TUPLE1: lambda m: m.tuple_of(1),
    pickle.TUPLE2: lambda m: m.tuple_of(2),
    pickle.TUPLE3: lambda m: m.tuple_of(3),
    pickle.TUPLE: lambda m: m.push(tuple(m.marked())),
    pickle.EMPTY_LIST: lambda m: m.push([]),
    pickle.LIST: lambda m: m.push(m.marked()),
    pickle.APPEND: lambda m: m.append([m.stack.pop()]),
    pickle.APPENDS: lambda m: m.append(m.marked()),
    pickle.EMPTY_DICT: lambda m: m.push({}),
    pickle.SETITEM: lambda m: m.set_items([m.stack.pop(-2), m.stack.pop()]),
    pickle.SETITEMS: lambda m: m.set_items(m.marked()),
    pickle.EMPTY_SET: lambda m: m.push(set()),
    pickle.ADDITEMS: lambda m: m.add_items(m.marked()),
    pickle.FROZENSET: lambda m: m.push(frozenset(m.marked())),
    pickle.GLOBAL: lambda m: m.find(m.reader.line(), m.reader.line()),
    pickle.STACK_GLOBAL: Machine.stack_find,
    pickle.REDUCE: Machine.call,
    pickle.NEWOBJ: Machine.make,
    pickle.BUILD: Machine.build,
    pickle.BINPERSID: Machine.persistent,
    pickle.BINPUT: lambda m: m.put(m.reader.unpack("<B")),
    pickle.LONG_BINPUT: lambda m: m.put(m.reader.unpack("<I")),
    pickle.MEMOIZE: lambda m: m.put(len(m.memo)),
    pickle.BINGET: lambda m: m.get(m.reader.unpack("<B")),
    pickle.LONG_BINGET: lambda m: m.get(m.reader.unpack("<I")),
}
