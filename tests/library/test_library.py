"""``torch.library``: operators of one's own."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.library import (
    Library,
    custom_op,
    opcheck,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)


@pytest.fixture
def cube():
    @custom_op("tests::cube", mutates_args=())
    def cube(x: Tensor, times: float = 1.0) -> Tensor:
        return torch.from_numpy(times * x.numpy() ** 3)

    return cube


def formula(op) -> None:
    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.times = inputs[1]

    op.register_autograd(lambda ctx, g: (g * 3 * ctx.times * ctx.saved_tensors[0] ** 2, None), setup_context=setup)


def test_an_operator_is_opaque_until_it_has_a_formula(cube) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.ops.tests.cube(x, times=2.0)
    assert y.tolist() == [2, 16] and y.grad_fn.name() == "GeneratedBackwardFor_tests_cube_defaultBackward"
    with pytest.raises(RuntimeError, match=r"no autograd formula was registered\. Please use register_autograd"):
        y.sum().backward()
    formula(cube)
    cube(x, 2.0).sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert not cube(x.detach()).requires_grad


def test_second_derivatives_go_through_the_formula(cube) -> None:
    formula(cube)
    x = torch.tensor([1.0, 2.0], requires_grad=True, dtype=torch.float64)
    assert torch.autograd.gradcheck(cube, (x, 2.0)) and torch.autograd.gradgradcheck(cube, (x, 2.0))


def test_lists_several_results_and_arguments_by_name() -> None:
    @custom_op("tests::many", mutates_args=())
    def many(xs: list[Tensor], by: int, *, shift: float | None = None) -> tuple[Tensor, list[Tensor]]:
        return sum(xs) * by, [x + (shift or 0) for x in xs]

    def setup(ctx, inputs, output, keyword_only_inputs):
        assert inputs[1] == 3 and keyword_only_inputs == {"shift": 1.0} and len(output[1]) == 2
        ctx.needs = ctx.needs_input_grad

    def backward(ctx, g, gs):
        assert ctx.needs == ([True, False], False)
        return [3 * g + gs[0], None], None

    many.register_autograd(backward, setup_context=setup)
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    total, parts = many([x, y], 3, shift=1.0)
    (total.sum() + 10 * parts[0].sum()).backward()
    assert x.grad.tolist() == [13, 13] and parts[1].tolist() == [2, 2]
    schema = "tests::many(Tensor[] xs, SymInt by, *, float? shift=None) -> (Tensor, Tensor[])"
    assert str(torch.ops.tests.many.default._schema) == schema


def test_what_a_kernel_writes_is_counted_and_needs_no_formula() -> None:
    @custom_op("tests::add_into", mutates_args={"x"})
    def add_into(x: Tensor, y: Tensor) -> None:
        x.detach().numpy()[...] += y.numpy()

    x = torch.zeros(2)
    assert add_into(x, torch.ones(2)) is None and x.tolist() == [1, 1] and x._version == 1
    with pytest.raises(RuntimeError, match="non-functional"):
        add_into.register_autograd(lambda ctx: None)
    h = torch.ones(2, requires_grad=True) * 1
    y = h.exp().log() * h
    add_into(h, torch.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()


def test_results_share_no_memory_with_arguments() -> None:
    same = custom_op("tests::same", lambda x: x[:1], mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="may not alias"):
        same(torch.ones(2))


def test_vmap_runs_samples_or_the_rule(cube) -> None:
    x = torch.arange(6.0).view(3, 2)
    assert torch.vmap(cube)(x).equal(x**3)
    seen = []

    def rule(info, in_dims, x, times):
        seen.append((info.batch_size, in_dims))
        return cube(x, times), in_dims[0]

    register_vmap("tests::cube", rule)
    assert torch.vmap(cube, in_dims=1, out_dims=1)(x).equal(x**3) and seen == [(2, (1, None))]
    formula(cube)
    slopes = torch.vmap(torch.func.grad(lambda row: cube(row).sum()))(x)
    assert slopes.equal(3 * x**2)


def test_opcheck_finds_what_does_not_agree(cube) -> None:
    x = torch.ones(2)
    with pytest.raises(torch.library.OpCheckError, match="no fake"):
        opcheck(cube, (x,))
    register_fake("tests::cube", lambda x, times=1.0: x.new_empty(3))
    with pytest.raises(torch.library.OpCheckError, match=r"its fake says .* \(3,\)"):
        opcheck(cube, (x,))
    cube.register_fake(lambda x, times=1.0: torch.empty_like(x))
    assert set(opcheck(cube, (x,)).values()) == {"SUCCESS"}
    with pytest.raises(torch.library.OpCheckError, match="register_autograd"):
        opcheck(cube, (x.requires_grad_(),))
    found = opcheck(cube, (x,), raise_exception=False)
    assert "no formula" not in found and str(found["test_autograd_registration"]).count("register_autograd")
    liar = custom_op("tests::liar", lambda x: x.mul_(2).clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(torch.library.OpCheckError, match="Argument x is not defined as mutable but was mutated"):
        opcheck(liar, (torch.ones(2),))


def test_a_library_declares_and_implements() -> None:
    library = Library("tests_declared", "DEF")
    library.define("scaled(Tensor x, int by=2, *, Tensor? plus=None) -> Tensor")
    library.define("scaled.float(Tensor x, float by) -> Tensor")
    scaled = torch.ops.tests_declared.scaled
    with pytest.raises(
        NotImplementedError, match="Could not run 'tests_declared::scaled' with arguments from the 'CPU'"
    ):
        scaled(torch.ones(1))
    library.impl("scaled", lambda x, by=2, plus=None: x * by if plus is None else x * by + plus, "CPU")
    register_kernel("tests_declared::scaled.float", "cpu", lambda x, by: x * by + 100)
    x = torch.ones(1, requires_grad=True)
    assert scaled(x).item() == 2 and scaled(x, 3, plus=x).item() == 4 and scaled(x, 0.5).item() == 100.5
    assert scaled(x).requires_grad  # a kernel of differentiable operators is looked into
    assert scaled.overloads() == ["default", "float"]
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("tests_declared", "DEF")
    library._destroy()
    assert not hasattr(torch.ops.tests_declared, "scaled")


def test_define_impl_and_autograd_by_name() -> None:
    torch.library.define("tests_named::half", "(Tensor x) -> Tensor")
    torch.library.impl("tests_named::half", "cpu", lambda x: torch.from_numpy(x.detach().numpy() / 2))
    register_autograd("tests_named::half", lambda ctx, g: g / 2)
    x = torch.ones(2, requires_grad=True)
    torch.ops.tests_named.half(x).sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("call, message", [
    (lambda f: f(3), "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
    (lambda f: f(), "missing value for argument 'x'"),
    (lambda f: f(torch.ones(1), 1.0, 2), "at most 2"),
    (lambda f: f(torch.ones(1), scale=1), "Unknown keyword argument 'scale'"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_named(cube, call, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(cube)


def test_annotations_that_say_too_little() -> None:
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        custom_op("tests::bare", lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="my::sin"):
        custom_op("bare", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="no argument that is known"):
        torch.library.define("tests::odd", "(Tensr x) -> Tensor")


def test_names_of_operators() -> None:
    aten = torch.ops.aten
    assert aten.add.Tensor(torch.ones(1), 2).item() == 3 and aten.add.Tensor is aten.add.Tensor
    assert aten.alias.default(torch.ones(1)).item() == 1 and aten.add_(torch.ones(1), 2).item() == 3
    assert hash(aten._pin_memory.default) and not hasattr(aten, "nonesuch")
    torch.library.define("tests::copied", "(Tensor x) -> Tensor")
    for op in (aten.mm, aten.mm.default, torch.ops.tests.copied, torch.ops.tests.copied.default):
        assert copy.deepcopy(op) is op is pickle.loads(pickle.dumps(op))
    with pytest.raises(NotImplementedError, match="known by name alone"):
        aten._pin_memory(torch.ones(1))
    with pytest.raises(OSError, match="compiled operators"):
        torch.ops.load_library("/nowhere/else.so")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch.ops.tests.nothing
    assert np.allclose(aten.sin(torch.ones(2)), np.sin(1))


def test_tensors_by_keyword_alone_are_refused_where_a_formula_has_no_place_for_them() -> None:
    def scaled(x: Tensor, *, by: Tensor) -> Tensor:
        return x * by

    with pytest.raises(NotImplementedError, match=r"custom_op with kwarg-only Tensor args.*by position"):
        custom_op("tests::scaled_by_keyword", scaled, mutates_args=())
    torch.library.define("tests::defined_with_keyword", "(Tensor x, *, Tensor? by=None) -> Tensor")
    with pytest.raises(NotImplementedError, match=r"register_autograd with kwarg-only Tensor args.*by position"):
        register_autograd("tests::defined_with_keyword", lambda ctx, g: g)


def test_an_exclamation_mark_alone_says_that_an_argument_is_changed():
    torch.library.define("rushlight_marks::fill", "(Tensor x, Tensor! out) -> ()")
    schema = torch.ops.rushlight_marks.fill.default._schema
    assert schema.is_mutable and [a.written for a in schema.arguments] == [False, True]


def fallback(name: str, kernel: Callable[..., object], schema: str = "(Tensor x) -> Tensor") -> Callable[..., Any]:
    """An operator with a kernel for the CPU and nothing else."""
    library = torch.library.Library("rushlight_fallback", "FRAGMENT")
    library.define(name + schema)
    library.impl(name, kernel, "CPU")
    return getattr(torch.ops.rushlight_fallback, name).default


def unrecorded(x: Tensor) -> Tensor:
    return torch.tensor(np.sin(x.detach().numpy()))


def test_a_gradient_that_nothing_passes_on_is_warned_of() -> None:
    op, x = fallback("unrecorded", unrecorded), torch.ones(2, requires_grad=True)
    y = op(x)
    assert y.requires_grad and not op(torch.ones(2)).requires_grad
    with pytest.warns(UserWarning, match="unrecorded: an autograd kernel was not registered"):
        y.sum().backward()
    assert x.grad is None
    with torch.no_grad():
        assert not op(x).requires_grad


def test_a_gradient_that_a_kernel_has_recorded_is_warned_of_and_there() -> None:
    x = torch.ones(2, requires_grad=True)
    y = fallback("recorded", torch.sin)(x)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        y.sum().backward()
    assert torch.allclose(x.grad, x.detach().cos())


def test_the_warning_can_be_switched_off() -> None:
    assert torch._C._get_autograd_fallback_mode() == "warn"
    torch._C._set_autograd_fallback_mode("nothing")
    try:
        y = fallback("silent", unrecorded)(torch.ones(2, requires_grad=True))
        with pytest.raises(RuntimeError, match="does not require grad"):
            y.sum().backward()
    finally:
        torch._C._set_autograd_fallback_mode("warn")
    with pytest.raises(RuntimeError, match="mode must be one of"):
        torch._C._set_autograd_fallback_mode("loud")


def test_lists_of_results_are_warned_of_as_well() -> None:
    op = fallback("lists", lambda xs: [unrecorded(x) for x in xs], "(Tensor[] xs) -> Tensor[]")
    x = torch.ones(2, requires_grad=True)
    first, second = op([x, torch.ones(3)])
    assert first.requires_grad and second.requires_grad
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        assert torch.autograd.grad(first.sum(), x, allow_unused=True) == (None,)


def test_tensors_without_memory_go_to_what_says_shapes() -> None:
    meta = torch.ones(3, device="meta")
    bare = torch.library.custom_op("shapes::bare", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="There was no fake impl registered for <CustomOpDef"):
        bare(meta)
    bare.register_fake(lambda x: x.new_empty((*x.shape, 2)))
    assert bare(meta).shape == (3, 2)
    torch.library.define("shapes::cpu", "(Tensor x) -> Tensor")
    torch.library.impl("shapes::cpu", "cpu", lambda x: x + 1)
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel registered"):
        torch.ops.shapes.cpu(meta)
    torch.library.impl("shapes::cpu", "Meta", lambda x: x[None])
    assert torch.ops.shapes.cpu(meta).shape == (1, 3) and torch.ops.shapes.cpu(torch.ones(3)).shape == (3,)


def test_kernels_may_come_before_the_declaration() -> None:
    torch.library.impl("early::twice", ["CPU"], lambda x: 2 * x)
    torch.library.register_kernel("early::thrice", "cpu", lambda x: 3 * x)
    with torch.library._scoped_library("early", "FRAGMENT") as library:
        library.impl("shape", lambda x: x.new_empty(2), "Meta")
        for name in ("twice", "thrice", "shape"):
            with pytest.raises(AttributeError, match=name):
                getattr(torch.ops.early, name)
            library.define(f"{name}(Tensor x) -> Tensor")
        assert torch.ops.early.twice(torch.ones(2)).tolist() == [2, 2]
        assert torch.ops.early.thrice(torch.ones(2)).tolist() == [3, 3]
        assert torch.ops.early.shape(torch.ones(3, device="meta")).shape == (2,)
    with torch.library._scoped_library("early", "FRAGMENT") as library:
        library.impl("forgotten", lambda x: x, "CPU")
    with torch.library._scoped_library("early", "FRAGMENT") as library:
        library.define("forgotten(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="nothing was registered"):
            torch.ops.early.forgotten(torch.ones(1))
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.library.impl("aten::nonesuch", "CPU", lambda x: x)


def test_autocast_converts_what_an_operator_asks_for() -> None:
    seen: list[Any] = []

    @torch.library.custom_op("libtest::cast", mutates_args=())
    def cast(x: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
        seen.append((x.dtype, others[0].dtype, torch.is_autocast_enabled("cpu")))
        return x.clone()

    cast.register_autocast("cpu", torch.bfloat16)
    x = torch.ones(2)
    with torch.autocast("cpu"):
        assert cast(x, [x]).dtype == torch.bfloat16 and cast(x.double(), [x]).dtype == torch.float64
    assert cast(x, [x]).dtype == torch.float32
    assert seen[:2] == [(torch.bfloat16, torch.bfloat16, False), (torch.float64, torch.bfloat16, False)]


def test_a_kernel_can_be_set_aside() -> None:
    @torch.library.custom_op("libtest::aside", mutates_args=())
    def aside(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    aside.register_kernel("cpu", lambda x: x + 5)
    with aside.set_kernel_enabled("cpu", False):
        assert aside(torch.zeros(())) == 1
    with aside.set_kernel_enabled("other", False):
        assert aside(torch.zeros(())) == 5


def test_declarations_say_what_can_be_changed() -> None:
    def of_number(x: int) -> int: ...

    def of_pairs(x: tuple[int, int]) -> torch.Tensor: ...

    def nested(x: torch.Tensor, y: list[list[int]]) -> torch.Tensor: ...

    infer = torch.library.infer_schema
    for function, words, mutates in (
        (of_number, "only Tensors or collections of Tensors can be mutated", ("x",)), (of_number, "were not found in the custom op", ("y",)),
        (of_pairs, "We do not support Tuple inputs", ()), (nested, "unsupported type", ()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            infer(function, mutates_args=mutates)
    assert infer(of_number, mutates_args="unknown") == "(SymInt x) -> SymInt"
