"""A Gaussian process fitted to points, and the next point by expected improvement from given starts."""

import same
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood

x = torch.rand(10, 2, dtype=torch.float64) * 0 + (same.data(10, 2).double().sigmoid())
y = (x - 0.3).square().sum(-1, keepdim=True).neg()
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
acquisition = LogExpectedImprovement(model, best_f=y.max())
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
starts = same.data(4, 1, 2, seed=2).double().sigmoid()
point, value = optimize_acqf(
    acquisition, bounds, q=1, num_restarts=4, batch_initial_conditions=starts, raw_samples=None
)
same.report([*point.flatten().tolist(), value.item(), draw_sobol_samples(bounds, 8, 1, seed=3).numel()])
