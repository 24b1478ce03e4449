"""Logits of bfloat16 that are not made: of 16-bit weights and under autocast, as the loss of made ones to rounding."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import memory
from rushlight.dispatch.keeping.unmade import Unmade
from rushlight.models.language import GPT
from rushlight.ops.linear.unmade_products import limits, looked

F = torch.nn.functional
ROWS, WIDTH, CLASSES = 96, 64, 500
ROUNDING = (
    3 * 2**-9
)  # half an ulp of bfloat16: of either gradient, and of the one before it is multiplied by the loss's


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    looked.clear()
    monkeypatch.setattr(limits, "classes", 1)
    monkeypatch.setattr(limits, "nbytes", 0)


def autocast() -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16)


class Case:
    """Logits (96, 500) of bfloat16: of operands in bfloat16, or of float32 ones under autocast."""

    def __init__(self, cast: bool, bias: bool = True):
        torch.manual_seed(0)
        dtype = torch.float32 if cast else torch.bfloat16
        self.around = autocast if cast else nullcontext
        self.x = torch.randn(ROWS, WIDTH, dtype=dtype, requires_grad=True)
        self.w = (torch.randn(CLASSES, WIDTH) / 8).to(dtype).requires_grad_()
        self.b = torch.randn(CLASSES, dtype=dtype, requires_grad=True) if bias else None
        self.y = torch.randint(0, CLASSES, (ROWS,))
        with self.around():
            self.z = F.linear(self.x * 1, self.w, self.b)

    def gradients(self) -> list[Any]:
        return [t.grad.float().numpy() for t in (self.x, self.w, self.b) if t is not None]


def close(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        assert np.linalg.norm(a - b) <= ROUNDING * np.linalg.norm(b)
        np.testing.assert_allclose(a, b, atol=4 * ROUNDING * np.abs(b).max())


FORMS = {
    "rows": lambda z, y, k: F.cross_entropy(z, y, **k),
    "float": lambda z, y, k: F.cross_entropy(z.float(), y, **k),
    "to": lambda z, y, k: F.cross_entropy(z.view(2, -1, CLASSES).to(torch.float32).view(-1, CLASSES), y, **k) * 3,
    "shifted": lambda z, y, k: F.cross_entropy(z.float()[:-1], y[1:], **k),
    "copied, converted": lambda z, y, k: F.cross_entropy(
        z.view(4, -1, CLASSES)[:, :-1].contiguous().float().view(-1, CLASSES), y.view(4, -1)[:, 1:].flatten(), **k
    ),
    "converted, copied": lambda z, y, k: F.cross_entropy(
        z.view(4, -1, CLASSES).float()[:, :-1].reshape(-1, CLASSES), y.view(4, -1)[:, 1:].flatten(), **k
    ),
    "copied": lambda z, y, k: F.cross_entropy(
        z.view(4, -1, CLASSES)[:, :-1].reshape(-1, CLASSES), y.view(4, -1)[:, 1:].flatten(), **k
    ),
    "transposed": lambda z, y, k: F.cross_entropy(z.view(4, -1, CLASSES).transpose(1, 2), y.view(4, -1), **k),
}
OPTIONS: list[dict[str, Any]] = [{}, {"ignore_index": 3}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"weight": 1}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("cast", [False, True])
def test_losses_and_gradients_are_those_of_made_logits(
    monkeypatch: pytest.MonkeyPatch, small: None, form: str, options: dict[str, Any], cast: bool
) -> None:
    if "weight" in options:
        options = {
            "weight": torch.rand(CLASSES).to(
                torch.float32 if cast or form in ("float", "to", "shifted") or "converted" in form else torch.bfloat16
            )
        }
    found = []
    for classes in (1, 1 << 60):
        monkeypatch.setattr(limits, "classes", classes)
        case = Case(cast)
        with case.around():
            loss = FORMS[form](case.z, case.y, options)
        assert (type(case.z) is Unmade) == (classes == 1)
        loss.backward()
        found.append((case, loss))
    (one, loss), (other, want) = found
    assert loss.dtype is want.dtype and float(loss) == pytest.approx(float(want), rel=1e-6)
    close(one.gradients(), other.gradients())
    assert type(one.z) is Unmade
    np.testing.assert_array_equal(one.z.detach().float().numpy(), other.z.detach().float().numpy())


@pytest.mark.parametrize("cast", [False, True])
def test_the_graph_is_the_same(monkeypatch: pytest.MonkeyPatch, small: None, cast: bool) -> None:
    def names(edge: Any) -> Any:
        return None if edge is None else (edge.name(), [names(e) for e, _ in edge.next_functions])

    seen = []
    for classes in (1, 1 << 60):
        monkeypatch.setattr(limits, "classes", classes)
        case = Case(cast)
        with case.around():
            seen.append(names(F.cross_entropy(case.z.float(), case.y).grad_fn))
    assert seen[0] == seen[1] and "ToCopy" in str(seen[0])


@pytest.mark.parametrize("cast", [False, True])
def test_who_looks_at_converted_logits_sees_them(small: None, cast: bool) -> None:
    case = Case(cast)
    wide = case.z.float()
    with case.around():
        loss = F.cross_entropy(wide, case.y)
    assert type(wide) is Unmade and type(case.z) is Unmade
    np.testing.assert_array_equal(wide.detach().numpy(), case.z.detach().float().numpy())
    assert type(wide) is torch.Tensor
    loss.backward()
    with case.around():
        case.z = F.linear(case.x * 1, case.w, case.b)
    assert type(case.z) is torch.Tensor  # somebody looked: at once from now on, also under autocast


@pytest.mark.parametrize("cast", [False, True])
def test_gradients_of_converted_logits_can_be_had(monkeypatch: pytest.MonkeyPatch, small: None, cast: bool) -> None:
    found = []
    for classes in (1, 1 << 60):
        monkeypatch.setattr(limits, "classes", classes)
        case = Case(cast)
        wide = case.z.float()
        wide.retain_grad()
        case.z.retain_grad()
        with case.around():
            (F.cross_entropy(wide, case.y) * 2).backward()
        assert wide.grad.dtype is torch.float32 and case.z.grad.dtype is torch.bfloat16
        found.append([wide.grad.numpy(), case.z.grad.float().numpy(), *case.gradients()])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-9)
    close(*found)


def test_a_second_backward_and_kept_graphs(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    found = []
    for classes in (1, 1 << 60):
        monkeypatch.setattr(limits, "classes", classes)
        case = Case(True)
        with case.around():
            loss = F.cross_entropy(case.z, case.y)
        loss.backward(retain_graph=True)
        loss.backward()
        found.append(case.gradients())
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    close(*found)


def test_float16_is_made_at_once(small: None) -> None:
    x = torch.randn(8, 16, dtype=torch.float16, requires_grad=True)
    assert type(F.linear(x * 1, torch.randn(32, 16, dtype=torch.float16))) is torch.Tensor
    with torch.autocast("cpu", dtype=torch.float16):
        assert type(F.linear(x.float(), torch.randn(32, 16))) is torch.Tensor


@pytest.fixture
def gpt(request: pytest.FixtureRequest) -> Any:
    looked.clear()
    torch.manual_seed(0)
    model = GPT(20_000, 256, layers=1, heads=2, width=128)
    return model, torch.randint(0, 20_000, (8, 257))


@pytest.mark.parametrize("cast", [False, True])
def test_a_step_never_holds_all_logits(gpt: Any, monkeypatch: pytest.MonkeyPatch, cast: bool) -> None:
    model, tokens = gpt
    model = model if cast else model.bfloat16()

    def step() -> int:
        gc.collect()
        memory.reset_peak()
        before = memory.current()
        with autocast() if cast else nullcontext():
            loss = F.cross_entropy(model(tokens[:, :-1]).view(-1, 20_000), tokens[:, 1:].reshape(-1))
        loss.backward()
        grown = memory.peak() - before
        model.zero_grad()
        return grown

    step()
    late = step()
    monkeypatch.setattr(limits, "classes", 1 << 60)
    logits = 2048 * 20_000 * 2
    assert late < step() - (logits if cast else logits // 8)


@pytest.mark.parametrize("cast", [False, True])
def test_estimates_know(gpt: Any, cast: bool) -> None:
    model, tokens = gpt
    model = model if cast else model.bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    around = autocast if cast else nullcontext

    def loss(out: Any) -> Any:
        return F.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())

    def step() -> None:
        with around():
            found = loss(model(tokens[:, :-1]))
        found.backward()
        optimizer.step()
        optimizer.zero_grad()

    with around():
        estimated = memory.estimate(model, tokens[:, :-1], optimizer=optimizer, loss=loss).peak
    step()
    memory.reset_peak()
    before = memory.current()
    step()
    measured = memory.peak() - before + sum(p.nbytes for p in model.parameters())
    assert abs(estimated - measured) < 0.08 * measured


@pytest.mark.parametrize("when", ["before", "after", "read"])
def test_what_was_converted_does_not_follow_what_it_was_converted_from(small: None, when: str) -> None:
    def run(late: bool) -> list[Any]:
        if not late:
            limits.classes = 1 << 60
        case = Case(False)
        wide = case.z.float()
        assert (type(wide) is Unmade) is late
        if when == "read":
            case.z.sum()
        elif when == "before":
            case.z.detach().zero_()
        loss = F.cross_entropy(wide, case.y)
        if when == "after":
            case.z.detach().zero_()
        (loss + case.z.float().mean() + (wide * 0.25).mean()).backward()
        return [loss.detach(), wide.detach(), case.x.grad, case.w.grad]

    late, made = run(True), run(False)
    for a, b in zip(late, made, strict=True):
        torch.testing.assert_close(a.float(), b.float(), rtol=2 * ROUNDING, atol=1e-4)
