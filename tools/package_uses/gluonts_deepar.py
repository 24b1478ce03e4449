"""DeepAR and a feed-forward network on series, trained by lightning, and their forecasts"""

import logging
import os
import random
import tempfile
import warnings

import numpy as np
import same
import torch
from gluonts.dataset.common import ListDataset
from gluonts.torch.model.deepar.module import DeepARModel
from gluonts.torch.model.simple_feedforward import SimpleFeedForwardEstimator

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
os.chdir(tempfile.mkdtemp())  # where its checkpoints go

series = [np.sin(np.arange(60) / 5 + i) + 0.1 * np.random.default_rng(i).standard_normal(60) for i in range(3)]
data = ListDataset([{"start": "2021-01-01", "target": s} for s in series], freq="D")
torch.manual_seed(0)
np.random.seed(0)
estimator = SimpleFeedForwardEstimator(prediction_length=6, context_length=12, hidden_dimensions=[8], batch_size=4, num_batches_per_epoch=3,
                                       trainer_kwargs={"max_epochs": 2, "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False})  # fmt: skip
random.seed(0)
predictor = estimator.train(data)
torch.manual_seed(0)
numbers = [float(f.mean.sum()) for f in predictor.predict(data)]
model = DeepARModel(
    freq="D",
    context_length=12,
    prediction_length=4,
    num_feat_dynamic_real=1,
    num_feat_static_real=1,
    num_feat_static_cat=1,
    cardinality=[3],
    hidden_size=8,
    num_layers=1,
)
same.weights(model)
past = 12 + max(model.lags_seq)
given = {
    "feat_static_cat": torch.tensor([[0], [1]]),
    "feat_static_real": torch.zeros(2, 1),
    "past_time_feat": same.data(2, past, 1),
    "past_target": same.data(2, past, seed=1).abs(),
    "past_observed_values": torch.ones(2, past),
    "future_time_feat": same.data(2, 4, 1, seed=2),
}
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    loss = model.loss(**given, future_target=same.data(2, 4, seed=3), future_observed_values=torch.ones(2, 4)).mean()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
torch.manual_seed(0)
numbers.append(model(**given, num_parallel_samples=5).shape[1])
same.report(numbers)
