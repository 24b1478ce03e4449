"""Recordings as a training makes them, put together by hand: so many bytes of everything, in the order of a real run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rushlight.memory.recordings.recording import (
    ALLOC,
    CATEGORIES,
    CATEGORY,
    FREE,
    MARK,
    PHASE,
    PHASES,
    Frame,
    Recording,
)

START = 1_790_000_000_000_000  # microseconds since 1970
MB = 1_000_000


@dataclass
class Writer:
    """Writes a recording, event after event."""

    step_us: int = 40
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    blocks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    initial: list[int] = field(default_factory=list)
    stacks: dict[tuple[Frame, ...], int] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    modules: dict[str, int] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    now: int = START
    top: int = 0x7F00_0000_0000

    def block(self, size: int, operator: str, module: str, stack: tuple[Frame, ...]) -> int:
        """A block that is not born yet."""
        number = len(self.blocks)
        place = self.stacks.setdefault(stack, len(self.stacks)) if stack else -1
        op = self.operators.setdefault(operator, len(self.operators)) if operator else -1
        mod = self.modules.setdefault(module, len(self.modules)) if module else -1
        self.blocks.append((self.top, size, place, op, mod))
        self.top += -(-size // 64) * 64
        return number

    def event(self, action: int, block: int, value: int = 0) -> None:
        self.now += self.step_us
        self.rows.append((self.now, action, block, value))

    def before(self, size: int, category: str, module: str = "") -> int:
        """A block that was alive when the recording began."""
        self.initial.append(CATEGORIES.index(category))
        return self.block(size, "", module, ())

    def alloc(
        self, size: int, category: str, operator: str = "", module: str = "", stack: tuple[Frame, ...] = ()
    ) -> int:
        number = self.block(size, operator, module, stack)
        self.event(ALLOC, number, CATEGORIES.index(category))
        return number

    def free(self, block: int) -> None:
        self.event(FREE, block)

    def becomes(self, block: int, category: str) -> None:
        self.event(CATEGORY, block, CATEGORIES.index(category))

    def phase(self, name: str) -> None:
        self.event(PHASE, -1, PHASES.index(name))

    def mark(self, text: str) -> None:
        self.marks.append(text)
        self.event(MARK, -1, len(self.marks) - 1)

    def done(self, device: str = "cpu") -> Recording:
        rows = np.array(self.rows, np.int64).reshape(-1, 4)
        blocks = np.array(self.blocks, np.int64).reshape(-1, 5)
        return Recording(
            time=rows[:, 0].copy(),
            action=rows[:, 1].astype(np.uint8),
            block=rows[:, 2].copy(),
            value=rows[:, 3].copy(),
            address=blocks[:, 0].copy(),
            size=blocks[:, 1].copy(),
            stack=blocks[:, 2].astype(np.int32),
            operator=blocks[:, 3].astype(np.int32),
            module=blocks[:, 4].astype(np.int32),
            initial=len(self.initial),
            initial_category=np.array(self.initial, np.uint8),
            stacks=list(self.stacks),
            operators=list(self.operators),
            modules=list(self.modules),
            marks=self.marks,
            device=device,
        )


def line(number: int, name: str, file: str = "/home/me/vit/model.py") -> Frame:
    return Frame(file, number, name)


@dataclass
class Training:
    """A transformer of `layers` blocks trained for `steps`; techniques as they change the order of events.

    size: bytes of one weight matrix; activation: bytes of one activation; `batch` scales the activations.
    """

    steps: int = 3
    layers: int = 6
    size: int = 16 * MB
    activation: int = 12 * MB
    batch: float = 1.0
    states: int = 2  # of the optimizer for each weight
    fused: bool = False  # optimizer in backward
    checkpointed: bool = False  # every layer
    clear_early: bool = False  # zero_grad right after the step
    late: bool = False  # zero_grad after the forward, right before backward
    leak: int = 0  # bytes kept by every step
    out_of_place: bool = False  # a copy of each weight in the optimizer's step
    writer: Writer = field(default_factory=Writer)

    def main(self, number: int) -> tuple[Frame, ...]:
        return (line(number, "train", "/home/me/vit/train.py"), line(90, "<module>", "/home/me/vit/train.py"))

    def inside(self, number: int, name: str = "forward") -> tuple[Frame, ...]:
        return (line(number, name), line(70, "forward"), *self.main(41))

    def run(self) -> Recording:
        w = self.writer
        w.before(3 * MB, "unknown")
        self.weights = [
            w.before(self.size, "parameter", f"layers.{i}.{part}") for i in range(self.layers) for part in PARTS
        ]
        self.state: dict[int, list[int]] = {}
        self.grads: dict[int, int] = {}
        self.leaked: list[int] = []
        for step in range(self.steps):
            w.mark(f"step {step}")
            self.step()
        return w.done()

    def step(self) -> None:
        w = self.writer
        w.phase("forward")
        if not self.fused and not self.clear_early and not self.late:
            self.zero_grad()
        x = w.alloc(int(2 * MB * self.batch), "input", "to", "", self.main(38))
        saved = [self.forward(i) for i in range(self.layers)]
        loss = w.alloc(4, "temporary", "cross_entropy", "", self.main(43))
        if self.leak:
            self.leaked.append(w.alloc(self.leak, "temporary", "clone", "", self.main(44)))
        if self.late:
            self.zero_grad()
        w.phase("backward")
        flow = w.alloc(self.bytes, "autograd_detail", "CrossEntropyBackward", "", ())
        for i in reversed(range(self.layers)):
            flow = self.backward(i, saved[i], flow)
        w.free(flow)
        w.free(x)
        w.free(loss)
        if not self.fused:
            w.phase("optimizer")
            for weight in list(self.grads):
                self.update(weight)
            if self.clear_early:
                self.zero_grad()

    @property
    def bytes(self) -> int:
        return int(self.activation * self.batch)

    def zero_grad(self) -> None:
        for block in self.grads.values():
            self.writer.free(block)
        self.grads = {}

    def forward(self, i: int) -> list[int]:
        """Saved activations: of each part what it puts out; checkpointed, only the last."""
        w, saved = self.writer, []
        for part, rows in PARTS.items():
            scratch = w.alloc(self.bytes // 2, "temporary", rows[0], f"layers.{i}.{part}", self.inside(rows[1]))
            made = w.alloc(self.bytes, "temporary", rows[0], f"layers.{i}.{part}", self.inside(rows[1]))
            w.becomes(made, "activation")
            w.free(scratch)
            saved.append(made)
        if self.checkpointed:
            for block in saved[:-1]:
                w.free(block)
            saved = saved[-1:]
        return saved

    def backward(self, i: int, saved: list[int], flow: int) -> int:
        w = self.writer
        if self.checkpointed:
            again = []
            for part, rows in list(PARTS.items())[:-1]:
                made = w.alloc(self.bytes, "temporary", rows[0], f"layers.{i}.{part}", self.inside(rows[1]))
                w.becomes(made, "activation")
                again.append(made)
            saved = [*again, *saved]
        for number, (part, rows) in reversed(list(enumerate(PARTS.items()))):
            after = w.alloc(self.bytes, "autograd_detail", rows[0] + "Backward", f"layers.{i}.{part}", ())
            weight = self.weights[i * len(PARTS) + number]
            grad = w.alloc(self.size, "autograd_detail", rows[0] + "Backward", f"layers.{i}.{part}", ())
            w.becomes(grad, "gradient")
            w.free(saved[number])
            w.free(flow)
            flow = after
            self.grads[weight] = grad
            if self.fused:
                w.phase("optimizer")
                self.update(weight)
                w.free(self.grads.pop(weight))
                w.phase("backward")
        return flow

    def update(self, weight: int) -> None:
        w = self.writer
        w.now += 60  # it also computes
        if weight not in self.state and self.states:
            made = [w.alloc(self.size, "temporary", "Adam.step", "", self.main(47)) for _ in range(self.states)]
            for block in made:
                w.becomes(block, "optimizer_state")
            self.state[weight] = made
        if self.out_of_place:
            w.free(w.alloc(self.size, "temporary", "Adam.step", "", self.main(47)))


PARTS = {"attention.qkv": ("linear", 21), "attention": ("attention", 24), "mlp.0": ("linear", 31), "mlp": ("gelu", 32)}


def training(**options: object) -> Recording:
    """A recording of a training, see `Training`."""
    return Training(**options).run()  # type: ignore[arg-type]


def large(events: int = 1_000_000) -> Recording:
    """A recording of about so many events: many steps of many layers."""
    each = len(training(steps=2, layers=24).time) - len(training(steps=1, layers=24).time)
    return training(steps=-(-events // each), layers=24, size=4 * MB, activation=6 * MB)


def irregular(events: int = 1_000_000, seed: int = 0) -> Recording:
    """A recording in which nothing repeats: sizes, lives, makers and times at random."""
    random = np.random.default_rng(seed)
    births = events // 2
    sizes = np.exp(random.normal(11, 2.5, births)).astype(np.int64) + 1
    spans = np.exp(random.normal(4, 2, births)).astype(np.int64) + 1
    slot = np.concatenate([np.arange(births) * 2, (np.arange(births) + spans) * 2 + 1])
    order = np.argsort(slot, kind="stable")
    order = order[slot[order] < births * 2]
    action = np.where(order < births, ALLOC, FREE).astype(np.uint8)
    block = order % births
    count = len(CATEGORIES)
    value = np.where(action == ALLOC, random.integers(0, count, births)[block], 0)
    frames = [
        line(int(n), f"function_{n % 97}", f"/home/me/lib/file_{n % 41}.py") for n in random.integers(1, 4000, 3000)
    ]
    stacks = [tuple(frames[j] for j in random.integers(0, 3000, 12)) for _ in range(2000)]
    return Recording(
        time=START + np.cumsum(random.integers(0, 9, len(order))),
        action=action,
        block=block.astype(np.int64),
        value=value.astype(np.int64),
        address=np.cumsum(sizes),
        size=sizes,
        stack=random.integers(-1, len(stacks), births).astype(np.int32),
        operator=random.integers(-1, 60, births).astype(np.int32),
        module=random.integers(-1, 300, births).astype(np.int32),
        stacks=stacks,
        operators=[f"operator_{i}" for i in range(60)],
        modules=[f"layers.{i // 6}.part_{i % 6}" for i in range(300)],
    )
