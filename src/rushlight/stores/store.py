"""Store: what all of them share: contexts, wrapping, filters, statistics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rushlight.basics.caller import warn
from rushlight.basics.state import modes, set_mode
from rushlight.engine.modes import decorate
from rushlight.stores.chain import Chain, Table
from rushlight.stores.errors import StoreWarning, bytes_of, size
from rushlight.stores.filters import Following, ModuleFilter, matcher, running


class Entered(threading.local):
    """What to restore when the contexts of this thread end."""

    def __init__(self) -> None:
        self.former: list[Any] = []


class Store:
    """Keeps tensors saved for backward in a form of its own, while it is active.

    As a context manager it takes what operators save inside; called with a module (`store(module)`, `store.wrap(module)`)
    it gives that module with a forward that runs inside; called with a function, that function. One object may be active
    in several threads, and again and again. Active inside each other, the innermost packs first, and what it makes of
    a tensor goes to the next: `with stores.disk(), stores.compress("bf16")` writes bfloat16 to disk. `recompute` comes first
    wherever it stands.

    Filters: `min_bytes` (smaller tensors stay as they are), `operator` and `argument` (who saves, under which name: names,
    patterns or predicates), `module` (the module that runs: name, pattern, class, object or predicate), `parameters`
    (False: parameters and other leaves that require grad, and their views, are skipped, since they stay in memory anyway).
    """

    kind = ""
    recomputes = on_disk = False
    exact = False  # whether `decode` gives what `encode` took, to the bit

    made_with: Any  # the arguments of the constructor

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        made = super().__new__(cls)
        made.made_with = (args, kwargs)
        return made

    def __init__(self, *, min_bytes: int | str = 1024, operator: Any = None, argument: str | None = None, module: Any = None,
                 parameters: bool = False):  # fmt: skip
        self.min_bytes = bytes_of(min_bytes, "min_bytes")
        self.operator, self.argument = matcher(operator, "operator"), matcher(argument, "argument")
        self.module = None if module is None else ModuleFilter(module)
        self.parameters, self.filters = parameters, {"operator": operator, "argument": argument, "module": module}
        self.table, self.entered = Table(), Entered()
        self.counts = dict.fromkeys(("tensors", "bytes", "shared_tensors", "shared_bytes", "small", "parameters",
                                     "filtered"), 0)  # fmt: skip
        self.largest = 0  # bytes of the largest tensor that was too small
        self.warned, self.calls = False, 0

    # What stores do ----------------------------------------------------------------------------------

    def encode(self, array: Any, guard: Any) -> tuple[list[Any], Any]:
        """A flat array as arrays, which the next store gets, and a note."""
        raise NotImplementedError

    def decode(self, parts: list[Any], note: Any, count: int, dtype: Any) -> Any:
        """The flat array of `count` elements again."""
        raise NotImplementedError

    # Contexts ----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if modes.saved_hooks_disabled is not None:
            raise RuntimeError(modes.saved_hooks_disabled)
        if modes.sleeper is not None:
            modes.sleeper()
        hooks = modes.saved_hooks
        inner = hooks[-1].stores if hooks and hooks[-1].__class__ is Chain else ()
        around = hooks[:-1] if inner else hooks
        self.entered.former.append((hooks, self.counts["tensors"] + self.counts["shared_tensors"]))
        if self.module is not None:
            Following.start()
        if self not in inner:
            set_mode("saved_hooks", (*around, Chain.of((self, *inner), around)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        hooks, _ = self.entered.former.pop()
        set_mode("saved_hooks", hooks)
        if self.module is not None:
            Following.stop()
        if kind is None:
            self.ended()

    def ended(self) -> None:
        """A context ended without an exception: say so if there was never anything to store."""
        self.calls += 1
        if self.warned or self.counts["tensors"] or not modes.grad or self.calls < self.patience:
            return
        self.warned = True
        warn(f"{self!r} stored nothing: {self.reason()}", StoreWarning)

    patience = 1  # contexts without anything stored before the warning; more for wrapped modules

    def reason(self) -> str:
        """Why nothing was stored."""
        c = self.counts
        parts = [f"{c['small']} tensors were smaller than min_bytes={self.min_bytes}, the largest of them "
                 f"{self.largest} bytes" if c["small"] else "",
                 f"{c['parameters']} were parameters, which stay in memory anyway" if c["parameters"] else "",
                 f"{c['filtered']} did not pass the filters" if c["filtered"] else ""]  # fmt: skip
        return "; ".join(filter(None, parts)) or "no operator saved a tensor for backward inside"

    def __call__(self, target: Any) -> Any:
        """`wrap` of a module; of a function, the function that runs inside.  Raises TypeError for anything else."""
        if not callable(target):
            raise TypeError(f"stores.{self.kind}: expected a module or a function to run inside, got {type(target).__name__}; "
                            f"what runs in a block is inside too: `with stores.{self.kind}(...):`")  # fmt: skip
        return self.wrap(target) if hasattr(target, "_modules") else decorate(target, lambda: self)

    def wrap(self, module: Any) -> Any:
        """A module like `module`, on its very parameters and state, whose forward runs in this store."""
        from rushlight.stores.wrapping import wrapped

        if self.module is not None:
            self.module.name_modules(module)
        self.patience = 16
        return wrapped(module, self)

    def run(self, forward: Callable[..., Any], module: object, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """The forward of a wrapped module."""
        with self:
            if self.module is None:
                return forward(*args, **kwargs)
            running.modules.append(module)
            try:
                return forward(*args, **kwargs)
            finally:
                while running.modules.pop() is not module:
                    pass

    # Filters and statistics ----------------------------------------------------------------------------

    def accepts(self, nbytes: int, where: tuple[str, ...], parameter: bool) -> bool:
        """Whether this store takes a tensor."""
        counts = self.counts
        if parameter and not self.parameters:
            counts["parameters"] += 1
            return False
        if nbytes < self.min_bytes or nbytes == 0:
            counts["small"] += 1
            self.largest = max(self.largest, nbytes)
            return False
        operator, argument = where or ("", "")
        if ((self.operator is None or self.operator(operator)) and (self.argument is None or self.argument(argument))
                and (self.module is None or self.module(running.modules))):  # fmt: skip
            return True
        counts["filtered"] += 1
        return False

    def note_kept(self, nbytes: int) -> None:
        """Count a tensor that was stored."""
        self.counts["tensors"] += 1
        self.counts["bytes"] += nbytes

    def note_shared(self, nbytes: int) -> None:
        """Count a tensor whose memory was stored before."""
        self.counts["shared_tensors"] += 1
        self.counts["shared_bytes"] += nbytes

    def stats(self) -> dict[str, Any]:
        """What this store did so far.

        tensors, bytes: stored, as large as they were. shared_tensors, shared_bytes: those whose memory was stored already.
        small, parameters, filtered: tensors that were left alone, and why.
        """
        return dict(self.counts)

    def arguments(self) -> list[str]:
        """The arguments that `repr` shows."""
        shown = [
            f"{name}={getattr(value, '__name__', repr(value))}"
            for name, value in self.filters.items()
            if value is not None
        ]
        return [f"min_bytes={self.min_bytes}", *shown]

    def __repr__(self) -> str:
        state = self.state() if self.counts["tensors"] else "nothing stored yet"
        return f"<stores.{self.kind}({', '.join(self.arguments())}): {state}>"

    def state(self) -> str:
        """What `repr` says of what was stored."""
        return f"{self.counts['tensors']} tensors, {size(self.counts['bytes'])}"

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (type(self), *self.made_with)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        return self


def rebuilt(cls: type[Any], args: tuple[str, ...], kwargs: dict[str, int]) -> Any:
    """A store as it was made, from a pickle: what it kept stays with its process."""
    return cls(*args, **kwargs)
