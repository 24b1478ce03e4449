"""LoRA: layers that are trained by a small product beside their weight, which stays as it is.

Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021, arXiv:2106.09685): a layer with weight W computes
W x + (alpha / rank) B A x, and only A (rank, in) and B (out, rank), which begins as 0, are trained.  Of W nothing is saved for
backward, nor does it have a gradient or an optimizer's state; it may lie in bfloat16, int8 or 4-bit blocks (QLoRA, Dettmers et
al., 2023, arXiv:2305.14314), of which a product decodes some rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from rushlight.basics.dtypes import dtype
from rushlight.engine.modes import no_grad
from rushlight.nn import init
from rushlight.nn.modules.conv import Conv1d, Conv2d, Conv3d, _ConvNd
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear, NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.frozen import FrozenConv, FrozenLinear
from rushlight.tensor import Tensor

__all__ = ["LoRA", "apply", "load_lora_state_dict", "lora_layers", "lora_state_dict", "merge", "unload", "unmerge"]

CONVS = (Conv1d, Conv2d, Conv3d)


class LoRA(Module):
    """A Linear or convolution with an adapter beside it.

    Args:
        layer: the layer, which is frozen.
        rank: of the adapter.
        alpha: the adapter's result is multiplied by alpha / rank.
        dropout: the chance of each input of the adapter to be 0 while training.
        base_dtype: None to leave the weight as it is, or "bfloat16", "int8" or "nf4".

    Attributes: base (the layer, or a frozen form of it), lora_A, lora_B, scaling, merged.  Raises TypeError for other
    layers, ValueError for options out of range and grouped convolutions.
    """

    def __init__(
        self, layer: Module, rank: int = 8, alpha: float = 16.0, dropout: float = 0.0, base_dtype: str | None = None
    ) -> None:
        super().__init__()
        if not isinstance(rank, int) or rank < 1:
            raise ValueError(f"LoRA: rank must be an int of at least 1, got {rank!r}")
        self.rank, self.alpha, self.scaling, self.merged = rank, alpha, alpha / rank, False
        self.base_dtype = base_dtype
        layer.requires_grad_(False)
        dtype = next(layer.parameters()).dtype
        self.base: Any
        self.lora_A: Any
        self.lora_B: Any
        if isinstance(layer, Linear):
            self.base = layer if base_dtype is None else FrozenLinear(layer, base_dtype)
            self.lora_A = Linear(layer.in_features, rank, bias=False, dtype=dtype)
            self.lora_B = Linear(rank, layer.out_features, bias=False, dtype=dtype)
        elif isinstance(layer, CONVS):
            self.base = layer if base_dtype is None else FrozenConv(layer, base_dtype)
            self.lora_A, self.lora_B = _beside(layer, rank, dtype)
        else:
            raise TypeError(f"LoRA: expected a Linear, Conv1d, Conv2d or Conv3d, got {type(layer).__name__}")
        init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        init.zeros_(self.lora_B.weight)
        self.dropout = Dropout(dropout) if dropout else None

    def forward(self, input: Tensor) -> Tensor:
        """As the layer, with the adapter's result added."""
        out = self.base(input)
        if self.merged:
            return out
        if self.dropout is not None:
            input = self.dropout(input)
        return out.add_(self.lora_B(self.lora_A(input)), alpha=self.scaling)

    def extra_repr(self) -> str:
        """The adapter's numbers."""
        kept = f", base_dtype={self.base_dtype}" if self.base_dtype else ""
        return f"rank={self.rank}, alpha={self.alpha}{kept}{', merged' if self.merged else ''}"

    def delta(self) -> Tensor:
        """What the adapter adds to the weight, in its shape."""
        with no_grad():
            a, b = self.lora_A.weight, self.lora_B.weight
            return (b.flatten(1) @ a.flatten(1)).mul_(self.scaling).reshape(len(b), *a.shape[1:])

    def merge(self, sign: float = 1.0) -> None:
        """Add the adapter to the weight (-1: take it off again)."""
        if self.base_dtype is not None:
            raise RuntimeError(
                f"merge: the weight lies in {self.base_dtype}, in which the sum would be rounded again: unload(model) "
                "gives ordinary layers with the sum in full"
            )
        with no_grad():
            self.base.weight.add_(self.delta(), alpha=sign)
        self.merged = sign > 0

    def plain(self) -> Module:
        """An ordinary layer with the adapter in its weight, not trained."""
        delta = 0 if self.merged else self.delta()
        with no_grad():
            if self.base_dtype is None:
                self.base.weight.add_(delta)
                return self.base
            weight = self.base.weight.dense().add_(delta)
            layer = self.base.empty()
            layer.weight = Parameter(weight, requires_grad=False)
            layer.bias = None if self.base.bias is None else Parameter(self.base.bias, requires_grad=False)
        return layer


def _beside(layer: _ConvNd, rank: int, dtype: dtype) -> tuple[Module, Module]:
    """The adapter of a convolution: one with its kernel, and one of single places."""
    if layer.groups != 1:
        raise ValueError(f"LoRA: a layer of {layer.groups} groups: the product of two would connect what the groups "
                         "keep apart. Leave it out of the pattern.")  # fmt: skip
    kind = next(c for c in CONVS if isinstance(layer, c))
    first = kind(layer.in_channels, rank, layer.kernel_size, layer.stride, layer.padding, layer.dilation, bias=False,
                 padding_mode=layer.padding_mode, dtype=dtype)  # fmt: skip
    return first, kind(rank, layer.out_channels, 1, bias=False, dtype=dtype)


# Models ----------------------------------------------------------------------------------------------------------------


def apply(
    model: Module,
    patterns: str | Iterable[str] = "*",
    *,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    base_dtype: str | None = None,
    freeze: bool = True,
) -> list[str]:
    """Put an adapter beside every Linear and convolution whose name fits, in place.

    Args:
        model: a module that has such layers inside.
        patterns: one or several, with *, ? and [...]: of the whole name ("layers.*.attn.q") or its last part ("q_proj").
        rank, alpha, dropout, base_dtype: as those of `LoRA`.
        freeze: whether all else in the model is frozen: what else is to be trained (the last layer, norms) can be
            thawed afterwards by `requires_grad_()`.

    Returns the names.  Raises ValueError where nothing fits, or adapters are there already.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.nn.utils import lora
        >>> model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))
        >>> lora.apply(model, "0", rank=4, base_dtype="nf4")
        ['0']
        >>> sum(p.numel() for p in model.parameters() if p.requires_grad), model(torch.ones(2, 256)).shape
        (2048, torch.Size([2, 4]))
    """
    if any(True for _ in lora_layers(model)):
        raise ValueError(
            "lora.apply: the model has adapters already: unload(model) before, which puts them into the weights"
        )
    wanted = [patterns] if isinstance(patterns, str) else list(patterns)
    known = {name: m for name, m in model.named_modules(remove_duplicate=False) if name and adaptable(m)}
    names = [name for name in known if any(fnmatchcase(x, p) for p in wanted for x in (name, name.rpartition(".")[2]))]
    if not names:
        raise ValueError(
            f"lora.apply: no Linear or ConvNd of one group fits {wanted}: there are {', '.join(list(known)[:8]) or 'none'}"
            f"{', ...' if len(known) > 8 else ''}"
        )
    if freeze:
        model.requires_grad_(False)
    made: dict[int, LoRA] = {}
    for name in names:
        layer = known[name]
        if id(layer) not in made:
            made[id(layer)] = LoRA(layer, rank, alpha, dropout, base_dtype).train(layer.training)
        put(model, name, made[id(layer)])
    return names


def adaptable(module: Module) -> bool:
    """Whether a module can have an adapter: attention reads the weight of its last product itself; groups cannot."""
    right = isinstance(module, (Linear, *CONVS)) and not isinstance(module, NonDynamicallyQuantizableLinear)
    return right and getattr(module, "groups", 1) == 1


def put(model: Module, name: str, module: Module) -> None:
    """Let a module stand in a model under a name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def lora_layers(model: Module) -> Iterator[tuple[str, LoRA]]:
    """The layers with adapters, by name."""
    return ((name, m) for name, m in model.named_modules() if isinstance(m, LoRA))


def lora_state_dict(model: Module, prefix: str = "") -> dict[str, Tensor]:
    """The adapters alone: {"layer.lora_A.weight": tensor, "layer.lora_B.weight": tensor, ...}.

    With the prefix "base_model.model." names are those in the files of peft.
    """
    return {f"{prefix}{name}.{part}.weight": getattr(m, part).weight.detach()
            for name, m in lora_layers(model) for part in ("lora_A", "lora_B")}  # fmt: skip


def load_lora_state_dict(model: Module, state: dict[str, Tensor], prefix: str = "") -> None:
    """Copy adapters that `lora_state_dict` gave.  Raises RuntimeError where names or shapes are not the model's."""
    own = lora_state_dict(model, prefix)
    if own.keys() != state.keys():
        missing, more = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        raise RuntimeError(f"load_lora_state_dict: missing {missing[:4]}, unexpected {more[:4]}: apply adapters to the same "
                           "layers before")  # fmt: skip
    wrong = [name for name, t in own.items() if t.shape != state[name].shape]
    if wrong:
        raise RuntimeError(f"load_lora_state_dict: {wrong[0]} has shape {list(own[wrong[0]].shape)}, the state "
                           f"{list(state[wrong[0]].shape)}: apply adapters of the same rank before")  # fmt: skip
    with no_grad():
        for name, t in own.items():
            t.copy_(state[name])


def merge(model: Module) -> None:
    """Add all adapters to their weights, so that layers cost what they did before.  Undone by `unmerge`, to rounding."""
    for _, m in lora_layers(model):
        if not m.merged:
            m.merge()


def unmerge(model: Module) -> None:
    """Take all adapters off their weights again."""
    for _, m in lora_layers(model):
        if m.merged:
            m.merge(-1.0)


def unload(model: Module) -> None:
    """Replace layers with adapters by ordinary ones, with the adapters in their weights, in place."""
    made: dict[int, Module] = {}
    for name, m in [pair for pair in model.named_modules(remove_duplicate=False) if isinstance(pair[1], LoRA)]:
        made[id(m)] = made.get(id(m)) or m.plain()
        put(model, name, made[id(m)])
