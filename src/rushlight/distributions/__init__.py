"""torch.distributions: probability distributions that can be differentiated by their parameters.

>>> import rushlight as torch
>>> from rushlight.distributions import Normal, kl_divergence
>>> loc = torch.tensor(1.0, requires_grad=True)
>>> kl_divergence(Normal(loc, 1.0), Normal(0.0, 1.0)).backward()
>>> loc.grad
tensor(1.)
"""

import sys

from rushlight.distributions import constraints, divergences, kl, mixed_divergences, transforms  # noqa: F401
from rushlight.distributions.constraint_registry import biject_to, transform_to
from rushlight.distributions.continuous.beta import Beta
from rushlight.distributions.continuous.cauchy import Cauchy
from rushlight.distributions.continuous.chi2 import Chi2
from rushlight.distributions.continuous.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.continuous.exponential import Exponential
from rushlight.distributions.continuous.fishersnedecor import FisherSnedecor
from rushlight.distributions.continuous.gamma import Gamma
from rushlight.distributions.continuous.generalized_pareto import GeneralizedPareto
from rushlight.distributions.continuous.gumbel import Gumbel
from rushlight.distributions.continuous.half_cauchy import HalfCauchy
from rushlight.distributions.continuous.half_normal import HalfNormal
from rushlight.distributions.continuous.inverse_gamma import InverseGamma
from rushlight.distributions.continuous.kumaraswamy import Kumaraswamy
from rushlight.distributions.continuous.laplace import Laplace
from rushlight.distributions.continuous.log_normal import LogNormal
from rushlight.distributions.continuous.normal import Normal
from rushlight.distributions.continuous.pareto import Pareto
from rushlight.distributions.continuous.studentT import StudentT
from rushlight.distributions.continuous.uniform import Uniform
from rushlight.distributions.continuous.von_mises import VonMises
from rushlight.distributions.continuous.weibull import Weibull
from rushlight.distributions.discrete.bernoulli import Bernoulli
from rushlight.distributions.discrete.binomial import Binomial
from rushlight.distributions.discrete.categorical import Categorical
from rushlight.distributions.discrete.geometric import Geometric
from rushlight.distributions.discrete.multinomial import Multinomial
from rushlight.distributions.discrete.negative_binomial import NegativeBinomial
from rushlight.distributions.discrete.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from rushlight.distributions.discrete.poisson import Poisson
from rushlight.distributions.discrete.relaxed_bernoulli import RelaxedBernoulli
from rushlight.distributions.discrete.relaxed_categorical import RelaxedOneHotCategorical
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.independent import Independent
from rushlight.distributions.kl import kl_divergence, register_kl
from rushlight.distributions.mixture_same_family import MixtureSameFamily
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.transforms import *
from rushlight.distributions.vectors.dirichlet import Dirichlet
from rushlight.distributions.vectors.lkj_cholesky import LKJCholesky
from rushlight.distributions.vectors.logistic_normal import LogisticNormal
from rushlight.distributions.vectors.lowrank_multivariate_normal import LowRankMultivariateNormal
from rushlight.distributions.vectors.multivariate_normal import MultivariateNormal
from rushlight.distributions.vectors.wishart import Wishart

__all__ = ["AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical",
           "Cauchy", "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform",
           "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential",
           "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy",
           "HalfNormal", "Independent", "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky",
           "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "LowerCholeskyTransform",
           "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
           "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform",
           "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform",
           "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT",
           "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
           "biject_to", "identity_transform", "kl_divergence", "register_kl", "transform_to"]  # fmt: skip


def _by_pytorchs_names() -> None:
    """Let the modules of rooms be known as PyTorch has them: `torch.distributions.normal`, not `.continuous.normal`."""
    for name, module in list(sys.modules.items()):
        room, _, stem = name.removeprefix(f"{__name__}.").partition(".")
        if not name.startswith(f"{__name__}.") or not stem:
            continue
        sys.modules[f"{__name__}.{stem}"] = globals()[stem] = module
        flat = module.__name__.replace(f".{room}.", ".")
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                value.__module__ = flat
        module.__name__ = flat


_by_pytorchs_names()
