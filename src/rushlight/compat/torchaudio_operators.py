"""The compiled operators of torchaudio, on these tensors: ``torch.ops.torchaudio``.

An installed torchaudio asks for them by name (`torch.ops.load_library`), and has formulas of its own for their derivatives.
Shape letters: N sequences, T steps, U one more than labels, C classes, F filters, P what a filter takes of the steps before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor
from rushlight.basics.arrays import Array
from rushlight.compat.supplied import supplier
from rushlight.library import Library

# Functions of the package are attached when it is imported, so that their types are not known.
torch: Any = rushlight

__all__ = ["ABOUT", "LIBRARY"]

LIBRARY, ABOUT = Library("torchaudio", "DEF"), Library("_torchaudio", "DEF")
operator, about = supplier(LIBRARY), supplier(ABOUT)
BLOCK = 64  # steps of a filter that are one product


@about("cuda_version() -> int?")
def cuda_version() -> None:
    """The version of CUDA that the operators were compiled for: none."""


@about("is_align_available() -> bool")
def is_align_available() -> bool:
    """Whether there is `forced_align`: yes."""
    return True


# Filters -----------------------------------------------------------------------------------------------------------


def recursion(x: Array, feedback: Array, history: Array) -> Array:
    """y[t] = x[t] - sum over k of feedback[k] y[t - 1 - k], in float64.

    x: (N, F, T); feedback: (F, P); history: (N, F, P), what y was before, the latest last.  Returns (N, F, P + T), with it.

    Blocks of steps are two products each: what went before times its part in each step, and what is left times a triangle,
    the response to a unit impulse.
    """
    past = feedback.shape[1]
    y = np.concatenate([history, x], 2).astype(np.float64)
    triangle, before = responses(feedback.astype(np.float64)), parts_of_history(feedback)
    for start in range(0, x.shape[2], BLOCK):
        block = y[:, :, past + start : past + start + BLOCK]
        n = block.shape[2]
        block -= np.einsum("fsk,nfk->nfs", before[:, :n], y[:, :, start : start + past])
        block[...] = np.einsum("fst,nft->nfs", triangle[:, :n, :n], block)
    return y


def responses(feedback: Array) -> Array:
    """What each step of a block adds to those after it.  feedback: (F, P).  Returns (F, BLOCK, BLOCK), lower triangles."""
    filters, past = feedback.shape
    impulse = np.zeros((filters, past + BLOCK))
    impulse[:, past] = 1
    for t in range(past + 1, past + BLOCK):
        impulse[:, t] = -(feedback * impulse[:, t - past : t][:, ::-1]).sum(1)
    lag = np.arange(BLOCK)[:, None] - np.arange(BLOCK)
    return np.where(lag >= 0, impulse[:, past + np.maximum(lag, 0)], 0)


def parts_of_history(feedback: Array) -> Array:
    """How much of what went before each step of a block takes.  feedback: (F, P).  Returns (F, BLOCK, P)."""
    past = feedback.shape[1]
    which = past - 1 + np.arange(BLOCK)[:, None] - np.arange(past)
    return np.where(which < past, feedback[:, np.minimum(which, past - 1)], 0)


@operator(
    "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> ()"
)
def _lfilter_core_loop(signal: Tensor, coefficients: Tensor, output: Tensor) -> None:
    """The recursive part of a filter, behind P steps that the output begins with.

    signal: (N, F, T); coefficients: (F, P + 1), the latest last, which is 1; output: (N, F, P + T), written.  Raises RuntimeError
    for other shapes.
    """
    past = coefficients.shape[-1] - 1
    if signal.dim() != 3 or tuple(output.shape) != (*signal.shape[:2], signal.shape[2] + past):
        raise RuntimeError(
            f"_lfilter_core_loop: expected a signal of shape (N, F, T) and an output of (N, F, T + {past}), got "
            f"{tuple(signal.shape)} and {tuple(output.shape)}"
        )
    feedback = coefficients.numpy()[:, :past][:, ::-1]
    output.copy_(torch.from_numpy(recursion(signal.numpy(), feedback, output.numpy()[:, :, :past])))


@operator(
    "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, Tensor(c!) output_waveform) "
    "-> ()"
)
def _overdrive_core_loop(waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output: Tensor) -> None:
    """A distorted signal without its mean, beside half of what it was (SoX's effect overdrive).

    waveform, temp: (F, T); last_in, last_out: (F), of the step before, written; output: (F, T), written.
    """
    distorted, before = temp.numpy(), last_in.numpy()[:, None]
    change = np.diff(distorted, axis=1, prepend=before)
    without = recursion(change[None], np.full((len(change), 1), -0.995), last_out.numpy()[None, :, None])[0]
    output.copy_(torch.from_numpy(waveform.numpy() * 0.5 + without[:, 1:] * 0.75))
    last_in.copy_(temp[:, -1])
    last_out.copy_(torch.from_numpy(without[:, -1]))


# Alignment ---------------------------------------------------------------------------------------------------------


@operator(
    "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor)"
)
def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The likeliest path of labels and blanks that says the targets (Viterbi's; Graves et al., Connectionist Temporal
    Classification, ICML 2006, for the paths).

    log_probs: (1, T, C); targets: (1, L); lengths: (1).  Returns the label of each step (1, T), and log_probs.  Raises RuntimeError
    for more than one sequence, and for targets that do not fit into the steps.
    """
    if log_probs.dim() != 3 or log_probs.size(0) != 1 or targets.size(0) != 1:
        raise RuntimeError(
            f"forced_align: expected one sequence, of shapes (1, T, C) and (1, L), got {tuple(log_probs.shape)} and {tuple(targets.shape)}"
        )
    steps, length = int(input_lengths[0]), int(target_lengths[0])
    said = targets.numpy()[0, :length]
    repeats = int((said[1:] == said[:-1]).sum())
    if steps < length + repeats:
        raise RuntimeError(
            f"targets length is too long for CTC. Found log_probs length: {steps}, targets length: {length}, and number of repeats: "
            f"{repeats}"
        )
    path = np.full(log_probs.shape[:2], blank, targets.numpy().dtype)
    path[0, :steps] = likeliest(log_probs.numpy()[0, :steps], said, blank)
    return torch.from_numpy(path), log_probs.clone()


def likeliest(scores: Array, labels: Array, blank: int) -> Array:
    """The likeliest labels, step by step.  scores: (T, C), labels: (L).  Returns (T)"""
    states = np.full(2 * len(labels) + 1, blank, labels.dtype)
    states[1::2] = labels
    skips = np.zeros(len(states), bool)  # where the blank before a label need not be said
    skips[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    total = np.full(len(states), -np.inf)
    total[:2] = scores[0, states[:2]]
    came = np.zeros((len(scores), len(states)), np.int8)
    for t in range(1, len(scores)):
        ways = np.full((3, len(states)), -np.inf)
        ways[0], ways[1, 1:], ways[2, 2:] = total, total[:-1], np.where(skips[2:], total[:-2], -np.inf)
        came[t] = np.argmax(ways, 0)
        total = ways.max(0) + scores[t, states]
    at = len(states) - 1 if len(states) == 1 or total[-1] > total[-2] else len(states) - 2
    found = np.empty(len(scores), labels.dtype)
    for t in range(len(scores) - 1, -1, -1):
        found[t] = states[at]
        at -= came[t, at]
    return found


# Loss of transducers -----------------------------------------------------------------------------------------------


@operator(
    "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
    "bool fused_log_softmax) -> (Tensor, Tensor)"
)
def rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused: bool,
) -> tuple[Tensor, Tensor]:
    """The loss of a transducer and its gradient (Graves, Sequence Transduction with Recurrent Neural Networks, arXiv:1211.3711).

    logits: (N, T, U, C); targets: (N, U - 1); lengths: (N).  clamp: what gradients are at most, if it is above 0; fused: whether
    logits are no logarithms of probabilities yet.  Returns losses (N), gradients (N, T, U, C).  Raises RuntimeError
    for other shapes.
    """
    if logits.dim() != 4 or tuple(targets.shape) != (logits.size(0), logits.size(2) - 1):
        raise RuntimeError(
            f"rnnt_loss: expected logits of shape (N, T, U, C) and targets of (N, U - 1), got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    wide = logits.float() if logits.element_size() == 2 else logits
    logs = (torch.log_softmax(wide, -1) if fused else wide).numpy()
    gradients, losses = np.zeros_like(logs), np.empty(len(logs), logs.dtype)
    for i in range(len(logs)):
        steps, length = int(logit_lengths[i]), int(target_lengths[i])
        part, own = (slice(steps), slice(length + 1)), targets.numpy()[i, :length]
        losses[i], gradients[i][part] = transducer(logs[i][part], own, blank, fused)
    if clamp > 0:
        gradients = np.clip(gradients, -clamp, clamp)
    return torch.from_numpy(losses).to(logits.dtype), torch.from_numpy(gradients).to(logits.dtype)


def transducer(logs: Array, labels: Array, blank: int, fused: bool) -> tuple[Any, Array]:
    """The loss of one sequence, and its gradient.  logs: (T, U, C), labels: (U - 1)"""
    count = np.arange(len(labels))
    silent, spoken = logs[:, :, blank].astype(np.float64), np.full(logs.shape[:2], -np.inf)
    spoken[:, :-1] = logs[:, count, labels]
    behind = reached(np.roll(silent, 1, 0), np.roll(spoken, 1, 1), 0.0)
    ahead = reached(silent[::-1, ::-1], spoken[::-1, ::-1], silent[-1, -1])[::-1, ::-1]
    after = np.concatenate([ahead[1:], np.full((1, len(labels) + 1), -np.inf)])
    after[-1, -1] = 0  # the last blank ends it
    here = behind - ahead[0, 0]
    gradient = np.exp(logs + (here + ahead)[:, :, None]) if fused else np.zeros(logs.shape)
    gradient[:, :, blank] -= np.exp(here + silent + after)
    gradient[:, count, labels] -= np.exp(here[:, :-1] + spoken[:, :-1] + ahead[:, 1:])
    return -ahead[0, 0], gradient


def reached(down: Array, right: Array, first: float) -> Array:
    """The logarithm of how likely each place of a grid is reached from the first one, diagonal by diagonal.

    down, right: of the step that comes to a place from above, or from the left.  (T, U) -> (T, U)
    """
    found = np.full(down.shape, -np.inf)  # also beyond the edges, which the last row and column stand for
    found[0, 0] = first
    rows, columns = down.shape
    for diagonal in range(1, rows + columns - 1):
        u = np.arange(max(0, diagonal - rows + 1), min(columns - 1, diagonal) + 1)
        t = diagonal - u
        found[t, u] = np.logaddexp(found[t - 1, u] + down[t, u], found[t, u - 1] + right[t, u])
    return found
