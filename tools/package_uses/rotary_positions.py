"""Queries and keys rotated by their positions, in one and two dimensions, with gradients"""

import same
import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

q, k = same.data(1, 2, 16, 32).requires_grad_(), same.data(1, 2, 16, 32, seed=1).requires_grad_()
rotary = RotaryEmbedding(dim=16)
a, b = rotary.rotate_queries_or_keys(q), rotary.rotate_queries_or_keys(k)
scores = torch.nn.functional.scaled_dot_product_attention(a, b, q).square().sum()
scores.backward()
xpos = RotaryEmbedding(dim=16, use_xpos=True)
c, d = xpos.rotate_queries_and_keys(q.detach(), k.detach())
axial = RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=16).get_axial_freqs(4, 4)
e = apply_rotary_emb(axial, same.data(1, 4, 4, 32, seed=2))
same.report([scores.item(), q.grad.abs().sum().item(), k.grad.abs().sum().item(), c.square().sum().item(),
             (c * d).sum().item(), e.square().sum().item(), e.sum().item()])  # fmt: skip
