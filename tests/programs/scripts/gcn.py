"""Graph convolution on a sparse, normalized adjacency matrix: a few labelled nodes tell the communities of the others."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parameter import Parameter
from torch.optim import Adam


class GraphConv(nn.Module):
    def __init__(self, input_dim, output_dim, use_bias=True):
        super().__init__()
        self.kernel = Parameter(torch.Tensor(input_dim, output_dim))
        nn.init.xavier_normal_(self.kernel)
        if use_bias:
            self.bias = Parameter(torch.Tensor(output_dim))
            nn.init.zeros_(self.bias)
        else:
            self.register_parameter("bias", None)

    def forward(self, input_tensor, adj_mat):
        support = torch.mm(input_tensor, self.kernel)
        output = torch.spmm(adj_mat, support)
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.kernel.shape[0]} -> {self.kernel.shape[1]})"


class GCN(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, dropout_p=0.1):
        super().__init__()
        self.gc1 = GraphConv(input_dim, hidden_dim)
        self.gc2 = GraphConv(hidden_dim, output_dim)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x, adj):
        x = self.dropout(F.relu(self.gc1(x, adj)))
        return F.log_softmax(self.gc2(x, adj), dim=1)


def make_graph(nodes, classes, device):
    """Features, labels and D^-1/2 (A + I) D^-1/2 in the layout COO."""
    labels = torch.arange(nodes) % classes
    inside = labels[:, None] == labels[None]
    edges = (torch.rand(nodes, nodes) < torch.where(inside, 0.3, 0.02)).triu(1)
    idx = edges.nonzero().t()
    idx = torch.cat([idx, idx.flip(0), torch.arange(nodes).repeat(2, 1)], dim=1)
    adj = torch.sparse_coo_tensor(idx, torch.ones(idx.shape[1]), (nodes, nodes)).coalesce()
    degree = torch.sparse.sum(adj, dim=1).to_dense()
    scale = degree.pow(-0.5)
    i, j = adj.indices()
    adj = torch.sparse_coo_tensor(adj.indices(), adj.values() * scale[i] * scale[j], adj.size()).coalesce().to(device)
    features = 0.3 * torch.randn(nodes, 8, device=device) + F.one_hot(labels, 8).float() * 0.3
    return features, labels, adj


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--l2", type=float, default=5e-4)
    parser.add_argument("--hidden-dim", type=int, default=16)
    parser.add_argument("--csr", action="store_true")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--save", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    features, labels, adj = make_graph(90, 3, device)
    if args.csr:
        adj = adj.to_sparse_csr()
    train = torch.randperm(90)[:30]
    rest = torch.ones(90, dtype=torch.bool).index_fill_(0, train, False)
    gcn = GCN(features.shape[1], args.hidden_dim, 3).to(device)
    optimizer = Adam(gcn.parameters(), lr=args.lr, weight_decay=args.l2)
    criterion = nn.NLLLoss()
    print(gcn)
    for epoch in range(args.epochs):
        gcn.train()
        optimizer.zero_grad()
        output = gcn(features, adj)
        loss = criterion(output[train], labels[train])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch:04d} loss {loss.item():.6f}")
    gcn.eval()
    with torch.no_grad():
        output = gcn(features, adj)
        accuracy = (output.argmax(1)[rest] == labels[rest]).float().mean()
        print(f"test loss {criterion(output[rest], labels[rest]).item():.6f} accuracy {accuracy:.4f}")
    if args.save:
        torch.save({"model": gcn.state_dict(), "adjacency": adj}, args.save)
        kept = torch.load(args.save, weights_only=True)
        assert torch.equal(kept["adjacency"].to_dense(), adj.to_dense())


if __name__ == "__main__":
    main()
