"""Graphs: messages along edges."""

from typing import Any

from workloads.registry import Step, equal, integers, normal, training, workload

NODES, EDGES = 5000, 40000


def learning(torch: Any, model: Any, forward: Any) -> Step:
    y = integers(torch, 7, NODES, seed=3)
    return training(torch, equal(model), lambda: torch.nn.functional.cross_entropy(forward(model), y),
                    torch.optim.Adam(model.parameters(), lr=1e-3))  # fmt: skip


@workload()
def gcn_scatter(torch: Any) -> Step:
    """Graph convolution by index_add, 5,000 nodes, 40,000 edges, width 64, Adam"""
    x, (source, target) = normal(torch, NODES, 64), integers(torch, NODES, 2, EDGES)
    nn = torch.nn

    def forward(model: Any) -> Any:
        h = x
        for layer in model:
            h = layer(torch.zeros_like(h).index_add(0, target, h[source])).relu()
        return h

    return learning(torch, nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 7)]), forward)


@workload()
def gcn_sparse(torch: Any) -> Step:
    """Graph convolution by a sparse matrix, 5,000 nodes, 40,000 edges, width 64, Adam"""
    x = normal(torch, NODES, 64)
    adjacency = torch.sparse_coo_tensor(integers(torch, NODES, 2, EDGES), torch.ones(EDGES), (NODES, NODES)).coalesce()
    nn = torch.nn

    def forward(model: Any) -> Any:
        h = x
        for layer in model:
            h = layer(torch.sparse.mm(adjacency, h)).relu()
        return h

    return learning(torch, nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 7)]), forward)


@workload()
def gat(torch: Any) -> Step:
    """Graph attention by scatter, 5,000 nodes, 40,000 edges, 4 heads of 16, Adam"""
    nn = torch.nn
    x, (source, target) = normal(torch, NODES, 64), integers(torch, NODES, 2, EDGES)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.score, self.head = nn.Linear(64, 64), nn.Linear(32, 1), nn.Linear(64, 7)

        def forward(self) -> Any:
            h = self.embed(x).unflatten(1, (4, 16))
            ends = torch.cat([h[source], h[target]], -1)
            score = nn.functional.leaky_relu(self.score(ends)[..., 0], 0.2)
            most = torch.full((NODES, 4), -1e9).scatter_reduce(0, target[:, None].expand(-1, 4), score, "amax")
            weight = (score - most[target]).exp()
            whole = torch.zeros(NODES, 4).index_add(0, target, weight)
            sent = h[source] * (weight / whole[target])[..., None]
            return self.head(torch.zeros_like(h).index_add(0, target, sent).flatten(1))

    return learning(torch, Attention(), lambda model: model())


@workload()
def points(torch: Any) -> Step:
    """PointNet-like: shared layers and a maximum over 1,024 points, batch 16, Adam"""
    nn = torch.nn
    model = equal(
        nn.ModuleList([nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 256), nn.ReLU()), nn.Linear(256, 10)])
    )
    x, y = normal(torch, 16, 1024, 3), integers(torch, 10, 16)
    return training(torch, model, lambda: nn.functional.cross_entropy(model[1](model[0](x).max(1).values), y),
                    torch.optim.Adam(model.parameters(), lr=1e-3))  # fmt: skip
