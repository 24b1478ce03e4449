"""Records every allocation of a process: which block, how large, for what, by which operator, module and line.

The allocator (`kernels.allocator`) notes births and deaths with their stacks; the observer here says afterwards which
operator they were made in, and tells categories as the engine comes to know them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import os
import threading
from time import perf_counter_ns as clock
from time import time_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import events
from rushlight.basics.errors import explained
from rushlight.basics.state import modes
from rushlight.kernels import allocator
from rushlight.memory.counting import holders
from rushlight.memory.counting.holders import (
    ACTIVATION,
    AUTOGRAD_DETAIL,
    GRADIENT,
    INPUT,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
)
from rushlight.memory.recordings.recording import ALLOC, MARK, PHASE, PHASES, SEVERAL, UNUSED, Frame, Recording
from rushlight.memory.recordings.replay import most_telling
from rushlight.nn.modules import module as nn_module
from rushlight.nn.parameter import Parameter
from rushlight.storage import root_of
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.basics.arrays import Array
    from rushlight.basics.devices import device
    from rushlight.nn.modules.module import Module

NONE, FORWARD, BACKWARD, OPTIMIZER = (PHASES.index(name) for name in ("", "forward", "backward", "optimizer"))
KEEP = 1 << PARAMETER | 1 << GRADIENT | 1 << OPTIMIZER_STATE  # what is one of these stays it
STEP = "Optimizer.step#"


class Recorder:
    """The observer: it labels what the allocator noted.  Start and stop it with `record_history`."""

    passive = True

    def __init__(self, max_entries: int, depth: int):
        self.library = allocator.library()
        self.capacity, self.depth = max_entries, depth
        self.labels: dict[tuple[str, str], int] = {}
        self.modules_of_nodes: dict[int, str] = {}
        self.marks: list[str] = []
        self.treatments: dict[str, None] = {}  # of gradients between backward and step
        self.local = threading.local()
        self.phase = NONE
        self.accumulated = False  # whether gradients were, in this phase
        self.steps = 0  # of optimizers
        self.runs = 0  # of backward
        self.unused: dict[
            int, int
        ] = {}  # by id of a leaf, the run of backward that gave it a gradient, until it is stepped
        self.passed_over: set[int] = set()  # those that got another gradient before they were
        self.stepped_once: set[int] = set()
        self.names: dict[int, str] = {}
        self.ran: set[str] = set()  # modules, by name
        self.models: set[str] = set()  # those that were called from outside of any
        self.parts: dict[int, Parts] = {}  # that operators were given, by the address of their block
        self.homes: dict[int, str] = {}  # the module of a parameter or its state, by the address of its block
        self.handles: list[Any] = []
        self.observation: Any = None  # while it goes on: that leads back here
        self.lump = 0  # bytes of small blocks that were alive when the recording began

    # Starting and stopping -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, with what is alive now."""
        before = holders.distinct()
        self.zero = time_ns() - clock()
        self.library.record(self.capacity, self.depth)
        for block in before.values():
            self.library.adopt(block.address, block.size, block.category)
        self.lump = allocator.totals().bytes
        self.library.mark(PHASE, NONE, 0)
        self.handles = [
            nn_module.register_module_forward_pre_hook(self.enter),
            nn_module.register_module_forward_hook(self.leave, always_call=True),
        ]
        self.observation = events.Observation(self, everywhere=True)
        self.observation.__enter__()

    def stop(self) -> None:
        """End; what was recorded stays."""
        self.observation.__exit__(None, None, None)
        self.observation = None
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.library.record(0, 0)

    # Modules ------------------------------------------------------------------------------------------

    def stack(self) -> list[str]:
        """Names of the modules whose forward runs in this thread, innermost last."""
        try:
            return self.local.modules  # type: ignore[no-any-return]
        except AttributeError:
            self.local.modules = []
            return self.local.modules  # type: ignore[no-any-return]

    def enter(self, module: Module, args: tuple[Tensor, ...]) -> None:
        """A module's forward begins."""
        stack = self.stack()
        name = self.names.get(id(module))
        if name is None or not stack:
            if not stack:
                self.names.update((id(m), n or type(module).__name__) for n, m in module.named_modules())
                self.homes.update(holders.homes(module, self.names))
            name = self.names.setdefault(id(module), type(module).__name__)
            if not stack:
                self.models.add(name)
        self.ran.add(name)
        stack.append(name)

    def leave(self, module: Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        """A module's forward ended, or raised."""
        stack = self.stack()
        if stack:
            stack.pop()

    def module(self) -> str:
        """The innermost module of this thread."""
        stack = self.stack()
        return stack[-1] if stack else ""

    # Labels and categories ----------------------------------------------------------------------------

    def label(self, start: int, operator: str, module: str, category: int) -> bool:
        """Say who made the blocks of this thread since `start`; whether there were any."""
        key = operator, module
        number = self.labels.get(key)
        if number is None:
            number = self.labels.setdefault(key, len(self.labels))
        return bool(self.library.label(start, number, category))

    def categorize(self, array: Array, category: int, keep: int = KEEP) -> None:
        """Say what the block of an array is for, unless it is one of those in `keep`."""
        while array.base is not None:
            array = array.base
            if not isinstance(array, np.ndarray):
                return
        self.library.category(array, category, keep)

    def enter_phase(self, phase: int, since: int = 0) -> None:
        """Note that the program does something else, from now on or since a time of the clock."""
        if phase != self.phase:
            self.phase, self.accumulated = phase, False
            self.library.mark(PHASE, phase, since)

    # What observers are told ----------------------------------------------------------------------------

    def note(
        self,
        kind: int,
        what: Any,
        inputs: tuple[Any, ...],
        statics: tuple[Any, ...],
        start: int,
        stop: int,
        result: Any,
    ) -> None:
        """An operator or node has run."""
        if kind <= events.FUNCTION:
            self.operator(what, inputs, start, result)
        elif kind == events.NODE:
            self.label(start, what.name(), self.modules_of_nodes.pop(what.seq, ""), AUTOGRAD_DETAIL)

    def begin(self, kind: int, what: Any, inputs: tuple[Any, ...], statics: tuple[float, ...]) -> int:
        """Something begins; when."""
        if kind == events.ROOT:
            if self.accumulated and modes.run is None:
                self.treatments[SEVERAL] = None
            self.runs += modes.run is None
            self.enter_phase(BACKWARD)
        elif kind == events.LEAF:
            self.gradient(what)
        elif kind == events.MARK and what[0].startswith(STEP):
            self.enter_phase(OPTIMIZER)
        return clock()

    def end(self, kind: int, what: Any, inputs: Any, statics: tuple[float, ...], token: int, result: Any) -> None:
        """It has ended."""
        if kind <= events.FUNCTION or kind == events.NODE:
            self.note(kind, what, inputs, statics, token, 0, result)
        elif kind == events.ROOT:
            self.label(token, "root", "", AUTOGRAD_DETAIL)
        elif kind == events.LEAF:
            self.label(token, "AccumulateGrad", "", AUTOGRAD_DETAIL)
            self.gradient_of(what)
        elif kind == events.MARK and what[0].startswith(STEP):
            self.stepped(token, what[0], inputs)

    def operator(self, op: Any, inputs: tuple[Any, ...], start: int, result: Any) -> None:
        """Blocks that an operator made, took and saved."""
        module = self.module()
        self.label(start, op.name if hasattr(op, "name") else op.__name__, module, TEMPORARY)
        if modes.run is None and self.phase != FORWARD and (self.phase or module or is_recorded(result)):
            self.enter_phase(FORWARD, start)  # building a model is none
        for x in inputs:
            if isinstance(x, Parameter):
                self.categorize(x._held, PARAMETER, 0)
            elif isinstance(x, Tensor) and x._edge is None:
                self.categorize(x._held, INPUT, ~1)
                self.note_part(x._held)
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        edge = getattr(first, "_edge", None)
        node = getattr(edge, "node", None)
        if node is None:
            return
        if module:
            self.modules_of_nodes[node.seq] = module
        for array in holders.saved_arrays(node):
            self.categorize(array, ACTIVATION, KEEP | 1 << INPUT)

    def note_part(self, array: Any) -> None:
        """An operator is given an array: note which part of its memory that is, where it is not all."""
        root = root_of(array)
        if root is array or type(root) is not np.ndarray or array.nbytes == root.nbytes:
            return
        parts = self.parts.setdefault(root.__array_interface__["data"][0], Parts())
        parts.note(self.steps, array.__array_interface__["data"][0], array.nbytes)

    def gradient(self, leaf: Tensor) -> None:
        """The gradient of a leaf is complete, and not accumulated yet."""
        record = modes.run.records.get(leaf) if modes.run is not None else None
        if record is not None and isinstance(record[1], np.ndarray):
            self.categorize(record[1], GRADIENT)

    def gradient_of(self, leaf: Tensor) -> None:
        """A gradient was accumulated."""
        self.accumulated = self.phase == BACKWARD
        if self.unused.setdefault(id(leaf), self.runs) != self.runs:
            self.passed_over.add(id(leaf))
        if isinstance(leaf._grad, Tensor):
            self.categorize(leaf._grad._held, GRADIENT)

    def stepped(self, start: int, name: str, inputs: Any) -> None:
        """An optimizer has made a step."""
        made = self.label(start, name.removeprefix(STEP), "", TEMPORARY)
        for optimizer in inputs if made else ():
            for block in holders.of_optimizer(optimizer):
                self.library.category(block.array, OPTIMIZER_STATE, 1 << PARAMETER)
            self.homes.update(holders.homes_of_state(optimizer, self.homes))
        for optimizer in inputs:
            for p in (p for group in optimizer.param_groups for p in group["params"]):
                self.unused.pop(id(p), None)
                self.stepped_once.add(id(p))
        self.steps += 1
        self.enter_phase(FORWARD if modes.run is None else BACKWARD)

    # The result ---------------------------------------------------------------------------------------

    def cut(self, recording: Recording) -> list[int]:
        """Blocks of inputs of which no step used more than half."""
        inputs = np.flatnonzero(most_telling(recording) == INPUT).tolist()
        pairs = ((b, self.parts.get(int(recording.address[b]))) for b in inputs)
        return [b for b, parts in pairs if parts is not None and 2 * parts.most <= recording.size[b]]

    def recording(self) -> Recording:
        """What was recorded so far.  Its own arrays are not among it."""
        operators = _Table()
        modules = _Table()
        with allocator.aside():
            rows, dropped, alive, stacks = allocator.read()
            pairs = [(operators[o], modules[m]) for o, m in self.labels]
            recording = assemble(rows, alive, dropped, self.lump, np.array(pairs or [(0, 0)], np.int32), self.zero)
            settle_homes(recording, self.homes, modules)
            recording.cut = self.cut(recording)
        recording.stacks = [frames(stack) for stack in stacks]
        recording.operators, recording.modules, recording.marks = list(operators), list(modules), list(self.marks)
        recording.treatments = [*self.treatments, *([UNUSED] if self.passed_over & self.stepped_once else [])]
        recording.idle = sorted({*self.names.values()} - self.ran)
        recording.models = sorted(self.models)
        return recording


class Parts:
    """What was used of a block: the most bytes in one step."""

    __slots__ = ("most", "seen", "step")

    def __init__(self) -> None:
        self.step, self.most, self.seen = -1, 0, dict[int, int]()

    def note(self, step: int, address: int, count: int) -> None:
        """So many bytes from an address on are used in a step."""
        if step != self.step:
            self.step, self.seen = step, {}
        self.seen[address] = max(count, self.seen.get(address, 0))
        self.most = max(self.most, sum(self.seen.values()))


def is_recorded(result: Tensor | tuple[Tensor, ...]) -> bool:
    """Whether a result is one of the graph: not where parameters are set, under `no_grad`."""
    several = result if isinstance(result, (tuple, list)) else (result,)
    return bool(modes.grad) and any(isinstance(x, Tensor) and x._edge is not None for x in several)


def settle_homes(recording: Recording, homes: dict[int, str], modules: dict[str, int]) -> None:
    """Give blocks of parameters, and of what an optimizer keeps for them, the module that has the parameter."""
    kinds = most_telling(recording)
    for b in np.flatnonzero((recording.module < 0) & np.isin(kinds, (PARAMETER, OPTIMIZER_STATE))).tolist():
        home = homes.get(int(recording.address[b]))
        if home is not None:
            recording.module[b] = modules[home]


class _Table(dict[str, int]):
    """Numbers names in the order in which they are asked for; "" is -1."""

    def __missing__(self, key: str) -> int:
        if not key:
            return -1
        self[key] = len(self)
        return self[key]


def frames(stack: list[Any]) -> tuple[Frame, ...]:
    """The lines of a stack outside this package, innermost first; all of them if there are no others."""
    lines = [Frame(code.co_filename, line_of(code, position), code.co_name) for code, position in stack]
    lines = (
        list(itertools.takewhile(lambda x: x.filename not in LAUNCHERS, lines)) or lines
    )  # what started the script is not its own
    return tuple(x for x in lines if not is_ours(x.filename)) or tuple(lines)


def is_ours(filename: str) -> bool:
    """Whether a file is of this package, of NumPy below it, of what it writes out, or of what calls only pass through."""
    if filename in PASSED:
        return True
    return filename.startswith((PACKAGE, NUMPY, "<")) and not filename.startswith(("<stdin", "<ipython", "<string"))


PACKAGE = __file__.rsplit("memory", 1)[0]
NUMPY = os.path.join(os.path.dirname(np.__file__), "")  # what is called of it is no user's line
PASSED = frozenset({contextlib.__file__, copy.__file__, functools.__file__})
LAUNCHERS = tuple(os.path.join(PACKAGE, "cli", name) for name in ("__init__.py", "memory.py", "run.py", "record.py"))


def line_of(code: Any, position: int) -> int:
    """The line of the instruction at a position, in bytes."""
    for start, stop, line in code.co_lines():
        if start <= position < stop and line is not None:
            return int(line)
    return int(code.co_firstlineno)


def assemble(rows: Array, alive: Array, dropped: int, total: int, pairs: Array, zero: int) -> Recording:
    """Columns from the allocator's events: blocks numbered anew, those that were alive at the beginning first.

    total: bytes alive when the recording began; what is not told of one by one is one block.
    """
    rows = rows[np.argsort(rows["time"], kind="stable")]
    moves = rows["block"] >= 0
    known = np.concatenate([rows[moves], alive])
    numbers, first = np.unique(known["block"], return_index=True)
    born = np.unique(rows["block"][moves & (rows["action"] == ALLOC)])
    initial = ~np.isin(numbers, born)
    order = np.argsort(~initial, kind="stable")
    last = known[len(known) - 1 - np.unique(known["block"][::-1], return_index=True)[1]][order]
    place = np.empty(len(numbers), np.int64)
    place[order] = np.arange(len(numbers))
    count = int(initial.sum())
    rest = total - int(last["size"][:count].sum()) if not dropped else 0
    shift = 1 if rest > 0 else 0
    block = np.full(len(rows), -1, np.int64)
    block[moves] = place[np.searchsorted(numbers, rows["block"][moves])] + shift
    value = np.where(rows["action"] == ALLOC, rows["category"], rows["value"])
    labels = last["label"]
    made_by = np.where(labels[:, None] >= 0, pairs[np.maximum(labels, 0)], -1)

    def column(values: Array, of_rest: int, dtype: type[Any]) -> Array:
        return np.concatenate([np.full(shift, of_rest, dtype), values.astype(dtype)])

    return Recording(
        time=(rows["time"] + zero) // 1000, action=rows["action"].copy(), block=block, value=value.astype(np.int64),
        address=column(last["address"], 0, np.int64), size=column(last["size"], rest, np.int64),
        stack=column(last["stack"], -1, np.int32), operator=column(made_by[:, 0], -1, np.int32),
        module=column(made_by[:, 1], -1, np.int32), initial=count + shift,
        initial_category=column(known["category"][first][order][:count], 0, np.uint8), dropped=dropped,
    )  # fmt: skip


_active: Recorder | None = None
_last: Recorder | None = None


def record_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "python",
    max_entries: int = 1 << 20,
    device: device | str | int | None = None,
    clear_history: bool = False,
    depth: int = 32,
) -> None:
    """Record every allocation from now on, or, with `enabled=None`, stop; what was recorded stays for `recording`.

    Args:
        enabled: "all" or "state" to record, None to stop.
        context: None leaves the Python stacks out.
        stacks: "python" or "all"; both give the Python stack.
        max_entries: events that are kept: a ring, of which the oldest are dropped (88 bytes each).
        depth: lines of a stack, from the innermost.
        device, clear_history: as in PyTorch; recording always begins anew.

    Raises ValueError for other values, RuntimeError where memory cannot be counted.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> memory.record_history()
    >>> y = torch.ones(1000).exp()
    >>> memory.record_history(None)
    >>> memory.recording().peak()[0] >= 8000
    True
    """
    global _active, _last
    if enabled not in ("all", "state", None) or stacks not in ("python", "all"):
        raise ValueError(f"record_history: expected enabled in ('all', 'state', None) and stacks in ('python', 'all'), "
                         f"got {enabled!r} and {stacks!r}")  # fmt: skip
    if not isinstance(max_entries, int) or max_entries < 1:
        raise ValueError(f"record_history: max_entries must be a positive int, got {max_entries!r}")
    if _active is not None:
        _active.stop()
        _active = None
    if enabled is not None:
        _active = _last = Recorder(min(int(max_entries), 1 << 27), 0 if context is None else depth)
        _active.start()


def recording() -> Recording:
    """What was recorded since `record_history`, whether it still records or not.  Raises RuntimeError if nothing was."""
    if _last is None:
        raise explained(
            RuntimeError("memory.recording: nothing was recorded; call memory.record_history() first"),
            "nothing-was-recorded",
        )
    return _last.recording()


def snapshot() -> dict[str, Any]:
    """What was recorded, as the plain dictionary that PyTorch's memory viewer reads from a pickle."""
    from rushlight.memory.snapshots.snapshots import to_snapshot

    return to_snapshot(recording())


def dump(path: str | os.PathLike[str]) -> None:
    """Write `snapshot()` to a file."""
    from rushlight.memory.snapshots.snapshots import save

    save(recording(), path)


def is_recording() -> bool:
    """Whether allocations are being recorded."""
    return _active is not None


def mark(text: str) -> None:
    """Put a mark with a text on the recording's timeline; nothing without one."""
    if _active is not None:
        _active.marks.append(str(text))
        _active.library.mark(MARK, len(_active.marks) - 1, 0)
