"""Matrix products of all shapes, with gradients, and what adds to them."""

import numpy as np
import pytest
from tests.ops.memory import saved_bytes
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")

RNG = np.random.default_rng(4)


def draw(*shape, kind=float):
    x = np.asarray(RNG.standard_normal(shape))
    return x + 1j * RNG.standard_normal(shape) if kind is complex else x


SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
          ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((0, 3), (3, 4)),
          ((2, 0), (0, 4)), ((0, 2, 3), (0, 3, 4)), ((5, 4), (6, 4, 1)), ((2, 4), (0, 4, 1))]  # fmt: skip


@pytest.mark.parametrize("s, t", SHAPES)
@pytest.mark.parametrize("kind", [float, complex])
def test_matmul(s, t, kind):
    a, b = draw(*s, kind=kind), draw(*t, kind=kind)
    np.testing.assert_allclose((torch.from_numpy(a) @ torch.from_numpy(b)).numpy(), a @ b, atol=1e-12)
    check_gradients(torch.matmul, a, b)


@pytest.mark.parametrize("s, t", SHAPES)
def test_matmul_of_transposed_views(s, t):
    a, b = draw(*s[::-1]), draw(*t[::-1])
    turned = [torch.from_numpy(x).permute(*range(x.ndim - 1, -1, -1)) for x in (a, b)]
    np.testing.assert_allclose(torch.matmul(*turned).numpy(), a.T @ b.T, atol=1e-12)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("lead", [(), (4,), (2, 4), (0,)])
def test_linear(kind, lead):
    x, w, b = draw(*lead, 3, kind=kind), draw(5, 3, kind=kind), draw(5, kind=kind)
    np.testing.assert_allclose(F.linear(*map(torch.from_numpy, (x, w, b))).numpy(), x @ w.T + b, atol=1e-12)
    check_gradients(F.linear, x, w, b)
    check_gradients(F.linear, x, w)


def test_linear_with_a_vector_of_weights():
    x, w = draw(4, 3), draw(3)
    np.testing.assert_allclose(F.linear(torch.from_numpy(x), torch.from_numpy(w)).numpy(), x @ w)
    check_gradients(F.linear, x, w, np.asarray(0.5))


def test_products_save_what_the_wanted_gradients_need():
    x, w, frozen = torch.zeros(8, 3, requires_grad=True), torch.zeros(5, 3, requires_grad=True), torch.zeros(5, 3)
    kept = []

    def saving(fn):
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.data_ptr()) or t, lambda t: t):
            fn()
        return set(kept)

    assert saving(lambda: F.linear(x, frozen)) == {frozen.data_ptr()}
    assert saving(lambda: F.linear(x.detach(), w)) == {x.data_ptr()}
    assert saving(lambda: F.linear(x, w)) == {x.data_ptr(), w.data_ptr()}
    assert saving(lambda: x.detach() @ w.mT) == {x.data_ptr()}
    assert saved_bytes(lambda x, w: F.linear(x, w), x, w) == 0


ADDITIONS = {
    "addmm": ((2, 4), (2, 3), (3, 4), lambda i, a, b: a @ b), "addmv": ((2,), (2, 3), (3,), lambda i, a, b: a @ b),
    "addr": ((2, 4), (2,), (4,), lambda i, a, b: np.outer(a, b)), "baddbmm": ((5, 2, 4), (5, 2, 3), (5, 3, 4), lambda i, a, b: a @ b),
    "addbmm": ((2, 4), (5, 2, 3), (5, 3, 4), lambda i, a, b: (a @ b).sum(0)),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions(name):
    *shapes, product = ADDITIONS[name]
    i, a, b = (draw(*s) for s in shapes)
    fn = getattr(torch, name)
    tensors = [torch.from_numpy(x) for x in (i, a, b)]
    np.testing.assert_allclose(fn(*tensors).numpy(), i + product(i, a, b))
    np.testing.assert_allclose(fn(*tensors, beta=0.5, alpha=2).numpy(), 0.5 * i + 2 * product(i, a, b))
    assert not torch.isnan(fn(tensors[0] * float("nan"), *tensors[1:], beta=0)).any()
    check_gradients(lambda i, a, b: fn(i, a, b, beta=0.5, alpha=2), i, a, b)
    check_gradients(lambda i, a, b: fn(i, a, b), i[..., :1], a, b)
    target = torch.from_numpy(i.copy())
    assert getattr(target, f"{name}_")(*tensors[1:], beta=2) is target
    np.testing.assert_allclose(target.numpy(), 2 * i + product(i, a, b))


OTHERS = {
    "mm": ((2, 3), (3, 4), np.matmul), "bmm": ((5, 2, 3), (5, 3, 4), np.matmul), "mv": ((2, 3), (3,), np.matmul),
    "dot": ((3,), (3,), np.dot), "vdot": ((3,), (3,), np.vdot), "outer": ((3,), (4,), np.outer), "inner": ((2, 3), (4, 3), np.inner),
    "kron": ((2, 3), (3, 1), np.kron), "cross": ((2, 3), (2, 3), np.cross),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using torch.cross without")
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", [float, complex])
def test_other_products(name, kind):
    s, t, want = OTHERS[name]
    a, b = draw(*s, kind=kind), draw(*t, kind=kind)
    fn = getattr(torch, name)
    np.testing.assert_allclose(fn(torch.from_numpy(a), torch.from_numpy(b)).numpy(), want(a, b), atol=1e-12)
    check_gradients(fn, a, b)


def test_chains_go_in_the_cheapest_order():
    a, b, c, d = draw(2, 50), draw(50, 3), draw(3, 40), draw(40)
    chain = [torch.from_numpy(x) for x in (a, b, c, d)]
    np.testing.assert_allclose(torch.linalg.multi_dot(chain).numpy(), a @ b @ c @ d)
    np.testing.assert_allclose(torch.chain_matmul(*chain[:3]).numpy(), a @ b @ c)
    check_gradients(lambda *m: torch.linalg.multi_dot(m), a[:, :3], b[:3], c[:, :2], d[:2])


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, float("inf"), 0.0])
def test_cdist(p):
    a, b = draw(2, 4, 3), draw(1, 5, 3)
    size = np.abs(a[..., :, None, :] - b[..., None, :, :])
    want = (size != 0).sum(-1) if p == 0 else size.max(-1) if p == float("inf") else (size**p).sum(-1) ** (1 / p)
    np.testing.assert_allclose(torch.cdist(torch.from_numpy(a), torch.from_numpy(b), p).numpy(), want)
    check_gradients(lambda a, b: torch.cdist(a, b, p), a, b, second=p not in (0.0, 1.0, float("inf")))


def test_distances_are_curved_across_the_difference():
    a, b = (
        torch.zeros(1, 3, dtype=torch.float64),
        torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64, requires_grad=True),
    )
    (g,) = torch.autograd.grad(torch.cdist(a, b).sum(), b, create_graph=True)
    assert torch.autograd.grad(g.sum(), b)[0].tolist() == [[0.5, 0.5, 0]]
    (g,) = torch.autograd.grad(torch.cdist(b, b).sum(), b, create_graph=True)
    assert torch.autograd.grad(g.sum(), b)[0].tolist() == [[0, 0, 0]]


def test_cdist_by_a_matrix_product():
    a, b = draw(30, 3), draw(40, 3)
    want = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        np.testing.assert_allclose(
            torch.cdist(torch.from_numpy(a), torch.from_numpy(b), compute_mode=mode).numpy(), want, atol=1e-7
        )
    same = torch.from_numpy(a[:3]).requires_grad_()
    torch.cdist(same, same.detach()).sum().backward()
    assert torch.isfinite(same.grad).all()  # a distance of zero has no direction


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_added_up_in_float32(dtype):
    a = torch.full((1, 4096), 0.25, dtype=dtype, requires_grad=True)
    out = F.linear(a, torch.ones(1, 4096, dtype=dtype))
    assert out.dtype is dtype and out.item() == 1024.0
    out.backward()
    assert a.grad.dtype is dtype and a.grad[0, 0].item() == 1.0


def test_integers():
    a, b = torch.tensor([[1, 2]]), torch.tensor([[3], [4]])
    assert (a @ b).tolist() == [[11]] and torch.addmm(torch.tensor([[1]]), a, b, alpha=2).tolist() == [[23]]


Z = torch.zeros


@pytest.mark.parametrize("fn, error, words", [
    (lambda: Z(2, 3) @ Z(2, 3), RuntimeError, "2x3 and 2x3"), (lambda: torch.tensor(1.0) @ Z(2), RuntimeError, "1D"),
    (lambda: Z(2) @ Z(3), RuntimeError, ""), (lambda: Z(3, 2, 3) @ Z(2, 3, 4), RuntimeError, "must match the size of tensor b"),
    (lambda: torch.mm(Z(2), Z(2, 2)), RuntimeError, "1-D"), (lambda: torch.mm(Z(2, 3), Z(4, 5)), RuntimeError, "2x3 and 4x5"),
    (lambda: torch.bmm(Z(2, 2, 2), Z(3, 2, 2)), RuntimeError, "Expected size for first two dimensions of batch2 tensor to be: [2, 2] but got: [3, 2]"), (lambda: torch.mv(Z(2, 3), Z(2)), RuntimeError, ""),
    (lambda: torch.dot(Z(2), Z(3)), RuntimeError, ""), (lambda: torch.dot(Z(2, 2), Z(2, 2)), RuntimeError, "1D"),
    (lambda: Z(2, 2) @ Z(2, 2, dtype=torch.float64), RuntimeError, "dtype"), (lambda: torch.mm(Z(2, 2), 3), TypeError, "mat2"),
    (lambda: F.linear(Z(2, 3), Z(4, 5)), RuntimeError, "[2, 3]"), (lambda: F.linear(Z(2, 3), Z(4, 3), Z(5)), RuntimeError, "bias"),
    (lambda: torch.addmm(Z(9), Z(2, 3), Z(3, 4)), RuntimeError, "must match the existing size"), (lambda: torch.cross(Z(2), Z(2), dim=-1), RuntimeError, "3"),
    (lambda: torch.linalg.multi_dot([Z(2)]), RuntimeError, "2 tensors"), (lambda: torch.tensordot(Z(2), Z(3), 1), RuntimeError, "match"),
    (lambda: torch.cdist(Z(2), Z(2, 2)), RuntimeError, "2D"), (lambda: torch.cdist(Z(2, 2), Z(2, 3)), RuntimeError, "columns"),
    (lambda: torch.cdist(Z(2, 2), Z(2, 2), p=-1.0), RuntimeError, "non-negative"), (lambda: torch.inner(Z(2), Z(3)), RuntimeError, "last"),
])  # fmt: skip
def test_refusals(fn, error, words):
    with pytest.raises(error) as refusal:
        fn()
    assert words in str(refusal.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_nothing_is_multiplied_by_zero(dtype):
    """As BLAS has it, and PyTorch where it asks BLAS."""
    nan = torch.full((2, 2, 2), float("nan")).to(dtype)
    ones = torch.ones(2, 2, 2).to(dtype)
    for beta in (0, 1, 2):
        expected = (ones * beta)[0]
        assert torch.equal(torch.addmm(ones[0], nan[0], ones[0], beta=beta, alpha=0), expected)
        assert torch.equal(torch.addmv(ones[0, 0], nan[0], ones[0, 0], beta=beta, alpha=0), expected[0])
        assert torch.equal(torch.addbmm(ones[0], nan, ones, beta=beta, alpha=0), expected)
        assert torch.equal(torch.baddbmm(ones, nan, ones, beta=beta, alpha=0), ones * beta)
    batched = torch.func.vmap(lambda m: torch.addmm(ones[0], m, ones[0], alpha=0))(nan)
    assert torch.equal(batched, ones)
    assert torch.addmm(ones[0], nan[0], ones[0]).isnan().all()
