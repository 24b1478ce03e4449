"""Functions that PyTorch has beside its layers: halves of convolutions, single steps, masks, parts for devices."""

import importlib
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
LIBRARIES = (rushlight, torch)
RNG = np.random.default_rng(0)


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    return [RNG.standard_normal(shape) for shape in shapes]


def both(call: Callable[..., Any], given: list[Any]) -> None:
    """The same values, and gradients where there are any."""
    results = []
    for lib in LIBRARIES:
        tensors = [lib.tensor(x, requires_grad=True) for x in given]
        found = call(lib, *tensors)
        found = found if isinstance(found, tuple) else (found,)
        slopes = lib.autograd.grad(sum((x**2).sum() for x in found), tensors)
        results.append([x.detach().numpy() for x in (*found, *slopes)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


CONVOLUTIONS = [{}, {"stride": 2}, {"padding": 1, "dilation": 2}, {"groups": 2}, {"stride": 2, "padding": 1}]


@pytest.mark.parametrize("options", CONVOLUTIONS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_halves_of_a_convolutions_backward(n: int, options: dict[str, int]) -> None:
    size, kernel = (2, 4, *[6] * n), (6, 4 // options.get("groups", 1), *[2] * n)
    x, w = arrays(size, kernel)
    (g,) = arrays(tuple(getattr(torch.nn.functional, f"conv{n}d")(torch.tensor(x), torch.tensor(w), **options).shape))
    both(lambda t, w, g: getattr(t.nn.grad, f"conv{n}d_input")(size, w, g, **options), [w, g])
    both(lambda t, x, g: getattr(t.nn.grad, f"conv{n}d_weight")(x, kernel, g, **options), [x, g])
    with pytest.raises(RuntimeError, match=f"conv{n}d_input: expected a grad_output of shape"):
        getattr(rushlight.nn.grad, f"conv{n}d_input")(size, rushlight.tensor(w), rushlight.tensor(g)[:1], **options)


@pytest.mark.parametrize("pad", [0, 2])
def test_conv_tbc(pad: int) -> None:
    given = arrays((7, 2, 3), (4, 3, 5), (5,))
    both(lambda t, x, w, b: t.conv_tbc(x, w, b, pad), given)
    both(lambda t, x, w, b: t.nn.functional.conv_tbc(x, w, b, pad=pad), given)
    with pytest.raises(RuntimeError, match="conv_tbc: expected input and weight of 3 dimensions"):
        rushlight.conv_tbc(rushlight.ones(3), rushlight.ones(3), rushlight.ones(3))


@pytest.mark.parametrize(
    ("name", "gates"), [("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3), ("lstm_cell", 4)]
)
def test_single_steps(name: str, gates: int) -> None:
    given = arrays((2, 3), (2, 4), (gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,), (2, 4))

    def step(t: Any, x: Any, h: Any, *rest: Any) -> Any:
        *weights, c = rest
        found = getattr(t, name)(x, (h, c) if name == "lstm_cell" else h, *weights)
        return (*found, c) if name == "lstm_cell" else (found, c)

    both(step, given)
    both(lambda t, x, h, a, b, c: step(t, x, h, a, b, c), [*given[:4], given[6]])


def test_modes_of_grid_sample_by_name() -> None:
    for name in ("GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES"):
        assert getattr(rushlight.nn.functional, name) == getattr(torch.nn.functional, name)
    assert rushlight.nn.functional.grad is rushlight.nn.grad


@pytest.mark.parametrize("sizes", [(3, 5), (4, 4)])
@pytest.mark.parametrize("variant", ["causal_upper_left", "causal_lower_right"])
def test_causal_masks(variant: str, sizes: tuple[int, int]) -> None:
    rooms = [importlib.import_module(f"{lib.__name__}.nn.attention.bias") for lib in LIBRARIES]
    masks = [getattr(room, variant)(*sizes) for room in rooms]
    assert repr(masks[0]).replace("CausalBias", "tensor") == repr(masks[1])
    assert int(masks[0].variant) == int(masks[1].variant) and isinstance(masks[0], rushlight.Tensor)
    q, k, v = arrays((2, 2, sizes[0], 8), (2, 2, sizes[1], 8), (2, 2, sizes[1], 8))
    outputs = []
    for lib, mask in zip(LIBRARIES, masks, strict=True):
        given = [lib.tensor(x, requires_grad=True) for x in (q, k, v)]
        out = lib.nn.functional.scaled_dot_product_attention(*given, attn_mask=mask)
        outputs.append([x.detach().numpy() for x in (out, *lib.autograd.grad(out.sum(), given))])
    for ours, theirs in zip(*outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


def test_causal_masks_refuse_and_warn() -> None:
    from rushlight.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left

    with pytest.raises(AssertionError, match="only supports 2D"):
        causal_upper_left(3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant"):
        CausalBias(3, 2, 2)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="may look at no key"):
        mask = causal_lower_right(5, 3)
    x, y = rushlight.randn(1, 1, 5, 8), rushlight.randn(1, 1, 3, 8)
    attended = rushlight.nn.functional.scaled_dot_product_attention(x, y, y, attn_mask=mask)
    assert not bool(attended[0, 0, :2].any()) and bool(attended[0, 0, 2:].all())


Point = namedtuple("Point", "x y")


def test_parts_for_devices_and_back() -> None:
    from rushlight.nn.parallel.scatter_gather import gather, is_namedtuple, scatter, scatter_kwargs

    x = rushlight.arange(4.0)
    assert [part.tolist() for part in scatter(x, [0, 1])] == [[0, 1], [2, 3]]
    (one,) = scatter((x, "a", {"k": x}), [0])
    assert one[0].tolist() == x.tolist() and one[1] == "a" and one[2]["k"].tolist() == x.tolist()
    point = scatter(Point(x, 1), [0, 1])[1]
    assert is_namedtuple(point) and point.x.tolist() == [2, 3] and point.y == 1
    args, kwargs = scatter_kwargs((x,), None, [0, 1])
    assert len(args) == 2 and kwargs == ({}, {})
    for given in ("a", (1, "a"), [], {"a": 1}):  # what PyTorch does with what is no tensor
        from torch.nn.parallel.scatter_gather import scatter as theirs

        assert scatter(given, [0, 1]) == theirs(given, [0, 1])
    joined = gather([{"a": x, "b": None}, {"a": x, "b": None}], 0)
    assert joined["a"].shape == (8,) and joined["b"] is None
    assert gather([rushlight.tensor(1.0), rushlight.tensor(2.0)], 0).tolist() == [1, 2]
    assert gather(scatter(Point(x, x), [0, 1]), "cpu").y.tolist() == x.tolist()
    with pytest.raises(TypeError, match="gather: outputs must be"):
        gather([3, 4], 0)


def test_weights_of_a_recurrent_network_are_assigned() -> None:
    results = []
    x = RNG.standard_normal((4, 2, 3)).astype(np.float32)
    for lib in LIBRARIES:
        net = lib.nn.LSTM(3, 2, num_layers=2, bidirectional=True)
        with lib.no_grad():
            for p in net.parameters():
                p.fill_(0.1)
        other = [lib.full_like(p, 0.05 * i).requires_grad_() for i, p in enumerate(net._flat_weights)]
        net._flat_weights = other
        out = net(lib.tensor(x))[0]
        found = [out, *lib.autograd.grad(out.sum(), other)]
        assert lib.equal(net.weight_ih_l0, lib.full_like(net.weight_ih_l0, 0.1))
        net.weight_hh_l0 = lib.nn.Parameter(lib.ones(8, 2))
        found.append(net(lib.tensor(x))[0])
        net.float()
        found.append(net(lib.tensor(x))[0])
        results.append([y.detach().numpy() for y in found])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    with pytest.raises(RuntimeError, match="expected 16 weights"):
        rushlight.nn.LSTM(3, 2, num_layers=2, bidirectional=True)._flat_weights = []


def test_weights_of_convolutions_in_another_memory_format() -> None:
    for n, kind in ((2, "channels_last"), (3, "channels_last_3d")):
        strides = []
        for lib in LIBRARIES:
            net = lib.nn.Sequential(getattr(lib.nn, f"Conv{n}d")(2, 3, 3), lib.nn.Linear(2, 2))
            before = net[0].weight.detach().clone()
            made = getattr(lib.nn.utils, f"convert_conv{n}d_weight_memory_format")(net, getattr(lib, kind))
            assert made is net and lib.equal(net[0].weight, before)
            strides.append(net[0].weight.stride())
        assert strides[0] == strides[1]
