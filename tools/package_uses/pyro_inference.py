"""Stochastic variational inference: an autoguide at its mean, and densities."""

import pyro
import pyro.distributions as dist
import same
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta

x, y = same.data(32, 3), same.data(32, seed=1)


def model(x, y):
    weight = pyro.sample("weight", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("rows", len(x)):
        pyro.sample("y", dist.Normal(x @ weight, scale), obs=y)


pyro.clear_param_store()
guide = AutoDelta(
    model,
    init_loc_fn=pyro.infer.autoguide.init_to_median(num_samples=1)
    if False
    else pyro.infer.autoguide.init_to_value(values={"weight": torch.zeros(3), "scale": torch.ones(())}),
)
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
losses = [svi.step(x, y) for _ in range(10)]
same.report([*losses, *guide.median()["weight"].tolist()])
