"""The forward-forward algorithm: every layer learns by itself to tell good data from bad, without backward through the network."""

import argparse

import torch
import torch.nn as nn
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset


def overlay_y_on_x(x, y, classes=4):
    """The first numbers of the data are replaced by the label."""
    x_ = x.clone()
    x_[:, :classes] *= 0.0
    x_[range(x.shape[0]), y] = x.max()
    return x_


class Layer(nn.Linear):
    def __init__(self, in_features, out_features, args, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        self.relu = nn.ReLU()
        self.opt = Adam(self.parameters(), lr=args.lr)
        self.threshold = args.threshold
        self.log_interval = args.log_interval
        self.num_epochs = args.epochs

    def forward(self, x):
        x_direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.relu(torch.mm(x_direction, self.weight.T) + self.bias.unsqueeze(0))

    def train_layer(self, x_pos, x_neg, name):
        for i in range(self.num_epochs):
            g_pos = self.forward(x_pos).pow(2).mean(1)
            g_neg = self.forward(x_neg).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-g_pos + self.threshold, g_neg - self.threshold]))).mean()
            self.opt.zero_grad()
            loss.backward()  # of this layer alone
            self.opt.step()
            if i % self.log_interval == 0:
                print(f"{name} epoch {i} loss {loss.item():.6f}")
        return self.forward(x_pos).detach(), self.forward(x_neg).detach()


class Net(torch.nn.Module):
    def __init__(self, dims, args):
        super().__init__()
        self.layers = nn.ModuleList([Layer(dims[d], dims[d + 1], args) for d in range(len(dims) - 1)])

    def predict(self, x, classes=4):
        goodness_per_label = []
        for label in range(classes):
            h = overlay_y_on_x(x, torch.full((x.shape[0],), label))
            goodness = []
            for layer in self.layers:
                h = layer(h)
                goodness += [h.pow(2).mean(1)]
            goodness_per_label += [sum(goodness).unsqueeze(1)]
        return torch.cat(goodness_per_label, 1).argmax(1)

    def train_net(self, x_pos, x_neg):
        h_pos, h_neg = x_pos, x_neg
        for i, layer in enumerate(self.layers):
            h_pos, h_neg = layer.train_layer(h_pos, h_neg, f"layer {i}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--threshold", type=float, default=2)
    parser.add_argument("--log-interval", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save_model", default="")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_printoptions(precision=3, sci_mode=False)

    prototypes = torch.rand(4, 30)
    y = torch.arange(200) % 4
    x = torch.cat([torch.rand(200, 4), prototypes[y] + 0.1 * torch.randn(200, 30)], 1)
    x, y = next(iter(DataLoader(TensorDataset(x, y), batch_size=len(x), shuffle=True)))

    net = Net([34, 40, 40], args)
    x_pos = overlay_y_on_x(x, y)
    y_neg = (y + 1 + torch.arange(len(y)) % 3) % 4
    x_neg = overlay_y_on_x(x, y_neg)
    net.train_net(x_pos, x_neg)
    error = 1.0 - net.predict(x).eq(y).float().mean().item()
    print(f"train error loss {error:.6f}")
    if args.save_model:
        torch.save(net, args.save_model)
        again = torch.load(args.save_model, weights_only=False)
        assert torch.equal(again.predict(x), net.predict(x))
