"""Super-resolution by sub-pixel convolution: small pictures are made twice as large, judged by peak signal to noise ratio."""

from __future__ import print_function

import argparse
from math import log10

import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
import torch.utils.data as data


class Pictures(data.Dataset):
    def __init__(self, count, size, upscale_factor, input_transform=None, target_transform=None):
        super().__init__()
        y, x = torch.meshgrid(torch.linspace(0, 3, size), torch.linspace(0, 3, size), indexing="ij")
        phase = 6 * torch.rand(count, 3, 1, 1)
        self.images = (
            0.5 + 0.25 * torch.sin(x * 2 + phase[:, :1]) + 0.25 * torch.cos(y * 3 * phase[:, 1:2] + phase[:, 2:])
        )
        self.factor = upscale_factor

    def __getitem__(self, index):
        target = self.images[index]
        small = nn.functional.interpolate(
            target[None], scale_factor=1 / self.factor, mode="bicubic", align_corners=False, antialias=True
        )
        return small[0], target

    def __len__(self):
        return len(self.images)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1), padding_mode="reflect")
        self.conv3 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        return self.pixel_shuffle(self.conv3(self.relu(self.conv2(self.relu(self.conv1(x))))))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--upscale_factor", type=int, default=2)
parser.add_argument("--batchSize", type=int, default=8)
parser.add_argument("--testBatchSize", type=int, default=4)
parser.add_argument("--nEpochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--accel", action="store_true")
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--seed", type=int, default=123)
parser.add_argument("--checkpoint", default="")
opt = parser.parse_args()


def main():
    if opt.accel and not torch.accelerator.is_available():
        raise Exception("No accelerator found, please run without --accel")
    torch.manual_seed(opt.seed)
    device = torch.accelerator.current_accelerator() if opt.accel else torch.device("cpu")
    train_set, test_set = Pictures(48, 16, opt.upscale_factor), Pictures(8, 16, opt.upscale_factor)
    training = data.DataLoader(dataset=train_set, num_workers=opt.threads, batch_size=opt.batchSize, shuffle=True)
    testing = data.DataLoader(dataset=test_set, num_workers=opt.threads, batch_size=opt.testBatchSize, shuffle=False)
    model = Net(upscale_factor=opt.upscale_factor).to(device)
    criterion = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=opt.lr)
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    for epoch in range(1, opt.nEpochs + 1):
        epoch_loss = 0
        for _, batch in enumerate(training, 1):
            input, target = batch[0].to(device), batch[1].to(device)
            optimizer.zero_grad()
            loss = criterion(model(input), target)
            epoch_loss += loss.item()
            loss.backward()
            optimizer.step()
        print("===> Epoch {} Complete: Avg. loss {:.6f}".format(epoch, epoch_loss / len(training)))
        avg_psnr = 0
        with torch.no_grad():
            for batch in testing:
                mse = criterion(model(batch[0].to(device)), batch[1].to(device))
                avg_psnr += 10 * log10(1 / mse.item())
        plateau.step(-avg_psnr)
        print("===> Avg. PSNR {:.4f} dB, as loss {:.6f}".format(avg_psnr / len(testing), mse.item()))
        if opt.checkpoint:
            torch.save(model, "{}_{}.pth".format(opt.checkpoint, epoch))


if __name__ == "__main__":
    main()
