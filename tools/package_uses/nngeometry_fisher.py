"""Fisher matrices in six forms: their traces and norms, products with vectors, and solutions"""

import same
import torch
from nngeometry.metrics import FIM
from nngeometry.object import PMatBlockDiag, PMatDense, PMatDiag, PMatEKFAC, PMatKFAC, PMatLowRank, PVector
from torch.utils.data import DataLoader, TensorDataset

net = same.weights(
    torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(18, 6),
        torch.nn.Tanh(),
        torch.nn.Linear(6, 3),
    ),
    0.3,
)
loader = DataLoader(TensorDataset(same.data(12, 1, 5, 5), same.labels(12, 3)), 4)
numbers = []
for form in (PMatDense, PMatBlockDiag, PMatDiag, PMatLowRank, PMatKFAC, PMatEKFAC):
    fisher = FIM(model=net, loader=loader, representation=form, variant="classif_logits")
    vector = PVector.from_model(net)
    product = (
        fisher.mv(vector).to_torch()
        if hasattr(fisher.mv(vector), "to_torch")
        else fisher.mv(vector).get_flat_representation()
    )
    numbers += [
        fisher.trace().item(),
        fisher.vTMv(vector).item(),
        fisher.frobenius_norm().item() if form is not PMatEKFAC else 0.0,
    ]
    numbers += [product.abs().sum().item()]
    if form not in (PMatLowRank,):
        numbers += [fisher.solve(vector, regul=0.1).norm().item()]
same.report(numbers)
