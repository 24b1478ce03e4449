"""Language models with attention of low rank"""

import same
import torch
from linformer import LinformerLM
from performer_pytorch import PerformerLM

tokens = torch.tensor([[i * 7 % 20 for i in range(j, j + 32)] for j in range(2)])
numbers = []
for model in (
    LinformerLM(num_tokens=20, dim=16, seq_len=32, depth=2, heads=2, k=8, one_kv_head=True, share_kv=True),
    PerformerLM(
        num_tokens=20,
        max_seq_len=32,
        dim=16,
        depth=2,
        heads=2,
        causal=False,
        nb_features=8,
        feature_redraw_interval=None,
        generalized_attention=True,
    ),
    PerformerLM(
        num_tokens=20,
        max_seq_len=32,
        dim=16,
        depth=1,
        heads=2,
        causal=False,
        nb_features=8,
        rotary_position_emb=True,
        reversible=True,
    ),
):
    same.weights(model)
    for name, b in model.named_buffers():
        if "projection_matrix" in name:
            b.copy_(same.data(*b.shape))
    numbers += same.train(
        model, lambda m: torch.nn.functional.cross_entropy(m(tokens).transpose(1, 2), tokens), 3, 0.05
    )
    numbers += [p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None]
same.report(numbers)
