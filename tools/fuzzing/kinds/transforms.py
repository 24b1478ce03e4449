"""torch.func and forward mode: grad, vjp, jvp, jacrev, jacfwd, hessian and vmap around each other."""

from __future__ import annotations

import itertools

from ..program import Writer
from .base import Kind, with_torch
from .pieces import literal

BODIES = (
    "x.sin()",
    "x * y",
    "x @ x.mT if x.dim() > 1 else x * 2",
    "x.exp() / (1 + y * y)",
    "x.sum(-1)",
    "x.cumsum(-1) * y",
    "torch.where(x > 2, x * x, y)",
    "x[..., :1] * y",
    "x.clone().mul_(y)",
    "x.softmax(-1)",
    "(x * x).mean()",
    "x.reshape(-1)",
    "torch.stack([x, x * y])",
    "x.unsqueeze(0).expand(2, *x.shape)",
    "x.transpose(0, -1) if x.dim() else x",
    "x.pow(3)",
    "x.norm()",
    "x.prod()",
    "x.detach() * x",
    "torch.cat([x.reshape(-1), y.reshape(-1)])",
    "x.abs().sqrt()",
    "(x.T if x.dim() == 2 else x) * 3",
    "x.index_select(0, torch.tensor([0])) if x.dim() else x",
    "x.clone().zero_() + y * x",
    "torch.nn.functional.relu(x - 2) * y",
    "x.flip(0) if x.dim() else x",
    "x.var()",
    "x.max()",
    "x.sort(-1)[0] if x.dim() else x",
    "torch.zeros_like(x).copy_(x * 2)",
    "x.view_as(x).add_(0) if False else x * x.sum()",
    "x.logsumexp(-1) if x.dim() else x",
    "x.roll(1) if x.dim() else x",  # of 0-dimensional samples PyTorch rolls the batch
    "torch.outer(x.reshape(-1), y.reshape(-1))",
    "torch.no_grad()(lambda: x * 2)() * x",
)
SHAPES = ((2, 3), (3,), (2, 2), (2, 2, 2), (1,))


def draw(w: Writer) -> None:
    """Two inputs of one shape, a function, and a few transformations of it."""
    shape = w.rng.choice(SHAPES)
    grads = w.maybe(0.3)
    for name in ("x", "y"):
        numbers = itertools.count(1.0 if name == "x" else 0.5)
        text = f"torch.tensor({literal(shape, numbers)}, dtype=torch.float64)"
        w.do(f"{name} = {text}{'.requires_grad_()' if grads else ''}")
    body = w.rng.choice(BODIES)
    inner = w.rng.choice(BODIES).replace("x", "z")
    w.do(f"def f(x, y):\n    return {body}" if w.maybe(0.6) else f"def f(x, y):\n    z = {body}\n    return {inner}")
    w.do("def s(x, y):\n    return f(x, y).sum()")
    for _ in range(w.rng.randint(1, 3)):
        forward(w) if w.maybe(0.3) else transform(w, len(shape))
    if grads:
        chained(w)


def transform(w: Writer, rank: int) -> None:
    """One transformation, applied."""
    w.let(call(w, rank), "t")


def call(w: Writer, rank: int) -> str:
    """A transformed function, called with x and y."""
    argnums = w.one("", ", argnums=1", ", argnums=(0, 1)")
    simple = {
        "grad": f"torch.func.grad(s{argnums})(x, y)",
        "value": f"torch.func.grad_and_value(s{argnums})(x, y)",
        "jacrev": f"torch.func.jacrev(f{argnums}{w.one('', ', chunk_size=1')})(x, y)",
        "jacfwd": f"torch.func.jacfwd(f{argnums})(x, y)",
        "hessian": f"torch.func.hessian({w.one('s', 's', 'f')}{argnums})(x, y)",
        "jvp": "torch.func.jvp(f, (x, y), (y, x))",
        "vjp": "(lambda out, pull: (out, pull(torch.ones_like(out))))(*torch.func.vjp(f, x, y))",
        "vmap": f"torch.func.vmap(f{dims(w, rank)})(x, y)",
        "linearize": "torch.func.linearize(f, x, y)[1](y, x)",
        "functional": f"torch.autograd.functional.{w.one('jacobian', 'hessian')}({w.one('f', 's')}, (x, y){w.one('', ', create_graph=True', ', vectorize=True')})",
        "vector": f"torch.autograd.functional.{w.one('vjp', 'jvp', 'vhp', 'hvp')}(s, (x, y){w.one('', ', v=(y, x)')})",
    }
    nested = {
        "vmap grad": f"torch.func.vmap(torch.func.grad(s{argnums}){dims(w, rank)})(x, y)",
        "vmap jacrev": f"torch.func.vmap(torch.func.{w.one('jacrev', 'jacfwd')}(f){dims(w, rank)})(x, y)",
        "grad vmap": "torch.func.grad(lambda x, y: torch.func.vmap(f)(x, y).sum())(x, y)",
        "vmap vmap": f"torch.func.vmap(torch.func.vmap(f){dims(w, rank)})(x, y)",
        "grad grad": "torch.func.grad(lambda x, y: (torch.func.grad(s)(x, y) * y).sum())(x, y)",
        "jvp grad": "torch.func.jvp(torch.func.grad(s), (x, y), (y, x))",
        "jvp vmap": "torch.func.jvp(torch.func.vmap(f), (x, y), (y, x))",
        "vmap jvp": f"torch.func.vmap(lambda x, y: torch.func.jvp(f, (x, y), (y, x)){dims(w, rank, pair=True)})(x, y)",
        "grad jvp": "torch.func.grad(lambda x, y: torch.func.jvp(s, (x, y), (y, x))[1])(x, y)",
        "jacrev jacfwd": f"torch.func.{w.one('jacrev', 'jacfwd')}(torch.func.{w.one('jacrev', 'jacfwd')}(f))(x, y)",
        "vmap vjp": "torch.func.vmap(lambda g: torch.func.vjp(s, x, y)[1](g))(torch.tensor([1., 2.], dtype=torch.float64))",
    }
    table = simple if w.maybe(0.5) else nested
    return w.rng.choice(list(table.values()))


def dims(w: Writer, rank: int, pair: bool = False) -> str:
    """in_dims, out_dims and chunk_size of a vmap."""
    low = range(-rank, rank)
    one, other = w.rng.choice(low), w.rng.choice(low)
    text = w.one(
        "",
        "",
        f", in_dims={one}",
        f", in_dims=({one}, {one})",
        f", in_dims=({one}, None)",
        f", in_dims=(None, {other})",
    )
    text += w.one("", "", "" if pair else f", out_dims={w.one('0', '-1', '1')}", ", chunk_size=1")
    return text


def forward(w: Writer) -> None:
    """Forward mode by levels, with changes in place of duals and of views."""
    ad = "torch.autograd.forward_ad"
    change = w.one(
        "",
        "",
        "    d.mul_(2)\n",
        "    d[0] = y[0]\n",
        "    d.view(-1)[0] *= 3\n",
        "    d.data.add_(1)\n",
        "    d.detach_()\n",
        "    d = d.detach()\n",
        "    d.copy_(y)\n",
        "    e = d[0]\n    d.mul_(y)\n    d = d + e\n",
        "    e = y.clone()\n    e[0] = d[0]\n    d = e\n",
        "    with torch.no_grad():\n        d = d * 2\n",
        "    d.zero_()\n",
    )
    tangent = w.one("y * 1", "y.detach().clone()", "torch.ones_like(x)", "x * 2")
    start = w.one("x", "x.detach()", "x.clone()", "x.detach().clone()", "(x * 1)")
    name = w.fresh("t")
    w.do(
        f"with {ad}.dual_level():\n    d = {ad}.make_dual({start}, {tangent})\n{change}"
        f"    {name} = tuple({ad}.unpack_dual(f(d, {w.one('y', 'd', 'x')})))\n    {name}d = tuple({ad}.unpack_dual(d))"
    )


def chained(w: Writer) -> None:
    """Ordinary backward through what a transformation gave."""
    import operator

    tops = [name for name in w.names if name[0] == "t" and name[1:].isdigit()]
    if not tops:
        return
    name = tops[-1]
    path = name
    value = operator.getitem(w.names, name)
    while isinstance(value, tuple) and value:
        value, path = value[0], f"{path}[0]"
    if getattr(value, "requires_grad", False):
        w.do(f"({path} * {path}).sum().backward()")


RESULTS_ONLY = ("grad_fn", "version", "storage", "offset", "output_nr", "stride")
KIND = Kind("transforms", draw, with_torch, RESULTS_ONLY)
