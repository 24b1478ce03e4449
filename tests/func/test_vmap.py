"""vmap: arguments and results, misuse, randomness, changes in place, and how it goes with derivatives and with itself."""

from __future__ import annotations

import collections
import math
import warnings
from typing import Any

import pytest

import rushlight as torch
from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS, Array
from rushlight.dispatch.registry import op
from rushlight.func import grad, hessian, jacrev, jvp, vmap
from rushlight.transforms.batching import fallbacks
from rushlight.transforms.batching.loop import _WARNED

F = torch.nn.functional


def same(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    assert a.shape == b.shape and a.dtype == b.dtype
    assert torch.allclose(a.detach(), b.detach(), rtol=tolerance, atol=tolerance)


def randn(*shape: int, **options: Any) -> Any:
    return torch.randn(*shape, dtype=torch.float64, **options)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


# Arguments and results -----------------------------------------------------------------------------


def test_in_and_out_dims() -> None:
    x, y = randn(3, 4), randn(4, 3)
    same(vmap(torch.dot, (0, 1))(x, y), (x * y.T).sum(1))
    same(vmap(lambda a, b: a * b, (0, None))(x, y[:, 0]), x * y[:, 0])
    same(vmap(lambda a: a * 2, 1, 1)(x), x * 2)
    same(vmap(lambda a: a * 2, -1, 0)(x), x.T * 2)
    same(vmap(lambda a: a[:, None] * a, 0, -1)(x), torch.einsum("bi,bj->ijb", x, x))


def test_trees() -> None:
    x, y = randn(3, 2), randn(3, 2)
    Pair = collections.namedtuple("Pair", "a b")

    def f(tree: Any, pair: Any, k: int) -> Any:
        return {"s": tree["x"] + pair.a, "l": [pair.b * k, (tree["y"][0],)]}

    got = vmap(f, ({"x": 0, "y": None}, 0, None))({"x": x, "y": [y[0]]}, Pair(y, x), 3)
    same(got["s"], x + y)
    same(got["l"][0], x * 3)
    same(got["l"][1][0], y[0].expand(3, 2))
    assert vmap(lambda a: (a, "word"), 0, (0, None))(x)[1] == "word"
    one, two = vmap(lambda a: (a, a * 2), out_dims=(0, 1))(x)
    same(one, x)
    same(two, x.T * 2)
    assert isinstance(vmap(lambda a: Pair(a, a))(x), Pair)


def test_keywords_are_shared_and_torch_has_it() -> None:
    x = randn(3, 2)
    same(
        torch.vmap(lambda a, *, k: a * k)(x, k=torch.tensor([1.0, 2.0], dtype=torch.float64)),
        x * torch.tensor([1.0, 2.0]),
    )
    assert torch.func.vmap is torch.vmap


def test_no_samples() -> None:
    assert vmap(lambda a: a.sin() + 1)(randn(0, 3)).shape == (0, 3)


def test_captured_tensors_and_none_among_arguments() -> None:
    x, w = randn(3, 2), randn(2, 2)
    same(vmap(lambda a, n: a @ w if n is None else a, (0, None))(x, None), x @ w)


MISUSE: list[tuple[type[Exception], str, Any]] = [
    (ValueError, "must only return Tensors, got type <class 'int'>", lambda x: vmap(lambda a: 3)(x)),
    (ValueError, "got type <class 'NoneType'>", lambda x: vmap(lambda a: None)(x)),
    (ValueError, "out_dims is not compatible with the structure of `outputs`", lambda x: vmap(lambda a: (a, a), out_dims=(0,))(x)),
    (ValueError, "`out_dims` must be an int, None or a python collection", lambda x: vmap(lambda a: a, out_dims="x")(x)),
    (ValueError, "can not return a BatchedTensor when out_dim is None", lambda x: vmap(lambda a: a, out_dims=None)(x)),
    (IndexError, r"expected to be in range of \[-2, 1\], but got 5", lambda x: vmap(lambda a: a, out_dims=5)(x)),
    (ValueError, "-2 <= in_dim < 2", lambda x: vmap(lambda a: a, 5)(x)),
    (ValueError, "expected `in_dims` to be int or a", lambda x: vmap(lambda a: a, None)(x)),
    (ValueError, "expected `in_dims` to be int or a", lambda x: vmap(lambda a: a, [0])(x)),
    (ValueError, "in_dims is not compatible with the structure of `inputs`", lambda x: vmap(lambda a: a, (0, 0))(x)),
    (ValueError, "in_dim must be either an integer dimension or None", lambda x: vmap(lambda a: a["k"], ({"k": "s"},))({"k": x})),
    (ValueError, "cannot vmap over non-Tensor arguments", lambda x: vmap(lambda a, b: a)(x, 3)),
    (ValueError, r"same size in the mapped dimension, got sizes \[3, 4\]", lambda x: vmap(lambda a, b: a)(x, randn(4))),
    (ValueError, "at least one in_dim must be an int", lambda x: vmap(lambda a: a, (None,))(x)),
    (ValueError, "got no inputs", lambda x: vmap(lambda: 3)()),
    (ValueError, "dimensionality 0", lambda x: vmap(lambda a: a)(x.sum())),
    (RuntimeError, "Only allowed values for randomness", lambda x: vmap(lambda a: a, randomness="any")(x)),
    (ValueError, r"chunk_size should be None or greater than 0. \(got 0\)", lambda x: vmap(lambda a: a, chunk_size=0)(x)),
    (RuntimeError, r"calling .item\(\)", lambda x: vmap(lambda a: a.sum().item())(x)),
    (RuntimeError, r"attempting to use a Tensor in control flow \(if.* inside a function", lambda x: vmap(lambda a: a if a.sum() > 0 else -a)(x)),
    (RuntimeError, r"calling .tolist\(\)", lambda x: vmap(lambda a: a.tolist())(x)),
    (RuntimeError, "vmap: It looks like", lambda x: vmap(lambda a: a.numpy())(x)),
    (RuntimeError, "vmap: We do not support batching operators that can output dynamic shape", lambda x: vmap(lambda a: a.nonzero())(x)),
    (RuntimeError, "dynamic shape", lambda x: vmap(lambda a: a[a > 0])(x)),
    (RuntimeError, "dynamic shape", lambda x: vmap(lambda a: a.masked_select(a > 0))(x)),
    (RuntimeError, "randomness error mode", lambda x: vmap(lambda a: a + torch.rand(2))(x)),
    (RuntimeError, "not being vmapped over", lambda x: vmap(lambda a: torch.zeros(2, dtype=torch.float64).add_(a))(x)),
    (RuntimeError, "backward", lambda x: vmap(lambda a: a.requires_grad_().sum().backward())(x)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "call"), MISUSE, ids=[words for _, words, _ in MISUSE])
def test_misuse(kind: type[Exception], words: str, call: Any) -> None:
    with pytest.raises(kind, match=words):
        call(randn(3, 2))
    assert torch.vmap(torch.sin)(randn(3)).shape == (3,)  # nothing is left behind


def test_a_batched_tensor_prints_and_is_useless_outside() -> None:
    kept: list[Any] = []
    vmap(lambda a: kept.append(a) or a)(randn(3, 2))
    assert "BatchedTensor(lvl=1, bdim=0" in repr(kept[0])
    with pytest.raises(RuntimeError, match="vmap"):
        kept[0] + 1


# Chunks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, "auto"])
def test_chunks(chunk: Any) -> None:
    x, y = randn(2, 7), randn(3)
    sizes: list[int] = []

    def f(a: Any, b: Any) -> Any:
        sizes.append(a._array.level.size)
        return a.sum() * b, a

    got = vmap(f, (1, None), (0, -1), chunk_size=chunk)(x, y)
    same(got[0], x.sum(0)[:, None] * y)
    same(got[1], x)
    assert sizes == [7] if chunk == "auto" else max(sizes) <= chunk and sum(sizes) == 7


@pytest.mark.parametrize("out_dim", [0, 1, -1, 2])
def test_what_is_the_same_for_all_samples_has_them_where_out_dims_says(out_dim: int) -> None:
    x = randn(3, 4)
    got = vmap(lambda a, b: a, (None, 0), out_dim)(x, randn(2))
    same(got, x.unsqueeze(out_dim).expand([2 if d == out_dim % 3 else -1 for d in range(3)]))
    zero = vmap(torch.func.grad(lambda a, b: a.sum(), argnums=1), (0, None), out_dim)(randn(2), x)
    same(zero, torch.zeros_like(got))


def test_equal_elements_share_the_gradient_of_their_maximum_inside_as_outside() -> None:
    x = torch.ones(2, 4)
    same(vmap(torch.func.grad(lambda a: a.max()))(x), x / 4)


def test_no_sample_grows_in_place() -> None:
    with pytest.raises(RuntimeError, match=r"output with shape \[\] doesn't match the broadcast shape \[1\]"):
        vmap(lambda a, b: a.clone().mul_(b), (0, None))(randn(1), randn(1))


@pytest.mark.parametrize("chunk", [1, 2, 5, 9, "auto"])
def test_results_of_chunks_share_no_memory_with_arguments_however_many_there_are(chunk: Any) -> None:
    x = randn(5, 2)
    before = x.clone()
    whole, part, inside = vmap(lambda a: (a, a[:1], vmap(lambda b: b, chunk_size=chunk)(a)), chunk_size=chunk)(x)
    for t in (whole, part, inside):
        t.zero_()
    same(x, before)


def test_chunks_of_no_samples() -> None:
    assert vmap(lambda a: a * 2, chunk_size=2)(torch.zeros(0, 3)).shape == (0, 3)


def test_automatic_chunks_keep_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from rushlight.func import vmap as _  # noqa: F401

    module = sys.modules["rushlight.func.vmap"]
    monkeypatch.setattr(module, "BUDGET", 4 * 8 * 10 * module.FACTOR)
    sizes: list[int] = []
    vmap(lambda a: sizes.append(a._array.level.size) or a, chunk_size="auto")(randn(9, 10))
    assert sizes == [4, 4, 1]


# With derivatives and itself -----------------------------------------------------------------------


def test_nested() -> None:
    x, y = randn(3, 4, 2), randn(4)
    same(vmap(vmap(lambda a, b: a * b, (0, 0)), (0, None))(x, y), x * y[:, None])
    same(vmap(vmap(torch.outer, (None, 0)), (0, None))(x[:, 0], x[0]), torch.einsum("bi,cj->bcij", x[:, 0], x[0]))
    got = vmap(lambda a: vmap(lambda b: a.sum() + b)(a), 1)(x)
    same(got, x.transpose(0, 1) + x.sum((0, 2))[:, None, None])


def test_gradients_through() -> None:
    x, w = randn(3, 4, requires_grad=True), randn(4, 2, requires_grad=True)
    vmap(lambda a: torch.tanh(a @ w))(x).sum().backward()
    gx, gw = torch.autograd.grad(torch.tanh(x @ w).sum(), (x, w))
    same(x.grad, gx)
    same(w.grad, gw)


def test_gradients_of_each_sample() -> None:
    x, w = randn(5, 4), randn(4, 2)

    def loss(w: Any, a: Any) -> Any:
        return torch.tanh(a @ w).square().sum()

    want = torch.stack([grad(loss)(w, a) for a in x])
    same(vmap(grad(loss), (None, 0))(w, x), want)

    def by_autograd(a: Any) -> Any:
        leaf = w.detach().clone().requires_grad_()
        return torch.autograd.grad(loss(leaf, a), leaf)[0]

    same(vmap(by_autograd)(x), want)
    same(vmap(jacrev(torch.sin))(x), torch.stack([torch.diag(a.cos()) for a in x]))


def test_a_leaf_made_inside_is_as_before_afterwards() -> None:
    w = randn(2)

    def f(a: Any) -> Any:
        w.requires_grad_()
        return torch.autograd.grad((w * a).sum(), w)[0]

    x = randn(3, 2)
    same(vmap(f)(x), x)
    assert w.requires_grad and w.is_leaf and "Batched" not in repr(w)
    (w * 2).sum().backward()
    same(w.grad, torch.full((2,), 2.0, dtype=torch.float64))


def test_second_order() -> None:
    x = randn(3, 4)

    def f(a: Any) -> Any:
        return (a.sin() * a.prod()).sum()

    want = torch.stack([hessian(f)(a) for a in x])
    same(vmap(hessian(f))(x), want)
    y = x.clone().requires_grad_()
    vmap(grad(f))(y).sum().backward()
    same(y.grad, want.sum(1))


def test_forward_mode() -> None:
    x, t = randn(3, 4), randn(3, 4)
    same(vmap(lambda a, b: jvp(torch.sin, (a,), (b,))[1])(x, t), x.cos() * t)
    same(jvp(vmap(torch.sin), (x,), (t,))[1], x.cos() * t)
    same(vmap(lambda b: jvp(lambda a: F.softmax(a, 0), (x[0],), (b,))[1])(t),
         torch.stack([jvp(lambda a: F.softmax(a, 0), (x[0],), (b,))[1] for b in t]))  # fmt: skip


def test_batches_of_vectors() -> None:
    x = randn(4, requires_grad=True)
    y, vectors = x**3, torch.eye(4, dtype=torch.float64)
    (rows,) = torch.autograd.grad(y, x, vectors, is_grads_batched=True, retain_graph=True)
    same(rows, torch.diag(3 * x.detach() ** 2))
    (rows,) = torch.autograd.grad(y, x, vectors, is_grads_batched=True, create_graph=True)
    (second,) = torch.autograd.grad(rows.sum(), x)
    same(second, 6 * x.detach())
    u = randn(2, requires_grad=True)
    none, some = torch.autograd.grad(x * 1, (u, x), vectors, is_grads_batched=True, allow_unused=True)
    assert none is None and some.shape == (4, 4)
    with pytest.raises(
        RuntimeError, match="we interpret the first dimension of each grad_output as the batch dimension"
    ):
        torch.autograd.grad(x * 2, x, randn(3, 5), is_grads_batched=True)


def test_detach_stops_gradients() -> None:
    x = randn(3, 2, requires_grad=True)
    vmap(lambda a: a * a.detach())(x).sum().backward()
    same(x.grad, x.detach())
    assert not vmap(lambda a: a.detach() * 2)(x).requires_grad
    with torch.no_grad():
        assert not vmap(lambda a: a * 2)(x).requires_grad


# In place ------------------------------------------------------------------------------------------


def test_in_place() -> None:
    x = randn(3, 4)

    def f(a: Any) -> Any:
        a = a.clone()
        a[0] = 5
        a[1:3].mul_(a[3])
        a += a.sum()
        buffer = a.new_zeros(2)
        buffer[0] = a.max()
        buffer.index_add_(0, torch.tensor([1]), a[:1])
        return a, buffer

    want = [f(a) for a in x]
    a, buffer = vmap(f)(x)
    same(a, torch.stack([w[0] for w in want]))
    same(buffer, torch.stack([w[1] for w in want]))


def test_in_place_changes_the_argument() -> None:
    x = randn(3, 4)
    want = x * 2
    vmap(lambda a: a.mul_(2), 1)(x)
    same(x, want)


def test_gradients_of_in_place_changes() -> None:
    def f(a: Any) -> Any:
        b = a * 1
        b[1:] *= a[0]
        b.exp_()
        return b.sum()

    x = randn(3, 4)
    want = torch.stack([grad(f)(a) for a in x])
    same(vmap(grad(f))(x), want)
    y = x.clone().requires_grad_()
    vmap(f)(y).sum().backward()
    same(y.grad, want)


def test_what_is_no_view_of_a_sample_in_memory_is_refused() -> None:
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        vmap(lambda a: a.view(-1).add_(1), 1)(randn(2, 3, 2))


# Randomness ----------------------------------------------------------------------------------------

DRAWS = {
    "rand": lambda a: torch.rand(3), "randn_like": lambda a: torch.randn_like(a), "randint": lambda a: torch.randint(0, 99, (6,)),
    "randperm": lambda a: torch.randperm(9), "normal": lambda a: torch.normal(0.0, 1.0, (3,)), "dropout": lambda a: F.dropout(a * 0 + 1),
    "normal of tensors": lambda a: torch.normal(torch.zeros(3), 1.0), "bernoulli": lambda a: torch.bernoulli(torch.full((30,), 0.5)),
    "poisson": lambda a: torch.poisson(torch.full((9,), 5.0)), "multinomial": lambda a: torch.multinomial(torch.ones(30), 9),
    "gumbel": lambda a: F.gumbel_softmax(torch.zeros(5)), "in place": lambda a: a.clone().uniform_(), "alpha": lambda a: F.alpha_dropout(torch.ones(30), 0.5, True),
    "channels": lambda a: F.dropout2d(torch.ones(1, 30, 2, 2)), "rrelu": lambda a: F.rrelu(-torch.ones(9), training=True),
    "attention": lambda a: F.scaled_dot_product_attention(torch.ones(2, 4, 3), torch.ones(2, 4, 3), torch.ones(2, 4, 3), dropout_p=0.5),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name: str) -> None:
    x = torch.randn(3, 30)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(DRAWS[name])(x)
    alike = vmap(DRAWS[name], randomness="same")(x)
    assert torch.equal(alike[0], alike[1]) and torch.equal(alike[0], alike[2])
    apart = vmap(DRAWS[name], randomness="different")(x)
    assert not torch.equal(apart[0], apart[1]) and not torch.equal(apart[0], apart[2])


def test_draws_by_what_differs_cannot_be_the_same() -> None:
    p = torch.rand(3, 9)
    for draw in (torch.bernoulli, torch.poisson, lambda a: torch.normal(a, 1.0), lambda a: torch.multinomial(a, 2)):
        with pytest.raises(RuntimeError, match="does not currently support same randomness"):
            vmap(draw, randomness="same")(p)
    assert set(vmap(torch.bernoulli, randomness="different")(p).unique().tolist()) <= {0.0, 1.0}
    with pytest.raises(RuntimeError, match="unbatched tensor"):
        vmap(lambda a: torch.ones(2).normal_() + a.sum(), randomness="different")(p)


def test_gradients_of_dropout_fit_what_was_dropped() -> None:
    x = randn(3, 50)
    for mode in ("same", "different"):
        value, g = vmap(lambda a: (lambda y: (y, torch.autograd.grad(y.sum(), a)[0]))(F.dropout(a.requires_grad_())),
                        randomness=mode)(x.clone())  # fmt: skip
        same(value, g * x)


# Sample after sample -------------------------------------------------------------------------------


def test_few_operators_run_sample_after_sample() -> None:
    found = fallbacks()
    assert len(found) <= len(OPS) // 10, found


def test_a_formula_that_fails_is_not_run_on_each_sample() -> None:
    @op(grads={"input": lambda g: g.no_such_method()}, batch=families.targeted)
    def faulty(input: Array) -> Array:
        return input * 2

    del OPS["faulty"]

    with warnings.catch_warnings(), pytest.raises(AttributeError, match="no_such_method"):
        warnings.simplefilter("error")  # that of the loop
        vmap(grad(lambda x: faulty(x).sum()))(randn(3, 4))


@pytest.mark.parametrize(
    "function",
    [lambda x: torch.cdist(x, x.flip(0) + 1), lambda x: torch.cdist(x, x.flip(0) + 1, p=3.0),
     lambda x: torch.cdist(x, x.flip(0) + 1, p=math.inf), lambda x: torch.linalg.vector_norm(x, math.inf, 0),
     lambda x: torch.zeros(3, 2, dtype=x.dtype).put(torch.tensor([1, 4]), x[0]),
     lambda x: x.put(torch.tensor([1, 4]), x[0]) ** 2],
)  # fmt: skip
def test_gradients_run_on_all_samples_at_once(function: Any) -> None:
    def gradient(x: Any) -> Any:
        return grad(lambda x: (function(x) ** 2).sum())(x)

    x = randn(4, 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = vmap(gradient)(x)
    same(got, torch.stack([gradient(a) for a in x]))


def test_samples_within_samples_are_told_apart_where_they_are_summed_over() -> None:
    a, b = randn(3, 4), randn(3, 4)

    def second(a: Any, b: Any) -> Any:
        return jacrev(jacrev(lambda a: ((a.outer(b) @ b.outer(a)) @ a).sum()))(a)

    same(vmap(second)(a, b), torch.stack([second(x, y) for x, y in zip(a, b, strict=True)]))


def test_the_loop_warns_once_and_can_be_differentiated_twice() -> None:
    _WARNED.discard("pdist")
    x = randn(3, 4, 2)
    with pytest.warns(UserWarning, match="no batching rule for pdist"):
        got = vmap(F.pdist)(x)
    same(got, torch.stack([F.pdist(a) for a in x]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(F.pdist)(x)


@pytest.mark.filterwarnings("ignore:vmap")
def test_formulas_that_look_at_values() -> None:
    def f(a: Any) -> Any:
        return grad(lambda b: grad(lambda c: c.cumprod(0).norm(3) * c.prod())(b).sum())(a)

    x = randn(3, 4)
    want = torch.stack([f(a) for a in x])
    same(vmap(f)(x), want)
    same(vmap(grad(lambda a: f(a).sum()))(x), torch.stack([grad(lambda a: f(a).sum())(a) for a in x]))


# Modules -------------------------------------------------------------------------------------------


def test_gradients_of_a_network_for_each_sample() -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.GroupNorm(2, 4), torch.nn.ReLU(),
                              torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, 3)).double()  # fmt: skip
    images, labels = randn(5, 2, 4, 4), torch.randint(0, 3, (5,))
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params: Any, image: Any, label: Any) -> Any:
        return F.cross_entropy(torch.func.functional_call(net, params, (image[None],)), label[None])

    got = vmap(grad(loss), (None, 0, 0))(params, images, labels)
    for i in range(5):
        for name, g in grad(loss)(params, images[i], labels[i]).items():
            same(got[name][i], g)


def test_an_ensemble() -> None:
    nets = [
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Tanh()).double() for _ in range(3)
    ]
    params, buffers = torch.func.stack_module_state(nets)
    x = randn(5, 3)
    got = vmap(lambda p, b: torch.func.functional_call(nets[0], (p, b), (x,)))(params, buffers)
    same(got, torch.stack([net(x) for net in nets]))


def test_running_statistics_must_be_batched_too() -> None:
    norm = torch.nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="were not batched"):
        vmap(norm)(torch.randn(3, 4, 2))
    x, mean, var = torch.randn(3, 4, 2), torch.zeros(3, 2), torch.ones(3, 2)
    vmap(lambda a, m, v: F.batch_norm(a, m, v, training=True))(x, mean, var)
    same(mean, x.mean(1) * 0.1, 1e-6)


def ldl_solve(a: Any, b: Any) -> Any:
    return torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a @ a.mT), b)


def lu_solve(a: Any, b: Any) -> Any:
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)


@pytest.mark.parametrize("solve", [torch.linalg.solve, lu_solve, ldl_solve, lambda a, b: torch.cholesky_solve(b, a)])
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_leading_dimensions_of_samples_broadcast(solve: Any, dims: Any) -> None:
    a, b = randn(3, 4, 4), randn(3, 3, 4, 2)  # as many samples as there are right sides
    given = [x if dim == 0 else x[0] for x, dim in zip((a, b), dims, strict=True)]
    want = [solve(*(x[i] if dim == 0 else x for x, dim in zip(given, dims, strict=True))) for i in range(3)]
    same(vmap(solve, dims)(*given), torch.stack(want), 1e-8)


@pytest.mark.parametrize(
    ("name", "function"),
    [("nonzero", torch.nonzero), ("nonzero", torch.where), ("nonzero", torch.argwhere), ("unique", torch.unique),
     ("unique_consecutive", torch.unique_consecutive), ("masked_select", lambda x: x.masked_select(x > 0)),
     ("nonzero", lambda x: x.nonzero(as_tuple=True))],
)  # fmt: skip
def test_results_whose_shape_depends_on_values_are_refused_by_name(name, function):
    with pytest.raises(
        RuntimeError, match=f"do not support batching operators that can output dynamic shape.* over {name}"
    ):
        torch.func.vmap(function)(torch.ones(2, 3))
