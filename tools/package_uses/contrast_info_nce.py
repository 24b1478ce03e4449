"""InfoNCE on pairs, with negatives that are shared and negatives of each query"""

import same
import torch
from info_nce import InfoNCE

net = same.weights(torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8)))
query, positive = same.data(12, 10), same.data(12, 10, seed=1)
shared, own = same.data(6, 10, seed=2), same.data(12, 3, 10, seed=3)
numbers = same.train(net, lambda m: InfoNCE()(m(query), m(positive)), steps=4)
numbers += same.train(net, lambda m: InfoNCE(temperature=0.3)(m(query), m(positive), m(shared)), steps=4)
numbers += same.train(
    net, lambda m: InfoNCE(negative_mode="paired", reduction="sum")(m(query), m(positive), m(own)), steps=4, lr=0.01
)
same.report(numbers)
