"""Graph attention over the edges of a sparse adjacency matrix, several heads, softmax over the neighbours of each node."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class SpecialSpmm(torch.autograd.Function):
    """A sparse matrix times a dense one, with gradients of its values only where they are."""

    @staticmethod
    def forward(ctx, indices, values, shape, b):
        assert indices.requires_grad is False
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, b)
        ctx.N = shape[0]
        return torch.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_values = grad_b = None
        if ctx.needs_input_grad[1]:
            edges = a._indices()
            grad_values = (grad_output[edges[0]] * b[edges[1]]).sum(-1)
        if ctx.needs_input_grad[3]:
            grad_b = a.t().matmul(grad_output)
        return None, grad_values, None, grad_b


class Head(nn.Module):
    def __init__(self, in_features, out_features, alpha=0.2):
        super().__init__()
        self.W = nn.Parameter(torch.zeros(size=(in_features, out_features)))
        nn.init.xavier_normal_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.zeros(size=(1, 2 * out_features)))
        nn.init.xavier_normal_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, x, adj):
        n = x.size(0)
        edge = adj.indices()
        h = torch.mm(x, self.W)
        edge_h = torch.cat((h[edge[0, :], :], h[edge[1, :], :]), dim=1).t()
        edge_e = torch.exp(-self.leakyrelu(self.a.mm(edge_h).squeeze()))
        e_rowsum = SpecialSpmm.apply(edge, edge_e, torch.Size([n, n]), torch.ones(size=(n, 1), device=x.device))
        h_prime = SpecialSpmm.apply(edge, edge_e, torch.Size([n, n]), h)
        return h_prime.div(e_rowsum)


class SoftmaxHead(Head):
    """The same with torch.sparse.softmax."""

    def forward(self, x, adj):
        edge = adj.indices()
        h = torch.mm(x, self.W)
        half = h.shape[1]
        score = self.leakyrelu((h @ self.a[0, :half])[edge[0]] + (h @ self.a[0, half:])[edge[1]])
        attention = torch.sparse.softmax(torch.sparse_coo_tensor(edge, score, adj.shape), dim=1)
        return torch.sparse.mm(attention, h)


class GAT(nn.Module):
    def __init__(self, nfeat, nhid, nclass, nheads, kind):
        super().__init__()
        self.attentions = [kind(nfeat, nhid) for _ in range(nheads)]
        for i, attention in enumerate(self.attentions):
            self.add_module("attention_{}".format(i), attention)
        self.out_att = kind(nhid * nheads, nclass)

    def forward(self, x, adj):
        x = torch.cat([F.elu(att(x, adj)) for att in self.attentions], dim=1)
        return F.log_softmax(self.out_att(x, adj), dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--heads", type=int, default=3)
    parser.add_argument("--patience", type=int, default=100)
    parser.add_argument("--seed", type=int, default=72)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    labels = torch.arange(60) % 3
    dense = (torch.rand(60, 60) < torch.where(labels[:, None] == labels, 0.3, 0.03)).float()
    dense = torch.maximum(dense, dense.t())
    dense.fill_diagonal_(1)
    adj = dense.to_sparse().coalesce()
    features = torch.randn(60, 6) * 0.5 + F.one_hot(labels, 6)
    for kind in (Head, SoftmaxHead):
        model = GAT(6, 5, 3, args.heads, kind)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
        bad, best = 0, 1e9
        for epoch in range(args.epochs):
            model.train()
            optimizer.zero_grad()
            loss = F.nll_loss(model(features, adj)[:20], labels[:20])
            loss.backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                val = F.nll_loss(model(features, adj)[20:], labels[20:]).data.item()
            bad, best = (0, val) if val < best else (bad + 1, best)
            if epoch % 5 == 0:
                print(f"{kind.__name__} epoch {epoch} loss {loss.item():.6f} valid loss {val:.6f}")
            if bad == args.patience:
                break
        print(f"best loss {best:.6f}")


if __name__ == "__main__":
    main()
