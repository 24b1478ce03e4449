"""A classifier with scikit-learn's interface."""

import numpy as np
import same
import torch
from skorch import NeuralNetClassifier


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))

    def forward(self, x):
        return self.net(x)


x, y = same.data(32, 8).numpy(), same.labels(32, 3).numpy()
net = NeuralNetClassifier(
    Net,
    criterion=torch.nn.CrossEntropyLoss,
    max_epochs=3,
    lr=0.1,
    batch_size=8,
    train_split=None,
    verbose=0,
    iterator_train__shuffle=False,
)
net.fit(x, y)
same.report([*net.history[:, "train_loss"], float(np.abs(net.predict_proba(x)).mean())])
