"""Rigid motions: exponentials, logarithms and adjoints with gradients, and steps of Levenberg and Marquardt"""

import pypose
import same
import torch

turn = pypose.so3(same.data(3, 3) * 0.3).requires_grad_()
moved = turn.Exp() @ same.data(3, 3, seed=1)
moved.sum().backward()
motion = pypose.se3(same.data(2, 6) * 0.2).Exp()
found = [moved.sum().item(), turn.grad.abs().sum().item(), motion.matrix().abs().sum().item()]
found += [motion.Log().tensor().sum().item(), motion.Adj(pypose.se3(same.data(2, 6) * 0.1)).tensor().sum().item()]


class Pose(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pose = pypose.Parameter(pypose.se3(same.data(2, 6) * 0.1).Exp())

    def forward(self, x):
        return (self.pose @ x).Log().tensor()


optimizer, target = pypose.optim.LM(Pose()), pypose.se3(same.data(2, 6, seed=3) * 0.1).Exp()
same.report(found + [optimizer.step(target).item() for _ in range(3)])
