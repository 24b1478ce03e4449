"""``torch._jit_internal``: decorators of functions that TorchScript shall compile, which return their argument."""

from typing import Any, Final, TypeVar

from rushlight.jit import _overload, _overload_method, export, ignore, is_scripting, unused
from rushlight.jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final", "_copy_to_script_wrapper",
           "_overload", "_overload_method", "export", "ignore", "is_scripting", "unused"]  # fmt: skip

Function = TypeVar("Function")


def _copy_to_script_wrapper(fn: Function) -> Function:
    """`fn` as it is."""
    return fn


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str,
                     func_name: str) -> Any:  # fmt: skip
    """A function that calls one of two, as the argument of that name or place says."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    chosen.__name__, chosen.__module__ = func_name, module_name
    return chosen
