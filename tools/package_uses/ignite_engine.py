"""A trainer and an evaluator with metrics and handlers."""

import same
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping
from ignite.metrics import Accuracy, Loss

model = same.weights(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(same.data(32, 8), same.labels(32, 3)), batch_size=8)
loss_fn = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_fn)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "loss": Loss(loss_fn)})
evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda e: -e.state.metrics["loss"], trainer))
seen = []


@trainer.on(Events.EPOCH_COMPLETED)
def note(engine):
    evaluator.run(loader)
    seen.extend([engine.state.output, evaluator.state.metrics["loss"], evaluator.state.metrics["accuracy"]])


trainer.run(loader, max_epochs=3)
same.report(seen)
