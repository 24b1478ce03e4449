"""Graph convolution, attention and sampling of neighbours' means, also with a sparse adjacency matrix."""

import same
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

edges = same.labels(80, 20).reshape(2, 40)
graph = Data(x=same.data(20, 8), edge_index=edges, y=same.labels(20, 3))
found = []


class Net(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.second = layer(8, 16), layer(16, 3)

    def forward(self, data):
        return self.second(self.first(data.x, data.edge_index).relu(), data.edge_index)


for layer in (GCNConv, SAGEConv, GATConv):
    net = same.weights(Net(layer))
    found += same.train(net, lambda m: torch.nn.functional.cross_entropy(m(graph), graph.y), steps=3)
batch = Batch.from_data_list([graph, graph])
found.append(global_mean_pool(batch.x, batch.batch).abs().sum().item())
ones = torch.ones(40)
matrix = torch.sparse_coo_tensor(edges.flip(0), ones, (20, 20)).coalesce().to_sparse_csr()
conv = same.weights(SAGEConv(8, 3))
found.append((conv(graph.x, matrix) - 0).abs().sum().item())
same.report(found)
