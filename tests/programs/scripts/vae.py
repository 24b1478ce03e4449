"""A variational autoencoder of small binary pictures, with samples drawn from it at the end."""

import argparse
import os

import torch
import torch.utils.data
from torch import nn, optim
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    SummaryWriter = None

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--latent", type=int, default=4)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--log-interval", type=int, default=4)
parser.add_argument("--logdir", default="")
parser.add_argument("--save", default="")
parser.add_argument("--resume", default="")
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")

centers = torch.rand(256, 2) * 6 + 1
grid = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij"), -1)
pictures = ((grid[None] - centers[:, None, None]).norm(dim=-1) < 2).float()
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(pictures[:224]), batch_size=args.batch_size, shuffle=True, num_workers=0
)


class VAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc21 = nn.Linear(48, latent)
        self.fc22 = nn.Linear(48, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(True), nn.Linear(48, 64))

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.decoder(z))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE(args.latent).to(device)
optimizer = optim.Adam(model.parameters(), lr=5e-3)
start = 1
if args.resume:
    kept = torch.load(args.resume, map_location=device)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    start = kept["epoch"] + 1


def loss_function(recon_x, x, mu, logvar):
    """Reconstruction and the divergence from the prior, which torch.distributions confirms."""
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    again = kl_divergence(Normal(mu, (0.5 * logvar).exp()), Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum()
    assert torch.allclose(kld, again, rtol=1e-4, atol=1e-3)
    return bce + kld


for epoch in range(start, args.epochs + 1):
    model.train()
    train_loss = 0.0
    for i, (data,) in enumerate(loader):
        data = data.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(*(lambda r, m, v: (r, data, m, v))(*model(data)))
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if i % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{i * len(data)}/{len(loader.dataset)}]\tloss {loss.item() / len(data):.6f}")
    print(f"====> epoch {epoch} average loss {train_loss / len(loader.dataset):.6f}")
    if args.save:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, args.save)
        assert os.path.getsize(args.save) > 1000

model.eval()
with torch.no_grad():
    recon, mu, logvar = model(pictures[224:].to(device))
    print(f"test loss {loss_function(recon, pictures[224:].to(device), mu, logvar).item() / 32:.6f}")
    sample = model.decode(torch.randn(16, args.latent, device=device)).cpu().view(16, 1, 8, 8)
    print("samples", tuple(sample.shape), "filled", f"{sample.mean().item():.3f}")
if args.logdir:
    with SummaryWriter(args.logdir) as writer:
        writer.add_images("samples", sample, args.epochs)
