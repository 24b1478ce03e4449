"""Operations and parameters of networks counted by hooks"""

import same
import thop
import torch

nets = [torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
                            torch.nn.Linear(32, 4)), torch.nn.LSTM(4, 8, 2, batch_first=True), torch.nn.ConvTranspose2d(3, 4, 2)]  # fmt: skip
inputs = [same.data(1, 3, 16, 16), same.data(2, 5, 4), same.data(1, 3, 6, 6)]
found = []
for net, x in zip(nets, inputs, strict=True):
    found += thop.profile(net, inputs=(x,), verbose=False)
found += [len(thop.clever_format(found[:2], "%.3f")), len(nets[0](inputs[0]))]
same.report(found)
