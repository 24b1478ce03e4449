"""Random draws inside vmap: refused, the same for every sample, or different, as the user chose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.basics.state import Setting, modes, special
from rushlight.generator import Generator, default_generator
from rushlight.levels import SampleLevel
from rushlight.tensor import Tensor, wrap

REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)


def innermost() -> SampleLevel | None:
    """The innermost level that runs samples together, None without one."""
    if special.count:
        for level in reversed(modes.levels):
            if hasattr(level, "randomness"):
                return level
    return None


def check() -> SampleLevel | None:
    """The innermost level; raises RuntimeError where it refuses random draws."""
    level = innermost()
    if level is not None and level.randomness == "error":
        raise RuntimeError(REFUSED)
    return level


def fresh(draw: Callable[[tuple[int, ...]], Any], shape: tuple[int, ...]) -> Tensor:
    """A tensor of the numbers that `draw(shape)` gives as an array; inside vmap different for each sample, or not."""
    level = check()
    if level is None:
        return wrap(draw(shape))
    with Setting("levels", modes.levels[: modes.levels.index(level)]):
        if level.randomness == "same":
            return fresh(draw, shape)
        t = fresh(draw, (level.size, *shape))
    return level.batched(t, 0)


def apart(x: Tensor) -> Tensor:
    """A tensor whose samples are the same as one with a copy for each, where draws are to differ by sample."""
    level = check()
    if level is None or level.randomness == "same" or not isinstance(x, Tensor):
        return x
    return level.apart(x)


def check_target(x: Tensor) -> None:
    """Raise RuntimeError for draws into a tensor that all samples share, where they are to differ."""
    level = check()
    if level is not None and level.randomness == "different" and level.whole(x)[1] is None:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. Make the tensor from one that is vmapped over, as x.new_empty() does, or use randomness='same'."
        )


class _Repeats(threading.local):
    """For each repetition that this thread is in, the states in which generators were first asked for numbers."""

    states: tuple[dict[Generator, Any], ...] = ()


_repeats = _Repeats()


def note(generator: Generator) -> None:
    """Remember the state of a generator other than the default one, before it is first used in a repetition."""
    for states in _repeats.states:
        if generator not in states:
            states[generator] = generator.state_words()


class Repetition:
    """Runs that draw the same numbers, from whatever generators, as chunks of one vmap do that asks for the same."""

    def __init__(self) -> None:
        self.states: dict[Generator, Any] = {default_generator: default_generator.state_words()}

    @contextmanager
    def run(self) -> Iterator[None]:
        """One of the runs."""
        for generator, words in self.states.items():
            generator.set_state_words(words)
        former, _repeats.states = _repeats.states, (*_repeats.states, self.states)
        try:
            yield
        finally:
            _repeats.states = former
