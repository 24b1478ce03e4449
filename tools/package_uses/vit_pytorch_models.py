"""Vision transformers of three kinds."""

import same
import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cct import CCT

x, y = same.data(2, 3, 32, 32), same.labels(2, 5)
found = []
for net in (
    ViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64),
    SimpleViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64),
    CCT(
        img_size=32,
        embedding_dim=32,
        n_conv_layers=1,
        kernel_size=3,
        stride=2,
        padding=1,
        num_layers=2,
        num_heads=2,
        num_classes=5,
        positional_embedding="sine",
        dropout_rate=0.0,
        attention_dropout=0.0,
        stochastic_depth_rate=0.0,
    ),
):
    found += same.train(same.weights(net), lambda m: torch.nn.functional.cross_entropy(m(x), y), 3)
same.report(found)
