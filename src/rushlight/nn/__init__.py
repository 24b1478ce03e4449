"""Neural network modules, their functions, initial weights and utilities."""

from rushlight.nn import functional, init, modules, parallel, utils
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [  # noqa: PLE0604
    *modules.__all__,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "utils",
]
