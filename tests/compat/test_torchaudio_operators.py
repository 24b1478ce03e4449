"""The operators that torchaudio has in compiled code, beside what they are by definition."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight

torch: Any = rushlight


@pytest.fixture(scope="module")
def ops() -> Any:
    for name in ("_torchaudio.so", "libtorchaudio.so"):
        torch.ops.load_library(Path("site-packages/torchaudio/lib") / name)
    return torch.ops.torchaudio


def test_what_was_compiled(ops: Any) -> None:
    assert torch.ops._torchaudio.cuda_version() is None and torch.ops._torchaudio.is_align_available() is True


@pytest.mark.parametrize("order, steps", [(1, 5), (2, 64), (4, 200), (80, 150), (3, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_recursion_of_a_filter(ops: Any, order: int, steps: int, dtype: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, steps, dtype=dtype)
    coefficients = torch.cat([torch.randn(3, order, dtype=dtype) * 0.4 / order, torch.ones(3, 1, dtype=dtype)], 1)
    out = torch.zeros(2, 3, steps + order, dtype=dtype)
    out[:, :, :order] = torch.randn(2, 3, order, dtype=dtype)
    expected = out.double().numpy()
    for t in range(steps):
        taken = (expected[:, :, t : t + order] * coefficients.numpy()[None, :, :order]).sum(2)
        expected[:, :, t + order] = x.numpy()[:, :, t] - taken
    ops._lfilter_core_loop(x, coefficients, out)
    assert np.allclose(out.numpy(), expected, atol=1e-5 if dtype is torch.float32 else 1e-12)


def test_a_filter_that_grows(ops: Any) -> None:
    out = torch.zeros(1, 1, 101, dtype=torch.float64)
    ops._lfilter_core_loop(torch.ones(1, 1, 100, dtype=torch.float64), torch.tensor([[-2.0, 1.0]]).double(), out)
    assert out[0, 0, -1] == 2.0**100 - 1
    with pytest.raises(RuntimeError, match=r"expected a signal of shape \(N, F, T\) and an output of \(N, F, T \+ 1\)"):
        ops._lfilter_core_loop(torch.ones(1, 1, 5), torch.ones(1, 2), torch.ones(1, 1, 5))


def test_overdrive(ops: Any) -> None:
    torch.manual_seed(0)
    waveform, temp, out = torch.randn(2, 150), torch.randn(2, 150), torch.zeros(2, 150)
    last_in, last_out = torch.randn(2), torch.randn(2)
    before, after = last_in.clone(), last_out.clone()
    expected = torch.zeros(2, 150)
    for t in range(150):
        after = temp[:, t] - before + 0.995 * after
        before = temp[:, t]
        expected[:, t] = waveform[:, t] * 0.5 + after * 0.75
    ops._overdrive_core_loop(waveform, temp, last_in, last_out, out)
    assert (
        torch.allclose(out, expected, atol=1e-5)
        and torch.allclose(last_out, after, atol=1e-5)
        and torch.equal(last_in, before)
    )


def collapsed(path: tuple[int, ...]) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label]


@pytest.mark.parametrize("targets", [[1], [2, 1], [1, 1], [1, 2, 1]])
def test_the_likeliest_alignment_is_that_of_all_paths(ops: Any, targets: list[int]) -> None:
    torch.manual_seed(len(targets))
    logs = torch.randn(1, 5, 3).log_softmax(-1)
    fitting = [path for path in itertools.product(range(3), repeat=5) if collapsed(path) == targets]
    best = max(fitting, key=lambda path: sum(float(logs[0, t, label]) for t, label in enumerate(path)))
    lengths = torch.tensor([5]), torch.tensor([len(targets)])
    found, scores = ops.forced_align(logs, torch.tensor([targets], dtype=torch.int32), *lengths, 0)
    assert found.tolist() == [list(best)] and found.dtype is torch.int32 and torch.equal(scores, logs)


def test_what_is_not_aligned(ops: Any) -> None:
    logs, lengths = torch.zeros(1, 3, 4), (torch.tensor([3]), torch.tensor([3]))
    with pytest.raises(RuntimeError, match=r"targets length is too long for CTC. Found log_probs length: 3, targets length: 3, and number of repeats: 1"):  # fmt: skip
        ops.forced_align(logs, torch.tensor([[1, 1, 2]]), *lengths, 0)
    with pytest.raises(RuntimeError, match="expected one sequence"):
        ops.forced_align(torch.zeros(2, 3, 4), torch.tensor([[1], [2]]), *lengths, 0)


def likelihood(logs: Any, labels: list[int], blank: int) -> Any:
    """Of all ways through the grid, added up."""
    steps, total = logs.shape[0], []
    for places in itertools.combinations_with_replacement(
        range(steps), len(labels)
    ):  # the step at which each label is said
        terms, u = [], 0
        for t in range(steps):
            while u < len(labels) and places[u] == t:
                terms.append(logs[t, u, labels[u]])
                u += 1
            terms.append(logs[t, u, blank])
        total.append(torch.stack(terms).sum())
    return torch.stack(total).logsumexp(0)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("lengths", [(3, 2), (1, 2), (3, 0), (1, 0)])
def test_the_loss_of_a_transducer_is_that_of_all_ways(ops: Any, fused: bool, lengths: tuple[int, int]) -> None:
    torch.manual_seed(1)
    steps, count = lengths
    logits = torch.randn(2, 3, 3, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 2], [3, 1]], dtype=torch.int32)
    sizes = torch.tensor([3, steps], dtype=torch.int32), torch.tensor([2, count], dtype=torch.int32)
    logs = logits.log_softmax(-1) if fused else logits
    expected = -torch.stack(
        [likelihood(logs[0, :3, :3], [1, 2], 0), likelihood(logs[1, :steps, : count + 1], [3, 1][:count], 0)]
    )
    (gradient,) = torch.autograd.grad(expected.sum(), logits)
    losses, found = ops.rnnt_loss_forward(logits.detach(), targets, *sizes, 0, -1.0, fused)
    assert torch.allclose(losses, expected.detach()) and torch.allclose(found, gradient, atol=1e-10)
    clamped = ops.rnnt_loss_forward(logits.detach(), targets, *sizes, 0, 0.1, fused)[1]
    assert torch.equal(clamped, found.clamp(-0.1, 0.1))


def test_impossible_labels_and_halves(ops: Any) -> None:
    logits = torch.zeros(1, 2, 2, 3)
    logits[..., 1] = -math.inf
    lengths = torch.tensor([2]), torch.tensor([1])
    loss, _ = ops.rnnt_loss_forward(logits, torch.tensor([[1]]), *lengths, 0, -1.0, True)
    assert loss.item() == math.inf
    half, gradient = ops.rnnt_loss_forward(torch.zeros(1, 2, 2, 3).half(), torch.tensor([[1]]), *lengths, 0, -1.0, True)
    assert half.dtype is gradient.dtype is torch.float16 and half.item() == pytest.approx(
        3 * math.log(3) - math.log(2), rel=1e-3
    )
    with pytest.raises(RuntimeError, match=r"expected logits of shape \(N, T, U, C\)"):
        ops.rnnt_loss_forward(logits[0], torch.tensor([[1]]), *lengths, 0, -1.0, True)
