"""Tensors print exactly as PyTorch's."""

import numpy as np
import pytest

import rushlight
from rushlight.ops.python import printing

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex64", "complex128"]
SHAPES = [(), (1,), (3,), (7,), (40,), (2, 3), (3, 0), (0,), (2, 0, 3), (2, 2, 2), (1, 1), (12, 5), (2, 3, 2, 2),
          (1200,),           (40, 40), (9, 8, 20), (1001, 1, 1)]  # fmt: skip


@pytest.fixture(autouse=True)
def plain_options():
    yield
    torch.set_printoptions(profile="default")
    rushlight.set_printoptions(profile="default")


def values(rng, shape, dtype):
    """Random numbers of a random character: whole, tiny, huge, mixed, special."""
    kind = rng.integers(0, 9)
    x = rng.standard_normal(shape)
    x = [x, x * 1e-6, x * 1e7, np.round(x * 10), x * 10.0 ** rng.integers(-5, 6, shape), np.round(x), x * 0, x * 1e3,
         np.round(x * 1e9)][kind]  # fmt: skip
    x = np.asarray(x)
    if x.size and rng.random() < 0.3 and dtype.startswith(("float", "complex")):
        flat = x.reshape(-1)
        flat[rng.integers(0, x.size, 2)] = rng.choice([np.inf, -np.inf, np.nan, 0.0], 2)
    if dtype.startswith("complex"):
        x = x + 1j * rng.permutation(x.reshape(-1)).reshape(shape) * rng.choice([0, 1, 1e-5])
    if dtype in ("int64", "int32", "uint8"):
        x = np.clip(np.nan_to_num(x), 0 if dtype == "uint8" else -2e9, 255 if dtype == "uint8" else 2e9)
    return np.asarray(x).astype(dtype)


def both(array):
    theirs, ours = torch.from_numpy(array.copy()), rushlight.from_numpy(array.copy())
    return theirs, ours


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_tensors(dtype):
    rng = np.random.default_rng(sum(map(ord, dtype)))
    for shape in SHAPES:
        for _ in range(12):
            theirs, ours = both(values(rng, shape, dtype))
            assert repr(ours) == repr(theirs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "options",
    [{"precision": 2}, {"threshold": 5}, {"edgeitems": 1, "threshold": 3}, {"linewidth": 30}, {"profile": "short"},
     {"profile": "full"}, {"sci_mode": True}, {"sci_mode": False}, {"precision": 8, "linewidth": 200}],
)  # fmt: skip
def test_options(options):
    rng = np.random.default_rng(5)
    torch.set_printoptions(**options)
    rushlight.set_printoptions(**options)
    for dtype in ("float32", "int64", "complex128"):
        for shape in [(), (9,), (30,), (3, 8), (7, 2, 9)]:
            for _ in range(5):
                theirs, ours = both(values(rng, shape, dtype))
                assert repr(ours) == repr(theirs)


def test_bfloat16():
    array = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    theirs, ours = both(array)
    assert repr(ours.bfloat16()) == repr(theirs.bfloat16())


def history(t):
    x = t.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    yield x
    yield x * 2
    yield (x * 2).sum()
    yield t.tensor(list(range(20)), dtype=t.float64, requires_grad=True)
    yield t.tensor([123456.789] * 7, dtype=t.float64, requires_grad=True)
    yield t.tensor([1 + 2j], requires_grad=True)
    yield t.zeros(2, 0, requires_grad=True)
    yield t.tensor(3.5, requires_grad=True)
    yield t.zeros(0, dtype=t.int64)
    yield t.zeros(2, 0, dtype=t.bool)


def test_suffixes():
    for ours, theirs in zip(history(rushlight), history(torch), strict=True):
        assert repr(ours) == repr(theirs)
        assert str(ours) == str(theirs)


def test_default_dtype_decides_the_suffix():
    try:
        torch.set_default_dtype(torch.float64)
        rushlight.set_default_dtype(rushlight.float64)
        for dtype in ("float32", "float64", "complex64", "complex128"):
            theirs, ours = both(np.ones(2, dtype))
            assert repr(ours) == repr(theirs)
    finally:
        torch.set_default_dtype(torch.float32)
        rushlight.set_default_dtype(rushlight.float32)


def test_format():
    for t in (torch, rushlight):
        assert f"{t.tensor(3.14159):.2f}" == "3.14"
        assert f"{t.tensor(7):>4}" == "   7"
        with pytest.raises(TypeError):
            f"{t.tensor([1.0, 2.0]):.2f}"
    assert f"{rushlight.tensor([1.0])}" == f"{torch.tensor([1.0])}"


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.tensor(1 + 2j).conj(),
        lambda t: t.tensor(1 + 2j).conj().imag,
        lambda t: t.nn.Buffer(t.tensor(1.5)),
        lambda t: t.nn.Buffer(t.ones(2, requires_grad=True)),
        lambda t: t.tensor(1.5, requires_grad=True),
        lambda t: t.empty((), device="meta"),
    ],
)
def test_format_of_one_number_is_the_number_whatever_shows_it(make):
    assert f"{make(rushlight)}" == f"{make(torch)}"


def test_options_are_kept_until_changed():
    rushlight.set_printoptions(precision=7)
    assert printing.options.precision == 7 and printing.options.edgeitems == 3
