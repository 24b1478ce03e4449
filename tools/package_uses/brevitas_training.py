"""Networks with weights and activations of few bits, trained through rounding, by scales that are learned too"""

import brevitas.nn as qnn
import same
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.given = qnn.QuantIdentity(bit_width=8, return_quant_tensor=True)
        self.conv = qnn.QuantConv2d(3, 6, 3, weight_bit_width=4, bias=True)
        self.relu = qnn.QuantReLU(bit_width=4, return_quant_tensor=True)
        self.linear = qnn.QuantLinear(216, 5, bias=True, weight_bit_width=3)

    def forward(self, x):
        return self.linear(self.relu(self.conv(self.given(x))).flatten(1))


net = Net()
for name in ("conv", "linear"):
    same.weights(torch.nn.ParameterList([getattr(net, name).weight, getattr(net, name).bias]), 0.3)
x = same.data(4, 3, 8, 8)
numbers = same.train(net, lambda model: model(x).square().mean(), lr=0.01)
net.eval()
again = Net().eval()
again.load_state_dict(net.state_dict())
same.report([*numbers, net(x).sum().item(), (again(x) - net(x)).abs().max().item()])
