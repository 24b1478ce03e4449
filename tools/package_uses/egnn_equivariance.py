"""Graph networks that turn and move with their points, over all pairs, nearest neighbours and given edges"""

import same
import torch
from egnn_pytorch import EGNN, EGNN_Network

features, places = same.data(2, 10, 8), same.data(2, 10, 3, seed=1)
numbers = []
for options in ({}, {"num_nearest_neighbors": 4, "norm_coors": True}, {"soft_edges": True, "fourier_features": 2}):
    layer = same.weights(EGNN(dim=8, m_dim=4, **options))
    numbers += same.train(layer, lambda m: sum(x.square().mean() for x in m(features, places)), steps=4, lr=0.01)
net = EGNN_Network(
    num_tokens=7, num_positions=10, dim=8, depth=2, num_nearest_neighbors=3, num_edge_tokens=3, edge_dim=2
)
tokens, edges = same.labels(20, 7).reshape(2, 10), same.labels(200, 3).reshape(2, 10, 10)
mask = torch.arange(10) < torch.tensor([[10], [8]])


def loss(m: torch.nn.Module) -> torch.Tensor:
    feats, coors = m(tokens, places, edges=edges, mask=mask)
    return (feats.square().mean(-1) * mask).mean() + (coors - places).square().mean()


same.report(numbers + same.train(same.weights(net), loss, steps=4, lr=0.01))
