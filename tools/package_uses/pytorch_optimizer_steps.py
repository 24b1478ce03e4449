"""Steps of more than a hundred optimizers of a collection, those with closures and groups of matrices too, losses and schedules"""

import warnings

import pytorch_optimizer
import same
import torch
from pytorch_optimizer import lr_scheduler

warnings.simplefilter("ignore")
x, y = same.data(32, 12).double(), same.data(32, 3, seed=1).double()
numbers = []
# Magma and BSAM draw random numbers, DeMo and DistributedMuon ask for a process group, ALI-G for a loss that it does not
# compute; Alice, SOAP and SPlus turn by eigenvectors of matrices that are not of full rank, so that several are right; FAdam
# takes float32 alone.
LEFT = {"alig", "distributedmuon", "magma", "bsam", "demo", "alice", "soap", "splus", "fadam"}
GROUPS = {"adago", "adamuon", "muon", "muonclip", "normuon", "spectralsphere"}  # matrices by themselves
WHOLE = {"adalomo", "lomo", "adammini"}  # these are given a model
MORE = {"ranger21": {"num_iterations": 4}}


def network() -> torch.nn.Module:
    return same.weights(torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))).double()


def steps(name: str) -> None:
    net = network()
    make = pytorch_optimizer.load_optimizer(name)
    given = list(net.parameters())
    if name in GROUPS:
        given = [{"params": [p for p in given if p.dim() == 2], "use_muon": True}]
        given += (
            []
            if name == "spectralsphere"
            else [{"params": [p for p in net.parameters() if p.dim() < 2], "use_muon": False}]
        )
    optimizer = make(net if name in WHOLE else given, **MORE.get(name, {}))

    def loss_of() -> torch.Tensor:
        return (net(x) - y).square().mean()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        return loss

    for _ in range(4):
        if hasattr(optimizer, "fused_backward"):
            loss = loss_of()
            optimizer.fused_backward(loss, lr=0.01)
        elif name == "lbfgs":
            loss = optimizer.step(closure)
        else:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward(create_graph="hessian" in name or name == "sophiah")
            optimizer.step()
    numbers.extend([loss.item(), loss_of().item(), net[0].weight.abs().sum().item()])


for name in sorted(pytorch_optimizer.get_supported_optimizers()):
    if name not in LEFT:
        steps(name)
net = network()
optimizer = pytorch_optimizer.SAM(net.parameters(), torch.optim.SGD, lr=0.05)
for _ in range(3):
    (net(x) - y).square().mean().backward()
    optimizer.first_step(zero_grad=True)
    loss = (net(x) - y).square().mean()
    loss.backward()
    optimizer.second_step(zero_grad=True)
    numbers.append(loss.item())
for wrapper in (
    pytorch_optimizer.Lookahead,
    pytorch_optimizer.TRAC,
    pytorch_optimizer.OrthoGrad,
    pytorch_optimizer.ScheduleFreeWrapper,
):
    net = network()
    optimizer = wrapper(torch.optim.SGD(net.parameters(), lr=0.05))
    if hasattr(optimizer, "train"):
        optimizer.train()
    for _ in range(6):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
chances = (torch.sigmoid(same.data(16, 3).double())).requires_grad_()
scores, truth = same.data(16, 3).double().requires_grad_(), (same.data(16, 3, seed=5) > 0).double()
for name, loss in (
    ("scores", pytorch_optimizer.FocalLoss()), ("scores", pytorch_optimizer.BCEFocalLoss()), ("chances", pytorch_optimizer.BCELoss(0.1)),
    ("scores", pytorch_optimizer.SoftF1Loss()), ("chances", pytorch_optimizer.FocalTverskyLoss()),
):  # fmt: skip
    leaf = scores if name == "scores" else chances
    value = loss(leaf, truth)
    numbers += [value.item(), torch.autograd.grad(value, leaf)[0].abs().sum().item()]
free = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([free], lr=0.1)
for schedule in (
    lr_scheduler.CosineAnnealingWarmupRestarts(optimizer, 6, max_lr=0.1, min_lr=0.01, warmup_steps=2),
    lr_scheduler.CosineScheduler(optimizer, t_max=8, max_lr=0.1, min_lr=0.0, init_lr=0.02, warmup_steps=2),
    lr_scheduler.PolyScheduler(optimizer, t_max=8, max_lr=0.1, min_lr=0.0, init_lr=0.02, warmup_steps=2),
):
    for _ in range(8):
        schedule.step()
        numbers.append(optimizer.param_groups[0]["lr"])
same.report(numbers)
