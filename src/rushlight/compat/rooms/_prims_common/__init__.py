"""``torch._prims_common``: small questions about tensors, their shapes and their dtypes."""

from rushlight.compat.rooms._prims_common.promotion import *
from rushlight.compat.rooms._prims_common.shapes import *
from rushlight.tensor import Tensor as TensorLike

DimsSequenceType = list[int] | tuple[int, ...]  # of annotations
DimsType = int | DimsSequenceType

__all__ = ["DimsSequenceType", "DimsType", "ELEMENTWISE_TYPE_PROMOTION_KIND", "TensorLike", "canonicalize_dim",
           "canonicalize_dims", "compute_required_storage_length", "corresponding_complex_dtype",
           "corresponding_real_dtype", "dtype_to_type", "elementwise_dtypes", "get_computation_dtype",
           "is_boolean_dtype", "is_channels_last_contiguous", "is_complex_dtype", "is_contiguous",
           "is_contiguous_or_false", "is_expandable_to", "is_float_dtype", "is_integer_dtype", "is_same_shape",
           "make_contiguous_strides_for", "suggest_memory_format", "type_to_dtype"]  # fmt: skip
