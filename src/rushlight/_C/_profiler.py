"""``torch._C._profiler``: where calls come from, as lists of frames."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from rushlight import absent
from rushlight.autograd.profiler import _ExperimentalConfig as _ExperimentalConfig

__all__ = ["CapturedTraceback", "gather_traceback", "symbolize_tracebacks"]


class CapturedTraceback:
    """The frames of a thread at a moment, the innermost first."""

    def __init__(self, frames: list[traceback.FrameSummary]):
        self.frames = frames


def gather_traceback(python: bool = True, script: bool = False, cpp: bool = False) -> CapturedTraceback:
    """The frames of the thread now.  python: whether those of Python; script, cpp: of others there are none."""
    return CapturedTraceback(list(reversed(traceback.extract_stack()[:-1])) if python else [])


def symbolize_tracebacks(tracebacks: Sequence[CapturedTraceback]) -> list[list[dict[str, object]]]:
    """The frames of each, innermost first, as dictionaries with "name", "filename" and "line"."""
    return [[{"name": f.name, "filename": f.filename, "line": f.lineno} for f in t.frames] for t in tracebacks]


absent.names(
    globals(),
    "profiles are of operators and their memory, not of how an engine in C++ ran them",
    "ProfilerConfig RecordScope _EventType _ExtraFields_Allocation _ExtraFields_Backend _ExtraFields_Kineto _ExtraFields_OutOfMemory "
    "_ExtraFields_PyCCall _ExtraFields_PyCall _ExtraFields_TorchOp _ProfilerEvent _TensorMetadata",
)
