"""Products with the Hessian, Gauss-Newton and Fisher matrices of a network, also in Kronecker's form"""

import curvlinops
import same
import torch

net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Sigmoid(), torch.nn.Linear(5, 2))
same.weights(net, 0.5).double()
batches, found = [(same.data(6, 3).double(), same.labels(6, 2))], []
for name, more in (
    ("Hessian", {}),
    ("GGN", {}),
    ("EF", {}),
    ("KFAC", {"fisher_type": "type-2"}),
    ("EKFAC", {"fisher_type": "type-2"}),
):
    of = getattr(curvlinops, f"{name}LinearOperator")
    matrix = of(net, torch.nn.CrossEntropyLoss(), list(net.parameters()), batches, **more)
    product = matrix @ same.data(matrix.shape[1]).double()
    found += [product.sum().item(), product.abs().sum().item()]
same.report(found)
