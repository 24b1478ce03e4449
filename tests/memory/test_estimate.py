"""Estimates against what runs take, and what estimating leaves alone."""

import gc
import mmap
import random
import resource
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.memory.figures import native

import rushlight as torch
from rushlight import memory
from rushlight.kernels.native import loader
from rushlight.memory.estimates.rehearsal import state_shapes
from rushlight.memory.estimates.rehearsals import blocks
from rushlight.models.language import GPT
from rushlight.models.resnet import BasicBlock, ResNet
from rushlight.models.vision_transformer import VisionTransformer
from rushlight.optim.optimizer import Optimizer
from rushlight.utils.checkpoint import checkpoint

nn, F = torch.nn, torch.nn.functional
Loss = Callable[[Any], Any]


def peak_of(model: Any, sample: Any, loss: Loss, optimizer: Any = None, train: bool = True, calls: int = 1) -> int:
    """The peak of two steps of so many backward calls, the model and its inputs included."""
    gc.collect()
    held = sum(t.nbytes for t in (*model.parameters(), *model.buffers(), *sample))
    held -= memory.current()
    memory.reset_peak()
    for _ in range(2):
        if not train:
            with torch.no_grad():
                model(*sample)
            continue
        model.zero_grad()
        for _ in range(calls):
            loss(model(*sample)).backward()
        if optimizer is not None:
            optimizer.step()
    return int(memory.peak() + held)


def close(found: int, measured: int) -> bool:
    return abs(found / measured - 1) < 0.05


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layer, self.head = kind(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.layer(x)[0][:, -1])


def classified(model: Any, *shape: int, count: int = 10) -> tuple[Any, tuple[Any, ...], Loss]:
    y = torch.randint(0, count, shape[:1])
    return model, (torch.randn(*shape),), lambda out: F.cross_entropy(out, y)


def convolutional() -> Any:
    return classified(ResNet(BasicBlock, (1, 1, 1, 1), num_classes=10), 4, 3, 64, 64)


def dense() -> Any:
    layers = [nn.Linear(300, 500), nn.Dropout(0.2), nn.ReLU(), nn.Linear(500, 500), nn.Tanh(), nn.Linear(500, 10)]
    return classified(nn.Sequential(*layers), 128, 300)


def vision() -> Any:
    return classified(VisionTransformer(32, 4, 2, 4, 128, 512, num_classes=10), 16, 3, 32, 32)


def language() -> Any:
    text = torch.randint(0, 500, (4, 129))
    return GPT(500, 128, 2, 128, 4), (text[:, :-1].clone(), text[:, 1:].clone()), lambda out: out[1]


def pooled() -> Any:
    layers = [nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(16), nn.Conv2d(16, 32, 3, stride=2),
              nn.SiLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)]  # fmt: skip
    return classified(nn.Sequential(*layers), 16, 3, 64, 64)


def encoder() -> Any:
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    return nn.TransformerEncoder(layer, 2), (torch.randn(8, 96, 128),), lambda out: out.square().mean()


def recurrent(kind: Any) -> Any:
    return classified(Recurrent(kind), 16, 60, 64, count=5)


MODELS: dict[str, Callable[[], Any]] = {
    "convolutional": convolutional, "dense": dense, "vision": vision, "language": language, "pooled": pooled,
    "encoder": encoder, "lstm": lambda: recurrent(nn.LSTM), "gru": lambda: recurrent(nn.GRU),
    "rnn": lambda: recurrent(nn.RNN),
}  # fmt: skip


@native
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_the_peak_of_training(name: str, optimizer: str) -> None:
    model, sample, loss = MODELS[name]()
    options = {"momentum": 0.9} if optimizer == "SGD" else {}
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3, **options)
    found = memory.estimate(model, sample, made, loss=loss)
    assert close(found.peak, peak_of(model, sample, loss, made)), str(found)
    assert not found.ran


@native
@pytest.mark.parametrize("name", MODELS)
def test_the_peak_of_inference(name: str) -> None:
    model, sample, loss = MODELS[name]()
    found = memory.estimate(model, sample, train=False)
    assert close(found.peak, peak_of(model, sample, loss, train=False)), str(found)


@native
@pytest.mark.parametrize("name", ["dense", "vision"])
def test_steps_in_hooks(name: str) -> None:
    model, sample, loss = MODELS[name]()
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def step(p: Any) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    found = memory.estimate(model, sample, loss=loss)
    assert all(p.grad is None and not optimizers[p].state for p in model.parameters())
    assert close(found.peak, peak_of(model, sample, loss)), str(found)


@native
@pytest.mark.parametrize("options", [{}, {"clip_grad_norm": 1.0}, {"clip_grad_norm": 1.0, "clip_passes": 1},
                                     {"accumulate": 2}])  # fmt: skip
def test_an_optimizer_in_backward(options: dict[str, Any]) -> None:
    model, sample, loss = classified(nn.Sequential(*[nn.Linear(400, 400) for _ in range(6)]), 32, 400, count=400)
    optimizer = torch.optim.Adam(model.parameters())
    advised = {s.name: s.peak for s in memory.estimate(model, sample, optimizer, loss=loss).savings}
    with torch.optim.in_backward(optimizer, **options) as handle:
        found = memory.estimate(model, sample, handle, loss=loss)
        assert found.peak == memory.estimate(model, sample, loss=loss).peak
        measured = peak_of(model, sample, loss, calls=options.get("accumulate", 1))
        assert close(found.peak, measured), str(found)
    assert options or found.peak == advised["optimizer in backward"]


@native
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_other_dtypes(dtype: str) -> None:
    model, (x,), loss = dense()
    model, sample = model.to(getattr(torch, dtype)), (x.to(getattr(torch, dtype)),)
    made = torch.optim.AdamW(model.parameters())
    found = memory.estimate(model, sample, made, loss=loss)
    assert close(found.peak, peak_of(model, sample, loss, made)), str(found)


@native
def test_checkpointed_blocks_as_advised() -> None:
    model, sample, loss = vision()
    advised = next(s for s in memory.estimate(model, sample, loss=loss).savings if s.name == "checkpoint each block")
    for block in blocks(model):
        block.forward = lambda x, run=block.forward: checkpoint(run, x, use_reentrant=False)
    assert close(advised.peak, peak_of(model, sample, loss))
    assert close(memory.estimate(model, sample, loss=loss).peak, advised.peak)


@native
def test_frozen_parameters() -> None:
    model, sample, loss = dense()
    for p in model[:-1].parameters():
        p.requires_grad_(False)
    assert close(memory.estimate(model, sample, loss=loss).peak, peak_of(model, sample, loss))


@pytest.mark.parametrize("name", ["Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "Muon", "NAdam",
                                  "RAdam", "RMSprop", "Rprop", "SGD"])  # fmt: skip
def test_state_of_every_optimizer(name: str) -> None:
    model = nn.Sequential(nn.Linear(96, 64, bias=False), nn.Linear(64, 48, bias=False))
    optimizer = getattr(torch.optim, name)(model.parameters())
    x = torch.randn(2, 96)
    found = memory.estimate(model, (x,), optimizer).optimizer_state
    assert name == "Adagrad" or not optimizer.state
    model(x).sum().backward()
    optimizer.step()
    state = [t for kept in optimizer.state.values() for t in kept.values() if isinstance(t, torch.Tensor)]
    assert found == sum(t.nbytes for t in state)


def test_nothing_is_changed() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 36, 4))
    sample = torch.randn(4, 3, 8, 8)
    model(sample).sum().backward()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    grads = [p.grad for p in model.parameters()]
    versions = [p._version for p in (*model.parameters(), *model.buffers())]
    state = torch.get_rng_state()
    optimizer = torch.optim.Adam(model.parameters())
    found = memory.estimate(model, sample, optimizer)
    assert found.table() and found.largest_batch("10 MB") > 4
    assert all(torch.equal(before[name], t) for name, t in model.state_dict().items())
    assert all(p.grad is g for p, g in zip(model.parameters(), grads))
    assert versions == [p._version for p in (*model.parameters(), *model.buffers())]
    assert torch.equal(torch.get_rng_state(), state) and not optimizer.state
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


class Keeping(nn.Module):
    """A model that keeps what it made, counts, and draws."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.LazyLinear(4), nn.utils.spectral_norm(nn.Linear(4, 4)))
        self.register_buffer("average", torch.zeros(4))
        self.calls, self.seen, self.cache = 0, list[Any](), {"steps": [1]}

    def forward(self, x: Any) -> Any:
        out = self.layers(x + random.random() + float(np.random.rand()))
        self.average = 0.9 * self.average + 0.1 * out.detach().mean(0)
        self.loss = out.square().mean()
        self.calls += 1
        self.seen.append(out)
        self.cache["steps"].append(2)
        return self.loss


def test_what_a_model_keeps_counts_and_draws_is_left_alone() -> None:
    """Buffers that it gives other tensors were stand-ins afterwards, lazy modules could not be used any more."""
    torch.manual_seed(0)
    model, x, average = Keeping(), torch.randn(2, 8), torch.arange(4.0)
    model.average = average
    norm, states = model.layers[2].weight, (random.getstate(), np.random.get_state()[1].tolist())
    memory.estimate(model, x, torch.optim.Adam)
    memory.max_batch(model, x, torch.optim.Adam, "1 MB")
    memory.frontier(model, x, torch.optim.Adam, measure=False)
    assert model.average is average and average.tolist() == [0, 1, 2, 3] and model.layers[2].weight is norm
    assert (model.calls, model.seen, model.cache) == (0, [], {"steps": [1]}) and not hasattr(model, "loss")
    assert type(model.layers[1]) is nn.LazyLinear and model.layers[1].has_uninitialized_params()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states
    assert model(x).isfinite() and model.calls == 1 and type(model.layers[1]) is nn.Linear


def test_nothing_is_changed_by_an_error() -> None:
    model = nn.Linear(4, 4)
    array = model.weight._array
    with pytest.raises(RuntimeError):
        memory.estimate(model, (2, 5))
    assert model.weight._array is array and torch.ones(2).sum().item() == 2


def test_a_model_larger_than_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def build() -> Any:
        return nn.Sequential(*[nn.Sequential(nn.Linear(60_000, 60_000), nn.GELU()) for _ in range(20)])

    found = memory.estimate(build, (1000, 60_000), torch.optim.AdamW)
    assert found.parameters == 20 * (60_000 * 60_000 + 60_000) * 4
    assert found.peak > 4 * found.parameters
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_the_largest_batch() -> None:
    model, sample, loss = dense()
    found = memory.estimate(model, sample, torch.optim.Adam, loss=loss)
    limit = 2 * found.peak
    largest = found.largest_batch(limit)
    x, y = torch.randn(largest + 1, 300), torch.randint(0, 10, (largest + 1,))
    within = memory.estimate(model, (x[:-1],), torch.optim.Adam, loss=lambda out: F.cross_entropy(out, y[:-1]))
    beyond = memory.estimate(model, (x,), torch.optim.Adam, loss=lambda out: F.cross_entropy(out, y))
    assert within.peak <= limit < beyond.peak
    with pytest.raises(ValueError, match="one sample"):
        found.largest_batch("1 MB")


def test_what_is_said() -> None:
    model, sample, loss = vision()
    found = memory.estimate(model, sample, torch.optim.Adam, loss=loss)
    text = found.table()
    for words in ("parameters", "optimizer state", "peak", "backward", "checkpoint each block", "optimizer in backward",
                  "stores.disk", "half the batch"):  # fmt: skip
        assert words in text
    assert sum(found.by_category.values()) == found.peak == max(found.phases.values())
    assert found.timeline.peak()[0] == found.peak
    assert found.timeline.live().min() >= 0
    assert any("encoder" in name for name in found.by_module)
    assert all(s.peak + s.saves == found.peak for s in found.savings)


def largest_of_pairs(x: Any) -> Any:
    """What an operator makes that has no rule for its results."""
    return nn.functional.embedding_bag(torch.arange(len(x)).view(-1, 2), x, mode="max")


def test_what_is_given_twice_is_one_input() -> None:
    layer, x = nn.MultiheadAttention(128, 4), torch.randn(16, 64, 128)
    found = memory.estimate(layer, (x, x, x))
    assert found.inputs == x.nbytes
    assert found.peak < memory.estimate(layer, (x, x.clone(), x.clone())).peak


def test_arguments_by_name_and_operators_without_a_rule() -> None:
    class Odd(nn.Module):
        def forward(self, x: Any, flag: bool = False) -> Any:
            return largest_of_pairs(x).sum() if flag else x

    found = memory.estimate(Odd(), {"x": torch.randn(200, 200, requires_grad=True), "flag": True})
    assert "embedding_bag_max" in found.ran and "embedding_bag_max" in str(found)


def test_a_training_step_is_foretold_where_gradients_are_off() -> None:
    model = nn.Linear(64, 64)
    with torch.no_grad():
        off = memory.estimate(model, (8, 64)).peak
        assert memory.frontier(model, (8, 64), torch.optim.Adam(model.parameters())).plain.peak > off
        assert not torch.is_grad_enabled()
    assert off == memory.estimate(model, (8, 64)).peak


def test_errors() -> None:
    with pytest.raises(TypeError, match="Module"):
        memory.estimate(lambda: 3, (2, 2))
    with pytest.raises(TypeError, match=r"expected a Module .* got NoneType"):
        memory.estimate(None, (2, 2))
    with pytest.raises(TypeError, match=r"expected an optimizer, .* got 'adam'"):
        memory.estimate(nn.Linear(2, 2), (2, 2), "adam")
    with pytest.raises(RuntimeError, match="train=False"):
        memory.estimate(nn.Linear(2, 2).requires_grad_(False), (2, 2))
    with pytest.raises(TypeError, match="one element"):
        memory.estimate(nn.Linear(2, 2), (2, 2), loss=lambda out: out)


@native
@pytest.mark.parametrize("name", ["optimizer state in 8 bits", "LoRA of rank 8, all else frozen"])
def test_smaller_state_and_adapters_as_they_are_measured(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.Tanh())], nn.Linear(256, 10))
    x = torch.randn(64, 256)
    found = memory.estimate(model, (x,), torch.optim.Adam(model.parameters()))
    kinds = [type(m) for m in model.modules()]
    promised = {saving.name: saving.peak for saving in found.savings}[name]
    assert [type(m) for m in model.modules()] == kinds and all(p.requires_grad for p in model.parameters())
    make: Any = torch.optim.Adam
    if "8 bits" in name:
        make = torch.optim.Adam8bit
    else:
        nn.utils.lora.apply(model)
    optimizer = make([p for p in model.parameters() if p.requires_grad])
    peaks = []
    for _ in range(2):
        memory.reset_peak()
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        peaks.append(memory.peak() - memory.current())
    held = sum(p.nbytes for p in model.parameters()) + x.nbytes
    state = {id(t): t.nbytes for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)}
    assert peaks[1] + held + sum(state.values()) == promised


def test_savings_that_do_not_apply_are_not_mentioned() -> None:
    model = nn.Sequential(nn.LayerNorm(500), nn.Conv1d(8, 8, 3, groups=8))
    for optimizer in (
        torch.optim.RMSprop,
        torch.optim.SGD,
        lambda params: torch.optim.Adam(params, amsgrad=True),
        None,
    ):
        names = [s.name for s in memory.estimate(model, (4, 8, 500), optimizer).savings]
        assert not any("8 bits" in name or "LoRA" in name for name in names)


def test_shapes_of_state_are_those_of_the_parameter() -> None:
    optimizer: Optimizer = torch.optim.Adafactor([nn.Parameter(torch.randn(30, 20))])
    shapes = state_shapes(optimizer, optimizer.param_groups[0], optimizer.param_groups[0]["params"][0])
    assert ((), torch.float32.numpy) in shapes or ((), None) in shapes
    assert {(5, 1), (1, 7)} <= {shape for shape, _ in shapes} or len(shapes) >= 2


def test_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refused)
    with pytest.raises(MemoryError, match=r"refuses 400,000,000 bytes .* ulimit -v"):
        memory.estimate(lambda: torch.nn.Linear(10_000, 10_000), (1, 10_000))


@pytest.mark.parametrize("name", ["bags", "mask", "linear"])
def test_what_is_a_guess_is_said_to_be_one(name: str) -> None:
    class Net(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            return largest_of_pairs(y) if name == "bags" else y[y > 0] if name == "mask" else y

    found = memory.estimate(Net(128, 128), (512, 128))
    assert bool(found.ran) == ("a guess, which may be low" in str(found)) == (name != "linear")


def test_without_kernels_an_estimate_says_whose_figures_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    found = memory.estimate(nn.Linear(4, 4), (2, 4))
    monkeypatch.setattr(loader, "built", lambda: False)
    monkeypatch.setattr(loader, "may_build", lambda: False)
    assert "of the native kernels, which are not in use here" in str(found)
    monkeypatch.setattr(loader, "may_build", lambda: True)
    assert "native kernels" not in str(found)


class Spectrum(nn.Module):
    """A layer, a filter in the frequencies, and back."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.layer, self.dims = nn.Linear(256, 256), dims

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        if self.dims == 1:
            return torch.fft.irfft(torch.fft.rfft(y) * 2).square().mean()
        return torch.fft.fft2(y).abs().mean()


@pytest.mark.parametrize("dims", [1, 2])
def test_transforms_to_frequencies_have_rules(dims: int) -> None:
    model, x = Spectrum(dims), torch.randn(16, 256, 256)
    found = memory.estimate(model, (x,))
    assert not found.ran
    model(x).backward()
    model.zero_grad()
    held = memory.current() - sum(t.nbytes for t in (*model.parameters(), x))
    memory.reset_peak()
    model(x).backward()
    assert abs(found.peak / (memory.peak() - held) - 1) < 0.1, (found.peak, memory.peak() - held)


class Deciding(nn.Module):
    """Goes on as values have it, in one of several ways of reading them."""

    def __init__(self, read: Any) -> None:
        super().__init__()
        self.layer, self.read = nn.Linear(256, 256), read

    def forward(self, x: Any, known: Any) -> Any:
        y = self.layer(x)
        for _ in range(2 if self.read(y, known) else 4):
            y = self.layer(y).tanh()
        return y.square().mean()


READS: dict[str, Any] = {
    "bool": lambda y, known: bool(y.sum() > 0),
    "float": lambda y, known: float(y.detach().max()) > 0,
    "item": lambda y, known: (y.detach().sum() * 2 + known.sum()).item() > 0,
    "tolist": lambda y, known: y.detach()[0, :3].tolist()[0] > 0,
    "in place": lambda y, known: bool(known.clone().add_(y.detach().sum()).sum() > 0),
}


@pytest.mark.parametrize("name", READS)
def test_decisions_by_values_that_are_not_computed_are_told(name: str) -> None:
    found = memory.estimate(Deciding(READS[name]), (torch.randn(512, 256), torch.ones(3)))
    (line,) = found.read
    assert "test_estimate.py:" in line and line in str(found) and "may be low" in str(found)


def test_values_that_are_known_may_be_read() -> None:
    model = Deciding(lambda y, known: bool(known.sum() > 0) and known.max().item() > 0)
    found = memory.estimate(model, (torch.randn(512, 256), torch.ones(3)))
    assert not found.read and "guess" not in str(found)


def test_what_trains_less_stands_last() -> None:
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.ReLU())])
    found = memory.estimate(model, (256, 64), torch.optim.Adam).savings
    less = ["trains less" in s.how for s in found]
    assert any(less) and not all(less) and less == sorted(less)
    for part in (found[: less.index(True)], found[less.index(True) :]):
        assert [s.peak for s in part] == sorted(s.peak for s in part)


@native
def test_rows_that_a_gate_sends_to_experts_are_spread() -> None:
    nn, functional = torch.nn, torch.nn.functional

    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(128, 8)
            self.experts = nn.ModuleList(
                [nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(8)]
            )

        def forward(self, x: Any) -> Any:
            weight, which = torch.topk(functional.softmax(self.gate(x), -1), 2)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                token, place = torch.where(which == i)
                out = out.index_add(0, token, expert(x[token]) * weight[token, place, None])
            return out

    torch.manual_seed(0)
    model, x = Mixture(), torch.randn(2048, 128)
    optimizer = torch.optim.Adam(model.parameters())

    def loss(out: Any) -> Any:
        return functional.mse_loss(out, x)

    def step() -> None:
        loss(model(x)).backward()
        optimizer.step()
        optimizer.zero_grad()

    gc.collect()
    others = memory.current() - x.nbytes - sum(p.nbytes for p in model.parameters())
    estimated = memory.estimate(model, x, optimizer=optimizer, loss=loss).peak
    step()
    memory.reset_peak()
    step()
    assert abs(estimated / (memory.peak() - others) - 1) < 0.05


def test_a_model_that_was_estimated_ends_with_its_last_reference() -> None:
    model = nn.Linear(3, 3)
    memory.estimate(model, torch.ones(2, 3))  # what is made once is there
    gone = weakref.ref(model)
    gc.collect()
    gc.disable()
    try:
        memory.estimate(model, torch.ones(2, 3), optimizer=torch.optim.Adam)
        del model
        assert gone() is None
    finally:
        gc.enable()
