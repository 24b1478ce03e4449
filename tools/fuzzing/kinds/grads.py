"""grad and backward with all their options, several in a row over one graph."""

from __future__ import annotations

from ..program import Writer
from .base import Kind, with_torch
from .pieces import leaf, loss, value
from .views import step


def draw(w: Writer) -> None:
    """A graph, then several derivatives of parts of it."""
    leaf(w, grad=1.0)
    if w.maybe(0.5):
        leaf(w)
    for _ in range(w.rng.randint(2, 6)):
        step(w)
    for _ in range(w.rng.randint(1, 4)):
        derive(w)
        if w.maybe(0.2):
            step(w)


def tracked(w: Writer) -> list[str]:
    """Tensors that require grad."""
    return [name for name in w.tensors() if value(w, name).requires_grad]


def point(w: Writer, name: str) -> str:
    """The tensor, or its edge."""
    return f"torch.autograd.graph.get_gradient_edge({name})" if w.maybe(0.15) else name


def options(w: Writer, names: tuple[str, ...]) -> str:
    """Some keyword arguments."""
    return "".join(f", {name}={w.one('True', 'True', 'False')}" for name in names if w.maybe(0.35))


def seed(w: Writer, name: str, recorded: bool = False) -> str:
    """A gradient to begin with, of memory of its own.

    recorded: whether it may require grad.  Of one that does, a derivative that is not recorded may show a view, which
    requires grad without a graph.
    """
    forms = [
        "torch.ones_like({0})",
        "torch.full_like({0}, 2)",
        "{0}.detach().clone()",
        "torch.ones_like({0}).unsqueeze(0)",
    ]
    return w.rng.choice([*forms, "{0}.clone()"] if recorded else forms).format(name)


def derive(w: Writer) -> None:
    """One call of grad or backward."""
    names = tracked(w) or w.tensors()
    if not names:
        return
    outs = w.rng.sample(names[-5:], min(len(names[-5:]), w.rng.choice((1, 1, 1, 2))))
    if w.maybe(0.6):
        outs = [top for top in (w.let(loss(w, name), "s") for name in outs) if top] or outs
    inputs = ", ".join(point(w, name) for name in w.rng.sample(w.tensors(), min(len(w.tensors()), w.rng.randint(1, 3))))
    if w.maybe(0.6):
        grad(w, outs, inputs)
    else:
        backward(w, outs, inputs)


def grad(w: Writer, outs: list[str], inputs: str) -> None:
    """torch.autograd.grad."""
    given = ", ".join(point(w, name) if len(outs) == 1 else name for name in outs)
    extra = options(w, ("allow_unused", "create_graph", "retain_graph", "materialize_grads"))
    if w.maybe(0.4):
        batched, recorded = w.maybe(0.25), "create_graph=True" in extra
        seeds = [
            f"torch.stack([torch.ones_like({name}), {name}.detach() * 2])" if batched else seed(w, name, recorded)
            for name in outs
        ]
        extra += f", grad_outputs=[{', '.join(seeds)}]" + (", is_grads_batched=True" if batched else "")
    got = w.let(f"torch.autograd.grad([{given}], [{inputs}]{extra})", "g")
    if got is None:
        return
    again = [f"{got}[{i}]" for i, g in enumerate(w.names[got]) if g is not None and g.requires_grad]
    if again and w.maybe(0.6):
        w.let(
            f"torch.autograd.grad([({again[0]} * {again[0]}).abs().sum()], [{inputs}], allow_unused=True{options(w, ('create_graph', 'retain_graph'))})",
            "g",
        )


def backward(w: Writer, outs: list[str], inputs: str) -> None:
    """Tensor.backward or torch.autograd.backward."""
    extra = options(w, ("create_graph", "retain_graph"))
    extra += f", inputs=[{inputs}]" if w.maybe(0.4) else ""
    if len(outs) == 1 and w.maybe(0.6):
        first = f"gradient={seed(w, outs[0], 'create_graph=True' in extra)}" if w.maybe(0.3) else ""
        w.do(f"{outs[0]}.backward({(first + extra).lstrip(', ')})")
    else:
        seeds = (
            f", grad_tensors=[{', '.join(seed(w, name, 'create_graph=True' in extra) for name in outs)}]"
            if w.maybe(0.4)
            else ""
        )
        w.do(f"torch.autograd.backward([{', '.join(outs)}]{seeds}{extra})")


KIND = Kind("grads", draw, with_torch, ("stride", "offset"))
