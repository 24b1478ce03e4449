"""Custom functions under vmap: the vmap staticmethod, the rule made from their methods, and misuse of both."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.func import grad, vmap

Function = torch.autograd.Function


def randn(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64)


def same(a: Any, b: Any) -> None:
    assert a.shape == b.shape and torch.allclose(a.detach(), b.detach(), rtol=1e-10, atol=1e-10)


class Made(Function):
    """x * y * k, with a rule made from its methods."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any, k: float) -> Any:
        return x * y * k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ctx.k, g * x * ctx.k if ctx.needs_input_grad[1] else None, None


class Own(Function):
    """The same with a vmap of its own, which works through NumPy."""

    seen: Any = None

    @staticmethod
    def forward(x: Any, y: Any, k: float) -> Any:
        return torch.from_numpy(x.numpy() * y.numpy() * k)

    setup_context = staticmethod(Made.setup_context)
    backward = staticmethod(Made.backward)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any, k: float) -> Any:
        Own.seen = info, in_dims
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
        y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
        return Own.apply(x, y, k), 0


@pytest.mark.parametrize("cls", [Made, Own])
def test_values_and_gradients(cls: Any) -> None:
    x, y = randn(3, 2), randn(2)
    same(vmap(cls.apply, (0, None, None))(x, y, 2.0), x * y * 2)
    same(vmap(cls.apply, (1, None, None))(x, randn(3) * 0 + 1, 2.0), x.T * 2)
    a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
    vmap(cls.apply, (0, None, None))(a, b, 2.0).pow(2).sum().backward()
    same(a.grad, 8 * x * y * y)
    same(b.grad, (8 * x * x * y).sum(0))


@pytest.mark.parametrize("cls", [Made, Own])
def test_gradients_of_each_sample(cls: Any) -> None:
    x, y = randn(3, 2), randn(2)

    def f(p: Any, q: Any) -> Any:
        return cls.apply(p, q, 1.0).pow(2).sum()

    gx, gy = vmap(grad(f, (0, 1)), (0, None))(x, y)
    same(gx, 2 * x * y * y)
    same(gy, 2 * x * x * y)
    same(vmap(grad(lambda p, q: grad(f)(p, q).sum()), (0, None))(x, y), (2 * y * y).expand(3, 2))


@pytest.mark.parametrize("cls", [Made, Own])
def test_nested(cls: Any) -> None:
    x, y = randn(4, 3, 2), randn(2)
    z = x.clone().requires_grad_()
    got = vmap(vmap(cls.apply, (0, None, None)), (0, None, None))(z, y, 3.0)
    same(got, x * y * 3)
    got.sum().backward()
    same(z.grad, (y * 3).expand(4, 3, 2))


def test_what_the_staticmethod_is_told() -> None:
    vmap(lambda a: Own.apply(a, a, 1.0), 1, randomness="same")(randn(3, 2))
    info, in_dims = Own.seen
    assert (info.batch_size, info.randomness, in_dims) == (2, "same", (1, 1, None))


class Sorted(Function):
    """Two outputs, one of them integers; it saves an output."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        order = x.argsort(0)
        return x.gather(0, order), order

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        (order,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter(0, order, g)


def test_several_outputs() -> None:
    x, weights = randn(3, 5).requires_grad_(), randn(5)
    values, order = vmap(Sorted.apply)(x)
    same(values, x.sort(1).values)
    assert torch.equal(order, x.argsort(1)) and not order.requires_grad
    (values * weights).sum().backward()
    want = torch.zeros(3, 5, dtype=torch.float64).scatter(1, order, weights.expand(3, 5))
    same(x.grad, want)
    same(vmap(grad(lambda a: (Sorted.apply(a)[0] * weights).sum()))(x.detach()), want)


def variant(**members: Any) -> Any:
    """A function on one tensor with some members replaced."""
    base = {"forward": staticmethod(lambda x: x * 2), "setup_context": staticmethod(lambda ctx, inputs, output: None),
            "backward": staticmethod(lambda ctx, g: g * 2)}  # fmt: skip
    return type("Variant", (Function,), {**base, **members})


def rule(fn: Any) -> dict[str, Any]:
    return {"vmap": staticmethod(fn)}


MISUSE: list[tuple[str, type[Exception], dict[str, Any]]] = [
    ("must override the setup_context staticmethod", RuntimeError,
     {"forward": staticmethod(lambda ctx, x: x), "setup_context": Function.setup_context}),
    ("does not have vmap support", RuntimeError, {}),
    ("both generate_vmap_rule=True and an overridden vmap", RuntimeError,
     {"generate_vmap_rule": True, **rule(lambda info, dims, x: (x, 0))}),
    ("two returns, an output and out_dims .* Got a <class", RuntimeError, rule(lambda info, dims, x: x * 2)),
    ("Got 3 returns instead", RuntimeError, rule(lambda info, dims, x: (x, 0, 1))),
    ("incompatible \\(output, out_dims\\) tuple", RuntimeError, rule(lambda info, dims, x: (x * 2, (0, 0)))),
    ("must be an int or None", TypeError, rule(lambda info, dims, x: (x * 2, "a"))),
    ("must run over the 3 samples", RuntimeError, rule(lambda info, dims, x: (x[:2], 0))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "kind", "members"), MISUSE, ids=[words for words, _, _ in MISUSE])
def test_misuse(words: str, kind: type[Exception], members: dict[str, Any]) -> None:
    with pytest.raises(kind, match=words):
        vmap(variant(**members).apply)(randn(3, 2))


def test_an_output_that_all_samples_share() -> None:
    shared = variant(**rule(lambda info, dims, x: ((x * 2, torch.ones(2)), (0, None))))
    doubled, ones = vmap(shared.apply)(randn(3, 2))
    assert doubled.shape == ones.shape == (3, 2)
