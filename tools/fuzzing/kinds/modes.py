"""no_grad, enable_grad, inference_mode and set_grad_enabled, nested, as contexts and decorators; views across them."""

from __future__ import annotations

from ..program import Writer
from .base import Kind, with_torch
from .pieces import gradients, leaf, overlaps, spoils, tensor, value
from .views import step

MANAGERS = (
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.inference_mode()",
    "torch.inference_mode(False)",
    "torch.set_grad_enabled(False)",
    "torch.set_grad_enabled(True)",
    "torch.autograd.set_multithreading_enabled(False)",
)
STATES = "(torch.is_grad_enabled(), torch.is_inference_mode_enabled())"


def draw(w: Writer) -> None:
    """Leaves, then steps in nested modes."""
    leaf(w)
    for _ in range(w.rng.randint(2, 5)):
        within(w, 2)
    with_decorator(w)
    gradients(w)


def within(w: Writer, depth: int) -> None:
    """A step, or a mode with steps in it."""
    if not w.tensors():
        leaf(w)
    elif depth and w.maybe(0.6):
        with w.block(w.rng.choice(MANAGERS)):
            for _ in range(w.rng.randint(1, 3)):
                within(w, depth - 1)
    elif w.maybe(0.15):
        leaf(w)
    elif w.maybe(0.1):
        w.let(STATES, "state")
    elif w.maybe(0.08):
        x, call = tensor(w), w.one("clone()", "detach()", "is_inference()", "requires_grad_()", "numpy()")
        if not spoils(w, x, call):
            w.let(f"{x}.{call}")
    else:
        step(w)


def with_decorator(w: Writer) -> None:
    """A function that runs in a mode."""
    if not w.maybe(0.3) or not w.tensors():
        return
    manager, x = w.rng.choice(MANAGERS[:6]), tensor(w)
    body = w.one("return x * 2", "return x.view(-1)", "return x.add_(1)", "yield x * 2\n    yield x.view(-1)")
    if "add_" in body and (spoils(w, x, body) or overlaps(value(w, x))):
        return
    if w.do(f"@{manager}\ndef f(x):\n    {body}"):
        w.let(f"list(f({x}))" if "yield" in body else f"f({x})", "r")


KIND = Kind("modes", draw, with_torch)
