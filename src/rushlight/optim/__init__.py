"""Optimizers, learning-rate schedules and averaged models.

Every optimizer changes parameters and state in place, without temporaries of their size.
"""

from __future__ import annotations

from rushlight.basics.lazily import lazily
from rushlight.optim.adadelta import Adadelta
from rushlight.optim.adafactor import Adafactor
from rushlight.optim.adagrad import Adagrad
from rushlight.optim.adam import Adam, AdamW
from rushlight.optim.adamax import Adamax
from rushlight.optim.asgd import ASGD
from rushlight.optim.fusing import InBackward, in_backward
from rushlight.optim.lbfgs import LBFGS
from rushlight.optim.muon import Muon
from rushlight.optim.nadam import NAdam
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.radam import RAdam
from rushlight.optim.rmsprop import RMSprop
from rushlight.optim.rprop import Rprop
from rushlight.optim.sgd import SGD
from rushlight.optim.small.came import CAME
from rushlight.optim.small.eight_bit import Adam8bit, AdamW8bit, Lion8bit, SGD8bit
from rushlight.optim.small.lion import Lion
from rushlight.optim.small.low_rank import APOLLO, GaLore
from rushlight.optim.sparse_adam import SparseAdam
from rushlight.optim.swapped import swap_in_optimizer_params_and_state

__all__ = [
    "APOLLO",
    "ASGD",
    "CAME",
    "LBFGS",
    "SGD",
    "SGD8bit",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "Adam8bit",
    "AdamW",
    "AdamW8bit",
    "Adamax",
    "GaLore",
    "InBackward",
    "Lion",
    "Lion8bit",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "in_backward",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]


# Schedules and averaging are imported when they are first asked for.
__getattr__ = lazily(__name__, (f"{__name__}.lr_scheduler", f"{__name__}.swa_utils"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
