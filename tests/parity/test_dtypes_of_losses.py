"""Losses of two dtypes, and of shapes and dtypes that they refuse: PyTorch's values, dtypes and classes of errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.parity.test_settings_of_calls import agree

pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]  # of shapes that broadcast
NAMES = ["soft_margin_loss", "huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss", "poisson_nll_loss",
         "hinge_embedding_loss", "multilabel_soft_margin_loss"]  # fmt: skip
SHAPES = [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_losses_of_two_dtypes_have_pytorchs_or_its_error(name: str, reduction: str) -> None:
    kinds = ["float32", "float64", "int64", "bool"] + ["bfloat16"] * (not name.startswith("multilabel"))
    for shapes, dtypes in itertools.product(SHAPES, itertools.product(kinds, repeat=2)):

        def call(t: Any, shapes: Any = shapes, dtypes: Any = dtypes) -> list[Any]:
            x, y = (t.ones(s, dtype=getattr(t, d)) for s, d in zip(shapes, dtypes, strict=True))
            return [getattr(t.nn.functional, name)(x, y, reduction=reduction)]

        agree(call)


@pytest.mark.parametrize("name", ["binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"])
@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_logits_that_are_integers_are_not_implemented(name: str, dtype: str) -> None:
    agree(lambda t: [getattr(t.nn.functional, name)(t.ones(2, dtype=getattr(t, dtype)), t.ones(2))])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_poisson_loss_of_integers_beside_half_precision_is_of_half_precision(
    full: bool, shape: tuple[int, ...]
) -> None:
    agree(lambda t: [t.nn.functional.poisson_nll_loss(t.ones((), dtype=t.float16), t.full(shape, 3), full=full)])


@pytest.mark.parametrize("targets", [[-100, -100], [-100, 1]])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
def test_gradients_of_cross_entropy_whose_targets_are_all_ignored_are_zero_at_every_level(
    targets: Any, weight: Any
) -> None:
    def call(t: Any) -> list[Any]:
        at, by_class = t.tensor(targets), None if weight is None else t.tensor(weight)
        x = t.arange(6.0).reshape(2, 3).cos()

        def loss(x: Any, at: Any) -> Any:
            return t.nn.functional.cross_entropy(x, at, weight=by_class)

        several = t.stack([at, t.tensor([-100, 2])])
        once, twice = t.func.grad(loss), t.func.jacrev(t.func.grad(loss))
        hessians = t.func.vmap(t.func.hessian(loss))
        whole = x.expand(2, 2, 3)
        return [
            once(x, at),
            twice(x, at),
            t.func.vmap(once)(whole, several),
            t.func.vmap(twice)(whole, several),
            hessians(whole, several),
        ]

    agree(call)


BOUNDS = [None, 1, 300, 2.5, True, (), (2,)]


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool", "float16", "float32"])
def test_clamp_between_a_number_and_a_tensor_takes_a_tensor_without_dimensions_for_a_number(dtype: str) -> None:
    for low, high, kind in itertools.product(BOUNDS, BOUNDS, ["int8", "bfloat16", "float64", "bool"]):

        def call(t: Any, bounds: Any = (low, high), kind: str = kind) -> list[Any]:
            x = t.tensor([0, 2]).to(getattr(t, dtype))
            given = [t.ones(b, dtype=getattr(t, kind)) if isinstance(b, tuple) else b for b in bounds]
            return [x.clamp(*given), x.clone().clamp_(*given)]

        agree(call)


@pytest.mark.parametrize("shapes", [*itertools.product([(), (1,), (2,), (2, 1)], repeat=2)])
@pytest.mark.parametrize("dim", [0, -1, -2])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_vecdot_sums_over_a_dimension_of_the_product(shapes: Any, dim: int, dtype: str) -> None:
    if all(len(s) == 1 for s in shapes) and dim == -2:
        return  # refused on purpose
    agree(lambda t: [t.linalg.vecdot(*(t.full(s, 2, dtype=getattr(t, dtype)) for s in shapes), dim=dim)])
