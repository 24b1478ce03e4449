"""Attributions of a small network by five methods."""

import same
import torch
from captum.attr import DeepLift, IntegratedGradients, LayerConductance, Occlusion, Saliency

model = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)), 0.3).eval()
x = same.data(4, 8).requires_grad_()
found = [
    IntegratedGradients(model).attribute(x, target=1),
    Saliency(model).attribute(x, target=1),
    DeepLift(model).attribute(x, target=1),
    Occlusion(model).attribute(x, target=1, sliding_window_shapes=(2,)),
    LayerConductance(model, model[0]).attribute(x, target=1),
]
same.report([a.abs().sum().item() for a in found])
