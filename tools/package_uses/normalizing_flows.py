"""Flows of two packages fitted to points: splines, autoregressive and coupled layers, residuals, and their inverses"""

import normflows
import same
import torch
from nflows import transforms
from nflows.distributions import StandardNormal
from nflows.flows import Flow

torch.set_default_dtype(torch.float64)
points = same.data(24, 4).double() * 0.6
numbers = []


def residual(inputs: int, outputs: int) -> torch.nn.Module:
    from nflows.nn.nets import ResidualNet

    return ResidualNet(inputs, outputs, hidden_features=12, num_blocks=1)


mask = torch.tensor([1, -1, 1, -1])
layers = [
    transforms.MaskedAffineAutoregressiveTransform(4, 12, num_blocks=1),
    transforms.ReversePermutation(4),
    transforms.PiecewiseRationalQuadraticCouplingTransform(mask, residual, num_bins=5, tails="linear", tail_bound=3.0),
    transforms.LULinear(4, identity_init=True),
    transforms.AffineCouplingTransform(-mask, residual),
    transforms.PiecewiseCubicCouplingTransform(mask, residual, num_bins=4, tails="linear", tail_bound=3.0),
    transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(4, 12, tails="linear", tail_bound=3.0, num_blocks=1, num_bins=4),
    transforms.BatchNorm(4),
]  # fmt: skip
flow = same.weights(Flow(transforms.CompositeTransform(layers), StandardNormal([4])), 0.1)
numbers += same.train(flow, lambda f: -f.log_prob(points).mean(), 5, 0.02)
numbers += [p.grad.abs().sum().item() for p in flow.parameters() if p.grad is not None]
flow.eval()
with torch.no_grad():
    noise = flow.transform_to_noise(points)
    numbers += [noise.sum().item(), flow._transform.inverse(noise)[0].sum().item()]

flows = []
for i in range(2):
    net = normflows.nets.MLP([2, 16, 4], init_zeros=True)
    flows += [normflows.flows.AffineCouplingBlock(net), normflows.flows.Permute(4, mode="swap")]
    flows += [normflows.flows.AutoregressiveRationalQuadraticSpline(4, 1, 12), normflows.flows.ActNorm(4)]
    flows += [normflows.flows.Planar((4,)), normflows.flows.Radial((4,))] if i < 0 else []
model = normflows.NormalizingFlow(normflows.distributions.base.DiagGaussian(4), flows)
model.log_prob(points)
same.weights(model, 0.1)
numbers += same.train(model, lambda m: m.forward_kld(points), 5, 0.02)
numbers += [p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None]
with torch.no_grad():
    z = model.inverse(points)
    numbers += [z.sum().item(), model.forward(z).sum().item()]
mixture = same.weights(normflows.distributions.base.GaussianMixture(3, 4), 0.3)
numbers += same.train(mixture, lambda m: -m.log_prob(points).mean(), 3, 0.05)
same.report(numbers)
