"""Seven networks of darts for series: trained by lightning, then with given weights asked for what comes, saved and loaded"""

import logging
import tempfile

import numpy as np
import same

logging.disable(logging.CRITICAL)
from darts import TimeSeries  # noqa: E402
from darts.models import (  # noqa: E402
    BlockRNNModel,
    DLinearModel,
    NBEATSModel,
    NHiTSModel,
    TCNModel,
    TiDEModel,
    TransformerModel,
)

trainer = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False, "enable_checkpointing": False, "enable_model_summary": False}  # fmt: skip
common = {"input_chunk_length": 12, "output_chunk_length": 4, "n_epochs": 2, "batch_size": 16, "random_state": 0, "pl_trainer_kwargs": trainer}  # fmt: skip
series = TimeSeries.from_values((np.sin(np.arange(80) / 3) + 0.1 * same.data(80).numpy()).astype("float32"))
models = [
    NBEATSModel(num_stacks=2, num_blocks=1, num_layers=2, layer_widths=16, **common),
    TCNModel(dropout=0.0, **common),
    BlockRNNModel(model="LSTM", hidden_dim=8, **common),
    TransformerModel(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, dropout=0.0, **common),
    TiDEModel(hidden_size=16, dropout=0.0, **common),
    NHiTSModel(num_stacks=2, layer_widths=16, dropout=0.0, **common),
    DLinearModel(**common),
]  # fmt: skip
found = []
for model in models:
    model.fit(series)
    same.weights(model.model)
    found += model.predict(5).values().flatten().tolist()
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.pt")
        found += type(model).load(f"{folder}/model.pt").predict(5, series=series).values().flatten().tolist()
same.report(found)
