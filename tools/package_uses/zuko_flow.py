"""A neural spline flow fitted to points."""

import same
import zuko

flow = same.weights(zuko.flows.NSF(features=2, context=3, transforms=2, hidden_features=[16, 16]))
x, c = same.data(32, 2), same.data(32, 3, seed=1)
same.report(same.train(flow, lambda f: -f(c).log_prob(x).mean(), lr=0.01))
