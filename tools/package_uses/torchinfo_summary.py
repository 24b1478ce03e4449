"""A summary of a network: parameters, multiplications and bytes by layer."""

import same
import torch
import torchinfo

net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5)
)
found = torchinfo.summary(net, input_size=(2, 3, 8, 8), verbose=0)
lines = str(found).splitlines()
lstm = torchinfo.summary(torch.nn.LSTM(4, 6, 2), input_size=(5, 2, 4), verbose=0)
same.report(
    [
        found.total_params,
        found.total_mult_adds,
        found.total_output_bytes,
        len(lines),
        lstm.total_params,
        lstm.total_mult_adds,
    ]
)
