"""Clipping, vectors of parameters, weight and spectral norm, parametrizations, stateless calls."""

import copy
import math
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call
from rushlight.nn import utils
from rushlight.nn.utils import parametrizations, parametrize


def with_gradients(*values: Any) -> list[Any]:
    made = []
    for value in values:
        p = nn.Parameter(torch.zeros(len(value)))
        p.grad = torch.tensor(value)
        made.append(p)
    return made


def test_clip_grad_norm() -> None:
    parameters = [*with_gradients([3.0, 0.0], [0.0, 4.0]), nn.Parameter(torch.zeros(1))]
    before = parameters[0].grad
    assert utils.clip_grad_norm_(iter(parameters), 1.0).item() == 5
    assert parameters[0].grad is before and before[0].item() == pytest.approx(0.6)
    assert utils.clip_grad_norm_(parameters, 10.0, norm_type=math.inf).item() == pytest.approx(0.8)
    assert before[0].item() == pytest.approx(0.6)
    assert utils.get_total_norm([p.grad for p in parameters[:2]], 1.0).item() == pytest.approx(1.4)
    assert utils.clip_grad_norm_([], 1.0).item() == 0


def test_clip_refuses_nan_if_asked() -> None:
    (p,) = with_gradients([math.nan])
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)


def test_clip_grad_value() -> None:
    (p,) = with_gradients([3.0, -4.0, 0.5])
    utils.clip_grad_value_(p, 1.0)
    assert p.grad.tolist() == [1.0, -1.0, 0.5]


def test_parameters_as_a_vector() -> None:
    layer = nn.Linear(2, 2)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (6,) and vector.requires_grad
    utils.vector_to_parameters(torch.arange(6.0), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0], [2.0, 3.0]] and layer.bias.tolist() == [4.0, 5.0]


def test_weight_norm() -> None:
    layer = nn.Linear(3, 2)
    x, plain = torch.randn(4, 3), layer.weight.detach().clone()
    wanted = layer(x)
    utils.weight_norm(layer)
    assert sorted(n for n, _ in layer.named_parameters()) == ["bias", "weight_g", "weight_v"]
    assert (layer(x) - wanted).abs().max().item() < 1e-6 and layer.weight_g.shape == (2, 1)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None and layer.weight_v.grad is not None
    utils.remove_weight_norm(layer)
    assert (layer.weight - plain).abs().max().item() < 1e-6 and isinstance(layer.weight, nn.Parameter)


@pytest.mark.parametrize("apply", [utils.spectral_norm, parametrizations.spectral_norm])
def test_spectral_norm(apply: Any) -> None:
    torch.manual_seed(0)
    layer = apply(nn.Linear(4, 3))
    for _ in range(50):
        y = layer(torch.randn(2, 4))
    y.sum().backward()
    u, v = torch.randn(3), None
    weight = layer.weight.detach()
    for _ in range(100):
        v = weight.t() @ u
        u = weight @ (v / (v * v).sum().sqrt())
    assert (u * u).sum().sqrt().item() == pytest.approx(1, abs=1e-3)


def test_removed_spectral_norm() -> None:
    layer = utils.remove_spectral_norm(utils.spectral_norm(nn.Conv2d(2, 3, 3)))
    assert isinstance(layer.weight, nn.Parameter) and not list(layer.buffers())


class Doubled(nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x

    def right_inverse(self, x: Any) -> Any:
        return x / 2


def test_parametrization() -> None:
    layer = nn.Linear(2, 2)
    weight = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert parametrize.is_parametrized(layer, "weight") and type(layer).__name__ == "ParametrizedLinear"
    assert (layer.weight - weight).abs().max().item() < 1e-6
    assert [n for n, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    layer.weight = torch.ones(2, 2)
    assert layer.parametrizations.weight.original[0, 0].item() == 0.5
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    assert parametrize.is_parametrized(twin) and torch.equal(twin.weight, layer.weight)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_parametrizations_are_checked() -> None:
    class Bigger(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.cat([x, x])

    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Bigger())
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.ReLU(), "weight", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")


def test_weight_norm_as_a_parametrization() -> None:
    layer = nn.Linear(3, 2)
    weight = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    assert (layer.weight - weight).abs().max().item() < 1e-6
    assert list(layer.state_dict()) == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1",
    ]  # fmt: skip


def test_functional_call_leaves_the_module_alone() -> None:
    layer = nn.Linear(2, 1)
    kept = layer.weight
    weight = torch.ones(1, 2, requires_grad=True)
    y = functional_call(layer, {"weight": weight, "bias": torch.zeros(1)}, torch.ones(1, 2))
    y.sum().backward()
    assert y.item() == 2 and weight.grad.tolist() == [[1.0, 1.0]]
    assert layer.weight is kept and kept.grad is None
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": torch.ones(5, 5)}, torch.ones(1, 2))
    assert layer.weight is kept
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(layer, {"weight": weight}, torch.ones(1, 2), strict=True)
    with pytest.raises(AttributeError, match="has no attribute `nothing`"):
        functional_call(layer, {"nothing.weight": weight}, torch.ones(1, 2))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        functional_call(layer, {"nothing": weight}, torch.ones(1, 2), strict=True)


def test_skip_init() -> None:
    layer = utils.skip_init(nn.Linear, 2, 3, dtype=torch.float64)
    assert type(layer) is nn.Linear and layer.weight.shape == (3, 2) and layer.weight.dtype is torch.float64
    with pytest.raises(RuntimeError, match="Expected a Module"):
        utils.skip_init(dict)


def test_what_is_not_initialised_draws_nothing() -> None:
    before = torch.get_rng_state()
    layer = utils.skip_init(nn.Linear, 2, 3)
    assert torch.randperm(4, device="meta").is_meta and layer.weight.device == torch.device("cpu")
    assert torch.get_rng_state().equal(before) and layer(torch.ones(1, 2)).shape == (1, 3)


def test_fusion() -> None:
    conv, norm = nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3).train()
    for _ in range(3):
        norm(conv(torch.randn(4, 2, 6, 6)))
    norm.eval()
    x = torch.randn(1, 2, 6, 6)
    fused = utils.fuse_conv_bn_eval(conv, norm)
    assert (fused(x) - norm(conv(x))).abs().max().item() < 1e-5


def test_clipping_many_gradients_is_clipping_each() -> None:
    torch.manual_seed(0)
    grads = [torch.randn(3, 4).t(), torch.randn(20_000), torch.randn(4, 6)[:, ::2], torch.randn(0), torch.tensor(2.0)]
    parameters = [torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
    for p, g in zip(parameters, grads, strict=True):
        p.grad = g
    kept, before = [g.clone() for g in grads], [g._version for g in grads]
    norm = utils.clip_grad_norm_(parameters, 1.5)
    assert abs(norm.item() - torch.cat([g.flatten() for g in kept]).norm().item()) < 1e-4 * norm.item()
    factor = (1.5 / (norm + 1e-6)).item()
    assert all(torch.equal(g, k * factor) for g, k in zip(grads, kept, strict=True))
    assert [g._version for g in grads] == [version + 1 for version in before]
    utils.clip_grad_value_(parameters, 0.01)
    assert all(torch.equal(g, (k * factor).clamp(-0.01, 0.01)) for g, k in zip(grads, kept, strict=True))
    found = torch._foreach_norm(kept)
    assert (
        all(abs(a - k.norm()) <= 1e-5 * a for a, k in zip(found, kept, strict=True)) and found[1].dtype is torch.float32
    )


def test_clipping_gradients_that_lie_on_one_place_is_refused() -> None:
    p = torch.nn.Parameter(torch.zeros(3, 4))
    p.grad = torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 4)
    with pytest.raises(RuntimeError, match="single memory location"):
        utils.clip_grad_norm_([p], 1.0)
