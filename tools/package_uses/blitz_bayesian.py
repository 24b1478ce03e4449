"""Bayesian linear, convolutional and recurrent layers: samples, their evidence lower bound, and training"""

import same
import torch
from blitz.losses import kl_divergence_from_nn
from blitz.modules import BayesianConv2d, BayesianLinear, BayesianLSTM
from blitz.utils import variational_estimator


@variational_estimator
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lstm, self.out = BayesianConv2d(1, 4, (3, 3)), BayesianLSTM(16, 6), BayesianLinear(6, 2)

    def forward(self, x):
        return self.out(self.lstm(torch.relu(self.conv(x)).flatten(2))[0][:, -1])


torch.manual_seed(0)
net = Net()
x, y = same.data(5, 1, 6, 6), same.labels(5, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
numbers = []
for _ in range(3):
    optimizer.zero_grad()
    loss = net.sample_elbo(
        inputs=x, labels=y, criterion=torch.nn.CrossEntropyLoss(), sample_nbr=2, complexity_cost_weight=1e-3
    )
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
numbers.append(kl_divergence_from_nn(net).item())
net.freeze_()
numbers += net(x).flatten().tolist()
same.report(numbers)
