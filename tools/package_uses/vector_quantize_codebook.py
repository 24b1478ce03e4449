"""Codebooks: a vector quantizer trained with its commitment loss, finite scalar quantization and residual codes"""

import same
import torch
from vector_quantize_pytorch import FSQ, ResidualVQ, VectorQuantize

x = same.data(4, 10, 8)


def with_codes(layer, codes):
    """The layer with codes that do not depend on who draws."""
    for name, b in layer.named_buffers():
        if name.endswith(("embed", "embed_avg")):
            b.copy_(same.data(*b.shape, seed=codes + len(name)))
    return layer


model = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)))
vq = with_codes(VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0), 3)


def loss_of(m):
    out, _, commit = vq(m[0](x))
    return (m[1](out) - x).square().mean() + commit.sum()


found = same.train(model, loss_of, 4)
vq.eval()
out, indices, _ = vq(x)
residual = with_codes(ResidualVQ(dim=8, num_quantizers=3, codebook_size=16), 5).eval()
r, codes, _ = residual(x)
z = same.data(2, 6, 4, seed=9).requires_grad_()
q, ids = FSQ([5, 5, 5, 5])(z)
q.square().sum().backward()
same.report([*found, out.sum().item(), *indices.flatten()[:8].tolist(), r.square().sum().item(), codes.sum().item(), ids.sum().item(),
             z.grad.abs().sum().item()])  # fmt: skip
