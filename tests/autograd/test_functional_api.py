"""autograd.functional leaves its arguments alone, and says where a transformation around it would see constants."""

import pytest

import rushlight as torch
from rushlight import func
from rushlight.autograd import functional as F


def product(a, b, c):
    return (a**2 * b + b**3 * c).sum()


def given():
    return tuple(torch.tensor(x, dtype=torch.float64) for x in ([1.0, 2.0], [3.0, 4.0], [0.5, 1.0]))


CALLS = {
    "vjp": lambda f, x: F.vjp(f, x),
    "jvp": lambda f, x: F.jvp(f, x, x),
    "vhp": lambda f, x: F.vhp(f, x, x),
    "hvp": lambda f, x: F.hvp(f, x, x),
    "jacobian": lambda f, x: F.jacobian(f, x),
    "jacobian of a batch": lambda f, x: F.jacobian(f, x, vectorize=True),
    "jacobian in forward mode": lambda f, x: F.jacobian(f, x, vectorize=True, strategy="forward-mode"),
    "jacobian with its graph": lambda f, x: F.jacobian(f, x, create_graph=True),
    "hessian": lambda f, x: F.hessian(f, x),
    "hessian of a batch": lambda f, x: F.hessian(f, x, vectorize=True),
    "hessian in forward mode": lambda f, x: F.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
    "hessian with its graph": lambda f, x: F.hessian(f, x, create_graph=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_are_as_before(name):
    inputs = given()
    CALLS[name](product, inputs)
    assert not any(x.requires_grad or x.grad is not None or x._version for x in inputs)


@pytest.mark.parametrize("wanted", [False, True])
def test_a_hessian_in_forward_mode_has_every_block(wanted):
    inputs = tuple(x.requires_grad_(wanted) for x in given())
    expected = F.hessian(product, inputs)
    found = F.hessian(product, inputs, vectorize=True, outer_jacobian_strategy="forward-mode")
    assert isinstance(found, tuple) and all(isinstance(row, tuple) for row in found)
    for row, others in zip(found, expected, strict=True):
        for block, other in zip(row, others, strict=True):
            torch.testing.assert_close(block, other)
            assert not block.requires_grad


WITHIN = {
    "grad": lambda f: func.grad(f),
    "vjp": lambda f: lambda x: func.vjp(f, x),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,)),
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "grad of vmap": lambda f: func.grad(lambda x: func.vmap(f)(x[None]).sum()),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(x[None]),
}
PLAIN = {
    "vjp": lambda f, x, **kw: F.vjp(f, x, **kw)[1],
    "jvp": lambda f, x, **kw: F.jvp(f, x, torch.ones(2), **kw)[1],
    "vhp": lambda f, x, **kw: F.vhp(f, x, torch.ones(2), **kw)[1],
    "hvp": lambda f, x, **kw: F.hvp(f, x, torch.ones(2), **kw)[1],
    "jacobian": lambda f, x, **kw: F.jacobian(f, x, **kw),
    "hessian": lambda f, x, **kw: F.hessian(f, x, **kw),
}


def cube(x):
    return (x**3).sum()


@pytest.mark.parametrize("outer", WITHIN)
@pytest.mark.parametrize("name", PLAIN)
def test_inside_a_transformation_a_result_without_graph_is_refused(outer, name):
    def f(x):
        return PLAIN[name](cube, x).sum()

    with pytest.raises(
        RuntimeError, match=rf"torch\.autograd\.functional\.{name} inside of a function being transformed"
    ):
        WITHIN[outer](f)(torch.tensor([1.0, 2.0]))


def test_so_is_a_hessian_in_forward_mode():
    def f(x):
        return F.hessian(cube, x, vectorize=True, outer_jacobian_strategy="forward-mode").sum()

    with pytest.raises(RuntimeError, match=r"functional\.hessian inside of a function being transformed"):
        func.grad(f)(torch.ones(2))


@pytest.mark.parametrize("name", PLAIN)
def test_with_create_graph_it_is_differentiated(name):
    def f(x):
        return PLAIN[name](cube, x, create_graph=True).sum()

    expected = torch.tensor([6.0, 6.0]) if name in ("vhp", "hvp", "hessian") else torch.tensor([6.0, 12.0])
    x = torch.tensor([1.0, 2.0])
    torch.testing.assert_close(func.grad(f)(x), expected)
    torch.testing.assert_close(func.jacfwd(f)(x).detach(), expected)


@pytest.mark.parametrize("name", PLAIN)
def test_under_vmap_alone_each_sample_has_its_own(name):
    xs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = torch.stack([PLAIN[name](cube, x) for x in xs])
    torch.testing.assert_close(func.vmap(lambda x: PLAIN[name](cube, x))(xs), expected)


def test_the_function_of_jacfwd_runs_once_for_all_arguments():
    calls = []

    def f(a, b):
        calls.append(1)
        a.mul_(2)
        return a * a * b

    a, b = torch.ones(2), torch.ones(2)
    by_a, by_b = func.jacfwd(f, argnums=(0, 1))(a, b)
    assert len(calls) == 1
    torch.testing.assert_close(by_a, torch.eye(2) * 8)
    torch.testing.assert_close(by_b, torch.eye(2) * 4)


def test_jacfwd_draws_the_same_numbers_for_all_arguments():
    def f(a, b):
        noise = torch.randn(2)
        return a * noise + b * noise

    by_a, by_b = func.jacfwd(f, argnums=(0, 1), randomness="same")(torch.ones(2), torch.ones(2))
    assert torch.equal(by_a, by_b)
