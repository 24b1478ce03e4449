"""``torch.functional``: functions of ``torch`` that PyTorch has in Python."""

from rushlight import absent
from rushlight.dispatch.named import named
from rushlight.nn import functional as F

__all__ = ["F"]
_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum "
    "istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
)
absent.put(globals(), {name: getattr(named, name) for name in _NAMES.split()})
