"""Invertible networks: coupling blocks, permutations and splits, there and back, trained by likelihood, with conditions"""

import FrEIA.framework as ff
import FrEIA.modules as fm
import same
import torch


def small(into: int, out: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(into, 12), torch.nn.ReLU(), torch.nn.Linear(12, out))


x = same.data(16, 6)
numbers = []
for block, options in (
    (fm.AllInOneBlock, {"permute_soft": False}),
    (fm.GLOWCouplingBlock, {"clamp": 1.5}),
    (fm.RNVPCouplingBlock, {}),
    (fm.NICECouplingBlock, {}),
    (fm.GINCouplingBlock, {}),
):
    net = ff.SequenceINN(6)
    for _ in range(3):
        net.append(block, subnet_constructor=small, **options)
    same.weights(net)
    for module in net.modules():
        if isinstance(getattr(module, "w_perm", None), torch.nn.Parameter):
            module.w_perm.data.copy_(torch.eye(6).roll(2, 0))
            module.w_perm_inv.data.copy_(torch.eye(6).roll(2, 0).mT)

    def loss(m: torch.nn.Module) -> torch.Tensor:
        z, jacobian = m(x)
        return (z.square().sum(1) / 2 - jacobian).mean() / 6

    numbers += same.train(net, loss, steps=4, lr=0.01)
    back, _ = net(net(x)[0], rev=True)
    numbers.append((back - x).abs().max().item())
inputs, given = ff.InputNode(4, 8, 8, name="in"), ff.ConditionNode(4, 8, 8)


def convolution(i, o):
    return torch.nn.Sequential(torch.nn.Conv2d(i, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, o, 1))


nodes = [inputs]
nodes.append(ff.Node(nodes[-1], fm.GLOWCouplingBlock, {"subnet_constructor": convolution}, conditions=given))
nodes.append(ff.Node(nodes[-1], fm.IRevNetDownsampling, {}))
nodes.append(ff.Node(nodes[-1], fm.HaarDownsampling, {}))
nodes.append(ff.Node(nodes[-1], fm.Flatten, {}))
net = same.weights(ff.GraphINN([*nodes, given, ff.OutputNode(nodes[-1])], verbose=False))
pictures, conditions = same.data(2, 4, 8, 8), same.data(2, 4, 8, 8, seed=1)


def likelihood(m: torch.nn.Module) -> torch.Tensor:
    z, jacobian = m(pictures, c=[conditions])
    return (z.square().sum(1) / 2 - jacobian).mean() / 256


same.report(numbers + same.train(net, likelihood, steps=3))
