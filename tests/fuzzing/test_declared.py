"""Declared differences are recognized at the numbers that make them, and swallow no other."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace

import numpy as np
import pytest
from tools.fuzzing.comparing import Difference, hold
from tools.fuzzing.declared import DECLARED
from tools.fuzzing.declared_graphs import GRAPHS
from tools.fuzzing.declared_operators import OPERATORS, Triangle
from tools.fuzzing.observing import Seen
from tools.fuzzing.operands import agree, executed, reference_otherwise
from tools.fuzzing.program import Raised, Side, entering, run

import rushlight


def declared(where: str, reference: object, subject: object, *statements: str) -> bool:
    """Whether an entry recognizes that the sides differ so at the end of a program."""
    found = Difference(where, "value", np.asarray(reference), np.asarray(subject), list(statements), tolerance=1e-9)
    return any(entry.applies(found) for entry in (*DECLARED, *OPERATORS))


pytestmark = pytest.mark.filterwarnings("ignore")
NAN, INF = float("nan"), float("inf")
CHANGED = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
GRADIENT = "g2 = torch.autograd.grad(r1.sum(), [a])"


@pytest.mark.parametrize(("call", "numbers", "reference", "at_it", "elsewhere"), [
    ("torch.lgamma(a)", "[-1.0, 2.5]", [1e32, 0.7], [INF, 0.7], [1e32, 0.9]),
    ("torch.digamma(a)", "[0.0, 2.5]", [1e32, 0.7], [INF, 0.7], [1e32, 0.9]),
    ("torch.acosh(a)", "[0.5, 2.5]", [1.0, 0.7], [NAN, 0.7], [1.0, 0.9]),
    ("torch.nn.functional.softsign(a)", "[float('inf'), 1.0]", [NAN, 0.25], [0.0, 0.25], [NAN, 0.3]),
    ("torch.selu(a)", "[float('nan'), 1.0]", [0.0, 1.05], [NAN, 1.05], [0.0, 1.0]),
    ("torch.sinc(a)", "[0.0, 1.0]", [0.0, 2.0], [-3.29, 2.0], [0.0, 1.0]),
    ("torch.polar(a, torch.ones(2))", "[-1.0, 1.0]", [0.3, 0.7], [-0.3, 0.7], [0.3, -0.7]),
    ("a.clamp(0.5)", "[float('nan'), 1.0]", [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]),
    ("torch.norm(a)", "[1e-30, 1.0]", [1.0, 1.0], [0.0, 1.0], [1.0, 0.5]),
    ("torch.logcumsumexp(a, 0)", "[1e4, 1.0]", [1.0, 0.5], [2.0, 0.5], None),
    ("torch.special.i1(a)", "[float('inf'), 1.0]", [NAN, 0.7], [INF, 0.7], [NAN, 0.8]),
    ("torch.special.i1e(a)", "[1e-30, 1.0]", [0.0, 0.7], [-1.0, 0.7], [0.0, 0.8]),
    ("torch.prod(a)", "[float('inf'), 1.0]", [NAN, 3.0], [1.0, 3.0], [NAN, 4.0]),
    ("torch.logit(a)", "[-0.0, 0.5]", [INF, 4.0], [-INF, 4.0], [INF, 2.0]),
    ("torch.nn.functional.binary_cross_entropy(a, torch.ones(2))", "[0.0, 0.5]", [1e24, 4.0], [1e12, 4.0], [1e24, 2.0]),
])  # fmt: skip
def test_an_entry_is_for_special_numbers_alone(call, numbers, reference, at_it, elsewhere):
    program = f"a = torch.tensor({numbers}, dtype=torch.float64).requires_grad_()", f"r1 = {call}", GRADIENT
    assert declared("g2[0]", reference, at_it, *program)
    assert elsewhere is None or not declared("g2[0]", reference, elsewhere, *program)


def test_second_derivatives_in_float16_are_declared_where_pytorchs_overflow_and_nowhere_else():
    program = ["a = torch.tensor([3.0, 2.0], dtype=torch.float16).requires_grad_()", "r1 = torch.atan2(a, a)",
               "g2 = torch.autograd.grad(r1.sum(), [a], create_graph=True)", "g3 = torch.autograd.grad(g2[0].sum(), [a])"]  # fmt: skip
    assert declared("g3[0]", [INF, 2.0], [9e4, 2.0], *program)
    assert not declared("g3[0]", [INF, 2.0], [9e4, 3.0], *program)
    assert not declared("g3[0]", [INF, 2.0], [9e4, 2.0], program[0].replace("16", "64"), *program[1:])


def test_the_tangent_of_a_product_in_another_dtype_is_declared_where_pytorch_has_it_after_a_cast():
    pytest.importorskip("torch")
    ad = "torch.autograd.forward_ad"
    program = ["a = 1j * torch.tensor([1.0], dtype=torch.complex128)",
               f"with {ad}.dual_level():\n    _d = torch.cumprod({ad}.make_dual(a, torch.full_like(a, 1)), dim=0, dtype=torch.float64)\n"
               f"    t2 = [{ad}.unpack_dual(p) for p in (_d,)]"]  # fmt: skip
    assert declared("t2[0][1]", np.zeros(1), np.ones(1), *program)
    assert not declared("t2[0][1]", np.zeros(1), np.full(1, 2.0), *program)


def test_tangents_of_a_masked_variance_are_declared_where_those_of_the_variance_agree():
    pytest.importorskip("torch")
    ad = "torch.autograd.forward_ad"
    program = ["a = torch.tensor([-2.0, 1.0, 8.0, 6.75, 8.5], dtype=torch.bfloat16)",
               f"with {ad}.dual_level():\n    t2 = {ad}.unpack_dual(torch.masked.var({ad}.make_dual(a, torch.ones_like(a)), mask=None))"]  # fmt: skip
    assert declared("t2[1]", 0.0, 0.03125, *program)
    assert not declared("t2[1]", 0.0, 0.03125, program[0], program[1].replace("var", "mean"))


def test_out_that_grows_over_an_operand_is_declared_where_pytorch_agrees_on_copies():
    pytest.importorskip("torch")
    program = ("a = torch.tensor([[True, True, False, False]])[..., ::2]", "b = torch.zeros(2, 1, dtype=torch.bool)",
               "o2 = a.detach()", "q3 = torch.bitwise_xor(a, b, out=o2)")  # fmt: skip
    assert declared("o2", [[True, False], [True, True]], [[True, False], [True, False]], *program)
    assert not declared("o2", [[True, False], [True, True]], [[True, True], [True, False]], *program)


def test_what_does_not_move_beside_infinities_is_declared_in_tangents_alone():
    inner = "a = torch.tensor([[float('inf'), 1.0]])", "t2 = torch.inner(a, torch.ones(1, 2))"
    assert declared("t2[0][1]", [[NAN]], [[INF]], *inner)
    program = "a = torch.tensor([[float('inf'), 1.0]])", "t2 = r1 = torch.matmul(a, torch.ones(2))"
    assert declared("t2[0][1]", [NAN], [INF], *program)
    assert not declared("r1", [NAN], [INF], *program)
    assert not declared("t2[0][1]", [1.0], [2.0], *program)


def test_the_gradient_of_a_power_of_two_that_scales_nothing_is_declared_and_of_something_is_not():
    for power, is_declared in ((1e30, True), (3.0, False)):
        program = "a = torch.tensor([])", f"b = torch.tensor([[{power}]])", "r1 = torch.ldexp(a, b)"
        assert declared("g2[0]", [[0.0]], [[NAN]], *program) is is_declared


def test_integers_that_wrap_around_are_told_from_wrong_ones():
    small = "a = torch.tensor([200, 200], dtype=torch.uint8)"
    assert declared("r1", 72.0, 200.0, small, "r1 = torch.trapezoid(a)")
    assert not declared("r1", 72.0, 201.0, small, "r1 = torch.trapezoid(a)")
    assert declared("r1", [-4], [4], "a = torch.tensor([-128], dtype=torch.int8)", "r1 = torch.gcd(a, 12)")
    assert not declared("r1", [4], [2], "a = torch.tensor([-128], dtype=torch.int8)", "r1 = torch.gcd(a, 12)")


def test_softsign_of_floating_point_numbers_is_no_difference_that_is_declared():
    call = "r1 = torch.nn.functional.softsign(a)"
    assert not declared("r1", [0.5], [0.6], "a = torch.tensor([1.0])", call)
    assert declared("r1", [1.0], [-0.99], "a = torch.tensor([-128], dtype=torch.int8)", call)


def test_gradients_that_were_broadcast_are_special_where_one_of_their_copies_is():
    inputs = "a = torch.tensor([2.0], requires_grad=True)", "b = torch.tensor([[1.0], [2.0]])"
    tangent = "t2 = torch.autograd.forward_ad.unpack_dual(torch.fmax(torch.autograd.forward_ad.make_dual(a, a), b))"
    assert declared("t2[1]", [[1.0], [0.5]], [[1.0], [1.0]], *inputs, tangent)
    assert not declared("t2[1]", [[1.0], [0.5]], [[0.5], [0.5]], *inputs, tangent)


SAVED = "modified by an inplace operation", "a view and its base or another view of its base has been modified inplace"
UNPACKED = "RuntimeError: Output of saved tensor unpack_hook for 'x', which sin saved, has shape [0]"
FURTHER = "[log.append(1) for _ in torch.__name__[5:]] + [1 / 0]"  # both raise here, and one has written more


@pytest.mark.parametrize(("row", "there", "here"), [
    *(("saved tensors that were changed", f"RuntimeError: ... {saved}", "ZeroDivisionError") for saved in SAVED),
    ("an unpack hook that gives", "RuntimeError: the size of tensor a", UNPACKED),
])  # fmt: skip
def test_a_log_differs_where_hooks_ran_before_one_raised_and_a_saved_tensor_was_refused(row, there, here):
    pytest.importorskip("torch")
    found = Difference("log", "value", [], [1, 1, 1, 1], ["log = []", FURTHER])
    assert not graphs(row, found)
    found.refusals = [(there, here)]
    assert graphs(row, found)
    found.statements = [*found.statements, "log.append(torch.__name__)"]  # which is another difference
    assert not graphs(row, found)
    found.refusals, found.statements = [(there, there)], found.statements[:2]
    assert not graphs(row, found)


def test_the_tangent_of_a_power_loses_its_imaginary_part_alone():
    power = "t2 = torch.func.jvp(lambda a: torch.pow(a, 1j), (torch.ones(1),), (torch.ones(1),))"
    assert declared("t2[1]", [0j], [1j], power)
    assert declared("t2[1]", [1 + 0j], [1 + 1e-8 + 1j], power, "b = torch.ones(1, dtype=torch.complex64)")
    assert not declared("t2[1]", [0j], [1 + 1j], power)


@pytest.mark.parametrize("shape", ["(1, 2, 2)", "(2, 2)"])
def test_a_product_of_former_values_is_what_a_view_of_the_operand_would_have_kept(shape):
    program = (f"v1 = torch.ones({shape}, dtype=torch.float64).requires_grad_()", "v2 = v1 @ v1", "v1.data = v2.detach()",
               "v2.sum().backward()")  # fmt: skip
    former, other = np.full(eval(shape), 4.0), np.full(eval(shape), 5.0)
    assert declared("v1.grad", former, 2 * former, *program)
    assert not declared("v1.grad", other, 2 * former, *program)


def test_what_a_hook_wrote_of_a_product_of_former_values_is_declared_as_the_gradient_is():
    program = ("log = []", "v1 = torch.ones((1, 2, 2), dtype=torch.float64).requires_grad_()", "v2 = v1 @ v1", "v1.data = v2.detach()",
               "v1.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.sum().item()))", "v2.sum().backward()")  # fmt: skip
    found = Difference("log[0]", "value", 16.0, 32.0, list(program))
    row = "the operand of three dimensions of `a @ b`"
    assert rows(row, found) and not rows(row, replace(found, reference=17.0))


@pytest.mark.parametrize(("maker", "is_declared"), [("m(v1)", True), ("v1.sin()", False)])
def test_a_hook_of_a_node_that_a_change_replaced_is_declared_of_layers_of_three_dimensions(maker, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "m = torch.nn.Linear(2, 2)", "v1 = torch.ones(1, 2, 2).requires_grad_()", f"v2 = {maker}",
               "h3 = v2.grad_fn.register_hook(lambda *g: log.append(1))", "v2.mul_(2)", "v2.sum().backward()"]  # fmt: skip
    assert graphs("names in the graph", Difference("log", "value", [], [1], program)) is is_declared


def test_what_changes_by_data_is_declared_where_nothing_else_differs():
    pytest.importorskip("torch")
    begin = "v1 = torch.ones(2, dtype=torch.float64).requires_grad_()", "v2 = v1 * 1", "v2.exp_()"
    apart = "len(torch.__name__)"  # is another number on each side
    there, here = [1.0, 1.0], [2.0, 2.0]
    assert declared("v1.grad", there, here, *begin, f"v2.data.add_({apart})", "v2.sum().backward()")
    assert not declared("v1.grad", there, here, *begin, "v2.data.add_(1)", f"(v2 * {apart}).sum().backward()")
    assert not declared(
        "v1.grad", there, here, *begin, "v2.data.add_(1)", "v2.sum().backward()"
    )  # both come to the same


@pytest.mark.parametrize("upper", [True, False])
def test_the_triangle_that_is_not_looked_at_makes_a_tangent_in_pytorch_alone(upper):
    torch = pytest.importorskip("torch")
    ad = "torch.autograd.forward_ad"
    program = ("a = torch.tensor([[2.0, 1.0], [1.0, 4.0]], dtype=torch.float64)", f"with {ad}.dual_level():\n    t2 = {ad}.unpack_dual("
               f"torch.triangular_solve(torch.ones(2, 1, dtype=torch.float64), {ad}.make_dual(a, a), upper={upper})[0])")  # fmt: skip
    there, half = torch.tensor([[2.0, 1.0], [1.0, 4.0]], dtype=torch.float64), torch.triu if upper else torch.tril
    found = -torch.linalg.solve(half(there), torch.ones(2, 1, dtype=torch.float64))
    assert declared("t2[1]", found + 1, found, *program)
    assert not declared("t2[1]", found + 1, found + 2, *program)


def test_what_a_view_is_made_of_is_declared_where_a_change_of_its_shape_alone_makes_the_difference():
    pytest.importorskip("torch")
    begin = (
        "v1 = (torch.arange(4.0).reshape(2, 2) * (1 + 1j)).requires_grad_()",
        "v2 = v1 * 1",
        "v3 = v2.conj()",
        "v2.t_()",
    )
    there, here = np.zeros((2, 2)), np.ones((2, 2))
    assert declared("v1.grad", there, here, *begin, "(v3 * v3).sum().abs().backward()")
    assert not declared("v1.grad", there, here, *begin, "(v3 * len(torch.__name__)).sum().abs().backward()")


def graphs(row: str, found: Difference) -> bool:
    """Whether an entry of this row recognizes a difference."""
    entries = [entry for entry in GRAPHS if entry.row.startswith(row)]
    assert entries
    return any(entry.applies(found) for entry in entries)


@pytest.mark.parametrize(("operator", "is_declared"), [("relu()", True), ("sin()", False)])
def test_a_checkpoint_that_runs_more_often_is_declared_where_a_graph_of_zeros_runs_it(operator, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "v1 = torch.ones(2).requires_grad_()", "def f(x):\n    log.append('run')\n    return x.sin()",
               "v2 = torch.utils.checkpoint.checkpoint(f, v1, use_reentrant=False)",
               f"g3 = torch.autograd.grad(v2.{operator}.sum(), [v1], create_graph=True)", "g3[0].sum().backward()"]  # fmt: skip
    found = Difference("log", "value", ["run"] * 3, ["run"] * 2, program)
    assert graphs("gradient of what is linear", found) is is_declared


@pytest.mark.parametrize(
    ("kept", "is_declared"), [("", True), ("torch.kept = v1 if 'rush' in torch.__name__ else 0", False)]
)
def test_what_outlives_its_names_is_declared_where_a_gradient_holds_it(kept, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(2).requires_grad_()", "(v1 * v1).sum().backward(create_graph=True)", kept]
    try:
        assert (
            graphs("the cycle that", Difference("v1", "alive", "freed", "alive", list(filter(None, program))))
            is is_declared
        )
    finally:
        for library in map(sys.modules.get, ("torch", "rushlight")):
            vars(library).pop("kept", None)


@pytest.mark.parametrize(("change", "is_declared"), [
    ("v3.addcmul_(r2, v1, value=0.5)", True), ("v3.addcmul_(v1, r2)", True), ("v3 *= v2", True), ("v2.mul_(v1)", False),
])  # fmt: skip
def test_a_change_by_itself_is_declared_whichever_operand_it_is_and_whatever_it_is_called(change, is_declared):
    pytest.importorskip("torch")
    begin = ["v1 = torch.ones(2).requires_grad_()", "r2 = v2 = v1 * 1", "v3 = v2.resolve_neg()"]
    program = [
        *begin,
        "v4 = r2.exp()" if "v2.mul_" not in change else "v4 = r2 * v2",
        change,
        "v3.sum().backward()" if is_declared else "v4.sum().backward()",
    ]
    found = Difference("statement 5", "leniency", Raised("refusal", CHANGED), "no error", program, step=5)
    entries = [entry for entry in DECLARED if entry.row.startswith("`x.mul_(x)` and the like")]
    assert any(entry.applies(found) for entry in entries) is is_declared


@pytest.mark.parametrize(("asked", "is_declared"), [("v2", True), ("v3", False)])
def test_a_change_that_pytorch_alone_refuses_is_declared_where_the_gradients_are_those_of_before_it(asked, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(2).requires_grad_()", "v2 = v1 * 1", "v3 = v1 * 3", "v4 = (v2 * v3).sum()", "v2.detach().numpy()[:] += 1",
               f"g5 = torch.autograd.grad(v4, [{asked}])"]  # fmt: skip
    found = Difference("statement 5", "leniency", Raised("refusal", CHANGED), "no error", program, step=5)
    assert graphs("saved tensors that were changed", found) is is_declared


def test_a_freed_product_that_is_to_run_again_is_declared_and_no_other_operator():
    row = "`backward(inputs=[y])` where `y` is the product"
    for node, call, is_declared in (("Bmm", "y.backward(inputs=[y])", True), ("Mm", "y.backward(inputs=[y])", False),
                                    ("Bmm", "y.backward()", False)):  # fmt: skip
        refusal = Raised("refusal", f"RuntimeError: ... second time. Here the graph was freed at {node}Backward0.")
        found = Difference("statement 0", "outcome", "no error", refusal, [call], step=0)
        assert graphs(row, found) is is_declared


def test_a_freed_graph_below_a_variance_is_declared_where_it_is_of_a_number_without_dimensions():
    refusal = Raised("refusal", "RuntimeError: Trying to backward through the graph a second time")
    for factor, is_declared in (("v1.sum()", True), ("v1 * 2", False)):
        program = [
            "v1 = torch.ones(2).requires_grad_()",
            f"v2 = {factor}",
            "v3 = v2.var(0)",
            "g4 = torch.autograd.grad(v3, v1)",
        ]
        found = Difference("statement 3", "outcome", "no error", refusal, program, step=3)
        assert any(entry.applies(found) for entry in OPERATORS) is is_declared


def test_tangents_of_powers_are_declared_by_imaginary_parts_and_at_zero():
    program = ("a = torch.tensor([1.0, 0.0])", "b = torch.tensor([1.5 + 1j, 1.5 + 1j])", "t2 = torch.pow(a, b)")
    assert declared("t2[0][1]", [1.5 + 0j, NAN], [1.5 + 1j, 0j], *program)
    assert not declared("t2[0][1]", [1.5 + 0j, NAN], [1.6 + 1j, 0j], *program)
    assert not declared("t2[0][1]", [NAN, 0j], [1.5 + 1j, 0j], *program)


@pytest.mark.parametrize(
    ("first", "is_declared"), [("v2.sum().backward(inputs=[v2])", True), ("v2.sum().backward()", False)]
)
def test_a_product_that_was_freed_is_declared_where_it_runs_once_nothing_is(first, is_declared):
    pytest.importorskip("torch")
    program = [
        "v1 = torch.ones(1, 2, 2).requires_grad_()",
        "v2 = v1 @ v1",
        first,
        "g5 = torch.autograd.grad([v2.sum()], [v1])",
    ]
    refusal = Raised("refusal", "RuntimeError: ... second time. Here the graph was freed at BmmBackward0.")
    found = Difference("statement 3", "outcome", "no error", refusal, program, step=3)
    assert graphs("`backward(inputs=[y])` where `y` is the product", found) is is_declared


@pytest.mark.parametrize(("begins", "is_declared"), [("v3", True), ("(v3 * 2)", False)])
def test_a_hook_of_several_tensors_is_declared_where_it_waits_for_the_one_that_backward_begins_with(
    begins, is_declared
):
    pytest.importorskip("torch")
    program = ["log = []", "v1 = torch.tensor(1.0).requires_grad_()", "v2 = v3 = v1 * 2",
               "torch.autograd.graph.register_multi_grad_hook([v2], lambda g: log.append('all'))", f"{begins}.backward()"]  # fmt: skip
    found = Difference("log", "value", [], ["all"], program)
    assert graphs("a multi-grad hook", found) is is_declared


SEVERAL = "torch.autograd.graph.register_multi_grad_hook([v2], lambda g: log.append('late'), mode='any')"


@pytest.mark.parametrize(("first", "second", "is_declared"), [
    ("v2.register_hook(lambda g: log.append('first'))", "v2.register_hook(lambda g: log.append('late'))", True),
    ("v2.register_hook(lambda g: log.append('first'))", "v3.register_hook(lambda g: log.append('late'))", False),
    ("v2.register_hook(lambda g: log.append('first'))", SEVERAL, True),
    (SEVERAL.replace("late", "first"), SEVERAL, True),
    ("v2.register_hook(lambda g: log.append(len(torch.__name__)))", SEVERAL, False),
])  # fmt: skip
def test_hooks_around_a_change_are_those_of_one_tensor_and_make_the_difference(first, second, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "v1 = torch.ones(2, 1).requires_grad_()", "v2 = v1 * 1", first, "v2.unsqueeze_(0)", "v3 = v2 * 1", second,
               "v2.sum().backward()"]  # fmt: skip
    found = Difference("log", "value", [], [1], program)
    assert graphs("hooks registered after `unsqueeze_`", found) is is_declared


@pytest.mark.parametrize(("twice", "is_declared"), [("jacfwd", True), ("jacrev", False)])
def test_the_third_derivative_of_a_norm_is_declared_where_another_way_to_write_it_has_one(twice, is_declared):
    pytest.importorskip("torch")
    program = ["x = torch.tensor([1.0, 2.0]).requires_grad_()", f"t1 = torch.func.{twice}(torch.func.jacrev(lambda x: x.norm()))(x)",
               "(t1 * t1).sum().backward()"]  # fmt: skip
    found = Difference("statement 2", "leniency", Raised("refusal", CHANGED), "no error", program, step=2)
    assert (
        any(entry.applies(found) for entry in DECLARED if entry.row.startswith("a third derivative of `norm`"))
        is is_declared
    )


def test_a_gradient_that_nobody_asks_for_is_declared_as_none_here_alone():
    program = ["v3 = torch.stack([v2, v1])", "v3.grad_fn.register_hook(lambda gi, go: log.append(gi))"]
    row = "what a hook of a node sees"
    assert graphs(row, Difference("log[0][1]", "value", 1.0, None, program))
    assert not graphs(row, Difference("log[0][1]", "value", None, 1.0, program))
    assert not graphs(row, Difference("log[0][1]", "value", 1.0, 2.0, program))


def test_what_is_saved_for_nothing_is_declared_where_there_are_views_that_were_not_recorded():
    refusal = Raised("refusal", "RuntimeError: Trying to backward through the graph a second time")
    pytest.importorskip("torch")
    here_alone = "retain_graph='rush' in torch.__name__"
    for mode, other, kept, is_declared in (("no_grad", "v2", "", True), ("enable_grad", "v2", "", False),
                                           ("no_grad", "v1", here_alone, False)):  # fmt: skip
        program = ["v1 = torch.ones(2).requires_grad_()", f"with torch.{mode}():\n    v2 = v1[:]",
                   f"v3 = torch.atan2(v2, {other})", f"v3.sum().backward({kept})", "v3.sum().backward()"]  # fmt: skip
        found = Difference("statement 4", "leniency", refusal, "no error", program, step=4)
        assert graphs("views that were not recorded", found) is is_declared


CHECKPOINTED = "def f(x):\n    log.append(1)\n    return x.pow(0)"


@pytest.mark.parametrize(("mode", "is_declared"), [("no_grad", True), ("enable_grad", False)])
def test_a_checkpoint_that_is_run_for_nothing_is_declared_for_views_that_were_not_recorded(mode, is_declared):
    pytest.importorskip("torch")
    call = "torch.utils.checkpoint.checkpoint(f, v2, use_reentrant=False)"
    program = ["log = []", "v1 = torch.ones(1).requires_grad_()", f"with torch.{mode}():\n    v2 = v1.view(1)",
               CHECKPOINTED, f"v3 = {call}", "v3.sum().backward()"]  # fmt: skip
    assert graphs("views that were not recorded", Difference("log", "value", [1, 1], [1], program)) is is_declared


@pytest.mark.parametrize(("given", "is_declared"), [("v2", True), ("v1, v1", False)])
def test_a_checkpoint_that_is_refused_is_declared_to_have_run_in_pytorch_for_changed_views(given, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "v1 = torch.ones(2, 2).requires_grad_()", "v2 = v1.unbind(1)[0]",
               "with torch.no_grad():\n    v2[None] += 2", CHECKPOINTED,
               f"v3 = torch.utils.checkpoint.checkpoint(f, {given}, use_reentrant=False)"]  # fmt: skip
    words = (
        "its base or another view of its base has been modified inplace" if given == "v2" else "f() takes 1 positional"
    )
    found = Difference("log", "value", [1], [], program, refusals=[(words, words)])
    assert graphs("`checkpoint`: an argument", found) is is_declared


@pytest.mark.parametrize(
    ("fails", "is_declared"), [("ctx.saved_tensors.sum()", True), ("raise AttributeError(torch.__name__)", False)]
)
def test_a_failure_behind_a_change_by_itself_is_declared_where_it_is_pytorchs_own_with_copies(fails, is_declared):
    pytest.importorskip("torch")
    function = (
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 1\n"
        f"    @staticmethod\n    def backward(ctx, g):\n        {fails}"
    )
    program = ["v1 = torch.ones(()).requires_grad_()", function, "r2 = F.apply(v1)", "r2.div_(r2)", "r2.backward()"]
    failure = Raised("AttributeError", "AttributeError: 'tuple' object has no attribute 'sum'")
    found = Difference("statement 4", "outcome", Raised("refusal", CHANGED), failure, program, step=4)
    entries = [entry for entry in DECLARED if entry.row.startswith("`x.mul_(x)` and the like")]
    assert any(entry.applies(found) for entry in entries) is is_declared


@pytest.mark.parametrize(("shape", "is_declared"), [("0", True), ("2", False)])
def test_a_backward_over_no_samples_is_declared_as_the_call_is(shape, is_declared):
    refusal = Raised("refusal", "IndexError: select(): index 0 out of range for tensor of size [0] at dimension 0")
    function = "class F(torch.autograd.Function):\n    generate_vmap_rule = True"
    program = [f"v1 = torch.ones({shape})", function, "v2 = torch.func.vmap(F.apply)(v1)", "v2.sum().backward()"]
    found = Difference("statement 3", "leniency", refusal, "no error", program, step=3)
    assert graphs("`vmap` of a custom function with `generate_vmap_rule` over no samples", found) is is_declared


@pytest.mark.parametrize(("then", "is_declared"), [("", True), ("(v1 * len(torch.__name__)).sum().backward()", False)])
def test_gradients_of_a_refused_backward_are_declared_where_the_sides_agree_without_it(then, is_declared):
    pytest.importorskip("torch")
    further_on_one_side = "[v1.sum().backward() for _ in torch.__name__[5:]] + [v1.backward()]"
    program = ["v1 = torch.ones(2).requires_grad_()", further_on_one_side, then]
    found = Difference("v1.grad", "grad", None, np.ones(2), list(filter(None, program)), refusals=[("", "")])
    entries = [entry for entry in DECLARED if entry.row == "gradients that a refused backward leaves"]
    assert any(entry.applies(found) for entry in entries) is is_declared


def test_programs_are_run_again_on_the_sides_that_differed():
    torch = pytest.importorskip("torch")
    import rushlight

    sides = Side("torch", torch, "def f():\n    return 1.0"), Side("rushlight", rushlight, "def f():\n    return 2.0")
    (found,) = hold(["v1 = f()", "v2 = 3.0"], *sides)
    assert (
        found.where == "v1"
        and not agree(found, lambda line: line)
        and agree(found, lambda line: line.replace("f()", "1.0"))
    )


@pytest.mark.parametrize(("change", "is_declared"), [("v2[:] = v1", True), ("v2.view(torch.int64).copy_(v1)", False),
                                                     ("v3[:] = v1", False)])  # fmt: skip
def test_integers_are_declared_to_require_grad_where_they_do_in_pytorch(change, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(()).requires_grad_()", "v2 = torch.zeros(2, dtype=torch.int64)", "v3 = torch.ones(2)"]
    found = Difference("v3", "requires_grad", True, False, [*program, change])
    entries = [entry for entry in OPERATORS if entry.row.startswith("comparisons and fills in place of integers")]
    assert any(entry.applies(found) for entry in entries) is is_declared


CUSTOM = """class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads({zeros})
        return x * 1
    @staticmethod
    def backward(ctx, *grads):
        {first}
        return None, grads[0]"""


@pytest.mark.parametrize(("first", "is_declared"), [
    ("log.append(grads)", True), ("log.append(torch.__name__)", False),
])  # fmt: skip
def test_a_backward_to_which_no_gradient_came_is_declared_where_it_makes_all_of_the_difference(first, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "v1 = torch.ones(2).requires_grad_()", CUSTOM.format(zeros=False, first=first),
               "v2 = F.apply(v1, v1)", "F.apply(v2, torch.ones(2)).sum().backward()"]  # fmt: skip
    found = Difference("log", "value", [[1.0], [None]], [[1.0]], program)
    assert graphs("a tensor hook where a gradient is None", found) is is_declared


@pytest.mark.parametrize(
    ("first", "is_declared"), [("log.append(1)", True), ("1 / (torch.__name__ != 'torch')", False)]
)
def test_what_is_freed_and_not_reached_is_declared_where_nothing_else_differs_once_it_is_kept(first, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "v1 = torch.ones(2).requires_grad_()", CUSTOM.format(zeros=True, first=first),
               "v2 = v1 * v1", "v2.sum().backward()", "F.apply(v2, v1).sum().backward()"]  # fmt: skip
    refusal = Raised("refusal", "RuntimeError: Trying to backward through the graph a second time")
    found = Difference("statement 5", "leniency", refusal, "no error", program, step=5)
    assert graphs("a second backward, where no gradient arrives", found) is is_declared


def test_what_is_a_view_in_pytorch_alone_is_declared_where_it_is_detached_in_place():
    refusal = Raised("refusal", "RuntimeError: Can't detach views in-place. Use detach() instead.")
    block = "with torch.inference_mode():\n    v2 = v1.clone()"
    row = [entry for entry in DECLARED if entry.row.startswith("`detach_()` of the result of a layer")]
    for made, is_declared in ((f"{block}\nv3 = torch.stack([v2])", True), ("v3 = torch.stack([v2])", False),
                              (f"{block}\nv3 = v2[:]", False), (f"{block}\nv4 = torch.stack([v2])", False)):  # fmt: skip
        found = Difference("statement 1", "leniency", refusal, "no error", [made, "v3.detach_()"], step=1)
        assert any(entry.applies(found) for entry in row) is is_declared


def test_a_gradient_that_a_refused_pass_left_is_declared_for_grad_as_for_backward():
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(2).requires_grad_()", "v2 = v1 * 1", "v3 = v2 * 2", "v2.retain_grad()", "v3.mul_(v3)",
               "g4 = torch.autograd.grad(v3.sum(), [v2, torch.ones(2, requires_grad=True)])"]  # fmt: skip
    found = Difference("v2.grad", "grad", None, np.ones(2), program, refusals=[("modified", "not been used")])
    row = [entry for entry in DECLARED if entry.row == "gradients that a refused backward leaves"]
    assert any(entry.applies(found) for entry in row)
    other = replace(found, statements=[*program, "(v2 * len(torch.__name__)).sum().backward()"])
    assert not any(entry.applies(other) for entry in row)


def rows(row: str, found: Difference) -> bool:
    """Whether an entry of this row recognizes a difference."""
    entries = [entry for entry in (*DECLARED, *GRAPHS, *OPERATORS) if entry.row.startswith(row)]
    assert entries
    return any(entry.applies(found) for entry in entries)


def test_it_is_known_which_side_runs_also_where_programs_are_run_again():
    torch = pytest.importorskip("torch")
    import rushlight

    sides = Side("torch", torch), Side("rushlight", rushlight)
    found = hold(["r1 = len(torch.__name__)"], *sides)[0]
    told: list[str] = []
    token = entering.set(lambda side: told.append(side.name))
    try:
        agree(found, lambda line: line)
        executed(found)
        reference_otherwise(found, lambda line: line)
    finally:
        entering.reset(token)
    assert told == ["torch", "rushlight"] * 2 + ["rushlight", "torch"]


@pytest.mark.parametrize(("here", "is_declared"), [([], True), ([2, 1], False), ([1, 2, 3], True)])
def test_hooks_that_a_refused_backward_called_are_declared_as_some_of_those_of_the_other_side(here, is_declared):
    pytest.importorskip("torch")
    further_on_one_side = "[log.append(1) for _ in torch.__name__[5:]] + [torch.tensor(1.0).backward()]"
    found = Difference("log", "value", [1, 2], here, ["log = []", further_on_one_side], refusals=[("", "")])
    assert rows("gradients that a refused backward leaves", found) is is_declared


@pytest.mark.parametrize(("program", "row", "is_declared"), [
    (["v1 = torch.ones(2).as_strided((2,), (9,)) if 'rush' not in torch.__name__ else torch.ones(2)", "v1.set_(torch.ones(2).storage())"],
     "`set_(storage)`", False),
    (["v1 = torch.arange(4.)[::2]", "v2 = torch.arange(2.) * 2", "v1.set_(v2.storage())", "v3 = v1 + 0"], "`set_(storage)`", True),
])  # fmt: skip
def test_what_lies_beyond_the_memory_is_declared_where_strides_that_fit_it_agree(program, row, is_declared):
    pytest.importorskip("torch")
    program = program if is_declared else [*program, "v3 = v1 * len(torch.__name__)"]
    assert rows(row, Difference("v3", "value", np.zeros(2), np.ones(2), program)) is is_declared


@pytest.mark.parametrize("chunk", ["unsafe_chunk", "chunk"])
def test_a_part_that_pytorch_takes_for_one_of_the_wholes_memory_is_declared_of_unsafe_ones(chunk):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(3, dtype=torch.complex64).requires_grad_() * 1", f"v2 = v1.{chunk}(2)[1]", "v3 = torch.view_as_real(v2)",
               "v3.fill_diagonal_(0.5)", "v3.sum().backward()"]  # fmt: skip
    refusal = Raised("refusal", "RuntimeError: setStorage: sizes [1], strides [3] ... are out of bounds")
    found = Difference("statement 4", "leniency", refusal, "no error", program, step=4)
    assert rows("a change of a view of numbers' parts", found) is (chunk == "unsafe_chunk")


@pytest.mark.parametrize(("made", "is_declared"), [("v1.unfold(0, 1, 1)[0, :, [True, True]]", True), ("v1 * 1", False)])
def test_contiguous_that_copies_in_pytorch_alone_is_declared_where_results_lie_otherwise(made, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones((1, 2, 2), dtype=torch.float64).requires_grad_()", f"v2 = {made}",
               "v3 = v2.contiguous()", "v2.exp_()", "v3[0] = 0.5", "v2.sum().backward()"]  # fmt: skip
    refusal = Raised("refusal", "RuntimeError: one of the variables ... has been modified by an inplace operation")
    found = Difference("statement 5", "outcome", "no error", refusal, program, step=5)
    assert rows("strides of results of operands", found) is is_declared


@pytest.mark.parametrize(("twice", "is_declared"), [("", True), (", t * len(torch.__name__)", False)])
def test_contiguous_of_what_has_a_name_in_a_function_alone_is_declared_where_copies_agree(twice, is_declared):
    pytest.importorskip("torch")
    function = f"def f():\n    t = v2 + v1\n    with torch.no_grad():\n        return t.contiguous(){twice}"
    program = ["v1 = torch.ones(2, 3).requires_grad_()", "v2 = v1.t().contiguous().t()", function, "r = f()"]
    where, what = ("r[1]", "value") if twice else ("r", "requires_grad")
    assert rows("strides of results of operands", Difference(where, what, False, True, program)) is is_declared


@pytest.mark.parametrize(("part", "is_declared"), [("unsafe_chunk(2)[1]", True), ("unsafe_chunk(2)[0]", False)])
def test_a_view_of_a_part_that_got_other_memory_is_declared_where_it_lies_beyond_that(part, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(2).requires_grad_()", f"v2 = v1.{part}", "v3 = v2.squeeze()", "v2.data = v2.clone()",
               "v2.mul_(2)", "v4 = v3.sin()"]  # fmt: skip
    refusal = Raised("refusal", "RuntimeError: setStorage: ... that its base has been given: make ...")
    found = Difference("statement 5", "outcome", "no error", refusal, program, step=5)
    assert rows("a view of a part by `unsafe_chunk` that", found) is is_declared


@pytest.mark.parametrize(("shape", "is_declared"), [("(0, 1)", True), ("(1, 1)", False)])
def test_factors_of_two_dtypes_are_declared_where_the_product_has_no_elements(shape, is_declared):
    pytest.importorskip("torch")
    program = [
        f"v1 = torch.ones({shape}, dtype=torch.complex128)",
        "v2 = v1 @ torch.ones(1, 1, 1, dtype=torch.float64)",
    ]
    found = Difference("statement 1", "outcome", "no error", refusal_of(program), program, step=1)
    assert rows("dtypes that an operator does not compute with", found) is is_declared


def refusal_of(program):
    """What rushlight says of the last statement, whose words are the product's to change."""
    raised = run(program, Side("rushlight", rushlight)).outcomes[-1]
    assert isinstance(raised, Raised)
    return raised


@pytest.mark.parametrize("call", ["torch.linalg.cholesky(a)", "torch.linalg.inv(a)", "a.inverse()"])
@pytest.mark.parametrize(("shape", "is_declared"), [("(0, 5, 5)", True), ("(1, 5, 5)", False)])
def test_low_precision_is_declared_to_be_refused_where_there_is_nothing(call, shape, is_declared):
    values = "[]" if is_declared else "[1.0] * 25"
    program = [f"a = torch.tensor({values}, dtype=torch.bfloat16).reshape({shape})", f"r1 = {call}"]
    found = Difference("statement 1", "outcome", "no error", refusal_of(program), program, step=1)
    assert rows("dtypes that an operator does not compute with", found) is is_declared


@pytest.mark.parametrize(("further", "is_declared"), [("", True), (" * len(torch.__name__)", False)])
def test_a_third_derivative_of_a_product_with_a_zero_is_declared_where_the_product_written_out_has_it(
    further, is_declared
):
    pytest.importorskip("torch")
    program = ["x = torch.tensor([0.0, 0.0])", "y = torch.ones(1).requires_grad_()", "def f(x, y):\n    z = x * y\n    return z.prod()",
               "t3 = torch.func.jacfwd(torch.func.jacrev(f))(x, y)", f"(t3{further}).sum().backward()"]  # fmt: skip
    found = Difference("y.grad", "grad", np.array([NAN]), np.array([4.0]), program)
    assert rows("a third derivative of `prod`", found) is is_declared


@pytest.mark.parametrize(("inside", "is_declared"), [("torch.set_grad_enabled(True)", True), ("pass", False)])
def test_what_hooks_saw_of_a_function_in_inference_mode_is_declared_where_gradients_are_enabled_inside(
    inside, is_declared
):
    pytest.importorskip("torch")
    function = ("class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 1\n"
                "    @staticmethod\n    def backward(ctx, g):\n        return g")  # fmt: skip
    program = ["log = []", "x = torch.ones(1).requires_grad_()", function,
               f"with torch.inference_mode():\n    {inside}\n    t = F.apply(x)", "u = t * 0",
               "if u.requires_grad:\n    u.register_hook(lambda g: log.append(1))\n    u.sum().backward()"]  # fmt: skip
    assert rows("a custom function in inference mode", Difference("log", "value", [1], [], program)) is is_declared


@pytest.mark.parametrize(("dim", "is_declared"), [(0, True), (1, False)])
def test_the_second_derivative_of_products_of_one_number_is_declared_whatever_pytorchs_quotients_are(dim, is_declared):
    program = ["a = torch.tensor([[1e-30, 2.0]]).requires_grad_()", f"r1 = torch.prod(a, dim={dim})",
               "g2 = torch.autograd.grad(r1.sum(), [a], create_graph=True)", "g3 = torch.autograd.grad(g2[0].sum(), [a])"]  # fmt: skip
    refusal = Raised("refusal", "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn")
    found = Difference("statement 3", "outcome", "no error", refusal, program, step=3, made=[np.array([[4e28, 0.0]])])
    assert rows("gradient of what is linear in pieces", found) is is_declared


@pytest.mark.parametrize("further", ["", ", create_graph=True"])
def test_gradients_that_pytorch_leaves_sparse_are_declared_with_a_graph_alone(further):
    program = [
        "r1 = torch.nn.functional.embedding(b, a, sparse=True)",
        f"g2 = torch.autograd.grad(r1.sum(), [a]{further})",
    ]
    unreadable = Raised(
        "refusal", "TypeError: can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."
    )
    found = Difference("g2[0]", "value", unreadable, np.ones((1, 1)), program)
    assert rows("gradients of `embedding(sparse=True)`", found) is bool(further)


def seen(value):
    return Seen({"dtype": "torch.float32", "shape": np.shape(value), "value": np.array(value), "requires_grad": False})


@pytest.mark.parametrize(("twice", "is_declared"), [("", True), (" * len(torch.__name__)", False)])
def test_zeros_where_there_is_no_second_derivative_are_declared_of_what_is_linear_in_pieces(twice, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(2).requires_grad_()", "v2 = v1.relu()",
               "g3 = torch.autograd.grad([(v1 * v1).sum(), v2.sum()], [v1], create_graph=True)",
               f"g4 = torch.autograd.grad([(g3[0] * g3[0]){twice}.sum()], [v1, v2], allow_unused=True)"]  # fmt: skip
    row = "gradient of what is linear in pieces"
    found = Difference("g4", "value", [seen([1.0])], [seen([2.0])], program)
    assert not graphs(row, found)
    zeros = replace(found, where="g4[0]" if twice else "g4[1]", reference=seen([0.0, 0.0]), subject=None)
    assert graphs(row, zeros) is is_declared


@pytest.mark.parametrize(("factor", "is_declared"), [("0.0", True), ("3.0", False)])
def test_the_second_derivative_by_the_result_of_cumprod_is_declared_of_factors_of_which_one_is_0(factor, is_declared):
    pytest.importorskip("torch")
    program = [f"v1 = torch.tensor([{factor}, {factor}]).requires_grad_()", "v2 = v1.cumprod(0)",
               "g3 = torch.autograd.grad([v2.sum()], [v1], create_graph=True)",
               "g4 = torch.autograd.grad([g3[0].sum()], [v2], allow_unused=True)"]  # fmt: skip
    found = Difference("g4[0]", "value", seen([1.0]), seen([2.0]), program)
    assert graphs("the second derivative of `cumprod` by its result", found) is is_declared


@pytest.mark.parametrize(("then", "is_declared"), [("sqrt", True), ("cos", False)])
def test_a_root_of_a_negative_is_declared_where_the_sign_of_a_zero_chooses_it(then, is_declared):
    pytest.importorskip("torch")
    program = ["v1 = torch.complex(torch.ones(8), torch.zeros(8)).neg()", f"v2 = v1.{then}()"]
    there, here = np.full(8, 1j), np.full(8, -1j)
    assert declared("v2", there, here, *program) is is_declared
    assert not declared("v2", there, here, program[0], "v2 = v1.sqrt() * len(torch.__name__)")


@pytest.mark.parametrize(("changed", "is_declared"), [("return z.mul_(y)", True), ("return z.mul(y.item())", False)])
def test_a_change_in_place_of_a_tangent_of_all_samples_is_declared_where_pytorch_takes_it_out_of_place(
    changed, is_declared
):
    pytest.importorskip("torch")
    program = ["x, y = torch.ones(1), torch.ones(1)", f"def f(x, y):\n    z = torch.cat([x, y.reshape(1)])\n    {changed}",
               "t1 = torch.func.vmap(torch.func.jacfwd(f), in_dims=(None, 0))(x, y)"]  # fmt: skip
    refusal = Raised("refusal", "RuntimeError: vmap: inplace arithmetic(self, *extra_args) is not possible")
    found = Difference("statement 2", "leniency", refusal, "no error", program, step=2)
    assert rows("an in-place operator inside `vmap` around forward mode", found) is is_declared


@pytest.mark.parametrize(("shape", "more", "is_declared"), [
    ("1, 1, 2, 2", "", True), ("1, 2, 2", "", False), ("1, 1, 2, 2", " * len(torch.__name__)", False)])  # fmt: skip
def test_what_hooks_are_given_of_a_product_is_declared_of_four_dimensions(shape, more, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", f"v1 = torch.ones({shape}).requires_grad_()",
               f"with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append((t{more}).sum().item()), log.append(tuple(t.shape)), t)[2], lambda t: t):\n    v2 = v1 @ v1"]  # fmt: skip
    there, here = (1, 2, 2), (1, 1, 2, 2)
    found = Difference("log[0]" if more else "log[1]", "value", there, here, program)
    assert graphs("what saved-tensor hooks are given of a product", found) is is_declared


@pytest.mark.parametrize(("numbers", "is_declared"), [("0.0, 0.0", True), ("2.0, 3.0", False)])
def test_an_infinite_gradient_behind_cumprod_is_declared_where_a_factor_is_0(numbers, is_declared):
    pytest.importorskip("torch")
    program = [f"v1 = torch.tensor([{numbers}]).requires_grad_()", "v2 = v1.cumprod(0)", "(v2 ** 0.5).sum().backward()"]
    assert declared("v1.grad", [INF, 0.0], [NAN, NAN], *program) is is_declared
    assert not declared("v1.grad", [INF, 0.0], [NAN, 1.0], *program)


@pytest.mark.parametrize(("rows_of_it", "is_declared"), [("1:", True), ("0:", False)])
def test_an_index_beyond_nothing_is_declared_whatever_was_called_before(rows_of_it, is_declared):
    program = ["v1 = torch.ones(1, 1)", "try:\n    v1.index_fill_()\nexcept Exception:\n    pass", f"v2 = v1[{rows_of_it}]",
               "v2.index_add_(0, torch.tensor([5]), torch.ones(1, 1))"]  # fmt: skip
    refusal = Raised("refusal", "IndexError: index_add_(): index 5 is out of bounds for dimension 0 with size 0")
    found = Difference("statement 3", "outcome", "no error", refusal, program, step=3)
    assert rows("`index_add`, `index_copy`, `index_fill` of a tensor", found) is is_declared


@pytest.mark.parametrize(("change", "is_declared"), [("v2.zero_()", True), ("v1 * 1", False)])
def test_a_view_that_a_checkpoint_takes_to_no_operator_is_declared_where_operators_refuse_it(change, is_declared):
    pytest.importorskip("torch")
    program = ["def f(x):\n    return x", "v1 = torch.ones(1).requires_grad_()",
               "v2 = torch.utils.checkpoint.checkpoint(f, v1, use_reentrant=True)", f"with torch.no_grad():\n    {change}",
               "v3 = torch.utils.checkpoint.checkpoint(f, v2, use_reentrant=False)"]  # fmt: skip
    refusal = Raised(
        "refusal", "RuntimeError: Output 0 is a view and its base or another view of its base has been modified inplace"
    )
    found = Difference("statement 4", "outcome", "no error", refusal, program, step=4)
    assert graphs("`checkpoint`: an argument that no operator takes", found) is is_declared


@pytest.mark.parametrize(("made", "more", "is_declared"), [
    ("v2.as_strided((), ())", "", True), ("v2.sum()", "", False), ("v2.as_strided((), ())", " * len(torch.__name__)", False)])  # fmt: skip
def test_a_view_that_a_function_changed_and_saved_is_declared_where_no_view_makes_a_difference(made, more, is_declared):
    pytest.importorskip("torch")
    function = ("class F(torch.autograd.Function):\n    @staticmethod\n    def forward(x, y):\n        return x\n"
                "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        x, y = inputs\n"
                "        ctx.save_for_backward(y)\n        ctx.mark_dirty(x)\n"
                "    @staticmethod\n    def backward(ctx, g):\n        return ctx.saved_tensors[0], g")  # fmt: skip
    program = [function, "v1 = torch.ones(1, 1).double().requires_grad_()", "v2 = v1 + v1", f"v3 = {made}", "r4 = F.apply(v3, v3)",
               f"s5 = (v3 * v3{more}).sum()", "g6 = torch.autograd.grad(s5, [v3, r4, v1], create_graph=True)",
               "g6[2].sum().backward()"]  # fmt: skip
    row = "a custom function that changes a view in place and saves it"
    found = Difference("v1.grad", "value", np.full((1, 1), 20.0), np.full((1, 1), 16.0), program, tolerance=1e-9)
    assert graphs(row, found) is is_declared


@pytest.mark.parametrize(("mark", "is_declared"), [("ctx.mark_non_differentiable(output)", True), ("pass", False)])
def test_no_gradient_at_a_marked_output_is_declared_under_vmap(mark, is_declared):
    function = f"class F(torch.autograd.Function):\n    generate_vmap_rule = True\n    def setup_context(ctx, inputs, output):\n        {mark}"
    program = [
        function,
        "t1 = torch.func.vmap(F.apply)(v1)",
        "g2 = torch.autograd.grad(t1.sum(), [t1], allow_unused=True)",
    ]
    row = "`mark_non_differentiable` of a custom function with `generate_vmap_rule`"
    assert graphs(row, Difference("g2[0]", "value", seen([1.0]), None, program)) is is_declared
    assert not graphs(row, Difference("g2[0]", "value", None, seen([1.0]), program))


@pytest.mark.parametrize(("more", "is_declared"), [("", True), (" * len(torch.__name__)", False)])
def test_exponents_of_zeta_that_wrap_around_are_declared_where_numbers_that_do_not_agree(more, is_declared):
    pytest.importorskip("torch")
    program = ["a = torch.tensor([1.5], dtype=torch.float64).requires_grad_()", "b = torch.tensor([3], dtype=torch.uint8)",
               f"r1 = torch.special.zeta(b, a){more}", "g2 = torch.autograd.grad(r1.sum(), [a])"]  # fmt: skip
    assert declared("g2[0]", [90.0], [-1.1], *program) is is_declared


@pytest.mark.parametrize(("row", "values", "call", "other"), [
    ("gradient of `ldexp` by its first", (-128.0, 128.0), "torch.ldexp(a, torch.tensor([7], dtype=torch.int8))",
     "torch.ldexp(a, torch.tensor([7], dtype=torch.int8)) * len(torch.__name__)"),
    ("slopes of `xlogy` and `xlog1py` beside a number", (0.0, NAN), "torch.special.xlog1py(a, float('nan'))",
     "torch.special.xlog1py(a, 2.0) * len(torch.__name__)"),
])  # fmt: skip
def test_gradients_that_pytorch_has_of_numbers_are_declared_where_those_of_others_agree(row, values, call, other):
    pytest.importorskip("torch")
    for r1, is_declared in ((call, True), (other, False)):
        program = ["a = torch.tensor([0.0], dtype=torch.float64).requires_grad_()", f"r1 = {r1}",
                   "g2 = torch.autograd.grad(r1.sum(), [a])"]  # fmt: skip
        there, here = map(np.array, ([values[0]], [values[1]]))
        assert rows(row, Difference("g2[0]", "value", there, here, program, tolerance=1e-9)) is is_declared


@pytest.mark.parametrize(
    ("call", "is_declared"), [("torch.all(a, out=o)", True), ("torch.all(a * 1, out=o.zero_()).zero_()", False)]
)
def test_truth_in_bytes_is_declared_where_nan_makes_the_difference(call, is_declared):
    pytest.importorskip("torch")
    program = ["a = torch.tensor([float('nan'), 1.0])", "o = torch.zeros((), dtype=torch.uint8)", call]
    found = Difference("o", "value", np.uint8(0), np.uint8(1), program)
    assert rows("`all(out=...)` of bytes, of NaN", found) is is_declared


def test_orders_and_layouts_are_declared_where_they_make_the_difference():
    pytest.importorskip("torch")
    hooked = ["log = []", "v1 = torch.ones(1).requires_grad_()", "v2 = torch.ones(1, 1)",
              "with torch.autograd.graph.saved_tensors_hooks(lambda t: log.append(t.shape), lambda t: t):\n    v3 = v2 / v1"]  # fmt: skip
    assert declared("log[0]", [1], [1, 1], *hooked)
    assert not declared("log[0]", [1], [1, 1], *(line.replace(" / ", " * ") for line in hooked))
    shown = [
        "v1 = torch.arange(6.0).reshape(2, 3).t()",
        "v2 = v1 + torch.zeros(3, 2)",
        "v3 = v2.as_strided((6,), (1,), 0)",
    ]
    found = Difference("v3", "value", [0, 3, 1, 4, 2, 5], [0, 1, 2, 3, 4, 5], shown)
    assert any(entry.applies(found) for entry in OPERATORS)
    plain = replace(found, statements=["v1 = torch.ones(2, 2)", "v3 = v1.select(0, 1)"])
    assert not any(entry.applies(plain) for entry in OPERATORS)


def test_a_triangle_is_solved_by_method_too():
    for call, half in (("a.triangular_solve(b)", "a.triangular_solve(torch.triu(b, 0))"),
                       ("torch.triangular_solve(a, b, False)", "torch.triangular_solve(a, torch.tril(b, 0), False)")):  # fmt: skip
        assert ast.unparse(Triangle().visit(ast.parse(call))) == half


@pytest.mark.parametrize(("shape", "is_declared"), [((1, 2, 2), True), ((2, 2), False)])
def test_the_order_of_gradients_of_a_batched_product_is_declared_and_that_of_matrices_is_not(shape, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", f"v1 = torch.ones({shape}, requires_grad=True)", f"v2 = torch.ones({shape}, requires_grad=True)",
               "v1.register_hook(lambda g: log.append(1))", "v2.register_hook(lambda g: log.append(2))",
               "v3 = v2 @ v1", "v3.sum().backward()"]  # fmt: skip
    found = Difference("log", "value", [1, 2], [2, 1], program)
    assert graphs("the order in which parameters of one recurrent layer", found) is is_declared


@pytest.mark.parametrize(("index", "is_declared"), [("y.long()", True), ("0 if y > 0 else 1", False)])
def test_an_index_of_each_samples_own_is_declared_where_pytorch_asks_for_its_value(index, is_declared):
    refusal = Raised("refusal", "RuntimeError: vmap: It looks like you're either (1) calling .item() on a Tensor")
    program = ["x = torch.ones(2, 3)", "y = torch.ones(2)", f"def f(x, y):\n    return x[{index}] * 2",
               "t1 = torch.func.vmap(torch.func.grad(f))(x, y)"]  # fmt: skip
    found = Difference("statement 3", "leniency", refusal, "no error", program, step=3)
    assert graphs("an index that is a number of each sample's own", found) is is_declared


def test_the_cycle_of_a_second_graph_is_recognized_though_the_leaf_that_holds_it_has_lost_its_name():
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(0, dtype=torch.float64).requires_grad_()", "v4 = v1.as_strided((0,), (0,))", "del v1",
               "v4.sin().sum().backward(create_graph=True)"]  # fmt: skip
    found = Difference("v4", "alive", "freed", "alive", program)
    assert graphs("the cycle that `backward(create_graph=True)` makes", found)
    other = Difference("v4", "alive", "freed", "alive", [*program[:3], "v4.sin().sum().backward()"])
    assert not graphs("the cycle that `backward(create_graph=True)` makes", other)


@pytest.mark.parametrize(("hooked", "is_declared"), [("y", True), ("z", False)])
def test_hooks_of_the_node_of_a_layer_are_declared_and_those_of_another_are_not(hooked, is_declared):
    pytest.importorskip("torch")
    program = ["log = []", "m = torch.nn.Linear(3, 1).double()", "y = m(torch.ones(3, dtype=torch.float64))", "z = y * 1",
               f"{hooked}.grad_fn.register_hook(lambda gi, go: log.append(len(gi)))", "z.sum().backward()",
               f"log.append({'0' if is_declared else 'len(torch.__name__)'})"]  # fmt: skip
    assert graphs("names in the graph", Difference("log", "value", [1, 0], [3, 0], program)) is is_declared


@pytest.mark.parametrize(("made", "is_declared"), [("v2.view(torch.complex128)", True), ("v2[:]", False)])
def test_a_change_through_another_dtype_in_inference_mode_is_declared_where_a_copy_makes_no_difference(
    made, is_declared
):
    pytest.importorskip("torch")
    program = ["v1 = torch.ones(3, dtype=torch.complex128).requires_grad_()", "with torch.no_grad():\n    v2 = v1.expand((-1,))",
               f"with torch.inference_mode():\n    v3 = {made}\n    v3.mul_(1)"]  # fmt: skip
    found = Difference("v2", "is_leaf", True, "RuntimeError: modified inplace", program)
    assert graphs("`view(dtype)` of inference tensors", found) is is_declared


def test_a_gradient_that_a_late_hook_changed_is_declared_as_what_the_hook_wrote_is():
    pytest.importorskip("torch")
    program = ["x = torch.ones(2, 1).requires_grad_()", "y = x * 1", "y.register_hook(lambda g: (g,)[0])", "y.unsqueeze_(0)",
               "y.register_hook(lambda g: g * 0)", "g = torch.autograd.grad(y.sum(), [y])[0]"]  # fmt: skip
    found = Difference("g", "value", np.ones((1, 2, 1)), np.zeros((1, 2, 1)), program)
    assert graphs("hooks registered after `unsqueeze_`", found)


@pytest.mark.parametrize(("index", "is_declared"), [("1:2, 0::2", True), ("1:2", False)])
def test_hooks_of_the_node_of_an_index_are_declared_where_it_is_of_several_dimensions(index, is_declared):
    pytest.importorskip("torch")
    shape = "tuple(gi[0].shape)" if is_declared else "len(torch.__name__)"
    program = ["log = []", "x = torch.ones(2, 1).requires_grad_()", f"y = x[{index}]",
               f"y.grad_fn.register_hook(lambda gi, go: log.append({shape}))", "y.sum().backward()",
               f"log.append({'0' if is_declared else 'len(torch.__name__)'})"]  # fmt: skip
    assert graphs("names in the graph", Difference("log", "value", [1, 0], [2, 0], program)) is is_declared


AD = "torch.autograd.forward_ad"
HESSIAN = ["x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64).requires_grad_()",
           "def f(x):\n    return torch.renorm(x, 2, 0, 2.0).sum()", "t1 = torch.func.hessian(f)(x)",
           "(t1 * t1).sum().backward()"]  # fmt: skip
WRITTEN = ["x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)", "y = torch.tensor([[0.5, 3.0]], dtype=torch.float64)",
           f"with {AD}.dual_level():\n    d = {AD}.make_dual(x, y)\n    d.mul_(y)\n    t1 = {AD}.unpack_dual(d)[1]", "z = y * 2"]  # fmt: skip


@pytest.mark.parametrize(("row", "statements", "place"), [
    ("a third derivative of `norm` and `renorm`", HESSIAN, "statement 3"),
    ("a tangent given to `make_dual`", WRITTEN, "y"),
    ("forward mode of `logcumsumexp`", [f"with {AD}.dual_level():\n    x = torch.tensor([33.0, 66.0], dtype=torch.float64)\n"
                                        f"    d = {AD}.make_dual(x, x.clone())\n    t1 = {AD}.unpack_dual(d.logcumsumexp(0))[1]"], "t1"),
    ("gradients of `binary_cross_entropy` by its target",
     ["x = torch.tensor([1.0, 66.0], dtype=torch.float64)",
      "def f(x):\n    return torch.nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())",
      f"with {AD}.dual_level():\n    t1 = {AD}.unpack_dual(f({AD}.make_dual(x, x.clone())))[1]"], "t1"),
    ("the shape of what was viewed, changed in place afterwards",
     ["a = torch.complex(torch.ones(4), torch.ones(4)).requires_grad_()", "b = a * 1", "c = torch.view_as_real(b)",
      "b.as_strided_((), ())", "s = (c * 2).sum()", "g = torch.autograd.grad(s, [b], torch.ones(()))"], "g[0]"),
])  # fmt: skip
def test_what_pytorch_makes_of_its_own_memory_is_declared(row, statements, place):
    torch = pytest.importorskip("torch")
    sides = Side("torch", torch), Side("rushlight", rushlight)
    found = [
        d for d in hold(statements, *sides) if d.where == place and d.what in ("outcome", "leniency", "value", "shape")
    ]
    entries = [entry for entry in (*DECLARED, *OPERATORS) if entry.row.startswith(row)]
    assert found and all(any(entry.applies(d) for entry in entries) for d in found)


def test_what_has_another_cause_is_not_declared_beside_them():
    pytest.importorskip("torch")
    saved = Raised("refusal", "RuntimeError: one of the variables ... has been modified by an inplace operation")
    program = [
        *HESSIAN[:3],
        "y = x.exp()",
        "y.data.add_(1)",
        "z = y.detach().numpy()",
        "y.add_(1)",
        "y.sum().backward()",
    ]
    refused = Difference("statement 7", "leniency", saved, "no error", program, step=7)
    elsewhere = Difference("x", "value", np.asarray([[1.0, 2.0]]), np.asarray([[1.0, 3.0]]), WRITTEN, tolerance=1e-9)
    sums = Difference("t1", "value", np.asarray([1.0, 2.0]), np.asarray([1.0, 3.0]),
                      ["x = torch.ones(2, dtype=torch.float64)", f"with {AD}.dual_level():\n    t1 = x.logcumsumexp(0)"], tolerance=1e-9)  # fmt: skip
    rows = "a third derivative of `norm`", "a tangent given", "forward mode of `logcumsumexp`"
    for row, found in zip(rows, (refused, elsewhere, sums), strict=True):
        assert not any(entry.applies(found) for entry in DECLARED if entry.row.startswith(row)), row


def test_gradients_that_a_hook_puts_into_lists_are_declared_like_others():
    seen, program = Seen({}), ["v6 = torch.cat([v4, v1])", "h8 = v6.grad_fn.register_hook(print)"]
    for reference, is_declared in (([seen], True), ([[]], True), (["no gradient"], False)):
        found = Difference("log[0][0][0]", "value", reference, None, program)
        assert graphs("what a hook of a node sees of gradients", found) is is_declared
