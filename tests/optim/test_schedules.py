"""Schedules by themselves: closed forms, warnings, refusals, checkpoints.  Numbers are compared in tests/parity."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim import lr_scheduler as schedules
from rushlight.tensor import wrap


def optimizer_of(count=1, lr=1.0, kind="SGD", **options):
    if kind == "SGD":
        options.setdefault("momentum", 0.9)
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(count)]
    return getattr(torch.optim, kind)([{"params": [p]} for p in params], lr=lr, **options)


def rates(make, steps=8, **options):
    o = optimizer_of(**options)
    s = make(o)
    found = [o.param_groups[0]["lr"]]
    for _ in range(steps):
        o.step()
        s.step()
        found.append(s.get_last_lr()[0])
    return found


def test_what_the_schedules_do():
    assert rates(lambda o: schedules.StepLR(o, 3, 0.5)) == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]
    assert rates(lambda o: schedules.MultiStepLR(o, [2, 2, 4], 0.5), 5) == [1, 1, 0.25, 0.25, 0.125, 0.125]
    assert rates(lambda o: schedules.ConstantLR(o, 0.5, 3), 4) == [0.5, 0.5, 0.5, 1, 1]
    assert np.allclose(rates(lambda o: schedules.LinearLR(o, 0.5, 1.0, 4), 5), [0.5, 0.625, 0.75, 0.875, 1, 1])
    assert rates(lambda o: schedules.ExponentialLR(o, 0.5), 3) == [1, 0.5, 0.25, 0.125]
    assert np.allclose(rates(lambda o: schedules.PolynomialLR(o, 4, 2), 5), [1, 9 / 16, 1 / 4, 1 / 16, 0, 0])
    cosine = [(1 + math.cos(math.pi * e / 4)) / 2 for e in range(9)]
    assert np.allclose(rates(lambda o: schedules.CosineAnnealingLR(o, 4)), cosine)
    assert np.allclose(rates(lambda o: schedules.CosineAnnealingWarmRestarts(o, 4)), [*cosine[:4], *cosine[:4], 1])
    assert rates(lambda o: schedules.LambdaLR(o, lambda e: e + 1), 3) == [1, 2, 3, 4]
    assert rates(lambda o: schedules.MultiplicativeLR(o, lambda e: 0.5), 3) == [1, 0.5, 0.25, 0.125]
    assert rates(lambda o: schedules.CyclicLR(o, 1, 3, 2), 5) == [1, 2, 3, 2, 1, 2]
    one = rates(lambda o: schedules.OneCycleLR(o, 1.0, 9, anneal_strategy="linear", pct_start=0.5, div_factor=10))
    assert np.isclose(max(one), 1, atol=0.2) and np.isclose(one[0], 0.1) and one[-1] < 1e-4


def test_momentum_moves_against_the_rate():
    for kind, read in (("SGD", lambda g: g["momentum"]), ("Adam", lambda g: g["betas"][0])):
        o = optimizer_of(kind=kind)
        s = schedules.CyclicLR(o, 1, 3, 2)
        seen = [read(o.param_groups[0])]
        for _ in range(2):
            o.step()
            s.step()
            seen.append(read(o.param_groups[0]))
        assert np.allclose(seen, [0.9, 0.85, 0.8])


def test_fractions_of_epochs():
    o = optimizer_of()
    s = schedules.CosineAnnealingWarmRestarts(o, 2, T_mult=2)
    for epoch, place, length in ((0.5, 0.5, 2), (2.5, 0.5, 4), (5.5, 3.5, 4), (1, 1, 2)):
        s.step(epoch)
        assert (s.T_cur, s.T_i, s.last_epoch) == (place, length, math.floor(epoch))
        assert math.isclose(o.param_groups[0]["lr"], (1 + math.cos(math.pi * place / length)) / 2)
    with pytest.raises(ValueError, match="non-negative"):
        s.step(-1)


def test_calls_in_the_wrong_order_are_warned_of():
    o = optimizer_of()
    s = schedules.StepLR(o, 3)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        s.step()
    s.step()  # said once
    o = optimizer_of()
    s = schedules.StepLR(o, 3)
    o.step = lambda: None
    with pytest.warns(UserWarning, match="overridden"):
        s.step()
    o = optimizer_of()
    o.step = lambda: 5
    s = schedules.StepLR(o, 3)
    assert o.step() == 5
    s.step()


def test_other_warnings():
    o = optimizer_of()
    s = schedules.StepLR(o, 3)
    o.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        s.step(6)
    assert np.isclose(o.param_groups[0]["lr"], 0.01)
    with pytest.warns(UserWarning, match="get_last_lr"):
        s.get_lr()
    p = schedules.ReduceLROnPlateau(o)
    with pytest.warns(UserWarning, match="epoch parameter"):
        p.step(1.0, epoch=3)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: schedules.StepLR(3, 3), TypeError, "int is not an Optimizer"),
        (lambda o: schedules.CyclicLR(3, 1, 2), TypeError, "not an Optimizer"),
        (lambda o: schedules.StepLR(o, 3, last_epoch=2), KeyError, "initial_lr"),
        (lambda o: schedules.LambdaLR(o, [abs] * 3), ValueError, "Expected 2 lr_lambdas, but got 3"),
        (lambda o: schedules.ConstantLR(o, 2), ValueError, "between 0 and 1"),
        (lambda o: schedules.LinearLR(o, 0), ValueError, "greater than 0"),
        (lambda o: schedules.LinearLR(o, end_factor=2), ValueError, "between 0 and 1"),
        (lambda o: schedules.CyclicLR(o, [1], 2), ValueError, "base_lr has 1 values, param_groups has 2"),
        (lambda o: schedules.CyclicLR(o, 1, 2, mode="x"), ValueError, "mode is invalid"),
        (lambda o: schedules.CyclicLR(optimizer_of(kind="Adagrad"), 1, 2), ValueError, "momentum or beta1"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "T_mult"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 1, 1, "a"), ValueError, "eta_min"),
        (lambda o: schedules.OneCycleLR(o, 1), ValueError, "total_steps OR"),
        (lambda o: schedules.OneCycleLR(o, 1, 0), ValueError, "positive integer total_steps"),
        (lambda o: schedules.OneCycleLR(o, 1, epochs=0, steps_per_epoch=1), ValueError, "epochs"),
        (lambda o: schedules.OneCycleLR(o, 1, epochs=1, steps_per_epoch=0.5), ValueError, "steps_per_epoch"),
        (lambda o: schedules.OneCycleLR(o, 1, 5, pct_start=2), ValueError, "pct_start"),
        (lambda o: schedules.OneCycleLR(o, 1, 5, anneal_strategy="x"), ValueError, "anneal_strategy"),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), ValueError, r"< 1\.0"),
        (lambda o: schedules.ReduceLROnPlateau(o, "x"), ValueError, "mode x is unknown"),
        (lambda o: schedules.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode x is unknown"),
        (lambda o: schedules.ReduceLROnPlateau(o, min_lr=[0]), ValueError, "expected 2 min_lrs, got 1"),
        (lambda o: schedules.ReduceLROnPlateau(o).get_lr(), NotImplementedError, "get_lr"),
        (lambda o: schedules.SequentialLR(o, [], []), ValueError, "at least one"),
        (lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1)], [3]), ValueError, "one more than"),
        (lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1), 3], [3]), TypeError, "at index 1"),
        (lambda o: schedules.SequentialLR(o, [schedules.ReduceLROnPlateau(o)], []), ValueError, "does not support"),
        (lambda o: schedules.SequentialLR(o, [schedules.StepLR(optimizer_of(), 1)], []), ValueError, "same optimizer"),
        (lambda o: schedules.ChainedScheduler([]), ValueError, "at least one"),
        (lambda o: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(o)]), ValueError, "does not support"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make(optimizer_of(2))


def test_one_cycle_ends():
    o = optimizer_of()
    s = schedules.OneCycleLR(o, 1.0, 2)
    for _ in range(2):
        o.step()
        s.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        s.step()


def test_rates_that_are_tensors_stay_the_same_tensor():
    o = optimizer_of(lr=wrap(np.array(0.5)))
    kept = o.param_groups[0]["lr"]
    s = schedules.StepLR(o, 1)
    o.step()
    s.step()
    assert o.param_groups[0]["lr"] is kept and np.isclose(kept.item(), 0.05)
    assert s.base_lrs[0].item() == 0.5 and s.get_last_lr()[0] is not kept


def test_groups_added_later():
    o = optimizer_of()
    s = schedules.ReduceLROnPlateau(o, patience=0, min_lr=0.01)
    o.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 2.0})
    s.step(1.0)
    s.step(1.0)
    assert np.allclose(s.get_last_lr(), [0.1, 0.2])
    fixed = schedules.ReduceLROnPlateau(optimizer_of(), patience=0, min_lr=[0.01])
    fixed.optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    fixed.step(1.0)
    with pytest.raises(RuntimeError, match="min_lrs"):
        fixed.step(1.0)


class Decay:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x):
        return self.rate**x


def test_functions_in_checkpoints():
    o = optimizer_of(2)
    s = schedules.LambdaLR(o, [Decay(0.5), lambda e: 1.0])
    state = s.state_dict()
    assert state["lr_lambdas"] == [{"rate": 0.5}, None]
    again = schedules.LambdaLR(optimizer_of(2), [Decay(0.9), lambda e: 1.0])
    again.load_state_dict(state)
    assert again.lr_lambdas[0].rate == 0.5 and state["lr_lambdas"] == [{"rate": 0.5}, None]
    c = schedules.CyclicLR(optimizer_of(), 1, 2, scale_fn=Decay(0.5))
    d = schedules.CyclicLR(optimizer_of(), 1, 2, scale_fn=Decay(0.9))
    d.load_state_dict(c.state_dict())
    assert d._scale_fn_custom.rate == 0.5
    assert schedules.CyclicLR(optimizer_of(), 1, 2, scale_fn=lambda x: 1).state_dict()["_scale_fn_custom"] is None


def test_copies():
    o = optimizer_of()
    s = schedules.CosineAnnealingLR(o, 5)
    for again in (copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        again.optimizer.step()
        again.step()
        assert again.last_epoch == 1 and s.last_epoch == 0


def test_schedules_and_optimizers_form_no_cycles():
    gc.collect()
    gc.disable()
    try:
        o = optimizer_of()
        made = [schedules.SequentialLR(o, [schedules.StepLR(o, 1), schedules.CyclicLR(o, 1, 2)], [3])]
        made += [schedules.OneCycleLR(o, 1, 5), schedules.ReduceLROnPlateau(o)]
        refs = [weakref.ref(x) for x in (o, *made)]
        o.step()
        del o, made
        assert [r() for r in refs] == [None] * 4
    finally:
        gc.enable()


# Averages ------------------------------------------------------------------------------------------


def test_averages_of_models():
    from rushlight.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, get_swa_avg_fn

    def follow(**options):
        m = torch.nn.BatchNorm1d(2)
        a = AveragedModel(m, **options)
        for value in (1.0, 2.0, 6.0):
            m.weight.data.fill_(value)
            m.running_mean.fill_(value)
            a.update_parameters(m)
        assert a.n_averaged.item() == 3
        return a.module.weight[0].item(), a.module.running_mean[0].item()

    assert np.allclose(follow(), (3, 6))
    assert np.allclose(follow(use_buffers=True), (3, 3))
    assert np.allclose(follow(avg_fn=get_swa_avg_fn()), (3, 6))
    expected = 0.5 * (0.5 * 1 + 0.5 * 2) + 0.5 * 6
    assert np.allclose(follow(multi_avg_fn=get_ema_multi_avg_fn(0.5)), (expected, 6))
    assert np.allclose(follow(avg_fn=get_ema_avg_fn(0.5), use_buffers=True), (expected, expected))
    with pytest.raises(AssertionError, match="Only one"):
        follow(avg_fn=get_swa_avg_fn(), multi_avg_fn=get_ema_multi_avg_fn())
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="decay"):
            make(2.0)


def test_an_averaged_model_is_a_module():
    from rushlight.optim.swa_utils import AveragedModel

    m = torch.nn.Linear(2, 1)
    a = AveragedModel(m, device="cpu")
    x = torch.ones(3, 2)
    assert torch.equal(a(x), m(x))
    assert list(a.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    assert a.module.weight is not m.weight


def test_update_bn():
    from rushlight.optim.swa_utils import update_bn

    m = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.ReLU()).eval()
    batches = [torch.ones(4, 2), torch.ones(4, 2) * 4]
    update_bn(batches, m)
    assert np.allclose(m[0].running_mean._array, 2.5) and m[0].momentum == 0.1 and not m.training
    m.train()
    update_bn([(b, 0) for b in batches], m, device="cpu")
    assert np.allclose(m[0].running_mean._array, 2.5) and m.training
    update_bn(None, torch.nn.ReLU())


def test_swalr():
    o = optimizer_of()
    s = torch.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=2, anneal_strategy="linear")
    seen = []
    for _ in range(4):
        o.step()
        s.step()
        seen.append(s.get_last_lr()[0])
    assert np.allclose(seen, [0.55, 0.1, 0.1, 0.1])
    for args in (([0.1, 0.1],), (0.1, -1), (0.1, 1, "x")):
        with pytest.raises(ValueError):
            torch.optim.swa_utils.SWALR(optimizer_of(), *args)


def test_schedules_may_begin_with_the_second():
    o = optimizer_of()
    lr = torch.optim.lr_scheduler
    s = lr.SequentialLR(o, [lr.LinearLR(o), lr.CosineAnnealingLR(o, 3)], [0])
    seen = []
    for _ in range(3):
        o.step()
        s.step()
        seen.append(s.get_last_lr()[0])
    assert np.allclose(seen, [0.75, 0.25, 0.0])
