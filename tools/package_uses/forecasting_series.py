"""A temporal fusion transformer and N-BEATS on series of a table, trained by lightning"""

import logging
import warnings

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import same
from pytorch_forecasting import NBeats, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.metrics import QuantileLoss

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
time = np.arange(40)
table = pd.concat(
    [pd.DataFrame({"time": time, "group": str(g), "value": np.sin(time / 3 + g) + 2}) for g in range(3)],
    ignore_index=True,
)
found = []
for kind, options in ((TemporalFusionTransformer, {"hidden_size": 8, "attention_head_size": 1, "dropout": 0.0, "loss": QuantileLoss()}),
                      (NBeats, {"widths": [8, 16], "backcast_loss_ratio": 0.1, "dropout": 0.0})):  # fmt: skip
    series = TimeSeriesDataSet(table, time_idx="time", target="value", group_ids=["group"], max_encoder_length=12, min_encoder_length=12,
                               max_prediction_length=4, min_prediction_length=4, time_varying_unknown_reals=["value"],
                               **({"time_varying_known_reals": ["time"]} if kind is TemporalFusionTransformer else {}))  # fmt: skip
    model = same.weights(kind.from_dataset(series, learning_rate=0.01, log_interval=-1, **options))
    trainer = pl.Trainer(max_steps=4, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, gradient_clip_val=0.1)  # fmt: skip
    trainer.fit(model, series.to_dataloader(train=True, batch_size=16, shuffle=False))
    found += [trainer.callback_metrics["train_loss_step"].item() if "train_loss_step" in trainer.callback_metrics else 0.0,
              *(p.sum().item() for p in model.parameters())]  # fmt: skip
same.report(found)
