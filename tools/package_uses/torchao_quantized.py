"""Weights of int8, of four bits and of float8, activations quantized as they come, optimizers with small state, training in float8"""

import copy

import same
import torch
from torchao import optim, quantization
from torchao.float8 import Float8LinearConfig, convert_to_float8_training

torch.compiler.set_stance("force_eager")  # the optimizers compile their steps
x = same.data(4, 64)
net = same.weights(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 64)))
numbers = []
for config in (
    quantization.Int8WeightOnlyConfig(),
    quantization.Int8DynamicActivationInt8WeightConfig(),
    quantization.IntxWeightOnlyConfig(weight_dtype=torch.int4),
    quantization.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4),
    quantization.Float8WeightOnlyConfig(),
):
    quantized = copy.deepcopy(net)
    quantization.quantize_(quantized, config)
    again = copy.deepcopy(net)
    again.load_state_dict(quantized.state_dict(), assign=True)
    numbers += [quantized(x).square().mean().item(), (again(x) - quantized(x)).abs().max().item()]

for kind in (optim.AdamW8bit, optim.AdamW4bit, optim.AdamWFp8, optim.Adam8bit):
    wide = same.weights(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)))
    optimizer = kind(wide.parameters(), lr=1e-3)
    for _ in range(4):
        loss = (wide(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())

eights = convert_to_float8_training(copy.deepcopy(net), config=Float8LinearConfig(emulate=True))
loss = eights(x).square().mean()
loss.backward()
numbers += [loss.item(), *(p.grad.abs().sum().item() for p in eights.parameters())]
same.report(numbers)
