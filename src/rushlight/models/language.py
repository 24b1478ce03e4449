"""A small decoder-only language model (GPT), used by the benchmarks and the tests.

Radford et al.: "Language Models are Unsupervised Multitask Learners" (2019): normalisation before each
sub-layer, learned positions, GELU; the last layer shares the embedding's matrix.
"""

import math
from typing import Any

from rushlight import nn
from rushlight.dispatch.functions import arange
from rushlight.nn import functional as F
from rushlight.tensor import Tensor

__all__ = ["GPT", "GPTBlock"]


class GPTBlock(nn.Module):
    """Causal self-attention and MLP, each normalised before and added after: (N, L, C) -> (N, L, C)."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: Tensor) -> Tensor:
        """Causal attention of normalised tokens (N, L, C)."""
        batch, length, width = x.shape
        query, key, value = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = self.proj(out.transpose(1, 2).reshape(batch, length, width))
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Applies the block to tokens (N, L, C)."""
        x = x + self.dropout(self.attend(self.ln_1(x)))
        return x + self.dropout(self.mlp(self.ln_2(x)))


class GPT(nn.Module):
    """A decoder-only transformer: token numbers (N, L) -> logits (N, L, vocabulary).

    With ``targets`` (N, L) the call returns ``(logits, loss)``, the mean cross-entropy.
    """

    def __init__(
        self,
        vocabulary: int,
        length: int = 256,
        layers: int = 6,
        width: int = 384,
        heads: int = 6,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.length = length
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[GPTBlock(width, heads, dropout) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self._initialise(layers)
        self.head.weight = self.token.weight

    def _initialise(self, layers: int) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                # The residual stream adds 2 * layers outputs up; their scale keeps its variance.
                residual = name.endswith(("proj.weight", "mlp.2.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Any:
        """Logits (N, L, vocabulary) of ``tokens`` (N, L), L at most ``length``."""
        x = self.token(tokens) + self.position(arange(tokens.shape[1]))
        logits = self.head(self.ln(self.blocks(x)))
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
