"""Rearrangement, reduction and a product, in layers."""

import same
import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange

net = same.weights(
    torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=8),
    )
)
x, y = same.data(4, 3, 16, 16), same.labels(4, 8)
found = same.train(net, lambda m: torch.nn.functional.cross_entropy(reduce(m(x), "b t d -> b d", "mean"), y))
z = rearrange(x, "b c h w -> (b h) w c")
found += [einsum(z, z, "a w c, a w d -> c d").abs().sum().item(), repeat(y, "b -> b k", k=3).sum().item()]
same.report(found)
