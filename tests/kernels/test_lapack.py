"""LAPACK of the library that NumPy loaded: triangular systems, factors and least squares, beside NumPy's, and without it."""

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.backends import lapack

DTYPES = ["float32", "float64", "complex64", "complex128"]


def random(*shape: int, dtype: str) -> Any:
    """Numbers of a dtype, of a matrix that is far from singular."""
    generator = np.random.default_rng(0)
    found = generator.standard_normal(shape) + (1j * generator.standard_normal(shape) if "complex" in dtype else 0)
    return (found + (shape[-1] * np.eye(shape[-1]) if shape[-2:] == (shape[-1],) * 2 else 0)).astype(dtype)


def near(found: Any, wanted: Any, dtype: str) -> None:
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=(1e-4 if dtype in DTYPES[::2] else 1e-11) * np.abs(wanted).max()
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_systems_read_one_triangle_alone(dtype: str, upper: bool, columns: int, order: Any) -> None:
    A, b = random(60, 60, dtype=dtype), random(60, columns, dtype=dtype)
    triangle = np.triu(A) if upper else np.tril(A)
    A[np.tril(np.ones_like(A, bool), -1) if upper else np.triu(np.ones_like(A, bool), 1)] = np.nan
    found = torch.linalg.solve_triangular(torch.from_numpy(np.array(A, order=order)), torch.from_numpy(b), upper=upper)
    near(found.numpy(), np.linalg.solve(triangle, b), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (7, 5), (5, 7), (70, 70), (3, 6, 6), (40, 3, 3), (2, 60, 60), (0, 0)])
@pytest.mark.parametrize("there", [True, False], ids=["lapack", "without"])
def test_lu_factors(dtype: str, shape: tuple[int, ...], there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not there:
        monkeypatch.setattr(lapack, "_routine", lambda name, char: None)
    A = torch.from_numpy(random(*shape, dtype=dtype))
    P, L, U = torch.linalg.lu(A)
    assert (P.sum(-1) == 1).all() and (P.sum(-2) == 1).all()
    if A.numel():
        near((P @ L @ U).numpy(), A.numpy(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (70, 70), (3, 6, 6), (2, 60, 60)])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("there", [True, False], ids=["lapack", "without"])
def test_systems_by_factors(
    dtype: str, shape: tuple[int, ...], adjoint: bool, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not there:
        monkeypatch.setattr(lapack, "_routine", lambda name, char: None)
    A, b = torch.from_numpy(random(*shape, dtype=dtype)), torch.from_numpy(random(shape[-1], 2, dtype=dtype))
    x = torch.linalg.lu_solve(*torch.linalg.lu_factor(A), b.expand(*shape[:-2], shape[-1], 2), adjoint=adjoint)
    near(x.numpy(), np.linalg.solve((A.mH if adjoint else A).resolve_conj().numpy(), b.numpy()), dtype)
    square = A @ A.mH
    near(
        torch.cholesky_solve(b, torch.linalg.cholesky(square)).numpy(),
        np.linalg.solve(square.numpy(), b.numpy()),
        dtype,
    )


@pytest.mark.parametrize("upper", [False, True])
def test_of_a_batch_those_that_have_no_factor_are_told(upper: bool) -> None:
    A = torch.eye(70).repeat(3, 1, 1)
    A[1, 5, 5] = -1.0
    for some in (A, A[:, :8, :8]):
        L, info = torch.linalg.cholesky_ex(some, upper=upper)
        assert info.tolist() == [0, 6, 0] and torch.equal(L[::2], some[::2])
        with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 1.*order 6"):
            torch.linalg.cholesky(some, upper=upper)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns", "rank"), [(6, 4, 4), (4, 6, 4), (5, 5, 5), (6, 5, 2)])
def test_least_squares(dtype: str, rows: int, columns: int, rank: int) -> None:
    A = random(rows, rank, dtype=dtype) @ random(rank, columns, dtype=dtype)
    B = random(rows, 2, dtype=dtype)
    found = torch.linalg.lstsq(torch.from_numpy(A), torch.from_numpy(B))
    near(found.solution.numpy(), np.linalg.pinv(A, rcond=1e-5) @ B, dtype)
    assert found.rank == rank and found.residuals.numel() == 0


def test_least_squares_without_lapack_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    A, B = torch.from_numpy(random(6, 4, dtype="float64")), torch.from_numpy(random(6, 2, dtype="float64"))
    wanted = torch.linalg.lstsq(A, B)
    monkeypatch.setattr(lapack, "_routine", lambda name, char: None)
    found = torch.linalg.lstsq(A, B)
    near(found.solution.numpy(), wanted.solution.numpy(), "float64")
    assert [x.shape for x in found] == [x.shape for x in wanted] and found.rank == wanted.rank


def test_derivatives_of_least_squares() -> None:
    torch.manual_seed(0)
    for shape in ((4, 3), (3, 4), (2, 3, 3)):
        A = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        B = torch.randn(*shape[:-1], 2, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda A, B: torch.linalg.lstsq(A, B).solution, (A, B), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(lambda A, B: torch.linalg.lstsq(A, B).solution, (A, B))


@pytest.mark.parametrize("name", ["solve", "inv"])
def test_singular_matrices_are_refused_and_infinities_are_not(name: str) -> None:
    given = (torch.ones(3, 1),) if name == "solve" else ()
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        getattr(torch.linalg, name)(torch.ones(3, 3), *given)
    assert not getattr(torch.linalg, name)(torch.full((3, 3), torch.nan), *given).isfinite().any()


@pytest.mark.parametrize("near_singular", [False, True])
def test_gradient_of_a_determinant(near_singular: bool) -> None:
    A = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    if near_singular:
        A[0] = A[1]
    assert torch.autograd.gradcheck(torch.det, A.requires_grad_())


def test_values_alone_are_those_with_vectors() -> None:
    A = torch.randn(6, 4, dtype=torch.float64)
    assert torch.allclose(torch.linalg.svdvals(A), torch.linalg.svd(A).S)
    H = A.mT @ A
    assert torch.allclose(torch.linalg.eigvalsh(H, UPLO="U"), torch.linalg.eigh(H).eigenvalues)
    assert torch.autograd.gradcheck(torch.linalg.svdvals, A.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda H: torch.linalg.eigvalsh(H + H.mT), H.clone().requires_grad_())


LARGE = 130  # rows: such matrices go by themselves


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("there", [True, False], ids=["lapack", "numpy"])
def test_large_systems_inverses_and_determinants(dtype: str, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not there:
        monkeypatch.setattr(lapack, "has", lambda name, dtype: False)
    A, b = random(2, LARGE, LARGE, dtype=dtype), random(LARGE, 3, dtype=dtype)
    A = A[:, ::-1]  # so that rows change places
    x = torch.from_numpy(A.copy())
    near(torch.linalg.solve(x, torch.from_numpy(b)).numpy(), np.linalg.solve(A, b), dtype)
    near(torch.linalg.solve(x[0], torch.from_numpy(b[:, 0])).numpy(), np.linalg.solve(A[0], b[:, 0]), dtype)
    near(torch.linalg.inv(x).numpy(), np.linalg.inv(A), dtype)
    sign, size = torch.linalg.slogdet(x)
    wanted = np.linalg.slogdet(A)
    near(sign.numpy(), wanted[0], dtype)
    near(size.numpy(), wanted[1], dtype)
    near(torch.linalg.det(x / 100).numpy(), np.linalg.det(A / 100), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(140, 130), (130, 140), (2, 130, 130)], ids=str)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_orthogonal_factors_of_large_matrices(dtype: str, shape: tuple[int, ...], mode: str) -> None:
    A = random(*shape, dtype=dtype)
    Q, R = torch.linalg.qr(torch.from_numpy(A), mode)
    if mode == "r":
        near(R.numpy(), np.linalg.qr(A, "r"), dtype)
    else:
        near(Q.numpy(), np.linalg.qr(A, mode)[0], dtype)
        near(R.numpy(), np.linalg.qr(A, mode)[1], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(140, 130), (130, 140), (2, 130, 130)], ids=str)
@pytest.mark.parametrize("complete", [False, True])
def test_singular_vectors_of_large_matrices(dtype: str, shape: tuple[int, ...], complete: bool) -> None:
    A = random(*shape, dtype=dtype)
    U, S, Vh = (x.numpy() for x in torch.linalg.svd(torch.from_numpy(A), complete))
    k = min(shape[-2:])
    near(S, np.linalg.svd(A, compute_uv=False), dtype)
    near((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], A, dtype)
    for unitary in (U.conj().swapaxes(-1, -2) @ U, Vh @ Vh.conj().swapaxes(-1, -2)):
        near(unitary, np.broadcast_to(np.eye(unitary.shape[-1]), unitary.shape), dtype)
    near(torch.linalg.svdvals(torch.from_numpy(A)).numpy(), S, dtype)
    assert S.dtype == A.real.dtype and U.dtype == Vh.dtype == A.dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_eigenvectors_of_large_hermitian_matrices(dtype: str, UPLO: str) -> None:
    A = random(2, LARGE, LARGE, dtype=dtype)
    A = A + A.conj().swapaxes(-1, -2)
    half = np.tril(A) if UPLO == "L" else np.triu(A)  # the other triangle is not read
    L, V = (x.numpy() for x in torch.linalg.eigh(torch.from_numpy(half), UPLO))
    near(L, np.linalg.eigvalsh(A), dtype)
    near((V * L[..., None, :]) @ V.conj().swapaxes(-1, -2), A, dtype)
    near(torch.linalg.eigvalsh(torch.from_numpy(half), UPLO=UPLO).numpy(), L, dtype)
    assert L.dtype == A.real.dtype and V.dtype == A.dtype


def test_what_has_no_decomposition_is_refused() -> None:
    for n in (3, LARGE):
        with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
            torch.linalg.svd(torch.full((n, n), torch.inf))
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
        torch.linalg.eigh(torch.full((3, 3), torch.nan))


def test_large_matrices_that_are_singular_or_have_nan() -> None:
    A = torch.eye(LARGE)
    A[5, 5] = 0
    for function in (torch.linalg.inv, lambda A: torch.linalg.solve(A, torch.ones(LARGE))):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            function(A)
    assert torch.linalg.det(A) == 0 and torch.linalg.slogdet(A).logabsdet == -torch.inf
    assert torch.linalg.inv_ex(A).info == 6
    A[5, 5] = torch.nan
    assert torch.linalg.inv(A).isnan().all() and torch.linalg.solve(A, torch.ones(LARGE)).isnan().all()
    assert torch.linalg.det(A).isnan()


@pytest.mark.parametrize(
    ("function", "most"),
    [(torch.linalg.inv, 1.3), (lambda A: torch.linalg.solve(A, A), 2.1), (torch.linalg.slogdet, 1.1), (torch.linalg.qr, 2.4),
     (torch.linalg.svdvals, 1.2), (torch.linalg.eigvalsh, 1.2), (torch.linalg.eigh, 3.1)],
    ids=["inv", "solve", "slogdet", "qr", "svdvals", "eigvalsh", "eigh"],
)  # fmt: skip
def test_large_matrices_take_little_memory_beside_their_results(function: Any, most: float) -> None:
    """In the precision of the matrix, as LAPACK works: NumPy makes copies of all in double precision."""
    A = torch.randn(500, 500) + 30 * torch.eye(500)
    function(A)
    before = torch.memory.current()
    torch.memory.reset_peak()
    function(A)
    assert torch.memory.peak() - before < most * A.nbytes


def test_the_exponential_of_a_matrix_keeps_the_matrix_alone() -> None:
    A = torch.randn(200, 200).requires_grad_()
    before = torch.memory.current()
    found = torch.linalg.matrix_exp(A)
    assert torch.memory.current() - before < 1.1 * found.nbytes
    found.sum().backward()


@pytest.mark.parametrize("missing", ["trsm", "trsv", "lapmt", "getri", "gelqf", "gesdd", "syevd"])
def test_a_library_that_lacks_a_routine_changes_no_result(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    A, has = random(LARGE, LARGE, dtype="float64"), lapack.has
    monkeypatch.setattr(lapack, "has", lambda name, dtype: name != missing and has(name, dtype))
    x = torch.from_numpy(A)
    near(torch.linalg.solve(x, x[:, :2]).numpy(), np.linalg.solve(A, A[:, :2]), "float64")
    near(torch.linalg.inv(x).numpy(), np.linalg.inv(A), "float64")
    near(torch.linalg.qr(x).R.numpy(), np.linalg.qr(A)[1], "float64")
    near(torch.linalg.svd(x).S.numpy(), np.linalg.svd(A, compute_uv=False), "float64")
    near(torch.linalg.eigh(x).eigenvalues.numpy(), np.linalg.eigvalsh(A), "float64")
