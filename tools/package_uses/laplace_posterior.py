"""Laplace approximations of a network's posterior: full, Kronecker's and diagonal, with predictions and evidence"""

import same
import torch
from laplace import Laplace
from torch.utils.data import DataLoader, TensorDataset

net = same.weights(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)), 0.5).double()
x, y, found = same.data(20, 3).double(), same.labels(20, 2), []
for subset, kind in (("last_layer", "full"), ("all", "kron"), ("all", "diag"), ("all", "full"), ("last_layer", "kron")):
    fitted = Laplace(net, "classification", subset_of_weights=subset, hessian_structure=kind)
    fitted.fit(DataLoader(TensorDataset(x, y), 10))
    fitted.optimize_prior_precision(method="marglik", n_steps=5)
    found += [*fitted(x[:4], link_approx="probit")[:, 0].tolist(), fitted.log_marginal_likelihood().item()]
same.report(found)
