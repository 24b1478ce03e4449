"""A range of learning rates tried on a model, with accumulated gradients and a validation, and the model as it was afterwards"""

import same
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch_lr_finder import LRFinder, TrainDataLoaderIter

pairs = TensorDataset(same.data(32, 5), same.labels(32, 3))
numbers = []
for mode, steps, more in (
    ("exp", 12, {}),
    ("linear", 8, {"accumulation_steps": 2}),
    ("exp", 5, {"val_loader": DataLoader(pairs, 8)}),
):
    net = same.weights(
        torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.0), torch.nn.ReLU(), torch.nn.Linear(8, 3)), 0.3
    )
    before = [p.detach().clone() for p in net.parameters()]
    finder = LRFinder(net, torch.optim.Adam(net.parameters(), lr=1e-4), torch.nn.CrossEntropyLoss(), device="cpu")
    finder.range_test(
        TrainDataLoaderIter(DataLoader(pairs, 8)), end_lr=1, num_iter=steps, step_mode=mode, diverge_th=50, **more
    )
    numbers += [*finder.history["lr"], *finder.history["loss"]]
    finder.reset()
    numbers += [torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True)]
same.report(numbers)
