"""A convex program as a layer: its solution, differentiated by the program's parameters"""

import cvxpy
import same
from cvxpylayers.torch import CvxpyLayer

x, a, b = cvxpy.Variable(2), cvxpy.Parameter((3, 2)), cvxpy.Parameter(3)
program = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.pnorm(a @ x - b, p=1)), [x >= 0])
layer = CvxpyLayer(program, parameters=[a, b], variables=[x])
p, q = same.data(3, 2).requires_grad_(), same.data(3, seed=1).requires_grad_()
(solution,) = layer(p, q)
solution.sum().backward()
same.report([*solution.tolist(), p.grad.abs().sum().item(), q.grad.abs().sum().item()])
