"""The names of the autograd reference, each shown doing what it is for, by hand-made numbers."""

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad, functional

POINT = [1.0, 2.0]


def cube(x: torch.Tensor) -> torch.Tensor:
    return (x**3).sum()


def swap(x: torch.Tensor) -> torch.Tensor:
    """Its Jacobian at (1, 2) is [[2, 1], [0, 4]]."""
    return torch.stack([x[0] * x[1], x[1] ** 2])


def test_jacobian() -> None:
    x = torch.tensor(POINT)
    expected = [[2.0, 1.0], [0.0, 4.0]]
    assert functional.jacobian(swap, x).tolist() == expected
    for strategy in ("reverse-mode", "forward-mode"):
        assert functional.jacobian(swap, x, vectorize=True, strategy=strategy).tolist() == expected
    a, b = functional.jacobian(lambda a, b: a * b, (x, torch.tensor([3.0, 4.0])))
    assert a.tolist() == [[3, 0], [0, 4]] and b.tolist() == [[1, 0], [0, 2]]
    assert functional.jacobian(lambda x: (x**2).sum(), x, create_graph=True).tolist() == [2, 4]
    with pytest.raises(RuntimeError):
        functional.jacobian(lambda x: torch.ones(2), x, strict=True)


def test_hessian() -> None:
    x = torch.tensor(POINT)
    assert functional.hessian(cube, x).tolist() == [[6, 0], [0, 12]]
    assert functional.hessian(cube, x, vectorize=True, outer_jacobian_strategy="forward-mode").tolist() == [
        [6, 0],
        [0, 12],
    ]
    (aa, ab), (ba, bb) = functional.hessian(lambda a, b: a * a * b, (torch.tensor(2.0), torch.tensor(5.0)))
    assert (aa.item(), ab.item(), ba.item(), bb.item()) == (10, 4, 4, 0)


def test_products_with_the_jacobian() -> None:
    x = torch.tensor(POINT)
    value, row = functional.vjp(swap, x, torch.tensor([1.0, 10.0]))
    assert value.tolist() == [2, 4] and row.tolist() == [2, 41]
    value, column = functional.jvp(swap, x, torch.tensor([1.0, 10.0]))
    assert value.tolist() == [2, 4] and column.tolist() == [12, 40]


def test_products_with_the_hessian() -> None:
    x, v = torch.tensor(POINT), torch.tensor([1.0, 10.0])
    for product in (functional.vhp, functional.hvp):
        value, found = product(cube, x, v)
        assert value.item() == 9 and found.tolist() == [6, 120]


def test_dual_level() -> None:
    x = torch.tensor(POINT)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.tensor([1.0, 10.0]))
        assert forward_ad.unpack_dual(swap(dual)).tangent.tolist() == [12, 40]
    with pytest.raises(RuntimeError, match="dual_level"):
        forward_ad.make_dual(x, x)


def test_make_dual_and_unpack_dual() -> None:
    x, t = torch.tensor(POINT), torch.tensor([1.0, 10.0])
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, t))
        assert primal.tolist() == POINT and tangent.tolist() == t.tolist()
        assert forward_ad.unpack_dual(x).tangent is None


def test_gradcheck() -> None:
    x = torch.tensor(POINT, dtype=torch.float64, requires_grad=True)
    z = torch.tensor([1 + 2j, 0.5j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(swap, (x,))
    assert torch.autograd.gradcheck(lambda z: (z * z).abs(), (z,))
    assert torch.autograd.gradcheck(swap, (x,), fast_mode=True, check_forward_ad=True, check_batched_grad=True)
    wrong = wrong_function(lambda g, x: g)
    assert not torch.autograd.gradcheck(wrong, (x,), raise_exception=False)
    with pytest.raises(RuntimeError, match=r"(?s)Jacobian mismatch.*numerical.*analytical"):
        torch.autograd.gradcheck(wrong, (x,))


def test_gradgradcheck() -> None:
    x = torch.tensor(POINT, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(swap, (x,))
    right_at_first_order = wrong_function(lambda g, x: g * 2 * x.detach())
    assert torch.autograd.gradcheck(right_at_first_order, (x,))
    assert not torch.autograd.gradgradcheck(right_at_first_order, (x,), raise_exception=False)


def wrong_function(formula):
    """The square, with a backward of its own."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return formula(g, *ctx.saved_tensors)

    return Square.apply


class Scale(torch.autograd.Function):
    """Twice its argument, with all of its methods."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return Scale.apply(x), in_dims[0]


def test_methods_of_a_function() -> None:
    x = torch.tensor(POINT, requires_grad=True)
    (g,) = torch.autograd.grad(Scale.apply(x).sum(), x)
    assert g.tolist() == [2, 2]
    with forward_ad.dual_level():
        out = Scale.apply(forward_ad.make_dual(x.detach(), torch.tensor([1.0, 10.0])))
        assert forward_ad.unpack_dual(out).tangent.tolist() == [2, 20]
    assert torch.vmap(Scale.apply)(x.detach()).tolist() == [2, 4]
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Scale()


@pytest.mark.parametrize("name", ["half", "float", "double", "bfloat16", "cfloat", "cdouble"])
def test_dtypes_that_have_gradients(name: str) -> None:
    x = torch.ones(2, dtype=getattr(torch, name), requires_grad=True)
    (x * x).sum().backward(torch.ones((), dtype=x.dtype))
    assert x.grad.dtype == x.dtype and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.rand, torch.randn])
def test_factories_make_leaves(make) -> None:
    x = make((2, 3), requires_grad=True)
    assert x.is_leaf and x.requires_grad and torch.allclose(x, x.clone())
    assert torch.tensor([1.0], requires_grad=True).is_leaf
