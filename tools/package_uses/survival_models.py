"""Survival: Cox, DeepHit, logistic hazard and MTLR fitted by pycox, its curves, and Cox and Weibull losses of torchsurv"""

import warnings

import numpy as np
import same
import torch
import torchtuples
from pycox.models import MTLR, PMF, CoxPH, DeepHitSingle, LogisticHazard
from torchsurv.loss import cox, weibull
from torchsurv.metrics.cindex import ConcordanceIndex

warnings.simplefilter("ignore")
x = same.data(40, 5)
time = (same.data(40, seed=1).abs() * 5 + 0.1).numpy()
event = same.labels(40, 2, seed=2).numpy()
numbers = []


def net(out: int) -> torch.nn.Module:
    return same.weights(torch.nn.Sequential(torch.nn.Linear(5, 12), torch.nn.ReLU(), torch.nn.Linear(12, out)))


model = CoxPH(net(1), torchtuples.optim.Adam(0.02))
log = model.fit(x.numpy(), (time, event), batch_size=40, epochs=4, verbose=False, shuffle=False)
model.compute_baseline_hazards()
numbers += [*log.to_pandas()["train_loss"], *model.predict_surv_df(x.numpy()).to_numpy().mean(0)[:5]]
for kind in (LogisticHazard, PMF, MTLR, DeepHitSingle):
    labels = kind.label_transform(6)
    model = kind(net(6), torchtuples.optim.AdamWR(0.02), duration_index=labels.fit(time, event).cuts)
    log = model.fit(x.numpy(), labels.transform(time, event), batch_size=20, epochs=4, verbose=False, shuffle=False)
    numbers += [*log.to_pandas()["train_loss"], *model.predict_surv(x.numpy()).mean(0)]
happened, when = torch.tensor(event).bool(), torch.tensor(time)
ties = torch.tensor(np.ceil(time))
for ties_method in ("efron", "breslow"):
    numbers += same.train(
        net(1),
        lambda m, how=ties_method: cox.neg_partial_log_likelihood(m(x), happened, ties, ties_method=how),
        steps=4,
    )
numbers += same.train(net(2), lambda m: weibull.neg_log_likelihood_weibull(m(x), happened, when), steps=4)
numbers.append(ConcordanceIndex()(net(1)(x).squeeze(1), happened, when).item())
same.report(numbers)
