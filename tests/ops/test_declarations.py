"""What declarations say of operators beside their forwards: rules are asked by name, and say what the operators do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tools.replaying import cases

import rushlight as torch
from rushlight.basics.events import OPERATOR, Observation
from rushlight.dispatch import families
from rushlight.dispatch.declare import OPS, Array
from rushlight.dispatch.keeping.rebuilt import WAYS
from rushlight.dispatch.plan import arguments
from rushlight.dispatch.registry import op
from rushlight.ops.loss.cross_entropy import cross_entropy_op
from rushlight.ops.loss.linear_cross_entropy import fused_op
from rushlight.transforms.batching import pointwise, rule_of


def forward_of_one(input: Array) -> Array:
    """Itself.  (*) -> (*)"""
    return input


class Shapes:
    """An observer that holds rules for shapes against what operators make, and notes which it has seen."""

    passive = False

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.wrong: list[str] = []

    def begin(self, kind: int, what: Any, inputs: Any, statics: Any) -> None:
        """Nothing is to be done before."""

    def end(self, kind: int, what: Any, inputs: Any, statics: Any, token: Any, result: Any) -> None:
        """Compare; inputs are promoted beforehand where operators run, so that dtypes are compared where all are alike."""
        if kind != OPERATOR or what.made is None or result is None:
            return
        arrays = [x._array if isinstance(x, torch.Tensor) else x for x in inputs]
        if what.sequence is not None and isinstance(arrays[what.sequence], (tuple, list)):
            arrays[what.sequence :] = [x._array for x in arrays[what.sequence]]
        made = what.made(arrays, statics)
        if made is None:
            return
        results = result if isinstance(result, (tuple, list)) else [result]
        self.seen.add(what.name)
        if [m.shape for m in made[: len(results)]] != [tuple(r.shape) for r in results]:
            self.wrong.append(f"{what.name}: {made}, but made {[tuple(r.shape) for r in results]}")


def test_rules_for_shapes_say_what_operators_make() -> None:
    watch = Shapes()
    for case in cases.table(("float64",)):
        tensors = case.tensors()
        with Observation(watch):
            try:
                case.run(*[t.requires_grad_() if t.is_floating_point() else t for t in tensors])
            except RuntimeError as error:  # weights of losses and running statistics have no gradient
                assert "is not differentiable with respect to argument" in str(error), case.name
                case.run(*case.tensors())
    assert not watch.wrong
    assert len(watch.seen) > 90 and {"mm", "softmax", "index", "max_pool", "sum"} <= watch.seen


@pytest.mark.parametrize("kind", ["shape", "work", "costs"])
def test_a_rule_that_asks_for_what_there_is_not_is_refused(kind: str) -> None:
    @op(name=f"with_a_wrong_{kind}")
    def declared(input: np.ndarray[Any, Any], dim: int) -> Any:
        """Nothing.  (*) -> (*)"""
        return input

    try:
        with pytest.raises(TypeError, match=rf"with_a_wrong_{kind}: a rule asks for 'axis'.*dim"):
            getattr(declared, kind)(lambda dim, axis: None)
    finally:
        del OPS[f"with_a_wrong_{kind}"]


def test_the_shapes_of_a_twin_ask_for_what_it_asks() -> None:
    record = op(name="with_wrong_shapes")(forward_of_one).op
    with pytest.raises(TypeError, match="with_wrong_shapes: the shapes of a twin ask for 'input'"):
        record.grad("input", raw=lambda g: g, shapes=lambda input, make: make.gradient(0))(lambda g: g)
    del OPS["with_wrong_shapes"]


class Making:
    """As `dispatch.rules.Making`, of arrays."""

    def __init__(self, *shapes: tuple[int, ...]) -> None:
        self.shapes = shapes  # of the inputs

    def array(self, shape: Any, dtype: Any, order: Any = None) -> Any:
        return np.zeros(shape, dtype)

    def gradient(self, position: int, order: Any = None) -> Any:
        return np.zeros(self.shapes[position], np.float32)

    def work(self, nbytes: int) -> None:
        assert nbytes >= 0

    def blocks(self, fn: Any, like: Any, *args: Any) -> None:
        assert fn(*args).shape == like.shape


def of_square_matrices() -> dict[str, dict[str, Any]]:
    """What formulas of decompositions ask for, of matrices (2, 2)."""
    A = np.array([[2, 1], [1, 3]], np.float32)
    U, S, Vh = np.linalg.svd(A)
    L, V = np.linalg.eigh(A)
    Q, R = np.linalg.qr(A)
    return {
        "svd": {"gs": [U, S, Vh], "U": U, "S": S, "Vh": Vh, "full_matrices": False},
        "eigh": {"gs": [L, V], "L": L, "V": V},
        "qr": {"g_Q": Q, "g_R": R, "Q": Q, "R": R, "mode": "reduced"},
        "cholesky": {"g": A, "out": np.linalg.cholesky(A), "upper": False},
        "det": {"g": np.ones((), np.float32), "A": A, "out": np.asarray(np.linalg.det(A))},
    }


def of_kernels() -> dict[str, dict[str, Any]]:
    """What formulas ask for whose kernels copy what is spread, or work in blocks, and the shapes of their inputs."""
    rng = np.random.default_rng(0)

    def some(*shape: int) -> Any:
        return rng.random(shape, np.float32)

    def spread(*shape: int) -> Any:
        return np.broadcast_to(np.ones((), np.float32), shape)

    images, points, row = some(1, 4, 5, 5), some(2, 1, 6), some(4)
    return {
        "cdist": {"g": spread(3, 4), "x1": some(3, 2), "x2": some(4, 2), "out": some(3, 4), "p": 2.0, "product": True,
                  "needs": (True, True), "inputs": ((3, 2), (4, 2))},
        "pdist": {"g": spread(3), "input": some(3, 2), "out": some(3), "p": 2.0, "inputs": ((3, 2),)},
        "logcumsumexp": {"g": spread(3, 2), "input": some(3, 2), "out": some(3, 2), "dim": 1, "inputs": ((3, 2),)},
        "local_response_norm": {"g": spread(*images.shape), "input": images, "size": 3, "alpha": 1e-4, "beta": 0.75, "k": 1.0,
                                "inputs": (images.shape,)},
        "native_group_norm": {"g": spread(*images.shape), "input": images, "weight": row, "bias": row, "mean": some(1, 2),
                              "rstd": some(1, 2), "needs": (True,) * 3, "inputs": (images.shape, (4,), (4,))},
        "native_batch_norm": {"g": spread(*images.shape), "input": images, "weight": row, "bias": row, "mean": row, "variance": row,
                              "eps": 1e-5, "needs": (True,) * 3, "inputs": (images.shape, (4,), (4,))},
        "native_dropout": {"g": spread(3, 4), "bits": np.array([7, 3], np.uint8), "p": 0.5, "order": None, "inputs": ((3, 4),)},
        "linear": {"g": spread(3, 4), "input": some(3, 2), "weight": some(4, 2), "inputs": ((3, 2), (4, 2))},
        "trilinear": {"g": some(3, 5), "input1": some(3, 2), "input2": some(3, 4), "weight": some(5, 2, 4), "needs": (True,) * 3,
                      "inputs": ((3, 2), (3, 4), (5, 2, 4))},
        "kl_div": {"g": np.ones((), np.float32), "target": some(3, 2), "input_shape": (3, 2), "reduction": "sum", "log_target": False,
                   "inputs": ((3, 2), (3, 2))},
        "cosine_similarity": {"g": some(3), "x1": some(3, 2), "x2": some(3, 2), "dim": 1, "eps": 1e-8, "needs": (True, True),
                              "inputs": ((3, 2), (3, 2))},
        "linear_cross_entropy": {
            "g": np.ones((), np.float32), "input": some(3, 2), "linear_weight": some(4, 2), "linear_bias": some(4),
            "target": np.array([0, 3, 1]), "weight": None, "denominator": np.abs(some(3, 2)) + 1, "total": 3.0, "ignore_index": -100, "smoothing": 0.0,
            "rows": 2, "needs": (True,) * 3, "inputs": ((3, 2), (4, 2), (4,)),
        },
        "grid_points": {"g": spread(1, 4, 6), "input": images, "where": points, "input_shape": images.shape,
                        "how": ("bilinear", "zeros", False), "needs": (True, True), "inputs": (images.shape, points.shape)},
        "grid_nearest": {"g": spread(1, 4, 6), "where": points, "input_shape": images.shape, "inputs": (images.shape,)},
        "native_batch_norm_eval": {"g": spread(*images.shape), "input": images, "weight": row, "mean": row, "variance": row,
                                   "eps": 1e-5, "needs": (True,) * 3, "inputs": (images.shape, (4,), (4,))},
        "native_layer_norm": {"g": spread(3, 4), "input": some(3, 4), "weight": row, "bias": row, "mean": some(3), "rstd": some(3),
                              "k": 1, "needs": (True,) * 3, "inputs": ((3, 4), (4,), (4,))},
        "fused_rms_norm": {"g": spread(3, 4), "input": some(3, 4), "weight": row, "rstd": some(3), "k": 1, "needs": (True, True),
                           "inputs": ((3, 4), (4,))},
        "prelu_kernel": {"g": spread(2, 4, 99, 99), "input": some(2, 4, 99, 99), "weight": some(4, 1, 1), "weight_shape": (4, 1, 1), "needs": (True, True),
                         "inputs": ((2, 4, 99, 99), (4, 1, 1))},
        "linalg_vector_norm": {"g": spread(), "input": some(3, 4), "out": some(), "p": 3.0, "dim": None, "keepdim": False,
                               "inputs": ((3, 4),)},
        "glu": {"g": spread(3, 2), "input": some(3, 4), "dim": 1, "inputs": ((3, 4),)},
    }  # fmt: skip


def test_the_shapes_of_a_twin_are_those_that_it_makes() -> None:
    g, x = np.ones((2, 1), np.float32), np.ones((2, 3), np.float32)
    declared = {
        "slice": {"g": g, "input_shape": (2, 3), "index": (..., slice(0, 1))},
        "select": {"g": g[..., 0], "input_shape": (2, 3), "index": (..., 0)},
        "unbind": {"gs": [g[:, 0]] * 3, "input_shape": (2, 3), "dim": 1, "order": None},
        "scaled_dot_product_attention": {
            "g": x, "query": x, "key": x, "value": x, "mask": np.zeros((2, 2), np.float32), "lse": np.zeros((1, 1, 2), np.float32),
            "is_causal": False, "scale": 1.0, "groups": 1, "drop": None, "needs": (True,) * 4,
        },
        "embedding": {
            "g": x, "indices": np.array([1, 0]), "weight_shape": (2, 3), "padding_idx": -1, "by_freq": False, "sparse": False,
        },
        "embedding_bag": {
            "g": x, "scale": None, "indices": np.array([1, 0, 1]), "bag": np.array([0, 0, 1]), "weight_shape": (2, 3),
            "by_freq": False, "sparse": False,
        },
        **of_square_matrices(),
        **of_kernels(),
    }  # fmt: skip
    assert set(declared) == {name for name, op in OPS.items() for f in op.formulas if f.shapes is not None}
    for name, formula in ((key, f) for key in declared for f in OPS[key].formulas if f.shapes is not None):
        asked = declared[name]
        usual = ((2, 2) if name in of_square_matrices() else (2, 3), (2, 2), (2, 2), (2, 2))
        given = {**asked, "make": Making(*asked.get("inputs", usual))}
        made = formula.shapes(*(given[request] for request in arguments(formula.shapes)))
        real = formula.raw(*(asked[request] for request in formula.raw_requests))
        pairs = zip(made, real, strict=True) if formula.joint else [(made, real)]
        assert all((a.shape, a.dtype) == (b.shape, b.dtype) for a, b in pairs), name


def test_every_family_has_a_rule_and_an_operator() -> None:
    assert rule_of(OPS["exp"]) is pointwise.pointwise  # which loads the rules
    known = {name: family for name, family in vars(families).items() if isinstance(family, families.Family)}
    assert [name for name, family in known.items() if family.rule is None] == []
    used = {op.batch for op in OPS.values()}
    assert [name for name, family in known.items() if family not in used] == []
    with pytest.raises(RuntimeError, match="a second batching rule for: Slices added"):
        families.index_add.batched(lambda given: given)


def test_what_may_run_again_is_declared() -> None:
    assert OPS["softmax"].repeatable and OPS["exp"].repeatable
    assert not OPS["mm"].repeatable and not OPS["random_"].repeatable


def test_what_is_made_again_says_how() -> None:
    assert {each.behind for each in OPS.values()} == set(WAYS)
    for each in OPS.values():
        assert each.again or not (each.behind or each.cheap), each
        assert each.ufunc or each.into or not each.over, each  # else there is nothing that writes over the first input


def test_operators_have_the_names_that_policies_know() -> None:
    aten = torch.ops.aten
    assert aten._softmax.default.op is OPS["softmax"] is aten.softmax.int.op
    assert aten._softmax.default is not aten.softmax.default
    with pytest.raises(AttributeError, match="no attribute 'softened'"):
        _ = aten.softened


def test_a_record_is_closed() -> None:
    exp = OPS["exp"]
    with pytest.raises(AttributeError, match=r"operator exp: its record is closed, and 'cheap' cannot be set"):
        exp.cheap = True
    with pytest.raises(RuntimeError, match=r"operator exp: 'into' was declared before"):
        torch.exp.into(lambda x: None)
    assert not exp.cheap


def test_a_formula_for_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match=r"forward_of_one: a formula is for 'inpt', which is none of .*\['input'\]"):

        @op(grads={"inpt": lambda g: g})
        def forward_of_one(input: Array) -> Array:
            return input


def test_annotations_that_are_no_words_are_refused() -> None:
    def forward(input: Any) -> Any:
        return input

    forward.__annotations__ = {"input": Array}
    with pytest.raises(TypeError, match=r"operator forward: .* `from __future__ import annotations`"):
        op(grads={"input": lambda g: g})(forward)


def test_a_declaration_says_nothing_that_is_unknown() -> None:
    def forward(input: Any) -> Any:
        return input

    with pytest.raises(TypeError, match=r"operator forward: no declaration says \['cheep'\]; known are .*'cheap'"):
        op(cheep=True)(forward)
    assert "forward" not in OPS


def test_both_solutions_of_systems_are_known_by_name() -> None:
    assert OPS["solve"].shown == "linalg_solve_ex" and OPS["lu_solve"].shown == "linalg_lu_solve"


@pytest.mark.parametrize("operator", [cross_entropy_op, fused_op], ids=["cross_entropy", "linear_cross_entropy"])
def test_rules_for_shapes_say_what_losses_keep(operator: Any) -> None:
    logits, weight, target = np.ones((5, 4)), np.ones((4, 4)), np.zeros(5, np.int64)
    linear = operator is fused_op
    arrays = [logits, weight, None, target, None] if linear else [logits, target, None]
    statics = ("none", -100, 0.0, 5, False) if linear else ("none", -100, 0.0)
    results = operator.op.forward(*arrays, *statics)
    assert [m.shape for m in operator.op.made(arrays, statics)] == [np.shape(r) for r in results]
