"""torch.func and forward mode: grad, vjp, jvp, jacrev, jacfwd, hessian and vmap around each other."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

from ..program import Writer
from .base import Kind, with_torch
from .pieces import literal

Piece = Callable[[Writer, int], str]  # given the rank of the inputs, an expression
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
    "x.var() if x.numel() > 1 else x * 2",  # derivatives of NaN are 0 or NaN, by how PyTorch batches them
    "x.amax()",
    "x.sort(dim=-1, stable=True)[0] if x.dim() else x",
    "torch.zeros_like(x).copy_(x * 2)",
    "x.view_as(x).add_(0) if False else x * x.sum()",
    "x.logsumexp(-1) if x.dim() else x",
    "x.roll(1) if x.dim() else x",  # of 0-dimensional samples PyTorch rolls the batch
    "torch.outer(x.reshape(-1), y.reshape(-1))",
    "torch.no_grad()(lambda: x * 2)() * x",
    "x[..., y.sum().long() % x.shape[-1]] if x.dim() else x",  # a number that each sample has its own of
    "x[y.reshape(-1)[0].long() % x.shape[0]] * 2 if x.dim() else x",
    "torch.zeros_like(x).index_put_((y.reshape(-1)[0].long() % x.shape[0],), x[0] * y[0]) if x.dim() else x",
)
# What has no batching rule runs sample after sample inside vmap, as do gradients that look at values.
SAMPLE_BY_SAMPLE = (
    "x.logcumsumexp(-1) * y",
    "torch.renorm(x, 2, 0, 2.0) * y if x.dim() > 1 else x * y",
    "(x * y).quantile(0.3)",
    "(x * y).nanquantile(0.6, -1) if x.dim() else x * y",
    "torch.linalg.matrix_exp(0.01 * x @ y.mT) if x.dim() > 1 else x * y",
    "x.cov() if x.dim() == 2 else x * y",
    "torch.pdist(x) if x.dim() == 2 else x * y",
    "(x * y).take(torch.tensor([0, -1, 0]))",
    "x.put(torch.tensor([0, -1]), y.reshape(-1)[:1].expand(2) * 2, accumulate=True)",
    "torch.nn.functional.embedding_bag(torch.tensor([[0, 0]]), x * y, mode='mean') if x.dim() == 2 else x * y",
    "torch.nn.functional.multilabel_margin_loss(x * y * y, torch.zeros(x.shape, dtype=torch.long)) if x.dim() == 1 else x * y",
    "torch.nn.functional.grid_sample((x * y)[None, None], x.sin()[None, :, None, :2], align_corners=True)"
    " if x.dim() == 2 and x.shape[1] > 1 else x * y",
    "torch.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid())",
    "torch.special.log_ndtr(x - 2) * y.clamp(1, 3)",
    "torch.linalg.pinv(x * y) if x.dim() > 1 else x * y",
    "torch.prod(x * y, -1) if x.dim() else x * y",
    "x.cumprod(-1) * y if x.dim() else x * y",
)
SHAPES = ((2, 3), (3,), (2, 2), (2, 2, 2), (1,))
# PyTorch reads sizes beyond a result's own where it is to put samples elsewhere than in front, and the result is no sample's.
OF_SAMPLES = """\
def of_samples(f):
    def g(x, y):
        zero = (x.sum() + y.sum()).detach() * 0
        def add(r):
            return tuple(map(add, r)) if isinstance(r, tuple) else r + zero
        return add(f(x, y))
    return g"""


def draw(w: Writer) -> None:
    """Two inputs of one shape, a function, and a few transformations of it."""
    shape = w.rng.choice(SHAPES)
    grads = w.maybe(0.3)
    for name in ("x", "y"):
        numbers = itertools.count(1.0 if name == "x" else 0.5)
        text = f"torch.tensor({literal(shape, numbers)}, dtype=torch.float64)"
        w.do(f"{name} = {text}{'.requires_grad_()' if grads else ''}")
    body = w.rng.choice(SAMPLE_BY_SAMPLE if w.maybe(0.25) else BODIES)
    inner = w.rng.choice(BODIES).replace("x", "z")
    w.do(f"def f(x, y):\n    return {body}" if w.maybe(0.6) else f"def f(x, y):\n    z = {body}\n    return {inner}")
    w.do("def s(x, y):\n    return f(x, y).sum()")
    for _ in range(w.rng.randint(1, 3)):
        forward(w) if w.maybe(0.3) else transform(w, len(shape))
    if grads:
        chained(w)


def transform(w: Writer, rank: int) -> None:
    """One transformation, applied; perhaps where no gradients are recorded, which must change no number."""
    expression = call(w, rank)
    if w.maybe(0.8) or "linearize" in expression or "functional" in expression:
        w.let(expression, "t")
    else:
        w.do(f"with {w.one('torch.no_grad()', 'torch.inference_mode()')}:\n    {w.fresh('t')} = {expression}")


def call(w: Writer, rank: int) -> str:
    """A transformed function, called with x and y."""
    table = SIMPLE if w.maybe(0.5) else NESTED
    return w.rng.choice(list(table.values()))(w, rank)


def argnums(w: Writer) -> str:
    """Which arguments are differentiated by."""
    return w.one("", ", argnums=1", ", argnums=(0, 1)")


func = "torch.func."
both_ways = ("torch.func.jacrev", "torch.func.jacfwd")
SIMPLE: dict[str, Piece] = {
    "grad": lambda w, rank: f"{func}grad(s{argnums(w)})(x, y)",
    "value": lambda w, rank: f"{func}grad_and_value(s{argnums(w)})(x, y)",
    "jacrev": lambda w, rank: f"{func}jacrev(f{argnums(w)}{w.one('', ', chunk_size=1')})(x, y)",
    "jacfwd": lambda w, rank: f"{func}jacfwd(f{argnums(w)})(x, y)",
    "hessian": lambda w, rank: f"{func}hessian({w.one('s', 's', 'f')}{argnums(w)})(x, y)",
    "jvp": lambda w, rank: f"{func}jvp(f, (x, y), (y, x))",
    "vjp": lambda w, rank: f"(lambda out, pull: (out, pull(torch.ones_like(out))))(*{func}vjp(f, x, y))",
    "vmap": lambda w, rank: vmap(w, "f", rank),
    "linearize": lambda w, rank: f"{func}linearize(f, x, y)[1](y, x)",
    "functional": lambda w, rank: (
        f"torch.autograd.functional.{w.one('jacobian', 'hessian')}({w.one('f', 's')}, (x, y)"
        f"{w.one('', ', create_graph=True', ', vectorize=True')})"
    ),
    "vector": lambda w, rank: (
        f"torch.autograd.functional.{w.one('vjp', 'jvp', 'vhp', 'hvp')}(s, (x, y){w.one('', ', v=(y, x)')})"
    ),
}
NESTED: dict[str, Piece] = {
    "vmap grad": lambda w, rank: vmap(w, f"{func}grad(s{argnums(w)})", rank),
    "vmap jacobian": lambda w, rank: vmap(w, f"{w.one(*both_ways)}(f)", rank),
    "grad vmap": lambda w, rank: f"{func}grad(lambda x, y: {func}vmap(f)(x, y).sum())(x, y)",
    "vmap vmap": lambda w, rank: vmap(w, f"{func}vmap(f)", rank),
    "grad grad": lambda w, rank: f"{func}grad(lambda x, y: ({func}grad(s)(x, y) * y).sum())(x, y)",
    "jvp grad": lambda w, rank: f"{func}jvp({func}grad(s), (x, y), (y, x))",
    "jvp vmap": lambda w, rank: f"{func}jvp({func}vmap(f), (x, y), (y, x))",
    "vmap jvp": lambda w, rank: vmap(w, f"lambda x, y: {func}jvp(f, (x, y), (y, x))", rank),
    "grad jvp": lambda w, rank: f"{func}grad(lambda x, y: {func}jvp(s, (x, y), (y, x))[1])(x, y)",
    "jacobian of jacobian": lambda w, rank: f"{w.one(*both_ways)}({w.one(*both_ways)}(f))(x, y)",
    "vmap hessian": lambda w, rank: vmap(w, f"{func}hessian({w.one('s', 'f')})", rank),
    "vmap jacobian of jacobian": lambda w, rank: vmap(w, f"{w.one(*both_ways)}({w.one(*both_ways)}(s))", rank),
    "jacobian of grad": lambda w, rank: f"{w.one(*both_ways)}({func}grad(s{argnums(w)}))(x, y)",
    "vmap jvp grad": lambda w, rank: vmap(w, f"lambda x, y: {func}jvp({func}grad(s), (x, y), (y, x))", rank),
    "vmap grad jvp": lambda w, rank: vmap(
        w, f"{func}grad(lambda x, y: {func}jvp(s, (x, y), (y, x))[1]{argnums(w)})", rank
    ),
    "vmap vmap grad": lambda w, rank: vmap(w, f"{func}vmap({func}grad(s))", rank),
    "vmap vjp": lambda w, rank: (
        f"{func}vmap(lambda g: {func}vjp(s, x, y)[1](g))(torch.tensor([1., 2.], dtype=torch.float64))"
    ),
}


def vmap(w: Writer, f: str, rank: int) -> str:
    """A call of the function on samples, with in_dims, out_dims and chunk_size."""
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
    place = w.one("", "", ", out_dims=0", ", out_dims=-1", ", out_dims=1")
    if place.endswith("1"):
        f = f"of_samples({f})"
        if "of_samples" not in w.names:
            w.do(OF_SAMPLES)
    return f"torch.func.vmap({f}{text}{place}{w.one('', '', ', chunk_size=1')})(x, y)"


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
        "    d.zero_()\n    d.add_(2)\n",  # at 0, what several functions give has no one derivative
    )
    tangent = w.one("y * 1", "y.detach().clone()", "torch.ones_like(x)", "x * 2")
    start = w.one("x", "x.detach()", "x.clone()", "x.detach().clone()", "(x * 1)")
    name = w.fresh("t")
    w.do(
        f"with {ad}.dual_level():\n    d = {ad}.make_dual({start}, {tangent})\n{change}"
        f"    {name} = tuple({ad}.unpack_dual(f(d, {w.one('y', 'd', 'x')})))\n    {name}d = tuple({ad}.unpack_dual(d))"
    )


def chained(w: Writer) -> None:
    """Ordinary backward through what a transformation gave, and through the inputs themselves."""
    tops = [name for name in w.names if name[0] == "t" and name[1:].isdigit()]
    if not tops:
        return
    name = tops[-1]
    path = name
    value = operator.getitem(w.names, name)
    while isinstance(value, tuple) and value:
        value, path = value[0], f"{path}[0]"
    if getattr(value, "requires_grad", False):
        w.do(f"(({path} * {path}).sum() + x.sum() + y.sum()).backward()")


RESULTS_ONLY = ("is_inference", "grad_fn", "version", "storage", "offset", "output_nr", "stride")
KIND = Kind("transforms", draw, with_torch, RESULTS_ONLY)
