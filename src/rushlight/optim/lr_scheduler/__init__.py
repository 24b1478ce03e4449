"""Learning-rate schedules.

A schedule changes the options of an optimizer's groups at each of its `step()` calls, which follow the optimizer's.
"""

from rushlight.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from rushlight.optim.lr_scheduler.base import LRScheduler
from rushlight.optim.lr_scheduler.base import _enable_get_lr_call as _enable_get_lr_call
from rushlight.optim.lr_scheduler.compose import ChainedScheduler, SequentialLR
from rushlight.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from rushlight.optim.lr_scheduler.cyclic import CyclicLR
from rushlight.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from rushlight.optim.lr_scheduler.one_cycle import OneCycleLR
from rushlight.optim.lr_scheduler.plateau import ReduceLROnPlateau
from rushlight.optim.lr_scheduler.powers import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR

_LRScheduler = LRScheduler  # its name before PyTorch 2

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
