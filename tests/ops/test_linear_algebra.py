"""Linear algebra and Fourier transforms: identities that define them, and gradients against differences."""

import math

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

RNG = np.random.default_rng(1)
KINDS = pytest.mark.parametrize("kind", [float, complex])


def draw(*shape, kind=float):
    x = RNG.standard_normal(shape)
    return x + 1j * RNG.standard_normal(shape) if kind is complex else x


def positive(n, kind):
    a = draw(2, n, n, kind=kind)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)


def same(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy() if isinstance(b, torch.Tensor) else b, atol=1e-10)


@KINDS
def test_decompositions_multiply_back(kind):
    a = torch.from_numpy(draw(2, 4, 3, kind=kind))
    q, r = torch.linalg.qr(a)
    same(q @ r, a)
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    same(u * s.unsqueeze(-2).to(u.dtype) @ vh, a)
    wide = a.mT
    q, r = torch.linalg.qr(wide)
    same(q @ r, wide)
    p = torch.from_numpy(positive(3, kind))
    low, up = torch.linalg.cholesky(p), torch.linalg.cholesky(p, upper=True)
    same(low @ low.mH, p)
    same(up.mH @ up, p)
    values, vectors = torch.linalg.eigh(p)
    same(vectors * values.unsqueeze(-2).to(p.dtype) @ vectors.mH, p)
    values, vectors = torch.linalg.eig(p)
    same(vectors * values.unsqueeze(-2) @ torch.linalg.inv(vectors), p.to(torch.complex128))


@KINDS
def test_solves_and_inverses(kind):
    a, b = torch.from_numpy(draw(2, 3, 3, kind=kind)), torch.from_numpy(draw(2, 3, 2, kind=kind))
    same(a @ torch.linalg.solve(a, b), b)
    same(torch.linalg.solve(a, b.mT, left=False) @ a, b.mT)
    same(a @ torch.linalg.inv(a), np.broadcast_to(np.eye(3), (2, 3, 3)))
    tall = torch.from_numpy(draw(5, 3, kind=kind))
    same(torch.linalg.pinv(tall) @ tall, np.eye(3))
    upper = a.triu()
    same(upper @ torch.linalg.solve_triangular(a, b, upper=True), b)
    same(torch.linalg.matrix_exp(torch.zeros(2, 2)), np.eye(2, dtype=np.float32))
    same(torch.linalg.matrix_power(a, -2) @ a @ a, np.broadcast_to(np.eye(3), (2, 3, 3)))


@KINDS
@pytest.mark.parametrize("fn", [
    torch.linalg.inv, torch.linalg.det, torch.linalg.pinv, torch.linalg.matrix_exp,
    lambda a: torch.linalg.slogdet(a)[1], lambda a: torch.linalg.svdvals(a), lambda a: torch.linalg.qr(a),
    lambda a: torch.linalg.cholesky(a @ a.mH + 3 * torch.eye(3)), lambda a: torch.linalg.eigvalsh(a + a.mH),
    lambda a: torch.linalg.matrix_norm(a, "nuc"), lambda a: torch.linalg.matrix_norm(a, 2),
    lambda a: torch.linalg.matrix_power(a, 3), lambda a: torch.linalg.cond(a, 1), lambda a: torch.linalg.eigvals(a).abs(),
], ids=range(14))  # fmt: skip
def test_gradients_of_functions_of_a_matrix(fn, kind):
    check_gradients(fn, draw(3, 3, kind=kind) + 2 * np.eye(3), tol=1e-5)


@pytest.mark.parametrize(("size", "wanted"), [(1, 1.0), (2, math.nan)])
def test_gradient_of_the_determinant_of_what_is_not_a_number(size, wanted):
    a = torch.full((size, size), math.nan, requires_grad=True)
    with np.errstate(invalid="ignore"):
        torch.linalg.det(a).backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full((size, size), wanted, np.float32))


def test_matrices_without_elements_need_not_be_square():
    tall = torch.ones(3, 0)
    assert torch.linalg.pinv(tall, hermitian=True).shape == (0, 3)
    assert torch.linalg.matrix_rank(tall, hermitian=True).item() == 0
    assert torch.linalg.cond(tall, 1).item() == 0


def test_a_tolerance_that_does_not_fit_the_batch_is_refused():
    with pytest.raises(RuntimeError, match="broadcast"):
        torch.linalg.matrix_rank(torch.ones(2, 3, 3), atol=torch.ones(3))


def test_an_exponential_is_exact_beside_one_of_what_is_not_a_number():
    a = torch.tensor([[[9.0, 8.0], [7.0, 6.0]], [[math.nan, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    assert torch.equal(torch.linalg.matrix_exp(a)[0], torch.linalg.matrix_exp(a[0]))


def test_exponentials_are_batched_by_vmap(recwarn):
    a = torch.tensor([[[9.0, 8.0], [7.0, 6.0]], [[0.5, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    assert torch.equal(torch.func.vmap(torch.linalg.matrix_exp)(a), torch.linalg.matrix_exp(a))
    assert not recwarn.list


def test_no_digits_are_lost_to_a_large_gradient_of_an_exponential():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    result = torch.linalg.matrix_exp(a)
    small, large = (torch.autograd.grad((result * c).sum(), a, retain_graph=True)[0] / c for c in (1.0, 1e15))
    torch.testing.assert_close(small, large, rtol=1e-13, atol=0)


@KINDS
def test_gradients_of_solves_and_of_a_wide_qr(kind):
    check_gradients(torch.linalg.solve, draw(3, 3, kind=kind), draw(3, 2, kind=kind), tol=1e-5)
    check_gradients(lambda a: torch.linalg.qr(a), draw(2, 4, kind=kind), tol=1e-5)
    check_gradients(lambda a: torch.linalg.svd(a, full_matrices=False)[0].abs(), draw(4, 3, kind=kind), tol=1e-4)
    check_gradients(
        lambda a, b: torch.linalg.lstsq(a, b).solution, draw(4, 2, kind=kind), draw(4, 2, kind=kind), tol=1e-5
    )


@pytest.mark.parametrize("call, message", [
    (lambda: torch.linalg.inv(torch.zeros(2, 2)), "singular"),
    (lambda: torch.linalg.inv(torch.ones(2, 3)), "square"),
    (lambda: torch.linalg.solve(torch.eye(2), torch.ones(3, 1)), "Incompatible shapes"),
    (lambda: torch.linalg.cholesky(-torch.eye(2)), "not positive-definite"),
    (lambda: torch.linalg.det(torch.ones(2)), "at least 2 dimensions"),
    (lambda: torch.linalg.qr(torch.ones(2, 2), "half"), "unrecognized mode"),
    (lambda: torch.linalg.eigh(torch.eye(2), "X"), "UPLO"),
    (lambda: torch.linalg.inv(torch.eye(2, dtype=torch.int64)), "floating point or complex"),
])  # fmt: skip
def test_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_info_says_which_matrix_is_singular():
    a = torch.stack([torch.eye(2), torch.zeros(2, 2)])
    assert torch.linalg.inv_ex(a).info.tolist() == [0, 1]
    assert torch.linalg.cholesky_ex(a).info.tolist() == [0, 1]
    assert torch.linalg.matrix_rank(a).tolist() == [2, 0]


@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_are_numpys_and_have_their_gradients(name, norm):
    kind = float if name in ("rfft", "ihfft") else complex
    x = draw(3, 5, kind=kind)
    for n in (None, 4, 7):
        y = getattr(torch.fft, name)(torch.from_numpy(x), n, norm=norm)
        np.testing.assert_allclose(y.numpy(), getattr(np.fft, name)(x, n, norm=norm), atol=1e-12)
    check_gradients(lambda x: getattr(torch.fft, name)(x, 6, norm=norm), x)


def test_transforms_of_several_dimensions():
    x = draw(2, 3, 4)
    np.testing.assert_allclose(torch.fft.rfftn(torch.from_numpy(x)).numpy(), np.fft.rfftn(x), atol=1e-12)
    np.testing.assert_allclose(torch.fft.irfft2(torch.fft.rfft2(torch.from_numpy(x))).numpy(), x, atol=1e-12)
    assert torch.equal(torch.fft.ifftshift(torch.fft.fftshift(torch.arange(7))), torch.arange(7))
    np.testing.assert_allclose(torch.fft.fftfreq(5, 0.5).numpy(), np.fft.fftfreq(5, 0.5), atol=1e-7)
    with pytest.raises(RuntimeError, match="normalization mode"):
        torch.fft.fft(torch.ones(3), norm="large")
    with pytest.raises(RuntimeError, match="real input"):
        torch.fft.rfft(torch.ones(3, dtype=torch.complex64))


NAN = math.nan


@pytest.mark.parametrize("kind", [torch.float32, torch.complex128])
@pytest.mark.parametrize("rows", [[[NAN, 1.0], [1.0, 1.0]], [[1.0, NAN], [1.0, 1.0]], [[NAN, NAN], [NAN, NAN]]])
def test_what_is_not_a_number_is_not_stepped_over(rows, kind):
    a = torch.tensor([rows, [[2.0, 0.0], [0.0, 1.0]]], dtype=kind)
    for found in (torch.det(a), torch.linalg.slogdet(a)[1], torch.linalg.inv(a), torch.linalg.solve(a, a)):
        assert found[0].isnan().all() and not found[1].isnan().any()
    assert torch.linalg.inv_ex(a)[1].tolist() == [0, 0]


def test_a_pivot_of_zero_beside_what_is_not_a_number_is_singular():
    a = torch.tensor([[0.0, NAN], [0.0, 1.0]])
    found, info = torch.linalg.inv_ex(a)
    assert info.item() == 1 and found.isnan().all() and torch.det(a).isnan()
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(a)
    assert torch.linalg.slogdet(a)[0].item() == 0
