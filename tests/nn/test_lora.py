"""Adapters beside frozen layers: what they compute, what is trained, and how few bytes the rest takes."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory, nn
from rushlight.nn.utils import frozen, lora

F = nn.functional
KINDS = {"bfloat16": 2.0, "int8": 1 + 4 / 64, "nf4": 0.5 + 4 / 64}  # bytes an element
ERROR = {"bfloat16": 0.004, "int8": 0.006, "nf4": 0.17}  # of a block's largest
counted = pytest.mark.skipif(not memory.is_counted(), reason="memory is counted where native kernels are")
LAYERS: dict[str, tuple[Any, Any]] = {
    "linear": (lambda: nn.Linear(37, 50), (5, 3, 37)),
    "vector": (lambda: nn.Linear(64, 10, bias=False), (64,)),
    "conv1d": (lambda: nn.Conv1d(6, 9, 3, stride=2, padding=1), (2, 6, 11)),
    "conv2d": (lambda: nn.Conv2d(5, 7, (3, 2), padding=(1, 0), dilation=2), (2, 5, 9, 8)),
    "same": (lambda: nn.Conv2d(5, 7, 3, padding="same", bias=False), (2, 5, 9, 8)),
    "circular": (lambda: nn.Conv2d(5, 7, 3, padding=1, padding_mode="circular"), (2, 5, 9, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (1, 2, 4, 5, 4)),
    "alone": (lambda: nn.Conv2d(5, 7, 3), (5, 6, 6)),
}
every = pytest.mark.parametrize("name", LAYERS)


def made(name: str) -> tuple[Any, Any]:
    torch.manual_seed(0)
    build, shape = LAYERS[name]
    return build(), torch.randn(*shape, requires_grad=True)


def trained_a_bit(layer: Any) -> None:
    with torch.no_grad():
        layer.lora_B.weight.normal_(0, 0.3)


# What is computed ----------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_at_first_nothing_is_added(name: str, kind: Any) -> None:
    layer, x = made(name)
    want = layer(x).detach()
    found = lora.LoRA(copy.deepcopy(layer), 4, base_dtype=kind)(x)
    assert torch.allclose(found, want, atol=0 if kind is None else 3 * ERROR[kind])


@every
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_layer_with_an_adapter_is_one_with_another_weight(name: str, kind: Any) -> None:
    """Values and gradients of the input are those of an ordinary layer whose weight has the adapter in it."""
    layer, x = made(name)
    adapted = lora.LoRA(layer, 4, alpha=8, base_dtype=kind)
    trained_a_bit(adapted)
    plain = copy.deepcopy(adapted).plain()
    assert type(plain) is type(layer) and plain.weight.shape == layer.weight.shape
    results = []
    for module in (adapted, plain):
        x.grad = None
        out = module(x)
        out.backward(torch.linspace(-1, 1, out.numel()).reshape(out.shape))
        results.append((out.detach(), x.grad))
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_gradients_of_adapters(kind: Any) -> None:
    x = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    layer = lora.LoRA(nn.Linear(6, 5, dtype=torch.float64), 2, base_dtype=kind)
    trained_a_bit(layer)
    a, b = layer.lora_A.weight, layer.lora_B.weight

    def run(x: Any, a: Any, b: Any) -> Any:
        return torch.func.functional_call(layer, {"lora_A.weight": a, "lora_B.weight": b}, (x,))

    assert torch.autograd.gradcheck(run, (x, a.detach().requires_grad_(), b.detach().requires_grad_()))
    assert torch.autograd.gradgradcheck(run, (x, a.detach().requires_grad_(), b.detach().requires_grad_()))


@pytest.mark.parametrize("name", ["linear", "conv2d"])
def test_forward_mode_and_16_bits(name: str) -> None:
    layer, x = made(name)
    held = lora.LoRA(layer, 4, base_dtype="int8").base
    t = torch.randn_like(x)
    _, tangent = torch.func.jvp(held, (x.detach(),), (t,))
    torch.testing.assert_close(tangent, held(x.detach() + t) - held(x.detach()), rtol=1e-3, atol=1e-4)
    half = held(x.detach().bfloat16())
    assert half.dtype is torch.bfloat16 and torch.allclose(half.float(), held(x.detach()), atol=0.1)


@pytest.mark.parametrize("name", ["linear", "conv2d", "circular"])
def test_function_transformations(name: str) -> None:
    layer, x = made(name)
    adapted = lora.LoRA(layer, 4, base_dtype="int8")
    trained_a_bit(adapted)
    several = torch.stack([x.detach(), 2 * x.detach()], 1)
    want = torch.stack([adapted(x.detach()), adapted(2 * x.detach())])
    torch.testing.assert_close(torch.vmap(adapted, in_dims=1)(several), want)
    slope = torch.func.vmap(torch.func.grad(lambda x: adapted(x).square().sum()), in_dims=1)(several)
    adapted(x).square().sum().backward()
    torch.testing.assert_close(slope[0], x.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_stay_codes_in_another_dtype(kind: str) -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 2))
    lora.apply(model, base_dtype=kind)
    kept = [(t.dtype, t.nbytes) for name, t in model.named_buffers() if "weight" in name]
    want = model(torch.ones(2, 64))
    for dtype in (torch.float16, torch.float64):
        model.to(dtype)
        assert [(t.dtype, t.nbytes) for name, t in model.named_buffers() if "weight" in name] == kept
        out = model(torch.ones(2, 64, dtype=dtype))
        assert out.dtype is dtype and torch.allclose(out.float(), want, atol=0.02)


def test_dropout_is_of_the_adapter_alone_and_of_training() -> None:
    layer = lora.LoRA(nn.Linear(20, 20), 4, dropout=0.5)
    x = torch.ones(4, 20)
    assert torch.equal(layer(x), layer(x))  # lora_B is 0
    trained_a_bit(layer)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


# Codes ---------------------------------------------------------------------------------------------------------------


def test_the_values_of_nf4_are_those_of_the_paper() -> None:
    paper = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
             -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
             0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]  # fmt: skip
    np.testing.assert_allclose(frozen.nf4(), paper, atol=2e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5), (64, 64), (1000, 301), (7, 3, 3, 3), (600, 1111)])
def test_a_frozen_weight_is_the_weight_to_rounding(kind: str, shape: Any) -> None:
    w = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    held = frozen.FrozenWeight(w, kind)
    found = held.dense()
    assert found.shape == w.shape and found.dtype == w.dtype
    assert float((found - w).abs().max()) <= ERROR[kind] * float(w.abs().max())
    blocks = -(-w.numel() // 64)
    kept = held.codes.nbytes + (held.scales.nbytes if held.scales is not None else 0)
    assert (
        kept
        == {"bfloat16": 2 * w.numel(), "int8": w.numel() + 4 * blocks, "nf4": -(-w.numel() // 2) + 4 * blocks}[kind]
    )
    assert frozen.FrozenWeight(torch.zeros(3, 4), kind).dense().abs().max() == 0


# Bytes ---------------------------------------------------------------------------------------------------------------


def deep(kind: Any) -> Any:
    """Six matrices of 4 MB with adapters."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(6)])
    lora.apply(model, rank=4, base_dtype=kind)
    return model


@counted
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_frozen_weights_take_their_bytes_and_save_nothing(kind: Any) -> None:
    before = memory.current()
    model = deep(kind)
    weights = 6 * 1024 * 1024 * (4 if kind is None else KINDS[kind])
    adapters = 6 * 2 * 4 * 1024 * 4
    assert memory.current() - before == weights + adapters
    x = torch.randn(64, 1024)
    size = x.nbytes
    before = memory.current()
    out = model(x)
    hidden = 6 * 64 * 4 * 4
    assert memory.current() - before <= 6 * size + hidden + 512  # the input of each layer once, and the last result
    memory.reset_peak()
    out.sum().backward()
    # Nothing of a weight in float32 lives beside the run of rows that is in use.
    assert memory.peak() - before <= 6 * size + hidden + 6 * size + adapters + 4 * 4 * frozen.AT_ONCE
    grads = [name for name, p in model.named_parameters() if p.grad is not None]
    assert len(grads) == 12 and all("lora_" in name for name in grads)


@counted
def test_a_frozen_first_layer_without_an_adapter_saves_nothing_at_all() -> None:
    held = frozen.FrozenLinear(nn.Linear(512, 512), "int8")
    x = torch.randn(256, 512, requires_grad=True)
    before = memory.current()
    out = held(x)
    assert memory.current() - before == out.nbytes


# Models --------------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.blocks = nn.ModuleList([nn.ModuleDict({"q": nn.Linear(8, 8), "v": nn.Linear(8, 8)}) for _ in range(2)])
        self.tied = self.blocks[0]["v"]
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        x = self.conv(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = x + torch.tanh(block["q"](x)) * block["v"](x)
        x = x + self.tied(x)
        return self.head((x + self.attention(x, x, x)[0]).mean(1))


def test_patterns() -> None:
    for patterns, want in (
        ("*", ["conv", "blocks.0.q", "blocks.0.v", "blocks.1.q", "blocks.1.v", "tied", "head"]),
        ("q", ["blocks.0.q", "blocks.1.q"]),
        (["blocks.1.*", "head"], ["blocks.1.q", "blocks.1.v", "head"]),
        ("v", ["blocks.0.v", "blocks.1.v"]),
    ):
        assert lora.apply(Net(), patterns) == want
    model = Net()
    lora.apply(model, ["v", "tied"])
    assert model.tied is model.blocks[0]["v"] and isinstance(model.tied, lora.LoRA)
    with pytest.raises(ValueError, match=r"fits \['k_proj'\]: there are conv, blocks.0.q"):
        lora.apply(Net(), "k_proj")
    with pytest.raises(ValueError, match="adapters already"):
        lora.apply(model, "q")
    assert not any(p.requires_grad for name, p in model.named_parameters() if "lora_" not in name)
    thawed = Net()
    lora.apply(thawed, "q", freeze=False)
    assert thawed.head.weight.requires_grad and not thawed.blocks[0]["q"].base.weight.requires_grad


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_only_adapters_learn_and_they_do(kind: Any) -> None:
    torch.manual_seed(0)
    model = Net()
    lora.apply(model, rank=4, base_dtype=kind)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    x, y = torch.randn(16, 1, 4, 4), torch.arange(16) % 3
    with torch.optim.in_backward(optimizer):
        losses = []
        for _ in range(40):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            losses.append(loss.item())
    assert min(losses) < 0.8 * losses[0]
    changed = {name for name, t in model.state_dict().items() if not torch.equal(t, before[name])}
    assert changed and all("lora_" in name for name in changed)


def test_adapters_alone_are_saved_and_loaded() -> None:
    torch.manual_seed(0)
    model = Net()
    other = copy.deepcopy(model)
    lora.apply(model, "q", rank=4)
    for _, layer in lora.lora_layers(model):
        trained_a_bit(layer)
    state = lora.lora_state_dict(model, "base_model.model.")
    assert list(state) == [f"base_model.model.blocks.{i}.q.lora_{x}.weight" for i in (0, 1) for x in "AB"]
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    lora.apply(other, "q", rank=4)
    lora.load_lora_state_dict(other, torch.load(file), "base_model.model.")
    x = torch.randn(2, 1, 4, 4)
    assert torch.equal(model(x), other(x))
    with pytest.raises(RuntimeError, match=r"missing \['blocks.0.q.lora_A.weight'"):
        lora.load_lora_state_dict(other, state)
    third = Net()
    lora.apply(third, "q", rank=2)
    with pytest.raises(RuntimeError, match="adapters of the same rank"):
        lora.load_lora_state_dict(third, lora.lora_state_dict(model))


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_the_whole_model_is_saved_copied_and_loaded(kind: Any) -> None:
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        models.append(Net())
        lora.apply(models[-1], base_dtype=kind)
    file = io.BytesIO()
    torch.save(models[0].state_dict(), file)
    file.seek(0)
    models[1].load_state_dict(torch.load(file))
    x = torch.randn(2, 1, 4, 4)
    want = models[0](x)
    assert torch.equal(models[1](x), want) and torch.equal(copy.deepcopy(models[0])(x), want)


def test_merging_and_taking_apart() -> None:
    torch.manual_seed(0)
    model = Net().eval()
    lora.apply(model)
    for _, layer in lora.lora_layers(model):
        trained_a_bit(layer)
    x = torch.randn(2, 1, 4, 4)
    want, weight = model(x), model.head.base.weight.clone()
    lora.merge(model)
    lora.merge(model)  # harmless
    assert "merged" in repr(model) and not torch.equal(model.head.base.weight, weight)
    torch.testing.assert_close(model(x), want)
    lora.unmerge(model)
    torch.testing.assert_close(model.head.base.weight, weight)
    torch.testing.assert_close(model(x), want)
    lora.unload(model)
    assert not list(lora.lora_layers(model)) and model.tied is model.blocks[0]["v"] and type(model.head) is nn.Linear
    torch.testing.assert_close(model(x), want)


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_codes_are_not_merged_into_but_unloaded(kind: str) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Conv1d(8, 4, 1))
    lora.apply(model, base_dtype=kind)
    trained_a_bit(model[0])
    x = torch.randn(2, 8, 8)
    want = model(x)
    with pytest.raises(RuntimeError, match=f"lies in {kind}.*unload"):
        lora.merge(model)
    lora.unload(model)
    torch.testing.assert_close(model(x), want, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_is_refused() -> None:
    for layer, options, error, text in (
        (nn.Linear(3, 3), {"rank": 0}, ValueError, "rank must be an int of at least 1, got 0"),
        (nn.Linear(3, 3), {"base_dtype": "int4"}, ValueError, r"one of bfloat16, int8, nf4 \(or None\), got 'int4'"),
        (nn.Conv2d(4, 4, 3, groups=2), {}, ValueError, "2 groups"),
        (nn.Embedding(3, 3), {}, TypeError, "got Embedding"),
        (nn.Linear(3, 3, dtype=torch.complex64), {"base_dtype": "int8"}, TypeError, "real floating-point"),
    ):
        with pytest.raises(error, match=text):
            lora.LoRA(layer, **options)


def test_codes_changed_between_forward_and_backward_are_noticed() -> None:
    held = frozen.FrozenLinear(nn.Linear(8, 8), "int8")
    out = held(torch.randn(2, 8, requires_grad=True))
    held.load_state_dict({name: torch.zeros_like(t) for name, t in held.state_dict().items()})
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*frozen weight of shape \[8, 8\]"):
        out.sum().backward()
