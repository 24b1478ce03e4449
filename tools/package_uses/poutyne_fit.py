"""A model fitted as Keras does, with metrics, callbacks, a checkpoint and an experiment in a folder"""

import tempfile

import numpy
import poutyne
import same
import torch

x, y = same.data(64, 6), same.labels(64, 3)
net = same.weights(torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 3)), 0.3)
numbers = []
with tempfile.TemporaryDirectory() as folder:
    model = poutyne.Model(
        net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), "cross_entropy",
        batch_metrics=["accuracy"], epoch_metrics=[poutyne.FBeta(average="macro")])  # fmt: skip
    history = model.fit(
        x.numpy(), y.numpy(), validation_data=(x.numpy()[:16], y.numpy()[:16]), epochs=4, batch_size=16, verbose=False,
        dataloader_kwargs={"shuffle": False},
        callbacks=[
            poutyne.ModelCheckpoint(f"{folder}/best.pt", monitor="val_loss", save_best_only=True, restore_best=True),
            poutyne.ReduceLROnPlateau(monitor="loss", patience=0, factor=0.5), poutyne.EarlyStopping(monitor="val_loss", patience=3),
            poutyne.ClipNorm(net.parameters(), 1.0), poutyne.TerminateOnNaN(),
            poutyne.CSVLogger(f"{folder}/log.csv")])  # fmt: skip
    for epoch in history:
        numbers += [epoch[key] for key in ("loss", "acc", "val_loss", "val_acc", "fscore_macro") if key in epoch]
    loss, metrics = model.evaluate(x.numpy(), y.numpy(), batch_size=16, verbose=False)
    numbers += [float(loss), *(float(v) for v in numpy.ravel(metrics))]
    numbers += [float(model.predict(x.numpy(), batch_size=16, verbose=False).sum())]
    fresh = same.weights(torch.nn.Linear(6, 3), 0.3)
    experiment = poutyne.Experiment(f"{folder}/run", fresh, optimizer="sgd", task="classif", logging=True)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16)
    for epoch in experiment.train(loader, loader, epochs=2, verbose=False):
        numbers += [epoch["loss"], epoch["val_acc"], epoch["val_fscore_macro"]]
    experiment.train(loader, loader, epochs=3, verbose=False)
    found = experiment.test(loader, verbose=False)
    numbers += [float(value) for key, value in sorted(found.items()) if "time" not in key]
same.report(numbers)
