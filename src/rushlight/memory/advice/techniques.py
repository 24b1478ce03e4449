"""Techniques that lower a peak, each as the changes that it makes to a recording's blocks."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

import numpy as np

from rushlight.memory.advice.whatif import (
    ACTIVATION,
    DETAIL,
    GRADIENT,
    INPUT,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
    UNKNOWN,
    Changes,
    Run,
    changes,
    joined,
)
from rushlight.memory.recordings.recording import ALLOC, SEVERAL, UNUSED
from rushlight.memory.recordings.replay import near
from rushlight.optim.small.eight_bit import FORMS, kept
from rushlight.optim.small.eight_bit import SMALLEST as SMALLEST_IN_CODES

IN_FLIGHT = 2  # saved tensors that a store writes or reads at once
ALIKE = 0.01  # of the peak: what saves as much but for this is as good
SMALLEST = 1 << 16  # bytes of a tensor that is worth a store's trouble


class Applied(NamedTuple):
    """A technique on a recording: its changes, and what it found there, for the text."""

    changes: Changes
    bytes: int = 0  # of the blocks that it is about, together, at the recording's peak
    what: str = ""
    number: int = 0  # of blocks or parts
    largest: int = 0  # bytes of the largest block
    each_step: int = 0  # bytes that a leak takes in every step


def nothing() -> Changes:
    """No changes."""
    return changes(*(np.zeros(0, np.int64),) * 4)


def at_peak(run: Run, blocks: np.ndarray) -> int:
    """Bytes of these blocks at the recorded peak."""
    birth, death = run.lives
    moment = run.actual.moment
    return int(run.size[blocks[(birth[blocks] <= moment) & (death[blocks] > moment)]].sum())


# Gradients ----------------------------------------------------------------------------------------------


def optimizer_in_backward(run: Run) -> Applied | None:
    """Each gradient dies as soon as it is complete: the optimizer steps there, and makes its state there.

    Nothing where gradients are accumulated over several backward passes, or scaled: they have to stay; nor where some are dropped
    that an optimizer would have stepped with.  Clipping by their
    norm takes two runs of backward, and activations stay for the second.
    """
    treatments = run.recording.treatments
    if {"GradScaler", SEVERAL, UNUSED} & {*treatments} or len(treatments) > 1:
        return None
    grads = run.of(GRADIENT)
    ready = run.became(GRADIENT)[grads]
    steps = run.starts("optimizer")
    if not len(grads) or not len(steps) or accumulates(run, ready, steps):
        return None
    stop = run.lives.death[grads]
    made = moved_states(run, grads, ready)
    step = step_temporaries(run)
    scratch = changes(grads, ready, ready + 1, -np.minimum(step, 4 * run.size[grads]))
    again = kept_for_another_run(run) if treatments and treatments[0].startswith("clip_grad_norm") else nothing()
    gone = changes(grads, ready + 1, stop, run.size[grads])
    return Applied(joined(gone, made, scratch, again), at_peak(run, grads), "".join(treatments))


def kept_for_another_run(run: Run) -> Changes:
    """What is saved stays until the end of its backward."""
    blocks = saved(run)
    death = run.lives.death[blocks]
    stops = np.array([stop for _, stop, name in run.phases if name == "backward"], np.int64)
    return changes(
        blocks, death, stops[np.searchsorted(stops, death, side="right")] if len(blocks) else death, -run.size[blocks]
    )


def accumulates(run: Run, ready: np.ndarray, steps: np.ndarray) -> bool:
    """Whether a backward pass begins between the gradients' completion and the optimizer's step.

    Gradients from before the recording, which may be of tensors that no optimizer has, do not tell.
    """
    following = np.searchsorted(steps, ready)
    known = (following < len(steps)) & (ready > 0)
    passes = run.starts("backward")
    between = np.searchsorted(passes, steps[following[known]]) - np.searchsorted(passes, ready[known], side="right")
    return bool((between > 0).any())


def moved_states(run: Run, grads: np.ndarray, ready: np.ndarray) -> Changes:
    """State that is made in the optimizer's step is made when the gradient of the same size is complete."""
    birth = run.lives.birth
    states = run.of(OPTIMIZER_STATE)
    states = states[run.phase_of(birth[states]) == "optimizer"]
    found = [nothing()]
    for start, stop, name in run.phases:
        if name != "optimizer":
            continue
        made = states[(birth[states] >= start) & (birth[states] < stop)]
        there = np.flatnonzero((ready < start) & (run.lives.death[grads] > start))
        if len(made) and len(there):
            found.append(changes(made, matched(run, made, grads[there], ready[there]), birth[made], -run.size[made]))
    return joined(*found)


def matched(run: Run, states: np.ndarray, grads: np.ndarray, ready: np.ndarray) -> np.ndarray:
    """For each state the moment at which a gradient of its size was complete; the last one for other sizes."""
    found = np.full(len(states), int(ready.max()), np.int64)
    for size in np.unique(run.size[states]):
        mine, theirs = np.flatnonzero(run.size[states] == size), np.sort(ready[run.size[grads] == size])
        if len(theirs):
            each = -(-len(mine) // len(theirs))
            found[mine] = theirs[np.minimum(np.arange(len(mine)) // each, len(theirs) - 1)]
    return found


def step_temporaries(run: Run) -> int:
    """The most bytes of temporaries at once in an optimizer's step."""
    birth, death = run.lives
    blocks = run.of(TEMPORARY, DETAIL, UNKNOWN)
    blocks = blocks[(run.phase_of(birth[blocks]) == "optimizer") & (death[blocks] < run.end)]
    extra = np.zeros(run.end + 1, np.int64)
    np.add.at(extra, birth[blocks], run.size[blocks])
    np.subtract.at(extra, death[blocks], run.size[blocks])
    return int(np.cumsum(extra).max(initial=0))


def zero_grad_early(run: Run) -> Applied | None:
    """Gradients die right after the optimizer's step, not in the next forward."""
    grads = run.of(GRADIENT)
    ready = run.became(GRADIENT)[grads]
    stops = np.array([stop for _, stop, name in run.phases if name == "optimizer"], np.int64)
    if not len(stops) or not len(grads):
        return None
    place = np.searchsorted(stops, ready, side="right")
    known = place < len(stops)
    grads, stop = grads[known], stops[place[known]]
    late = run.lives.death[grads] > stop + 1
    if not late.any():
        return None
    grads, stop = grads[late], stop[late]
    return Applied(changes(grads, stop, run.lives.death[grads], run.size[grads]), at_peak(run, grads))


# Activations --------------------------------------------------------------------------------------------


def saved(run: Run) -> np.ndarray:
    """Activations that a forward saves for a backward, in the order of their births."""
    birth, death = run.lives
    blocks = run.of(ACTIVATION)
    blocks = blocks[(run.phase_of(birth[blocks]) == "forward") & (run.phase_of(death[blocks]) == "backward")]
    found: np.ndarray = blocks[np.argsort(birth[blocks], kind="stable")]
    return found


def without_gradients(run: Run) -> Applied | None:
    """What a forward saved and no backward came for dies as soon as the model has gone on, as where nothing is recorded.

    When the script lets go of it is not known.  What is made where the script comes by again (`x = relu(layer(x))` in a loop)
    is taken to stay until it has; of what a part of the model saves ("layers.3") the last as long as it did, since others may
    use it, and the rest until the part ends; what is the only one until the part after it ends.
    """
    blocks = passed_by(run)
    if not len(blocks):
        return None
    death = run.lives.death[blocks]
    begins, names = stretches(run)
    place = np.searchsorted(begins, run.lives.birth[blocks], side="right") - 1
    whole = np.append(begins, [run.end, run.end])
    again, after = come_by_again(names), parts_after(names)
    words = [name.partition(".")[0] for name in names]
    wide = np.cumsum([0, *(one != other for one, other in itertools.pairwise(words))])[place]
    stops = np.where(is_alone(place), whole[after[place]], whole[place + 1])
    stops[(is_last(place) & ~is_alone(place)) | (is_last(wide) & ~is_alone(wide))] = run.end
    repeated = whole[again[place]] < death
    stops[repeated] = whole[again[place] + 1][repeated]
    gone = changes(blocks, stops, death, run.size[blocks])
    return Applied(gone, at_peak(run, blocks), place_of(run, int(blocks[run.size[blocks].argmax()])), len(blocks))


def stretches(run: Run) -> tuple[np.ndarray, list[str]]:
    """Where forward goes from one part of the model to another, and the names of the parts."""
    birth = run.lives.birth
    made = np.flatnonzero(run.phase_of(birth) == "forward")
    made = made[np.argsort(birth[made], kind="stable")]
    parts = [part_of(name) for name in [*run.recording.modules, ""]]
    names = [parts[at] for at in run.recording.module[made].tolist()]
    first = [i for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
    return birth[made][first], [names[i] for i in first]


def is_alone(groups: np.ndarray) -> np.ndarray:
    """Of a row of numbers that do not fall, whether each is the only one of its kind."""
    found: np.ndarray = np.bincount(groups)[groups] == 1
    return found


def is_last(groups: np.ndarray) -> np.ndarray:
    """Of such a row, whether each is the last of its kind."""
    return np.append(groups[1:] != groups[:-1], True)


def come_by_again(names: list[str]) -> np.ndarray:
    """For each of a row of names the place where it is met next, or that behind the last."""
    found, met = np.full(len(names), len(names), np.int64), dict[str, int]()
    for place in reversed(range(len(names))):
        found[place] = met.get(names[place], len(names))
        met[names[place]] = place
    return found


def parts_after(names: list[str]) -> np.ndarray:
    """For each of a row of parts the place behind the one that follows it: behind all of "u1.0", "u1.1" after "d1"."""
    found = np.arange(len(names), dtype=np.int64) + 2
    for place in reversed(range(len(names) - 1)):
        word, following = (name.partition(".")[0] for name in names[place : place + 2])
        if word != following:
            end = place + 2
            while end < len(names) and names[end].partition(".")[0] == following:
                end += 1
            found[place] = end
    return found


def passed_by(run: Run) -> np.ndarray:
    """Activations that no backward came for, in the order of their births: freed before the next one begins, or, of the last
    batch of an evaluation, which a variable keeps, in a later forward.

    Not those of a forward that has saved what a backward frees: some results are given up there for a bit of each element.
    """
    birth, death = run.lives
    blocks = run.of(ACTIVATION)
    blocks = blocks[(run.phase_of(birth[blocks]) == "forward") & (death[blocks] < run.end)]
    backward = np.concatenate([[-1], run.starts("backward"), [run.end]])
    place = np.searchsorted(backward, birth[blocks])
    former, following = backward[place - 1], backward[place]
    before = death[blocks] < following
    used = np.sort(birth[saved(run)])
    training = np.searchsorted(used, np.where(before, death[blocks], birth[blocks])) > np.searchsorted(used, former)
    trains_after = np.searchsorted(used, following) > np.searchsorted(used, birth[blocks])
    kept_on = trains_after & (run.phase_of(death[blocks]) == "forward")
    blocks = blocks[~training & (before | kept_on)]
    found: np.ndarray = blocks[np.argsort(birth[blocks], kind="stable")]
    return found


def part_of(module: str) -> str:
    """The part of the model that a module is in: up to the first number in its name, or its first word."""
    found = re.match(r"(.*?(?:^|\.)\d+)(?:\.|$)", module)
    return found[1] if found else module.partition(".")[0]


def offloaded(run: Run) -> Applied | None:
    """Saved activations leave for the disk once written, and come back shortly before they are needed.

    What waits to be written or was read ahead takes `IN_FLIGHT` times the largest of them together.
    """
    birth, death = run.lives
    blocks = saved(run)
    blocks = blocks[run.size[blocks] >= SMALLEST]
    if len(blocks) <= 2 * IN_FLIGHT:
        return None
    largest = int(run.size[blocks].max())
    leaves = np.full(len(blocks), run.end, np.int64)
    later = following(run.size[blocks], IN_FLIGHT * largest)
    leaves[later < len(blocks)] = birth[blocks][later[later < len(blocks)]]
    uses = wanted(run, death[blocks])
    order = np.argsort(-death[blocks], kind="stable")  # backwards in time: from a use to that at which it is read ahead
    later = following(run.size[blocks][order], IN_FLIGHT * largest)
    back = np.full(len(blocks), -1, np.int64)
    back[order[later < len(blocks)]] = uses[order[later[later < len(blocks)]]]
    back = np.minimum(back, uses)
    gone = changes(blocks, leaves, back, run.size[blocks])
    return Applied(gone, at_peak(run, blocks), number=len(blocks), largest=largest)


def wanted(run: Run, deaths: np.ndarray) -> np.ndarray:
    """From when on what backward frees at these moments is in use: since the frees before, of what it does not free at once."""
    made = np.cumsum(run.recording.action == ALLOC)
    _, group = np.unique(made[deaths], return_inverse=True)
    last = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
    np.maximum.at(last, group, deaths)
    starts = run.starts("backward")
    begun = starts[np.maximum(np.searchsorted(starts, deaths, side="right") - 1, 0)]
    found: np.ndarray = np.maximum(np.concatenate([[0], last[:-1] + 1])[group], begun)
    return found


def following(sizes: np.ndarray, room: int) -> np.ndarray:
    """For each of a row of blocks the place of the first with which it and those between take more than `room` bytes."""
    ends = np.cumsum(sizes)
    found: np.ndarray = np.searchsorted(ends, ends - sizes + room, side="right")
    return found


def checkpointed(run: Run) -> Applied | None:
    """The modules whose recomputation lowers the peak most: of parts "layers.0", "layers.1"... all are tried together."""
    blocks = saved(run)
    blocks = blocks[run.recording.module[blocks] >= 0]
    tried = []
    for pattern, members in patterns(run, blocks).items():
        applied = recomputed(run, blocks, members, pattern)
        tried.append((run.replay(applied.changes).peak, pattern.count("."), applied))
    least = min((peak for peak, _, _ in tried), default=0)
    good = [(depth, peak, applied) for peak, depth, applied in tried if peak <= least + ALIKE * run.actual.peak]
    return min(good, key=lambda x: x[:2])[2] if good else None  # of those that save alike the largest parts


def patterns(run: Run, blocks: np.ndarray) -> dict[str, np.ndarray]:
    """Modules that ran and may be recomputed, as "layers.*": for each, the place in it of every module, -1 for none.

    The last is of blocks that no module made.
    """
    names = sorted({run.recording.modules[m] for m in np.unique(run.recording.module[blocks]).tolist()})
    prefixes = {
        ".".join(parts[:depth])
        for name in names
        if (parts := name.split("."))
        for depth in range(1, min(len(parts), 5) + 1)
    }
    grouped: dict[str, dict[str, int]] = {}
    for prefix in sorted(prefixes - {*run.recording.idle, *run.recording.models}):
        places = grouped.setdefault(re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", prefix), {})
        places[prefix] = len(places)
    found = {}
    for pattern, places in list(grouped.items())[:64]:
        depth = pattern.count(".") + 1
        found[pattern] = np.array(
            [*(places.get(".".join(name.split(".")[:depth]), -1) for name in run.recording.modules), -1], np.int64
        )
    return found


def recomputed(run: Run, blocks: np.ndarray, members: np.ndarray, pattern: str) -> Applied:
    """What lies inside each part is away from the end of its forward until its backward; its output stays.

    members: the place of each module in the pattern.
    """
    birth, death = run.lives
    places = members[run.recording.module[blocks]]
    chosen, places = blocks[places >= 0], places[places >= 0]
    keys, group = np.unique(passes(run, chosen, members), return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    last, first = np.full(count, -1, np.int64), np.full(count, run.end, np.int64)
    np.maximum.at(last, group, birth[chosen])
    np.minimum.at(first, group, death[chosen])
    ends = np.sort(death[blocks])
    place = np.searchsorted(ends, first) - 1  # the death just before the part's backward: of the part that comes after
    back = np.where(place >= 0, ends[np.maximum(place, 0)] + 1, first)
    starts = run.starts("backward")  # of the part whose backward is the first
    begun = np.searchsorted(starts, first, side="right") - 1
    back = np.maximum(back, np.where(begun >= 0, starts[np.maximum(begun, 0)], first) if len(starts) else first)
    back = np.where((back > last) & (back <= first), back, first)
    stays = birth[chosen] == np.maximum(last, outputs(run, keys, members))[group]
    gone = changes(chosen[~stays], last[group][~stays] + 1, back[group][~stays], run.size[chosen[~stays]])
    what = "the model's parts" if pattern == "*" else pattern
    return Applied(gone, at_peak(run, chosen), what, len(np.unique(places)))


def passes(run: Run, blocks: np.ndarray, members: np.ndarray) -> np.ndarray:
    """A number for each block: of the step that it was made in, and the part of a pattern."""
    step = np.searchsorted(np.array(run.steps, np.int64), run.lives.birth[blocks], side="right")
    found: np.ndarray = step * (int(members.max(initial=0)) + 1) + members[run.recording.module[blocks]]
    return found


def outputs(run: Run, keys: np.ndarray, members: np.ndarray) -> np.ndarray:
    """When each pass of a part made what it gave: the last that outlives it, which need not be saved; -1 where that is not known."""
    birth, death = run.lives
    made = np.flatnonzero((birth >= 0) & (run.phase_of(birth) == "forward"))
    made = made[np.argsort(birth[made], kind="stable")]
    inside = members[run.recording.module[made]] >= 0
    key = np.where(inside, passes(run, made, members), -1)
    end = np.flatnonzero(np.append(key[1:] != key[:-1], True))  # the last of each stretch of one part
    after = np.append(birth[made], run.end)[end + 1]  # what is made next
    stretch = np.searchsorted(end, np.arange(len(made)))
    lasts = inside & (death[made] > after[stretch]) & (run.size[made] >= SMALLEST)
    found = np.full(len(keys), -1, np.int64)
    np.maximum.at(
        found, np.searchsorted(keys, key[lasts & np.isin(key, keys)]), birth[made][lasts & np.isin(key, keys)]
    )
    return found


def half_the_batch(run: Run) -> Applied | None:
    """Inputs and activations are half as large, and temporaries of a pass that are not as large as a parameter."""
    birth, death = run.lives
    blocks = run.of(ACTIVATION, INPUT)
    blocks = of_batches(run, blocks[birth[blocks] >= 0])
    fixed = np.unique(run.size[run.of(PARAMETER, GRADIENT, OPTIMIZER_STATE)])
    passing = run.of(TEMPORARY, DETAIL)
    passing = passing[np.isin(run.phase_of(birth[passing]), ("forward", "backward"))]
    passing = passing[~np.isin(run.size[passing], fixed)]
    both = np.concatenate([blocks, passing])
    if not len(blocks):
        return None
    start = np.maximum(birth[both], run.steps[0] if run.steps else 0)  # before, data may be prepared as a whole
    return Applied(changes(both, start, death[both], run.size[both] // 2), at_peak(run, both))


def of_batches(run: Run, blocks: np.ndarray) -> np.ndarray:
    """Those that may be of a batch: neither gone before the first forward, nor a data set that batches are cut from."""
    steps = np.array(run.steps, np.int64)
    if not len(steps):
        return blocks
    birth, death = (moments[blocks] for moments in run.lives)
    given = run.became(INPUT)[blocks]
    outside = (given < run.end) & ~np.isin(run.phase_of(given), ("forward", "backward"))
    outside |= np.isin(blocks, run.recording.cut)
    several = np.searchsorted(steps, death) - np.searchsorted(steps, birth) > 1
    found: np.ndarray = blocks[(death > steps[0]) & ~(outside & several)]
    return found


def accumulated_halves(run: Run) -> Applied | None:
    """Two half batches to a step: each gradient of the first is there until that of the second has been added."""
    half = half_the_batch(run)
    if half is None:
        return None
    grads = run.of(GRADIENT)
    grads = grads[run.lives.birth[grads] >= 0]
    birth, ready = run.lives.birth[grads], run.became(GRADIENT)[grads]
    bounds = np.array([-1, *run.steps], np.int64)
    start = bounds[np.searchsorted(bounds, birth, side="right") - 1]
    return half._replace(changes=joined(half.changes, changes(grads, start, ready + 1, -run.size[grads])))


# Optimizer state, leaks, temporaries --------------------------------------------------------------------


def without_state(run: Run) -> Applied | None:
    """The optimizer's state is elsewhere but for that of one parameter at a time."""
    states = run.of(OPTIMIZER_STATE)
    if not len(states):
        return None
    birth, death = run.lives
    sizes = run.size[states]
    place = int(sizes.argmax())
    window = changes(states[place], int(birth[states].min()), run.end, -2 * int(sizes[place]))
    return Applied(joined(changes(states, birth[states], death[states], sizes), window), at_peak(run, states))


def eight_bit_state(run: Run) -> Applied | None:
    """The optimizer's state of float32 parameters takes 8 bits a number, where it was made in this run and has such a form."""
    r, states = run.recording, run.of(OPTIMIZER_STATE)
    makers = [(r.operators[at] if at >= 0 else "").removesuffix(".step") for at in r.operator[states].tolist()]
    full = np.array([maker in FORMS for maker in makers], bool) & (run.size[states] >= 4 * SMALLEST_IN_CODES)
    if not full.any() or keeps_more(run, states[full], makers[int(full.argmax())]):
        return None
    birth, death = run.lives
    chosen = states[full]
    sizes = run.size[chosen]
    gone = changes(chosen, birth[chosen], death[chosen], sizes - kept(sizes // 4))
    name = FORMS[next(maker for maker, is_full in zip(makers, full.tolist(), strict=True) if is_full)]
    return Applied(gone, at_peak(run, chosen), name, len(chosen))


def keeps_more(run: Run, states: np.ndarray, maker: str) -> bool:
    """Whether an optimizer keeps more for a parameter than its 8-bit form can: the largest mean squares, with `amsgrad`."""
    parameters = run.of(PARAMETER)
    trained = np.isin(run.size[parameters], run.size[states]).sum()
    return len(states) > (2 if maker.startswith("Adam") else 1) * max(int(trained), 1)


def leaked(run: Run) -> Applied | None:
    """Blocks that every step makes and no later step frees die at the end of their own step."""
    birth, death = run.lives
    bounds = np.array([*run.steps, run.end], np.int64)
    if len(bounds) < 4:
        return None
    blocks = run.of(UNKNOWN, ACTIVATION, INPUT, TEMPORARY, DETAIL)
    blocks = blocks[birth[blocks] >= bounds[0]]
    step = np.searchsorted(bounds, birth[blocks], side="right") - 1
    eligible = step <= len(bounds) - 3
    blocks, step = blocks[eligible], step[eligible]
    stays = death[blocks] >= bounds[step + 2]
    blocks, step = blocks[stays], step[stays]
    every = constant(run, blocks, step, len(bounds) - 2)
    if not len(every):
        return None
    blocks, step = blocks[every], step[every]
    gone = changes(blocks, bounds[step + 1], death[blocks], run.size[blocks])
    each = int(run.size[blocks].sum()) // len(np.unique(step))
    what = place_of(run, int(blocks[run.size[blocks].argmax()]))
    return Applied(gone, each, what, len(blocks), each_step=each)


def constant(run: Run, blocks: np.ndarray, step: np.ndarray, steps: int) -> np.ndarray:
    """The places of those blocks whose maker made some that stay in each of the steps, the first aside if there are three.

    What a loop makes after the optimizer's step belongs to the step that follows: the first one has none of it.
    """
    r = run.recording
    makers = np.stack([r.stack[blocks], r.operator[blocks], r.module[blocks]], 1)
    kinds, group = np.unique(makers, axis=0, return_inverse=True)
    group = group.reshape(-1)
    pairs = np.unique(group.astype(np.int64) * (steps + 1) + step)
    first = 1 if steps > 2 else 0
    pairs = pairs[pairs % (steps + 1) >= first]
    met = np.bincount(pairs // (steps + 1), minlength=len(kinds))
    return np.flatnonzero(met[group] == steps - first)


def repeated_temporaries(run: Run) -> Applied | None:
    """Of temporaries that one line made and that are there together at the peak, one is left."""
    birth, death = run.lives
    moment = run.actual.moment
    blocks = run.of(TEMPORARY, DETAIL, UNKNOWN)
    begins = np.array([-1, *run.steps, run.end], np.int64)
    place = int(np.searchsorted(begins, moment, side="right")) - 1
    passing = (birth[blocks] >= max(begins[place], 0)) & (death[blocks] < begins[min(place + 1, len(begins) - 1)])
    blocks = blocks[(birth[blocks] <= moment) & (death[blocks] > moment) & passing]
    r = run.recording
    makers = np.stack([r.stack[blocks], r.operator[blocks], run.size[blocks]], 1)
    kinds, first, counts = np.unique(makers, axis=0, return_index=True, return_counts=True)
    worth = counts > 1
    if not worth.any():
        return None
    weight = np.where(worth, (counts - 1) * kinds[:, 2], 0)
    kind = int(weight.argmax())
    mine = blocks[(makers == kinds[kind]).all(1)]
    gone = changes(mine[1:], birth[mine[1:]], death[mine[1:]], run.size[mine[1:]])
    return Applied(gone, int(run.size[mine].sum()), place_of(run, int(blocks[first[kind]])), len(mine))


def place_of(run: Run, block: int) -> str:
    """Where a block was made, in words."""
    r = run.recording
    stack, operator = int(r.stack[block]), int(r.operator[block])
    parts = [r.operators[operator]] if operator >= 0 else []
    if stack >= 0 and r.stacks[stack]:
        frame = r.stacks[stack][0]
        parts.append(f"at {near(frame.filename)}:{frame.line} in {frame.name}")
    return " ".join(parts) or "an unrecorded line"
