"""Saved-tensor hooks, checkpoints of both kinds, save_on_cpu, allow_mutation_on_saved_tensors, nested in each other."""

from __future__ import annotations

from ..program import Writer
from .base import Kind, with_torch
from .pieces import RESULTS, VIEWS, gradients, leaf, pick, tensor
from .views import step

PACKS = (
    ("lambda t: (log.append(('pack', tuple(t.shape))), t)[1]", "lambda t: (log.append('unpack'), t)[1]"),
    ("lambda t: t.detach().numpy()", "lambda a: torch.from_numpy(a)"),
    ("lambda t: t * 2", "lambda t: t / 2"),
    ("lambda t: t.clone()", "lambda t: t"),
    ("lambda t: 1 / 0", "lambda t: t"),
    ("lambda t: t", "lambda t: 1 / 0"),
    ("lambda t: 7", "lambda k: k"),
    ("lambda t: t.mul_(2)", "lambda t: t"),
    ("lambda t: t", "lambda t: t[..., :0]"),
    ("lambda t: t", "lambda t: t.double()"),
)
BODIES = (
    "x.sin().exp()",
    "x * x.sin()",
    "(x * 2).tanh() * x",
    "x.sigmoid()",
    "x.pow(2).sum()",
    "(x.sin(), x.exp())",
    "x",
    "x.view(-1)",
    "x.clone().mul_(x).sin()",
    "x.sin().mul_(2)",
    "x.detach().sin()",
    "x.unsqueeze(0) * x.unsqueeze(-1)",
    "torch.utils.checkpoint.checkpoint(torch.sin, x * 2, use_reentrant=False)",
    "x.relu()",
    "x.softmax(-1)",
    "x.norm()",
    "x / (x + 3)",
)


def draw(w: Writer) -> None:
    """Steps inside and outside of what changes how tensors are saved, then gradients."""
    w.do("log = []")
    w.changes = w.maybe(0.6)
    leaf(w, grad=0.9, complex_share=0.03)
    for _ in range(w.rng.randint(1, 4)):
        within(w, 2)
    gradients(w)
    if w.maybe(0.3):
        within(w, 1)
        gradients(w)


# Of those, the ones that keep memory of their own: what was saved may be changed in place. How much operators in place
# save is their own business.
COPYING = (
    ("lambda t: t * 2", "lambda t: t / 2"),
    ("lambda t: t.clone()", "lambda t: t"),
)
SILENT = (
    "torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)",
    "torch.autograd.graph.save_on_cpu()",
)
OTHERS = ("torch.autograd.graph.disable_saved_tensors_hooks('no')", "torch.no_grad()")


def manager(w: Writer, innermost: bool) -> str:
    """A context that changes how tensors are saved; around others, one that shows nowhere whether it packs too."""
    if not innermost:
        return w.rng.choice((*SILENT[: 1 if w.changes else 2], *OTHERS))
    if w.maybe(0.65):
        pack, unpack = w.rng.choice(COPYING if w.changes else PACKS[:4] if w.maybe(0.7) else PACKS)
        return f"torch.autograd.graph.saved_tensors_hooks({pack}, {unpack})"
    return w.one(
        "torch.no_grad()" if w.changes else "torch.autograd.graph.save_on_cpu()",
        "torch.autograd.graph.allow_mutation_on_saved_tensors()",
        "torch.autograd.graph.allow_mutation_on_saved_tensors()",
        "torch.autograd.graph.disable_saved_tensors_hooks('no')",
        "torch.no_grad()",
    )


def within(w: Writer, depth: int) -> None:
    """A step, a checkpoint, or a block of them."""
    chance = w.rng.random()
    if depth and chance < 0.35:
        inner = 0 if w.maybe(0.6) else depth - 1
        with w.block(manager(w, not inner)):
            for _ in range(w.rng.randint(1, 3)):
                within(w, inner)
    elif chance < 0.65:
        checkpointed(w)
    elif chance < 0.85 or not w.changes:
        w.let(pick(w, RESULTS if w.maybe(0.7) else VIEWS, tensor(w)))
    else:
        step(w)


def checkpointed(w: Writer) -> None:
    """A checkpoint of a small function."""
    name, x = w.fresh("f"), tensor(w)
    lines = [f"def {name}(x):", "    log.append('run')"] if w.maybe(0.6) else [f"def {name}(x):"]
    lines += ["    x = x * 1"] if w.maybe(0.2) else []
    lines += [f"    return {w.rng.choice(BODIES)}"]
    w.do("\n".join(lines))
    options = w.one(
        "True",
        "False",
        "False",
        "False",
        "False, preserve_rng_state=False",
        "False, early_stop=False",
        "False, determinism_check='none'",
    )
    result = w.let(f"torch.utils.checkpoint.checkpoint({name}, {x}, use_reentrant={options})")
    if result is not None and isinstance(w.names[result], tuple):
        w.do(f"{result} = {result}[0] * {result}[1]")


KIND = Kind("saved", draw, with_torch, ("stride", "offset"))
