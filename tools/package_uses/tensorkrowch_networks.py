"""Networks of tensors: a matrix product state trained as a classifier, its norm and canonical form, and other contractions"""

import same
import tensorkrowch as tk
import torch

x, y = same.data(12, 8).sigmoid(), same.labels(12, 3)
net = tk.models.MPSLayer(n_features=9, in_dim=2, out_dim=3, bond_dim=4)
net = same.weights(net, 0.5)
embedded = torch.stack([1 - x, x], -1)
net.trace(embedded)
numbers = same.train(net, lambda m: torch.nn.functional.cross_entropy(m(embedded), y), steps=5, lr=0.02)
net.canonicalize(rank=3, renormalize=True)
net.trace(embedded)
numbers.append(net(embedded).softmax(1).square().sum().item())
chain = same.weights(tk.models.MPS(n_features=5, phys_dim=2, bond_dim=3, boundary="pbc"), 0.5)
numbers.append(chain.norm().item())
a = tk.Node(tensor=same.data(3, 4), axes_names=("left", "right"), name="a")
b = tk.Node(tensor=same.data(4, 5, seed=1), axes_names=("left", "right"), name="b", network=a.network)
a["right"] ^ b["left"]
numbers.append((a @ b).tensor.square().sum().item())
u, s, v = tk.decompositions.vec_to_mps(same.data(2, 2, 2), rank=2)
numbers += [u.abs().sum().item(), s.abs().sum().item(), v.abs().sum().item()]
same.report(numbers)
