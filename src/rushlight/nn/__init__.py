"""Neural network modules, their functions, initial weights and utilities."""

from typing import TYPE_CHECKING

from rushlight.nn import attention as attention
from rushlight.nn import functional as functional
from rushlight.nn import grad as grad
from rushlight.nn import init as init
from rushlight.nn import modules as modules
from rushlight.nn import parallel as parallel
from rushlight.nn import utils as utils
from rushlight.nn.modules import *
from rushlight.nn.parallel import DataParallel as DataParallel
from rushlight.nn.parameter import Buffer as Buffer
from rushlight.nn.parameter import Parameter as Parameter
from rushlight.nn.parameter import UninitializedBuffer as UninitializedBuffer
from rushlight.nn.parameter import UninitializedParameter as UninitializedParameter
from rushlight.nn.parameter_container import factory_kwargs as factory_kwargs

if not TYPE_CHECKING:  # what reads types knows what a * brings
    __all__ = ["Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention",
               "factory_kwargs", "functional", "grad", "init", "modules", "parallel", "utils"]  # fmt: skip
    __all__ += modules.__all__
