"""A two-layer LSTM that reads a sequence and names its class."""

from rushlight import nn
from rushlight.tensor import Tensor


class Reader(nn.Module):
    """Sequences (N, L, inputs) -> logits (N, classes) from the last step's state."""

    def __init__(self, inputs: int = 128, width: int = 256, classes: int = 10) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.lstm(x)
        return self.head(out[:, -1])
