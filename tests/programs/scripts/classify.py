"""Image classification: a convolutional network on pictures of shapes, with a schedule, checkpoints and resuming."""

import argparse
import os
import time

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
import torch.onnx
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, random_split


class Shapes(Dataset):
    """Noisy pictures of a bar, a column, a square or a diagonal."""

    def __init__(self, count, size=12, transform=None):
        self.images = 0.3 * torch.randn(count, 1, size, size)
        self.labels = torch.arange(count) % 4
        self.transform = transform
        for image, label in zip(self.images, self.labels, strict=True):
            if label == 0:
                image[:, size // 2] += 1
            elif label == 1:
                image[:, :, size // 2] += 1
            elif label == 2:
                image[:, 3:-3, 3:-3] += 1
            else:
                image[0].diagonal().add_(1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image, label = self.images[index], self.labels[index].item()
        return (image if self.transform is None else self.transform(image)), label


class Net(nn.Module):
    def __init__(self, classes=4, dropout=0.1):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(16, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 2)
        x = F.relu(self.bn2(self.conv2(x)), inplace=True)
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        return F.log_softmax(self.fc(self.dropout(x)), dim=1)


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total, self.count = self.total + value * n, self.count + n

    @property
    def avg(self):
        return self.total / max(self.count, 1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    losses, start = AverageMeter(), time.time()
    for i, (data, target) in enumerate(loader):
        data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), data.size(0))
        if args.dry_run and i > 0:
            break
    print(
        f"epoch {epoch} train loss {losses.avg:.6f} lr {optimizer.param_groups[0]['lr']:.4g} ({time.time() - start:.1f}s)"
    )


@torch.no_grad()
def test(model, device, loader):
    model.eval()
    total, correct = 0.0, 0
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        output = model(data)
        total += F.nll_loss(output, target, reduction="sum").item()
        correct += (
            output.argmax(dim=1, keepdim=True).eq(target.view_as(output.argmax(dim=1, keepdim=True))).sum().item()
        )
    total /= len(loader.dataset)
    print(f"test loss {total:.6f} accuracy {correct}/{len(loader.dataset)}")
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-accel", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--onnx", default="")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    cudnn.benchmark = True
    use_accel = not args.no_accel and torch.cuda.is_available()
    device = torch.device("cuda" if use_accel else "cpu")
    options = {"num_workers": args.workers, "pin_memory": True} if use_accel else {"num_workers": args.workers}

    train_set, test_set = random_split(Shapes(320), [256, 64])
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True, **options)
    test_loader = DataLoader(test_set, batch_size=64, **options)

    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    first, best = 1, 0.0
    if args.resume:
        if not os.path.isfile(args.resume):
            raise SystemExit(f"=> no checkpoint found at '{args.resume}'")
        checkpoint = torch.load(args.resume, map_location=device, weights_only=True)
        first, best = checkpoint["epoch"] + 1, checkpoint["best"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    if args.evaluate:
        test(model, device, test_loader)
        return

    for epoch in range(first, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        best = max(best, test(model, device, test_loader))
        scheduler.step()
        if args.save:
            state = {
                "epoch": epoch,
                "best": best,
                "state_dict": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }
            torch.save(state, args.save)
    if args.onnx:
        torch.onnx.export(model, torch.randn(1, 1, 12, 12), args.onnx)


if __name__ == "__main__":
    main()
