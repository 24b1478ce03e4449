"""Arguments that had been passed over, or told by NumPy's errors, are refused in PyTorch's words."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F

SQUARE = torch.arange(4.0).reshape(2, 2)
THREE, TWO = torch.eye(2).expand(3, 2, 2), torch.ones(2, 2, 1)

APART = {
    "solve": lambda: torch.linalg.solve(THREE, TWO),
    "solve_ex": lambda: torch.linalg.solve_ex(THREE, TWO),
    "solve_triangular": lambda: torch.linalg.solve_triangular(THREE, TWO, upper=True),
    "cholesky_solve": lambda: torch.cholesky_solve(TWO, THREE),
    "lu_solve": lambda: torch.linalg.lu_solve(*torch.linalg.lu_factor(THREE), TWO),
    "ldl_solve": lambda: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(THREE), TWO),
    "lstsq": lambda: torch.linalg.lstsq(THREE, TWO),
    "on the device meta": lambda: torch.linalg.solve(THREE.to("meta"), TWO.to("meta")),
}


@pytest.mark.parametrize("name", APART)
def test_batches_that_do_not_go_together_are_told_by_their_sizes(name):
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(.\) must match the size of tensor b \(.\)"):
        APART[name]()


def test_tensorsolve_says_how_many_numbers_it_wants():
    with pytest.raises(RuntimeError, match=r"requirement prod.* got 6 != 8"):
        torch.linalg.tensorsolve(torch.ones(2, 3, 6), torch.ones(2, 4))


def test_pinv_of_what_has_no_eigenvalues_raises_the_error_of_eigh():
    bad = torch.ones(5, 5, dtype=torch.float64)
    bad[0, 0] = float("nan")
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
        torch.linalg.pinv(bad, hermitian=True)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
def test_keepdim_of_all_elements_is_refused(name):
    with pytest.raises(TypeError, match="keepdim"):
        getattr(torch, name)(SQUARE, keepdim=True)
    assert getattr(torch, name)(SQUARE).shape == ()


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_dimension_that_is_a_tensor_is_one_beside_keepdim(name):
    of = getattr(torch, name)
    kept = of(SQUARE, torch.tensor(1), True)
    assert torch.equal(kept.values, of(SQUARE, 1, keepdim=True).values)
    assert torch.equal(of(SQUARE, torch.tensor(1.0)), of(SQUARE, torch.ones(2, 2)))
    with pytest.raises(TypeError):
        of(SQUARE, torch.tensor(1.0), True)


@pytest.mark.parametrize("target", [-0.2, 2.0, float("nan")])
def test_targets_of_bce_lie_between_0_and_1(target):
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([target]))


@pytest.mark.parametrize("question", [torch.isclose, torch.allclose])
@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_a_tolerance_of_nan_is_refused(question, name):
    with pytest.raises(RuntimeError, match=f"{name} must be greater than or equal to zero, but got nan"):
        question(SQUARE, SQUARE, **{name: float("nan")})


@pytest.mark.parametrize("odd", range(4))
def test_bilinear_takes_one_dtype(odd):
    given = [torch.ones(2, 3), torch.ones(2, 3), torch.ones(4, 3, 3), torch.ones(4)]
    given[odd] = given[odd].double()
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        F.bilinear(*given)


def test_instance_norm_takes_both_running_statistics_or_none():
    for statistics in ((torch.zeros(2), None), (None, torch.ones(2))):
        with pytest.raises(ValueError, match="must either both be None or neither be None"):
            F.instance_norm(torch.ones(2, 2, 3), *statistics)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_takes_no_values_of_more_dimensions_than_the_place(accumulate):
    x, rows = torch.zeros(5, 5), (torch.tensor([2]),)
    for values in (torch.ones(1, 1, 5), torch.ones(1, 1, 1)):
        with pytest.raises(RuntimeError, match="cannot be broadcast to indexing result of 2 dimensions"):
            x.index_put_(rows, values, accumulate)
    with pytest.raises(RuntimeError, match="result of 1 dimensions"):
        x.index_put_((x == 0,), torch.ones(1, 1), accumulate)
    assert x.index_put_(rows, torch.ones(1, 5), accumulate).sum() == 5
    x[rows] = torch.full((1, 1, 5), 2.0)  # which takes them
    assert x.sum() == 10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (5,), (3000,)])
def test_a_number_divided_by_16_bits_and_rounded_down_has_16_bits(dtype, shape):
    x = torch.full(shape, 2.0, dtype=dtype)
    for found in (7.5 // x, torch.floor_divide(7, x), torch.div(7.25, x, rounding_mode="floor"), torch.tensor(7) // x):
        assert found.dtype == dtype and torch.equal(found, torch.full(shape, 3.0, dtype=dtype))
