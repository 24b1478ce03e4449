"""A network of spiking neurons, trained through time by surrogate gradients on two losses of spike counts"""

import same
import snntorch
import snntorch.functional as spikes
import torch
from snntorch import surrogate

first = snntorch.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
second = snntorch.Synaptic(alpha=0.9, beta=0.8)
net = same.weights(torch.nn.ModuleList([torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)]), 0.5)
x, y = same.data(10, 3, 8) * 2, same.labels(3, 4)


def loss_of(net):
    one, (current, two), out = first.init_leaky(), second.init_synaptic(), []
    for t in x:
        fired, one = first(net[0](t), one)
        fired, current, two = second(net[1](fired), current, two)
        out.append(fired)
    out = torch.stack(out)
    return spikes.ce_rate_loss()(out, y) + spikes.mse_count_loss(correct_rate=0.8, incorrect_rate=0.2)(out, y)


losses = same.train(net, loss_of, 4, 0.01)
same.report(losses + [p.grad.abs().sum().item() for p in net.parameters()])
