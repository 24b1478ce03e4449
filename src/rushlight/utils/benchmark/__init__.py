"""Times of statements: how long they take, how sure that is, and tables of several."""

from rushlight.utils.benchmark.comparing import Colorize, Compare
from rushlight.utils.benchmark.fuzzing import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from rushlight.utils.benchmark.measurements import *
from rushlight.utils.benchmark.timing import Language, Timer, timer

__all__ = ["Colorize", "Compare", "FuzzedParameter", "FuzzedTensor", "Fuzzer", "Language", "Measurement",
           "ParameterAlias", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer",
           "trim_sigfig", "unit_to_english"]  # fmt: skip
