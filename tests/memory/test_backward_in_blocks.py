"""Gradients of elementwise operators on large arrays: no array of their size beside them, and the same bits."""

import numpy as np
import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory
from rushlight.dispatch.declare import OPS
from rushlight.dispatch.keeping import blocks
from rushlight.ops.index import index_select
from rushlight.ops.index.raw_indices import accumulate_at

F = torch.nn.functional
SIZE = (2, 1 << 10, 1 << 10)  # twice as large as what goes in blocks


def between(low, high):
    return lambda: torch.rand(SIZE) * (high - low) + low


FORMS = {
    "asin": (torch.asin, between(-0.9, 0.9)),
    "atan": (torch.atan, between(-3, 3)),
    "tan": (torch.tan, between(-1, 1)),
    "erf": (torch.erf, between(-2, 2)),
    "logit": (torch.logit, between(0.1, 0.9)),
    "cube": (lambda x: x**3, between(-2, 2)),
    "root": (lambda x: x**0.3, between(0.1, 2)),
    "softsign": (F.softsign, between(-2, 2)),
    "hardsigmoid": (F.hardsigmoid, between(-4, 4)),
    "rsqrt": (torch.rsqrt, between(0.1, 2)),
}


def extra(fn, *inputs):
    """The bytes that a backward takes beside gradients, in units of the first input."""
    for x in inputs:
        x.requires_grad_()
    out = fn(*inputs)
    g = torch.ones(out.shape)
    memory.reset_peak()
    before = memory.current()
    out.backward(g)
    return (memory.peak() - before - sum(x.grad.nbytes for x in inputs)) / inputs[0].nbytes


@pytest.mark.parametrize("name", [pytest.param(k, marks=native) if k == "logit" else k for k in FORMS])
def test_backward_makes_no_array_of_the_gradient_s_size_beside_it(name):
    fn, make = FORMS[name]
    assert extra(fn, make()) < 0.4


def gradients(fn, inputs, g):
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(fn(*leaves), leaves, g)


@pytest.mark.parametrize("name", FORMS)
def test_blocks_have_the_bits_of_the_whole(name, monkeypatch):
    fn, make = FORMS[name]
    x, g = make(), torch.randn(SIZE)
    for layout in (lambda t: t, lambda t: t.mT, lambda t: t.transpose(0, 2)):
        (found,) = gradients(fn, [layout(x)], layout(g))
        (expected,) = gradients(fn, [x], g)
        assert found.stride() == layout(expected).stride()
        assert torch.equal(found, layout(expected))
    parts = [
        gradients(fn, [x.view(-1, 1 << 10)[i : i + 64]], g.view(-1, 1 << 10)[i : i + 64])[0] for i in range(0, 2048, 64)
    ]
    (expected,) = gradients(fn, [x], g)
    assert np.array_equal(torch.cat(parts).numpy().view(np.int32), expected.view(-1, 1 << 10).numpy().view(np.int32))


@pytest.mark.parametrize("shape", [(1 << 10,), (1 << 10, 1), (2, 1, 1), (1, 1, 1), ()])
def test_operands_that_broadcast_have_the_bits_of_the_whole(shape, monkeypatch):
    x, y, g = between(0.5, 2)(), torch.rand(shape) + 0.5, torch.randn(SIZE)
    found = gradients(torch.div, [x, y], g)
    monkeypatch.setattr(blocks, "_goes_with", lambda like, x: False)
    expected = gradients(torch.div, [x, y], g)
    assert all(map(torch.equal, found, expected))


def test_a_quotient_by_rows_makes_one_array_beside_its_gradients():
    assert (
        extra(torch.div, between(-1, 1)(), torch.rand(1 << 10) + 0.5) < 1.4
    )  # what is summed for the divisor; it was 2


@pytest.mark.parametrize(("name", "target"), [("mul", "input"), ("mul", "other"), ("div", "input"), ("lerp", "end")])
def test_a_formula_that_makes_its_gradient_alone_goes_in_no_blocks(name, target):
    (formula,) = (f for f in OPS[name].formulas if f.targets == (target,))
    assert not formula.goes_in_blocks(OPS[name])  # they would be made beside it, and copied


@native
@pytest.mark.parametrize("weights", [1, 16])
def test_prelu_makes_one_array_beside_its_gradients_and_the_same_bits(weights, monkeypatch):
    images, weight, g = torch.randn(8, 16, 128, 128), torch.rand(weights) - 0.3, torch.randn(8, 16, 128, 128)
    assert extra(F.prelu, images.clone(), weight.clone()) < 1.35  # what is summed for the weight; it was 1.5
    found = gradients(F.prelu, [images, weight], g)
    monkeypatch.setattr(blocks, "_goes_with", lambda like, x: False)
    assert all(map(torch.equal, found, gradients(F.prelu, [images, weight], g)))
    for strange in (float("nan"), float("inf")):
        images[3, 2, 1, 0] = g[1, 2, 3, 4] = strange
        one = gradients(F.prelu, [images, weight], g)
        monkeypatch.undo()
        assert all(np.array_equal(a.numpy(), b.numpy(), equal_nan=True)
                   for a, b in zip(one, gradients(F.prelu, [images, weight], g), strict=True))  # fmt: skip
        monkeypatch.setattr(blocks, "_goes_with", lambda like, x: False)


def test_leaky_relu_whose_bits_alone_are_kept_makes_no_mask_of_numbers():
    x = torch.randn(SIZE)
    assert extra(lambda t: F.leaky_relu(t * 1.0, 0.1).sum(1), x) < 1.5


@native
@pytest.mark.parametrize("fn", [torch.atan, lambda x: F.softsign(torch.tan(x)), lambda x: F.prelu(x, torch.rand(1))])
def test_the_estimate_counts_no_temporaries_of_blocks(fn):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1 << 10))

        def forward(self, x):
            return fn(x * self.scale).sum(1)

    net, x = Net(), torch.randn(4, 1 << 10, 1 << 9).view(2, 1 << 10, 1 << 10)
    predicted = memory.estimate(net, (x,), torch.optim.SGD(net.parameters(), 0.1)).peak
    before = memory.current()
    for _ in range(2):
        memory.reset_peak()
        net(x).sum().backward()
    held = x.nbytes + 4096  # what was there before
    assert abs(memory.peak() - before + held - predicted) < 0.16 * predicted


def test_what_a_formula_hands_on_as_it_is_stays_itself():
    g = np.ones(1 << 21, np.float32)
    assert blocks.by_blocks(lambda g, n: g, g, g, 3) is g
    assert blocks.by_blocks(lambda g, x: (g * x, None), g, g, g)[1] is None
    assert blocks.by_blocks(lambda g, x: np.float32(2), g, g, g) == 2
    double = blocks.by_blocks(lambda g, x: g * x, g, g, np.ones(1 << 21))
    assert double.dtype == np.float64 and double.shape == g.shape


def test_double_backward_and_forward_mode_go_as_before():
    x = between(-0.5, 0.5)().double()[0, :1200].requires_grad_()
    (first,) = torch.autograd.grad(torch.tan(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    t = torch.tan(x.detach())
    assert torch.allclose(second, 2 * t * (1 + t * t))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_s_backward_makes_its_gradient_alone_and_the_same_bits(mode, monkeypatch):
    images = torch.randn(4, 16, 128, 128)
    forms = [lambda x: F.pad(x, (3, 2, 1, 4), mode=mode), lambda x: F.pad(x[:, :, :, :3], (2, 2, 0, 0), mode=mode),
             lambda x: x.index_select(2, torch.randint(0, 128, (300,), generator=torch.Generator().manual_seed(0)))]  # fmt: skip
    assert extra(forms[0], images.clone()) < 1.4  # the gradient of one dimension's padding; it was 3.1
    for fn in forms:
        g = torch.randn(fn(images).shape)
        found = gradients(fn, [images], g)
        with monkeypatch.context() as patch:
            # The whole laid out as rows, which are added in the order of the indices, too.
            patch.setattr(
                index_select,
                "_add_slices",
                lambda out, index, source, dim: accumulate_at(out, index_select.place(index, dim), source),
            )
            assert all(map(torch.equal, found, gradients(fn, [images], g)))


def test_topk_keeps_the_indices_that_it_gives_and_no_others():
    x = torch.randn(256, 1000, requires_grad=True)
    values, indices = x.topk(200)
    assert indices.numpy().base is None or indices.numpy().base.nbytes == indices.nbytes
    before = memory.current()
    del indices
    values.sum().backward()
    assert before - memory.current() < 256 * 200 * 20


def test_a_vector_beside_one_number_goes_in_blocks_too():
    """PReLU of one weight: its operand of one element is not cut, whether others have one dimension or more."""
    x, weight = torch.randn(1 << 19), torch.tensor([0.25])
    g = torch.randn(x.shape)
    found = gradients(F.prelu, (x, weight), g)
    wanted = gradients(F.prelu, (x.view(2, -1), weight), g.view(2, -1))
    assert torch.equal(found[0], wanted[0].view(-1))
    torch.testing.assert_close(found[1], wanted[1])


# Forwards -----------------------------------------------------------------------------------------------------------

CUT = {name: op for name, op in OPS.items() if op.cut}
STATICS = {
    "alpha_dropout": (0.8, 0.1, -0.4),
    "logit": (None,),
    "isclose": (1e-5, 1e-8, False),
    "fake_quantize_per_channel_affine_cachemask": (np.float32(0.1), np.zeros((), np.int32), 0, 255),
}


def operands(op):
    x, y = (np.random.default_rng(i).random(SIZE, np.float32) * 0.8 + 0.1 for i in range(2))
    second = {"alpha_dropout": y > 0.4, "ldexp": (y * 9).astype(np.int32)}.get(
        op.name, np.round(y * 3) if op.name.endswith(("_n", "_he")) else y
    )
    statics = STATICS.get(op.name, (0.1, 0, 0, 255) if "quantize" in op.name else ())
    return (x, second)[: len(op.tensors)], statics


@pytest.mark.parametrize("name", CUT)
def test_forwards_make_no_array_of_their_result_s_size_beside_it_and_the_same_bits(name, monkeypatch):
    (arrays, statics), op = operands(CUT[name]), CUT[name]
    if name == "airy_ai":
        pytest.importorskip("scipy")
    op.forward(*(x.ravel()[:99] for x in arrays), *statics)
    before = memory.current()
    memory.reset_peak()
    found = op.forward(*arrays, *statics)
    assert memory.peak() - memory.current() < 0.5 * arrays[0].nbytes < memory.peak() - before
    monkeypatch.setattr(blocks, "LARGE", 1 << 60)
    whole = op.forward(*arrays, *statics)
    for a, b in zip(found, whole, strict=True) if isinstance(found, tuple) else [(found, whole)]:
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@native
def test_a_gradient_that_is_a_view_of_its_own_memory_is_added_to_in_place():
    """That of a norm of rows is a matrix seen with the dimensions of the input: another array was made of the sum."""
    x = torch.randn(1 << 10, 1 << 10, requires_grad=True)
    for _ in range(2):
        x.grad = None
        before = memory.current()
        memory.reset_peak()
        F.rms_norm(x, (1 << 10,), x[0]).sum().backward()
    assert memory.peak() - before < 1.2 * x.nbytes  # it was 2
