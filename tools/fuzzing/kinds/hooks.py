"""Hooks of every kind, registered and removed before, between and during backwards; the order in which they are called."""

from __future__ import annotations

from typing import Any

from ..program import Writer
from .base import Kind, with_torch
from .pieces import leaf, loss, tensor, value
from .views import step

SUM = "[None if g is None else (tuple(g.shape), g.sum().item()) for g in ({0} if isinstance({0}, tuple) else ({0},))]"

# Nodes that are a part of one of rushlight's: they have other inputs.
COMPOSED = ("Addmm", "UnsafeView", "Squeeze", "AsStrided", "Mean", "Addmv")


# An index of several entries is one node here, and several in PyTorch.
ENTRIES = ("Select", "Slice", "Unsqueeze", "Index")


def divided(tensor: Any) -> bool:
    """Whether the node of a tensor of PyTorch's may be a part of one of rushlight's, which has another input."""
    node, name = tensor.grad_fn, type(tensor.grad_fn).__name__
    of_number = name.startswith("Unfold") and getattr(node, "_saved_self_sym_sizes", None) == ()
    below = [type(function).__name__ for function, _ in node.next_functions]
    of_index = [other for other in below if other.startswith(ENTRIES)]
    index = name.startswith(ENTRIES) and (of_index or (name.startswith("Index") and not tensor.dim()))
    return bool(name.startswith(COMPOSED) or of_number or index)


def draw(w: Writer) -> None:
    """A small graph, hooks on it, backwards and removals."""
    w.do("log = []")
    leaf(w, grad=1.0, complex_share=0.0)
    if w.maybe(0.5):
        leaf(w, grad=0.8, complex_share=0.0)
    module = w.maybe(0.3) and modules(w)
    for _ in range(w.rng.randint(1, 4)):
        step(w)
    tops: list[str] = []
    for _ in range(w.rng.randint(2, 8)):
        action(w, tops)
    if module and w.maybe(0.5):
        w.do("m.zero_grad()")
    finish(w, tops)


def tracked(w: Writer) -> list[str]:
    """Tensors that require grad."""
    return [name for name in w.tensors() if value(w, name).requires_grad]


def action(w: Writer, tops: list[str]) -> None:
    """A hook is registered or removed, a step is made, or a backward runs."""
    names = tracked(w)
    handles = [name for name in w.names if name[0] == "h" and name[1:].isdigit()]
    chance = w.rng.random()
    if chance < 0.55 and names:
        register(w, w.rng.choice(names[-5:]))
    elif chance < 0.65 and handles:
        w.do(f"{w.rng.choice(handles)}.remove()")
    elif chance < 0.8 and names:
        top = w.let(loss(w, w.rng.choice(names)), "s")
        tops.extend([top] if top else [])
    elif chance < 0.9:
        step(w)
    elif tops:
        run(w, w.rng.choice(tops))


def body(w: Writer, label: str, argument: str, change: str) -> str:
    """What a hook does: note its call, and perhaps change, remove, or raise."""
    note = f"log.append(({label!r}, {SUM.format(argument)}))"
    chance = w.rng.random()
    handles = [name for name in w.names if name[0] == "h" and name[1:].isdigit()]
    if chance < 0.25:
        return f"({note}, {change})[1]"
    if chance < 0.35 and handles:
        return f"({note}, {w.rng.choice(handles)}.remove())[1]"
    if chance < 0.4:
        return f"({note}, 1 / 0)[1]"
    return note


def register(w: Writer, x: str) -> None:
    """One hook of any kind on the tensor or its node."""
    label, has_node = w.fresh("H"), value(w, x).grad_fn is not None
    node = f"{x}.grad_fn"
    composed = has_node and divided(value(w, x))
    kind = w.one("tensor", "tensor", "retain", "pre", "post", "accumulate", "multi", "capture")
    if kind == "post" and composed:
        return
    if kind in ("pre", "post") and not has_node:  # a leaf's node lives as long as somebody holds it
        node = w.let(f"torch.autograd.graph.get_gradient_edge({x}).node", "n") or node
    if kind == "tensor":
        w.let(f"{x}.register_hook(lambda g: {body(w, label, 'g', 'g * 2')})", "h")
    elif kind == "retain":
        w.do(f"{x}.retain_grad()")
    elif kind == "pre":
        w.let(f"{node}.register_prehook(lambda g: {body(w, label, 'g', 'tuple(t * 2 for t in g)')})", "h")
    elif kind == "post":
        change = "tuple(None if t is None else t * 2 for t in gi)"
        w.let(f"{node}.register_hook(lambda gi, go: {body(w, label, 'gi', change)})", "h")
    elif kind == "accumulate":
        w.let(
            f"{x}.register_post_accumulate_grad_hook(lambda p: {body(w, label, 'p.grad', 'p.grad.mul_(2) and None')})",
            "h",
        )
    elif kind == "multi":
        names = w.rng.sample(tracked(w), min(len(tracked(w)), 2))
        mode = w.one("all", "any")
        if mode == "all":
            w.awaited.update(names)
        w.let(
            f"torch.autograd.graph.register_multi_grad_hook([{', '.join(names)}], lambda g: {body(w, label, 'tuple(g)' if mode == 'all' else 'g', 'None')}, mode={mode!r})",
            "h",
        )
    else:
        w.do(f"{x}.register_hook(lambda g: log.append(({label!r}, tuple(g.shape))))")


def modules(w: Writer) -> bool:
    """A module with hooks of its own, applied to something."""
    w.do("m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1)).double()")
    w.do(
        "with torch.no_grad():\n    [p.copy_(torch.linspace(-1., 1., p.numel(), dtype=p.dtype).view(p.shape)) for p in m.parameters()]"
    )
    for _ in range(w.rng.randint(1, 4)):
        label, part = w.fresh("M"), w.one("m", "m[0]", "m[1]", "m[2]")
        kind = w.one("forward_pre", "forward", "full_backward_pre", "full_backward", "full_backward")
        note = f"log.append(({label!r}, {SUM.format('args[-1]')}))"
        change = w.one(
            "None",
            "None",
            "None",
            "args[-1]",
            "tuple(a * 2 for a in args[-1]) if isinstance(args[-1], tuple) else args[-1] * 2",
        )
        if kind.startswith("full") and "args[-1]" in change and kind == "full_backward":
            change = "None if args[1][0] is None else tuple(a * 2 for a in args[1])"
        w.let(f"{part}.register_{kind}_hook(lambda module, *args: ({note}, {change})[1])", "h")
    source = w.one(
        "torch.tensor([[1., 2., 3.]], dtype=torch.float64)",
        "torch.tensor([[1., 2., 3.]], dtype=torch.float64, requires_grad=True)",
    )
    w.let(source)
    w.let(f"m({w.tensors()[-1]})")
    return True


def run(w: Writer, top: str) -> None:
    """A backward or a grad; of what a hook awaits with others, which PyTorch does not count, none."""
    if top in w.awaited:
        return
    names = tracked(w)
    some = ", ".join(w.rng.sample(names, min(len(names), w.rng.randint(1, 2))))
    choice = w.rng.random()
    w.do("log.append('run')")
    if choice < 0.5:
        w.do(f"{top}.backward({w.one('', 'retain_graph=True')})")
    elif choice < 0.75:
        w.let(f"torch.autograd.grad({top}, [{some}], allow_unused=True, retain_graph={w.one('True', 'False')})", "g")
    elif choice < 0.85:
        w.do(f"{top}.backward(inputs=[{some}], retain_graph=True)")
    else:
        got = w.let(f"torch.autograd.grad({top}, [{some}], allow_unused=True, create_graph=True)", "g")
        if got is not None:
            terms = [
                f"{got}[{i}].square().sum()" for i, g in enumerate(w.names[got]) if g is not None and g.requires_grad
            ]
            if terms:
                w.do(f"({' + '.join(terms)}).backward()")


def finish(w: Writer, tops: list[str]) -> None:
    """At least one backward."""
    if not tops and tracked(w):
        top = w.let(loss(w, tensor(w)), "s")
        tops.extend([top] if top else [])
    if tops:
        run(w, tops[-1])


KIND = Kind("hooks", draw, with_torch, ("stride", "offset"))
