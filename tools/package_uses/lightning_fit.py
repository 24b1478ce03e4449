"""A LightningModule trained by Trainer, with a checkpoint and a summary."""

import logging
import tempfile

import lightning
import same
import torch

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        self.seen = []

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        self.seen.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("val", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


rows = torch.utils.data.TensorDataset(same.data(32, 8), same.labels(32, 3))
loader = torch.utils.data.DataLoader(rows, batch_size=8)
model = same.weights(Net())
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=folder
    )
    trainer.fit(model, loader, loader)
    trainer.save_checkpoint(f"{folder}/last.ckpt")
    again = Net.load_from_checkpoint(f"{folder}/last.ckpt")
assert torch.equal(again.net[0].weight, model.net[0].weight)
same.report([*model.seen, trainer.callback_metrics["val"].item()])
