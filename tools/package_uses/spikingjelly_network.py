"""Spiking neurons in one step and in several, trained through time by surrogate gradients"""

import same
import torch
from spikingjelly.activation_based import functional, layer, neuron, surrogate

net = torch.nn.Sequential(
    layer.Conv2d(1, 4, 3, padding=1, bias=False), layer.BatchNorm2d(4), neuron.IFNode(surrogate_function=surrogate.ATan()),
    layer.MaxPool2d(2, 2), layer.Flatten(), layer.Linear(4 * 16, 10),
    neuron.ParametricLIFNode(init_tau=2.0, surrogate_function=surrogate.Sigmoid(), detach_reset=True), layer.Linear(10, 3),
    neuron.LIFNode(tau=2.0, surrogate_function=surrogate.ATan()))  # fmt: skip
same.weights(net, 0.4)
functional.set_step_mode(net, "m")
x, y = same.data(6, 4, 1, 8, 8) * 2, same.labels(4, 3)


def loss_of(net):
    functional.reset_net(net)
    return torch.nn.functional.cross_entropy(net(x).mean(0), y)


losses = same.train(net, loss_of, 4, 0.05)
functional.reset_net(net)
functional.set_step_mode(net, "s")
with torch.no_grad():
    losses += sum(net(t) for t in x).flatten().tolist()
same.report(losses + [p.grad.abs().sum().item() for p in net.parameters()])
