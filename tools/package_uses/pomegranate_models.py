"""Distributions, mixtures, chains and hidden Markov models fitted to data by expectation"""

import numpy
import same
import torch
from pomegranate.bayes_classifier import BayesClassifier
from pomegranate.bayesian_network import BayesianNetwork
from pomegranate.distributions import Categorical, Exponential, Gamma, Normal, Poisson
from pomegranate.gmm import GeneralMixtureModel
from pomegranate.hmm import DenseHMM
from pomegranate.markov_chain import MarkovChain

x = same.data(60, 3)
numbers = []
for made in (Normal(), Normal(covariance_type="diag"), Exponential(), Gamma(), Poisson(), Categorical()):
    values = {"Normal": x, "Exponential": x.abs() + 0.1, "Gamma": x.abs() + 0.1}.get(
        type(made).__name__, x.abs().round().long()
    )
    made.fit(values)
    numbers += [made.log_probability(values).sum().item(), *(p.sum().item() for p in made.parameters())]
start = [Normal([c, c, c], [1.0, 1.0, 1.0], covariance_type="diag") for c in (-1.0, 1.0)]
mixture = GeneralMixtureModel(start, max_iter=5, tol=1e-9).fit(x)
numbers += [mixture.log_probability(x).sum().item(), *mixture.predict_proba(x).sum(0).tolist()]
bayes = BayesClassifier([Normal(covariance_type="diag"), Normal(covariance_type="diag")]).fit(x, same.labels(60, 2))
numbers += [bayes.predict_log_proba(x).sum().item(), bayes.predict(x).sum().item()]
chain = MarkovChain(k=2).fit(same.labels(120, 3).view(20, 6, 1))
numbers += [chain.log_probability(same.labels(120, 3).view(20, 6, 1)).sum().item()]
series = same.data(8, 12, 2)
hidden = DenseHMM(
    [Normal([c, c], [1.0, 1.0], covariance_type="diag") for c in (-1.0, 1.0)], edges=[[0.7, 0.3], [0.4, 0.6]], starts=[0.5, 0.5], ends=[0.1, 0.1],
    max_iter=4, tol=1e-9)  # fmt: skip
hidden.fit(series)
numbers += [
    hidden.log_probability(series).sum().item(),
    hidden.predict_proba(series).square().sum().item(),
    hidden.predict(series).sum().item(),
]
numbers += [part.abs().sum().item() for part in hidden.forward(series)[:1]]

network = BayesianNetwork(structure=[(), (0,), (0, 1)]).fit(same.labels(150, 2).view(50, 3))
numbers += [network.log_probability(same.labels(150, 2).view(50, 3)).sum().item()]
hole = torch.masked.MaskedTensor(
    torch.tensor([[0, 1, 1], [1, 0, 0]]), torch.tensor([[True, False, True], [True, True, False]])
)
numbers += [float(v) for part in network.predict_proba(hole) for v in numpy.ravel(part.tolist())]
same.report(numbers)
