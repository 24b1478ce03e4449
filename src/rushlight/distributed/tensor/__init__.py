"""Tensors that lie on several processes: each has a part, or all."""

from rushlight.absent import walls
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor.dtensor import DTensor, distribute_tensor
from rushlight.distributed.tensor.makers import distribute_module, empty, full, ones, rand, randn, zeros
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]


__getattr__ = walls.lacking(__name__)
