"""Threads under modes of their own: graphs of one or of all, gradients that meet in one leaf, hooks that all call.

Programs have one answer: what threads share they only read or add to, and they are joined before anything is compared.
What is PyTorch's for all threads at once (anomaly mode, the default dtype) is changed in one alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from ..program import Side, Writer
from .base import Kind, with_torch

TOGETHER = """\
import sys, threading
def together(*works):
    barrier, errors = threading.Barrier(len(works)), [None] * len(works)
    def run(number):
        barrier.wait()
        try:
            works[number]()
        except Exception as error:
            errors[number] = error.with_traceback(None)
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(works))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that they meet in the middle of what they do
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for error in errors:
        if error is not None:
            raise error"""
APART = """\
import threading
def together(*works):
    errors = []
    def run(work):
        try:
            work()
        except Exception as error:
            errors.append(error.with_traceback(None))
    for work in works:
        thread = threading.Thread(target=run, args=(work,))
        thread.start()
        thread.join()
    if errors:
        raise errors[0]"""
HELPERS = """
def with_default(dtype, work):
    former = torch.get_default_dtype()
    def inner():
        torch.set_default_dtype(dtype)
        work()
    try:
        together(inner)
        return torch.get_default_dtype(), torch.ones(2)
    finally:
        torch.set_default_dtype(former)
def pull(total, inputs=None):
    total.backward(retain_graph=True, inputs=inputs)
def slope(total, at, create_graph=False):
    return torch.autograd.grad(total, [at], retain_graph=True, allow_unused=True, create_graph=create_graph)[0]
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]"""
NUMBERS = "torch.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=torch.float64)"
STATE = "(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled())"
MODES = (
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.inference_mode()",
    "torch.inference_mode(False)",
    "torch.set_grad_enabled(False)",
)
PACKING = (  # not nested, nor around functional transformations and checkpoints, which PyTorch refuses
    "torch.autograd.graph.disable_saved_tensors_hooks('not here')",
    "torch.autograd.graph.saved_tensors_hooks(lambda t: ({log}.append(tuple(t.shape)), t)[1], lambda t: t)",
    "torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2)",
    "torch.autograd.graph.save_on_cpu()",
)
RESULTS = (
    "{0} * {1}",
    "{0} + {1}",
    "{0}.atan()",
    "{0} * 2",
    "({0} / 10).tanh().exp()",
    "{0}.tanh()",
    "{0}.softmax(-1)",
    "{0}.t().contiguous().t()",
    "{0}[:, :2].sum() * {1}",
    "torch.where({0} > 2, {0}, {1})",
    "Twice.apply({0})",
    "{0}.detach()",
    "{0}.clone()",
    "{0} @ {1}.mT @ {1}",
    "torch.utils.checkpoint.checkpoint(lambda t: t.atan() * t, {0}, use_reentrant=False)",
    "torch.func.vmap(lambda t: t * 2)({0})",
    "torch.func.grad(lambda t: (t * t).sum())({0}.detach())",
)
CHANGES = ("{0}.mul_(2)", "{0}.add_({1})", "{0}[0] = 1.", "{0}.t().mul_(3)", "{0}.zero_()", "{0}.requires_grad_()")


def draw(w: Writer) -> None:
    """What threads share, then one or two rounds of threads, then a backward of the main thread's own."""
    w.do("log = []")
    w.do(f"x = {NUMBERS}.requires_grad_()")
    w.do(f"y = {NUMBERS}.flip(0){w.one('', '.requires_grad_()')}")
    for name in ("u", "v")[: w.rng.choice((0, 1, 1, 2))]:
        w.do(f"{name} = {w.rng.choice(RESULTS[:8]).format('x', w.one('x', 'y'))}")
    for _ in range(w.rng.choice((0, 0, 1, 2))):
        hook(w)
    for _ in range(w.rng.choice((1, 1, 2))):
        start(w, [work(w, number) for number in range(w.rng.choice((2, 2, 3)))])
    w.do("log.sort()")
    if w.maybe(0.5):
        w.do("(x * x).sum().backward()")


def hook(w: Writer) -> None:
    """A hook that every thread calls."""
    name = w.rng.choice([name for name in ("x", "y", "u", "v") if name in w.names])
    tensor = w.names[name]
    if not tensor.requires_grad:
        return
    change = w.one("None", "g * 2")
    forms = [f"{name}.register_hook(lambda g: (log.append(1), {change})[1])"]
    if tensor.is_leaf:
        forms.append(f"{name}.register_post_accumulate_grad_hook(lambda p: log.append(2))")
    else:
        forms.append(f"{name}.grad_fn.register_prehook(lambda g: log.append(3))")
        forms.append(f"{name}.grad_fn.register_hook(lambda gi, go: log.append(4))")
    w.let(w.rng.choice(forms), "h")


def start(w: Writer, works: list[str]) -> None:
    """The threads, all at once, one after another, or within a mode of the main thread's."""
    call = f"together({', '.join(works)})"
    chance = w.rng.random()
    if chance < 0.2:
        w.do(f"with {w.one(*MODES[:5])}:\n    {call}")
    elif chance < 0.3:
        w.do("\n".join(f"together({name})" for name in works))
    elif chance < 0.4:
        w.let(f"with_default(torch.{w.one('float64', 'float32', 'float16')}, {works[0]})", "d")
    else:
        w.do(call)


def work(w: Writer, number: int) -> str:
    """The function that a thread runs, which leaves what it made in a list of its own."""
    body = Body(w, w.fresh("out"), alone=number == 0)
    w.do(f"{body.out} = []")
    for _ in range(w.rng.randint(2, 5)):
        body.step(2)
    body.keep()
    name = w.fresh("work")
    w.do(f"def {name}():\n" + textwrap.indent("\n".join(body.lines), "    "))
    return name


class Body:
    """The statements of one thread.  ``alone``: whether no other thread of the program does what concerns all."""

    def __init__(self, w: Writer, out: str, alone: bool) -> None:
        self.w, self.out, self.alone = w, out, alone
        self.lines: list[str] = []
        self.own: list[str] = []
        self.packing = False  # hooks of saved tensors are in force
        self.inference = False  # so may be inference mode
        self.shared = [name for name in ("x", "y", "u", "v") if name in w.names]

    def step(self, depth: int) -> None:
        """A result, a change of what is the thread's own, derivatives, or a mode with steps inside."""
        choices: list[Callable[[], None]] = [self.result] * 4 + [self.leaf, self.change, self.look]
        choices += [self.backward] * 4 + [self.grad, self.hooked]
        if depth and self.w.maybe(0.35):
            self.within(depth)
        else:
            self.w.rng.choice(choices)()

    def tensor(self) -> str:
        """A tensor, the thread's own or one that all share."""
        return self.w.rng.choice(self.own[-3:] * 2 + self.shared)

    def let(self, expression: str) -> str:
        """Name a tensor of the thread's own."""
        name = self.w.fresh("t")
        self.lines.append(f"{name} = {expression}")
        self.own.append(name)
        return name

    def result(self) -> None:
        """Something computed."""
        form = self.w.rng.choice(RESULTS[:-3] if self.packing else RESULTS)
        # PyTorch's checkpoints refuse inference tensors.
        first = self.w.rng.choice(self.shared) if "checkpoint" in form else self.tensor()
        self.let(form.format(first, self.tensor()))

    def leaf(self) -> None:
        """A leaf of the thread's own."""
        self.let(NUMBERS + ("" if self.inference else self.w.one("", ".requires_grad_()", ".requires_grad_()")))

    def change(self) -> None:
        """A change in place of what is the thread's own."""
        if self.own:
            name = self.let(f"{self.tensor()} * 1")
            changes = CHANGES[:-1] if self.inference else CHANGES
            self.lines.append(self.w.rng.choice(changes).format(name, self.tensor()))

    def look(self) -> None:
        """The modes that are in force, which in anomaly mode are those of all."""
        self.lines.append(f"{self.out}.append({STATE[: STATE.rindex(',')]}))")

    def backward(self) -> None:
        """Gradients into leaves, those that all share among them; the graph is kept for the others."""
        form = self.w.one("({0} * {1}).sum()", "{0}.sum()", "({0} * 3).sum()")
        extra = self.w.one("", f", [{self.w.one('x', 'x, y')}]")
        self.lines.append(f"pull({form.format(self.tensor(), self.tensor())}{extra})")

    def grad(self) -> None:
        """Gradients given back, and of these again."""
        create = not self.packing and self.w.maybe(0.4)
        name = self.w.fresh("g")
        total = f"({self.tensor()} * {self.tensor()}).sum()"
        self.lines.append(f"{name} = slope({total}, x{', True' if create else ''})")
        self.lines.append(f"{self.out}.append(None if {name} is None else {name}.detach() * 1)")
        if create:
            self.lines.append(f"if {name} is not None and {name}.requires_grad:")
            self.lines.append(f"    pull(({name} * {name}).sum())")

    def hooked(self) -> None:
        """A hook on what is the thread's own."""
        if self.own:
            name = self.let(f"{self.tensor()} * 1")
            self.lines.append(f"if {name}.requires_grad:")
            self.lines.append(f"    {name}.register_hook(lambda g: {self.out}.append(g.sum().item()))")

    def within(self, depth: int) -> None:
        """Steps in a mode."""
        w = self.w
        packing = not self.packing and w.maybe(0.3)
        manager = w.rng.choice(PACKING if packing else MODES).format(log=self.out)
        if self.alone and w.maybe(0.15):
            manager = "torch.autograd.detect_anomaly(check_nan=False)"
        elif w.maybe(0.1):
            self.lines.append(f"torch.set_grad_enabled({w.one('False', 'True')})")  # the thread's own, to its end
            return
        outer, self.lines, before = self.lines, [], (self.packing, self.inference)
        self.packing |= packing
        self.inference |= "inference" in manager
        for _ in range(w.rng.randint(1, 3)):
            self.step(depth - 1)
        self.packing, self.inference = before
        outer.append(f"with {manager}:\n" + textwrap.indent("\n".join(self.lines or ["pass"]), "    "))
        self.lines = outer

    def keep(self) -> None:
        """What the thread leaves to look at."""
        self.lines.append(f"{self.out}.extend([{', '.join(self.own)}])")


@cache
def sides() -> tuple[Side, Side]:
    """PyTorch with one thread after the other (it can wait for itself for ever), rushlight with all at once."""
    reference, subject = with_torch()
    return replace(reference, prelude=APART + HELPERS), replace(subject, prelude=TOGETHER + HELPERS)


FACTS = ("grad_fn", "storage", "offset", "stride", "output_nr", "version")
KIND = Kind("threads", draw, sides, FACTS)
