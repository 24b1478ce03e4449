"""Mamba by a parallel scan and one after another, steps of one token from kept states, and a language model"""

import same
import torch
from mambapy.mamba import Mamba, MambaConfig

x = same.data(2, 16, 8)
numbers = []
for options in ({"pscan": True}, {"pscan": False}, {"pscan": True, "inner_layernorms": True}):
    net = same.weights(Mamba(MambaConfig(d_model=8, n_layers=2, d_state=4, **options)), 0.2)
    numbers += same.train(net, lambda m: (m(x) - x.roll(-1, 1)).square().mean(), steps=3)
caches = [(None, torch.zeros(2, net.config.d_inner, net.config.d_conv - 1)) for _ in range(2)]
with torch.no_grad():
    for i in range(16):
        out, caches = net.step(x[:, i], caches)
    numbers += [out.sum().item(), (out - net(x)[:, -1]).abs().max().item()]
model = same.weights(
    torch.nn.Sequential(
        torch.nn.Embedding(16, 8), Mamba(MambaConfig(d_model=8, n_layers=2, d_state=4)), torch.nn.Linear(8, 16)
    ),
    0.2,
)
tokens = same.labels(24, 16).reshape(2, 12)
numbers += same.train(model, lambda m: torch.nn.functional.cross_entropy(m(tokens).mT, tokens.roll(-1, 1)), steps=3)
same.report(numbers)
