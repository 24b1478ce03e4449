"""Custom Functions of both styles that return inputs, views, duplicates and dirty tensors, and save what they like."""

from __future__ import annotations

import textwrap

from ..program import Writer
from .base import Kind, with_torch
from .pieces import apart, gradients, leaf, on_memory_of, overlaps, tensor, value
from .views import step

OUTPUTS = (
    "x * 2",
    "x * y",
    "x",
    "y",
    "x.view_as(x)",
    "x[...]",
    "x.view(-1)",
    "x.detach()",
    "x.clone()",
    "x + 1",
    "x.sin()",
    "(x.real > 0)",
    "torch.ones(2, dtype=torch.float64)",
    "x.sum()",
    "None",
    "first",
    "first.view(-1)",
)
SAVED = ("x, y", "x", "y", "first", "x, first", "first, x, y", "None, x", "x, x")


def draw(w: Writer) -> None:
    """A Function, applied once or twice, with steps around."""
    leaf(w, complex_share=0.05)
    leaf(w, complex_share=0.05)
    w.do("log = []")
    style = define(w)
    for _ in range(w.rng.randint(0, 2)):
        step(w)
    for _ in range(w.rng.randint(1, 2)):
        apply(w)
        if w.maybe(0.5):
            step(w)
    if style and w.maybe(0.3):
        transformed(w)
    gradients(w)
    if w.maybe(0.3):
        gradients(w)


def define(w: Writer) -> bool:
    """The class; whether it can be transformed by torch.func."""
    outputs = [w.rng.choice(OUTPUTS[:15])] + [w.rng.choice(OUTPUTS) for _ in range(w.rng.choice((0, 0, 1, 2)))]
    new_style = w.maybe(0.5)
    body = [f"first = {outputs[0]}"]
    if w.maybe(0.25):
        change = w.one("mul_(2)", "add_(y)", "zero_()", "exp_()")
        body, outputs = [f"x.{change}", "first = x"], ["x", *outputs[1:]]
    marks = context_lines(w, outputs, dirty=body[0].startswith("x."))
    names = ["first", *outputs[1:]]
    result = names[0] if len(names) == 1 and w.maybe(0.8) else f"({', '.join(names)},)"
    lines = ["class F(torch.autograd.Function):"]
    lines += style_new(body, result, marks) if new_style else style_old(body, result, marks)
    lines += backward(w)
    if w.maybe(0.4) and sum(output in ("x", "first") for output in outputs) < 2:  # a view of a tangent has one answer
        lines += jvp(w, len(outputs))
    if new_style and w.maybe(0.5):
        lines.append("    generate_vmap_rule = True")
    return w.do("\n".join(lines)) and new_style


def context_lines(w: Writer, outputs: list[str], dirty: bool) -> list[str]:
    """What is noted in ctx."""
    lines = [f"ctx.save_for_backward({w.rng.choice(SAVED)})"]
    lines += ["ctx.mark_dirty(x)"] if dirty else []  # without it, nobody promises anything
    lines += ["ctx.mark_non_differentiable(first)"] if w.maybe(0.1) else []
    lines += [f"ctx.set_materialize_grads({w.one('False', 'True')})"] if w.maybe(0.25) else []
    lines += ["ctx.save_for_forward(x)"] if w.maybe(0.15) else []
    lines += ["ctx.k = 3"] if w.maybe(0.2) else []
    return lines


def style_old(body: list[str], result: str, marks: list[str]) -> list[str]:
    """forward(ctx, ...)."""
    lines = [
        "@staticmethod",
        "def forward(ctx, x, y):",
        *(f"    {line}" for line in (*body, *marks)),
        f"    return {result}",
    ]
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def style_new(body: list[str], result: str, marks: list[str]) -> list[str]:
    """forward(...) and setup_context."""
    lines = ["@staticmethod", "def forward(x, y):", *(f"    {line}" for line in body), f"    return {result}"]
    first = "output[0]" if result.startswith("(") else "output"
    lines += ["@staticmethod", "def setup_context(ctx, inputs, output):", "    x, y = inputs", f"    first = {first}"]
    lines += [f"    {line}" for line in marks]
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def backward(w: Writer) -> list[str]:
    """A backward whose result depends on every gradient, and perhaps on what was saved."""
    total = "sum((k + 1) * g.sum() for k, g in enumerate(grads) if g is not None)"
    factor = w.one("1", "2", "sum(s.sum() for s in ctx.saved_tensors if s is not None)", "ctx.saved_tensors[0].sum()")
    answer = w.one("t * u, t", "t, None", "t * u, t * 2", "None, t", "t", "t, t, t") if w.maybe(0.3) else "t * u, t * 2"
    lines = [
        "    @staticmethod",
        "    def backward(ctx, *grads):",
        "        log.append([None if g is None else g.detach().sum().item() for g in grads])",
        f"        u = {factor}",
        f"        t = {total}",
        f"        return {answer}",
    ]
    return [
        *(
            ["    @staticmethod", "    @torch.autograd.function.once_differentiable", *lines[1:]]
            if w.maybe(0.1)
            else lines
        )
    ]


def jvp(w: Writer, count: int) -> list[str]:
    """A jvp that gives a tangent, or None, for each output."""
    tangent = w.one("tx * 2", "tx", "tx.view_as(tx)", "None", "tx + ty")
    return [
        "    @staticmethod",
        "    def jvp(ctx, tx, ty):",
        f"        return {', '.join([tangent] * count)}{',' if count > 1 else ''}",
    ]


def apply(w: Writer) -> None:
    """A call of the Function; its results are named."""
    x, y = tensor(w), tensor(w)
    if overlaps(value(w, x)) or not apart(value(w, x), value(w, y)):
        return  # forward may change it
    second = y if w.maybe(0.85) else w.one("2", "None", "1.5")
    if second == y and dirty(w) and y in on_memory_of(w, x):
        second = f"{y}.clone()"  # of one tensor that comes twice and is changed, PyTorch takes one for the other
    result = w.let(f"F.apply({x}, {second})", "r")
    if result is None and dirty(w):  # PyTorch has given the input its place in the graph before it refuses
        for name in sorted({*on_memory_of(w, x), *on_memory_of(w, y)}):
            w.do(f"del {name}")
        leaf(w)
    if result is not None and isinstance(w.names[result], tuple):
        for index in range(len(w.names[result])):
            w.let(f"{result}[{index}]")
        w.do(f"del {result}")
    elif result is not None:
        w.let(result)


def dirty(w: Writer) -> bool:
    """Whether the Function changes an input."""
    return any("mark_dirty" in text for text in w.statements)


def transformed(w: Writer) -> None:
    """The Function inside a transformation; of one tensor that comes as two arguments, PyTorch takes one for the other."""
    x, y = tensor(w), tensor(w)
    if overlaps(value(w, x)) or not apart(value(w, x), value(w, y)):
        return
    if dirty(w):  # and of one that changes its input and is refused, as in `apply`
        x, y = f"{x}.detach().clone()", f"{y}.detach().clone()"
    elif y in on_memory_of(w, x):
        y = f"{y}.clone()"
    one = "lambda x, y: (lambda r: r[0] if isinstance(r, tuple) else r)(F.apply(x, y))"
    w.let(
        w.one(
            f"torch.func.vmap({one})({x}, {y})",
            f"torch.func.grad(lambda x, y: ({one})(x, y).sum())({x}, {y})",
            f"torch.func.jvp({one}, ({x}, {y}), ({x}, {y}))",
            f"torch.func.vjp({one}, {x}, {y})[0]",
        ),
        "t",
    )


KIND = Kind("functions", draw, with_torch, ("stride", "offset"))
