"""Optimizers that step other tensors for a while, and schedules of optimizers that have got another group."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def stepped(t: Any, name: str = "Adam", **options: Any) -> Any:
    parameters = [t.nn.Parameter(t.ones(1, 2)), t.nn.Parameter(t.ones(1))]
    optimizer = getattr(t.optim, name)(parameters, **options)
    for p in parameters:
        p.grad = t.ones_like(p)
    optimizer.step()
    return optimizer, {str(i): t.nn.Parameter(t.zeros_like(p)) for i, p in enumerate(parameters)}


def plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {k: plain(v) for k, v in state.items()}
    if isinstance(state, list):
        return [plain(v) for v in state]
    return [round(v, 6) for v in state.flatten().tolist()] if hasattr(state, "tolist") else state


def steps(t: Any) -> Any:
    optimizer, others = stepped(t)
    for p in others.values():
        p.grad = t.ones_like(p)
    packed = copy.deepcopy(optimizer.state_dict())
    packed["param_groups"][0]["lr"] = 0.5
    state, params = optimizer.state, optimizer.param_groups[0]["params"]
    with t.optim.swap_in_optimizer_params_and_state(optimizer, others, packed):
        seen = [
            optimizer.param_groups[0]["params"][0] is others["0"],
            optimizer.param_groups[0]["lr"],
            optimizer.state is state,
        ]
        optimizer.step()
        seen.append(plain(optimizer.state_dict()))
    seen += [
        plain(others),
        plain(packed),
        optimizer.state is state,
        optimizer.param_groups[0]["params"] is params,
        plain(optimizer.state_dict()),
    ]
    with pytest.raises(KeyError), t.optim.swap_in_optimizer_params_and_state(optimizer, others, packed):
        optimizer.param_groups[0]["other"] = 1
        raise KeyError
    return *seen, sorted(optimizer.param_groups[0])


def test_steps() -> None:
    assert steps(rushlight) == steps(torch)


def changed(group: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**group, **more}


GIVEN: list[Callable[[Any, Any], Any]] = [
    lambda p, s: ({}, s), lambda p, s: ({**p, "x": p["0"]}, s), lambda p, s: (list(p.values()), s), lambda p, s: (p, None), lambda p, s: (p, {}),
    lambda p, s: (p, {**s, "state": []}), lambda p, s: (p, {**s, "state": {}}), lambda p, s: (p, {**s, "param_groups": []}),
    lambda p, s: (p, {**s, "param_groups": tuple(s["param_groups"])}), lambda p, s: (p, {**s, "param_groups": [3]}),
    lambda p, s: (p, {**s, "param_groups": [changed(s["param_groups"][0], extra=1)]}),
    lambda p, s: (p, {**s, "param_groups": [changed(s["param_groups"][0], params=[0])]}),
    lambda p, s: (p, {**s, "param_groups": [changed(s["param_groups"][0], params=[1, 0])]}),
    lambda p, s: (p, {**s, "param_groups": [changed(s["param_groups"][0], params=["a", "b"])]}),
    lambda p, s: (p, {**s, "state": {**s["state"], 5: {}}}), lambda p, s: (p, {**s, "state": {0: 3, 1: {}}}), lambda p, s: (p, {**s, "other": 1}),
]  # fmt: skip


@pytest.mark.parametrize("given", GIVEN)
def test_what_does_not_match(given: Callable[[Any, Any], Any]) -> None:
    def found(t: Any) -> Any:
        optimizer, others = stepped(t)
        try:
            with t.optim.swap_in_optimizer_params_and_state(optimizer, *given(others, optimizer.state_dict())):
                return True
        except Exception as error:
            return type(error).__name__

    assert found(rushlight) == found(torch)


def test_an_optimizer_without_state() -> None:
    for t in (rushlight, torch):
        optimizer, others = stepped(t, "SGD", lr=0.1)
        optimizer.state.clear()
        with pytest.raises(RuntimeError), t.optim.swap_in_optimizer_params_and_state(optimizer, others, {}):
            pass


@pytest.mark.parametrize("name", ["LambdaLR", "MultiplicativeLR", "ExponentialLR"])
def test_a_group_that_came_after_the_schedule(name: str) -> None:
    def found(t: Any) -> Any:
        optimizer, _ = stepped(t)
        schedule = getattr(t.optim.lr_scheduler, name)(optimizer, 0.5 if name == "ExponentialLR" else lambda epoch: 0.5)
        optimizer.add_param_group({"params": [t.nn.Parameter(t.ones(1))]})
        optimizer.step()
        try:
            schedule.step()
        except Exception as error:
            return type(error).__name__
        return [group["lr"] for group in optimizer.param_groups]

    assert found(rushlight) == found(torch)


def test_activities_of_profilers_print_as_enumerations() -> None:
    assert str(rushlight.profiler.ProfilerActivity.CPU) == str(torch.profiler.ProfilerActivity.CPU)
