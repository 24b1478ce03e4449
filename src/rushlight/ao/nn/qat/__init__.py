"""``torch.ao.nn.qat``: layers that compute with their weights rounded, for training what will be quantized."""

from rushlight.ao.nn.qat.modules import Conv1d, Conv2d, Conv3d, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]
