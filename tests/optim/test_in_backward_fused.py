"""`optim.in_backward`: the same numbers as a loop that steps after backward, with everything that is around it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight.basics.state import special
from rushlight.nn.utils import clip_grad_norm_, clip_grad_value_
from rushlight.tensor import wrap

OPTIM = torch.optim
EVERY = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01},
    "Adam": {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.01},
    "Adagrad": {"lr": 0.05},
    "RMSprop": {"lr": 0.01, "momentum": 0.9, "centered": True},
    "Adadelta": {"lr": 1.0},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "Adamax": {"lr": 0.01},
    "ASGD": {"lr": 0.01, "t0": 2},
    "Rprop": {"lr": 0.01},
    "Adafactor": {"lr": 0.01},
    "Muon": {"lr": 0.01},
}


class Net(torch.nn.Module):
    """A net with a matrix that is used twice, and, but for Muon, vectors."""

    def __init__(self, bias=True):
        super().__init__()
        self.a = torch.nn.Linear(5, 8, bias=bias)
        self.b = torch.nn.Linear(8, 8, bias=bias)
        self.c = torch.nn.Linear(8, 3, bias=bias)

    def forward(self, x):
        x = torch.tanh(self.a(x))
        x = torch.tanh(self.b(torch.tanh(self.b(x))))
        return self.c(x)


def twins(bias=True):
    torch.manual_seed(0)
    net = Net(bias)
    return net, copy.deepcopy(net)


def batches(n, seed=1):
    rng = np.random.default_rng(seed)
    return [(wrap(rng.standard_normal((6, 5)).astype(np.float32)), wrap(rng.integers(0, 3, 6))) for _ in range(n)]


def loss_of(net, batch):
    return torch.nn.functional.cross_entropy(net(batch[0]), batch[1])


def same(a, b):
    return all(np.array_equal(p._array, q._array) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def plain(net, optimizer, data, accumulate=1, clip=lambda params: None, schedule=None):
    losses = []
    for i, batch in enumerate(data):
        loss = loss_of(net, batch)
        (loss / accumulate).backward()
        losses.append(loss.item())
        if (i + 1) % accumulate == 0:
            clip(list(net.parameters()))
            optimizer.step()
            optimizer.zero_grad()
            if schedule is not None:
                schedule.step()
    return losses


def fused(net, data, accumulate=1, schedule=None):
    losses = []
    for i, batch in enumerate(data):
        loss = loss_of(net, batch)
        (loss / accumulate).backward()
        losses.append(loss.item())
        if (i + 1) % accumulate == 0:
            assert all(p.grad is None for p in net.parameters())
            if schedule is not None:
                schedule.step()
    return losses


# Every optimizer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_every_optimizer_steps_as_it_does_after_backward(name):
    one, two = twins(bias=name != "Muon")
    optimizers = [getattr(OPTIM, name)(net.parameters(), **EVERY[name]) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1]) as handle:
        assert plain(one, optimizers[0], batches(6)) == fused(two, batches(6))
    assert same(one, two) and handle.steps == 6
    states = [o.state_dict() for o in optimizers]
    assert states[0]["param_groups"] == states[1]["param_groups"]
    for key, state in states[0]["state"].items():
        assert state.keys() == states[1]["state"][key].keys()
        for k, v in state.items():
            assert np.array_equal(v._array, states[1]["state"][key][k]._array)


def test_leaving_the_block_restores_the_ordinary_optimizer():
    one, two = twins()
    optimizers = [OPTIM.Adam(net.parameters(), lr=0.01) for net in (one, two)]
    data = batches(9)
    with OPTIM.in_backward(optimizers[1]) as handle:
        assert handle.active and special.launcher is not None
        fused(two, data[:3])
    assert not handle.active and special.launcher is None
    plain(two, optimizers[1], data[3:6])
    with OPTIM.in_backward(optimizers[1]):
        fused(two, data[6:])
    plain(one, optimizers[0], data)
    assert same(one, two)
    handle.remove()  # harmless


def test_a_loop_with_step_and_zero_grad_needs_no_change():
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.1, momentum=0.9) for net in (one, two)]
    schedules = [OPTIM.lr_scheduler.StepLR(o, 2, 0.5) for o in optimizers]
    handle = OPTIM.in_backward(optimizers[1])
    losses = [
        plain(net, o, batches(8), schedule=s) for net, o, s in zip((one, two), optimizers, schedules, strict=True)
    ]
    assert losses[0] == losses[1] and same(one, two) and handle.steps == 8
    handle.remove()


# Schedules, groups ---------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("make", [
    lambda o: OPTIM.lr_scheduler.StepLR(o, 2, 0.5),
    lambda o: OPTIM.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    lambda o: OPTIM.lr_scheduler.SequentialLR(o, [OPTIM.lr_scheduler.LinearLR(o), OPTIM.lr_scheduler.CosineAnnealingLR(o, 5)], [3]),
])  # fmt: skip
def test_schedules(make, before):
    """No warning either, though nobody calls `step`: warnings are errors."""
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.1, momentum=0.9) for net in (one, two)]
    schedules = [make(o) for o in optimizers] if before else []
    handle = OPTIM.in_backward(optimizers[1])
    schedules = schedules or [make(o) for o in optimizers]
    assert plain(one, optimizers[0], batches(8), schedule=schedules[0]) == fused(two, batches(8), schedule=schedules[1])
    assert same(one, two)
    handle.remove()


def test_a_schedule_of_the_metric():
    _, net = twins()
    o = OPTIM.SGD(net.parameters(), lr=0.1)
    schedule = OPTIM.lr_scheduler.ReduceLROnPlateau(o, patience=0)
    with OPTIM.in_backward(o):
        for loss in (1.0, 2.0, 3.0):
            fused(net, batches(1))
            schedule.step(loss)
    assert o.param_groups[0]["lr"] < 0.1


def grouped(net):
    return [
        {"params": net.a.parameters(), "lr": 0.2},
        {"params": [net.b.weight], "momentum": 0.0},
        {"params": [net.b.bias], "weight_decay": 0.1},
    ]


def test_options_of_groups_and_groups_that_come_later():
    one, two = twins()
    optimizers = [OPTIM.SGD(grouped(net), lr=0.1, momentum=0.9) for net in (one, two)]
    data = batches(8)
    with OPTIM.in_backward(optimizers[1]) as handle:
        for net, o in zip((one, two), optimizers, strict=True):
            net.c.requires_grad_(False)
            plain(net, o, data[:4])
            net.c.requires_grad_(True)
            o.add_param_group({"params": net.c.parameters(), "lr": 0.01})
            plain(net, o, data[4:])
    assert same(one, two) and len(optimizers[1].param_groups) == 4 and handle.steps == 8


def test_options_changed_between_steps():
    one, two = twins()
    optimizers = [OPTIM.Adam(net.parameters(), lr=0.1) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1]):
        for i, batch in enumerate(batches(5)):
            for o in optimizers:
                o.param_groups[0].update(lr=0.1 / (i + 1), weight_decay=0.01 * i)
            plain(one, optimizers[0], [batch])
            fused(two, [batch])
    assert same(one, two)


def test_frozen_parameters_are_left_out():
    one, two = twins()
    optimizers = [OPTIM.AdamW(net.parameters(), lr=0.1) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1]):
        for i, batch in enumerate(batches(6)):
            for net in (one, two):
                net.b.requires_grad_(i % 3 == 0)
                net.a.weight.requires_grad_(i % 2 == 0)
            plain(one, optimizers[0], [batch])
            fused(two, [batch])
    assert same(one, two)


# Accumulation and several losses -------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Adafactor"])
def test_accumulation_over_micro_batches(optimizer):
    one, two = twins()
    optimizers = [getattr(OPTIM, optimizer)(net.parameters(), lr=0.05) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1], accumulate=4) as handle:
        assert plain(one, optimizers[0], batches(12), 4) == fused(two, batches(12), 4)
        assert handle.steps == 3 and handle.backward_calls == 0
        (loss_of(two, batches(1)[0]) / 4).backward()
        assert handle.backward_calls == 1 and two.a.weight.grad is not None
        optimizers[1].zero_grad()
        assert handle.backward_calls == 0 and two.a.weight.grad is None
    assert same(one, two)


def test_step_completes_a_step_of_fewer_micro_batches():
    one, two = twins()
    optimizers = [OPTIM.Adam(net.parameters(), lr=0.05) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1], accumulate=4, clip_grad_norm=0.01) as handle:
        for net, o in zip((one, two), optimizers, strict=True):
            for batch in batches(3):
                (loss_of(net, batch) / 4).backward()
            if net is one:
                norm = clip_grad_norm_(net.parameters(), 0.01)
            o.step()
            o.zero_grad()
        assert handle.steps == 1 and handle.backward_calls == 0 and handle.grad_norm.item() == norm.item()
    assert same(one, two)


def test_several_losses_of_one_step():
    one, two = twins()
    optimizers = [OPTIM.Adam(net.parameters(), lr=0.05) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1], backwards=2) as handle:
        for batch in batches(4):
            for net in (one, two):
                out = net(batch[0])
                out.sum().backward(retain_graph=True)
                assert net.a.weight.grad is not None
                (out**2).sum().backward()
            optimizers[0].step()
            optimizers[0].zero_grad()
            assert two.a.weight.grad is None
    assert same(one, two) and handle.steps == 4


def test_a_loss_that_reaches_some_parameters_alone():
    """The last of the declared calls steps those that it does not reach as well."""
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.05) for net in (one, two)]
    with OPTIM.in_backward(optimizers[1], backwards=2, clip_grad_norm=0.3):
        for batch in batches(3):
            for net in (one, two):
                loss_of(net, batch).backward()
                (net.a.weight**2).sum().backward()
            clip_grad_norm_(one.parameters(), 0.3)
            optimizers[0].step()
            optimizers[0].zero_grad()
            assert all(p.grad is None for p in two.parameters())
    assert same(one, two)


def test_gradients_that_were_there_before():
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.05) for net in (one, two)]
    extra = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    for o, p in zip(optimizers, extra, strict=True):
        o.add_param_group({"params": [p]})
    with OPTIM.in_backward(optimizers[1], clip_grad_norm=0.3) as handle:
        for batch in batches(3):
            for net, p in zip((one, two), extra, strict=True):
                p.grad = torch.full((2,), 0.5)
                net.a.weight.grad = torch.full((8, 5), 0.25)
                loss_of(net, batch).backward()
            norm = clip_grad_norm_([*one.parameters(), extra[0]], 0.3)
            optimizers[0].step()
            optimizers[0].zero_grad()
            assert norm.item() == handle.grad_norm.item()
    assert same(one, two) and extra[0].tolist() == extra[1].tolist() != [1.0, 1.0]


def test_gradients_put_there_by_hand():
    _, net = twins()
    o = OPTIM.SGD(net.parameters(), lr=1.0)
    with OPTIM.in_backward(o):
        before = net.a.bias.detach().clone()
        net.a.bias.grad = torch.ones(8)
        o.step()
        assert net.a.bias.grad is None
        assert np.allclose(net.a.bias._array, before._array - 1)


def test_surplus_calls_are_reported():
    _, net = twins()
    o = OPTIM.SGD(net.parameters(), lr=0.1)
    with OPTIM.in_backward(o):
        for batch in batches(4):
            loss_of(net, batch).backward()
        with pytest.raises(RuntimeError, match=r"4 backward calls since the last step.*accumulate=4"):
            o.step()
        loss_of(net, batches(1)[0]).backward()
        o.step()  # goes on


# Clipping ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_clipping_by_the_norm_of_all(passes, norm_type, accumulate):
    one, two = twins()
    optimizers = [OPTIM.Adam(net.parameters(), lr=0.05) for net in (one, two)]
    norms = []
    handle = OPTIM.in_backward(
        optimizers[1], clip_grad_norm=0.05, norm_type=norm_type, clip_passes=passes, accumulate=accumulate
    )
    for batch in range(4):
        data = batches(accumulate, batch)
        a = plain(one, optimizers[0], data, accumulate, lambda ps: norms.append(clip_grad_norm_(ps, 0.05, norm_type)))
        assert a == fused(two, data, accumulate)
        assert handle.grad_norm.item() == norms[-1].item() > 0.05
    assert same(one, two)
    handle.remove()


@pytest.mark.parametrize("passes", [1, 2])
def test_clipping_each_group_and_each_parameter(passes):
    one, two = twins()

    def groups(net):
        return [{"params": list(part.parameters())} for part in (net.a, net.b, net.c)]

    optimizers = [OPTIM.SGD(groups(net), lr=0.5) for net in (one, two)]
    limits = [0.1, None, 0.01]

    def clip(_):
        found.clear()
        for group, limit in zip(optimizers[0].param_groups, limits, strict=True):
            found.append(clip_grad_norm_(group["params"], limit or 1e9).item())

    found = []
    with OPTIM.in_backward(optimizers[1], clip_grad_norm=limits, clip_by="group", clip_passes=passes) as handle:
        assert plain(one, optimizers[0], batches(4), clip=clip) == fused(two, batches(4))
        assert [n.item() for n in handle.grad_norm] == found
    with OPTIM.in_backward(optimizers[1], clip_grad_norm=0.01, clip_by="parameter") as handle:
        a = plain(one, optimizers[0], batches(4), clip=lambda ps: [clip_grad_norm_([p], 0.01) for p in ps])
        assert a == fused(two, batches(4)) and len(handle.grad_norm) == 6
    assert same(one, two)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_clipping_by_value(accumulate):
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.5) for net in (one, two)]

    def clip(ps):
        clip_grad_value_(ps, 0.01)
        clip_grad_norm_(ps, 0.02)

    with OPTIM.in_backward(optimizers[1], clip_grad_value=0.01, clip_grad_norm=0.02, accumulate=accumulate):
        assert plain(one, optimizers[0], batches(4), accumulate, clip) == fused(two, batches(4), accumulate)
    with OPTIM.in_backward(optimizers[1], clip_grad_value=0.01, accumulate=accumulate):
        a = plain(one, optimizers[0], batches(4), accumulate, lambda ps: clip_grad_value_(ps, 0.01))
        assert a == fused(two, batches(4), accumulate)
    assert same(one, two)


def test_norms_that_are_not_finite():
    _, net = twins()
    o = OPTIM.SGD(net.parameters(), lr=0.5)
    before = copy.deepcopy(net)
    with OPTIM.in_backward(o, clip_grad_norm=1.0, error_if_nonfinite=True) as handle:
        with pytest.raises(RuntimeError, match="no parameter whose gradient it scales has been stepped"):
            (loss_of(net, batches(1)[0]) * float("inf")).backward()
        assert same(net, before) and handle.steps == 0 and handle.interrupted == []
        fused(net, batches(2))
        assert handle.steps == 2


def test_the_first_run_leaves_nothing_behind():
    """Neither gradients of other leaves, nor retained ones, nor random numbers that were drawn."""
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.5) for net in (one, two)]
    found = []

    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * torch.rand(g.shape)

    handle = OPTIM.in_backward(optimizers[1], clip_grad_norm=0.1)
    for net in (one, two):
        torch.manual_seed(3)
        x = torch.randn(6, 5, requires_grad=True)
        hidden = net.a(Noisy.apply(x))
        hidden.retain_grad()
        out = net.c(Noisy.apply(torch.tanh(hidden)))
        out.sum().backward()
        if net is one:
            clip_grad_norm_(net.parameters(), 0.1)
            optimizers[0].step()
        found.append((x.grad.tolist(), hidden.grad.tolist(), torch.rand(1).item()))
    assert found[0] == found[1] and same(one, two)
    handle.remove()


def test_a_backward_that_does_not_repeat_itself_is_noticed():
    _, net = twins()
    o = OPTIM.SGD(net.parameters(), lr=0.5)
    rng = np.random.default_rng(0)
    with OPTIM.in_backward(o, clip_grad_norm=0.1):
        handle = net.b.weight.register_hook(lambda g: g * float(rng.uniform(1, 2)))
        with pytest.raises(RuntimeError, match=r"gradient of parameter 2 of group 0 of shape \[8, 8\] had the norm"):
            loss_of(net, batches(1)[0]).backward()
        handle.remove()
        o.zero_grad()
        fused(net, batches(2))


def test_hooks_on_gradients_are_applied_before_clipping():
    one, two = twins()
    optimizers = [OPTIM.SGD(net.parameters(), lr=0.5) for net in (one, two)]

    def double(p):
        p.grad.mul_(2)

    for net in (one, two):
        net.b.weight.register_hook(lambda g: g * 3)
        net.a.weight.register_post_accumulate_grad_hook(double)
    with OPTIM.in_backward(optimizers[1], clip_grad_norm=0.1):
        assert plain(one, optimizers[0], batches(4), clip=lambda ps: clip_grad_norm_(ps, 0.1)) == fused(two, batches(4))
    assert same(one, two)


def test_clipping_by_hand_is_refused():
    _, net = twins()
    with OPTIM.in_backward(OPTIM.SGD(net.parameters())):
        loss_of(net, batches(1)[0]).backward()
        with pytest.raises(RuntimeError, match="Pass the same clip_grad_norm"):
            clip_grad_norm_(net.parameters(), 1.0)
        with pytest.raises(RuntimeError, match="grad_norm"):
            clip_grad_value_(net.parameters(), 1.0)
    clip_grad_norm_(net.parameters(), 1.0)


# Checkpoints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_state_passes_between_fused_and_plain(name):
    bias = name != "Muon"
    one, two = twins(bias)
    first = getattr(OPTIM, name)(two.parameters(), **EVERY[name])
    with OPTIM.in_backward(first):
        fused(two, batches(3))
    saved = pickle.loads(pickle.dumps((two.state_dict(), first.state_dict())))
    results = []
    for fuse in (True, False, True):
        net = Net(bias)
        o = getattr(OPTIM, name)(net.parameters(), **{**EVERY[name], "lr": 1.0})
        handle = OPTIM.in_backward(o) if fuse else None
        net.load_state_dict(saved[0])
        o.load_state_dict(copy.deepcopy(saved[1]))
        plain(net, o, batches(3, 7))
        results.append(net)
        if handle is not None:
            handle.remove()
    o = getattr(OPTIM, name)(one.parameters(), **EVERY[name])
    plain(one, o, [*batches(3), *batches(3, 7)])
    assert all(same(one, net) for net in results)


def test_copies_are_not_fused():
    _, net = twins()
    o = OPTIM.Adam(net.parameters())
    with OPTIM.in_backward(o) as handle:
        fused(net, batches(1))
        again = pickle.loads(pickle.dumps(o))
        both = copy.deepcopy((net, o))
        assert again._in_backward is None and both[1]._in_backward is None
        assert repr(again) == repr(o) and "Adam in backward, 1 steps" in repr(handle)
        loss_of(both[0], batches(1)[0]).backward()
        assert both[0].a.weight.grad is not None


# Random combinations -------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    optimizer=st.sampled_from(sorted(set(EVERY) - {"Muon"})),
    accumulate=st.integers(1, 3),
    value=st.sampled_from([None, 0.02]),
    norm=st.sampled_from([None, 0.05, 10.0]),
    by=st.sampled_from(["all", "group"]),
    passes=st.integers(1, 2),
    schedule=st.booleans(),
    frozen=st.sets(st.integers(0, 5), max_size=3),
    steps=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_random_combinations(optimizer, accumulate, value, norm, by, passes, schedule, frozen, steps, seed):
    nets = twins()
    sets = []
    for net in nets:
        for i, p in enumerate(net.parameters()):
            p.requires_grad_(i not in frozen)
        ps = list(net.parameters())
        o = getattr(OPTIM, optimizer)([{"params": ps[:2]}, {"params": ps[2:], "lr": 0.02}], **EVERY[optimizer])
        sets.append((o, OPTIM.lr_scheduler.ExponentialLR(o, 0.9) if schedule else None))

    def clip(_):
        groups = [g["params"] for g in sets[0][0].param_groups]
        for params in groups if by == "group" else [[p for group in groups for p in group]]:
            if value is not None:
                clip_grad_value_(params, value)
            if norm is not None:
                clip_grad_norm_(params, norm)

    data = batches(3 * accumulate, seed)
    a = plain(nets[0], sets[0][0], data, accumulate, clip, sets[0][1])
    with OPTIM.in_backward(
        sets[1][0], accumulate=accumulate, clip_grad_value=value, clip_grad_norm=norm, clip_by=by, clip_passes=passes
    ):
        if steps:
            b = plain(nets[1], sets[1][0], data, accumulate, schedule=sets[1][1])
        else:
            b = fused(nets[1], data, accumulate, sets[1][1])
    assert a == b and same(*nets)


def test_a_step_that_the_loop_leaves_out_is_refused_where_its_gradients_are_dropped():
    """It was taken in backward; a loop that never calls `step` leaves none out."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    with torch.optim.in_backward(optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        model(torch.ones(1, 3)).sum().backward()
        with pytest.raises(RuntimeError, match=r"without step\(\) after it.*skipped"):
            optimizer.zero_grad()
        optimizer.zero_grad()


def test_options_that_are_changed_after_backward_are_refused():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.optim.in_backward(optimizer):
        for lr in (0.2, 0.3):
            optimizer.param_groups[0]["lr"] = lr
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        model(torch.ones(1, 3)).sum().backward()
        optimizer.param_groups[0]["lr"] = 0.4
        with pytest.raises(RuntimeError, match=r"'lr' of group 0 is 0.4.*with 0.3"):
            optimizer.step()
        optimizer.step()


@pytest.mark.parametrize("who", ["optimizer", "model"])
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize(
    "name, options", [("AdamW", {}), ("SGD", {"momentum": 0.9}), ("RMSprop", {"weight_decay": 0.1})]
)
def test_gradients_of_zeros_step_what_no_other_comes_for(name, options, clip, who):
    """`zero_grad(set_to_none=False)` leaves zeros where there was a gradient; momentum and decay go on."""

    def trained(inside):
        torch.manual_seed(0)
        model = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)
        handle = torch.optim.in_backward(optimizer, clip_grad_norm=clip) if inside else None
        for i in range(9):
            (optimizer if who == "optimizer" else model).zero_grad(set_to_none=i in (3, 7))
            if i == 5:
                model[2].requires_grad_(False)
            x = torch.ones(2, 3)
            if i != 6:  # a step with zeros alone
                sum(layer(x).square().sum() for layer in (model[i % 2], model[2])).backward()
            if clip is not None and not inside:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        assert handle is None or handle.steps == 9
        return [p.detach().numpy().tobytes() for p in model.parameters()], [
            float(s["step"]) for s in optimizer.state.values() if "step" in s
        ]

    assert trained(True) == trained(False)


def test_rows_of_zeros_count_as_steps():
    def trained(inside):
        torch.manual_seed(0)
        tables = torch.nn.ModuleList([torch.nn.Embedding(5, 3, sparse=True) for _ in range(2)])
        optimizer = torch.optim.SparseAdam(list(tables.parameters()), lr=0.1)
        handle = torch.optim.in_backward(optimizer) if inside else None
        for i in range(5):
            optimizer.zero_grad(set_to_none=False)
            tables[i % 2](torch.tensor([i % 3, 1])).square().sum().backward()
            optimizer.step()
        return handle and handle.steps, [p.detach().numpy().tobytes() for p in tables.parameters()]

    assert trained(True)[1] == trained(False)[1]


def test_a_step_that_the_loop_leaves_out_is_told_of_by_all_who_could_lose_it():
    def trained():
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        handle = torch.optim.in_backward(optimizer)
        for _ in range(2):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        model(torch.ones(1, 3)).sum().backward()  # of which sensitivities are wanted, say
        return model, optimizer, handle

    model, _, _ = trained()
    with pytest.raises(RuntimeError, match=r"zero_grad\(\): backward was called without step"):
        model.zero_grad()
    _, optimizer, _ = trained()
    with pytest.raises(RuntimeError, match=r"state_dict\(\): backward was called without step"):
        optimizer.state_dict()
    _, _, handle = trained()
    with pytest.warns(UserWarning, match=r"without step\(\) of Adam after it"):
        handle.remove()


def test_a_model_that_drops_its_gradients_drops_the_step_at_hand():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.optim.in_backward(optimizer, accumulate=2) as handle:
        model(torch.ones(1, 3)).sum().backward()
        model.zero_grad()
        model(torch.ones(1, 3)).sum().backward()
        assert (handle.steps, handle.backward_calls) == (0, 1)
