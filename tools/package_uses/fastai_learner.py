"""A Learner of fastai on a table and on pictures: one-cycle and discriminative rates, callbacks, weights saved and loaded"""

import os
import tempfile

import numpy as np
import pandas as pd
import same
import torch
from fastai.callback.all import GradientClip, SaveModelCallback
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy
from fastai.optimizer import Adam
from fastai.tabular.all import Categorify, FillMissing, Normalize, TabularDataLoaders, tabular_learner
from fastai.torch_core import params, set_seed

os.chdir(tempfile.mkdtemp())
x, y = same.data(32, 3, 8, 8), same.labels(32, 3)
data = torch.utils.data.TensorDataset(x, y)
loaders = DataLoaders.from_dsets(data, data, bs=8, shuffle=False, num_workers=0, device=torch.device("cpu"))
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3),
    torch.nn.BatchNorm2d(6),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(6, 3),
)
same.weights(net, 0.3)
numbers = []
learner = Learner(
    loaders,
    net,
    loss_func=CrossEntropyLossFlat(),
    opt_func=Adam,
    metrics=accuracy,
    splitter=lambda m: [params(m[:3]), params(m[3:])],
    cbs=[GradientClip(1.0), SaveModelCallback()],
)
with learner.no_bar(), learner.no_logging():
    learner.fit_one_cycle(2, slice(1e-4, 1e-2))
    learner.freeze()
    learner.fit_flat_cos(1, 1e-2)
numbers += [float(v) for row in learner.recorder.values for v in row]
learner.save("kept")
learner.load("kept")
with learner.no_bar(), learner.no_logging():
    numbers.append(learner.get_preds()[0].sum().item())

rng = np.random.default_rng(0)
table = pd.DataFrame(
    {
        "a": rng.standard_normal(60),
        "b": rng.integers(0, 4, 60).astype(str),
        "c": rng.standard_normal(60),
        "y": rng.integers(0, 2, 60),
    }
)
table.loc[3, "a"] = None
set_seed(0)
tables = TabularDataLoaders.from_df(
    table,
    procs=[Categorify, FillMissing, Normalize],
    cat_names=["b"],
    cont_names=["a", "c"],
    y_names="y",
    y_block=None,
    valid_idx=list(range(40, 60)),
    bs=16,
    shuffle=False,
    device=torch.device("cpu"),
)
tabular = tabular_learner(tables, layers=[8, 4])
same.weights(tabular.model, 0.3)
with tabular.no_bar(), tabular.no_logging():
    tabular.fit(2, 1e-2)
numbers += [float(v) for row in tabular.recorder.values for v in row]
same.report(numbers)
