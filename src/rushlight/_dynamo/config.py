"""Settings of what compiles: accepted, without effect."""

import contextlib
from typing import Any

suppress_errors = False
cache_size_limit = 8
recompile_limit = 8
verbose = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
skip_fwd_side_effects_in_bwd_under_checkpoint = False


def patch(*args: Any, **settings: Any) -> contextlib.AbstractContextManager[None]:
    """A context, or a decorator, in which settings are others: of no effect."""
    return _Patch()


class _Patch(contextlib.ContextDecorator, contextlib.nullcontext[None]):
    """A context and a decorator that change nothing."""
