"""Which modules run and what they cost: names and figures are PyTorch's."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.refusing import refused_in_words

import rushlight
from rushlight.utils._python_dispatch import TorchDispatchMode

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def room(t: Any, name: str) -> Any:
    if t is rushlight:
        return getattr(t.utils, name)
    return importlib.import_module(f"torch.utils.{name}")


def tracked(t: Any, requires_grad: bool) -> Any:
    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = t.nn.Linear(2, 2), t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Tanh())

        def forward(self, x):
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return self.b(self.a(x))

    seen: list[Any] = []
    net = Net()
    net.a.register_forward_hook(lambda module, args, out: seen.append(sorted(tracker.parents)))
    x = t.ones(1, 2, requires_grad=requires_grad)
    with room(t, "module_tracker").ModuleTracker() as tracker:
        y = net(x)
        for layer in (net.b[0], net.a):
            layer.weight.register_hook(lambda g: seen.append((sorted(tracker.parents), tracker.is_bw)))
        y.sum().backward()
        seen.append(sorted(tracker.parents))
        with t.no_grad():
            net(x)
    return seen, sorted(tracker.parents)


def formulas(t: Any) -> Any:
    f = room(t, "flop_counter")
    q, k, v, g = (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 7), (1, 2, 3, 7)
    return [f.mm_flop((2, 3), (3, 4)), f.addmm_flop((4,), (2, 3), (3, 4)), f.bmm_flop((5, 2, 3), (5, 3, 4)), refused_in_words(lambda: f.mm_flop((2, 3), (4, 4))),
            refused_in_words(lambda: f.bmm_flop((5, 2, 3), (4, 3, 4))), f.baddbmm_flop((5, 2, 4), (5, 2, 3), (5, 3, 4)),
            f.conv_flop_count([1, 3, 8, 8], [4, 3, 3, 3], [1, 4, 6, 6]), f.conv_flop_count([1, 4, 6, 6], [4, 3, 3, 3], [1, 3, 8, 8], True),
            f.sdpa_flop_count(q, k, v), f.sdpa_backward_flop_count(g, q, k, v), [f.get_suffix_str(n) for n in (5, 1500, 9999, 15000, 10**9, 10**16)],
            f.convert_num_with_suffix(10**7, "M"), f.convert_to_percent_str(1, 0), f.convert_to_percent_str(1, 3), f.normalize_tuple(3)]  # fmt: skip


def counted(t: Any, run: Callable[[], Any], **options: Any) -> Any:
    with room(t, "flop_counter").FlopCounterMode(display=False, **options) as counter:
        run()
    assert counter.get_total_flops() == sum(counter.flop_counts["Global"].values())
    return {module: {str(op): n for op, n in ops.items()} for module, ops in counter.get_flop_counts().items() if ops}


PRODUCTS = {
    "bmm": lambda t, a, b, c, m, n: t.bmm(a, b), "baddbmm": lambda t, a, b, c, m, n: t.baddbmm(c, a, b),
    "addmm": lambda t, a, b, c, m, n: t.addmm(c[0], m, n), "a vector": lambda t, a, b, c, m, n: m @ n[:, 0],
    "folded": lambda t, a, b, c, m, n: t.matmul(a, n), "broadcast": lambda t, a, b, c, m, n: a[:, None] @ b[None],
    "labels": lambda t, a, b, c, m, n: t.einsum("bij,bjk->bik", a, b), "layer": lambda t, a, b, c, m, n: t.nn.functional.linear(a, n.T, n[0]),
    "no bias": lambda t, a, b, c, m, n: t.nn.functional.linear(a, n.T), "frozen": lambda t, a, b, c, m, n: t.mm(m, n.detach()),
    "chain": lambda t, a, b, c, m, n: t.linalg.multi_dot([m, n, n.T]), "distances": lambda t, a, b, c, m, n: t.cdist(a, a),
    "second order": lambda t, a, b, c, m, n: t.autograd.grad((m @ n).pow(2).sum(), m, create_graph=True)[0],
    "convolution": lambda t, a, b, c, m, n: t.nn.functional.conv1d(c, a, padding=1, stride=2),
    "groups": lambda t, a, b, c, m, n: t.nn.functional.conv1d(t.cat([c, c], 1), t.cat([a, a]), padding=2, groups=2),
    "transposed": lambda t, a, b, c, m, n: t.nn.functional.conv_transpose1d(c, t.cat([a, b[:, :3, :4]]).transpose(0, 1), stride=2, output_padding=1),
}  # fmt: skip


@pytest.mark.parametrize("case", PRODUCTS)
def test_operations_of_products_forward_and_backward_are_pytorchs(case: str) -> None:
    def found(t: Any) -> Any:
        a, b, c, m, n = (t.ones(*s, requires_grad=True) for s in ((2, 3, 4), (2, 4, 5), (2, 3, 5), (3, 4), (4, 5)))
        return counted(t, lambda: PRODUCTS[case](t, a, b, c, m, n).sum().backward())

    assert found(rushlight) == found(torch)


@pytest.mark.parametrize("case", [*(k for k in PRODUCTS if k != "second order"), "of samples"])
def test_operations_are_counted_once_inside_of_another_mode_and_of_vmap(case: str) -> None:
    class Through(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    a, b, c, m, n = (rushlight.ones(*s, requires_grad=True) for s in ((2, 3, 4), (2, 4, 5), (2, 3, 5), (3, 4), (4, 5)))
    run = PRODUCTS.get(case, lambda *_: rushlight.vmap(rushlight.mm)(a, b))
    usual = counted(rushlight, lambda: run(rushlight, a, b, c, m, n).sum().backward())
    with Through():
        assert counted(rushlight, lambda: run(rushlight, a, b, c, m, n).sum().backward()) == usual
    if case == "of samples":
        assert counted(rushlight, lambda: run()) == {"Global": {"aten.bmm": 240}}


@pytest.mark.parametrize("case", ["products", "gradients by sample", "a Jacobian"])
def test_operations_inside_of_transformations_are_as_many_as_pytorchs(case: str) -> None:
    def found(t: Any) -> int:
        w, x, layer = t.ones(5, 4), t.ones(6, 4), t.nn.functional.linear
        runs = {
            "products": lambda: t.vmap(lambda v: layer(v, w))(x),
            "gradients by sample": lambda: t.vmap(t.func.grad(lambda w, v: layer(v, w).sum()), (None, 0))(w, x),
            "a Jacobian": lambda: t.func.jacrev(lambda v: layer(v, w))(x[0]),
        }
        return sum(
            counted(t, runs[case])["Global"].values()
        )  # PyTorch has mm where this library has bmm, and the reverse

    assert found(rushlight) == found(torch) > 0


def test_operations_by_modules_are_pytorchs_of_one_that_is_used_twice_too() -> None:
    def found(t: Any) -> Any:
        layer = t.nn.Linear(4, 4)
        net = t.nn.Sequential(layer, t.nn.Sequential(t.nn.Tanh(), layer), t.nn.Conv1d(3, 2, 1))
        return counted(t, lambda: net(t.ones(3, 4)).sum().backward())

    assert found(rushlight) == found(torch)


def own_formulas(t: Any) -> Any:
    """An operator of the user's with a formula, and operators of the package's that are given others."""
    counting, aten = room(t, "flop_counter"), t.ops.aten

    @t.library.custom_op("flops_of_tests::twice", mutates_args=())
    def twice(x: t.Tensor) -> t.Tensor:
        return (x.mm(x) * 2).clone()

    twice.register_fake(lambda x: x.new_empty(x.shape))
    target, x, y = t.ops.flops_of_tests.twice, t.ones(3, 3), t.ones(3, 3, requires_grad=True)
    out = [counted(t, lambda: (target(x), x.mm(x)))]

    @counting.register_flop_formula(target)
    def formula(x_shape, *args, out_shape=None, **kwargs):
        return 1000 * x_shape[0] + out_shape[1]

    out.append(counted(t, lambda: target(x)))
    out.append(counted(t, lambda: target(x), custom_mapping={target: lambda x, out_shape: 5}))
    raw = {aten.add: lambda x, y, out_shape: x.numel(), aten.mm: lambda a, b, out_shape: 7}
    out.append(counted(t, lambda: (x + x).mm(y).sum().backward(), custom_mapping=raw))
    out += [
        refused_in_words(lambda: counting.register_flop_formula(target)(formula))[0],
        refused_in_words(lambda: counting.register_flop_formula(3)(formula))[0],
    ]
    return out


def test_formulas_of_ones_own_count_as_pytorchs() -> None:
    assert own_formulas(rushlight) == own_formulas(torch)


def test_the_table_tells_modules_operators_and_parts() -> None:
    net = rushlight.nn.Sequential(rushlight.nn.Linear(40, 50), rushlight.nn.Linear(50, 20, bias=False))
    with rushlight.utils.flop_counter.FlopCounterMode(display=False) as counter:
        net(rushlight.ones(7, 40))
        rushlight.ones(7, 40).mm(rushlight.ones(40, 3))
    assert counter.get_table().splitlines() == [
        "Module              FLOP    % Total",
        "---------------  -------  ---------",
        "Global           43.680K    100.00%",
        " - aten.addmm    28.000K     64.10%",
        " - aten.mm       15.680K     35.90%",
        " Sequential      42.000K     96.15%",
        "  - aten.addmm   28.000K     64.10%",
        "  - aten.mm      14.000K     32.05%",
        "  Sequential.0   28.000K     64.10%",
        "   - aten.addmm  28.000K     64.10%",
        "  Sequential.1   14.000K     32.05%",
        "   - aten.mm     14.000K     32.05%",
    ]
    assert (
        "Sequential.0" not in counter.get_table(1)
        and len(rushlight.utils.flop_counter.FlopCounterMode().get_table()) > 30
    )


@pytest.mark.parametrize("requires_grad", [False, True])
def test_modules_are_known_while_they_run(requires_grad: bool) -> None:
    assert tracked(rushlight, requires_grad) == tracked(torch, requires_grad)


def test_formulas_give_pytorchs_figures() -> None:
    assert formulas(rushlight) == formulas(torch)
