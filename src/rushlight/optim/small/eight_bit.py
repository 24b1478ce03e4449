"""Optimizers whose state takes 8 bits a number: Adam8bit, AdamW8bit, Lion8bit and SGD8bit.

Block-wise dynamic quantization, by Dettmers, Lewis, Shleifer and Zettlemoyer, "8-bit Optimizers via Block-wise Quantization"
(2022, arXiv:2110.02861), in blocks of 256.  State dictionaries have the names and layouts of bitsandbytes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from rushlight import kernels
from rushlight.basics.arrays import Array
from rushlight.basics.dtypes import is_complex
from rushlight.kernels.blockwise import AT_ONCE, BLOCK, dynamic_map
from rushlight.optim.memory import zeros_like
from rushlight.optim.optimizer import ParamsT
from rushlight.optim.options import check, checked, number
from rushlight.optim.stepper import Stepper
from rushlight.storage import STEP, bump
from rushlight.tensor import Tensor, wrap

__all__ = ["Adam8bit", "AdamW8bit", "Lion8bit", "SGD8bit"]

Arrays = tuple[Array, ...]
FLOAT32 = np.dtype(np.float32)
SMALLEST = 4096  # elements of a parameter whose state lies in codes, unless another number is given


NO_MOMENTUM = "Invalid momentum value: {}: without momentum there is no state; use SGD"
AMSGRAD = "amsgrad={}: the 8-bit forms of Adam do not keep the largest mean square; use Adam"
FORMS = {"Adam": "Adam8bit", "AdamW": "AdamW8bit", "Lion": "Lion8bit", "SGD": "SGD8bit"}  # of full optimizers


def kept(elements: Array) -> Any:
    """Bytes of a state of so many elements in 8 bits: codes and scales.  An int, or an array of such."""
    return elements + 4 * -(-elements // BLOCK)


@functools.cache
def qmap(signed: bool) -> Tensor:
    """What the codes stand for, one tensor for all parameters.  (256) float32, not to be written to"""
    return wrap(dynamic_map(signed))


class EightBit(Stepper):
    """What the 8-bit optimizers share: the state.

    Of a parameter of at least `min_8bit_size` elements: step, a number; state1 (and state2), uint8 in the parameter's shape;
    absmax1, float32, the scale of each 256 codes; qmap1, float32, what the codes stand for.  Of a smaller one: step, and
    state1 (and state2) in float32, as the full optimizer has them.  In blocks of another size as files may have them,
    scales are repeated.
    """

    _fill: ClassVar[dict[str, Any]] = {"min_8bit_size": SMALLEST}
    elementwise = False  # but in blocks
    _counts_in_tensors = False
    _count: ClassVar[int] = 1  # of states
    _shared = frozenset({"qmap1", "qmap2"})
    _own_dtypes = frozenset({"step", "state1", "state2", "absmax1", "absmax2", *_shared})

    def __setstate__(self, state: dict[str, Any]) -> None:
        for p, kept in state["state"].items():
            if isinstance(p, Tensor) and kept:
                self._adopt(p, kept)
        super().__setstate__(state)

    def _adopt(self, p: Tensor, state: dict[str, Any]) -> None:
        """Make state that was loaded, or copied, such as this optimizer makes it.  Raises ValueError where it cannot be."""
        name = type(self).__name__
        if "state1" not in state:
            raise ValueError(f"{name}: the state loaded is another optimizer's: it has {sorted(state)}, and no state1")
        state["step"] = int(number(state["step"]))
        for i in range(1, self._count + 1):
            if f"absmax{i}" not in state:
                continue
            found = state.get(f"qmap{i}")
            if found is None or not np.allclose(found._array, dynamic_map(i == 1), atol=1e-7):
                raise ValueError(
                    f"{name}: the codes loaded stand for other numbers than those of the dynamic map (qmap{i})"
                )
            state[f"qmap{i}"] = qmap(i == 1)
            state[f"absmax{i}"] = _by_blocks(state[f"absmax{i}"], p)

    def _slots(self, group: dict[str, Any]) -> tuple[str, ...]:
        return tuple(f"state{i}" for i in range(1, self._count + 1))

    def _layout(self, shape: tuple[int, ...], dtype: np.dtype[Any], group: dict[str, Any]) -> dict[str, Any]:
        size, found = math.prod(shape), {}
        for i in range(1, self._count + 1):
            if size < group["min_8bit_size"]:
                found[f"state{i}"] = shape, FLOAT32 if dtype.itemsize == 2 else dtype
            else:
                found[f"state{i}"], found[f"qmap{i}"] = (shape, np.dtype(np.uint8)), ((256,), FLOAT32)
                found[f"absmax{i}"] = (-(-size // BLOCK),), FLOAT32
        return found

    def _work(self, array: Array, group: dict[str, Any]) -> int:
        """Nothing but for 16 bits, of which blocks are copied."""
        return min(array.size, AT_ONCE) * 20 if array.itemsize == 2 else 0

    def _start(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        array = p._array
        if is_complex(array.dtype):
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters: use its 32-bit form")
        state["step"] = 0
        for name, (shape, dtype) in self._layout(array.shape, array.dtype, group).items():
            if name in self._shared:
                state[name] = qmap(name == "qmap1")
            else:
                state[name] = wrap(zeros_like(array, dtype) if name.startswith("state") else np.zeros(shape, dtype))

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any], options: tuple[str, ...]
    ) -> None:
        state["step"] += 1
        states = [state[name] for name in options]
        scales = [state[f"absmax{i}"] for i in range(1, self._count + 1) if f"absmax{i}" in state]
        step = self._step_blocks if scales else self._step_whole
        kept, scaled = tuple(t._array for t in states), tuple(t._array for t in scales)
        step(p._array, grad._array, kept, scaled, state["step"], group)
        for t in (p, *states, *scales):
            bump(t, STEP)

    def _step_blocks(
        self, p: Array, grad: Array, codes: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        """A step of a parameter whose state is codes."""
        raise NotImplementedError

    def _step_whole(
        self, p: Array, grad: Array, states: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        """A step of a small parameter."""
        raise NotImplementedError


def _by_blocks(scales: Tensor, p: Tensor) -> Tensor:
    """Scales of blocks of a multiple of 256, as older files have them, as those of blocks of 256."""
    blocks, found = -(-p._array.size // BLOCK), scales._array.reshape(-1)
    if found.size == blocks or not found.size:
        return scales
    times = 1
    while -(-blocks // times) > found.size:
        times *= 2
    if -(-blocks // times) != found.size:
        raise ValueError(f"absmax of {found.size} blocks does not fit a parameter of {p._array.size} elements: expected "
                         f"{blocks} of {BLOCK}, or fewer of a multiple of that")  # fmt: skip
    return wrap(np.repeat(found, times)[:blocks])


class Adam8bit(EightBit):
    """Adam with 8 bits for each of its two moments: 2.04 bytes of state an element, where Adam keeps 8.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        betas: how much of the running means of gradient and squared gradient is kept at each step.
        eps: added to the denominator.
        weight_decay: L2 penalty, as in `Adam`.
        amsgrad: must be False: the largest mean square is not kept.
        min_8bit_size: of smaller parameters the state is kept in float32.
        maximize: step along the gradient instead of against it.
        foreach, fused: accepted; every way of stepping is in place and gives the same numbers.

    State of a parameter: step, state1 (the mean), state2 (the mean square), their absmax1, absmax2 and qmap1, qmap2.
    A NaN or infinite gradient spoils its own element, as in Adam, and not its block.  Raises ValueError for options
    out of range and for `amsgrad`, RuntimeError for complex parameters.

    Example:
        >>> import rushlight as torch
        >>> layer = torch.nn.Linear(100, 100)
        >>> optimizer = torch.optim.Adam8bit(layer.parameters(), lr=0.01)
        >>> layer(torch.ones(1, 100)).sum().backward()
        >>> optimizer.step()
        >>> state = optimizer.state[layer.weight]
        >>> state["state1"].dtype, state["absmax1"].shape
        (torch.uint8, torch.Size([40]))
    """

    _count = 2
    _decoupled: ClassVar[bool] = False

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        min_8bit_size: int = SMALLEST,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        check(not amsgrad, AMSGRAD, amsgrad)
        del amsgrad  # groups do not have it
        super().__init__(params, checked(locals()))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; one of an `Adam` or `AdamW` may be given, whose weight decay then is as it was there."""
        check(not param_group.get("amsgrad"), AMSGRAD, True)
        super().add_param_group(param_group)

    def _step_blocks(
        self, p: Array, grad: Array, codes: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        kernels.adam_in_blocks(p, grad, (codes[0], codes[1]), (scales[0], scales[1]), step, *self._plain(group))

    def _step_whole(
        self, p: Array, grad: Array, states: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        kernels.adam(p, grad, states[0], states[1], None, step, *self._plain(group))

    def _plain(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """The options as numbers, in the order of the kernels."""
        names = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        decoupled = group.get("decoupled_weight_decay", self._decoupled)
        return (*(number(x) for x in names), decoupled, group["maximize"])


class AdamW8bit(Adam8bit):
    """AdamW with 8 bits for each of its two moments.

    Arguments and state are those of `Adam8bit`; weight_decay is decoupled, as in `AdamW`, and 0.01 unless given.
    """

    _decoupled = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class Lion8bit(EightBit):
    """Lion with 8 bits for its mean: 1.02 bytes of state an element.

    Args:
        params, lr, betas, weight_decay, maximize, foreach, fused: as those of `Lion`.
        min_8bit_size: of smaller parameters the mean is kept in float32.

    State of a parameter: step, state1, absmax1 and qmap1.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        min_8bit_size: int = SMALLEST,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, checked(locals()))

    def _step_blocks(
        self, p: Array, grad: Array, codes: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        kernels.lion_in_blocks(p, grad, codes[0], scales[0], *_of_lion(group))

    def _step_whole(
        self, p: Array, grad: Array, states: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        kernels.lion(p, grad, states[0], *_of_lion(group))


def _of_lion(group: dict[str, Any]) -> tuple[Any, ...]:
    return (*(number(x) for x in (group["lr"], *group["betas"], group["weight_decay"])), group["maximize"])


class SGD8bit(EightBit):
    """Stochastic gradient descent with 8 bits for its momentum: 1.02 bytes of state an element.

    Args:
        params: tensors, named tensors, or groups of them.
        lr: learning rate, a number or a tensor of one element.
        momentum: how much of the former step is kept; must be above 0, for without it there is no state.
        dampening, weight_decay, nesterov, maximize, foreach, fused: as those of `SGD`.
        min_8bit_size: of smaller parameters the momentum is kept in float32.

    State of a parameter: step, state1, absmax1 and qmap1.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.9,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        min_8bit_size: int = SMALLEST,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:
        check(momentum > 0.0, NO_MOMENTUM, momentum)
        check(not (nesterov and dampening), "Nesterov momentum requires zero dampening, got {}", dampening)
        super().__init__(params, checked(locals()))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its momentum must be above 0."""
        momentum = param_group.get("momentum", self.defaults["momentum"])
        check(momentum > 0.0, NO_MOMENTUM, momentum)
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for group in state["param_groups"]:  # bitsandbytes keeps the two as its betas
            momentum, dampening = group.get("betas", (0.9, 0))
            group.setdefault("momentum", momentum)
            group.setdefault("dampening", dampening)
            group.setdefault("nesterov", False)
        super().__setstate__(state)

    def _step_blocks(
        self, p: Array, grad: Array, codes: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        self._descend(kernels.sgd_in_blocks, p, grad, (codes[0], scales[0]), step, group)

    def _step_whole(
        self, p: Array, grad: Array, states: Arrays, scales: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        self._descend(kernels.sgd, p, grad, states, step, group)

    def _descend(
        self, kernel: Callable[..., None], p: Array, grad: Array, state: Arrays, step: int, group: dict[str, Any]
    ) -> None:
        names = ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")
        kernel(p, grad, *state, *(number(group[name]) for name in names), step == 1)
