"""Observers, and rounding while a model trains: limits, scales, losses and refusals are PyTorch's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(0)
BATCHES = [RNG.normal(i, 1 + i, (4, 6)).astype(np.float32) for i in range(3)]


def q(t: Any) -> Any:
    if t is torch:
        import torch.ao.quantization as found

        return found
    return rushlight.ao.quantization


def plain(value: Any) -> Any:
    """Tensors as their dtype and numbers."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        return str(value.dtype), tuple(value.shape), np.round(value.detach().double().numpy(), 4).tolist()
    return value


def both(call: Callable[[Any], Any]) -> None:
    ours, theirs = (outcome(lambda t=t: call(t)) for t in (rushlight, torch))
    assert ours == theirs


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return plain(call())
    except (NotImplementedError, AssertionError, ValueError, RuntimeError) as error:
        return type(error).__name__


OBSERVERS = {
    "MinMax": lambda t: q(t).MinMaxObserver(), "bytes with signs": lambda t: q(t).MinMaxObserver(dtype=t.qint8),
    "symmetric": lambda t: q(t).MinMaxObserver(qscheme=t.per_tensor_symmetric), "symmetric signed": lambda t: q(t).MinMaxObserver(dtype=t.qint8, qscheme=t.per_tensor_symmetric),
    "range": lambda t: q(t).MinMaxObserver(quant_min=0, quant_max=15), "symmetric range": lambda t: q(t).MinMaxObserver(quant_min=0, quant_max=15, qscheme=t.per_tensor_symmetric),
    "reduced": lambda t: q(t).MinMaxObserver(reduce_range=True), "int32": lambda t: q(t).MinMaxObserver(dtype=t.qint32), "int16": lambda t: q(t).MinMaxObserver(dtype=t.int16),
    "uint16": lambda t: q(t).MinMaxObserver(dtype=t.uint16, qscheme=t.per_tensor_symmetric), "eps": lambda t: q(t).MinMaxObserver(eps=10.0),
    "means": lambda t: q(t).MovingAverageMinMaxObserver(averaging_constant=0.3), "dynamic": lambda t: q(t).MovingAverageMinMaxObserver(averaging_constant=1, is_dynamic=True),
    "channels": lambda t: q(t).PerChannelMinMaxObserver(ch_axis=1), "symmetric channels": lambda t: q(t).PerChannelMinMaxObserver(dtype=t.qint8, qscheme=t.per_channel_symmetric),
    "real zero points": lambda t: q(t).PerChannelMinMaxObserver(qscheme=t.per_channel_affine_float_qparams), "means of channels": lambda t: q(t).MovingAveragePerChannelMinMaxObserver(0.25),
    "fixed": lambda t: q(t).FixedQParamsObserver(0.5, 3), "placeholder": lambda t: q(t).PlaceholderObserver(), "nothing": lambda t: q(t).NoopObserver(),
    "bins": lambda t: q(t).HistogramObserver(bins=64), "signed bins": lambda t: q(t).HistogramObserver(dtype=t.qint8, qscheme=t.per_tensor_symmetric),
    "wrong scheme": lambda t: q(t).MinMaxObserver(qscheme=t.per_channel_affine), "wrong dtype": lambda t: q(t).MinMaxObserver(dtype=t.float32),
    "no zero": lambda t: q(t).MinMaxObserver(quant_min=1, quant_max=5), "too wide": lambda t: q(t).MinMaxObserver(dtype=t.qint8, quant_min=-200, quant_max=200),
    "dynamic means": lambda t: q(t).MovingAverageMinMaxObserver(is_dynamic=True), "reduced symmetric": lambda t: q(t).MinMaxObserver(qscheme=t.per_tensor_symmetric, reduce_range=True),
}  # fmt: skip


@pytest.mark.parametrize("name", OBSERVERS)
def test_observers_see_the_limits_and_steps_that_pytorchs_see(name: str) -> None:
    def found(t: Any) -> Any:
        observer = OBSERVERS[name](t)
        out = [str(observer.dtype), getattr(observer, "quant_min", None), getattr(observer, "quant_max", None)]
        if name not in ("placeholder", "nothing"):
            out.append(outcome(observer.calculate_qparams))
        for batch in BATCHES:
            x = t.from_numpy(batch).requires_grad_()
            assert observer(x) is x
            observer(t.empty(0))
            out.append(outcome(observer.calculate_qparams) if name not in ("placeholder", "nothing") else None)
        state = observer.state_dict()
        out += [sorted(state), [plain(v) for v in state.values()], str(observer).split("(")[0]]
        fresh = OBSERVERS[name](t)
        fresh.load_state_dict(state)
        return [*out, fresh.calculate_qparams() if name not in ("placeholder", "nothing") else None]

    both(found)


@pytest.mark.parametrize("n", [100, 5000])
@pytest.mark.parametrize("tails", [2.0, 50.0])
def test_histograms_cut_off_what_pytorchs_cut_off(n: int, tails: float) -> None:
    numbers = np.random.default_rng(n).standard_t(tails, (3, n)).astype(np.float32)

    def found(t: Any) -> Any:
        observer = q(t).HistogramObserver(bins=256)
        for row in numbers:
            observer(t.from_numpy(row))
        observer(t.tensor([float("inf"), 1.0]))
        return observer.histogram, observer.min_val, observer.max_val, observer.calculate_qparams()

    both(found)


FAKES = {
    "default": lambda t: q(t).FakeQuantize(), "default_fake_quant": lambda t: q(t).default_fake_quant(), "default_weight_fake_quant": lambda t: q(t).default_weight_fake_quant(),
    "default_per_channel_weight_fake_quant": lambda t: q(t).default_per_channel_weight_fake_quant(), "default_embedding_fake_quant": lambda t: q(t).default_embedding_fake_quant(),
    "default_dynamic_fake_quant": lambda t: q(t).default_dynamic_fake_quant(), "default_histogram_fake_quant": lambda t: q(t).default_histogram_fake_quant(),
    "default_fixed_qparams_range_0to1_fake_quant": lambda t: q(t).default_fixed_qparams_range_0to1_fake_quant(),
    "default_fused_act_fake_quant": lambda t: q(t).default_fused_act_fake_quant(), "default_fused_wt_fake_quant": lambda t: q(t).default_fused_wt_fake_quant(),
    "default_fused_per_channel_wt_fake_quant": lambda t: q(t).default_fused_per_channel_wt_fake_quant(),
    "fused_wt_fake_quant_range_neg_127_to_127": lambda t: q(t).fused_wt_fake_quant_range_neg_127_to_127(),
    "few steps": lambda t: q(t).FakeQuantize(q(t).MinMaxObserver, 0, 7), "out of bounds": lambda t: q(t).FakeQuantize(quant_min=-1, quant_max=7),
    "fused minmax": lambda t: q(t).FusedMovingAvgObsFakeQuantize(q(t).MinMaxObserver),
}  # fmt: skip


@pytest.mark.parametrize("name", FAKES)
def test_numbers_and_gradients_are_rounded_as_pytorchs(name: str) -> None:
    def found(t: Any) -> Any:
        fake, out = FAKES[name](t), []
        for i, batch in enumerate([*BATCHES, BATCHES[0]]):
            if i == 3:
                fake.apply(q(t).disable_observer)
            x = t.from_numpy(batch * 2).requires_grad_()
            y = fake(x)
            (y * y).sum().backward()
            out += [y, x.grad, fake.scale, fake.zero_point]
        fake.apply(q(t).disable_fake_quant)
        out.append(fake(t.ones(2, 2)))
        fake.apply(q(t).enable_fake_quant)
        fake.apply(q(t).enable_observer)
        state = fake.state_dict()
        fresh = FAKES[name](t)
        fresh.load_state_dict(state)
        return [
            *out,
            sorted(state),
            [str(v.dtype) for v in state.values()],
            fresh.scale,
            fresh.extra_repr().split("scale")[0].replace("torch.", ""),
        ]

    both(found)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [[0.0, 0.0], [1.0, 2.0], [-3.0, -1.0], [-1e-6, 1e-7], [1e-8, 2e-8], [-300.0, 5.0], [-1.0, 1.0], [-1e-9, 3.0]],
)
@pytest.mark.parametrize("limits", [(0, 255), (-128, 127), (0, 15)])
def test_one_function_finds_pytorchs_steps(symmetric: bool, numbers: list[float], limits: tuple[int, int]) -> None:
    def found(t: Any) -> Any:
        on, scale, zero = t.tensor([1]), t.ones(1), t.zeros(1, dtype=t.int32)
        low, high = t.tensor(float("inf")), t.tensor(float("-inf"))
        y = t.fused_moving_avg_obs_fake_quant(
            t.tensor(numbers), on, on, low, high, scale, zero, 0.1, *limits, 0, False, symmetric
        )
        return y, low, high, scale.log(), zero

    both(found)


def make(t: Any) -> Any:
    net = t.nn.Sequential(
        q(t).QuantStub(),
        t.nn.Linear(6, 8),
        t.nn.ReLU(),
        t.nn.Dropout(0.0),
        t.nn.Linear(8, 8),
        t.nn.Tanh(),
        t.nn.Linear(8, 3),
        q(t).DeQuantStub(),
    )
    rng = np.random.default_rng(1)
    with t.no_grad():
        for p in net.parameters():
            p.copy_(t.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32)))
    return net


@pytest.mark.parametrize(
    "config",
    [
        "x86",
        "fbgemm",
        "qnnpack",
        "onednn",
        "x86 0",
        "default_qat_qconfig",
        "default_qat_qconfig_v2",
        "default_weight_only_qconfig",
        "default_dynamic_qat_qconfig",
    ],
)
def test_a_small_model_trains_with_pytorchs_losses(config: str) -> None:
    def found(t: Any) -> Any:
        net = make(t)
        name, _, version = config.partition(" ")
        net.qconfig = (
            getattr(q(t), name)
            if name.startswith("default")
            else q(t).get_default_qat_qconfig(name, version=int(version or 1))
        )
        net = q(t).prepare_qat(net)
        optimizer, losses = t.optim.SGD(net.parameters(), 0.05), []
        for step in range(6):
            if step == 4:
                net.apply(q(t).disable_observer)
            loss = t.nn.functional.cross_entropy(net(t.from_numpy(BATCHES[step % 3])), t.tensor([0, 1, 2, 0]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(round(loss.item(), 4))
        return losses, [name for name, _ in net.named_modules()], sorted(net.state_dict())

    both(found)


def test_convolutions_train_rounded_and_models_are_observed() -> None:
    def found(t: Any) -> Any:
        net = t.nn.Sequential(t.nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), t.nn.ReLU6())
        with t.no_grad():
            for p in net.parameters():
                p.copy_(t.linspace(-1, 0.73, p.numel()).reshape(p.shape))
        net.qconfig = q(t).get_default_qat_qconfig()
        x = t.from_numpy(BATCHES[0]).reshape(1, 1, 4, 6)
        trained = q(t).prepare_qat(net)
        back = trained[0].to_float()
        net.qconfig = q(t).get_default_qconfig()
        observed = q(t).prepare(net.eval())
        seen = observed(x)
        return [trained(x), type(back).__name__, back.padding_mode, seen, [n for n, _ in observed.named_modules()], sorted(q(t).get_observer_state_dict(observed)),
                observed[1].activation_post_process.calculate_qparams()]  # fmt: skip

    both(found)


def test_settings_are_compared_copied_and_refused_as_pytorchs() -> None:
    def found(t: Any) -> Any:
        a, b = q(t).get_default_qat_qconfig(), q(t).get_default_qat_qconfig("qnnpack")
        wide = q(t).MinMaxObserver.with_args(quant_min=0, quant_max=15).with_args(quant_max=7)
        return [q(t).qconfig_equals(a, q(t).get_default_qat_qconfig()), q(t).qconfig_equals(a, b), q(t).qconfig_equals(None, a), wide().quant_max,
                outcome(lambda: q(t).QConfig(wide(), wide)), outcome(lambda: q(t).get_default_qconfig("none")), repr(t.per_channel_affine), isinstance(t.per_tensor_affine, t.qscheme),
                copy.deepcopy(t.per_tensor_symmetric) is t.per_tensor_symmetric, pickle.loads(pickle.dumps(t.per_tensor_affine)) is t.per_tensor_affine,
                [(t.iinfo(d).bits, t.iinfo(d).min, t.iinfo(d).max) for d in (t.quint8, t.qint8, t.qint32, t.quint4x2)]]  # fmt: skip

    both(found)


def test_all_names_of_settings_are_there() -> None:
    import torch.ao.quantization as theirs

    ours = rushlight.ao.quantization
    prefixes = ("default_", "fused_", "per_channel", "weight_", "float", "enable_", "disable_")
    missing = [
        n
        for n in dir(theirs)
        if (n.startswith(prefixes) or n.endswith(("Observer", "FakeQuantize", "qconfig"))) and not hasattr(ours, n)
    ]
    assert set(missing) <= {
        "default_eval_fn",
        "ObserverOrFakeQuantize",
        "_DerivedObserverOrFakeQuantize",
        "script_qconfig",
    }


def test_quantized_numbers_are_refused_by_name() -> None:
    for call in (lambda: rushlight.ao.quantization.convert(rushlight.nn.Linear(1, 1)), lambda: rushlight.zeros(1, dtype=rushlight.quint8),
                 lambda: rushlight.ao.quantization.quantize_dynamic(rushlight.nn.Linear(1, 1))):  # fmt: skip
        with pytest.raises(NotImplementedError, match="there are no quantized tensors"):
            call()
