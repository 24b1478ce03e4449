"""Random draws inside vmap: refused, the same for every sample, or different, as the user chose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.state import Setting, modes, special
from rushlight.tensor import Tensor, wrap

REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)


def innermost() -> Any:
    """The innermost level that runs samples together, None without one."""
    if special.count:
        for level in reversed(modes.levels):
            if hasattr(level, "randomness"):
                return level
    return None


def check() -> Any:
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
    return level.batched(t, 0)  # type: ignore[no-any-return]


def apart(x: Any) -> Any:
    """A tensor whose samples are the same as one with a copy for each, where draws are to differ by sample."""
    level = check()
    if level is None or level.randomness == "same" or not isinstance(x, Tensor):
        return x
    tensor, dim = level.whole(x)
    if dim is not None:
        return x
    from rushlight.ops.shape import broadcast

    with Setting("levels", modes.levels[: modes.levels.index(level)]):
        whole = broadcast(tensor, (level.size, *tensor.shape))
    return level.batched(whole, 0)


def check_target(x: Any) -> None:
    """Raise RuntimeError for draws into a tensor that all samples share, where they are to differ."""
    level = check()
    if level is not None and level.randomness == "different" and level.whole(x)[1] is None:
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. Make the tensor from one that is vmapped over, as x.new_empty() does, or use randomness='same'."
        )
