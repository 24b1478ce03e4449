"""``torch.ao.nn.quantizable``: layers that are made to be quantized, of which there are none."""

from rushlight import absent
from rushlight.ao.nn.quantizable import modules

__all__ = ["modules"]
absent.names(globals(), "there are no quantized tensors: float16 and bfloat16 halve the bytes of float32",
             "LSTM LSTMCell MultiheadAttention")  # fmt: skip
