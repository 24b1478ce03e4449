"""``torch._dispatch.python``: contexts of a dispatcher in Python.  A call goes one way here, in them and outside."""

import contextlib

__all__ = ["enable_pre_dispatch", "enable_python_dispatcher", "no_python_dispatcher"]

enable_pre_dispatch = enable_python_dispatcher = no_python_dispatcher = contextlib.nullcontext
