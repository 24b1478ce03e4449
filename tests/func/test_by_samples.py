"""What runs sample after sample inside vmap keeps the tangents and samples of the transformations around and inside."""

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad
from rushlight.dispatch.by_sample import per_sample
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

pytestmark = pytest.mark.filterwarnings("ignore:vmap")
F = torch.nn.functional
OPERATORS = {
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "renorm": lambda x: torch.renorm(x, 2, 0, 1.0),
    "quantile": lambda x: x.quantile(0.3, 0),
    "matrix_exp": lambda x: torch.linalg.matrix_exp(0.3 * x @ x.mT),
    "grid_sample": lambda x: F.grid_sample(x[None, None], x[None, :, None, :2].tanh(), align_corners=True),
}


def point():
    return torch.tensor([[1.18, 1.97, 0.74], [0.1, 1.06, -1.63]], dtype=torch.float64)


def scalar(name):
    return lambda x: (OPERATORS[name](x) ** 2).sum()


def same(a, b):
    assert a.shape == b.shape
    assert torch.allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("second", [hessian, lambda f: jacfwd(grad(f)), lambda f: jacfwd(jacfwd(f)),
                                    lambda f: jacrev(jacrev(f)), lambda f: jacrev(jacfwd(f))])  # fmt: skip
def test_second_derivatives_by_transformations_are_those_of_two_backwards(name, second):
    f, x = scalar(name), point()
    want = torch.autograd.functional.hessian(f, x)
    same(second(f)(x), want)
    points = torch.stack([x, 1.1 * x, x.flip(1)])
    each = torch.stack([torch.autograd.functional.hessian(f, p) for p in points])
    same(vmap(second(f))(points), each)


@pytest.mark.parametrize("name", OPERATORS)
def test_tangents_that_differ_from_sample_to_sample_stay_apart(name):
    f, x = scalar(name), point()
    directions = torch.stack([x.flip(0), torch.ones_like(x), -x])
    found = vmap(lambda v: jvp(grad(f), (x,), (v,))[1])(directions)
    same(found, torch.stack([jvp(grad(f), (x,), (v,))[1] for v in directions]))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_pullback_of_each_sample_has_tangents(name):
    f, x = OPERATORS[name], point()
    out = f(x)
    vectors = torch.stack([torch.ones_like(out), out.detach()])

    def by_samples(x):
        return vmap(lambda w: vjp(f, x)[1](w)[0])(vectors)

    def one_by_one(x):
        return torch.stack([vjp(f, x)[1](w)[0] for w in vectors])

    for found, want in zip(jvp(by_samples, (x,), (x.flip(0),)), jvp(one_by_one, (x,), (x.flip(0),)), strict=True):
        same(found, want)


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_of_tangents_of_samples(name):
    """The node of what ran sample after sample is of the tangents too: they were refused, and lost in silence before."""
    f, x = scalar(name), point()
    points, directions = torch.stack([x, 1.1 * x]), torch.stack([x.flip(0), torch.ones_like(x)])

    def slope(x, v):
        return jvp(f, (x,), (v,))[1]

    found = vmap(grad(slope, argnums=(0, 1)))(points, directions)
    for each, number in zip(found, (0, 1), strict=True):
        same(each, torch.stack([grad(slope, number)(p, v) for p, v in zip(points, directions, strict=True)]))


@pytest.mark.parametrize("name", ["quantile", "logcumsumexp"])
def test_third_derivatives_mix_forward_and_reverse_mode(name):
    """A tangent of a tangent, and the gradients of that, have nodes as well."""
    f, x = scalar(name), point()
    points, v = torch.stack([x, 1.1 * x]), x.flip(0)

    def along(f, differentiate):
        return lambda x: jvp(f, (x,), (v,))[1] if differentiate is jvp else (grad(f)(x) * v).sum()

    def third(*how):
        found = f
        for differentiate in how:
            found = along(found, differentiate)
        return grad(found)

    want = torch.stack([third(grad, grad)(p) for p in points])
    for how in ((jvp, jvp), (jvp, grad), (grad, jvp)):
        same(vmap(third(*how))(points), want)


def test_gradients_of_values_alone_compute_no_tangents():
    """Where no gradient comes to a tangent, the function runs without."""
    seen = []

    @per_sample
    def looks(x):
        seen.append(forward_ad.unpack_dual(x).tangent is not None)
        return x * x if x.sum() > 0 else -x

    def value(x):
        return jvp(looks, (x,), (torch.ones_like(x),))[0].sum()

    points = torch.tensor([[1.0, 2.0], [-1.0, -2.0]])
    assert vmap(grad(value))(points).tolist() == [[2.0, 4.0], [-1.0, -1.0]]
    assert seen[-2:] == [False, False]
    assert True in seen


@pytest.mark.parametrize("name", ["quantile", "logcumsumexp", "matrix_exp"])
def test_derivatives_of_samples_are_the_same_in_inference_mode(name):
    """What ran sample after sample ran again in inference mode, which recorded nothing: gradients of 0 in silence."""
    f, x = scalar(name), point()
    points = torch.stack([x, 1.1 * x])

    def found():
        pull = vjp(f, x)[1]
        slope = vmap(grad(lambda v: jvp(f, (v,), (v,))[1]))
        return vmap(lambda g: pull(g)[0])(torch.tensor([1.0, 2.0], dtype=torch.float64)), slope(points)

    want = found()
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            for a, b in zip(found(), want, strict=True):
                same(a, b)


def test_derivatives_of_samples_require_grad_where_something_outside_does():
    f, points = scalar("quantile"), torch.stack([point(), 1.1 * point()])
    for second in (lambda f: jacrev(jacrev(f)), lambda f: jacrev(jacfwd(f))):
        assert not vmap(second(f))(points).requires_grad
    x = points.clone().requires_grad_()
    (found,) = torch.autograd.grad(vmap(grad(f))(x).sin().sum(), x)
    (want,) = torch.autograd.grad(sum(grad(f)(p).sin().sum() for p in x), x)
    same(found, want)


def test_values_of_large_samples_are_refused_as_those_of_small_ones() -> None:
    with pytest.raises(RuntimeError, match=r"calling .numpy\(\) on a Tensor"):
        torch.vmap(lambda x: x.numpy())(torch.zeros(2, 1 << 16))
    images, grid = torch.rand(2, 1, 1, 256, 256), torch.rand(2, 1, 200, 200, 2)
    sample = lambda x, at: F.grid_sample(x, at, padding_mode="border", align_corners=True)
    assert torch.allclose(
        torch.vmap(sample)(images, grid), torch.stack([sample(*each) for each in zip(images, grid, strict=True)])
    )


@pytest.mark.parametrize("word", ["amax", "mean", "prod"])
def test_slices_that_are_reduced_are_differentiated_for_each_sample(word: str) -> None:
    x, index, source = torch.rand(2, 4, 9, 3), torch.randint(0, 9, (2, 20)), torch.rand(2, 4, 20, 3)
    slopes = torch.func.grad(lambda s, x, i: x.index_reduce(1, i, s, word, include_self=False).sum())
    along = lambda s, x, i: torch.func.jvp(lambda s: x.index_reduce(1, i, s, word), (s,), (s,))[1]
    for f, dims in ((slopes, (0, 0, 0)), (along, (0, None, 0))):
        whole = torch.vmap(f, dims)(source, x if dims[1] == 0 else x[0], index)
        each = [f(source[b], x[b] if dims[1] == 0 else x[0], index[b]) for b in range(2)]
        assert torch.allclose(whole, torch.stack(each))


def test_a_change_in_place_of_samples_is_differentiated_outside() -> None:
    x = torch.rand(3, 2, 2, dtype=torch.float64, requires_grad=True)
    changed = torch.vmap(lambda x: (x * 1).renorm_(2, 0, 0.3))(x)
    assert torch.autograd.gradcheck(torch.vmap(lambda x: (x * 1).renorm_(2, 0, 0.3)), x)
    assert torch.equal(changed, torch.stack([row.renorm(2, 0, 0.3) for row in x]))


def test_numbers_without_dimensions_are_reduced_in_place_for_each_sample() -> None:
    x, index, source = torch.rand(3), torch.zeros(3, 1, dtype=torch.int64), torch.rand(3)
    slope = torch.func.grad(lambda x, i, s: (x * 1).index_reduce_(0, i, s, "prod"), argnums=(0, 2))
    by_x, by_source = torch.vmap(slope)(x, index, source)
    assert torch.allclose(by_x, source) and torch.allclose(by_source, x)


def test_tolerances_of_samples_count_singular_values_for_each() -> None:
    matrix, least = torch.rand(4, 4, dtype=torch.float64), torch.tensor([1e-9, 0.5, 9.0], dtype=torch.float64)
    found = torch.vmap(lambda t: torch.linalg.matrix_rank(matrix, atol=t))(least)
    assert found.tolist() == [int(torch.linalg.matrix_rank(matrix, atol=t)) for t in least]


def test_numbers_without_dimensions_are_gathered_as_vectors() -> None:
    x, index = torch.rand(3), torch.zeros(3, 1, dtype=torch.int64)
    slope = torch.func.grad(lambda x, i: (x.gather(0, i) ** 2).sum())
    for dims, i in (((0, 0), index), ((0, None), index[0])):
        assert torch.allclose(torch.vmap(slope, dims)(x, i), 2 * x)
    assert torch.autograd.functional.hessian(lambda x: (x.gather(0, index[0]) ** 3).sum(), x[0]) == 6 * x[0]
