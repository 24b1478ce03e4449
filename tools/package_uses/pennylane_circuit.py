"""Quantum circuits as functions and as a layer, by backpropagation and by the parameter-shift rule"""

import pennylane as qml
import same
import torch

device = qml.device("default.qubit", wires=2)
numbers = []
for method in ("backprop", "parameter-shift", "adjoint"):

    @qml.qnode(device, interface="torch", diff_method=method)
    def circuit(inputs, weights):
        qml.AngleEmbedding(inputs, wires=range(2))
        qml.BasicEntanglerLayers(weights, wires=range(2))
        return [qml.expval(qml.PauliZ(i)) for i in range(2)]

    x, w = same.data(2).double().requires_grad_(), same.data(3, 2, seed=1).double().requires_grad_()
    out = torch.stack(tuple(circuit(x, w)))
    out.square().sum().backward()
    numbers += [*out.tolist(), *x.grad.tolist(), w.grad.abs().sum().item()]
layer = qml.qnn.TorchLayer(
    qml.QNode(circuit.func, device, interface="torch", diff_method="backprop"), {"weights": (3, 2)}
)
net = same.weights(torch.nn.Sequential(torch.nn.Linear(3, 2), layer, torch.nn.Linear(2, 2)), 0.5)
x, y = same.data(4, 3), same.labels(4, 2)
numbers += same.train(net, lambda m: torch.nn.functional.cross_entropy(m(x).float(), y), 3, 0.1)
same.report(numbers)
