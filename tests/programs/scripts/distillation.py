"""A small network learns from a larger one: soft targets by a temperature, features by hooks, weights averaged at the end."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, Subset, TensorDataset


def network(width, depth):
    layers = [nn.Linear(10, width), nn.BatchNorm1d(width), nn.GELU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.LayerNorm(width), nn.Hardswish()]
    return nn.Sequential(*layers, nn.Linear(width, 5))


class Features:
    """Keeps what a module gave, by a forward hook."""

    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self)

    def __call__(self, module, args, output):
        self.value = output

    def close(self):
        self.handle.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--temperature", type=float, default=3.0)
    parser.add_argument("--alpha", type=float, default=0.7)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.randn(320, 10)
    y = (x[:, :5] + 0.5 * x[:, 5:]).argmax(1)
    data = TensorDataset(x, y)
    loader = DataLoader(Subset(data, range(256)), batch_size=32, shuffle=True)
    test_x, test_y = data[256:]

    teacher, student = network(48, 2), network(12, 1)
    optimizer = torch.optim.RAdam(teacher.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for inputs, labels in loader:
            loss = F.cross_entropy(teacher(inputs), labels, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"teacher epoch {epoch} loss {total / len(loader):.6f}")
    teacher.eval().requires_grad_(False)

    mine, theirs = Features(student[2]), Features(teacher[2])
    project = nn.Linear(12, 48, bias=False)
    params = [*student.parameters(), *project.parameters()]
    optimizer = torch.optim.NAdam(params, lr=1e-2)
    scaler = GradScaler("cpu", enabled=args.amp)
    average = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    T = args.temperature
    for epoch in range(args.epochs):
        total = 0.0
        for inputs, labels in loader:
            with autocast("cpu", dtype=torch.bfloat16, enabled=args.amp):
                logits = student(inputs)
                with torch.inference_mode():
                    soft = teacher(inputs)
                target = F.softmax(soft.clone() / T, dim=-1)
                hard = F.cross_entropy(logits, labels)
                distilled = F.kl_div(F.log_softmax(logits / T, dim=-1), target, reduction="batchmean") * T * T
                hint = F.mse_loss(project(mine.value), theirs.value.clone())
                loss = args.alpha * distilled + (1 - args.alpha) * hard + 0.1 * hint
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(params, 2.0)
            scaler.step(optimizer)
            scaler.update()
            average.update_parameters(student)
            total += loss.item()
        print(f"student epoch {epoch} loss {total / len(loader):.6f}")
    mine.close()
    update_bn(loader, average)
    student.eval()
    average.eval()
    with torch.no_grad():
        for name, model in (("student", student), ("average", average)):
            logits = model(test_x)
            print(
                f"{name} test loss {F.cross_entropy(logits, test_y).item():.6f} right {(logits.argmax(1) == test_y).float().mean():.3f}"
            )


if __name__ == "__main__":
    main()
