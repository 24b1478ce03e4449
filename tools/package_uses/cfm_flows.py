"""Flow matching: straight, exact-transport and variance-preserving paths of torchcfm, and flow_matching's paths and solver"""

import same
import torch
from flow_matching.path import AffineProbPath, CondOTProbPath, MixtureDiscreteProbPath
from flow_matching.path.scheduler import CosineScheduler, PolynomialConvexScheduler
from flow_matching.solver import ODESolver
from torchcfm import conditional_flow_matching as cfm
from torchcfm.models.models import MLP

start, end, t = same.data(16, 2), same.data(16, 2, seed=1) + 3, torch.linspace(0.05, 0.95, 16)
numbers = []
for matcher in (cfm.ConditionalFlowMatcher(0.0), cfm.TargetConditionalFlowMatcher(0.0), cfm.VariancePreservingConditionalFlowMatcher(0.0)):  # fmt: skip
    net = same.weights(MLP(dim=2, time_varying=True, w=16))
    _, place, velocity = matcher.sample_location_and_conditional_flow(start, end, t=t)
    numbers += same.train(
        net, lambda m, p=place, v=velocity: (m(torch.cat([p, t[:, None]], 1)) - v).square().mean(), steps=4
    )
for path in (CondOTProbPath(), AffineProbPath(CosineScheduler())):
    sample = path.sample(t=t, x_0=start, x_1=end)
    numbers += [sample.x_t.sum().item(), sample.dx_t.square().sum().item()]
    numbers.append(path.target_to_velocity(end, sample.x_t, t[:, None]).sum().item())


class Velocity(torch.nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor, **_: object) -> torch.Tensor:
        return net(torch.cat([x, t.reshape(-1, 1).expand(len(x), 1)], 1))


solver = ODESolver(Velocity())
found = solver.sample(x_init=start, step_size=0.1, method="midpoint", time_grid=torch.tensor([0.0, 0.5, 1.0]), return_intermediates=True)  # fmt: skip
source, log_likelihood = solver.compute_likelihood(
    end,
    lambda x: torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1),
    step_size=0.25,
    method="euler",
    exact_divergence=True,
    enable_grad=True,
)
numbers += [found.sum().item(), source.sum().item(), log_likelihood.sum().item()]
discrete = MixtureDiscreteProbPath(PolynomialConvexScheduler(2.0))
velocity = discrete.posterior_to_velocity(
    same.data(4, 5).softmax(-1), same.labels(4, 5), torch.tensor([0.1, 0.4, 0.6, 0.8])
)
same.report([*numbers, velocity.square().sum().item()])
