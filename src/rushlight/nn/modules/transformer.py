"""Transformer encoders and decoders."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.basics.dtypes import dtype
from rushlight.basics.state import modes
from rushlight.dispatch import functions as ops
from rushlight.nn import functional as F
from rushlight.nn.init import xavier_uniform_
from rushlight.nn.modules.activation import GELU, ReLU
from rushlight.nn.modules.attention import MultiheadAttention
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm
from rushlight.tensor import Tensor

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

FAST = {"on": True}  # what `torch.backends.mha.set_fastpath_enabled` was given last
Activation = str | Callable[[Tensor], Tensor]


def _generate_square_subsequent_mask(size: int, device: device | None = None, dtype: dtype | None = None) -> Tensor:
    """(size, size): minus infinity above the diagonal, 0 elsewhere."""
    return ops.triu(ops.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_activation_fn(activation: str) -> Callable[..., Any]:
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether `mask` is causal, unless `is_causal` says so already."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    length = mask.shape[-2] if size is None else size
    causal = _generate_square_subsequent_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _additive(mask: Tensor | None, name: str, dtype: dtype) -> Tensor | None:
    """A mask as numbers to add: minus infinity where a bool mask is True.  Raises AssertionError for other dtypes."""
    if mask is None or mask.is_floating_point():
        return mask
    if str(mask.dtype) != "torch.bool":
        raise AssertionError(f"only bool and floating types of {name} are supported, got {mask.dtype}")
    return ops.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        d_model: features of inputs and outputs.
        nhead: heads of attention.
        num_encoder_layers, num_decoder_layers: numbers of layers.
        dim_feedforward: features between the two linear maps of a layer.
        dropout: probability of dropping.
        activation: "relu", "gelu" or a function.
        custom_encoder, custom_decoder: modules to use instead.
        batch_first: (N, L, E) instead of (L, N, E).
        norm_first: normalise before each part of a layer instead of after it.
        bias: biases in linear maps and norms.

    Source: Vaswani et al., Attention Is All You Need (2017).
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **options), num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **options), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """src: (S, N, E), tgt: (T, N, E) or without N -> (T, N, E).  Masks as in MultiheadAttention.

        Raises RuntimeError for sizes that do not fit.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                f"the batch number of src and tgt must be equal, got {src.shape[batch]} and {tgt.shape[batch]}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model {self.d_model}, got {src.shape[-1]} and "
                f"{tgt.shape[-1]}"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    generate_square_subsequent_mask = staticmethod(_generate_square_subsequent_mask)


class TransformerEncoder(Module):
    """`num_layers` copies of an encoder layer, then `norm`.

    In evaluation without gradients, what `src_key_padding_mask` marks at the end of sequences comes out of the layers as 0, as in
    PyTorch, which leaves it out there: not with `mask`, `enable_nested_tensor=False` or other layers than `use_nested_tensor` says.
    `mask_check` is accepted for compatibility: the mask is looked at always.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        why = _why_not_nested(encoder_layer) if enable_nested_tensor else ""
        self.use_nested_tensor = enable_nested_tensor and not why
        if why:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}")

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """src: (S, N, E) -> (S, N, E).  Masks as in MultiheadAttention; `is_causal=None` finds it out."""
        padding = _additive(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        additive = _additive(mask, "mask", src.dtype)
        causal = _detect_is_causal_mask(additive, is_causal, _length(src, self.layers))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=additive, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._leaves_out(src):
            output = _without(output, padding != 0)
        return output if self.norm is None else self.norm(output)

    def _leaves_out(self, src: Tensor) -> bool:
        """Whether PyTorch computes nothing for padding."""
        first = next(iter(self.layers), self)
        recorded = modes.grad and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
        return FAST["on"] and self.use_nested_tensor and not first.training and src.ndim == 3 and not recorded


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, then `norm`."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt: (T, N, E), memory: (S, N, E) -> (T, N, E).  Masks as in MultiheadAttention."""
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _length(tgt, self.layers))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


def _without(output: Tensor, padded: Tensor) -> Tensor:
    """`output` with zeros where there is padding, if that is at the end of sequences.  (N, S, E), (N, S)"""
    if padded.is_meta or getattr(padded._array, "interpreted", False) or bool((padded[:, :-1] & ~padded[:, 1:]).any()):
        return output
    return output.masked_fill(padded[..., None], 0.0)


def _why_not_nested(layer: Module) -> str:
    """What of an encoder's layer keeps PyTorch from nested tensors; empty where nothing does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        "encoder_layer.norm_first was True": layer.norm_first,
        "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)": not attention.batch_first,
        "encoder_layer.self_attn was passed bias=False": attention.in_proj_bias is None,
        "encoder_layer.activation_relu_or_gelu was not True": not (layer.activation in (F.relu,
        F.gelu) or isinstance(layer.activation, (ReLU, GELU))),
        "encoder_layer.norm1.eps is not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "encoder_layer.self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }  # fmt: skip
    return next((reason for reason, holds in reasons.items() if holds), "")


def _length(x: Tensor, layers: ModuleList) -> int | None:
    """The length of the sequences, if the layers say where it is."""
    if x.is_nested:
        return None
    first = layers[0] if len(layers) else None
    if x.ndim == 2:
        return int(x.shape[0])
    attention = getattr(first, "self_attn", None)
    return int(x.shape[1 if getattr(attention, "batch_first", False) else 0])


class _TransformerLayer(Module):
    """What encoder and decoder layers share: self-attention, two linear maps, and a norm and a dropout for each block."""

    _attentions: tuple[str, ...]
    activation: Any

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **options
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            self.add_module(f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options))
        for i in blocks:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Any, is_causal: bool = False) -> Tensor:
        return self.dropout1(self._attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _feed_forward(self, x: Tensor, last: Dropout) -> Tensor:
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _attend(
        self,
        attention: MultiheadAttention,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        padding: object,
        causal: bool,
    ) -> Tensor:
        attended, _ = attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=causal, need_weights=False
        )
        return attended


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and two linear maps, each with dropout, a residual connection and a LayerNorm.

    Args: as Transformer.
    """

    _attentions = ("self_attn",)

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 where the activation is ReLU, 2 where it is GELU, else 0."""
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            return 1
        return 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """src: (S, N, E) -> (S, N, E).  Masks as in MultiheadAttention."""
        padding = _additive(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        mask = _additive(src_mask, "src_mask", src.dtype)
        x: Any = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self._feed_forward(x, self.dropout2)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to the encoder's output and two linear maps, each with dropout, residual and norm.

    Args: as Transformer.
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt: (T, N, E), memory: (S, N, E) -> (T, N, E).  Masks as in MultiheadAttention."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x: Any = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Tensor:
        return self.dropout2(self._attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self._feed_forward(x, self.dropout3)
