"""Advice on one run: what would lower its peak, by how many bytes, found by replaying the recording with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rushlight.kernels import allocator
from rushlight.memory.advice import snippets, techniques
from rushlight.memory.advice.techniques import Applied
from rushlight.memory.advice.whatif import Outcome, Run, joined
from rushlight.memory.counting.units import share, size
from rushlight.memory.recordings.recording import Recording

__all__ = ["Advice", "advise"]

WORTH = 0.01  # of the peak


@dataclass(frozen=True)
class Advice:
    """What to do, and what it gives in this run.  before, after: the peak, in bytes; categories: of the new peak.

    code: what to paste, with arguments from the recording; `model`, `optimizer`, `x` and `loss_of` stand for yours.
    each_step: of a leak, the bytes that every step leaves behind.
    """

    name: str
    title: str
    text: str
    code: str
    before: int
    after: int
    categories: dict[str, int]
    each_step: int = 0

    @property
    def saves(self) -> int:
        """Bytes by which the peak falls."""
        return self.before - self.after

    @property
    def gain(self) -> str:
        """What it gives, in a few characters: of a leak what every further step would cost."""
        return f"+{size(self.each_step)} every step" if self.each_step else f"-{size(self.saves)}"

    def __str__(self) -> str:
        return f"{self.title}: {self.gain}. {self.text}"


class AdviceList(list[Advice]):
    """Pieces of advice, the first to follow first; a notebook shows them with their code."""

    def __str__(self) -> str:
        return "\n\n".join(f"{advice}\n\n{advice.code}".rstrip() for advice in self)

    def _repr_html_(self) -> str:
        from rushlight.memory.reports import display

        return display.advice(self)


@allocator.aside()
def advise(recording: Recording, worth: float = WORTH) -> AdviceList:
    """What would lower the peak of a recording: leaks, which grow without end, and then what lowers it most.

    Each figure is a replay of the recording with what the technique removes; `worth` is the part of the peak that a piece
    of advice must save to be given.

    >>> import rushlight as torch
    >>> from rushlight import memory
    >>> memory.record_history()
    >>> model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
    >>> optimizer = torch.optim.Adam(model.parameters())
    >>> for _ in range(2):
    ...     model(torch.ones(4, 64)).sum().backward()
    ...     optimizer.step()
    ...     optimizer.zero_grad()
    >>> memory.record_history(None)
    >>> all(advice.after < advice.before for advice in memory.advise(memory.recording()))
    True
    """
    run = Run(recording)
    if not len(recording.time) or run.actual.peak <= 0:
        return AdviceList()
    found: list[Advice] = []
    applied: dict[str, Applied] = {}
    for name, (technique, _, _, _) in TECHNIQUES.items():
        what = technique(run)
        if what is not None:
            applied[name] = what
            found += told(run, name, what, worth)
    found += together(run, applied, found, worth)
    return AdviceList(sorted(found, key=lambda advice: (-advice.each_step, advice.after)))


def told(run: Run, name: str, what: Applied, worth: float) -> list[Advice]:
    """The advice on a technique, if it is worth it."""
    outcome = run.replay(what.changes)
    before = run.actual.peak
    if before - outcome.peak < (0 if what.each_step else worth * before) or outcome.peak == before:
        return []
    _, title, text, code = TECHNIQUES[name]
    values = {"bytes": size(what.bytes), "share": share(what.bytes, before), "what": what.what, "count": what.number}
    sentence = f"{text.format(**values)} {consequence(outcome, before)}"
    return [
        Advice(
            name,
            title.format(**values),
            sentence,
            code(what, outcome.peak),
            before,
            outcome.peak,
            outcome.categories,
            what.each_step,
        )
    ]


def consequence(outcome: Outcome, before: int) -> str:
    """What the peak would be, and what it would then be made of."""
    name, most = next(iter(outcome.categories.items()), ("nothing", 0))
    return (
        f"The peak falls by {size(before - outcome.peak)} to {size(outcome.peak)}; "
        f"{PLURAL.get(name, name)} then dominate: {size(most)}, {share(most, outcome.peak)}."
    )


def together(run: Run, applied: dict[str, Applied], found: list[Advice], worth: float) -> list[Advice]:
    """One for gradients and one for activations, which do not get in each other's way, at once."""
    pair = [chosen(names, applied, found) for names in (("in_backward", "zero_grad"), ("checkpoint", "disk"))]
    if not all(pair):
        return []
    outcome, before = run.replay(joined(*(applied[name].changes for name in pair))), run.actual.peak
    alone = min((advice.after for advice in found if advice.name in pair), default=before)
    if alone - outcome.peak < worth * before:
        return []
    parts = [SHORT[name].format(what=applied[name].what) for name in pair]
    text = (
        f"Both, for after one of them the bytes that the other is about make the peak. {consequence(outcome, before)}"
    )
    title = f"{parts[0][0].upper()}{parts[0][1:]}, and {parts[1]}"
    code = snippets.joined(*(TECHNIQUES[name][3](applied[name], outcome.peak) for name in pair))
    return [Advice("together", title, text, code, before, outcome.peak, outcome.categories)]


def chosen(names: tuple[str, ...], applied: dict[str, Applied], found: list[Advice]) -> str:
    """Of some techniques the one that saves most, or the first that can be applied at all; "" if none can."""
    given = [advice for advice in found if advice.name in names]
    best = min(given, key=lambda advice: advice.after).name if given else ""
    return best or next((name for name in names if name in applied), "")


SHORT = {
    "in_backward": "optimizer in backward",
    "zero_grad": "gradients cleared right after the step",
    "checkpoint": "{what} recomputed",
    "disk": "saved activations on disk",
}
PLURAL = {
    "parameter": "parameters", "gradient": "gradients", "optimizer_state": "optimizer states", "activation": "activations",
    "input": "inputs", "temporary": "temporaries", "autograd_detail": "backward's own buffers", "unknown": "other blocks",
}  # fmt: skip

Technique = Callable[[Run], Applied | None]
TECHNIQUES: dict[str, tuple[Technique, str, str, snippets.Snippet]] = {
    "leak": (
        techniques.leaked,
        "Free what every step leaves behind",
        "Each step leaves {bytes} that no later step frees, most of it from {what}: a list that keeps losses with their graph?",
        snippets.leak,
    ),
    "in_backward": (
        techniques.optimizer_in_backward,
        "Let the optimizer step in backward",
        "Gradients are {share} of the peak ({bytes}): each can be used and freed as soon as it is complete.",
        snippets.in_backward,
    ),
    "zero_grad": (
        techniques.zero_grad_early,
        "Clear gradients right after the step",
        "Gradients stay until the next forward; calling zero_grad() after step() frees them before it.",
        snippets.zero_grad,
    ),
    "no_grad": (
        techniques.without_gradients,
        "Evaluate under torch.no_grad()",
        "{share} of the peak ({bytes}) was saved for a backward that never came, most of it by {what}.",
        snippets.no_grad,
    ),
    "checkpoint": (
        techniques.checkpointed,
        "Recompute {what} in backward",
        "What is saved in {what} ({bytes}, {share} of the peak) can be computed again, in {count} parts, for about a third more time.",
        snippets.checkpoint,
    ),
    "disk": (
        techniques.offloaded,
        "Keep saved activations on disk",
        "Saved activations are {share} of the peak ({bytes}); a store writes them out and reads them back in time.",
        snippets.disk,
    ),
    "batch": (
        techniques.accumulated_halves,
        "Halve the batch",
        "What grows with the batch is {share} of the peak ({bytes}); two half batches, accumulated, give the same gradient.",
        snippets.batch,
    ),
    "state": (
        techniques.without_state,
        "Keep the optimizer's state elsewhere",
        "Optimizer state is {share} of the peak ({bytes}). A budget pages it out between steps; plain SGD has none.",
        snippets.state,
    ),
    "eight_bit": (
        techniques.eight_bit_state,
        "Keep the optimizer's state in 8 bits",
        "{what} keeps what is {share} of the peak ({bytes}) in a little more than a quarter of that, where parameters are "
        "float32; on the digits losses differ by less than a hundredth.",
        snippets.eight_bit,
    ),
    "temporaries": (
        techniques.repeated_temporaries,
        "Write temporaries in place",
        "{count} temporaries of one size ({bytes}) from {what} are alive at once.",
        snippets.nothing,
    ),
}
