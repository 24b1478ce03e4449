"""torch.masked: tensors of which some elements do not count, and reductions that leave elements out.

`masked_tensor` makes a `MaskedTensor`, which operators take as they take any tensor; `sum`, `mean`, `softmax` and their like take
a tensor and a mask.
"""

from rushlight.masked import _ops
from rushlight.masked._ops import *
from rushlight.masked._ops import _combine_input_and_mask as _combine_input_and_mask
from rushlight.masked._ops import _input_mask as _input_mask
from rushlight.masked._ops import _output_mask as _output_mask
from rushlight.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from rushlight.masked.maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
__all__ += _ops.__all__
