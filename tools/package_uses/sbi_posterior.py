"""Simulation-based inference: a posterior and a likelihood by flows, and samples drawn by rejection"""

import os
import tempfile

import same
import torch
from sbi.inference import NLE, NPE
from sbi.utils import BoxUniform

os.chdir(tempfile.mkdtemp())  # where its logs go
prior = BoxUniform(low=-2 * torch.ones(2), high=2 * torch.ones(2))
torch.manual_seed(0)
theta = prior.sample((200,))
x = theta + 0.1 * torch.randn(200, 2)
numbers = [theta.sum().item(), x.sum().item()]
observed = torch.tensor([0.5, -0.3])
for method, kind in ((NPE, "maf"), (NPE, "nsf"), (NPE, "mdn")):
    torch.manual_seed(0)
    inference = method(prior=prior, density_estimator=kind, show_progress_bars=False)
    inference.append_simulations(theta, x).train(max_num_epochs=3, training_batch_size=50)
    posterior = inference.build_posterior()
    numbers += posterior.log_prob(torch.tensor([[0.4, -0.2], [0.0, 1.0]]), x=observed, norm_posterior=False).tolist()
    torch.manual_seed(1)
    numbers.append(posterior.sample((50,), x=observed, show_progress_bars=False).mean().item())
torch.manual_seed(0)
inference = NLE(prior=prior, show_progress_bars=False)
inference.append_simulations(theta, x).train(max_num_epochs=1, training_batch_size=50)
posterior = inference.build_posterior(
    mcmc_method="slice_np_vectorized", mcmc_parameters={"num_chains": 2, "warmup_steps": 5, "thin": 1}
)
numbers += posterior.potential(torch.tensor([[0.4, -0.2]]), x=observed).tolist()
same.report(numbers)
