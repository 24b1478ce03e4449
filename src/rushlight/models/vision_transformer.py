"""Vision transformers, with the parameter names of ``torchvision.models``.

Dosovitskiy et al.: "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale",
arXiv:2010.11929.  The SWAG weights are those of Singh et al., arXiv:2201.08371.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight import nn
from rushlight.dispatch.functions import cat, zeros
from rushlight.models.weights import Weights, WeightsEnum, build, register_model
from rushlight.tensor import Tensor

__all__ = [
    "ViT_B_16_Weights",
    "ViT_B_32_Weights",
    "ViT_H_14_Weights",
    "ViT_L_16_Weights",
    "ViT_L_32_Weights",
    "VisionTransformer",
    "vit_b_16",
    "vit_b_32",
    "vit_h_14",
    "vit_l_16",
    "vit_l_32",
]

NormLayer = Callable[[int], nn.Module]
layer_norm: NormLayer = partial(nn.LayerNorm, eps=1e-6)


class MLPBlock(nn.Sequential):
    """Two linear layers with a GELU between: (*, in_dim) -> (*, in_dim)."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__(
            nn.Linear(in_dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, in_dim),
            nn.Dropout(dropout),
        )
        for index in (0, 3):
            nn.init.xavier_uniform_(self[index].weight)
            nn.init.normal_(self[index].bias, std=1e-6)


class EncoderBlock(nn.Module):
    """Self-attention and MLP, each normalised before and added after: (N, L, C) -> (N, L, C)."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: NormLayer = layer_norm,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        """Applies the block to tokens (N, L, C)."""
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Adds the positions' embedding and applies the blocks: (N, L, C) -> (N, L, C)."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: NormLayer = layer_norm,
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(zeros(1, seq_length, hidden_dim))
        nn.init.normal_(self.pos_embedding, std=0.02)
        self.dropout = nn.Dropout(dropout)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for index in range(num_layers):
            layers[f"encoder_layer_{index}"] = EncoderBlock(
                num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
            )
        self.layers = nn.Sequential(layers)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        """Applies the encoder to tokens (N, L, C)."""
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A vision transformer: images (N, 3, image_size, image_size) -> logits (N, num_classes).

    ``representation_size`` puts a hidden layer with tanh before the last one.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: NormLayer = layer_norm,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                f"VisionTransformer: image_size must be a multiple of patch_size, got {image_size} and {patch_size}"
            )
        self.image_size = image_size
        self.patch_size = patch_size
        self.hidden_dim = hidden_dim
        self.mlp_dim = mlp_dim
        self.attention_dropout = attention_dropout
        self.dropout = dropout
        self.num_classes = num_classes
        self.representation_size = representation_size
        self.norm_layer = norm_layer
        self.conv_proj = nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(zeros(1, 1, hidden_dim))
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        self.heads = self._make_heads()
        self._initialise()

    def _make_heads(self) -> nn.Sequential:
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        width = self.hidden_dim
        if self.representation_size is not None:
            layers["pre_logits"] = nn.Linear(width, self.representation_size)
            layers["act"] = nn.Tanh()
            width = self.representation_size
        layers["head"] = nn.Linear(width, self.num_classes)
        return nn.Sequential(layers)

    def _initialise(self) -> None:
        conv = self.conv_proj
        fan_in = conv.in_channels * conv.kernel_size[0] * conv.kernel_size[1]
        nn.init.trunc_normal_(conv.weight, std=math.sqrt(1 / fan_in))
        nn.init.zeros_(conv.bias)
        if self.representation_size is not None:
            hidden = self.heads.pre_logits
            nn.init.trunc_normal_(hidden.weight, std=math.sqrt(1 / hidden.in_features))
            nn.init.zeros_(hidden.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def _process_input(self, x: Tensor) -> Tensor:
        """Images (N, 3, H, W) -> the tokens of their patches (N, L, C), rows first."""
        if tuple(x.shape[2:]) != (self.image_size, self.image_size):
            raise ValueError(
                f"VisionTransformer expects images of {self.image_size} x {self.image_size}, got {tuple(x.shape)}"
            )
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Logits (N, num_classes) of images ``x`` (N, 3, image_size, image_size)."""
        x = self._process_input(x)
        x = cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.heads(self.encoder(x)[:, 0])
        return x


class ViT_B_16_Weights(WeightsEnum):
    """Weight files of `vit_b_16`."""

    IMAGENET1K_V1 = Weights("vit_b_16-c867db91.pth", num_params=86567656, image_size=224)
    IMAGENET1K_SWAG_E2E_V1 = Weights("vit_b_16_swag-9ac1b537.pth", num_params=86859496, image_size=384)
    IMAGENET1K_SWAG_LINEAR_V1 = Weights("vit_b_16_lc_swag-4e70ced5.pth", num_params=86567656, image_size=224)
    DEFAULT = IMAGENET1K_V1


class ViT_B_32_Weights(WeightsEnum):
    """Weight files of `vit_b_32`."""

    IMAGENET1K_V1 = Weights("vit_b_32-d86f8d99.pth", num_params=88224232, image_size=224)
    DEFAULT = IMAGENET1K_V1


class ViT_L_16_Weights(WeightsEnum):
    """Weight files of `vit_l_16`."""

    IMAGENET1K_V1 = Weights("vit_l_16-852ce7e3.pth", num_params=304326632, image_size=224)
    IMAGENET1K_SWAG_E2E_V1 = Weights("vit_l_16_swag-4f3808c9.pth", num_params=305174504, image_size=512)
    IMAGENET1K_SWAG_LINEAR_V1 = Weights("vit_l_16_lc_swag-4d563306.pth", num_params=304326632, image_size=224)
    DEFAULT = IMAGENET1K_V1


class ViT_L_32_Weights(WeightsEnum):
    """Weight files of `vit_l_32`."""

    IMAGENET1K_V1 = Weights("vit_l_32-c7638314.pth", num_params=306535400, image_size=224)
    DEFAULT = IMAGENET1K_V1


class ViT_H_14_Weights(WeightsEnum):
    """Weight files of `vit_h_14`."""

    IMAGENET1K_SWAG_E2E_V1 = Weights("vit_h_14_swag-80465313.pth", num_params=633470440, image_size=518)
    IMAGENET1K_SWAG_LINEAR_V1 = Weights("vit_h_14_lc_swag-c1eb923e.pth", num_params=632045800, image_size=224)
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


def _vit(weights: WeightsEnum | None, options: dict[str, Any], **sizes: Any) -> VisionTransformer:
    def make(image_size: int = 224, **kwargs: Any) -> VisionTransformer:
        return VisionTransformer(image_size, **sizes, **kwargs)

    return build(make, weights, options)


@register_model(ViT_B_16_Weights)
def vit_b_16(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-B/16; ``kwargs`` go to `VisionTransformer`.  ``weights``: a `ViT_B_16_Weights` or its name."""
    return _vit(weights, kwargs, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072)


@register_model(ViT_B_32_Weights)
def vit_b_32(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-B/32; ``kwargs`` go to `VisionTransformer`.  ``weights``: a `ViT_B_32_Weights` or its name."""
    return _vit(weights, kwargs, patch_size=32, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072)


@register_model(ViT_L_16_Weights)
def vit_l_16(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-L/16; ``kwargs`` go to `VisionTransformer`.  ``weights``: a `ViT_L_16_Weights` or its name."""
    return _vit(weights, kwargs, patch_size=16, num_layers=24, num_heads=16, hidden_dim=1024, mlp_dim=4096)


@register_model(ViT_L_32_Weights)
def vit_l_32(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-L/32; ``kwargs`` go to `VisionTransformer`.  ``weights``: a `ViT_L_32_Weights` or its name."""
    return _vit(weights, kwargs, patch_size=32, num_layers=24, num_heads=16, hidden_dim=1024, mlp_dim=4096)


@register_model(ViT_H_14_Weights)
def vit_h_14(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> VisionTransformer:
    """ViT-H/14; ``kwargs`` go to `VisionTransformer`.  ``weights``: a `ViT_H_14_Weights` or its name."""
    return _vit(weights, kwargs, patch_size=14, num_layers=32, num_heads=16, hidden_dim=1280, mlp_dim=5120)
