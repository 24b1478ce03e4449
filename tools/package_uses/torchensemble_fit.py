"""Ensembles: voting, bagging, gradient boosting, snapshots and adversarial training, by DataLoaders"""

import tempfile

import same
import torch
from torchensemble import (
    AdversarialTrainingClassifier,
    BaggingRegressor,
    GradientBoostingRegressor,
    SnapshotEnsembleClassifier,
    VotingClassifier,
)


class Net(torch.nn.Module):
    def __init__(self, out=3):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, out))

    def forward(self, x):
        return self.layers(x)


x = torch.sigmoid(same.data(24, 4))
classes = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, same.labels(24, 3)), batch_size=8)
values = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, same.data(24, 1, seed=2)), batch_size=8)
numbers = []
with tempfile.TemporaryDirectory() as folder:
    for kind, loader, given in (
        (VotingClassifier, classes, {}),
        (AdversarialTrainingClassifier, classes, {}),
        (SnapshotEnsembleClassifier, classes, {}),
        (BaggingRegressor, values, {"out": 1}),
        (GradientBoostingRegressor, values, {"out": 1}),
    ):
        torch.manual_seed(0)
        model = kind(
            estimator=Net,
            estimator_args=given,
            n_estimators=3,
            cuda=False,
            **({"n_jobs": 1} if kind in (VotingClassifier, AdversarialTrainingClassifier, BaggingRegressor) else {}),
        )
        if kind is not SnapshotEnsembleClassifier:
            model.set_optimizer("Adam", lr=1e-2)
            model.fit(loader, epochs=3, test_loader=loader, save_model=True, save_dir=folder)
        else:
            model.set_optimizer("Adam", lr=1e-2)
            model.fit(loader, epochs=3, test_loader=loader, save_dir=folder)
        numbers += [model.evaluate(loader), model.predict(x[:2]).sum().item()]
same.report(numbers)
