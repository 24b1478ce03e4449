"""Attention in windows, by landmarks and onto latents: local-attention, Nystrom's and Perceiver's models, trained"""

import same
import torch
from local_attention import LocalAttention, LocalTransformer
from nystrom_attention import Nystromformer
from perceiver_pytorch import Perceiver, PerceiverIO

tokens = torch.tensor([[i * 7 % 20 for i in range(j, j + 32)] for j in range(2)])
numbers = []
q, k, v = (same.data(1, 2, 32, 8, seed=s).requires_grad_() for s in range(3))
for more in (
    {"causal": True, "look_backward": 1},
    {"look_forward": 1, "autopad": True},
    {"causal": True, "exact_windowsize": True},
):
    found = LocalAttention(dim=8, window_size=8, use_rotary_pos_emb=True, **more)(
        q, k, v, mask=torch.arange(32)[None] < 30
    )
    numbers += [
        found.sum().item(),
        *(g.abs().sum().item() for g in torch.autograd.grad(found.square().sum(), (q, k, v))),
    ]
model = same.weights(
    LocalTransformer(
        num_tokens=20,
        dim=16,
        depth=2,
        max_seq_len=32,
        local_attn_window_size=8,
        heads=2,
        dim_head=8,
        use_dynamic_pos_bias=True,
    )
)
numbers += same.train(model, lambda m: m(tokens, return_loss=True), 3)
model = same.weights(Nystromformer(dim=16, dim_head=8, heads=2, depth=2, num_landmarks=8, pinv_iterations=4))
numbers += same.train(
    model, lambda m: m(same.data(2, 20, 16), mask=torch.arange(20)[None].expand(2, -1) < 18).square().mean(), 3
)
numbers += [p.grad.abs().sum().item() for p in model.parameters()]
model = same.weights(Perceiver(
    input_channels=3, input_axis=2, num_freq_bands=3, max_freq=8.0, depth=2, num_latents=6, latent_dim=12, cross_heads=1, latent_heads=2,
    cross_dim_head=6, latent_dim_head=6, num_classes=4, weight_tie_layers=True))  # fmt: skip
numbers += same.train(
    model, lambda m: torch.nn.functional.cross_entropy(m(same.data(2, 6, 6, 3)), torch.tensor([1, 3])), 3
)
model = same.weights(
    PerceiverIO(
        dim=8,
        queries_dim=8,
        logits_dim=5,
        depth=2,
        num_latents=6,
        latent_dim=12,
        cross_dim_head=6,
        latent_dim_head=6,
        latent_heads=2,
    )
)
numbers += same.train(model, lambda m: m(same.data(2, 9, 8), queries=same.data(2, 4, 8, seed=1)).square().mean(), 3)
numbers += [p.grad.abs().sum().item() for p in model.parameters()]
same.report(numbers)
