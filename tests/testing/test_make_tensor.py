"""make_tensor gives the shapes, strides, ranges and errors that PyTorch's gives."""

import warnings
from typing import Any

import pytest

import rushlight

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128"]  # fmt: skip
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *[((2000,), {"dtype": dtype}) for dtype in DTYPES],
    *[((20,), {"dtype": dtype, "exclude_zero": True}) for dtype in DTYPES],
    *[((3, 4), {"dtype": dtype, "noncontiguous": True}) for dtype in DTYPES],
    *[(shape, {"noncontiguous": True}) for shape in [((),), (1,), (2, 1), (2, 0), (3,), ((2, 3),), ([2, 3],)]],
    *[(shape, {}) for shape in [((),), (), (0,), ((2, 3),), ([2, 3],), (2, 3)]],
    ((2, 3, 4, 5), {"memory_format": "channels_last"}),
    ((2, 3, 4, 5), {"memory_format": "channels_last", "noncontiguous": True}),
    ((2, 3), {"requires_grad": True}), ((2, 3), {"requires_grad": True, "noncontiguous": True}),
    ((2, 3), {"dtype": "int32", "requires_grad": True}), ((2, 3), {"dtype": "bool", "requires_grad": True}),
    *[((2000,), {"low": low, "high": high}) for low, high in [(-1, 2), (3, 2), (2, 2), (20, None), (2, None), (None, 2),
      (float("nan"), 1), (float("-inf"), 0), (1e39, 1e40), (float("inf"), None), (None, float("-inf"))]],
    *[((2000,), {"dtype": "int32", "low": low, "high": high}) for low, high in [(2, 2), (1.5, 3.5), (0, 3),
      (2**40, 2**41), (0, 0.5), (0.2, 2.5), (-1.7, -0.2)]],
    *[((2000,), {"dtype": "bool", "low": low, "high": high}) for low, high in [(0, 1), (0, 3), (1, 2)]],
    ((2000,), {"dtype": "uint8", "low": -5, "high": 300}), ((2000,), {"dtype": "float16", "low": -1e9, "high": 1e9}),
    ((2000,), {"dtype": "int32", "low": 0, "high": 1, "exclude_zero": True}),
    ((50,), {"dtype": "int64", "low": -(2**63), "high": 2**63 - 1}),
]  # fmt: skip


def outcome(lib: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What is to agree of a tensor: its range in whole numbers, for integers exactly; or the error."""
    given = {"dtype": "float32", "device": "cpu", **options}
    given = {k: getattr(lib, v) if k in ("dtype", "memory_format") else v for k, v in given.items()}
    lib.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            made = lib.testing.make_tensor(*args, **given)
    except (ValueError, RuntimeError, TypeError) as error:
        return type(error).__name__, str(error).replace("rushlight.", "torch.")
    plain = made.detach()
    plain = lib.view_as_real(plain) if plain.is_complex() else plain
    many = plain.numel() >= 2000
    limit = [round(float(x)) for x in (plain.min(), plain.max())] if many and abs(float(plain.min())) < 1e4 else None
    zeros = bool((plain == 0).any()) if not made.is_floating_point() and not made.is_complex() and many else None
    return (tuple(made.shape), made.stride(), str(made.dtype).split(".")[-1], made.requires_grad, made.is_leaf, limit,
            zeros)  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(("args", "options"), CALLS, ids=[str(call) for call in CALLS])
def test_as_pytorch(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(rushlight, args, options) == outcome(torch, args, options)


@pytest.mark.parametrize("name", DTYPES)
def test_zeros_are_excluded(name: str) -> None:
    dtype = getattr(rushlight, name)
    rushlight.manual_seed(0)
    made = rushlight.testing.make_tensor(
        500, dtype=dtype, device="cpu", low=0, high=1 + (name == "bool"), exclude_zero=True
    )
    assert not bool((made == 0).any())


def test_low_equal_to_high_is_deprecated_for_floating_point() -> None:
    with pytest.warns(FutureWarning, match="use torch.full"):
        made = rushlight.testing.make_tensor(3, dtype=rushlight.float32, device="cpu", low=2, high=2)
    assert made.tolist() == [2.0, 2.0, 2.0]


def test_the_widest_bounds_do_not_overflow() -> None:
    made = rushlight.testing.make_tensor(
        100, dtype=rushlight.float64, device="cpu", low=float("-inf"), high=float("inf")
    )
    assert bool(rushlight.isfinite(made).all())


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_numbers_are_those_that_pytorch_draws(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (rushlight, torch):
        lib.manual_seed(0)
        wide = lib.finfo(getattr(lib, dtype)).max
        shapes = [((23, 23), {}), ((9,), {"low": 0.1, "high": 0.3}), ((50,), {"low": -wide, "high": wide})]
        found.append(
            [lib.testing.make_tensor(s, dtype=getattr(lib, dtype), device="cpu", **o).tolist() for s, o in shapes]
        )
    assert found[0] == found[1]
