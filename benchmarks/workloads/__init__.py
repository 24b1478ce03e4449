"""The workloads of the bench: programs as users write them, each once, for whichever library is given as `torch`.

A workload is a function of the library that builds what it needs and returns a step, a function without arguments that
returns the loss (or any number by which to compare the libraries).  Its docstring says what is run.
"""

from workloads import data, graphs, higher, language, memory, optimizers, recurrent, small, vision
from workloads.registry import WORKLOADS, Workload

__all__ = ["WORKLOADS", "Workload", "data", "graphs", "higher", "language", "memory", "optimizers", "recurrent", "small",
           "vision"]  # fmt: skip
