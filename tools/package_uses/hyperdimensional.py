"""Vectors of many dimensions that are bound, bundled and looked up, and a classifier made of them"""

import same
import torch
import torchhd

numbers = []
for kind in ("MAP", "HRR", "FHRR", "VTB"):
    x = torchhd.ensure_vsa_tensor(
        same.data(6, 64) if kind != "FHRR" else torch.polar(torch.ones(6, 64), same.data(6, 64)), vsa=kind
    )
    bound = torchhd.bind(x[:3], x[3:])
    parts = (
        bound,
        torchhd.bundle(x[0], x[1]),
        torchhd.permute(x, shifts=3),
        torchhd.inverse(x),
        torchhd.multibundle(x),
    )
    parts += (torchhd.cosine_similarity(x, x), torchhd.dot_similarity(bound, x))
    numbers += [
        torch.view_as_real(v).abs().sum().item() if v.is_complex() else v.abs().sum().item()
        for v in (part.as_subclass(torch.Tensor) for part in parts)
    ]
    numbers.append(type(bound).__name__ == f"{kind}Tensor")
level = torchhd.embeddings.Level(8, 32, low=-2, high=2)
level.weight.data.copy_(torchhd.ensure_vsa_tensor(same.data(8, 32).sign(), vsa="MAP"))
x, y = same.data(40, 5), same.labels(40, 3)
keys = torchhd.ensure_vsa_tensor(same.data(5, 32, seed=2).sign(), vsa="MAP")
encoded = torchhd.hash_table(keys, level(x))
numbers += [encoded.as_subclass(torch.Tensor).abs().sum().item()]
centroid = torchhd.models.Centroid(32, 3)
centroid.add(torchhd.hard_quantize(encoded).as_subclass(torch.Tensor), y)
centroid.normalize()
numbers += [float(v) for v in centroid(encoded.as_subclass(torch.Tensor)).sum(0)]
graph = torchhd.structures.Graph(32)
graph.add_edge(keys[0], keys[1])
graph.add_edge(keys[1], keys[2])
numbers += [float(v) for v in torchhd.dot_similarity(graph.node_neighbors(keys[1]), keys)]
same.report(numbers)
