"""Functions that write into tensors: made inside, given beside the ones differentiated at, or views of either."""

import pytest

import rushlight as torch
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def copied(x):
    y = torch.zeros(2)
    y.copy_(x * 2)
    return (y * x).sum()


def added(x):
    y = torch.ones(2)
    y.add_(x * x)
    return (y * x).sum()


def by_index(x):
    y = torch.zeros(2)
    y[0] = x[0] * 2
    y[1] = x[1] * x[0]
    return (y * x).sum()


def through_an_older_view(x):
    y = torch.zeros(2)
    row = y[0]
    y[0] = x[0] * 2
    row.mul_(x[1])
    return (y * x).sum() + row * x[0]


def read_by_an_older_view(x):
    y = torch.zeros(2)
    row = y[0]
    y[0] = x[0] * x[1]
    return row * x[0]


def on_a_diagonal(x):
    y = torch.zeros(2, 2)
    y.diagonal().copy_(x * x)
    y.t()[0].add_(x)
    return (y @ y).sum()


WRITING = [copied, added, by_index, through_an_older_view, read_by_an_older_view, on_a_diagonal]


def point():
    return torch.tensor([2.0, 3.0], dtype=torch.float64)


def differences(f, x, eps=1e-5):
    """The derivative of `f` along each element of x."""
    steps = torch.eye(len(x), dtype=x.dtype) * eps
    return torch.stack([(f(x + s) - f(x - s)) / (2 * eps) for s in steps], -1)


@pytest.fixture(autouse=True)
def _wide():
    former = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(former)


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("f", WRITING)
def test_hessians_are_right_however_they_are_composed(f):
    x = point()
    expected = differences(grad(f), x)
    torch.testing.assert_close(grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-6)
    for compose in (hessian, lambda f: jacrev(jacrev(f)), lambda f: jacfwd(jacfwd(f)), lambda f: jacfwd(grad(f)),
                    lambda f: jacrev(jacfwd(f))):  # fmt: skip
        torch.testing.assert_close(compose(f)(x), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", WRITING)
def test_gradients_at_a_point_that_all_samples_share(f):
    scales = torch.tensor([1.0, 2.0, 3.0])
    found = vmap(lambda s: grad(lambda x: f(x) * s)(point()))(scales)
    torch.testing.assert_close(found, scales[:, None] * grad(f)(point()))


def test_a_captured_tensor_made_outside_keeps_its_graph():
    z = torch.ones(2, requires_grad=True)

    def f(x):
        y = z * 2
        y.mul_(x)
        return (y * x).sum()

    hessian(f)(point()).sum().backward()
    assert z.grad.tolist() == [4.0, 4.0]


IN_PLACE = {  # and the same without changes in place
    "mul": (lambda x, y: x.clone().mul_(y), lambda x, y: x * y),
    "mul by itself": (lambda x, y: (x * 1).mul_(x), lambda x, y: x * x),
    "div": (lambda x, y: x.clone().div_(y), lambda x, y: x / y),
    "pow": (lambda x, y: x.clone().pow_(y), lambda x, y: x**y),
    "addcmul": (lambda x, y: x.clone().addcmul_(x, y), lambda x, y: x + x * y),
    "lerp": (lambda x, y: x.clone().lerp_(y, x), lambda x, y: torch.lerp(x, y, x)),
    "one row": (lambda x, y: torch.stack([x, y])[0].mul_(y), lambda x, y: x * y),
    "softmax after": (lambda x, y: (x * y).mul_(y).softmax(0), lambda x, y: (x * y * y).softmax(0)),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_derivatives_of_tangents_do_not_see_what_is_written_later(name, argnums):
    x, y = point(), torch.tensor([0.5, 1.5])

    def of_tangents(f):
        def inner(x, y):
            return (jvp(f, (x, y), (y, x))[1] * y).sum()

        def outer(x, y):
            return jvp(inner, (x, y), (x, y))[1]

        return grad(inner, argnums)(x, y), grad(outer, argnums)(x, y)

    changed, plain = map(of_tangents, IN_PLACE[name])
    torch.testing.assert_close(changed, plain)


def into(x, y):
    y.copy_(x * 2)
    return y * x


TRANSFORMS = {
    "grad": lambda x, y: grad(lambda x, y: into(x, y).sum())(x, y),
    "jacrev": lambda x, y: jacrev(into)(x, y),
    "jacfwd": lambda x, y: jacfwd(into)(x, y),
    "hessian": lambda x, y: hessian(lambda x, y: into(x, y).sum())(x, y),
    "grad of grad": lambda x, y: grad(lambda x, y: grad(lambda x, y: into(x, y).sum())(x, y).sum())(x, y),
    "in a dictionary": lambda x, y: jacrev(lambda x, d: into(x, d["y"]))(x, {"y": y}),
    "by name": lambda x, y: jacrev(into)(x, y=y),
}
EXPECTED = {"grad": [8.0, 12.0], "hessian": [[4.0, 0.0], [0.0, 4.0]], "grad of grad": [4.0, 4.0]}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_argument_beside_may_be_written_to(name):
    y = torch.zeros(2)
    found = TRANSFORMS[name](point(), y)
    assert found.tolist() == EXPECTED.get(name, [[8.0, 0.0], [0.0, 12.0]])
    assert y.tolist() == [4.0, 6.0]
    assert y.is_leaf and not y.requires_grad


def test_what_is_captured_may_not():
    y = torch.zeros(2)
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        jacrev(lambda x: into(x, y))(point())


EMPTY = {
    "vjp": lambda f: vjp(f, point()),
    "jvp": lambda f: jvp(f, (point(),), (point(),)),
    "jacrev": lambda f: jacrev(f)(point()),
    "jacfwd": lambda f: jacfwd(f)(point()),
    "hessian": lambda f: hessian(f)(point()),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("output", [(), [], {}, None])
def test_functions_without_results_are_refused(name, output):
    with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
        EMPTY[name](lambda x: output)


@pytest.mark.parametrize("f", [lambda a: a.prod(), lambda a: a.sum(), lambda a: a.max(), lambda a: a + 1])
def test_the_tangent_that_is_given_back_is_not_the_one_given(f):
    t = torch.tensor([5.0], requires_grad=True)
    with torch.no_grad():
        found = jvp(f, (torch.tensor([2.0]),), (t,))[1]
        found.zero_()
    assert t.item() == 5.0 and not found.requires_grad


@pytest.mark.parametrize("write", [lambda b, x: b[:2].sigmoid_(), lambda b, x: b[0].mul_(x[1]),
                                   lambda b, x: b[1:].copy_(x[:2].exp())])  # fmt: skip
@pytest.mark.parametrize("derivative", [torch.func.hessian, torch.func.jacfwd,
                                        lambda f: torch.func.jacfwd(torch.func.jacfwd(f))])  # fmt: skip
def test_a_view_of_what_a_sample_made_is_changed_in_forward_mode_for_each_sample(write, derivative):
    def f(x):
        b = x * 1
        write(b, x)
        return (b * b).sum()

    samples = torch.tensor([[1.0, 4.0, 2.0], [0.5, 3.0, 1.0]], dtype=torch.float64)
    found = torch.func.vmap(derivative(f))(samples)
    torch.testing.assert_close(found, torch.stack([derivative(f)(x) for x in samples]))


def test_new_zeros_of_what_is_the_same_for_all_samples_of_one_vmap_are_those_of_the_vmap_around():
    def f(x):
        b = x.new_zeros(3)
        b[1:] = x[:2].exp()
        return (b * b).sum()

    samples = torch.tensor([[1.0, 4.0, 2.0], [0.5, 3.0, 1.0]], dtype=torch.float64)
    for derivative in (hessian, lambda f: jacfwd(grad(f)), lambda f: jacrev(jacrev(f))):
        torch.testing.assert_close(vmap(derivative(f))(samples), torch.stack([derivative(f)(x) for x in samples]))


@pytest.mark.parametrize("derivative", [grad, lambda f: jacrev(jacrev(f)), hessian])
def test_a_gradient_that_samples_share_passes_a_view_that_was_changed_for_each(derivative):
    def f(x):
        b = x.clone()
        b[::2].sqrt_()
        return b.sum()  # whose gradient is the same for all samples

    samples = torch.tensor([[1.0, 4.0, 2.0], [0.5, 3.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(vmap(derivative(f))(samples), torch.stack([derivative(f)(x) for x in samples]))


def squared_where_it_lies(x):
    v = x * 1
    v.t().mul_(v.t())
    return v.sum()


def test_an_operand_on_the_memory_that_changes_is_refused_in_samples_too() -> None:
    x = torch.arange(1.0, 19).view(2, 3, 3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(squared_where_it_lies)(x[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(grad(squared_where_it_lies))(x)
