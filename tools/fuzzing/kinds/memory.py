"""What saves memory against plain training: the optimizer in backward, stores, budgets, recomputation; equal to the bit."""

from __future__ import annotations

from functools import cache

import rushlight

from ..program import Side, Writer
from .base import Kind
from .layers import PRELUDE

PLAIN = (
    f"{PRELUDE}\nimport contextlib, copy, io\nfused = False"
    + """
def on(make):
    return contextlib.nullcontext()
def squeeze():
    pass
"""
)
# Arrays here are small: inside, all of them are large enough to be moved and to be computed again.  Budgets look for what
# they page among the objects that are not frozen, as a program's own are not: to look at all takes fifty times a program.
SAVING = (
    f"{PRELUDE}\nimport contextlib, copy, gc, io\nfused = True\nactive = []"
    + """
from rushlight.dispatch.keeping import rebuilt
from rushlight.memory.budgets import pages
from rushlight.memory.counting import holders
@contextlib.contextmanager
def on(make):
    former = pages.SMALL, rebuilt.LARGE, rebuilt.SHARE, holders.collected
    pages.SMALL = rebuilt.LARGE = 1
    rebuilt.SHARE = 1000.0
    holders.collected = gc.get_objects
    try:
        with make() as inside:
            active.append(inside)
            yield
    finally:
        pages.SMALL, rebuilt.LARGE, rebuilt.SHARE, holders.collected = former
        active.clear()
def squeeze():
    for budget in active:
        if hasattr(budget, "pager") and not budget.pager.closed:
            budget.pager.scan()
            budget.pager.free(0, False)
            budget.pager.spill.flush()
"""
)
PARTS = ("Linear(8, 8)", "Tanh()", "GELU()", "LayerNorm(8)", "ReLU()", "Dropout(0.5)", "SiLU()", "Softmax(-1)", "Sigmoid()",
         "BatchNorm1d(8)", "RMSNorm(8)", "ReLU(inplace=True)")  # fmt: skip


@cache
def sides() -> tuple[Side, Side]:
    """rushlight without and with what saves memory."""
    return Side("plain", rushlight, PLAIN), Side("saving memory", rushlight, SAVING, exact=True)


def draw(w: Writer) -> None:
    """A model, an optimizer, and a loop inside of what saves memory."""
    parts = ["torch.nn.Linear(8, 8)", *(f"torch.nn.{w.rng.choice(PARTS)}" for _ in range(w.rng.randint(1, 5)))]
    w.do(f"torch.manual_seed(0)\nm = filled(torch.nn.Sequential({', '.join(parts)}))")
    w.do(f"x = numbers({w.one('4', '64')}, 8, dtype=torch.float32)" + w.one("", ".requires_grad_()"))
    w.do(
        f"o = torch.optim.{w.one('SGD(m.parameters(), 0.1, momentum=0.9)', 'Adam(m.parameters(), 0.1)', 'AdamW(m.parameters(), 0.1)', 'RMSprop(m.parameters(), 0.1)')}"
    )
    w.do("log = []")
    if w.maybe(0.3):
        w.do("c = torch.optim.lr_scheduler.StepLR(o, 1, 0.5)")
    for _ in range(w.rng.randint(1, 2)):
        if w.maybe(0.35):
            fused(w)
        else:
            stored(w)
    w.do("state = dict(m.state_dict())\nkept = o.state_dict()\nxg = x.grad")


def fused(w: Writer) -> None:
    """Training with the optimizer inside of backward."""
    accumulate = w.rng.choice((1, 1, 2))
    options = f", accumulate={accumulate}" if accumulate > 1 else ""
    clip = w.one("", "", "norm", "value")
    options += {"": "", "norm": ", clip_grad_norm=0.5", "value": ", clip_grad_value=0.1"}[clip]
    with w.block(f"on(lambda: torch.optim.in_backward(o{options}))"):
        for _ in range(w.rng.randint(1, 3)):
            for _ in range(accumulate):
                w.do("loss = m(x).square().mean()")
                w.do("loss.backward()")
                w.do("log.append(loss.item())")
            if clip:
                call = "norm_(m.parameters(), 0.5)" if clip == "norm" else "value_(m.parameters(), 0.1)"
                w.do(f"if not fused:\n    torch.nn.utils.clip_grad_{call}")
            w.do("o.step()")
            w.do("o.zero_grad()")
            between_steps(w)


def between_steps(w: Writer) -> None:
    """What a loop does after a step."""
    if "c" in w.names:
        w.do("c.step()")
    if w.maybe(0.3):
        w.do(w.one(
            "copied = copy.deepcopy(m.state_dict())",
            "held = io.BytesIO()\ntorch.save((m.state_dict(), o.state_dict()), held)",
            "o.load_state_dict(copy.deepcopy(o.state_dict()))",
            "m[0].weight.requires_grad_(not m[0].weight.requires_grad)",
            "with torch.no_grad():\n    m[0].weight.mul_(0.5)",
            "for group in o.param_groups:\n    group['lr'] *= 0.5",
            "m.eval()",
            "twin = copy.deepcopy(m)\nlog.append(twin(x).sum().item())",
        ))  # fmt: skip


STORES = (
    "torch.stores.disk(min_bytes=0)",
    "torch.stores.recompute()",
    "torch.stores.cpu()",
    "torch.stores.compress('lossless')",
    "torch.memory.budget(torch.memory.current() + 150_000)",
    "torch.memory.budget(torch.memory.current() + 300_000)",
    "torch.memory.budget('1 TB')",
    "torch.memory.budget('1 TB')",
)
BUDGETS = STORES[4:]
CHANGES = (
    "with torch.no_grad():\n    m[0].weight.add_(0.1)",
    "m[0].weight.data = m[0].weight.data * 2",
    "m[0].weight.data.mul_(2)",
    "m[0].bias.data.zero_()",
    "o.step()",
    "with torch.no_grad():\n    x.mul_(2)",
    "with torch.no_grad():\n    m[0].weight.set_(m[0].weight.clone())",
    "h.data.mul_(2)",
    "h.data = h.data * 2",
    "h.data = h.data * 2\ndel h",
    "x.data = x.data + 1",
    "x.detach().zero_()",
    "h.mul_(2)",
    "h.add_(x)",
    "with torch.no_grad():\n    h.zero_()",
    "m.load_state_dict(copy.deepcopy(m.state_dict()))",
    "m.zero_grad()",
    "h.sum().backward(retain_graph=True)",
    "del h",
    "squeeze()",
    "squeeze()",
    "held = io.BytesIO()\ntorch.save((m.state_dict(), o.state_dict()), held)",
    "held = io.BytesIO()\ntorch.save(m.state_dict(), held)\nm.load_state_dict(torch.load(io.BytesIO(held.getvalue())))",
    "twin = copy.deepcopy(m)\nlog.append(twin(x).sum().item())",
    "o.load_state_dict(copy.deepcopy(o.state_dict()))",
    "d = m[0].weight.detach()\nd.mul_(2)",
    "with torch.no_grad():\n    m[0].weight.data -= 0.1",
)


def stored(w: Writer) -> None:
    """Forward inside of a store or a budget, a change, backwards inside or outside."""
    manager = f"on(lambda: {w.rng.choice(STORES)})"
    inside = w.maybe(0.5)
    if w.maybe(0.25):
        one_after_the_other(w)
        return
    with w.block(manager):
        if w.maybe(0.25):
            with w.block(f"on(lambda: {w.rng.choice(STORES[:4])})"):
                forward(w)
        else:
            forward(w)
        if inside:
            backward(w)
    if not inside:
        backward(w)


def one_after_the_other(w: Writer) -> None:
    """Forward inside of a budget, backward inside of the next, or outside."""
    with w.block(f"on(lambda: {w.rng.choice(BUDGETS)})"):
        forward(w)
        if w.maybe(0.5):
            w.do("squeeze()")
    if w.maybe(0.3):
        w.do(w.rng.choice(CHANGES))
    with w.block(f"on(lambda: {w.rng.choice(BUDGETS)})"):
        backward(w)
        if w.maybe(0.5):
            forward(w)
            backward(w)


IN_PART = (
    "h[..., ::2].mul_(2)",
    "h[:, 1:].tanh_()",
    "h[1:].copy_(h[:-1].clone())",
    "h[:, 0] = h[:, 1] * 2",
    "h.t().mul_(h.t().clone())",
    "h.t()[1:].add_(h.t()[:-1])",
)


def forward(w: Writer) -> None:
    """A loss, by way of something that can be changed, and of which a part was changed perhaps."""
    w.do("h = m[0](x)")
    if w.maybe(0.25):
        w.do(f"h = {w.one('h * 1', 'h.sigmoid()', 'h.sigmoid() * 1')}")
        w.do(w.rng.choice(IN_PART))
    w.do(
        f"y = {w.one('m[1:](h)', 'm(h)', 'm[1:](h).sin() * h', 'torch.utils.checkpoint.checkpoint(m, h, use_reentrant=False)')}"
    )
    w.do("loss = y.square().mean()")


def backward(w: Writer) -> None:
    """Changes between forward and backward, backwards, a step."""
    for _ in range(w.rng.choice((0, 0, 1, 1, 2))):
        w.do(w.rng.choice(CHANGES))
    if w.maybe(0.25):
        w.let("torch.autograd.grad(loss, list(m.parameters()), allow_unused=True, create_graph=True)", "g")
        w.do(f"sum(p.square().sum() for p in g{w.count} if p is not None).backward()")
    else:
        w.do(f"loss.backward({w.one('', 'retain_graph=True')})")
        if w.maybe(0.3):
            w.do(w.rng.choice(CHANGES))
            w.do("loss.backward()")
    w.do("log.append(loss.item())")
    w.do("o.step()")
    if w.maybe(0.6):
        w.do("o.zero_grad()")


KIND = Kind("memory", draw, sides, ("grad_fn", "version", "storage", "offset", "output_nr", "is_leaf", "stride"))
