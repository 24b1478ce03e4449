"""A reversible language model with hashed attention over the whole sequence, and its gradients"""

import same
import torch
from reformer_pytorch import ReformerLM

net = same.weights(
    ReformerLM(
        num_tokens=20,
        dim=16,
        depth=2,
        max_seq_len=32,
        heads=2,
        bucket_size=16,
        use_full_attn=True,
        causal=True,
        ff_chunks=2,
    )
)
x, y = same.labels(2 * 32, 20).reshape(2, 32), same.labels(2 * 32, 20, seed=1).reshape(2, 32)
found = same.train(net, lambda m: torch.nn.functional.cross_entropy(m(x).transpose(1, 2), y), 4)
same.report([*found, *(p.grad.abs().sum().item() for p in net.parameters() if p.grad is not None)])
