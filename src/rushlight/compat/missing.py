"""The wording of errors for what rushlight does not have: the thing's PyTorch name, and where it was asked for."""

import os
import re
import sys
import traceback
from types import ModuleType, TracebackType

import rushlight
from rushlight.absent.reasons import why
from rushlight.basics.errors import hint
from rushlight.basics.spelling import nearest
from rushlight.compat.aliases import public_name, real_name

__all__ = ["explain", "place_of", "script_frames"]

PACKAGE = os.path.dirname(os.path.abspath(rushlight.__file__)) + os.sep
_CANNOT_IMPORT = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")


def script_frames(trace: TracebackType | None) -> traceback.StackSummary:
    """The frames of ``trace``, without those at its end that only look a name up for the script."""
    frames = traceback.extract_tb(trace)
    while frames and _looks_up(frames[-1]):
        frames.pop()
    return frames


def _looks_up(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith("<frozen importlib") or (
        frame.name == "__getattr__" and frame.filename.startswith(PACKAGE)
    )


def place_of(trace: TracebackType | None) -> str | None:
    """``file:line`` where ``trace`` ends, if that is outside this package, else None."""
    frames = script_frames(trace)
    if not frames or frames[-1].filename.startswith(PACKAGE):
        return None
    return f"{frames[-1].filename.removeprefix(os.path.join(os.getcwd(), ''))}:{frames[-1].lineno}"


def explain(error: BaseException) -> str | None:
    """The message for an error that means "rushlight does not have this", None for any other error."""
    place = place_of(error.__traceback__)
    thing = _missing_thing(error)
    if thing is None or place is None:
        return None
    owner, _, name = thing.rpartition(".")
    said, near = why(owner, name) or why(thing), nearest(name, _names_beside(error))
    told = f"{thing} is not implemented by rushlight (asked for at {place})"
    told += (f": {said}" if said else "") + (f"; did you mean {near}?" if near else "")
    return f"{told}\n{hint('missing-name')}"


def _missing_thing(error: BaseException) -> str | None:
    """The PyTorch name of what an AttributeError or ImportError did not find in this package."""
    if isinstance(error, AttributeError) and error.name is not None:
        return _attribute(error.obj, error.name)
    if isinstance(error, ModuleNotFoundError):
        return error.name if error.name and real_name(error.name) else None
    if isinstance(error, ImportError):
        found = _CANNOT_IMPORT.search(str(error))
        if found and _ours(found["module"]):
            return f"{public_name(found['module'])}.{found['name']}"
    return None


def _names_beside(error: BaseException) -> list[str]:
    """The names that are where an error found none of that name."""
    if isinstance(error, AttributeError):
        return dir(error.obj)
    if isinstance(error, ModuleNotFoundError):
        beside = sys.modules.get(str(error.name).rpartition(".")[0])
        return [name for name, found in vars(beside).items() if isinstance(found, ModuleType)] if beside else []
    found = _CANNOT_IMPORT.search(str(error))
    return dir(sys.modules[found["module"]]) if found and found["module"] in sys.modules else []


def _attribute(owner: object, name: str) -> str | None:
    """The PyTorch name of attribute ``name`` of a module, class or object of this package."""
    if isinstance(owner, ModuleType):
        return f"{public_name(owner.__name__)}.{name}" if _ours(owner.__name__) else None
    kind = owner if isinstance(owner, type) else type(owner)
    if not _ours(kind.__module__):
        return None
    if kind is rushlight.Tensor:
        return f"torch.Tensor.{name}"
    return f"{public_name(kind.__module__)}.{kind.__qualname__}.{name}"


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "rushlight" or real_name(module) is not None
