"""Tensors and layers as factors: parallel factors, Tucker and tensor trains, with gradients, and layers of fewer parameters"""

import same
import tensorly
import tltorch
from tensorly import decomposition
from tensorly.tenalg import khatri_rao, mode_dot, multi_mode_dot

tensorly.set_backend("pytorch")
x = same.data(6, 5, 4).double()
numbers = []
cp = decomposition.parafac(x, rank=3, init="svd", n_iter_max=20, tol=0)
numbers += [tensorly.norm(x - tensorly.cp_to_tensor(cp)).item(), cp.weights.sum().item()]
core, factors = decomposition.tucker(x, rank=[3, 3, 2], init="svd", n_iter_max=10, tol=0)
numbers += [core.abs().sum().item(), tensorly.norm(multi_mode_dot(core, factors)).item()]
train = decomposition.tensor_train(x, rank=[1, 3, 2, 1])
numbers += [tensorly.tt_to_tensor(train).norm().item()]
positive = decomposition.non_negative_parafac_hals(x.abs(), rank=2, init="svd", n_iter_max=10)
numbers += [tensorly.cp_to_tensor(positive).norm().item()]
robust = decomposition.robust_pca(x, n_iter_max=5, tol=0)
numbers += [part.abs().sum().item() for part in robust]
free = [same.data(n, 3, seed=n).double().requires_grad_() for n in x.shape]
loss = (
    (tensorly.cp_to_tensor((None, free)) - x).square().sum()
    + khatri_rao(free).abs().sum()
    + mode_dot(x, free[0].T, 0).sum()
)
loss.backward()
numbers += [loss.item(), *(f.grad.sum().item() for f in free)]
for factorization in ("cp", "tucker", "blocktt"):
    layer = tltorch.FactorizedLinear((2, 3), (2, 2), bias=True, factorization=factorization, rank=0.8)
    same.weights(layer, 0.3)
    numbers += same.train(layer, lambda m: (m(same.data(8, 6)) - same.data(8, 4, seed=1)).square().mean(), 4)
    numbers += [p.grad.abs().sum().item() for p in layer.parameters()]
conv = tltorch.FactorizedConv(3, 4, kernel_size=3, order=2, factorization="tucker", rank=0.5, padding=1)
same.weights(conv, 0.3)
numbers += same.train(conv, lambda m: m(same.data(2, 3, 6, 6)).square().mean(), 3, 0.01)
regression = same.weights(tltorch.TRL((3, 4), (2,), bias=True, factorization="cp", rank=3), 0.3)
numbers += same.train(regression, lambda m: (m(same.data(8, 3, 4)) - same.data(8, 2)).square().mean(), 4)
same.report(numbers)
