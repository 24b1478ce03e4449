"""Every schedule gives PyTorch's rates, momenta and state, over sixty steps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
STEPS = 60


def halving(epoch: int) -> float:
    return 0.5 ** (epoch // 7)


class Decay:
    """A callable with a state."""

    def __init__(self, rate: float):
        self.rate = rate

    def __call__(self, epoch: int) -> float:
        return self.rate**epoch


Make = Callable[[Any, Any], Any]  # (lr_scheduler module, optimizer) -> schedule
SCHEDULES: dict[str, Make] = {
    "lambda": lambda s, o: s.LambdaLR(o, halving),
    "lambda list": lambda s, o: s.LambdaLR(o, [halving, Decay(0.9)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "step": lambda s, o: s.StepLR(o, 7),
    "step of one": lambda s, o: s.StepLR(o, 1, gamma=0.9),
    "milestones": lambda s, o: s.MultiStepLR(o, [3, 5, 5, 30], gamma=0.5),
    "constant": lambda s, o: s.ConstantLR(o),
    "constant long": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=20),
    "linear": lambda s, o: s.LinearLR(o),
    "linear down": lambda s, o: s.LinearLR(o, start_factor=1.0, end_factor=0.1, total_iters=25),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "polynomial": lambda s, o: s.PolynomialLR(o, total_iters=20, power=2.0),
    "polynomial half": lambda s, o: s.PolynomialLR(o, total_iters=70, power=0.5),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 10, eta_min=1e-3),
    "cosine odd": lambda s, o: s.CosineAnnealingLR(o, 7),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    "restarts growing": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, T_mult=2, eta_min=1e-3),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.2, step_size_up=5),
    "cyclic triangular2": lambda s, o: s.CyclicLR(o, 0.01, [0.2, 0.4], 5, 8, mode="triangular2"),
    "cyclic exp": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic function": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 6, scale_fn=lambda x: 1 / x, base_momentum=0.7),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.3, total_steps=STEPS + 1),
    "one cycle epochs": lambda s, o: s.OneCycleLR(o, [0.3, 0.1], epochs=16, steps_per_epoch=4, pct_start=0.5),
    "one cycle linear": lambda s, o: s.OneCycleLR(o, 0.3, 61, anneal_strategy="linear", three_phase=True),
    "one cycle rate only": lambda s, o: s.OneCycleLR(o, 0.3, 80, cycle_momentum=False, div_factor=10.0),
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 10)], [6, 30]
    ),
    "sequence of restarts": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, total_iters=9), s.CosineAnnealingWarmRestarts(o, 6, 2)], [10]
    ),
    "sequence of sequences": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.StepLR(o, 2), s.StepLR(o, 3)], [5]), s.PolynomialLR(o, 30)], [12]
    ),
    "chain": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
    "chain in sequence": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.LinearLR(o), s.StepLR(o, 4)]), s.ExponentialLR(o, 0.99)], [20]
    ),
}


def optimizer_of(api: Any, kind: str = "SGD") -> Any:
    first, second = (api.nn.Parameter(api.ones(2)) for _ in "12")
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(api.optim, kind)([{"params": [first]}, {"params": [second], "lr": 0.5}], lr=0.1, **options)


def schedules_of(api: Any) -> Any:
    import importlib

    return importlib.import_module(f"{api.__name__}.optim.lr_scheduler")


def plain(value: Any) -> Any:
    """Numbers, lists and dictionaries of them; everything else by its type's name."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def options_of(optimizer: Any) -> list[list[float]]:
    return [
        [group["lr"], *([group["momentum"]] if "momentum" in group else group["betas"])]
        for group in optimizer.param_groups
    ]


def run(api: Any, make: Make, kind: str) -> dict[str, Any]:
    optimizer = optimizer_of(api, kind)
    schedule = make(schedules_of(api), optimizer)
    seen = [options_of(optimizer)]
    for _ in range(STEPS):
        optimizer.step()
        schedule.step()
        seen.append([options_of(optimizer), schedule.get_last_lr()])
    return {"options": seen, "state": plain(schedule.state_dict())}


def assert_close(ours: Any, theirs: Any, path: str = "") -> None:
    if isinstance(theirs, dict):
        ignored = {"anneal_func", "_scale_fn_ref", "_scale_fn_custom"}
        assert list(ours.keys() - ignored) == list(ours.keys() - ignored)
        assert ours.keys() - ignored == theirs.keys() - ignored, path
        for key in theirs.keys() - ignored:
            assert_close(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_close(a, b, f"{path}[{i}]")
    elif isinstance(theirs, float):
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12), f"{path}: {ours} instead of {theirs}"
    else:
        assert ours == theirs, path


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates(name: str, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = run(torch, SCHEDULES[name], kind)
    assert_close(run(rushlight, SCHEDULES[name], kind), theirs)


@pytest.mark.parametrize("name", [n for n in SCHEDULES if "sequence" not in n and "chain" not in n])
def test_closed_form(name: str) -> None:
    """`step(epoch)` jumps."""

    def jump(api: Any) -> list[Any]:
        optimizer = optimizer_of(api)
        schedule = SCHEDULES[name](schedules_of(api), optimizer)
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer.step()
            for epoch in (3, 4, 11, 20, 2):
                schedule.step(epoch)
                seen.append(options_of(optimizer))
        return seen

    assert_close(jump(rushlight), jump(torch))


@pytest.mark.parametrize("last_epoch", [3, 4, 9])
@pytest.mark.parametrize(
    "make",
    [
        lambda s, o, e: s.LambdaLR(o, halving, last_epoch=e),
        lambda s, o, e: s.MultiplicativeLR(o, halving, last_epoch=e),
        lambda s, o, e: s.StepLR(o, 5, last_epoch=e),
        lambda s, o, e: s.MultiStepLR(o, [4, 5, 10], last_epoch=e),
        lambda s, o, e: s.ConstantLR(o, last_epoch=e),
        lambda s, o, e: s.LinearLR(o, last_epoch=e),
        lambda s, o, e: s.ExponentialLR(o, 0.9, last_epoch=e),
        lambda s, o, e: s.CosineAnnealingLR(o, 10, last_epoch=e),
        lambda s, o, e: s.PolynomialLR(o, 12, last_epoch=e),
        lambda s, o, e: s.CyclicLR(o, 0.01, 0.1, last_epoch=e),
        lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 5, last_epoch=e),
    ],
)
def test_resumed_at_an_epoch(make: Any, last_epoch: int) -> None:
    def resume(api: Any) -> list[Any]:
        optimizer = optimizer_of(api)
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"] * 2
        schedule = make(schedules_of(api), optimizer, last_epoch)
        seen = [[schedule.last_epoch], options_of(optimizer)]
        for _ in range(6):
            optimizer.step()
            schedule.step()
            seen.append(options_of(optimizer))
        return seen

    assert_close(resume(rushlight), resume(torch))


@pytest.mark.parametrize("name", SCHEDULES)
def test_state_of_torch_is_taken_up(name: str) -> None:
    """A checkpoint of PyTorch's schedule goes on here."""
    theirs = optimizer_of(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule = SCHEDULES[name](torch.optim.lr_scheduler, theirs)
        for _ in range(8):
            theirs.step()
            schedule.step()
    ours = optimizer_of(rushlight)
    again = SCHEDULES[name](rushlight.optim.lr_scheduler, ours)
    again.load_state_dict(schedule.state_dict())
    for mine, other in zip(ours.param_groups, theirs.param_groups, strict=True):
        mine.update({k: v for k, v in other.items() if k != "params"})
    for _ in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.step()
            schedule.step()
        ours.step()
        again.step()
        assert_close(options_of(ours), options_of(theirs))


PLATEAUS: list[dict[str, Any]] = [
    {},
    {"mode": "max", "patience": 2},
    {"threshold_mode": "abs", "threshold": 0.05, "cooldown": 3, "patience": 1},
    {"factor": 0.5, "min_lr": [0.05, 0.1], "patience": 0},
    {"mode": "max", "threshold_mode": "abs", "eps": 0.01, "patience": 1},
]


@pytest.mark.parametrize("options", PLATEAUS)
def test_plateau(options: dict[str, Any]) -> None:
    def follow(api: Any) -> Any:
        optimizer = optimizer_of(api)
        schedule = schedules_of(api).ReduceLROnPlateau(optimizer, **options)
        seen = []
        for i in range(STEPS):
            schedule.step(math.sin(i / 5) + 3 / (i + 1))
            seen.append([options_of(optimizer), schedule.get_last_lr(), int(schedule.in_cooldown)])
        return {"seen": seen, "state": plain(schedule.state_dict())}

    assert_close(follow(rushlight), follow(torch))


@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 4}, {"anneal_epochs": 0}])
def test_swalr(options: dict[str, Any]) -> None:
    def follow(api: Any) -> Any:
        import importlib

        optimizer = optimizer_of(api)
        schedule = importlib.import_module(f"{api.__name__}.optim.swa_utils").SWALR(optimizer, [0.05, 0.01], **options)
        seen = []
        for _ in range(20):
            optimizer.step()
            schedule.step()
            seen.append(options_of(optimizer))
        return {"seen": seen, "state": plain(schedule.state_dict())}

    assert_close(follow(rushlight), follow(torch))
