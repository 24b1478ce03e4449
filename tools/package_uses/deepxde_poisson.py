"""A differential equation solved by a network, with boundary conditions, Adam and L-BFGS; an operator by DeepONet"""

import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import numpy as np
import same

dde.config.set_random_seed(0)
dde.config.set_default_float("float64")


def equation(x, y):
    return -dde.grad.hessian(y, x) - np.pi**2 * dde.backend.sin(np.pi * x)


geometry = dde.geometry.Interval(-1, 1)
edge = dde.icbc.DirichletBC(geometry, lambda x: np.sin(np.pi * x), lambda _, on: on)
data = dde.data.PDE(
    geometry, equation, edge, 16, 2, train_distribution="uniform", solution=lambda x: np.sin(np.pi * x), num_test=20
)
net = dde.nn.FNN([1, 12, 12, 1], "tanh", "Glorot uniform")
same.weights(net, 0.5)
model = dde.Model(data, net)
model.compile("adam", lr=1e-2, metrics=["l2 relative error"])
history, _ = model.train(iterations=10, display_every=5, verbose=0)
numbers = [v for row in history.loss_train for v in np.atleast_1d(row)] + [
    v for row in history.metrics_test for v in np.atleast_1d(row)
]
dde.optimizers.set_LBFGS_options(maxiter=5)
model.compile("L-BFGS")
history, _ = model.train(verbose=0)
numbers += list(np.atleast_1d(history.loss_train[-1]))
numbers += model.predict(np.linspace(-1, 1, 5)[:, None]).ravel().tolist()

rng = np.random.default_rng(0)
functions, places, values = rng.standard_normal((6, 8)), np.linspace(0, 1, 5)[:, None], rng.standard_normal((6, 5))
given = dde.data.TripleCartesianProd((functions, places), values, (functions, places), values)
operator = dde.nn.DeepONetCartesianProd([8, 10, 10], [1, 10, 10], "relu", "Glorot normal")
same.weights(operator, 0.3)
model = dde.Model(given, operator)
model.compile("adam", lr=1e-2)
history, _ = model.train(iterations=5, display_every=1, verbose=0)
numbers += [float(np.sum(row)) for row in history.loss_train]
same.report(numbers)
