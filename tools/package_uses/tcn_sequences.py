"""Temporal convolutions, causal and not, with gates, norms of weights and skips, also step by step from a buffer"""

import same
import torch
from pytorch_tcn import TCN

x = same.data(3, 4, 20)
numbers = []
for options in (
    {"causal": True, "use_norm": "weight_norm"},
    {"causal": False, "use_norm": "batch_norm", "use_skip_connections": True},
    {"causal": True, "use_norm": "layer_norm", "activation": "gelu", "use_gate": True},
    {"causal": True, "use_norm": None, "dilation_reset": 2, "input_shape": "NLC"},
):
    net = same.weights(TCN(4, [6, 6, 5], kernel_size=3, dropout=0.0, **options))
    given = x.transpose(1, 2) if options.get("input_shape") else x
    numbers += same.train(net, lambda m, given=given: m(given).square().mean() - m(given).mean(), steps=4)
net = same.weights(TCN(4, [6, 6], kernel_size=3, dropout=0.0, causal=True, use_norm=None)).eval()
net.reset_buffers()
with torch.no_grad():
    pieces = [net(x[:1, :, i : i + 5], inference=True) for i in range(0, 20, 5)]
    numbers += [torch.cat(pieces, 2).sum().item(), (torch.cat(pieces, 2) - net(x[:1])).abs().max().item()]
same.report(numbers)
