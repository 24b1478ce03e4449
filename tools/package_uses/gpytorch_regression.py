"""Exact Gaussian process regression, and a sparse variational one."""

import gpytorch
import same
import torch


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        prior = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, prior, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5))

    forward = Exact.forward


def steps(model, parameters, loss_of, count=5):
    optimizer, seen = torch.optim.Adam(parameters, lr=0.1), []
    for _ in range(count):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


x = torch.linspace(0, 1, 20).double()
y = torch.sin(6 * x) + 0.1 * same.data(20).double()
likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
model = Exact(x, y, likelihood).double()
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
model.train()
likelihood.train()
found = steps(model, model.parameters(), lambda: -mll(model(x), y))
model.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    made = likelihood(model(torch.linspace(0, 1, 7).double()))
found += [made.mean.abs().sum().item(), made.variance.sum().item()]
likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
sparse = Sparse(x[::4].clone()).double()
sparse.variational_strategy.variational_params_initialized.fill_(1)
elbo = gpytorch.mlls.VariationalELBO(likelihood, sparse, num_data=20)
found += steps(sparse, [*sparse.parameters(), *likelihood.parameters()], lambda: -elbo(sparse(x), y))
same.report(found)
